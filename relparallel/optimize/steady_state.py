"""Steady state of a strategy under failures, from closed forms alone: the factors of its relative goodput.

The factors are those of `relparallel.training.factors`. Nodes come back one by one, whatever took them: the
number k of missing nodes, the first S of them replaced by spares, is a Markov chain.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from relparallel.training import Cause, Domain, FailureModel, JobShape, Recovery
from relparallel.training._rows import causes_of
from relparallel.training.down_nodes import Moves, able_to_fail, node_by_node, reach, speed_variance
from relparallel.training.factors import Factors, outside_pauses, slowest_decides

Array = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, slots=True)
class SteadyState(Factors):
    """What failures leave of a job: factors, the variance of their product over a run, the checkpoints."""

    variance_rate: float
    interval: float
    every: tuple[int, ...]


def steady_state(
    model: FailureModel, shape: JobShape, recovery: Recovery, spares: int,
    kept: Callable[[tuple[Cause, ...]], Any], fixed: bool = False,
) -> SteadyState:  # fmt: skip
    """Evaluate a job; ``kept`` says what checkpoints leave under causes.

    Notes
    -----
    A waiting policy stops the clock of all failures while it is short (Erlang's loss system for single
    nodes), the others go on; spares that stand by fail only if they are hot. A product of means. The best
    time from checkpoint to checkpoint does not depend on the speed: a slower job does less work in it, and
    the share is that of the full speed. With a fixed interval it takes longer, which is left out (3e-4 of the
    share on 16,384 GPUs). The variances of the factors are those of independent processes, to first order.
    """
    domains = [domain for domain in model.domains if domain.rate > 0]
    down = Down.of(domains, shape.nodes, recovery, spares)
    speed = down.speed(shape, recovery)
    stay = [d for d in domains if d.component.stops and not recovery.goes_back(d, shape)]
    running = Down.of(domains, shape.nodes, recovery, spares, stay)
    mean = float(running.chance @ running.speed(shape, recovery))
    paused = np.array([recovery.pause + d.component.detection for d in stay])
    slow = sorted((d for d in domains if not d.component.stops), key=lambda d: -d.component.slowdown)
    busy = np.array([d.rate * _repair(d, recovery) for d in slow])
    rolled = kept(causes_of(model, recovery, shape))
    degraded = slowest_decides(np.exp(-busy), np.array([d.component.slowdown for d in slow]))
    pace = 1.0 if fixed else degraded * (1.0 if recovery.waits or mean == 0 else mean)
    relative = rolled.variance_rate / rolled.share**2 if rolled.share else 0.0
    if mean:
        relative += speed_variance(down.chance, down.moves, speed) / mean**2
    state = SteadyState(
        recovery=outside_pauses(np.array([d.rate for d in stay]), paused), rollback=rolled.share,
        degraded_nodes=mean, degraded_parts=degraded, variance_rate=relative,
        interval=rolled.interval * pace, every=rolled.every,
    )  # fmt: skip
    return replace(state, variance_rate=state.share**2 * relative)


@dataclass(frozen=True, slots=True)
class Down:
    """How many nodes are down: how likely each number is, its moves, and how many of them are missed."""

    chance: Array
    moves: Moves
    missing: NDArray[np.int64]

    @classmethod
    def of(
        cls, domains: Sequence[Domain], nodes: int, recovery: Recovery, spares: int,
        pausing: Sequence[Domain] = (),
    ) -> Down:  # fmt: skip
        """Of a job on so many nodes, spares besides; outside the pauses of some domains."""
        taking = [d for d in domains if d.component.stops and d.nodes > 0]
        busy = {d.nodes: 0.0 for d in taking}
        failures = np.zeros(max(busy, default=0) + 1)
        for d in taking:
            busy[d.nodes] += d.rate * _repair(d, recovery, d in pausing)
            failures[d.nodes] += d.rate
        load = sum(width * each for width, each in busy.items())
        if load == 0:
            return cls(np.ones(1), (), np.zeros(1, np.int64))
        most = reach(busy, nodes + spares)
        if recovery.waits and not recovery.hot:
            most = min(most, spares + max(busy))
        down = np.arange(most + 1)
        able = able_to_fail(down, nodes, spares, recovery.hot, recovery.waits)
        leave = float(failures @ np.arange(failures.size)) / load
        return cls(*node_by_node(failures, leave, able), np.clip(down - spares, 0, nodes))

    def speed(self, shape: JobShape, recovery: Recovery) -> Array:
        """Share of the throughput with every number of nodes down."""
        return recovery.speed(shape, int(self.missing[-1]))[self.missing]


def _repair(domain: Domain, recovery: Recovery, pausing: bool = False) -> float:
    """Mean time until the part is back [s]; what counts of it outside a pause, see `goodput`."""
    repair = recovery.repair if domain.component.repair is None else domain.component.repair
    still = recovery.pause + domain.component.detection if pausing else 0.0
    return repair * math.exp(-still / max(repair, 1.0))


def most_running(
    domains: Sequence[Domain], nodes: int, recovery: Recovery, spares: int, touched: Sequence[int]
) -> list[float]:
    """Upper bounds on the mean speed of all jobs on these nodes whose replicas touch at least so many.

    Under "elastic" a larger replica is hit more often, and a kept batch is never faster than a shrinking one;
    under "regroup" the speed is at most the share of nodes that are left. 1 under other policies that go on.
    """
    if recovery.policy not in ("elastic", "regroup"):
        return [1.0] * len(touched)
    down, bounds = Down.of(domains, nodes, recovery, spares, domains), []
    easier = replace(recovery, policy="elastic", batch="shrink", micro_batches=None)
    for least in touched:
        small = least if recovery.policy == "elastic" else 1
        unit = max(size for size in range(1, small + 1) if nodes % size == 0)
        shape = JobShape(nodes=nodes, replicas=nodes // unit, stages=1, tensor=1, nodes_per_replica=unit)
        bounds.append(min(float(down.chance @ down.speed(shape, easier)) * (1 + 1e-12), 1.0))
    return bounds
