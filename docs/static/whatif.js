// Relative goodput in closed form, as in relparallel.training.relative_goodput.
// Lost share y of the best checkpoint interval: -log(1 - y) - y = c, by Newton steps.
function lostShare(c) {
  if (c <= 0) return 0;
  let y = Math.min(Math.sqrt(2 * c), 1 - Math.exp(-1 - c));
  for (let k = 0; k < 60; k++) {
    const step = (-Math.log1p(-y) - y - c) * (1 - y) / y;
    y = Math.min(Math.max(y - step, y / 4), 1 - (1 - y) / 4);
    if (Math.abs(step) < 1e-15) break;
  }
  return y;
}
function rollback(cost, restart, rate) {
  return (1 - lostShare(cost * rate)) * Math.exp(-restart * rate);
}
function erlangB(servers, load) {
  let busy = 1;
  for (let k = 1; k <= servers; k++) busy = load * busy / (k + load * busy);
  return busy;
}
// Job: nodes, replica (nodes), nodeRate, jobRate [1/s], checkpoint, restart, pause, repair [s].
function restartOrSpares(job, spares) {
  const active = job.nodes - spares;
  const kept = rollback(job.checkpoint, job.restart, active * job.nodeRate + job.jobRate);
  return active / job.nodes * kept * (1 - erlangB(spares + 1, active * job.nodeRate * job.repair));
}
function bestSpares(job) {
  let best = { share: -1, spares: 0 };
  for (let held = 0; held < job.nodes; held += job.replica) {
    const share = restartOrSpares(job, held);
    if (share > best.share) best = { share, spares: held };
    else if (held > best.spares + 20 * job.replica) break;
  }
  return best;
}
const NEVER = 1e-15;  // 1/s
function elastic(job) {
  const up = Math.pow(1 + job.nodeRate * job.repair, -job.replica), failures = job.nodes * job.nodeRate;
  const last = failures * up * Math.pow(1 - up, job.nodes / job.replica - 1);  // the only replica that was left
  const rate = job.jobRate + (last > NEVER ? last : 0);
  return up / (1 + failures * job.pause) * rollback(job.checkpoint, job.restart, rate);
}
if (typeof module !== "undefined") module.exports = { restartOrSpares, bestSpares, elastic };
