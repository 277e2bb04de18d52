"""Jobs on a shared cluster, moment by moment, with any policy and with nodes that fail."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import pandas as pd

from chapters.s38.shared_jobs import NODE, Application
from chapters.s38.sharing_policies import POLICIES, Policy, Share, SharedJob
from relparallel._checks import require_real, require_rng
from relparallel.units import DAY, HOUR

_LONGEST: Final = 1000 * DAY


class SharedCluster(NamedTuple):
    """What became of the jobs of a shared cluster: their policy, and a table by name.

    Its columns are ``arrival``, ``completion`` and ``time`` between them [s], ``gpu_seconds``,
    ``restarts`` and ``failures``.
    """

    policy: str
    jobs: pd.DataFrame

    @property
    def mean_time(self) -> float:
        """Mean time from arrival to completion [s]."""
        return float(self.jobs["time"].mean())


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
    """The jobs of a workload replayed on a cluster of ``nodes`` nodes with 4 GPUs.

    ``jobs`` has the columns ``name``, ``time`` of arrival [s], ``application`` (by the names of
    ``applications``, see `modelled_application`), ``num_replicas`` (GPUs asked for) and
    ``batch_size``. Every ``interval`` [s] the policy decides: "tiresias" gives a job all GPUs that
    it asks for or none, "optimus" and "pollux" as many as shorten the rest, Pollux with a batch of
    its own choice, "elastic" training equal numbers; a callable takes the unfinished jobs, in the
    order of arrival, and the number of GPUs, and returns the GPUs of each job in the order of
    placing. It takes ``restart`` [s] until a job runs on other GPUs.

    Nodes fail ``node_rate`` times per second and are back after ``repair`` [s] in the mean, both
    exponential; ``rng`` draws the failures, the same ones for every policy. A failure is seen at
    the next decision; jobs lose what came after their last checkpoint, one every ``checkpoint``
    seconds of running. Elastic jobs go on with the replicas that are left.

    Qiao et al., "Pollux", OSDI 2021, section 5.3. Gu et al., "Tiresias", NSDI 2019, section 3.2.
    Peng et al., "Optimus", EuroSys 2018, section 4.

    >>> from chapters.s38.shared_jobs import StatisticalGoodput, modelled_application
    >>> model = StatisticalGoodput(
    ...     compute=0.1, compute_per_sample=0.01, nodes=0.05, nodes_per_replica=0.005, local=0.02,
    ...     local_per_replica=0.002, overlap=2, noise=1280, batch=128)
    >>> app = modelled_application(model, epochs=10, steps=100, limits=(16, 128, 1024))
    >>> jobs = pd.DataFrame({
    ...     "name": ["a", "b"], "time": [0, 30], "application": "app", "num_replicas": 4, "batch_size": 256})
    >>> share_cluster(jobs, {"app": app}, nodes=1).jobs["completion"].tolist()
    [490.0, 970.0]
    """
    require_real(interval=interval, repair=repair, checkpoint=checkpoint, above=0)
    require_real(restart=restart, node_rate=node_rate, at_least=0)
    if node_rate:
        require_rng(rng=rng)
    chosen = Policy(policy) if callable(policy) else POLICIES[policy]
    every = _queued(jobs, applications, chosen.adaptive)
    outages = _Outages(nodes, node_rate, repair, rng)
    now, waiting = 0.0, every
    while waiting:
        if now > _LONGEST:
            raise ValueError(
                f"jobs must end within {_LONGEST / DAY:.0f} days, {waiting[0].name} does not"
            )
        for job in waiting:
            if job.allocation:
                job.advance(now, interval, checkpoint)
        now += interval
        waiting = [job for job in waiting if job.completion is None]
        down = outages.down(now)
        _decide([job for job in waiting if job.arrival <= now], down, chosen, now, restart)
    return SharedCluster(policy if isinstance(policy, str) else policy.__name__, _outcome(every))


def _queued(
    jobs: pd.DataFrame, applications: Mapping[str, Application], adaptive: bool
) -> list[SharedJob]:
    """Jobs in the order of their rows."""
    return [
        SharedJob(
            name=str(row["name"]),
            application=applications[row["application"]],
            arrival=float(row["time"]),
            gpus=int(row["num_replicas"]),
            batch=None if adaptive else int(row["batch_size"]),
        )
        for row in jobs.to_dict("records")
    ]


class _Outages:
    """Nodes that fail and come back, each on its own; asked at growing times."""

    def __init__(
        self, nodes: int, rate: float, repair: float, rng: np.random.Generator | None
    ) -> None:
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


def _decide(jobs: list[SharedJob], down: Any, policy: Policy, now: float, restart: float) -> None:
    """Take away what failed, ask the policy, keep what has the right size, place the rest."""
    for job in jobs:
        job.age = now - job.arrival
    if down.any():
        for job in jobs:
            job.fail(down, policy.survives)
    free = np.where(down, 0, NODE)
    shares = policy.share(jobs, int(free.sum())) if jobs else {}
    for job in jobs:
        if job.allocation and job.held != shares.get(job, 0):
            job.move({}, restart)
    if starting := [job for job, gpus in shares.items() if gpus and not job.allocation]:
        for job in jobs:
            for node, gpus in job.allocation.items():
                free[node] -= gpus
        for job in starting:
            job.move(_place(free, shares[job], policy.snug), restart)


def _place(free: Any, gpus: int, snug: bool) -> dict[int, int]:
    """Take GPUs where most are free; a snug job ends on the fullest node with room for the rest."""
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
    """One row per job."""
    columns = {
        "application": [job.application.name for job in jobs],
        "arrival": [job.arrival for job in jobs],
        "completion": [job.completion for job in jobs],
        "gpu_seconds": [job.service for job in jobs],
        "restarts": [job.starts - 1 for job in jobs],
        "failures": [job.failures for job in jobs],
    }
    table = pd.DataFrame(columns, index=pd.Index([job.name for job in jobs], name="name"))
    return table.assign(time=table["completion"] - table["arrival"])
