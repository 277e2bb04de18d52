"""The sweep forth that is remembered: the frontier programme writes down where every state goes.

It decides as `frontier` does. For each state of a layer, and each way in which the
entering vertices can be, a record says to which state of the next layer the link leads when down and when up.
"""

from __future__ import annotations

from typing import NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from relparallel.reliability.programme.labels import leave, merge, pack, unpack

__all__ = ["ENDS", "FAILURE", "Trace", "forth"]

_MIX, _NIBBLE = np.uint64(0x9E37_79B9_7F4A_7C15), np.uint64(15)
_U0, _U1 = np.uint64(0), np.uint64(1)
_SUCCESS, FAILURE, ENDS = 0, 1, 2  # the two ends take the first places of a layer, its states the next
_SAME = -1  # a record's other side
_BATCH, _CACHED = 512, 2**14  # states at a time; states from which their memory is asked for in advance


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
def forth(steps, chances, free, begin, here, max_states, room):  # type: ignore[no-untyped-def]
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
    buffer = np.empty(24 * _BATCH + 1, np.uint64)
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
            here, steps[row], chances[row], free[row], target[records[i] : records[i + 1]], there, table,
            buffer,
        )  # fmt: skip
        peak = max(peak, found)
        if peak > max_states:
            break
        here = there[: 2 * found].copy()
        row += 1
    used = row - begin
    return row, here, Trace(target, mass[: first[used]], first[: used + 1], records[: used + 1]), peak


@numba.njit(cache=True)
def _decide(here, step, chance, free, target, there, table, buffer):  # type: ignore[no-untyped-def]
    """Decide one link in all states of a layer, a batch at a time.

    Returns
    -------
    found : int
        Number of states of the next layer.
    there : uint64[>= 2 found]
        These states, state and mass one after the other.
    table : int32[...]
        To be reused.
    """
    states, ways, found = len(here) // 2, (1 + free[1]) * (1 + free[2]), 0
    bits, table = _cleared(table, len(here))
    for start in range(0, states, _BATCH):
        end = min(start + _BATCH, states)
        records = target[ways * start : ways * end]
        made = _expand(here[2 * start : 2 * end], step, chance, free, records, buffer)
        if 2 * (found + made) > len(there):
            there = _grown(there, found, 3 * found + 2 * made)
        if 2 * (found + made) > len(table):
            bits, table = _larger(there, found, table, 3 * found + 2 * made)
        if states > _CACHED:
            _look_up(buffer, made, there, table, bits)
        found = _store(buffer, made, there, table, bits, found, records)
        for record in range(len(records)):
            for side in range(2):
                if records[record, side] == _SAME:
                    records[record, side] = records[record, 1 - side]
    return found, there, table


@numba.njit(cache=True)
def _expand(here, step, chance, free, target, buffer):  # type: ignore[no-untyped-def]
    """Decide one link in some states: what they become goes to the buffer (state, mass, record and side).

    Returns
    -------
    made : int
        States in the buffer. Where no state comes of it, the record says which end it is.
    """
    old, new, made, record = here.view(np.float64), buffer.view(np.float64), 0, 0
    a, b = np.uint64(4 * step[4]), np.uint64(4 * step[5])
    for i in range(0, len(here), 2):
        labels_here, flags_here = unpack(here[i])
        for dead in range(4):
            if (dead & 1 and not free[1]) or (dead & 2 and not free[2]):
                continue
            labels, flags, weight = _enter(labels_here, flags_here, step, chance, dead)
            x, y = (labels >> a) & _NIBBLE, (labels >> b) & _NIBBLE
            joins = x != _U0 and y != _U0 and x != y
            target[record, 0] = target[record, 1] = _SAME
            for side in range(2):  # the link is down, is up; one of the two where they lead to the same
                after, held = labels, flags
                if side == 1:
                    if not joins:
                        continue
                    after, held = merge(labels, flags, x, y)
                    if step[8] == 0 and held & (held - _U1) == _U0 and held != _U0:
                        target[record, 1] = _SUCCESS
                        continue
                elif joins and not free[0]:
                    continue
                state, alive = _depart(after, held, step)
                if not alive:
                    target[record, side] = FAILURE
                    continue
                share = old[i + 1] * weight
                buffer[made], buffer[made + 2] = state, np.uint64(2 * record + side)
                new[made + 1] = share * chance[1 - side] if joins else share
                made += 3
            record += 1
    return made // 3


@numba.njit(cache=True)
def _look_up(buffer, made, there, table, bits):  # type: ignore[no-untyped-def]
    """Touch the memory that `_store` will need: all places at once, instead of one after the other."""
    shift, seen = np.uint64(64 - bits), _U0
    for i in range(0, 3 * made, 3):
        seen ^= there[2 * max(table[(buffer[i] * _MIX) >> shift], 0)]
    buffer[3 * made] = seen  # so that no compiler leaves it out


@numba.njit(cache=True)
def _store(buffer, made, there, table, bits, found, target):  # type: ignore[no-untyped-def]
    """Add the masses in the buffer to the next layer, write down where they went; return its states."""
    share, mass, shift = buffer.view(np.float64), there.view(np.float64), np.uint64(64 - bits)
    mask = np.uint64(len(table) - 1)
    for i in range(0, 3 * made, 3):
        state, place = buffer[i], (buffer[i] * _MIX) >> shift
        while True:
            entry = np.int64(table[place])
            if entry < 0:
                table[place] = entry = found
                there[2 * found], mass[2 * found + 1] = state, share[i + 1]
                found += 1
                break
            if there[2 * entry] == state:
                mass[2 * entry + 1] += share[i + 1]
                break
            place = (place + _U1) & mask
        target[np.int64(buffer[i + 2]) >> 1, np.int64(buffer[i + 2]) & 1] = entry + ENDS
    return found


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
def _larger(there, found, table, room):  # type: ignore[no-untyped-def]
    """At least so many places for the same states."""
    bits, table = _cleared(table, room)
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
