"""A sweep forth and a sweep back: how the failure mass of a programme answers to every one of its parts.

The sweep forth is the frontier programme, which also writes down where every state goes. The sweep back gives
every state g, the probability that the terminals end up apart. A link in which two states d (down) and u (up)
differ has the derivative sum of f (g(d) - g(u)), f the probability to get there: no term is negative, and
none is left out because its chance is 0.

The difference is where digits are lost: a link that matters in one of 1e12 failures has g(d) and g(u) that
agree in twelve digits. So g is a sum of two floats, high and low, of 32 digits together. They cost little,
because a state needs one product: g = g(u) + down (g(d) - g(u)), or the like from the other side. All other
steps, such as the way back through the tape, add and multiply what is not negative.

References
----------
Dekker, "A floating-point technique for extending the available precision", Numerische Mathematik 18, 1971.
"""

from __future__ import annotations

import numba
import numpy as np

from relparallel.reliability.programme.layer_rows import KIND, MERGE, SUCCEED, planned_rows
from relparallel.reliability.sensitivity.traced_sweep import ENDS, FAILURE, forth

__all__ = ["slopes"]

_SPLIT = 134217729.0  # 2^27 + 1 cuts a float into two halves whose products are exact


@numba.njit(cache=True)
def slopes(steps, chances, free, gain, max_states, room):  # type: ignore[no-untyped-def]
    """Sweep forth and back.

    Parameters
    ----------
    steps, chances : int64[m, 9], float64[m, 6]
        See `relparallel.reliability.programme.frontier.Programme`.
    free : bool[m, 3]
        Whether the link, and entering vertices a and b, may be down and have their derivative taken.
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
    """
    rows = planned_rows(steps, free)
    layer, peak = np.zeros(2, np.uint64), 1
    layer.view(np.float64)[1] = 1.0
    begins, layers = [0], [layer]
    row = begins[0]  # a literal 0 would compile `forth` twice
    while True:
        row, layer, trace, most = forth(rows, chances, free, row, layer, max_states, room)
        peak = max(peak, most)
        if peak > max_states:
            return 0.0, 1.0, peak
        if row == len(steps):
            break
        begins.append(row)
        layers.append(layer)
    value = np.zeros(2 * ENDS)
    value[2 * FAILURE] = 1.0
    while True:
        begin, layer = begins.pop(), layers.pop()
        if row < len(steps):
            trace = forth(rows, chances, free, begin, layer, max_states, room)[2]
        value, row = _back(rows, chances, free, gain, begin, trace, value), begin
        if begin == 0:
            high, low = value[2 * ENDS], value[2 * ENDS + 1]
            return max((1.0 - high) - low, 0.0), high + low, peak


@numba.njit(cache=True)
def _back(rows, chances, free, gain, begin, trace, after):  # type: ignore[no-untyped-def]
    """Failure probability of the states of layer ``begin``, high and low in turn behind those of the ends."""
    for i in range(len(trace.first) - 2, -1, -1):
        row = begin + i
        mass = trace.mass[trace.first[i] : trace.first[i + 1]]
        target = trace.target[trace.records[i] : trace.records[i + 1]]
        if rows[row, KIND] >= MERGE:
            gain[row, 0] = _recall_shares(after, chances[row], rows[row, KIND] == SUCCEED, mass, target)
            after = after[: 2 * (trace.states[i] + ENDS)]
            continue
        before = np.empty(2 * (len(mass) + ENDS))
        before[: 2 * ENDS] = after[: 2 * ENDS]
        if free[row, 1] or free[row, 2]:
            _recall_entering(chances[row], free[row], gain[row], mass, target, before, after)
        else:
            up, down, total = chances[row, 0], chances[row, 1], 0.0
            for s in range(len(mass)):
                high, low, change = _mixed(after, target[s, 0], target[s, 1], up, down)
                before[2 * (s + ENDS)], before[2 * (s + ENDS) + 1] = high, low
                total += mass[s] * change
            gain[row, 0] = total
        after = before
    return after


@numba.njit(cache=True)
def _recall_shares(value, chance, succeeds, mass, target):  # type: ignore[no-untyped-def]
    """The same for one row in place, whose states keep their places; return what the link gains.

    What a state reads is not yet overwritten: nothing moves on from where a share of another moves to, but
    for what fails, and that comes last.
    """
    total = 0.0
    for record in range(len(mass)):
        s, t = target[record, 0], target[record, 1]
        d, u = (t, s) if succeeds else (s, t)
        value[2 * s], value[2 * s + 1], change = _mixed(value, d, u, chance[0], chance[1])
        total += mass[record] * change
    return total


@numba.njit(cache=True)
def _recall_entering(chance, free, gain, mass, target, before, after):  # type: ignore[no-untyped-def]
    """The same for one row in which a vertex enters that may be down."""
    value, record = np.zeros(8), 0
    for s in range(len(mass)):
        for dead in range(4):
            if (dead & 1 and not free[1]) or (dead & 2 and not free[2]):
                continue
            high, low, change = _mixed(after, target[record, 0], target[record, 1], chance[0], chance[1])
            value[2 * dead], value[2 * dead + 1] = high, low
            gain[0] += mass[s] * chance[2 + (dead & 1)] * chance[4 + (dead >> 1)] * change
            record += 1
        if free[1]:
            for dead in range(0, 4 if free[2] else 2, 2):
                high, low, change = _mixed(value, dead + 1, dead, chance[2], chance[3])
                value[2 * dead], value[2 * dead + 1] = high, low
                gain[1] += mass[s] * chance[4 + (dead >> 1)] * change
        if free[2]:
            high, low, change = _mixed(value, np.int64(2), np.int64(0), chance[4], chance[5])
            value[0], value[1] = high, low
            gain[2] += mass[s] * change
        before[2 * (s + ENDS)], before[2 * (s + ENDS) + 1] = value[0], value[1]


@numba.njit(cache=True)
def _mixed(value, d, u, up, down):  # type: ignore[no-untyped-def]
    """Mix two of the values by their chances: high and low of the mixture, and value d - value u.

    The smaller chance, whose digits count, multiplies the difference.
    """
    high, low = value[2 * u], value[2 * u + 1]
    if d == u:
        return high, low, 0.0
    top, rest = value[2 * d], value[2 * d + 1]
    change, tail = _two_sum(top, -high)
    change, tail = _two_sum(change, tail + (rest - low))
    if down <= up:
        factor = down
    else:
        high, low, factor = top, rest, -up
    product = change * factor
    wide, thin = _halves(change)
    long, short = _halves(factor)
    lost = ((wide * long - product) + wide * short + thin * long) + thin * short
    total, error = _two_sum(high, product)
    high, low = _two_sum(total, error + (low + (lost + tail * factor)))
    return high, low, max(change, 0.0)


@numba.njit(cache=True)
def _two_sum(x, y):  # type: ignore[no-untyped-def]
    """Sum of two numbers and what rounding lost (Knuth)."""
    total = x + y
    back = total - x
    return total, (x - (total - back)) + (y - back)


@numba.njit(cache=True)
def _halves(x):  # type: ignore[no-untyped-def]
    """Two numbers of 26 bits that add up to x (Veltkamp)."""
    large = _SPLIT * x
    high = large - (large - x)
    return high, x - high
