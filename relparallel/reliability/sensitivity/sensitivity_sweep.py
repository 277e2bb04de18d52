"""A sweep forth and a sweep back: how the failure mass of a programme answers to every one of its parts.

The sweep forth is the frontier programme, which also writes down where every state goes. The sweep back gives
every state g, the probability that the terminals end up apart. A link in which two states d (down) and u (up)
differ has the derivative sum of f (g(d) - g(u)), f the probability to get there: no term is negative, and
none is left out because its chance is 0.

The difference is where digits are lost: a link that matters in one of 1e12 failures has g(d) and g(u) that
agree in twelve digits. So g is a sum of two floats, high and low, of 32 digits together. They cost little,
because a state needs one product: g = g(u) + down (g(d) - g(u)), or the like from the other side. Where even
so some part matters too little beside the rest, the sweep back is repeated with more floats (`many_digits`).
All other steps, such as the way back through the tape, add and multiply what is not negative.

References
----------
Dekker, "A floating-point technique for extending the available precision", Numerische Mathematik 18, 1971.
"""

from __future__ import annotations

import numba
import numpy as np

from relparallel.reliability.programme.compiling import njit_borrowing
from relparallel.reliability.programme.layer_rows import KIND, MERGE, SUCCEED, planned_rows
from relparallel.reliability.sensitivity.many_digits import (
    mixed_long,
    mixed_threefold,
    two_product,
    two_sum,
)
from relparallel.reliability.sensitivity.traced_sweep import ENDS, FAILURE, forth

__all__ = ["slopes"]

_TINY = 1e-30
_MOST_FLOATS = 12  # of which a g is the sum
_FEW_RECORDS = 2**14  # through which to go with more than three floats takes milliseconds
_ENOUGH = 1e9  # times the rounding of U in every row, from which a slope has its digits
_PRIME, _ROOT = 2**31 - 1, 16807  # of which powers seem drawn at random


@numba.njit(cache=True)
def slopes(steps, chances, free, asked, gain, max_states, room):  # type: ignore[no-untyped-def]
    """Sweep forth and back.

    Parameters
    ----------
    steps, chances : int64[m, 9], float64[m, 6]
        See `relparallel.reliability.programme.frontier.Programme`.
    free : bool[m, 3]
        Whether the link, and entering vertices a and b, may be down or have their derivative taken.
    asked : bool[m, 3]
        Whether they have it taken; of the others it may be wrong.
    gain : float64[m, 3]
        To be filled: by how much failure is likelier with that part down than with it up.
    max_states : int
        Largest layer.
    room : int
        Records to keep; what is more is swept forth once again.

    Returns
    -------
    success, failure : float
        Probability that the terminals are connected, and that they are not: both with digits of their own.
    peak : int
        States of the largest layer; above ``max_states`` if the sweep stopped for that.

    Notes
    -----
    States that are too improbable for a float are left out, as in the frontier programme, unless a chance is
    below 1e-30: so a derivative is held if it is above 1e-280. Where states are many, g has three floats
    at most: below 1e-47 U a derivative has no digits there.
    """
    rows, lean = planned_rows(steps, free), _plain(chances, asked)
    layer, peak = np.zeros(2, np.uint64), 1
    layer.view(np.float64)[1] = 1.0
    begins, layers = [0], [layer]
    row = begins[0]  # a literal 0 would compile `forth` twice
    while True:
        row, layer, trace, most = forth(rows, chances, free, lean, row, layer, max_states, room)
        peak = max(peak, most)
        if peak > max_states:
            return 0.0, 1.0, peak
        if row == len(steps):
            break
        begins.append(row)
        layers.append(layer)
    swept, asked = (rows, free, lean, begins, layers, max_states, room), _between_live(steps, chances, asked)
    few = len(begins) == 1 and trace.records[-1] <= _FEW_RECORDS
    floats, drawn, most_floats = 2, False, _MOST_FLOATS if few else 3
    root, trace, held = _all_back(swept, chances, gain, trace, len(begins) - 1, floats)
    while floats < most_floats and _lost(gain, asked, floats, root[0]):
        if not drawn and (floats > 2 or not asked[:, 0].all()):  # 0 may be right beside what is for certain
            matter, drawn = np.zeros(gain.shape), True
            _, trace, held = _all_back(swept, _drawn(chances), matter, trace, held, 1)
            asked = asked & (matter > 0.0)
            continue
        gain[:], floats = 0.0, 3 if floats == 2 else 2 * floats
        root, trace, held = _all_back(swept, chances, gain, trace, held, floats)
    return max((1.0 - root[0]) - root[1], 0.0), root[0] + root[1], peak


@numba.njit(cache=True)
def _plain(chances, asked):  # type: ignore[no-untyped-def]
    """Whether no chance of a part that is asked for is tiny."""
    for row in range(len(asked)):
        for i in range(3):
            if asked[row, i] and min(chances[row, 2 * i], chances[row, 2 * i + 1]) < _TINY:
                return False
    return True


@numba.njit(cache=True)
def _between_live(steps, chances, asked):  # type: ignore[no-untyped-def]
    """What is asked for, but for links of vertices that are always down: they have 0, and no digits."""
    dead, asked = np.zeros(16, np.bool_), asked.copy()
    for row in range(len(steps)):
        for side in range(2):
            if steps[row, side] >= 0:
                dead[steps[row, side]] = chances[row, 2 + 2 * side] == 0.0
        asked[row, 0] &= not (dead[steps[row, 4]] or dead[steps[row, 5]])
    return asked


@numba.njit(cache=True)
def _all_back(swept, chances, gain, trace, held, floats):  # type: ignore[no-untyped-def]
    """Sweep back through all segments of rows, of which ``trace`` is segment ``held``.

    Returns
    -------
    value : float64[floats]
        That of the first state.
    trace, held : Trace, int
        The segment that is now at hand.
    """
    rows, free, lean, begins, layers, max_states, room = swept
    value = np.zeros(floats * ENDS)
    value[floats * FAILURE] = 1.0
    for k in range(len(begins) - 1, -1, -1):
        if k != held:
            trace, held = forth(rows, chances, free, lean, begins[k], layers[k], max_states, room)[2], k
        value = _back(rows, chances, free, gain, begins[k], trace, value, floats)
    return value[floats * ENDS :], trace, held


@numba.njit(cache=True)
def _lost(gain, asked, floats, failure):  # type: ignore[no-untyped-def]
    """Whether a derivative that is asked for is so small that so many floats do not hold its digits."""
    least = _ENOUGH * len(gain) * 2.0 ** (-53 * floats) * failure
    for row in range(len(gain)):
        for i in range(3):
            if asked[row, i] and gain[row, i] < least:
                return True
    return False


@numba.njit(cache=True)
def _drawn(chances):  # type: ignore[no-untyped-def]
    """Whole numbers up and down that add up to 1 modulo a prime, where neither chance is 0.

    With them the values of two states are equal where they are for all chances, and seldom else.
    """
    drawn, number = chances.copy(), 1
    for row in range(len(drawn)):
        for i in range(0, 6, 2):
            number = (_ROOT * number) % _PRIME
            if drawn[row, i] > 0.0 and drawn[row, i + 1] > 0.0:
                drawn[row, i], drawn[row, i + 1] = number, _PRIME + 1 - number
    return drawn


@numba.njit(cache=True)
def _back(rows, chances, free, gain, begin, trace, after, floats):  # type: ignore[no-untyped-def]
    """Failure probability of the states of layer ``begin``, as sums of floats behind those of the ends."""
    work = np.empty(5 * floats)
    for i in range(len(trace.first) - 2, -1, -1):
        row = begin + i
        mass = trace.mass[trace.first[i] : trace.first[i + 1]]
        target = trace.target[trace.records[i] : trace.records[i + 1]]
        if rows[row, KIND] >= MERGE:
            gain[row, 0] = _recall_shares(after, chances[row], rows[row, KIND] == SUCCEED, mass, target, work)
            after = after[: floats * (trace.states[i] + ENDS)]
            continue
        before = np.empty(floats * (len(mass) + ENDS))
        before[: floats * ENDS] = after[: floats * ENDS]
        if free[row, 1] or free[row, 2]:
            _recall_entering(chances[row], free[row], gain[row], mass, target, before, after, work)
        else:
            up, down, total = chances[row, 0], chances[row, 1], 0.0
            for s in range(len(mass)):
                change = _mixed(after, target[s, 0], target[s, 1], up, down, before, s + ENDS, work)
                total += mass[s] * change
            gain[row, 0] = total
        after = before
    return after


@numba.njit(cache=True)
def _recall_shares(value, chance, succeeds, mass, target, work):  # type: ignore[no-untyped-def]
    """The same for one row in place, whose states keep their places; return what the link gains.

    What a state reads is not yet overwritten: nothing moves on from where a share of another moves to, but
    for what fails, and that comes last.
    """
    total = 0.0
    for record in range(len(mass)):
        s, t = target[record, 0], target[record, 1]
        d, u = (t, s) if succeeds else (s, t)
        total += mass[record] * _mixed(value, d, u, chance[0], chance[1], value, s, work)
    return total


@numba.njit(cache=True)
def _recall_entering(chance, free, gain, mass, target, before, after, work):  # type: ignore[no-untyped-def]
    """The same for one row in which a vertex enters that may be down."""
    floats, record = len(work) // 5, 0
    value = np.zeros(4 * floats)
    for s in range(len(mass)):
        for dead in range(4):
            if (dead & 1 and not free[1]) or (dead & 2 and not free[2]):
                continue
            d, u = target[record, 0], target[record, 1]
            change = _mixed(after, d, u, chance[0], chance[1], value, dead, work)
            gain[0] += mass[s] * chance[2 + (dead & 1)] * chance[4 + (dead >> 1)] * change
            record += 1
        if free[1]:
            for dead in range(0, 4 if free[2] else 2, 2):
                change = _mixed(value, dead + 1, dead, chance[2], chance[3], value, dead, work)
                gain[1] += mass[s] * chance[4 + (dead >> 1)] * change
        if free[2]:
            gain[2] += mass[s] * _mixed(value, 2, 0, chance[4], chance[5], value, 0, work)
        before[floats * (s + ENDS) : floats * (s + ENDS + 1)] = value[:floats]


@njit_borrowing
def _mixed(value, d, u, up, down, made, at, work):  # type: ignore[no-untyped-def]
    """Mix two of the values by their chances to make number ``at``; return value d - value u.

    The smaller chance, whose digits count, multiplies the difference.
    """
    if len(work) != 10:
        return _mixed_otherwise(value, d, u, up, down, made, at, work)
    high, low = value[2 * u], value[2 * u + 1]
    if d == u:
        made[2 * at], made[2 * at + 1] = high, low
        return 0.0
    top, rest = value[2 * d], value[2 * d + 1]
    change, tail = two_sum(top, -high)
    change, tail = two_sum(change, tail + (rest - low))
    if down <= up:
        factor = down
    else:
        high, low, factor = top, rest, -up
    product, lost = two_product(change, factor)
    total, error = two_sum(high, product)
    made[2 * at], made[2 * at + 1] = two_sum(total, error + (low + (lost + tail * factor)))
    return max(change, 0.0)


@njit_borrowing
def _mixed_otherwise(value, d, u, up, down, made, at, work):  # type: ignore[no-untyped-def]
    """The same with more floats, or with whole numbers modulo a prime: then return whether they differ."""
    if len(work) == 15:
        return mixed_threefold(value, d, u, up, down, made, at)
    if len(work) > 5:
        return mixed_long(value, d, u, up, down, made, at, work)
    base, change = np.int64(value[u]), np.int64(value[d] - value[u])
    total = base + np.int64(down) * (change if change >= 0 else change + _PRIME)
    for _ in range(2):
        total = (total & _PRIME) + (total >> 31)
    made[at] = total if total < _PRIME else total - _PRIME
    return 1.0 if change != 0 else 0.0
