"""One job on a pool of servers with standbys, on counts: good and bad ones in each place.

Servers of a kind are alike and the host selection is uniform, so counts are exact; only the queue of standbys
keeps its order.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

Counts = NDArray[np.int64]
Times = NDArray[np.float64]
BUCKETS = ("work", "recovery", "selection", "preemption", "stall")
ACTIVE, IDLE, SPARE, AUTOMATIC, MANUAL, QUEUED = 0, 2, 4, 6, 8, 10  # good ones here, bad ones one further


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
def _mend(rng: Any, where: Counts, queue: Counts, repairs: Times) -> None:
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
def _mending(where: Counts, repairs: Times) -> float:
    """Repairs that end per second."""
    automatic = (where[AUTOMATIC] + where[AUTOMATIC + 1]) * repairs[0]
    return float(automatic + (where[MANUAL] + where[MANUAL + 1]) * repairs[1])


@numba.njit(cache=True)
def _pass(rng: Any, time: float, where: Counts, queue: Counts, repairs: Times) -> None:
    """The job stands still for a time while repairs go on."""
    while True:
        rate = _mending(where, repairs)
        time -= rng.standard_exponential() / rate if rate > 0 else np.inf
        if time < 0:
            return
        _mend(rng, where, queue, repairs)


@numba.njit(cache=True)
def _select(rng: Any, needed: int, where: Counts, queue: Counts) -> bool:
    """Draw the servers of the job and its standbys among all that are up; False if they are too few."""
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
    """Host selection; where servers are missing, spares are pre-empted one by one, or repairs awaited."""
    if not _select(rng, needed, where, queue):
        while where[IDLE] + where[IDLE + 1] + where[QUEUED] < needed + queue.size:
            if where[SPARE] + where[SPARE + 1] > 0:
                spent[3] += delays[2]
                _pass(rng, delays[2], where, queue, repairs)
                where[IDLE + _pick(rng, SPARE, where)] += 1
            else:
                spent[4] += rng.standard_exponential() / _mending(where, repairs)
                _mend(rng, where, queue, repairs)
        _select(rng, needed, where, queue)
    spent[2] += delays[1]
    _pass(rng, delays[1], where, queue, repairs)


@numba.njit(cache=True)
def _fail(rng: Any, rates: Times, diagnosis: Times, where: Counts, queue: Counts) -> None:
    """A server of the job fails and leaves it; a diagnosed one, or one taken for it, goes to repair."""
    bad = 1 if rng.random() * (rates[0] * where[0] + rates[1] * where[1]) < rates[1] * where[1] else 0
    where[ACTIVE + bad] -= 1
    if rng.random() >= diagnosis[0]:
        _back(bad, where, queue)
    elif rng.random() >= diagnosis[1] or where[ACTIVE] + where[ACTIVE + 1] == 0:
        where[AUTOMATIC + bad] += 1
    else:
        where[AUTOMATIC + _pick(rng, ACTIVE, where)] += 1
        where[ACTIVE + bad] += 1


@numba.njit(cache=True)
def run_fleet(
    rng: Any, needed: int, standbys: int, where: Counts, work: float,
    rates: Times, delays: Times, repairs: Times, diagnosis: Times, spent: Times,
) -> int:  # fmt: skip
    """Run one job to its end; time goes to ``spent``, the number of failures is returned."""
    queue, failures, done = np.zeros(standbys, np.int64), 0, False
    while not done:
        _host(rng, needed, delays, where, queue, repairs, spent)
        while True:
            failing = rates[0] * where[ACTIVE] + rates[1] * where[ACTIVE + 1]
            total = failing + _mending(where, repairs)
            step = rng.standard_exponential() / total if total > 0 else np.inf
            if spent[0] + step >= work:
                spent[0], done = work, True
                break
            spent[0] += step
            if rng.random() * total >= failing:
                _mend(rng, where, queue, repairs)
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
