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
// Nodes of an event: geometric shares such that the nodes down have a variance of so many times their mean.
function eventSizes(burst) {
  const stop = 2 / (1 + burst), shares = [];
  for (let share = stop; share > 1e-6 * stop; share *= 1 - stop) shares.push(share);
  const total = shares.reduce((sum, share) => sum + share, 0);
  return shares.map((share) => share / total);
}
const meanSize = (sizes) => sizes.reduce((sum, share, k) => sum + (k + 1) * share, 0);
// Share of time with more nodes down than spares, where nothing fails then: Panjer's recursion, Erlang's B for single nodes.
function shortage(load, spares, burst) {
  if (burst <= 1) return erlangB(spares + 1, load);
  const sizes = eventSizes(burst), mean = meanSize(sizes), weights = [1];
  let total = 1, short = 0;
  for (let down = 1; down <= spares + sizes.length; down++) {
    let weight = 0;
    for (let b = Math.max(1, down - spares); b <= Math.min(sizes.length, down); b++) weight += b * sizes[b - 1] * weights[down - b];
    weights.push(weight *= load / mean / down);
    total += weight;
    if (down > spares) short += weight;
  }
  return short / total;
}
// Job: nodes, replica (nodes), nodeRate, jobRate [1/s], checkpoint, restart, pause, repair [s], burst (1: nodes fail one by one).
function restartOrSpares(job, spares) {
  const active = job.nodes - spares;
  const events = active * job.nodeRate / meanSize(eventSizes(job.burst));
  const kept = rollback(job.checkpoint, job.restart, events + job.jobRate);
  return active / job.nodes * kept * (1 - shortage(active * job.nodeRate * job.repair, spares, job.burst));
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
  return up / (1 + failures / meanSize(eventSizes(job.burst)) * job.pause) * rollback(job.checkpoint, job.restart, rate);
}
// Chances of 0 ... K nodes down of a job that goes on: those of the active nodes fail that are up.
function nodesDown(job, spares) {
  const active = job.nodes - spares, sizes = eventSizes(job.burst), load = active * job.nodeRate * job.repair / meanSize(sizes);
  const second = sizes.reduce((sum, share, k) => sum + (k + 1) ** 2 * share, 0);
  const most = Math.min(job.nodes, Math.ceil(load * meanSize(sizes) + 12 * Math.sqrt(load * second) + 30 + 3 * sizes.length)), logs = [0];
  for (let down = 1; down <= most; down++) {
    let terms = [];
    for (let b = 1; b <= Math.min(sizes.length, down); b++) {
      const able = 1 - Math.max(down - b - spares, 0) / active;
      if (able > 0) terms.push(Math.log(b * sizes[b - 1] * load * able / down) + logs[down - b]);
    }
    const top = Math.max(...terms);
    logs.push(top + Math.log(terms.reduce((sum, term) => sum + Math.exp(term - top), 0)));
  }
  const top = Math.max(...logs), weights = logs.map((x) => Math.exp(x - top)), total = weights.reduce((sum, w) => sum + w, 0);
  return weights.map((w) => w / total);
}
// Probabilities that every unit of so many nodes has a failed one, with 0 ... K nodes failed at random.
function allHit(units, size, failed) {
  let now = new Array(units + 1).fill(0), found = [];
  now[0] = 1;
  for (let k = 0; k <= failed; k++) {
    found.push(now[units]);
    const left = units * size - k, then = new Array(units + 1).fill(0);
    for (let u = 0; u <= units && left > 0; u++) then[u] = (now[u] * Math.max(u * size - k, 0) + (u ? now[u - 1] * (units - u + 1) * size : 0)) / left;
    now = then;
  }
  return found;
}
function goingOn(job, active, speed, last) {
  const paused = active * job.nodeRate / meanSize(eventSizes(job.burst)) * job.pause;
  return active / job.nodes * speed / (1 + paused) * rollback(job.checkpoint, job.restart, job.jobRate + (last > NEVER ? last : 0));
}
// Spares take the places of failed nodes; then replicas that are hit leave.
function elasticSpares(job, spares) {
  const active = job.nodes - spares, units = active / job.replica, chance = nodesDown(job, spares), missing = Math.max(chance.length - 1 - spares, 0);
  const hit = missing + 1 >= units ? allHit(units, job.replica, missing + 1) : null;
  let clean = 1, speed = 0, last = 0;
  chance.forEach((share, down) => {
    const gone = down - spares;
    if (gone > 0) clean *= Math.max(active - job.replica - gone + 1, 0) / (active - gone + 1);
    speed += share * clean;
    if (hit && gone >= 0) last += share * (active - gone) * job.nodeRate * (hit[gone + 1] - hit[gone]);
  });
  return goingOn(job, active, speed, last);
}
function bestElastic(job) {
  let best = { share: -1, spares: 0 };
  for (let held = 0; held < job.nodes && held <= best.spares + 3 * job.replica; held += job.replica) {
    const share = elasticSpares(job, held);
    if (share > best.share) best = { share, spares: held };
  }
  return best;
}
// Healthy nodes of broken replicas are put together to whole ones.
function regroup(job) {
  const units = job.nodes / job.replica;
  const speed = nodesDown(job, 0).reduce((sum, share, down) => sum + share * Math.floor((job.nodes - down) / job.replica) / units, 0);
  return goingOn(job, job.nodes, speed, 0);
}
if (typeof module !== "undefined") module.exports = { shortage, restartOrSpares, bestSpares, elastic, elasticSpares, bestElastic, regroup };
