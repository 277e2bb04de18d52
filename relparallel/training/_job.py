"""One job as arrays: what closed forms, the Markov chain and the simulation share."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from relparallel._checks import require_instance, require_int
from relparallel.hardware import Cluster
from relparallel.training._random_failures import all_units_hit, unit_clean
from relparallel.training.checkpoint_policies import Checkpointing
from relparallel.training.down_nodes import able_to_fail, mixed_distribution, reach, speeds
from relparallel.training.factors import NEVER, fading, slowest_decides
from relparallel.training.failure_sources import alone
from relparallel.training.failures import Domain, FailureModel
from relparallel.training.job_shape import JobShape
from relparallel.training.recovery import speed_of
from relparallel.training.recovery_policies import Recovery
from relparallel.training.rollback_forms import Causes, Levels, Rollback, going_back

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Bools = NDArray[np.bool_]
STANDING: Final = 1e-9  # a share of time or speed below which nothing is productive
_FEW: Final = 1e-14  # least share of nodes that work, or do not
SINGLE, IN_A_ROW, ANYWHERE = range(3)  # nodes of a failure: of one part, or of a shared event
_SPREAD: Final = 12  # standard deviations of the missing nodes that the table of speeds covers


@lru_cache(maxsize=256)  # a report asks several times for each job
def _down(
    rates: tuple[tuple[int, float], ...],
    repairs: tuple[tuple[int, float], ...],
    spares: int,
    able: bytes,
    cold: bool,
    apart: bool,
    phases: tuple[tuple[float, float], ...],
) -> Floats:
    """`JobRows.down` from its parts and ability to fail."""
    given = dict(rates), dict(repairs), np.frombuffer(able), spares
    found = mixed_distribution(*given, cold=cold, apart=apart, phases=phases)
    found.flags.writeable = False
    return found


class JobRows(NamedTuple):
    """A job by row of failures (i), level of checkpoints (l) and nodes missing (k)."""

    rate: Floats  # [i] with all nodes up [1/s]
    nodes: Integers  # [i] taken until repaired
    stops: Bools  # [i] whether the job stands still
    back: Bools  # [i] whether it goes back
    survive: Floats  # [i, l] probability that a checkpoint does
    detection: Floats  # [i] s
    repair: Floats  # [i] mean [s]
    slowdown: Floats  # [i] 1 or more
    cost: Floats  # [l] s
    restart: Floats  # [l] s
    delay: Floats  # [l] s
    every: Integers  # [l] checkpoints of a level for one of the next; 1 at the end
    interval: float  # work between two checkpoints [s]; infinite where nothing goes back
    speed: Floats  # [k] share of the full speed; the last for more
    total: int  # nodes of the job
    spares: int
    hot: bool  # spares can fail
    waits: bool  # for missing nodes
    pause: float  # s
    restart_fixed: float  # s
    timeout: float  # s
    meeting: float  # s
    hit: Floats  # [k] probability that a node that fails works for the job; the last for more
    none: Floats  # [k] probability that no speed is left; the last for more
    units: Floats  # [u] speed without u units, where those that are hit leave; else empty
    shared: Integers  # [i] SINGLE part, or an event of nodes IN_A_ROW or ANYWHERE
    phases: Floats  # [p, 2] share of the time and factor of the rates of shared events
    lasting: float  # mean length of a phase [s]
    apart: bool  # the nodes of an event come back each on its own

    @property
    def pausing(self) -> Bools:
        """Rows that stop the job for a pause only."""
        kept: Bools = ~self.back & self.stops
        return kept & (self.detection + self.pause > 0)

    @property
    def failing(self) -> dict[int, float]:
        """Failures per second with all nodes up, by the nodes of a part."""
        sizes = np.unique(self.nodes[(self.nodes > 0) & (self.rate > 0)])
        return {int(size): float(self.rate[self.nodes == size].sum()) for size in sizes}

    @property
    def taken(self) -> dict[int, float]:
        """Parts under repair at once if all could always fail, by the nodes of a part."""
        busy = self.rate * self.repair
        whole = {size: float(busy[self.nodes == size].sum()) for size in self.failing}
        return alone(whole) if self.apart else whole

    def states(self) -> tuple[Floats, Floats]:
        """Ability to fail and speed with 0 ... K nodes down."""
        loads, top = self.taken, self.total + self.spares
        most = self.spares + max(loads, default=1)
        if self.hot or not self.waits:
            worst = float(self.phases[:, 1].max())
            most = reach({size: worst * load for size, load in loads.items()}, top)
        most = min(top, most)
        down = np.arange(most + 1)
        able = able_to_fail(down, self.total, self.spares, self.hot, self.waits)
        return able, speeds(down, self.spares, self.speed)

    def down(self) -> Floats:
        """Probabilities of 0 ... K nodes down."""
        busy, rates = self.rate * self.repair, self.failing
        repairs = {n: float(busy[self.nodes == n].sum()) / rate for n, rate in rates.items()}
        cold, phases = self.waits and not self.hot, tuple(map(tuple, self.phases.tolist()))
        given = tuple(rates.items()), tuple(repairs.items()), self.spares
        return _down(*given, self.states()[0].tobytes(), cold, self.apart, phases)

    def running(self) -> tuple[float, float]:
        """Share of the time in which some speed is left, and the mean speed of that time."""
        speed = self.states()[1]
        probability = self.down()
        available = max(1 - float(probability[speed == 0].sum()), 0.0)
        return available, min(float(probability @ speed) / available, 1.0) if available else 0.0

    def outside_pauses(self) -> tuple[JobRows, Floats]:
        """The job as it is outside its pauses, and the share of parts that can pause it then, [i].

        Outside a pause of length d nothing has failed for d seconds that pauses the job: no node of
        a unit that was whole. Units are taken as on their own, broken for exponential times, as
        long as those of g independent nodes in the mean; what leaves alone is a unit of one node.
        """
        size = self.total // (self.units.size - 1) if self.units.size else 1
        chance, able = self.down(), np.minimum(self.states()[0], 1.0)
        hit = speeds(np.arange(chance.size), self.spares, self.hit)
        works = min(max(float(chance @ (able * hit)), _FEW), 1 - _FEW)
        still = np.where(self.pausing & (self.repair > 0), self.detection + self.pause, 0.0)
        load = float((self.rate * self.nodes) @ self.repair) / self.total
        # Odds of a broken unit over the rate at which whole ones break, in repairs of one node: others
        # of its nodes may fail before the first is back.
        longer = np.expm1(min(size * np.log1p(load), 700.0)) / (size * load) if load else 1.0
        past = still / (longer * np.maximum(self.repair, 1.0))
        struck = size * float((self.rate * self.nodes)[self.pausing].sum()) / self.total * still
        broken, clean = np.exp(-past), np.exp(-struck)
        # One that was broken is back and has not failed since: a convolution of two exponentials,
        # which has a limit where they are alike.
        gap = np.where(past == struck, 1e-9, past - struck)
        back = past * clean * -np.expm1(-gap) / gap
        broken, whole = (1 - works) * broken, works * clean + (1 - works) * back
        # Fewer nodes are missing outside pauses: said as a shorter repair, all else that is computed
        # of a job holds as it is.
        left = _load(broken / whole, size) / _load((1 - works) / works, size)
        # No failure in a pause's length: minus the logarithm is how many it would have held.
        mean = -np.log(broken + whole) / np.where(struck > 0, struck, 1.0)
        paused = still > 0
        return (
            self._replace(repair=np.where(paused, self.repair * left, self.repair)),
            np.where(paused & (self.nodes > 0), mean, 1.0),
        )

    def slow_parts(self) -> float:
        """Mean speed with slow parts, of which Poisson numbers are slow at once."""
        order = np.argsort(-self.slowdown, kind="stable")
        order = order[self.slowdown[order] > 1]
        return slowest_decides(np.exp(-(self.rate * self.repair)[order]), self.slowdown[order])

    def slow_variance(self, horizon: float) -> float:
        """Relative variance of the speed with slow parts over a time [s], times that.

        Each kind is on for (e^u - 1) r / u on average, off for r / u: 2 p0^2 p1^2 (on + off) drop^2
        with p0 = e^-u; it is forgotten within p1 r / u (`fading`).
        """
        slow = (self.slowdown > 1) & (self.rate * self.repair > 0)
        if not slow.any():
            return 0.0
        repair = self.repair[slow]
        busy = self.rate[slow] * repair
        none, drop = np.exp(-busy), 1 - 1 / self.slowdown[slow]
        cycle = none * repair / busy * fading(horizon, (1 - none) * repair / busy)
        return float((2 * (1 - none) ** 2 * cycle * drop**2 / (1 - (1 - none) * drop) ** 2).sum())

    def in_phase(self, factor: float) -> JobRows:
        """The job in a phase of the rates of shared events."""
        rate = np.where(self.shared > 0, self.rate * factor, self.rate)
        return self._replace(rate=rate, phases=np.ones((1, 2)))

    def losing(self) -> Floats:
        """Failures per second that leave no speed, though each alone would not, [i]."""
        found, rows = np.zeros(self.rate.size), ~self.back & self.stops & (self.nodes > 0)
        if not self.none.any() or not rows.any():
            return found
        chance, able = self.down(), self.states()[0]
        down = np.arange(chance.size)
        before = speeds(down, self.spares, self.none)
        for row in np.flatnonzero(rows):
            after = speeds(down + self.nodes[row], self.spares, self.none)
            found[row] = self.rate[row] * float((chance * able) @ (after - before))
        return np.where(found > NEVER, found, 0.0)

    def rollback(self, speed: float = 1.0) -> Rollback:
        """What checkpoints leave at a mean speed: an interval is work, and takes longer."""
        interval = self.interval / speed if STANDING <= speed < 1 else self.interval
        return self._going_back(interval, tuple(self.every[:-1].tolist()))

    def chosen(
        self,
        interval: float | None,
        every: tuple[int, ...] | None,
        unseen: float | None = None,
    ) -> JobRows:
        """The job with an interval and frequencies of its levels, the best where they are open.

        The best time between checkpoints does not depend on the speed, so the work in it falls
        with the mean speed; where nothing goes back it is ``unseen``, if that is given.
        """
        best = self._going_back(interval, every)
        job = self._replace(every=np.array((*best.every, 1), np.int64), interval=best.interval)
        if interval is not None or np.isinf(best.interval):
            return self.chosen(unseen, every) if np.isinf(job.interval) and unseen else job
        pace = job.outside_pauses()[0].running()[1] * job.slow_parts()
        return job._replace(interval=job.interval * pace) if pace > STANDING else job

    def _going_back(self, interval: float | None, every: tuple[int, ...] | None) -> Rollback:
        """`rollback` of the rows that go back, and of failures that leave nothing in memory."""
        rows, losing = self.back, self.losing()
        last = np.tile(
            np.arange(self.cost.size) == self.cost.size - 1, (int((losing > 0).sum()), 1)
        )
        causes = Causes(
            np.append(self.rate[rows], losing[losing > 0]),
            np.vstack([self.survive[rows], last]),
            np.append(self.detection[rows], self.detection[losing > 0]),
            self.restart_fixed,
        )
        levels = Levels(self.cost, self.restart, self.delay)
        return going_back(levels, causes, interval, every)


def _load(odds: Any, size: int) -> Any:
    """Load of each node of a unit that is broken with these odds."""
    # A unit of independent nodes is whole with (1 + load)^-size; logarithms keep small loads exact.
    return np.expm1(np.log1p(odds) / size)


def under(model: FailureModel, recovery: Recovery) -> FailureModel:
    """What fails, by whether spare trays stand in for it until it is repaired."""
    require_instance(FailureModel, model=model)
    return model.with_spare_trays(require_instance(Recovery, recovery=recovery).repair)


def job_rows(
    model: FailureModel,
    checkpointing: Checkpointing,
    recovery: Recovery,
    spares: int = 0,
    shape: JobShape | None = None,
) -> JobRows:
    """Compile a job with failures that `under` has told apart.

    O(classes), and O(k) for the table of speeds.
    """
    require_instance(Checkpointing, checkpointing=checkpointing)
    require_int(spares=spares, at_least=0, at_most=10**6)
    if spares and not recovery.takes_spares:
        raise ValueError(
            f"spares must be 0 with recovery {recovery.policy!r}, which waits, got {spares}"
        )
    shape, levels = shape or shape_of(model, recovery), checkpointing.levels
    domains = [domain for domain in model.domains if domain.rate > 0]
    parts = [domain.component for domain in domains]
    rate, nodes = _column(domains, "rate"), _missing(domains, recovery, shape)
    repairs = [recovery.repair if part.repair is None else part.repair for part in parts]
    repair = np.array(repairs, np.float64)
    survive = [
        [level.survival(domain.component.level) ** max(domain.nodes, 1) for level in levels]
        if domain.shared
        else [level.survival(domain.component.level) for level in levels]
        for domain in domains
    ]
    events = model.shared
    phases = np.array(events.phases, np.float64)
    load = float(rate @ (nodes * repair)) * phases[:, 1].max()
    widest = int(nodes.max(initial=1))
    most = int(load + _SPREAD * np.sqrt(load * widest)) + 8 * widest + 1  # more than occur
    speed = recovery.speed(shape, min(shape.nodes, most))
    hit, none, units = _leaving(recovery, shape, speed)
    job = JobRows(
        rate=rate,
        nodes=nodes,
        stops=_column(parts, "stops") > 0,
        back=np.array([recovery.goes_back(domain, shape) for domain in domains], np.bool_),
        survive=np.array(survive, np.float64).reshape(len(parts), len(levels)),
        detection=_column(parts, "detection"),
        repair=repair,
        slowdown=_column(parts, "slowdown"),
        cost=_column(levels, "cost"),
        restart=_column(levels, "restart"),
        delay=_column(levels, "delay"),
        every=np.ones(len(levels), np.int64),
        interval=np.inf,
        speed=speed,
        total=shape.nodes,
        spares=spares,
        hot=recovery.hot,
        waits=recovery.waits,
        pause=float(recovery.pause),
        restart_fixed=float(recovery.restart),
        timeout=float(recovery.timeout),
        meeting=float(recovery.pause if recovery.meeting is None else recovery.meeting),
        hit=hit,
        none=none,
        units=units,
        shared=_column(domains, "shared").astype(np.int64)
        * (IN_A_ROW if events.neighbours else ANYWHERE),
        phases=phases,
        lasting=float(events.lasting),
        apart=not events.together,
    )
    return job.chosen(checkpointing.interval, checkpointing.every, checkpointing.unseen)


def through_spare_trays(
    elasticity: Floats, job: JobRows, domains: Sequence[Domain], cluster: Cluster
) -> Floats:
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
    # All failures are 1/free times those spared.
    steep = cluster.spare_trays - busy.sum() / cluster.nodes
    return np.asarray(elasticity + moved * steep * busy / busy.sum())


def _missing(domains: Sequence[Domain], recovery: Recovery, shape: JobShape) -> Integers:
    """Nodes that a failure takes in the table of speeds; a rack inside a dropped replica is one."""
    nodes = _column(domains, "nodes").astype(np.int64)
    if not recovery.drops:
        return nodes
    units = -(-_column(domains, "replicas").astype(np.int64) // shape.replicas_per_unit)
    return np.minimum(nodes, units)


def _leaving(recovery: Recovery, shape: JobShape, speed: Floats) -> tuple[Floats, Floats, Floats]:
    """``hit``, ``none`` and ``units`` of `JobRows`."""
    if not recovery.drops:
        return np.ones(1), np.where(speed == 0, 1.0, 0.0), np.empty(0)
    nodes, size, units, most = shape.nodes, shape.nodes_per_replica, shape.units, len(speed) - 1
    up = np.maximum(nodes - np.arange(most + 1), 1)
    hit = unit_clean(nodes, size, most) * nodes / up if size > 1 else np.ones(1)
    none = all_units_hit(units, size, most) if most >= units else np.zeros(1)
    alive = units - np.arange(units + 1)
    return hit, none, speed_of(alive, units, recovery.batch, recovery.micro_batches)


def _column(entries: Sequence[Any], name: str) -> Floats:
    return np.array([getattr(entry, name) for entry in entries], dtype=np.float64)


def shape_of(model: FailureModel, recovery: Recovery) -> JobShape:
    """How the job lies on its nodes; one that waits for all of them is one piece."""
    if model.placement is None:
        raise ValueError("model must have a placement, got None")
    nodes = model.cluster.nodes
    if recovery.waits:
        return JobShape(nodes=nodes, replicas=1, stages=1, tensor=1, nodes_per_replica=nodes)
    return JobShape.of(model.placement, model.cluster)
