"""A job on a fleet with standbys, bad servers and two stages of repair: the model of AIReSim.

The job needs J servers and loses no work. A server fails, good ones at rate lam, bad ones at lam (1
+ f). It goes to an automatic repair, which hands it on to a manual one in most cases; a repair that
works makes a bad server good. A standby takes its place after a recovery; without standbys hosts
are selected anew, and spares that do other work are pre-empted one by one where servers are
missing.
"""

from concurrent.futures import Executor
from typing import Any, Final, NamedTuple

import numba
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from relparallel._checks import real, record, require_int, whole
from relparallel.metrics import Estimate
from relparallel.sweep import map_chunks, spawn_streams
from relparallel.training._arguments import FASTEST, LONGEST, SHORTEST
from relparallel.training.report import mean_interval
from relparallel.units import DAY, MINUTE

MOST_SERVERS: Final = 10**7

Counts = NDArray[np.int64]
Times = NDArray[np.float64]
BUCKETS = ("work", "recovery", "selection", "preemption", "stall")
# good ones here, bad ones one further
ACTIVE, IDLE, SPARE, AUTOMATIC, MANUAL, QUEUED = 0, 2, 4, 6, 8, 10


class FleetStudy(NamedTuple):
    """Replications of a job on a fleet."""

    failures: NDArray[np.int64]  # of each replication
    buckets: pd.DataFrame  # seconds of each of `BUCKETS`; they add up to its length

    @property
    def total_time(self) -> NDArray[np.float64]:
        """Length of each replication [s]."""
        return self.buckets.sum(axis=1).to_numpy()

    @property
    def mean_failures(self) -> Estimate:
        """Mean number of failures with its 95 % interval (Student)."""
        return mean_interval(self.failures)

    @property
    def mean_total_time(self) -> Estimate:
        """Mean length [s] with its 95 % interval (Student)."""
        return mean_interval(self.total_time)


@record
class Fleet:
    """A job and the servers it may use; the defaults are those of AIReSim.

    AIReSim, github.com/karthikp-ubc/airesim, parameters of its table 1.
    """

    servers: int = whole(at_least=1, at_most=MOST_SERVERS, default=4096)  # that the job needs, J
    # without failures [s]
    work: float = real(at_least=SHORTEST, at_most=LONGEST, default=256 * DAY)
    standbys: int = whole(at_least=1, at_most=MOST_SERVERS, default=16)  # kept ready
    working_pool: int = 4160  # all that are there for the job
    spare_pool: int = whole(at_least=0, at_most=MOST_SERVERS, default=200)  # can be pre-empted
    # lam of good ones [1/s]
    failure_rate: float = real(at_least=0, at_most=FASTEST, default=0.01 / DAY)
    bad_share: float = real(at_least=0, at_most=1, default=0.15)  # of servers, at the beginning
    # f, their further failures in lam
    bad_factor: float = real(at_least=0, at_most=1e6, default=5.0)
    # standstill of a failure [s]
    recovery: float = real(at_least=0, at_most=LONGEST, default=20 * MINUTE)
    # of a host selection [s]
    selection: float = real(at_least=0, at_most=LONGEST, default=3 * MINUTE)
    preemption: float = real(at_least=0, at_most=LONGEST, default=20 * MINUTE)  # for each spare [s]
    # mean [s]
    automatic_repair: float = real(at_least=SHORTEST, at_most=LONGEST, default=120 * MINUTE)
    manual_repair: float = real(at_least=SHORTEST, at_most=LONGEST, default=2 * DAY)  # mean [s]
    # handed on by the automatic repair
    to_manual: float = real(at_least=0, at_most=1, default=0.80)
    automatic_fails: float = real(at_least=0, at_most=1, default=0.40)  # leaves a bad server bad
    manual_fails: float = real(at_least=0, at_most=1, default=0.20)
    # that a failure sends a server to repair
    diagnosed: float = real(at_least=0, at_most=1, default=1.0)
    # and that it is another of the job's
    misdiagnosed: float = real(at_least=0, at_most=1, default=0.0)

    def __post_init__(self) -> None:
        fewest = self.servers + self.standbys
        require_int(working_pool=self.working_pool, at_least=fewest, at_most=MOST_SERVERS)

    @property
    def repair_works(self) -> float:
        """Probability that a repair makes a bad server good."""
        manual = self.to_manual * (1 - self.manual_fails)
        return (1 - self.to_manual) * (1 - self.automatic_fails) + manual

    @property
    def expected_failures(self) -> float:
        """Mean number of failures of a job long enough to find all bad servers of the working pool.

        J work lam + working_pool bad_share / P(repair works) f / (1 + f): of the failures of a bad
        server the share f / (1 + f) comes on top of those of a good one. Bad servers of the spare
        pool, and those that are repaired by mistake, are left out. Infinite if no repair works.
        """
        random = self.servers * self.work * self.failure_rate
        share = self.bad_share * self.bad_factor / (1 + self.bad_factor)
        found = self.diagnosed * (1 - self.misdiagnosed) * self.repair_works
        return random + (
            self.working_pool * share / found if found else float("inf") if share else 0.0
        )

    def simulate(
        self, *, replications: int, rng: np.random.Generator, executor: Executor | None = None
    ) -> FleetStudy:
        """Run the job at least twice, with a stream of ``rng`` per replication, wherever it runs.

        Nothing fails while the job stands still. 64-bit counts; about 60 ns per failure or repair.
        """
        require_int(replications=replications, at_least=2)
        parts = map_chunks(self._run, spawn_streams(rng, replications), executor)
        spent = pd.DataFrame(np.array([part[1] for part in parts]), columns=list(BUCKETS))
        return FleetStudy(failures=np.array([part[0] for part in parts]), buckets=spent)

    def _run(self, rng: np.random.Generator) -> tuple[int, NDArray[np.float64]]:
        """One replication."""
        spent = np.zeros(len(BUCKETS))
        repairs = (1 / self.automatic_repair, 1 / self.manual_repair)
        outcomes = (self.to_manual, self.automatic_fails, self.manual_fails)
        failures = _run_fleet(
            rng,
            self.servers,
            self.standbys,
            self._places(rng),
            self.work,
            np.array([1.0, 1 + self.bad_factor]) * self.failure_rate,
            np.array([self.recovery, self.selection, self.preemption]),
            np.array([*repairs, *outcomes]),
            np.array([self.diagnosed, self.misdiagnosed]),
            spent,
        )
        return failures, spent

    def _places(self, rng: np.random.Generator) -> NDArray[np.int64]:
        """Counts of all places at the start: bad servers are spread over both pools at random."""
        total = self.working_pool + self.spare_pool
        bad = int(total * self.bad_share)
        working = int(rng.hypergeometric(bad, total - bad, self.working_pool))
        places = np.zeros(13, dtype=np.int64)
        places[2:4] = self.working_pool - working, working
        places[4:6] = self.spare_pool - (bad - working), bad - working
        return places


# Servers of a kind are interchangeable and the host selection is uniform, so counts of good and bad
# ones in each place are exact; only the queue of standbys keeps its order.


@numba.njit(cache=True)
def _pick(rng: Any, place: int, where: Counts) -> int:
    """Draw a server of a place: 0 good, 1 bad; it leaves the place."""
    bad = 1 if rng.random() * (where[place] + where[place + 1]) < where[place + 1] else 0
    where[place + bad] -= 1
    return bad


@numba.njit(cache=True)
def _back(bad: int, where: Counts, queue: Counts) -> None:
    """A server returns: to the standbys if one is missing, else to the idle ones."""
    if where[QUEUED] < queue.size:
        queue[where[QUEUED]] = bad
        where[QUEUED] += 1
    else:
        where[IDLE + bad] += 1


@numba.njit(cache=True)
def _end_repair(rng: Any, where: Counts, queue: Counts, repairs: Times) -> None:
    """The next repair ends: it works, or does not, or hands the server on."""
    automatic = (where[AUTOMATIC] + where[AUTOMATIC + 1]) * repairs[0]
    manual = (where[MANUAL] + where[MANUAL + 1]) * repairs[1]
    by_hand = rng.random() * (automatic + manual) >= automatic
    bad = _pick(rng, MANUAL if by_hand else AUTOMATIC, where)
    if not by_hand and rng.random() < repairs[2]:
        where[MANUAL + bad] += 1
    else:
        fails = rng.random() < repairs[4 if by_hand else 3]
        _back(bad if fails else 0, where, queue)


@numba.njit(cache=True)
def _repair_rate(where: Counts, repairs: Times) -> float:
    """Repairs that end per second."""
    automatic = (where[AUTOMATIC] + where[AUTOMATIC + 1]) * repairs[0]
    return float(automatic + (where[MANUAL] + where[MANUAL + 1]) * repairs[1])


@numba.njit(cache=True)
def _pass(rng: Any, time: float, where: Counts, queue: Counts, repairs: Times) -> None:
    """The job stands still for a time while repairs go on."""
    while True:
        rate = _repair_rate(where, repairs)
        time -= rng.standard_exponential() / rate if rate > 0 else np.inf
        if time < 0:
            return
        _end_repair(rng, where, queue, repairs)


@numba.njit(cache=True)
def _select(rng: Any, needed: int, where: Counts, queue: Counts) -> bool:
    """Draw the servers of the job and standbys among all that are up; False if they are too few."""
    for place in range(where[QUEUED]):
        where[IDLE + queue[place]] += 1
    where[QUEUED] = 0
    for kind in range(2):
        where[IDLE + kind] += where[ACTIVE + kind]
        where[ACTIVE + kind] = 0
    up = where[IDLE] + where[IDLE + 1]
    taken = min(up, needed + queue.size)
    for _ in range(up - taken):  # the few that are left over are drawn, not the many that are taken
        bad = _pick(rng, IDLE, where)
        where[QUEUED + 1 + bad] += 1
    for _ in range(taken - needed):
        queue[where[QUEUED]] = _pick(rng, IDLE, where)
        where[QUEUED] += 1
    if up >= needed:
        for kind in range(2):
            where[ACTIVE + kind] = where[IDLE + kind]
            where[IDLE + kind] = 0
    for kind in range(2):
        where[IDLE + kind] += where[QUEUED + 1 + kind]
        where[QUEUED + 1 + kind] = 0
    return bool(up >= needed)


@numba.njit(cache=True)
def _host(
    rng: Any, needed: int, delays: Times, where: Counts, queue: Counts, repairs: Times, spent: Times
) -> None:
    """Host selection; if servers are missing, spares are pre-empted singly, or repairs awaited."""
    if not _select(rng, needed, where, queue):
        while where[IDLE] + where[IDLE + 1] + where[QUEUED] < needed + queue.size:
            if where[SPARE] + where[SPARE + 1] > 0:
                spent[3] += delays[2]
                _pass(rng, delays[2], where, queue, repairs)
                where[IDLE + _pick(rng, SPARE, where)] += 1
            else:
                spent[4] += rng.standard_exponential() / _repair_rate(where, repairs)
                _end_repair(rng, where, queue, repairs)
        _select(rng, needed, where, queue)
    spent[2] += delays[1]
    _pass(rng, delays[1], where, queue, repairs)


@numba.njit(cache=True)
def _fail(rng: Any, rates: Times, diagnosis: Times, where: Counts, queue: Counts) -> None:
    """A server of the job fails and leaves it; one diagnosed, or taken for it, goes to repair."""
    bad = (
        1 if rng.random() * (rates[0] * where[0] + rates[1] * where[1]) < rates[1] * where[1] else 0
    )
    where[ACTIVE + bad] -= 1
    if rng.random() >= diagnosis[0]:
        _back(bad, where, queue)
    elif rng.random() >= diagnosis[1] or where[ACTIVE] + where[ACTIVE + 1] == 0:
        where[AUTOMATIC + bad] += 1
    else:
        where[AUTOMATIC + _pick(rng, ACTIVE, where)] += 1
        where[ACTIVE + bad] += 1


@numba.njit(cache=True)
def _run_fleet(
    rng: Any,
    needed: int,
    standbys: int,
    where: Counts,
    work: float,
    rates: Times,
    delays: Times,
    repairs: Times,
    diagnosis: Times,
    spent: Times,
) -> int:
    """Run one job to its end; time goes to ``spent``, the number of failures is returned."""
    queue, failures, done = np.zeros(standbys, np.int64), 0, False
    while not done:
        _host(rng, needed, delays, where, queue, repairs, spent)
        while True:
            failing = rates[0] * where[ACTIVE] + rates[1] * where[ACTIVE + 1]
            total = failing + _repair_rate(where, repairs)
            step = rng.standard_exponential() / total if total > 0 else np.inf
            if spent[0] + step >= work:
                spent[0], done = work, True
                break
            spent[0] += step
            if rng.random() * total >= failing:
                _end_repair(rng, where, queue, repairs)
                continue
            failures += 1
            _fail(rng, rates, diagnosis, where, queue)
            spent[1] += delays[0]
            _pass(rng, delays[0], where, queue, repairs)
            if where[QUEUED] == 0:
                break
            where[ACTIVE + queue[0]] += 1
            where[QUEUED] -= 1
            for place in range(where[QUEUED]):
                queue[place] = queue[place + 1]
    return failures
