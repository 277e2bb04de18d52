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
from relparallel.parallel.step import StepTime
from relparallel.sweep import map_chunks, spawn_streams
from relparallel.training._arguments import require_single, require_time
from relparallel.training._identity_kernel import new_nodes, run_identities
from relparallel.training._job import JobRows, job_rows, under
from relparallel.training._job_kernel import Course, run_counts
from relparallel.training.checkpoint_policies import Checkpointing
from relparallel.training.failure_logs import check_records
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
    record: tuple[Floats, Floats, Integers]
    unit: Integers  # [node] of those that leave as a whole; empty where none does


def simulate(
    model: FailureModel,
    step_time: StepTime | float,
    checkpointing: Checkpointing,
    recovery: Recovery,
    spares: int = 0,
    *,
    years: float,
    rng: np.random.Generator,
    level: str = "count",
    lifetimes: Lifetime | None = None,
    ages: Ages = "stationary",
    repairs: Lifetime | None = None,
    crews: int | None = None,
    records: pd.DataFrame | None = None,
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
    level : {"count", "identity"}
        "count": exponential lives and repairs, on counts. "identity": every node has a life of its
        own.
    lifetimes : Lifetime, optional
        Distribution of the lives of nodes; its shape counts, the mean is the model's; exponential
        by default.
    ages : {"stationary", "new"} or array
        State of the nodes at the beginning; array: one age per node and spare [s].
    repairs : Lifetime, optional
        Distribution of the repairs; its shape counts. Exponential where omitted.
    crews : int, optional
        Repairs that go on at once, on counts; parts share them evenly. As many as needed where
        omitted.
    records : pandas.DataFrame, optional
        Failures to replay besides those of the model: columns node, start and end [s]. Nodes are
        those of the placement, then the spares.
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
    groups are neighbours, spares included. Spare trays take failures with a fixed chance
    (`FailureModel.with_spare_trays`). Unless ages are given, the first ten repair times, in whole
    horizons, do not count. A bucket of a horizon holds what was lost in it, whenever it was done.
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
    step = _check(step_time, years, level, planned, horizon, replications)
    _check_level(
        level, ages, crews, {"lifetimes": lifetimes, "repairs": repairs, "records": records}
    )
    require_rng(rng=rng)
    if tokens_per_step is not None:
        require_real(tokens_per_step=tokens_per_step, above=0, at_most=1e18)
    model = under(model, recovery)
    job = job_rows(model, checkpointing, recovery, spares)
    names = [domain.component.name for domain in model.domains if domain.rate > 0]
    job, names, record = _with_records(job, names, records)
    job, unit = _with_units(job, model) if level == "identity" else (job, np.empty(0, np.int64))
    ages = require_ages(ages, job.total + spares)
    settled = isinstance(ages, str) and ages == "stationary"
    skipped = int(np.ceil(10 * job.repair.max(initial=0.0) / horizon)) if settled else 0
    windows = int(years * YEAR / (replications * horizon) * (1 + 1e-12))
    if not windows:
        raise ValueError(
            f"years must be >= {replications * horizon / YEAR:g} for {replications} horizons, got "
            f"{years!r}"
        )
    rate = float(job.rate[job.nodes == 1].sum()) / job.total
    life = (lifetimes or Lifetime.exponential(1.0)).scaled(min(1 / max(rate, 1e-300), LONGEST_LIFE))
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
        record=record,
        unit=unit,
        repair=(repairs or Lifetime.exponential(1.0)).scaled(1.0),
    )
    found = map_chunks(partial(_replicate, run), spawn_streams(rng, replications), executor)
    return _report(found, run, model, names, step, tokens_per_step)


def _check(
    step_time: Any, years: Any, level: Any, planned: Any, horizon: Any, replications: Any
) -> float:
    """Refuse what is out of range; seconds of a step."""
    require_instance((StepTime, float, int), step_time=step_time)
    step_time = step_time.total if isinstance(step_time, StepTime) else step_time
    seconds = float(require_time(step_time=step_time, positive=True))
    require_single(years=years, horizon=horizon, planned=planned)
    require_real(years=years, above=0.0, at_most=1e9)
    require_choice(SIMULATION_LEVELS, level=level)
    require_time(horizon=horizon, positive=True)
    require_int(replications=replications, at_least=2, at_most=10**6)
    require_real(planned=planned, at_least=0.0, below=1.0)
    return seconds


def _check_level(level: str, ages: Any, crews: Any, laws: dict[str, Any]) -> None:
    """Refuse what the level cannot do."""
    require_instance((Lifetime, type(None)), lifetimes=laws["lifetimes"], repairs=laws["repairs"])
    if level == "count":
        for name, given in (laws | {"ages": None if isinstance(ages, str) else ages}).items():
            if given is not None:
                raise ValueError(
                    f"{name} must be left out unless level is 'identity', got {given!r}"
                )
    if crews is not None:
        require_int(crews=crews, at_least=1, at_most=10**9)
        if level != "count":
            raise ValueError(f"crews must be left out unless level is 'count', got {crews!r}")


def _with_records(
    job: JobRows, names: list[str], records: pd.DataFrame | None
) -> tuple[JobRows, list[str], tuple[Floats, Floats, Integers]]:
    """Add a row for recorded failures of single nodes."""
    if records is None:
        return job, names, (np.empty(0), np.empty(0), np.empty(0, np.int64))
    checked = check_records(records, job.total + job.spares).sort_values("start", kind="stable")
    start, end = (checked[name].to_numpy(dtype=np.float64) for name in ("start", "end"))
    record = (start, end, checked["node"].to_numpy(dtype=np.int64))
    longer = job._replace(
        rate=np.append(job.rate, 0.0),
        nodes=np.append(job.nodes, 1),
        stops=np.append(job.stops, True),
        back=np.append(job.back, job.waits),
        survive=np.vstack([job.survive, np.ones(job.cost.size)]),
        detection=np.append(job.detection, 0.0),
        repair=np.append(job.repair, 1.0),
        slowdown=np.append(job.slowdown, 1.0),
    )
    return longer, [*names, "record"], record


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


def _replicate(run: _Run, rng: np.random.Generator) -> Outcome:
    """One replication."""
    job = run.job
    course = Course.of(
        job, run.pattern, run.between, run.planned, run.window, run.skipped + run.windows
    )
    if run.lifetime is None:
        run_counts(rng, job, course, run.crews)
    else:
        total = job.total + job.spares
        remaining = run.lifetime.remaining(rng, total, run.ages)
        nodes = new_nodes(
            total, job, run.lifetime.draws, run.repair.draws, remaining, run.record, run.unit
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
