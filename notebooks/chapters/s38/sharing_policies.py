"""States of jobs on a shared cluster, and the policies that give them GPUs."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import numpy as np

from chapters.s38.shared_jobs import Application, FloatArray
from relparallel.units import HOUR

_QUEUE: Final = 16 * HOUR  # GPU-seconds after which a job leaves the first queue of Tiresias


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
        return self.application.noise(
            max(base, batch), min(self.epoch, self.application.epochs - 1)
        )

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
        app, placement = self.application, tuple(self.allocation.values())
        while now < end and self.completion is None:
            rate = app.goodput(placement, self.samples, self.accumulation, self.epoch)
            mark, used = app.marks[self.epoch + 1], end - now
            if self.progress + rate * used < mark:
                self.progress += rate * used
            else:
                used = round((mark - self.progress) / rate)
                self.progress, self.epoch = mark, self.epoch + 1
                if self.epoch == app.epochs:
                    self.completion = now + used
                    break
            now += used
            if self.batch is None:  # a given batch stays split as it was
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
    """All GPUs asked for or none: little service first, then the others, each first come first."""
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
    """One GPU each, first come first; then always to the job whose remaining time it cuts most."""
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
    return app.steps_left(batch, job.epoch) * (
        app.step_time(batch, gpus) - app.step_time(batch, gpus + 1)
    )


def pollux(jobs: Sequence[SharedJob], gpus: int) -> Shares:
    """GPUs of the largest power mean (p = -1) of speed-ups over an equal share, restarts counted.

    The mean is a sum over jobs, so the best numbers are a multiple choice of jobs that share the
    GPUs, where the published scheduler draws at random (Qiao et al., OSDI 2021, equations 11 to
    13).
    """
    costs = [_regret(job, gpus, -(-gpus // len(jobs))) for job in jobs]
    picks = _shared([-cost[np.isfinite(cost)] for cost in costs], gpus)
    shares = dict(zip(reversed(jobs), reversed(picks), strict=True))
    return dict(sorted(shares.items(), key=lambda item: -item[1]))


def _shared(gains: Sequence[FloatArray], gpus: int) -> list[int]:
    """GPUs of every job, ``gains[job][number]``, for the largest sum; a dynamic programme."""
    stages = [np.zeros(gpus + 1)]  # best sum of the first jobs, by the GPUs that they may take
    for gain in gains:
        before = np.concatenate([np.full(gain.size - 1, -np.inf), stages[-1]])
        taken = np.lib.stride_tricks.sliding_window_view(before, gain.size)[:, ::-1]
        stages.append((taken + gain).max(axis=1))
    picks = []
    for before, gain in zip(stages[-2::-1], reversed(gains), strict=True):
        fits = min(gain.size, gpus + 1)
        picks.append(int((before[gpus::-1][:fits] + gain[:fits]).argmax()))
        gpus -= picks[-1]
    return picks[::-1]


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


class Policy(NamedTuple):
    """How GPUs are shared, and what the jobs can do."""

    share: Share
    adaptive: bool = False  # the batch is chosen anew all the time
    survives: bool = False  # a job goes on with the replicas that a failure leaves
    snug: bool = False  # a job goes where it fits best, not where most is free


POLICIES: Final[Mapping[str, Policy]] = {
    "tiresias": Policy(tiresias),
    "optimus": Policy(optimus),
    "pollux": Policy(pollux, adaptive=True, snug=True),
    "elastic": Policy(elastic, survives=True),
}
