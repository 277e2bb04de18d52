"""Simulation of a job: the same report as from formulas, with intervals."""

from concurrent.futures import Executor
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from relparallel._checks import (
    require_choice,
    require_instance,
    require_int,
    require_real,
    require_rng,
)
from relparallel._notices import told
from relparallel.parallel.step import StepTime
from relparallel.sweep import map_chunks, spawn_streams
from relparallel.training._arguments import require_single, require_time
from relparallel.training._identity_kernel import new_nodes, run_identities
from relparallel.training._job import SINGLE, JobRows, job_rows, under
from relparallel.training._job_kernel import Course, run_counts
from relparallel.training.checkpoint_policies import Checkpointing
from relparallel.training.failure_sources import NodeLives, Replay, Source
from relparallel.training.failures import FailureModel
from relparallel.training.job_shape import first_nodes
from relparallel.training.lifetimes import Ages, Lifetime, require_ages
from relparallel.training.recovery_policies import Recovery
from relparallel.training.report import BUCKETS, Goodput, mean_interval
from relparallel.units import DAY, YEAR

SIMULATION_LEVELS: Final = ("count", "identity")
WEEK: Final = 7 * DAY
LONGEST_PATTERN: Final = 10**6
LONGEST_LIFE: Final = 1e18  # s, of nodes that do not fail
_NOTHING: Final = np.empty(0), np.empty(0), np.empty(0, np.int64)  # recorded
Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Outcome = tuple[
    Floats, Integers, Floats
]  # seconds [window, bucket], counts [row, 3], time lost [row]


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class _Run:
    """What every replication shares."""

    job: JobRows
    pattern: Integers  # highest level written after each segment
    between: float  # planned stops [s]
    planned: float  # one of them [s]
    crews: float
    window: float
    windows: int
    skipped: int
    lifetime: Lifetime | None
    repair: Lifetime
    ages: Ages
    replay: Replay | None
    unit: Integers  # [node] of those that leave as a whole; empty where none does


@told
def simulate(
    model: FailureModel,
    step_time: StepTime | float,
    checkpointing: Checkpointing,
    recovery: Recovery,
    spares: int = 0,
    *,
    years: float,
    rng: np.random.Generator,
    level: str | None = None,
    crews: int | None = None,
    planned: float = 0.0,
    tokens_per_step: float | None = None,
    horizon: float = 30 * DAY,
    replications: int = 20,
    executor: Executor | None = None,
) -> Goodput:
    """Simulate a job under failures.

    Parameters
    ----------
    model, step_time, checkpointing, recovery, spares : FailureModel, StepTime, Checkpointing,
    Recovery, int
        As for `goodput`.
    years : float
        Simulated time, shared by the replications; whole horizons are simulated.
    rng : numpy.random.Generator
        Source of randomness; one stream is spawned per replication.
    level : {"count", "identity"}, optional
        "count": exponential lives and repairs, on counts. "identity": every node has a life of its
        own, as a source of `NodeLives` or `Replay` needs. "count" where neither is the source.
    crews : int, optional
        Repairs that go on at once, on counts; parts share them evenly. As many as needed where
        omitted.
    planned, tokens_per_step, horizon : float
        As for `goodput`. Planned stops come once a week; nothing fails meanwhile.
    replications, executor : int, concurrent.futures.Executor
        Independent repetitions, at least 2, and where they run, which does not change the result.

    Returns
    -------
    Goodput
        Shares of the time with their 95 % intervals, and samples of the productive share over the
        horizon.

    Notes
    -----
    Failures strike at any time, also during checkpoints, detection and restarts. While a job waits
    for nodes, its own do not fail; with hot spares they do. Parts become slow whether it waits or
    not. A failure during a standstill begins it anew. The slowest degraded part sets the speed.
    Where replicas that are hit leave, identities know whose nodes are missing; counts take random
    places at every moment: 0.2 points too little where replicas of 16 nodes pause for an hour. A
    failure in a replica that has left pauses nobody, one that leaves no replica goes back to the
    last level of checkpoints. Nodes of a job that can leave fail whether it runs or not.
    Groups behind a part of several nodes fail together, whichever nodes they are; with identities,
    groups are neighbours, spares included, and those of `SharedEvents` stand where these say. Phases
    of other rates are drawn one after the other, all of one length. A `Replay` takes the place of
    every failure that stops the job; what checkpoints leave open is chosen by the model's rates.
    Spare trays take failures with a fixed chance (`FailureModel.with_spare_trays`). Unless ages are
    given or a record is replayed, the first ten repair times, in whole horizons, do not count. A
    bucket of a horizon holds what was lost in it, whenever it was done.
    O(rows) per failure on counts, O(log nodes) with identities.

    References
    ----------
    Law, "Simulation Modeling and Analysis", 5th ed., 2015, chapter 9, for the replications.

    Examples
    --------
    >>> from relparallel.hardware import Cluster
    >>> from relparallel.parallel import Strategy
    >>> from relparallel.training import Checkpointing, CheckpointLevel, Recovery, failure_model
    >>> model = failure_model(Cluster(nodes=2048), Strategy(tensor=8, pipeline=16, data=128))
    >>> storage = Checkpointing(levels=(CheckpointLevel(name="storage", cost=20.0, restart=300.0),))
    >>> rng = np.random.default_rng(1)
    >>> report = simulate(model, 5.0, storage, Recovery("spares", 86400.0), spares=20, years=10, rng=rng)
    >>> bool(0.9 < report.mean < 0.92)
    True
    """
    step = _check(step_time, years, planned, horizon, replications)
    require_rng(rng=rng)
    if tokens_per_step is not None:
        require_real(tokens_per_step=tokens_per_step, above=0, at_most=1e18)
    model = under(model, recovery)
    lives = model.source if isinstance(model.source, NodeLives) else NodeLives()
    level = _level(level, crews, model)
    job = job_rows(model, checkpointing, recovery, spares)
    names = [domain.component.name for domain in model.domains if domain.rate > 0]
    job, unit = _with_units(job, model) if level == "identity" else (job, np.empty(0, np.int64))
    job, names = _replayed(job, names, model.source)
    ages = require_ages(lives.ages, job.total + spares)
    settled = isinstance(ages, str) and ages == "stationary"
    settled = settled and not isinstance(model.source, Replay)
    skipped = int(np.ceil(10 * job.repair.max(initial=0.0) / horizon)) if settled else 0
    windows = int(years * YEAR / (replications * horizon) * (1 + 1e-12))
    if not windows:
        raise ValueError(
            f"years must be >= {replications * horizon / YEAR:g} for {replications} horizons, got "
            f"{years!r}"
        )
    alone = (job.nodes == 1) & (job.shared == SINGLE)
    rate = float(job.rate[alone].sum()) / job.total
    life = lives.lifetimes or Lifetime.exponential(1.0)
    life = life.scaled(min(1 / max(rate, 1e-300), LONGEST_LIFE))
    run = _Run(
        job=job._replace(repair=np.maximum(job.repair, 1e-6)),
        pattern=_pattern(job),
        crews=float("inf") if crews is None else float(crews),
        between=(1 - planned) * WEEK if planned else float("inf"),
        planned=planned * WEEK,
        window=float(horizon),
        windows=windows,
        skipped=skipped,
        lifetime=life if level == "identity" else None,
        ages=ages,
        replay=model.source if isinstance(model.source, Replay) else None,
        unit=unit,
        repair=(lives.repairs or Lifetime.exponential(1.0)).scaled(1.0),
    )
    found = map_chunks(partial(_replicate, run), spawn_streams(rng, replications), executor)
    return _report(found, run, model, names, step, tokens_per_step)


def _check(step_time: Any, years: Any, planned: Any, horizon: Any, replications: Any) -> float:
    """Refuse what is out of range; seconds of a step."""
    require_instance((StepTime, float, int), step_time=step_time)
    step_time = step_time.total if isinstance(step_time, StepTime) else step_time
    seconds = float(require_time(step_time=step_time, positive=True))
    require_single(years=years, horizon=horizon, planned=planned)
    require_real(years=years, above=0.0, at_most=1e9)
    require_time(horizon=horizon, positive=True)
    require_int(replications=replications, at_least=2, at_most=10**6)
    require_real(planned=planned, at_least=0.0, below=1.0)
    return seconds


def _level(level: Any, crews: Any, model: FailureModel) -> str:
    """Whether nodes are counted or known, and refuse what that cannot do."""
    own = isinstance(model.source, (NodeLives, Replay))
    if level is not None:
        require_choice(SIMULATION_LEVELS, level=level)
    if own and level == "count":
        kind = type(model.source).__name__
        raise ValueError(f"level must be 'identity' with a source of {kind}, got 'count'")
    chosen = level or ("identity" if own else "count")
    if crews is not None:
        require_int(crews=crews, at_least=1, at_most=10**9)
        if chosen != "count":
            raise ValueError(f"crews must be left out unless level is 'count', got {crews!r}")
    return chosen


def _replayed(job: JobRows, names: list[str], source: Source | None) -> tuple[JobRows, list[str]]:
    """One row of recorded failures of nodes in place of all that stop the job."""
    if not isinstance(source, Replay):
        return job, names
    if source.nodes < job.total + job.spares:
        raise ValueError(
            f"source must have observed {job.total + job.spares} nodes, those of the job and its "
            f"spares, got {source.nodes}"
        )
    if not source.shuffled and source.nodes > job.total + job.spares:
        raise ValueError(
            f"source must be shuffled, or of {job.total + job.spares} nodes, got {source.nodes}"
        )
    kept = np.flatnonzero(~job.stops)
    weight = np.where(job.stops & (job.nodes > 0), job.rate, 0.0)
    if weight.any():  # what the model says of nodes that fail
        weight = weight / weight.sum()
        back, detection = weight @ job.back > 0.5, weight @ job.detection
        survive = weight @ job.survive
    else:
        back, detection, survive = job.waits, 0.0, np.ones(job.cost.size)
    return job._replace(
        rate=np.append(job.rate[kept], 0.0),
        nodes=np.append(job.nodes[kept], 1),
        stops=np.append(job.stops[kept], True),
        back=np.append(job.back[kept], back),
        survive=np.vstack([job.survive[kept], survive]),
        detection=np.append(job.detection[kept], detection),
        repair=np.append(job.repair[kept], 1.0),
        slowdown=np.append(job.slowdown[kept], 1.0),
        shared=np.append(job.shared[kept], SINGLE),
    ), [*(names[row] for row in kept), "record"]


def _with_units(job: JobRows, model: FailureModel) -> tuple[JobRows, Integers]:
    """Let parts take the nodes that they really take where it is known whose nodes those are."""
    if not job.units.size or model.placement is None:
        return job, np.empty(0, np.int64)
    unit = np.unique(first_nodes(model.placement, model.cluster), return_inverse=True)[1]
    taken = [domain.nodes for domain in model.domains if domain.rate > 0]
    return job._replace(nodes=np.append(taken, job.nodes[len(taken) :]).astype(np.int64)), unit


def _pattern(job: JobRows) -> Integers:
    """Highest level that is written after each segment of a block of the last level."""
    pattern, every = int(np.prod(job.every, dtype=np.float64)), np.cumprod(job.every)
    if pattern > LONGEST_PATTERN:
        raise ValueError(
            f"checkpointing must repeat its levels after <= {LONGEST_PATTERN} intervals, got "
            f"{pattern}"
        )
    period = job.interval * np.concatenate([[1.0], every[:-1]])
    if (job.delay > period).any():
        raise ValueError(
            f"checkpointing must have delays <= {period.tolist()} s, got {job.delay.tolist()}"
        )
    place = np.arange(1, pattern + 1)[:, None]
    return np.asarray((place % every[None, :-1] == 0).sum(axis=1), dtype=np.int64)


def _factors(run: _Run, rng: np.random.Generator) -> Floats:
    """Factor of the rates of shared events in one phase after the other."""
    share, factor = run.job.phases.T
    if factor.size == 1:
        return np.ones(1)
    phases = int(run.window * (run.skipped + run.windows) / run.job.lasting) + 2
    return rng.choice(factor, size=phases, p=share / share.sum())


def _replicate(run: _Run, rng: np.random.Generator) -> Outcome:
    """One replication."""
    job = run.job
    windows = run.skipped + run.windows
    course = Course.of(
        job, run.pattern, run.between, run.planned, run.window, windows, _factors(run, rng)
    )
    if run.lifetime is None:
        run_counts(rng, job, course, run.crews)
    else:
        total = job.total + job.spares
        remaining = run.lifetime.remaining(rng, total, run.ages)
        length = run.window * windows
        record = _NOTHING if run.replay is None else run.replay.drawn(rng, total, length)
        nodes = new_nodes(
            total, job, run.lifetime.draws, run.repair.draws, remaining, record, run.unit
        )
        run_identities(rng, job, course, nodes)
    return course.found[run.skipped :], course.counts, course.blame


def _report(
    found: list[Outcome],
    run: _Run,
    model: FailureModel,
    names: list[str],
    step: float,
    tokens: float | None,
) -> Goodput:
    """Put the replications together."""
    job = run.job
    shares = np.array([part[0] for part in found]) / run.window  # [replication, window, bucket]
    brackets = {}
    for place, name in enumerate(BUCKETS):
        bracket = mean_interval(shares[:, :, place].mean(axis=1))
        brackets[name] = (max(bracket.lower, 0.0), min(bracket.upper, 1.0))
    time = run.window * len(found) * (run.skipped + run.windows)
    classes = list(dict.fromkeys(names))
    member = np.array([[name == entry for name in names] for entry in classes], dtype=np.float64)
    member = member.reshape(len(classes), len(names))
    counts = member @ np.sum([part[1] for part in found], axis=0)
    lost = member @ np.sum([part[2] for part in found], axis=0)[: len(names)]
    with np.errstate(divide="ignore"):
        mtti = pd.Series(time / counts[:, 1], index=classes)
    share = lost / lost.sum() if lost.sum() > 0 else lost
    samples = np.clip(shares[:, :, 0].ravel(), 0.0, 1.0)
    return Goodput(
        buckets=dict(
            zip(BUCKETS, np.clip(shares.mean(axis=(0, 1)), 0.0, 1.0).tolist(), strict=True)
        ),
        variance_rate=float(samples.var(ddof=1)) * run.window,
        horizon=run.window,
        step_time=step,
        gpus=model.cluster.paid // job.total * (job.total + job.spares),
        mtti=mtti,
        state_loss_rate=float(counts[:, 2].sum()) / time,
        find_importance=partial(
            pd.DataFrame,
            {"rate": counts[:, 0] / time, "share of lost time": share},
            index=classes,
        ),
        interval=job.interval,
        method="simulated",
        tokens_per_step=tokens,
        brackets=brackets,
        samples=samples,
    )
