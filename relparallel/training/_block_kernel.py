"""Time of a block of checkpoints, compiled: first three moments, at many intervals at once.

A series (c0, c1, c2, c3) stands for E[e^{-sT}; event] = c0 + c1 s + c2 s^2 + c3 s^3, the Laplace transform
of a time on an event. Sums of events add, times that follow each other multiply, and loops are geometric
series; so the transform of a nested process is written down as for probabilities, and its moments are read
off at the end.
"""

from typing import Any

import numba
import numpy as np

njit = numba.njit(cache=True, error_model="numpy")
Series = tuple[float, float, float, float]
_NEVER, _ALWAYS = (0.0, 0.0, 0.0, 0.0), (1.0, 0.0, 0.0, 0.0)


@njit  # type: ignore[misc]
def added(a: Series, b: Series) -> Series:
    """One event or the other."""
    return a[0] + b[0], a[1] + b[1], a[2] + b[2], a[3] + b[3]


@njit  # type: ignore[misc]
def chained(a: Series, b: Series) -> Series:
    """One time after the other."""
    return (
        a[0] * b[0],
        a[0] * b[1] + a[1] * b[0],
        a[0] * b[2] + a[1] * b[1] + a[2] * b[0],
        a[0] * b[3] + a[1] * b[2] + a[2] * b[1] + a[3] * b[0],
    )


@njit  # type: ignore[misc]
def looped(start: Series, turn: Series, out: float) -> Series:
    """Start / (1 - turn): any number of turns first; 1 - turn begins with ``out``, known to more digits."""
    c0 = start[0] / out
    c1 = (start[1] + c0 * turn[1]) / out
    c2 = (start[2] + c0 * turn[2] + c1 * turn[1]) / out
    return c0, c1, c2, (start[3] + c0 * turn[3] + c1 * turn[2] + c2 * turn[1]) / out


@njit  # type: ignore[misc]
def passed(time: float) -> Series:
    """A time without failure; failures have rate 1."""
    alive = np.exp(-time)
    return alive, -time * alive, time * time * alive / 2, -time * time * time * alive / 6


@njit  # type: ignore[misc]
def struck(time: float) -> Series:
    """The time to the failure, on the event that it strikes within ``time``: (1 - e^{-(1+s)t})/(1 + s)."""
    alive = passed(time)
    c0 = -np.expm1(-time)
    c1 = -alive[1] - c0
    c2 = -alive[2] - c1
    return c0, c1, c2, -alive[3] - c2


@njit  # type: ignore[misc]
def geometric(ratio: Series, terms: int) -> tuple[Any, Any]:
    """Sum of ratio^r over r < terms, and ratio^terms; by doubling, O(log terms), sound at ratio 1."""
    total, power = _NEVER, _ALWAYS
    bit = 1
    while bit <= terms // 2:
        bit *= 2
    while bit:
        total, power = added(total, chained(power, total)), chained(power, power)
        if terms & bit:
            total, power = added(total, power), chained(power, ratio)
        bit //= 2
    return total, power


@njit  # type: ignore[misc]
def block_times(work: Any, every: Any, read: Any, back: Any, cost: Any, delay: Any, weight: Any) -> Any:
    """Series of the time from one checkpoint of the last level to the next, for every interval."""
    levels = len(cost)
    again, higher = np.empty((levels, 4)), np.empty((levels, levels, 4))
    for level in range(levels):
        _restarted(level, read, back, delay, weight, again[level], higher[level])
    found = np.empty((len(work), 4))
    # By the level at the end: passing the block, and falling back to a level that the block cannot restore.
    flow, fall = np.empty((levels, 4)), np.empty((levels, levels, 4))
    for place in range(len(work)):
        for end in range(levels):
            _put(flow[end], passed(work[place] + cost[end]))
            for k in range(levels):
                _put(fall[end, k], chained(struck(work[place] + cost[end]), passed(delay[k])))
        _nested(every, weight, again, higher, flow, fall)
        found[place] = flow[levels - 1]
    return found


@njit  # type: ignore[misc]
def _nested(every: Any, weight: Any, again: Any, higher: Any, flow: Any, fall: Any) -> None:
    """Make blocks of every level out of those of the level below, in place."""
    levels = len(weight)
    before, rest = np.zeros((levels, 4)), np.empty((levels, 4))
    for level in range(levels):
        power = _ALWAYS
        if level:
            total, power = geometric(_got(flow[level - 1]), every[level - 1] - 1)
            for k in range(levels):
                _put(before[k], chained(total, _got(fall[level - 1, k])))
        for end in range(level, levels):
            turn = added(_got(before[level]), chained(power, _got(fall[end, level])))
            through = chained(power, _got(flow[end]))
            # What does not turn passes or leaves: a sum of positive terms keeps the digits of the difference.
            out = through[0]
            for k in range(levels):
                stays = added(_got(before[k]), chained(power, _got(fall[end, k])))
                _put(rest[k], added(stays, chained(turn, _got(higher[level, k]))))
                if k > level:
                    out += rest[k, 0] * weight[k]
            turn = chained(turn, _got(again[level]))
            _put(flow[end], looped(through, turn, out))
            for k in range(levels):
                _put(fall[end, k], looped(_got(rest[k]), turn, out))


@njit  # type: ignore[misc]
def _restarted(level: int, read: Any, back: Any, delay: Any, weight: Any, again: Any, higher: Any) -> None:
    """After a failure that reads ``level``, where a checkpoint of it is: on the way again, or a higher level.

    A failure within ``delay`` of the restart finds nothing newer: it is one more turn at the same place.
    """
    levels = len(weight)
    up, out, own_run, own_lost = _NEVER, _ALWAYS, _NEVER, _NEVER
    turns, leaves = _NEVER, _NEVER
    for i in range(level, -1, -1):  # a restart that is struck goes on from the same level or a higher one
        first_hit, first_done, later_hit, later_done, above = _entered(i, read, back)
        entry = looped(first_hit, later_hit, above + later_done[0])
        run = added(first_done, chained(entry, added(later_done, up)))
        lost = chained(entry, out)
        up, out = added(up, run), added(out, lost)
        soon = struck(delay[i])
        turns, leaves = added(turns, chained(soon, run)), added(leaves, chained(soon, lost))
        if i == level:
            own_run, own_lost = run, lost
    away = 0.0
    for k in range(level + 1, levels):
        away += (leaves[0] + struck(delay[k])[0]) * weight[k]
    run = looped(own_run, turns, (1 + away) / weight.sum())
    _put(again, run)
    for k in range(levels):
        _put(higher[k], added(chained(run, added(leaves, struck(delay[k]))), own_lost))


@njit  # type: ignore[misc]
def _entered(level: int, read: Any, back: Any) -> Any:
    """A restart at a level, struck and passed: for failures that read it, and for those that read no higher.

    Last the probability that a failure reads a higher level.
    """
    first_hit, first_done, later_hit, later_done, above = _NEVER, _NEVER, _NEVER, _NEVER, 0.0
    for cause in range(len(read)):
        first, later = (read[cause, level], 0.0, 0.0, 0.0), (read[cause, : level + 1].sum(), 0.0, 0.0, 0.0)
        hit, done = struck(back[cause, level]), passed(back[cause, level])
        first_hit, first_done = added(first_hit, chained(first, hit)), added(first_done, chained(first, done))
        later_hit, later_done = added(later_hit, chained(later, hit)), added(later_done, chained(later, done))
        above += read[cause, level + 1 :].sum()
    return first_hit, first_done, later_hit, later_done, above


@njit  # type: ignore[misc]
def _put(place: Any, series: Any) -> None:
    place[0], place[1], place[2], place[3] = series


@njit  # type: ignore[misc]
def _got(place: Any) -> Any:
    return place[0], place[1], place[2], place[3]
