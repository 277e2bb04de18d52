"""The share of a strategy's throughput that failures leave, from closed forms alone.

share = running * unhindered * unpaused * kept,

running     mean speed over the number k of missing nodes, a birth and death process;
unhindered  mean speed over the parts that are degraded;
unpaused    time that is not spent standing still where the job goes on without going back;
kept        of this time, what checkpoints, restarts and work done twice leave (`rollback`).

========  ===================================================================  ===============
letter    meaning                                                              from
========  ===================================================================  ===============
N, S      nodes of the job, spares besides                                     the cluster
k         missing nodes, the first S of them replaced                          (state)
b_w       failures per second that take w nodes at once                        domains
1/u       mean time until a missing node is back, over all causes              domains
f_k       speed with k nodes missing                                           ``Recovery``
========  ===================================================================  ===============
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numba
import numpy as np
from numpy.typing import NDArray

from relparallel.training import Cause, Domain, FailureModel, JobShape, Recovery

SPREAD: Final = 12  # standard deviations of the missing nodes that are followed


@dataclass(frozen=True, kw_only=True, slots=True)
class Outlook:
    """What failures leave of a job."""

    share: float
    variance_rate: float
    running: float
    unhindered: float
    unpaused: float
    kept: float
    interval: float
    every: tuple[int, ...]


def outlook(
    model: FailureModel,
    shape: JobShape,
    recovery: Recovery,
    spares: int,
    kept: Callable[[tuple[Cause, ...]], Any],
    fixed: bool = False,
) -> Outlook:
    """Evaluate a job.

    Notes
    -----
    The process of missing nodes: a waiting policy stops the clock of all failures while it is short (Erlang's
    loss system for single nodes), the others go on; spares that stand by fail only if they are hot. Failures
    of w nodes are w births at once, each node comes back by itself. A product of means. The best time from
    checkpoint to checkpoint does not depend on the speed: a slower job does less work in it, and the share is
    that of the full speed. With a fixed interval it takes longer, which is left out (3e-4 of the share on
    16,384 GPUs). The variances of the factors are those of independent processes, to first order.
    O(classes + k).
    """
    domains = [domain for domain in model.domains if domain.rate > 0]
    running, spread = _running(domains, shape, recovery, spares)
    rolled = kept(back_causes(domains, shape, recovery))
    unpaused, unhindered = _unpaused(domains, shape, recovery), _unhindered(domains, recovery)
    pace = 1.0 if fixed else unhindered * (1.0 if recovery.waits or running == 0 else running)
    share = running * unhindered * unpaused * rolled.share
    relative = [(spread, running), (rolled.variance_rate, rolled.share)]
    return Outlook(
        share=share, variance_rate=share**2 * sum(v / m**2 for v, m in relative if m), running=running,
        unhindered=unhindered, unpaused=unpaused, kept=rolled.share,
        interval=rolled.interval * pace, every=rolled.every,
    )  # fmt: skip


def back_causes(domains: Sequence[Domain], shape: JobShape, recovery: Recovery) -> tuple[Cause, ...]:
    """Failures that send the job back to a checkpoint, those that are alike as one."""
    rates: dict[tuple[str, float], float] = {}
    for d in domains:
        if d.component.stops and recovery.goes_back(d, shape):
            kind = (d.component.level, d.component.detection)
            rates[kind] = rates.get(kind, 0.0) + d.rate
    return tuple(
        Cause(level=level, rate=rate, detection=seen, restart=recovery.restart)
        for (level, seen), rate in rates.items()
    )


def _unpaused(domains: Sequence[Domain], shape: JobShape, recovery: Recovery) -> float:
    """Time outside pauses: failures begin the pause of their kind anew, sum_i v_i/v e^{-v d_i}."""
    stay = [d for d in domains if d.component.stops and not recovery.goes_back(d, shape)]
    total = sum(d.rate for d in stay)
    still = [d.rate * np.exp(-total * (recovery.pause + d.component.detection)) for d in stay]
    return float(sum(still) / total) if total else 1.0


def _repair(domain: Domain, recovery: Recovery) -> float:
    """Mean time until the part is back [s]."""
    own = domain.component.repair
    return recovery.repair if own is None else own


def most_running(
    domains: Sequence[Domain], nodes: int, recovery: Recovery, spares: int, touched: int
) -> float:
    """Upper bound on the mean speed of every job on these nodes whose replicas touch at least so many.

    Under "elastic" a larger replica is hit more often, and a kept batch is never faster than a shrinking one;
    under "regroup" the speed is at most the share of nodes that are left. 1 under other policies that go on.
    """
    if recovery.policy not in ("elastic", "regroup"):
        return 1.0
    small = touched if recovery.policy == "elastic" else 1
    unit = max(size for size in range(1, small + 1) if nodes % size == 0)
    shape = JobShape(nodes=nodes, replicas=nodes // unit, stages=1, tensor=1, nodes_per_replica=unit)
    easier = replace(recovery, policy="elastic", batch="shrink", micro_batches=None)
    return min(_running(domains, shape, easier, spares, spread=False)[0] * (1 + 1e-12), 1.0)


def _running(
    domains: Sequence[Domain], shape: JobShape, recovery: Recovery, spares: int, spread: bool = True
) -> tuple[float, float]:
    """Mean speed over the missing nodes, and its variance rate [s] if wanted."""
    taking = [d for d in domains if d.component.stops and d.nodes > 0]
    load = sum(d.rate * d.nodes * _repair(d, recovery) for d in taking)
    if load == 0:
        return 1.0, 0.0
    widest = max(d.nodes for d in taking)
    births = np.zeros(widest + 1)
    for d in taking:
        births[d.nodes] += d.rate
    leave = float(births @ np.arange(widest + 1)) / load
    most = int(load + SPREAD * np.sqrt(load * widest) + 8 * widest) + 1
    if recovery.waits and not recovery.hot:
        most = min(most, spares + widest)
    short = np.minimum(np.maximum(np.arange(min(most, shape.nodes + spares) + 1) - spares, 0), shape.nodes)
    speed = recovery.speed(shape, int(short[-1]))[short]
    exposed = _exposed(recovery, short, shape.nodes, spares)
    chance = stationary(births, leave, exposed)
    return float(chance @ speed), _variance_rate(births, leave, exposed, chance, speed) if spread else 0.0


def _exposed(recovery: Recovery, short: NDArray[np.int64], nodes: int, spares: int) -> NDArray[np.float64]:
    """Rate of failures in a state over that with all nodes up."""
    if recovery.hot:
        return np.maximum(nodes + spares - np.arange(short.size), 0) / nodes
    return np.where(short > 0, 0.0, 1.0) if recovery.waits else (nodes - short) / nodes


@numba.njit(cache=True)  # type: ignore[misc]
def stationary(births: Any, leave: float, exposed: Any) -> Any:
    """Stationary distribution of the number of missing nodes.

    Notes
    -----
    What goes down through the cut between k - 1 and k comes up through it:
    k u pi_k = sum_{j < k} pi_j exposed_j sum_{w >= k - j} b_w. Sums of positive terms, O(k w).
    """
    tail = births[::-1].cumsum()[::-1]
    chance = np.zeros(exposed.size)
    chance[0] = 1.0
    for k in range(1, exposed.size):
        up = 0.0
        for j in range(max(0, k - births.size + 1), k):
            up += chance[j] * exposed[j] * tail[k - j]
        chance[k] = up / (k * leave)
        if chance[k] > 1e250:
            chance /= chance[k]
    return chance / chance.sum()


def _variance_rate(
    births: NDArray[np.float64], leave: float, exposed: NDArray[np.float64], chance: NDArray[np.float64],
    speed: NDArray[np.float64],
) -> float:  # fmt: skip
    """Variance of the mean speed over a run times its length: 2 pi (f - mean) h with Q h = mean - f.

    h is 0 in the likeliest state; Q has repairs below its diagonal, failures of w nodes w above it. O(k w^2).
    """
    from scipy.linalg import solve_banded

    last, widest = exposed.size - 1, births.size - 1
    states = np.arange(last + 1)
    band = np.zeros((widest + 2, last + 1))  # row widest + i - j holds entry (i, j)
    for width in np.flatnonzero(births):
        to = np.minimum(states + width, last)
        np.add.at(band, (widest + states - to, to), births[width] * exposed)
    band[widest] = np.where(states < last, -births.sum() * exposed, 0.0) - leave * states
    band[widest + 1, :-1] = leave * states[1:]
    off = speed - chance @ speed
    most = int(chance.argmax())
    row = np.arange(max(most - 1, 0), min(most + widest, last) + 1)
    band[widest + most - row, row] = row == most
    ahead = solve_banded((1, widest), band, np.where(states == most, 0.0, -off))
    return max(float(2 * chance @ (off * ahead)), 0.0)


def _unhindered(domains: Sequence[Domain], recovery: Recovery) -> float:
    """Mean speed over the parts that are degraded: the slowest one of them all counts."""
    slow = sorted((d for d in domains if not d.component.stops), key=lambda d: -d.component.slowdown)
    speed, none = 0.0, 1.0
    for d in slow:
        absent = np.exp(-d.rate * _repair(d, recovery))
        speed += none * (1 - absent) / d.component.slowdown
        none *= absent
    return speed + none
