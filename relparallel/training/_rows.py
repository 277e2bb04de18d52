"""One job as arrays: what closed forms, the Markov chain and both simulations share."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray

from relparallel._checks import require_instance, require_int
from relparallel.hardware import Cluster
from relparallel.training.checkpoint_policies import Cause, Checkpointing
from relparallel.training.down_nodes import (
    able_to_fail,
    cold_distribution,
    down_distribution,
    reach,
    speeds,
)
from relparallel.training.factors import slowest_decides
from relparallel.training.failures import Domain, FailureModel
from relparallel.training.job_shape import JobShape
from relparallel.training.recovery_policies import Recovery
from relparallel.training.rollback import rollback

STANDING: Final = 1e-9  # a share of time or speed below which nothing is productive
_SPREAD: Final = 12  # standard deviations of the missing nodes that the table of speeds covers


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Rows:
    """A job, compiled."""

    rate: NDArray[np.float64]
    nodes: NDArray[np.int64]
    stops: NDArray[np.bool_]
    back: NDArray[np.bool_]
    survive: NDArray[np.float64]
    detection: NDArray[np.float64]
    repair: NDArray[np.float64]
    slowdown: NDArray[np.float64]
    cost: NDArray[np.float64]
    restart: NDArray[np.float64]
    delay: NDArray[np.float64]
    every: NDArray[np.int64]
    interval: float
    speed: NDArray[np.float64]
    total: int
    spares: int
    hot: bool
    pause: float
    restart_fixed: float

    @property
    def pausing(self) -> NDArray[np.bool_]:
        """Rows that stop the job for a pause only."""
        kept: NDArray[np.bool_] = ~self.back & self.stops
        return kept & (self.detection + self.pause > 0)

    @property
    def taken(self) -> dict[int, float]:
        """Parts under repair at once if all could always fail, by the nodes of a part."""
        busy = self.rate * self.repair
        sizes = np.unique(self.nodes[self.nodes > 0])
        return {int(size): float(busy[self.nodes == size].sum()) for size in sizes}

    def states(self, waits: bool) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Ability to fail and speed with 0 ... K nodes down."""
        loads, top = self.taken, self.total + self.spares
        cold = waits and not self.hot
        most = min(top, self.spares + max(loads, default=1)) if cold else reach(loads, top)
        down = np.arange(most + 1)
        able = able_to_fail(down, self.total, self.spares, self.hot, waits)
        return able, speeds(down, self.spares, self.speed)

    def down(self, waits: bool) -> NDArray[np.float64]:
        """Probabilities of 0 ... K nodes down."""
        loads = self.taken
        if waits and not self.hot and len(loads) > 1:
            repairs = {n: load / self.rate[self.nodes == n].sum() for n, load in loads.items()}
            found = (
                cold_distribution(loads, repairs, self.spares) if all(repairs.values()) else None
            )
            if found is not None:
                return found
        return down_distribution(loads, self.states(waits)[0])

    def running(self, waits: bool) -> tuple[float, float]:
        """Share of the time in which some speed is left, and the mean speed of that time."""
        speed = self.states(waits)[1]
        probability = self.down(waits)
        available = max(1 - float(probability[speed == 0].sum()), 0.0)
        return available, min(float(probability @ speed) / available, 1.0) if available else 0.0

    def outside_pauses(self, waits: bool) -> tuple[Self, NDArray[np.float64]]:
        """The job as found outside its pauses, and the share of parts that can fail meanwhile, [i].

        Outside a pause of length d nothing has failed for d seconds, and of the parts that were
        under repair then the share e^{-d/r} still is. With repairs of mean r and the share a of all
        nodes that can fail that is a smaller load, rho e^{-d/r} a / (1 - (1 - a) e^{-d/r}), exact
        for nodes on their own.
        """
        able = float(self.down(waits) @ np.minimum(self.states(waits)[0], 1.0))
        still = np.where(self.pausing & (self.repair > 0), self.detection + self.pause, 0.0)
        past = still / np.maximum(self.repair, 1.0)
        left = np.exp(-past) * np.where(past > 0, able / (1 - (1 - able) * np.exp(-past)), 1.0)
        mean = 1 - (1 - able) * -np.expm1(-past) / np.where(past > 0, past, 1.0)
        return replace(self, repair=self.repair * left), np.where(self.nodes > 0, mean, 1.0)

    def slow_parts(self) -> float:
        """Mean speed with slow parts, of which Poisson numbers are slow at once."""
        order = np.argsort(-self.slowdown, kind="stable")
        order = order[self.slowdown[order] > 1]
        return slowest_decides(np.exp(-(self.rate * self.repair)[order]), self.slowdown[order])

    def slow_variance(self) -> float:
        """Relative variance of the speed with slow parts; each kind as an on-off process.

        On for (e^u - 1) r / u on average, off for r / u: 2 p0^2 p1^2 (on + off) drop^2 with p0 =
        e^-u.
        """
        slow = (self.slowdown > 1) & (self.rate * self.repair > 0)
        if not slow.any():
            return 0.0
        repair = self.repair[slow]
        busy = self.rate[slow] * repair
        none, drop = np.exp(-busy), 1 - 1 / self.slowdown[slow]
        cycle = none * repair / busy
        return float((2 * (1 - none) ** 2 * cycle * drop**2 / (1 - (1 - none) * drop) ** 2).sum())


def under(model: FailureModel, recovery: Recovery) -> FailureModel:
    """What fails, by whether spare trays stand in for it until it is repaired."""
    require_instance(FailureModel, model=model)
    return model.with_spare_trays(require_instance(Recovery, recovery=recovery).repair)


def rows(
    model: FailureModel,
    checkpointing: Checkpointing,
    recovery: Recovery,
    spares: int = 0,
    shape: JobShape | None = None,
) -> Rows:
    """Compile a job, on its nodes as `shape_of` says, with failures that `under` has told apart.

    Where the interval or the frequencies of the levels are open, those with the largest share of
    productive time are taken: the best time between checkpoints does not depend on the speed, so
    the work in it falls with the mean speed. O(classes), and O(k) for the table of speeds.
    """
    require_instance(Checkpointing, checkpointing=checkpointing)
    require_int(spares=spares, at_least=0, at_most=10**6)
    if spares and not recovery.takes_spares:
        raise ValueError(
            f"spares must be 0 with recovery {recovery.policy!r}, which waits, got {spares}"
        )
    shape = shape or shape_of(model, recovery)
    domains = [domain for domain in model.domains if domain.rate > 0]
    levels = checkpointing.levels
    chosen = rollback(checkpointing, causes_of(model, recovery, shape))
    rate, nodes = _column(domains, "rate"), _missing(domains, recovery, shape)
    repairs = [
        recovery.repair if d.component.repair is None else d.component.repair for d in domains
    ]
    repair = np.array(repairs, np.float64)
    load, widest = float(rate @ (nodes * repair)), int(nodes.max(initial=1))
    # more missing nodes than occur
    most = int(load + _SPREAD * np.sqrt(load * widest)) + 8 * widest + 1
    survive = [[level.survival(d.component.level) for level in levels] for d in domains]
    job = Rows(
        rate=rate,
        nodes=nodes,
        repair=repair,
        stops=_column([d.component for d in domains], "stops") > 0,
        back=np.array([recovery.goes_back(d, shape) for d in domains], np.bool_),
        survive=np.array(survive, np.float64).reshape(len(domains), len(levels)),
        detection=_column([d.component for d in domains], "detection"),
        slowdown=_column([d.component for d in domains], "slowdown"),
        cost=_column(levels, "cost"),
        restart=_column(levels, "restart"),
        delay=_column(levels, "delay"),
        every=np.array((*chosen.every, 1), np.int64),
        interval=float(chosen.interval),
        speed=recovery.speed(shape, min(shape.nodes, most)),
        total=shape.nodes,
        spares=spares,
        hot=recovery.hot,
        pause=float(recovery.pause),
        restart_fixed=float(recovery.restart),
    )
    if checkpointing.interval is not None or np.isinf(job.interval):
        return job
    pace = job.outside_pauses(recovery.waits)[0].running(recovery.waits)[1] * job.slow_parts()
    return replace(job, interval=job.interval * pace) if pace > STANDING else job


def through_spare_trays(
    elasticity: NDArray[np.float64], job: Rows, domains: Sequence[Domain], cluster: Cluster
) -> NDArray[np.float64]:
    """Elasticities by row with what more failures do to the share that finds no spare tray free.

    That share is Erlang's B of s servers: d ln B / d ln load = s - load (1 - B).
    """
    spared = np.array([d.component.spared for d in domains], np.bool_)
    levels = np.array(
        [d.component.local and d.component.level in ("gpu", "tray") for d in domains], np.bool_
    )
    lost = levels & ~spared
    if not cluster.spare_trays or not spared.any() or not lost.any():
        return elasticity
    busy = np.where(spared, job.rate * job.repair, 0.0)
    free = float(job.rate[spared].sum() / job.rate[spared | lost].sum())
    moved = elasticity[lost].sum() - (1 - free) / free * elasticity[spared].sum()
    # all failures are 1/free times those spared
    steep = cluster.spare_trays - busy.sum() / cluster.nodes
    return np.asarray(elasticity + moved * steep * busy / busy.sum())


def _missing(domains: Sequence[Domain], recovery: Recovery, shape: JobShape) -> NDArray[np.int64]:
    """Nodes that a failure takes in the table of speeds; a rack inside a dropped replica is one."""
    nodes = _column(domains, "nodes").astype(np.int64)
    if not recovery.drops:
        return nodes
    units = -(-_column(domains, "replicas").astype(np.int64) // shape.replicas_per_unit)
    return np.minimum(nodes, units)


def _column(entries: Sequence[Any], name: str) -> NDArray[np.float64]:
    return np.array([getattr(entry, name) for entry in entries], dtype=np.float64)


def causes_of(
    model: FailureModel, recovery: Recovery, shape: JobShape | None = None
) -> tuple[Cause, ...]:
    """Failures that send the job back to a checkpoint; those that cost the same are one cause."""
    shape, rates = shape or shape_of(model, recovery), defaultdict[tuple[str, float], float](float)
    for d in model.domains:
        if d.rate > 0 and recovery.goes_back(d, shape):
            rates[d.component.level, d.component.detection] += d.rate
    return tuple(
        Cause(level=level, rate=rate, detection=detection, restart=float(recovery.restart))
        for (level, detection), rate in rates.items()
    )


def shape_of(model: FailureModel, recovery: Recovery) -> JobShape:
    """How the job lies on its nodes; one that waits for all of them is one piece."""
    if model.placement is None:
        raise ValueError("model must have a placement, got None")
    nodes = model.cluster.nodes
    if recovery.waits:
        return JobShape(nodes=nodes, replicas=1, stages=1, tensor=1, nodes_per_replica=nodes)
    return JobShape.of(model.placement, model.cluster)
