"""Jobs on a shared cluster, moment by moment: who gets how many GPUs, and what failing nodes do to each policy.

A policy is a function from the unfinished jobs and the number of living GPUs to the GPUs of each job.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import numpy as np
import pandas as pd

from relparallel._checks import require_instance, require_int, require_real, require_rng
from relparallel.optimize.shared_jobs import NODE, Application, FloatArray
from relparallel.units import DAY, HOUR

_QUEUE: Final = 16 * HOUR  # GPU-seconds after which a job leaves the first queue of Tiresias
_LONGEST: Final = 1000 * DAY


@dataclass(kw_only=True, eq=False)
class SharedJob:
    """State of one job; what a policy may look at."""

    name: str
    application: Application
    arrival: float
    gpus: int  # asked for
    batch: int | None  # None: chosen anew all the time
    allocation: dict[int, int] = field(default_factory=dict)  # GPUs by node
    samples: int = 0
    accumulation: int = 0
    epoch: int = 0
    progress: float = 0.0
    saved: float = 0.0  # progress in the last checkpoint
    unsaved: float = 0.0  # seconds since then
    waiting: float = 0.0  # seconds until it runs again
    service: float = 0.0  # GPU-seconds had
    most: int = 0  # GPUs ever had
    age: float = 0.0  # seconds since arrival
    demoted: float = 0.0  # when it had too much service for the first queue
    starts: int = 0
    failures: int = 0
    completion: float | None = None

    @property
    def held(self) -> int:
        """GPUs that it has."""
        return sum(self.allocation.values())

    @property
    def noise(self) -> float:
        """Gradient noise scale now [samples]."""
        base = int(self.application.batches[0])
        batch = self.held * self.samples * (self.accumulation + 1)
        return self.application.noise(max(base, batch), min(self.epoch, self.application.epochs - 1))

    def scale(self) -> None:
        """Choose samples per GPU and accumulation steps for the GPUs that it has."""
        if self.batch is not None:
            self.samples, self.accumulation = self.application.split(self.batch, self.held)
            return
        samples, steps, _, _ = self.application.candidates
        best = self.application.believed(self.noise)[1][self.held - 1]
        self.samples = int(samples[self.held - 1, best])
        self.accumulation = int(steps[self.held - 1, best])

    def move(self, allocation: dict[int, int], restart: float) -> None:
        """Go on elsewhere, from a checkpoint written now."""
        self.allocation, self.saved, self.unsaved = allocation, self.progress, 0.0
        if allocation:
            self.scale()
            self.waiting, self.starts = restart, self.starts + 1
            self.most = max(self.most, self.held)

    def advance(self, start: float, seconds: float, checkpoint: float) -> None:
        """Run for so long, epoch by epoch, in whole seconds where an epoch ends."""
        delay = min(self.waiting, seconds)
        self.waiting -= delay
        now, end = start + delay, start + seconds
        while now < end and self.completion is None:
            placement = tuple(self.allocation.values())
            rate = self.application.goodput(placement, self.samples, self.accumulation, self.epoch)
            mark, used = self.application.progress[self.epoch + 1], end - now
            if self.progress + rate * used < mark:
                self.progress += rate * used
            else:
                used = round(float((mark - self.progress) / rate))
                self.progress, self.epoch = float(mark), self.epoch + 1
                if self.epoch == self.application.epochs:
                    self.completion = now + used
                    break
            now += used
            self.scale()
        self.service += self.held * ((self.completion or end) - start)
        self.unsaved += seconds - delay
        if self.unsaved >= checkpoint:
            self.saved, self.unsaved = self.progress, 0.0

    def fail(self, down: Any, survives: bool) -> None:
        """Lose nodes: those that survive go on with the rest, others from the last checkpoint."""
        left = {node: gpus for node, gpus in self.allocation.items() if not down[node]}
        if left == self.allocation:
            return
        self.failures += 1
        if survives and left:
            self.move(left, self.waiting)
            return
        self.progress, self.allocation = self.saved, {}
        self.epoch = int(np.searchsorted(self.application.progress, self.saved, side="right")) - 1


Shares = dict[SharedJob, int]
Share = Callable[[Sequence[SharedJob], int], Shares]


def tiresias(jobs: Sequence[SharedJob], gpus: int) -> Shares:
    """All GPUs asked for or none: first those that had little service, then the others, each first come first."""
    shares = {}
    for job in jobs:
        if job.service >= _QUEUE and not job.demoted:
            job.demoted = job.arrival + job.age
    for job in sorted(jobs, key=lambda job: job.demoted):
        shares[job] = job.gpus if job.gpus <= gpus else 0
        gpus -= shares[job]
    return shares


def elastic(jobs: Sequence[SharedJob], gpus: int) -> Shares:
    """One GPU more for everybody in turn, first come first, up to what each asked for."""
    shares = dict.fromkeys(jobs, 0)
    while gpus and (hungry := [job for job in jobs if shares[job] < job.gpus]):
        for job in hungry[:gpus]:
            shares[job] += 1
        gpus -= len(hungry[:gpus])
    return shares


def optimus(jobs: Sequence[SharedJob], gpus: int) -> Shares:
    """One GPU each, first come first; then always to the job whose remaining time it shortens most."""
    shares = {job: int(place < gpus) for place, job in enumerate(jobs)}
    gpus -= sum(shares.values())
    gains = {job: _saved(job, 1) if shares[job] else 0.0 for job in jobs}
    while gpus > 0 and max(gains.values()) > 0:
        best = max(gains, key=gains.__getitem__)
        shares[best] += 1
        gpus -= 1
        gains[best] = _saved(best, shares[best])
    return dict(sorted(shares.items(), key=lambda item: item[1]))


def _saved(job: SharedJob, gpus: int) -> float:
    """Seconds that one more GPU takes off the rest of a job."""
    app, batch = job.application, job.batch or int(job.application.batches[0])
    if gpus + 1 > min(batch // app.smallest, app.most):
        return 0.0
    return app.steps_left(batch, job.epoch) * (app.step_time(batch, gpus) - app.step_time(batch, gpus + 1))


def pollux(jobs: Sequence[SharedJob], gpus: int) -> Shares:
    """GPUs of the largest power mean (p = -1) of the speed-ups over an equal share, restarts counted.

    The mean is a sum over jobs, so a dynamic programme over the GPUs that are left finds the best numbers,
    where the published scheduler draws at random (Qiao et al., OSDI 2021, equations 11 to 13).
    """
    if not gpus:
        return dict.fromkeys(jobs, 0)
    fair = -(-gpus // len(jobs))
    best, choices = np.zeros(gpus + 1), []
    order = np.arange(gpus + 1)
    for job in jobs:
        cost = _regret(job, gpus, fair)
        table = np.where(order[:, None] >= order, best[order[:, None] - order] + cost, np.inf)
        choices.append(table.argmin(axis=1))
        best = table.min(axis=1)
    shares, left = {}, gpus
    for job, choice in zip(reversed(jobs), reversed(choices), strict=True):
        shares[job] = int(choice[left])
        left -= shares[job]
    return dict(sorted(shares.items(), key=lambda item: -item[1]))


def _regret(job: SharedJob, gpus: int, fair: int) -> FloatArray:
    """1 / speed-up with 0, 1, ... GPUs; at most twice as many as the job ever had."""
    app = job.application
    speed = app.believed(job.noise)[0] if job.most else np.arange(1.0, 65.0)
    speedups = np.append(0.0, speed / speed[min(fair, 64) - 1] / 4)[: gpus + 1]
    speedups = np.pad(speedups, (0, gpus + 1 - speedups.size))
    moved = max(job.age - 30.0 * max(job.starts - 1, 0), 0.0) / (job.age + 30.0)
    speedups[np.arange(gpus + 1) != job.held] *= moved
    limit = min(max(2 * job.most, 1), int(app.batches[-1]) // app.smallest, app.most)
    return np.where(np.arange(gpus + 1) <= limit, 1 / (speedups + 1e-3), np.inf)


class _Policy(NamedTuple):
    share: Share
    adaptive: bool = False  # the batch is chosen anew all the time
    survives: bool = False  # a job goes on with the replicas that a failure leaves
    snug: bool = False  # a job goes where it fits best, not where most is free


POLICIES: Final[Mapping[str, _Policy]] = {
    "tiresias": _Policy(tiresias),
    "optimus": _Policy(optimus),
    "pollux": _Policy(pollux, adaptive=True, snug=True),
    "elastic": _Policy(elastic, survives=True),
}


@dataclass(frozen=True, kw_only=True)
class SharedCluster:
    """What became of the jobs of a shared cluster.

    Attributes
    ----------
    policy : str
        Who shared it.
    jobs : DataFrame
        By name: ``arrival``, ``completion`` and ``time`` between them [s], ``gpu_seconds``, ``restarts`` and
        ``failures``.
    """

    policy: str
    jobs: pd.DataFrame

    @property
    def mean_time(self) -> float:
        """Mean time from arrival to completion [s]."""
        return float(self.jobs["time"].mean())

    def to_frame(self) -> pd.DataFrame:
        """Return the table of jobs."""
        return self.jobs


def share_cluster(
    jobs: pd.DataFrame,
    applications: Mapping[str, Application],
    policy: str | Share = "tiresias",
    *,
    nodes: int = 16,
    interval: float = 60.0,
    restart: float = 30.0,
    node_rate: float = 0.0,
    repair: float = HOUR,
    checkpoint: float = 600.0,
    rng: np.random.Generator | None = None,
) -> SharedCluster:
    """Replay the jobs of a workload on a cluster of nodes with 4 GPUs.

    Parameters
    ----------
    jobs : DataFrame
        From `read_shared_jobs`: ``name``, ``time``, ``application``, ``num_replicas``, ``batch_size``.
    applications : mapping of str to Application
        By the names that the jobs use.
    policy : {"tiresias", "optimus", "pollux", "elastic"} or callable
        Tiresias gives a job all GPUs that it asks for or none, Optimus and Pollux as many as shorten the
        rest, Pollux with a batch of its own choice, elastic training equal numbers. A callable takes the
        unfinished jobs, in the order of arrival, and the number of GPUs, and returns the GPUs of each job in
        the order of placing.
    nodes : int, optional
        Nodes of 4 GPUs.
    interval, restart : float, optional
        Seconds between two decisions, and until a job runs on other GPUs.
    node_rate, repair : float, optional
        Failures of a node per second, and mean time until it is back [s], both exponential. A failure is seen
        at the next decision; jobs lose what came after their last checkpoint. Elastic jobs go on with the
        replicas that are left.
    checkpoint : float, optional
        Seconds of running between two checkpoints.
    rng : numpy.random.Generator, optional
        Draws the failures, the same ones for every policy; needed where ``node_rate`` is not 0.

    Returns
    -------
    SharedCluster
        One row per job.

    References
    ----------
    Qiao et al., "Pollux", OSDI 2021, section 5.3. Gu et al., "Tiresias", NSDI 2019, section 3.2. Peng et al.,
    "Optimus", EuroSys 2018, section 4.

    Examples
    --------
    >>> from relparallel.optimize import StatisticalGoodput, modelled_application
    >>> model = StatisticalGoodput(
    ...     compute=0.1, compute_per_sample=0.01, nodes=0.05, nodes_per_replica=0.005, local=0.02,
    ...     local_per_replica=0.002, overlap=2, noise=1280, batch=128)
    >>> app = modelled_application(model, epochs=10, steps=100, limits=(16, 128, 1024))
    >>> jobs = pd.DataFrame({
    ...     "name": ["a", "b"], "time": [0, 30], "application": "app", "num_replicas": 4, "batch_size": 256})
    >>> share_cluster(jobs, {"app": app}, nodes=1).jobs["completion"].tolist()
    [490.0, 970.0]
    """
    require_int(nodes=nodes, at_least=1, at_most=10_000)
    require_real(interval=interval, above=0, at_most=DAY)
    require_real(restart=restart, node_rate=node_rate, at_least=0, at_most=DAY)
    require_real(repair=repair, checkpoint=checkpoint, above=0, at_most=_LONGEST)
    chosen = _chosen(policy)
    if node_rate or rng is not None:
        require_rng(rng=rng)
    every = _queued(jobs, applications, chosen.adaptive)
    outages = _Outages(nodes, node_rate, repair, rng)
    now, waiting = 0.0, every
    while waiting:
        if now > _LONGEST:
            raise ValueError(f"jobs must end within {_LONGEST / DAY:.0f} days, got {waiting[0].name} unfinished")
        for job in waiting:
            if job.allocation:
                job.advance(now, interval, checkpoint)
        now += interval
        waiting = [job for job in waiting if job.completion is None]
        down = outages.down(now)
        _decide([job for job in waiting if job.arrival <= now], down, chosen, now, restart)
    return SharedCluster(policy=policy if isinstance(policy, str) else policy.__name__, jobs=_outcome(every))


def _chosen(policy: str | Share) -> _Policy:
    if callable(policy):
        return _Policy(policy)
    if not isinstance(policy, str) or policy not in POLICIES:
        raise ValueError(f"policy must be one of {list(POLICIES)} or callable, got {policy!r}")
    return POLICIES[policy]


def _queued(jobs: pd.DataFrame, applications: Mapping[str, Application], adaptive: bool) -> list[SharedJob]:
    """Jobs in the order of their rows, none of them started."""
    require_instance(pd.DataFrame, jobs=jobs)
    require_instance(Mapping, applications=applications)
    wanted = ["name", "time", "application", "num_replicas", "batch_size"]
    if missing := [name for name in wanted if name not in jobs]:
        raise ValueError(f"jobs must have the columns {', '.join(wanted)}, got none called {missing[0]}")
    if unknown := sorted(set(jobs["application"]) - set(applications)):
        raise ValueError(f"applications must hold {unknown[0]}, got {sorted(applications)}")
    return [
        SharedJob(
            name=str(row.name), application=applications[row.application], arrival=float(row.time),
            gpus=int(row.num_replicas), batch=None if adaptive else int(row.batch_size),
        )
        for row in jobs[wanted].itertuples(index=False)
    ]  # fmt: skip


class _Outages:
    """Nodes that fail and come back, each on its own; asked at growing times."""

    def __init__(self, nodes: int, rate: float, repair: float, rng: np.random.Generator | None) -> None:
        self.draws = rng.spawn(nodes) if rate and rng is not None else []
        self.mean = {True: 1 / rate if rate else np.inf, False: repair}
        self.up = np.ones(nodes, dtype=bool)
        self.change = np.array([draw.exponential(self.mean[True]) for draw in self.draws])

    def down(self, now: float) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Nodes that are down, or were since the last question."""
        found = ~self.up
        for node, draw in enumerate(self.draws):
            while self.change[node] <= now:
                self.up[node] = not self.up[node]
                found[node] = True
                self.change[node] += draw.exponential(self.mean[bool(self.up[node])])
        return np.asarray(found)


def _decide(jobs: list[SharedJob], down: Any, policy: _Policy, now: float, restart: float) -> None:
    """Take away what failed, ask the policy, keep what has the right size, place the rest."""
    for job in jobs:
        job.age = now - job.arrival
        job.fail(down, policy.survives)
    free = np.where(down, 0, NODE)
    shares = policy.share(jobs, int(free.sum())) if jobs else {}
    for job in jobs:
        if job.allocation and job.held != shares.get(job, 0):
            job.move({}, restart)
        for node, gpus in job.allocation.items():
            free[node] -= gpus
    for job, gpus in shares.items():
        if gpus and not job.allocation:
            job.move(_place(free, gpus, policy.snug), restart)


def _place(free: Any, gpus: int, snug: bool) -> dict[int, int]:
    """Take GPUs where most are free; a snug job ends on the fullest node that has room for the rest."""
    found: dict[int, int] = {}
    while gpus:
        fits = np.flatnonzero(free >= gpus)
        node = int(fits[free[fits].argmin()] if snug and fits.size else free.argmax())
        if not free[node]:
            raise ValueError("policy must not give away more GPUs than there are")
        found[node] = min(int(free[node]), gpus)
        free[node] -= found[node]
        gpus -= found[node]
    return found


def _outcome(jobs: Sequence[SharedJob]) -> pd.DataFrame:
    rows = [
        {"name": job.name, "application": job.application.name, "arrival": job.arrival,
         "completion": job.completion, "time": (job.completion or 0) - job.arrival, "gpu_seconds": job.service,
         "restarts": job.starts - 1, "failures": job.failures}
        for job in jobs
    ]  # fmt: skip
    return pd.DataFrame(rows).set_index("name")
