"""Goodput of a job in closed form: what failures, checkpoints, recovery and spares leave.

The productive share is the product of `Factors`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from relparallel._checks import require_choice, require_int, require_real
from relparallel.hardware import Cluster
from relparallel.training._arguments import require_time
from relparallel.training._job import (
    STANDING,
    JobRows,
    job_rows,
    shape_of,
    through_spare_trays,
    under,
)
from relparallel.training._random_failures import unit_clean
from relparallel.training.checkpoint_policies import Checkpointing
from relparallel.training.down_nodes import (
    NodeChain,
    able_to_fail,
    balanced_moves,
    mixed_distribution,
    reach,
    speed_variance,
    speeds,
)
from relparallel.training.factors import NEVER, Factors, fading, late_share, outside_pauses
from relparallel.training.failure_sources import events_only
from relparallel.training.failures import Domain, FailureModel
from relparallel.training.recovery_policies import POLICIES, Recovery
from relparallel.training.report import Goodput, class_importance
from relparallel.training.rollback_forms import Rollback
from relparallel.units import DAY

if TYPE_CHECKING:
    import pandas as pd

    from relparallel.parallel.step import StepTime

Array = NDArray[np.float64]
_METHODS: Final = ("closed", "markov")
_STEP: Final = 1e-4  # of a logarithm, in differences


def goodput(
    model: FailureModel,
    step_time: StepTime | float,
    checkpointing: Checkpointing,
    recovery: Recovery,
    spares: int = 0,
    *,
    tokens_per_step: float | None = None,
    planned: float = 0.0,
    horizon: float = 30 * DAY,
    method: str = "closed",
    crews: int | None = None,
) -> Goodput:
    """Productive share of a job's time, its spread, where the rest goes, and which class decides.

    Parameters
    ----------
    model : FailureModel
        What fails, with a placement. Spare trays of its cluster stand in first
        (`with_spare_trays`).
    step_time : StepTime or float
        Time of a step with everything up [s].
    checkpointing : Checkpointing
        What can be gone back to; what it leaves open is chosen best.
    recovery : Recovery
        What the job does after a failure.
    spares : int
        Nodes besides those of the job.
    tokens_per_step : float, optional
        Tokens of a global batch, for tokens per day and cost per token.
    planned : float
        Share of the time in planned stops, below 1.
    horizon : float
        Wall time of the run whose spread is asked for [s].
    method : {"closed", "markov"}
        How nodes that are missing and pauses are counted.
    crews : int, optional
        Repairs of nodes at once, for ``method="markov"`` and only there; any number where omitted.

    Returns
    -------
    Goodput
        Its ``importance`` has one row per class: ``rate`` [1/s], ``interrupts`` (whether it does),
        ``elasticity`` d ln goodput / d ln rate, ``share`` of the loss that a small common change of
        all rates moves, and ``birnbaum``, the productive seconds that one more failure costs.

    Notes
    -----
    Exact for waiting policies with failures of one size: a job that waits sees failures at a
    constant rate in the time it runs. Products of means elsewhere. A job that pauses after failures
    computes while fewer nodes are missing than on average, and those missing cannot fail: within
    0.05 points for nodes that fail and are repaired on their own and pauses of one length up to an
    hour. A failure in a replica that has left pauses nobody; one that leaves no replica sends the
    job back to the last level of checkpoints: within 0.3 points where that is common. Its rollback
    is taken as independent of them. Where a higher level of checkpoints is durable sooner than a
    lower one, see `rollback`. With failures of several sizes the distribution
    of the missing nodes is exact where all parts can always fail, and for cold spares where the
    parts under repair have at most a thousand states. Beyond, it keeps only mean balances: where a
    third of the missing nodes leave four at a time and spares are short, waiting comes out up to a
    tenth too small. Nodes of a part leave and return together. Failures of one level are taken to
    hit different nodes: the neglected overlap is the product of their shares of nodes missing. The
    variance adds those of the factors and neglects that waiting and rollback share their failures:
    a few percent of the standard deviation, a sixth with racks and cold spares. Percentiles have
    the skewness of going back alone: right to 0.1 points where waits are rare, (failures per
    second) * (restart + interval / 2) is below 0.5 and the horizon holds thirty failures; skewed by
    one or two points where it holds a few waits of days.

    "markov" takes waiting, pauses and speed from `NodeChain`: exponential repairs, pauses of their
    own length, every node repaired on its own. Where parts with several nodes decide, "closed" is
    closer to repairs of whole parts.

    O(classes + nodes missing); parts of a class are never listed.

    References
    ----------
    Daly 2006; Erlang 1917; Panjer, ASTIN Bulletin 12, 1981; Asmussen 2003, chapter VI.3.

    Examples
    --------
    >>> from relparallel.hardware import Cluster
    >>> from relparallel.parallel import Strategy
    >>> from relparallel.training import CheckpointLevel, failure_model
    >>> model = failure_model(Cluster(nodes=2048), Strategy(tensor=8, pipeline=16, data=128))
    >>> storage = Checkpointing(levels=(CheckpointLevel(name="storage", cost=20.0, restart=300.0),))
    >>> report = goodput(model, 5.0, storage, Recovery("spares", repair=86400.0), spares=16)
    >>> round(report.mean, 4), report.importance["elasticity"].idxmin()
    (0.916, 'Faulty GPU')
    """
    model = under(model, recovery)
    events = events_only(model.source)
    # A number needs nothing that prices steps.
    seconds: Any = getattr(step_time, "total", step_time)
    require_time(step_time=seconds, horizon=horizon, positive=True)
    require_real(planned=planned, at_least=0, below=1)
    require_choice(_METHODS, method=method)
    if tokens_per_step is not None:
        require_real(tokens_per_step=tokens_per_step, above=0, at_most=1e18)
    if crews is not None:
        require_int(crews=crews, at_least=1, at_most=10**6)
        if method == "closed":
            raise ValueError(f"crews must be left out unless method is 'markov', got {crews!r}")
    if method == "markov" and events is not None and len(events.phases) > 1:
        raise ValueError("method must be 'closed' where rates drift (source.phases), got 'markov'")
    job = job_rows(model, checkpointing, recovery, spares)
    state = _state(job, 1 - planned, method == "markov", crews)
    domains = [domain for domain in model.domains if domain.rate > 0]
    names = [domain.component.name for domain in domains]
    lost = np.array([domain.state_lost for domain in domains], dtype=np.bool_)
    inner = (1 - job.survive[:, :-1]).prod(axis=1)
    return Goodput(
        buckets=state.buckets | {"planned": float(planned)},
        variance_rate=state.variance_rate,
        third_rate=state.third_rate,
        horizon=float(horizon),
        step_time=float(seconds),
        gpus=model.cluster.paid // job.total * (job.total + spares),
        mtti=_mean_times(names, job.rate * job.stops, [entry.name for entry in model.classes]),
        state_loss_rate=float(job.rate @ (lost * inner) + job.losing().sum()),
        find_importance=partial(
            _importance, job, domains, model.cluster, state.buckets["productive"]
        ),
        interval=job.interval,
        method=method,
        tokens_per_step=tokens_per_step,
    )


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class SteadyState(Factors):
    """What is kept of a job in the long run, and where the rest goes."""

    job: JobRows
    back: Rollback
    noticed: float  # share of the pauses that comes after the detection
    late: float  # share of the failures that pause behind which a time-out passes

    @property
    def interval(self) -> float:
        """Work between two checkpoints [s]."""
        return self.job.interval

    @property
    def every(self) -> tuple[int, ...]:
        """Checkpoints of a level for one of the next."""
        return tuple(self.job.every[:-1].tolist())

    @property
    def buckets(self) -> dict[str, float]:
        """Closed accounting of the time outside planned stops."""
        found = {name: self.running * share for name, share in self.back.buckets.items()}
        paused = self.scheduled * self.availability * (1 - self.recovery)
        found["degraded"] = (found["productive"] + found["lost"]) * (1 - self.speed)
        found["productive"], found["lost"] = (
            found["productive"] * self.speed,
            found["lost"] * self.speed,
        )
        found["detection"] += paused * (1 - self.noticed)
        found["restart"] += paused * self.noticed
        return {**found, "waiting": self.scheduled * (1 - self.availability)}

    def at(self, rates: float, repairs: float) -> SteadyState:
        """The same job, its interval kept, with all rates and repairs times a factor."""
        job = self.job._replace(rate=self.job.rate * rates, repair=self.job.repair * repairs)
        return _state(job, float(self.scheduled))

    @property
    def variance_rate(self) -> float:
        """Variance of the productive share over a long run, times its length."""
        return self.variance_over(np.inf)

    def variance_over(self, horizon: float) -> float:
        """Variance of the productive share over a run of a length [s], times that.

        Relative variances add. The speed with nodes missing is taken to be forgotten at one rate,
        that of its variance over long times and at once (`fading`).
        """
        job = self.job
        if self.share < STANDING:
            return 0.0
        able, speed = job.states()
        chance = job.down()
        weight = np.where(job.nodes > 0, job.rate * job.repair, 0.0)
        parts = 0.0
        if weight.sum():
            repair = float(weight @ job.repair / weight.sum())
            moves = balanced_moves(chance, job.taken, able, repair)
            mean, long = float(chance @ speed), speed_variance(chance, moves, speed)
            at_once = float(chance @ (speed - mean) ** 2)
            memory = long / (2 * at_once) if at_once else 0.0
            parts = long / mean**2 * float(fading(horizon, memory))
        parts += _between_phases(job, self.back.share) * float(fading(horizon, job.lasting / 2))
        parts += self.back.variance_rate / self.back.share**2 / self.running
        rate, pause = job.rate[job.pausing], job.detection[job.pausing] + job.pause
        squares = (1 - self.late) * pause**2 + self.late * (pause + job.timeout) ** 2
        parts += float(rate @ squares) * self.recovery / (self.scheduled * self.availability)
        return float(self.share**2 * (parts + job.slow_variance(horizon)))

    @property
    def third_rate(self) -> float:
        """Third cumulant of that share over a run, times its length squared; going back only."""
        if self.share < STANDING:
            return 0.0
        return float((self.share / self.back.share) ** 3 * self.back.third_rate / self.running**2)


def steady_state(
    model: FailureModel, checkpointing: Checkpointing, recovery: Recovery, spares: int
) -> SteadyState | None:
    """`goodput` without its report; None where replicas share some of their nodes only."""
    model = under(model, recovery)
    events_only(model.source)
    try:
        shape = shape_of(model, recovery)
    except ValueError:
        return None
    return _state(job_rows(model, checkpointing, recovery, spares, shape))


def most_running(
    model: FailureModel, recovery: Recovery, spares: int, touched: Sequence[int]
) -> list[float]:
    """Upper bounds on the mean speed of all jobs whose replicas touch at least so many nodes.

    If hit units drop out, larger replicas are hit more often, a part takes at least a node, a kept
    batch is never faster; others may promise at most the share of nodes left
    (`Policy.in_proportion`), or nothing: 1.
    """
    drops, nodes, model = recovery.drops, model.cluster.nodes, under(model, recovery)
    if not drops and not POLICIES[recovery.policy].in_proportion:
        return [1.0] * len(touched)
    loads: dict[int, float] = {}
    takes = [d for d in model.domains if d.component.stops and d.nodes]
    repairs = [recovery.repair if d.component.repair is None else d.component.repair for d in takes]
    events = model.shared
    worst = max(factor for _, factor in events.phases)
    busy = sum(d.nodes * d.rate * repair for d, repair in zip(takes, repairs, strict=True)) / nodes
    busy *= worst
    able = max(1 - busy, 0.0)  # no larger share of the nodes can fail less
    for d, repair in zip(takes, repairs, strict=True):
        left = np.exp(-(recovery.pause + d.component.detection) / max(repair, 1.0))
        # As `JobRows.outside_pauses`.
        left = left * able / (1 - (1 - able) * left) if left < 1 else 1.0
        size = 1 if drops else d.nodes
        loads[size] = loads.get(size, 0.0) + d.rate * repair * left
    most = reach({size: worst * load for size, load in loads.items()}, nodes + spares)
    down = np.arange(most + 1)
    missing = np.clip(down - spares, 0, nodes)
    able_then = able_to_fail(down, nodes, spares, recovery.hot, waits=False)
    chance = mixed_distribution(
        loads,
        dict.fromkeys(loads, 1.0),
        able_then,
        spares,
        apart=not events.together and not drops,
        phases=events.phases,
    )
    units = [
        max(n for n in range(1, (least if drops else 1) + 1) if nodes % n == 0) for least in touched
    ]
    means = [float(chance @ unit_clean(nodes, unit, int(missing[-1]))[missing]) for unit in units]
    return [min(mean * (1 + 1e-12), 1.0) for mean in means]


def _state(
    job: JobRows, scheduled: float = 1.0, chain: bool = False, crews: int | None = None
) -> SteadyState:
    """Factors in closed form, or those of missing nodes and pauses from the Markov chain."""
    clear, able = job.outside_pauses()
    rate, found = (job.rate * able)[job.pausing], job.detection[job.pausing]
    late, noticed = late_share(rate, found, job.pause, job.meeting, job.timeout), 1.0
    rate = np.append((1 - late) * rate, late * rate) if late else rate
    found = np.append(found, found + job.timeout) if late else found
    recovery = outside_pauses(rate, found + job.pause)
    if recovery < 1:
        unnoticed = rate @ -np.expm1(-rate.sum() * found) / rate.sum()
        noticed = 1 - unnoticed / (1 - recovery)
    availability, _ = job.running()
    goes_on, speed = clear.running()
    recovery = min(recovery * goes_on / availability, 1.0) if availability else recovery
    if chain:
        availability, goes_on, mean = _in_chain(job, crews, rate, found + job.pause)
        recovery = min(goes_on / availability, 1.0) if availability else 1.0
        speed = min(mean / goes_on, 1.0) if goes_on else 0.0
    slow = job.slow_parts()
    back = job.rollback(speed * slow)
    return SteadyState(
        scheduled=scheduled,
        availability=availability,
        recovery=recovery,
        rollback=back.share,
        degraded_nodes=speed,
        degraded_parts=slow,
        job=job,
        back=back,
        noticed=float(noticed),
        late=late,
    )


def _between_phases(job: JobRows, rollback: float) -> float:
    """Relative variance of what is kept in phases of other rates, times their length [s].

    What going back costs is taken in proportion to the rate.
    """
    if len(job.phases) == 1:
        return 0.0
    share, factors = job.phases.T
    shared = float(
        job.rate[job.back & (job.shared > 0)].sum() / max(job.rate[job.back].sum(), NEVER)
    )
    lost = (1 - rollback) * (1 + (factors - 1) * shared)
    running = np.array([np.prod(job.in_phase(factor).running()) for factor in factors])
    kept = running * np.maximum(1 - lost, 0.0)
    mean = float(share @ kept)
    return float(share @ (kept - mean) ** 2) / mean**2 * job.lasting if mean else 0.0


def _in_chain(
    job: JobRows, crews: int | None, rate: Array, pause: Array
) -> tuple[float, float, float]:
    """Shares of time with some speed, and of that outside pauses, and the mean speed outside.

    Every node is repaired on its own. Outside a pause of length d no failure that pauses has struck
    for d: the states of the chain after such a time without its moves by those failures. The pause
    of a job without nodes passes as well. ``rate`` weighs the lengths ``pause``.
    """
    from scipy.sparse.linalg import expm_multiply

    takes = job.nodes > 0
    nodes = float(job.rate[takes] @ job.nodes[takes])
    repair = float(job.rate[takes] @ (job.nodes * job.repair)[takes]) / nodes if nodes else 1.0
    chain = NodeChain(
        nodes=job.total,
        spares=job.spares,
        repair=max(repair, 1e-6),
        speed=job.speed,
        rates=job.failing,
        hot=job.hot,
        waits=job.waits,
        crews=crews,
    )
    moves, chance = chain.generator()[::2, ::2].tocoo(), chain.stationary()[:, 0]
    speed = speeds(np.arange(chance.size), job.spares, job.speed)
    size, pauses = moves.col - moves.row, np.zeros(job.total + 2)
    for n in job.failing:
        own = job.nodes == n
        pauses[n] = job.rate[own & job.pausing].sum() / job.rate[own].sum()
    strikes = (size > 0) & (speed[moves.row] > 0)
    missed = 1 - speeds(np.arange(chance.size), job.spares, job.hit)  # units that have left
    hits = 1 - missed[moves.row] ** np.maximum(size, 1)
    moves.data = moves.data * np.where(strikes, 1 - pauses[np.maximum(size, 0)] * hits, 1.0)
    alone = float(job.rate[job.pausing & (job.nodes == 0)].sum())
    outside = np.zeros(chance.size) if rate.size else chance
    for still in np.unique(pause).tolist():
        weight = rate[pause == still].sum() / rate.sum() * np.exp(-alone * still)
        outside = outside + weight * expm_multiply(moves.T.tocsr() * still, chance)
    return float(chance[speed > 0].sum()), float(outside[speed > 0].sum()), float(outside @ speed)


def _gradient(job: JobRows) -> Array:
    """Derivative of ln(goodput) by the logarithm of the rate of every row.

    Central differences with the interval held fixed, one for all rows that differ in their rate
    alone: the best interval has no derivative of its own.
    """
    columns = (job.nodes, job.stops, job.back, job.survive, job.detection, job.repair, job.slowdown)
    kind = np.unique(np.column_stack(columns), axis=0, return_inverse=True)[1].ravel()
    found = np.zeros(job.rate.size)
    for member in (kind == place for place in range(kind.max(initial=-1) + 1)):
        more, fewer = (
            _state(job._replace(rate=np.where(member, job.rate * np.exp(step), job.rate))).share
            for step in (_STEP, -_STEP)
        )
        change = np.log(more / fewer) / (2 * _STEP) if fewer > 0 else 0.0
        found += np.where(member, job.rate, 0.0) * change / job.rate[member].sum()
    return found


def _importance(
    job: JobRows, domains: Sequence[Domain], cluster: Cluster, productive: float
) -> pd.DataFrame:
    """Table of importance by class."""
    elasticity = through_spare_trays(_gradient(job), job, domains, cluster)
    names = [domain.component.name for domain in domains]
    return class_importance(names, job.rate, job.stops, elasticity, productive)


def _mean_times(found: Sequence[str], rates: Array, names: Sequence[str]) -> pd.Series:
    """Mean time between interruptions by class, infinite where none interrupts."""
    import pandas as pd

    total = dict.fromkeys(names, 0.0)
    for name, rate in zip(found, rates, strict=True):
        total[name] += rate
    return pd.Series(
        {name: 1 / rate if rate else np.inf for name, rate in total.items()}, dtype=np.float64
    )
