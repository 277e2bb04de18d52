"""Time of a block of checkpoints: first three moments, at many intervals at once.

A series (c0, c1, c2, c3) stands for E[e^{-sT}; event] = c0 + c1 s + c2 s^2 + c3 s^3, the Laplace
transform of a time on an event; (c0, c1) alone gives its mean. Coefficients are numbers, or arrays
with one entry per interval. Sums of events add, times that follow each other multiply, and loops
are geometric series; so the transform of a nested process is written down as for probabilities, and
its moments are read off at the end.
"""

from operator import add
from typing import Any, Final

import numpy as np

Series = tuple[Any, ...]
_NEVER: Final[Series] = (0.0, 0.0, 0.0, 0.0)
_ALWAYS: Final[Series] = (1.0, 0.0, 0.0, 0.0)


def added(a: Series, b: Series) -> Series:
    """One event or the other."""
    return tuple(map(add, a, b))


def chained(a: Series, b: Series) -> Series:
    """One time after the other."""
    mean = a[0] * b[0], a[0] * b[1] + a[1] * b[0]
    if len(a) == 2 or len(b) == 2:
        return mean
    return (
        *mean,
        a[0] * b[2] + a[1] * b[1] + a[2] * b[0],
        a[0] * b[3] + a[1] * b[2] + a[2] * b[1] + a[3] * b[0],
    )


def looped(start: Series, turn: Series, out: Any) -> Series:
    """Start / (1 - turn): any number of turns first.

    1 - turn begins with ``out``, known to more digits.
    """
    c0 = start[0] / out
    c1 = (start[1] + c0 * turn[1]) / out
    if len(start) == 2 or len(turn) == 2:
        return c0, c1
    c2 = (start[2] + c0 * turn[2] + c1 * turn[1]) / out
    return c0, c1, c2, (start[3] + c0 * turn[3] + c1 * turn[2] + c2 * turn[1]) / out


def passed(time: Any, moments: int = 3) -> Series:
    """A time without failure; failures have rate 1."""
    alive = np.exp(-time)
    mean = alive, -time * alive
    return (
        (*mean, time * time * alive / 2, -time * time * time * alive / 6) if moments == 3 else mean
    )


def struck(time: Any, alive: Series) -> Series:
    """Time to failure, on the event that it is within ``time``: (1 - e^{-(1+s)t})/(1 + s)."""
    found = [-np.expm1(-time)]
    for coefficient in alive[1:]:
        found.append(-coefficient - found[-1])
    return tuple(found)


def geometric(ratio: Series, terms: Any) -> tuple[Series, Series]:
    """Sum of ratio^r, r < terms, and ratio^terms; by doubling, O(log terms), sound at ratio 1."""
    total, power = _NEVER, _ALWAYS
    for bit in reversed(range(int(np.max(terms)).bit_length())):
        total, power = added(total, chained(power, total)), chained(power, power)
        odd = terms >> bit & 1
        if np.any(odd):
            more, longer = added(total, power), chained(power, ratio)
            total, power = _where(odd, more, total), _where(odd, longer, power)
    return total, power


def _where(found: Any, one: Series, other: Series) -> Series:
    """One series or the other, interval by interval."""
    if np.all(found):
        return one
    return tuple(np.where(found, a, b) for a, b in zip(one, other, strict=False))


@np.errstate(all="ignore")  # what takes too long is infinite
def block_times(
    work: Any, every: Any, cost: Any, delay: Any, weight: Any, restarts: Any, moments: int = 3
) -> Series:
    """Time between checkpoints of the last level; ``work`` and each of ``every`` broadcast."""
    levels = range(len(cost))
    # By the level at the end: passing the block, and falling back to a level that the block cannot
    # restore.
    flow = [passed(work + each, moments) for each in cost]
    hits = [struck(work + each, alive) for each, alive in zip(cost, flow, strict=True)]
    fall = [[chained(hit, passed(each)) for each in delay] for hit in hits]
    before, power = [_NEVER for _ in levels], _ALWAYS
    # blocks of it out of those of the level below
    for level, (again, higher) in enumerate(restarts):
        if level:
            total, power = geometric(flow[level - 1], every[level - 1] - 1)
            before = [chained(total, each) for each in fall[level - 1]]
        for end in levels[level:]:
            stays = [added(a, chained(power, b)) for a, b in zip(before, fall[end], strict=True)]
            rest = [added(a, chained(stays[level], b)) for a, b in zip(stays, higher, strict=True)]
            through, turn = chained(power, flow[end]), chained(stays[level], again)
            # What does not turn passes or leaves: a sum of positive terms keeps the digits of the
            # difference.
            out = sum((rest[k][0] * weight[k] for k in levels[level + 1 :]), through[0])
            flow[end], fall[end] = (
                looped(through, turn, out),
                [looped(each, turn, out) for each in rest],
            )
    return flow[-1]


@np.errstate(all="ignore")
def restarts(read: Any, back: Any, delay: Any, weight: Any) -> list[tuple[Series, list[Series]]]:
    """After a failure, by the level that it reads: on the way again, or what reads a level."""
    entered = [_entered(level, read, back) for level in range(len(delay))]
    return [_restarted(level, entered, delay, weight) for level in range(len(delay))]


def _restarted(level: int, entered: Any, delay: Any, weight: Any) -> tuple[Series, list[Series]]:
    """After a failure reading ``level`` at its checkpoint: on the way again, or at a higher level.

    A failure within ``delay`` of the restart finds nothing newer: it is one more turn at the same
    place.
    """
    up, out, own_run, own_lost = _NEVER, _ALWAYS, _NEVER, _NEVER
    turns, leaves = _NEVER, _NEVER
    soon = [struck(each, passed(each)) for each in delay]
    # a restart that is struck goes on from the same level or a higher one
    for i in range(level, -1, -1):
        first_hit, first_done, later_hit, later_done, above = entered[i]
        entry = looped(first_hit, later_hit, above + later_done[0])
        run = added(first_done, chained(entry, added(later_done, up)))
        lost = chained(entry, out)
        up, out = added(up, run), added(out, lost)
        turns, leaves = added(turns, chained(soon[i], run)), added(leaves, chained(soon[i], lost))
        if i == level:
            own_run, own_lost = run, lost
    away = sum((leaves[0] + soon[k][0]) * weight[k] for k in range(level + 1, len(delay)))
    run = looped(own_run, turns, (1 + away) / weight.sum())
    return run, [added(chained(run, added(leaves, each)), own_lost) for each in soon]


def _entered(level: int, read: Any, back: Any) -> tuple[Series, Series, Series, Series, Any]:
    """A restart at a level, struck and passed: for failures reading it, and ones reading no higher.

    Last the probability that a failure reads a higher level.
    """
    done = passed(back[:, level])
    hit = struck(back[:, level], done)
    first, later = read[:, level], read[:, : level + 1].sum(axis=1)
    weighted = [
        tuple(each @ share for each in series) for share in (first, later) for series in (hit, done)
    ]
    return (*weighted, read[:, level + 1 :].sum())
