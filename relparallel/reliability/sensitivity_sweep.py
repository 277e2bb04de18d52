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

from typing import NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from relparallel.reliability.frontier import leave, merge, pack, unpack

__all__ = ["Trace", "slopes"]

_MIX, _NIBBLE = np.uint64(0x9E37_79B9_7F4A_7C15), np.uint64(15)
_U0, _U1 = np.uint64(0), np.uint64(1)
_SUCCESS, _FAILURE, _ENDS = 0, 1, 2  # the two ends take the first places of a layer, its states the next
_SPLIT = 134217729.0  # 2^27 + 1 cuts a float into two halves whose products are exact


class Trace(NamedTuple):
    """Where the states of some rows go.

    Attributes
    ----------
    target : int32[records, 2]
        Where a state goes with the link down and up, for each way in which the entering vertices can be.
    mass : float64[states]
        Probability to reach a state.
    first, records : int64[rows + 1]
        First state and first record of a row.
    """

    target: NDArray[np.int32]
    mass: NDArray[np.float64]
    first: NDArray[np.int64]
    records: NDArray[np.int64]


@numba.njit(cache=True)
def slopes(steps, chances, free, gain, max_states, room):  # type: ignore[no-untyped-def]
    """Sweep forth and back.

    Parameters
    ----------
    steps, chances : int64[m, 9], float64[m, 6]
        See `relparallel.reliability.frontier.Programme`.
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
    failure : float
        Probability that the terminals are not connected.
    peak : int
        States of the largest layer; above ``max_states`` if the sweep stopped for that.
    """
    layer, row, peak = np.zeros(2, np.uint64), 0, 1
    layer.view(np.float64)[1] = 1.0
    begins, layers = [0], [layer]
    while True:
        row, layer, trace, most = _forth(steps, chances, free, row, layer, max_states, room)
        peak = max(peak, most)
        if peak > max_states:
            return 1.0, peak
        if row == len(steps):
            break
        begins.append(row)
        layers.append(layer)
    value = np.zeros(2 * _ENDS)
    value[2 * _FAILURE] = 1.0
    while True:
        begin, layer = begins.pop(), layers.pop()
        if row < len(steps):
            trace = _forth(steps, chances, free, begin, layer, max_states, room)[2]
        value, row = _back(chances, free, gain, begin, trace, value), begin
        if begin == 0:
            return value[2 * _ENDS] + value[2 * _ENDS + 1], peak


@numba.njit(cache=True)
def _forth(steps, chances, free, begin, here, max_states, room):  # type: ignore[no-untyped-def]
    """Decide links from row ``begin`` on until the trace fills its room.

    Returns
    -------
    end : int
        First row that is not decided.
    layer : uint64[2 states]
        State and mass, one after the other, of the layer before it.
    trace : Trace
    peak : int
        Largest layer.
    """
    target, mass = np.empty((64, 2), np.int32), np.empty(64)
    first, records = np.zeros(len(steps) - begin + 1, np.int64), np.zeros(len(steps) - begin + 1, np.int64)
    there, table, row, peak = np.empty(64, np.uint64), np.empty(64, np.int32), begin, 1
    while row < len(steps) and (row == begin or records[row - begin] < room):
        count, i = len(here) // 2, row - begin
        ways = (1 + free[row, 1]) * (1 + free[row, 2])
        first[i + 1], records[i + 1] = first[i] + count, records[i] + count * ways
        if first[i + 1] > len(mass):
            mass = np.concatenate((mass, np.empty(first[i + 1])))
        if records[i + 1] > len(target):
            target = np.concatenate((target, np.empty((records[i + 1], 2), np.int32)))
        mass[first[i] : first[i + 1]] = here.view(np.float64)[1::2]
        found, there, table = _decide(
            here, steps[row], chances[row], free[row], target[records[i] : records[i + 1]], there, table
        )
        peak = max(peak, found)
        if peak > max_states:
            break
        here = there[: 2 * found].copy()
        row += 1
    used = row - begin
    return row, here, Trace(target, mass[: first[used]], first[: used + 1], records[: used + 1]), peak


@numba.njit(cache=True)
def _decide(here, step, chance, free, target, there, table):  # type: ignore[no-untyped-def]
    """Decide one link in all states of a layer.

    Returns
    -------
    found : int
        Number of states of the next layer.
    there : uint64[>= 2 found]
        These states, state and mass one after the other.
    table : int32[...]
        To be reused.
    """
    old, found, record = here.view(np.float64), 0, 0
    bits, table = _cleared(table, len(here))
    there = _grown(there, 0, len(here))
    a, b = np.uint64(4 * step[4]), np.uint64(4 * step[5])
    for i in range(0, len(here), 2):
        if 2 * found + 32 > len(there):
            there = _grown(there, found, 3 * len(there) // 2 + 32)
        if 2 * found + 16 > len(table):
            bits, table = _larger(there, found, table)
        labels_here, flags_here = unpack(here[i])
        for dead in range(4):
            if (dead & 1 and not free[1]) or (dead & 2 and not free[2]):
                continue
            labels, flags, weight = _enter(labels_here, flags_here, step, chance, dead)
            x, y = (labels >> a) & _NIBBLE, (labels >> b) & _NIBBLE
            up = down = _FAILURE
            joins = x != _U0 and y != _U0 and x != y
            if joins:
                after, held = merge(labels, flags, x, y)
                if step[8] == 0 and held & (held - _U1) == _U0 and held != _U0:
                    up = _SUCCESS
                else:
                    state, alive = _depart(after, held, step)
                    if alive:
                        share = old[i + 1] * weight * chance[0]
                        up, found = _store(state, share, there, table, bits, found)
            if joins and not free[0]:
                down = up
            else:
                state, alive = _depart(labels, flags, step)
                if alive:
                    share = old[i + 1] * weight * (chance[1] if joins else 1.0)
                    down, found = _store(state, share, there, table, bits, found)
                if not joins:
                    up = down
            target[record, 0], target[record, 1] = down, up
            record += 1
    return found, there, table


@numba.njit(cache=True)
def _enter(labels, flags, step, chance, dead):  # type: ignore[no-untyped-def]
    """Labels and flags with the entering vertices, those in ``dead`` (bits) down, and the chance of that."""
    weight = 1.0
    for side in range(2):
        if (dead >> side) & 1:
            weight *= chance[3 + 2 * side]
        elif step[side] >= 0:
            weight *= chance[2 + 2 * side]
            shift = np.uint64(4 * step[side])
            labels |= np.uint64(step[side] + 1) << shift
            flags |= np.uint64(step[2 + side]) << shift
    return labels, flags, weight


@numba.njit(cache=True)
def _depart(labels, flags, step):  # type: ignore[no-untyped-def]
    """State after the leaving vertices are gone, and whether no block with a terminal was closed by that."""
    closed = False
    if step[6] >= 0:
        labels, flags, closed = leave(labels, flags, np.uint64(4 * step[4]))
    if step[7] >= 0 and not closed:
        labels, flags, closed = leave(labels, flags, np.uint64(4 * step[5]))
    return pack(labels, flags), not closed


@numba.njit(cache=True)
def _store(state, share, there, table, bits, found):  # type: ignore[no-untyped-def]
    """Add mass to a state of the next layer; return its place behind the two ends, and the states so far."""
    mass, mask = there.view(np.float64), np.uint64(len(table) - 1)
    place = (state * _MIX) >> np.uint64(64 - bits)
    while True:
        entry = np.int64(table[place])
        if entry < 0:
            table[place] = found
            there[2 * found], mass[2 * found + 1] = state, share
            return found + _ENDS, found + 1
        if there[2 * entry] == state:
            mass[2 * entry + 1] += share
            return entry + _ENDS, found
        place = (place + _U1) & mask


@numba.njit(cache=True)
def _cleared(table, room):  # type: ignore[no-untyped-def]
    """Bits of an address, and an empty table with at least so many places."""
    bits = 6
    while (1 << bits) < room:
        bits += 1
    if len(table) < 1 << bits:
        table = np.empty(1 << bits, np.int32)
    table = table[: 1 << bits]
    table[:] = -1
    return bits, table


@numba.njit(cache=True)
def _larger(there, found, table):  # type: ignore[no-untyped-def]
    """Twice the places for the same states."""
    bits, table = _cleared(table, 2 * len(table))
    for entry in range(found):
        place = (there[2 * entry] * _MIX) >> np.uint64(64 - bits)
        while table[place] >= 0:
            place = (place + _U1) & np.uint64(len(table) - 1)
        table[place] = entry
    return bits, table


@numba.njit(cache=True)
def _grown(there, found, room):  # type: ignore[no-untyped-def]
    """The same states, with at least so much room."""
    if len(there) >= room:
        return there
    larger = np.empty(room, np.uint64)
    larger[: 2 * found] = there[: 2 * found]
    return larger


@numba.njit(cache=True)
def _back(chances, free, gain, begin, trace, after):  # type: ignore[no-untyped-def]
    """Failure probability of the states of layer ``begin``, high and low in turn behind those of the ends."""
    for i in range(len(trace.first) - 2, -1, -1):
        row = begin + i
        mass = trace.mass[trace.first[i] : trace.first[i + 1]]
        target = trace.target[trace.records[i] : trace.records[i + 1]]
        before = np.empty(2 * (len(mass) + _ENDS))
        before[: 2 * _ENDS] = after[: 2 * _ENDS]
        if free[row, 1] or free[row, 2]:
            _recall_entering(chances[row], free[row], gain[row], mass, target, before, after)
        else:
            up, down, total = chances[row, 0], chances[row, 1], 0.0
            for s in range(len(mass)):
                high, low, change = _mixed(after, target[s, 0], target[s, 1], up, down)
                before[2 * (s + _ENDS)], before[2 * (s + _ENDS) + 1] = high, low
                total += mass[s] * change
            gain[row, 0] = total
        after = before
    return after


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
            high, low, change = _mixed(value, 2, 0, chance[4], chance[5])
            value[0], value[1] = high, low
            gain[2] += mass[s] * change
        before[2 * (s + _ENDS)], before[2 * (s + _ENDS) + 1] = value[0], value[1]


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
