"""The sweep forth that is remembered: the frontier DP writes down where every state goes.

It decides as `compiled_sweep` does. Where a layer changes in place, a record says from which
state to which a share moves. Otherwise, for each state of a layer, and each way in which the entering
vertices can be, a record says to which state of the next layer the link leads when down and when up.

What has chance 0 is followed only where a derivative needs it, from states that can be reached: what two
parts with chance 0 would come to together is left out.
"""

from typing import NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from relparallel.reliability.frontier.labels import ALL, depart, merge, pack, together, unpack
from relparallel.reliability.frontier.layers import (
    HOLDS,
    KIND,
    MERGE,
    SUCCEED,
    add_states,
    decide_in_place,
    grown,
    indexed,
    tell_apart,
    two_sum,
)

_NIBBLE, _U0 = np.uint64(15), np.uint64(0)
SUCCESS, FAILURE, ENDS = 0, 1, 2  # the two ends take the first places of a layer, its states the next
_SAME = -1  # a record's other side
_BATCH = 256  # states at a time


class Trace(NamedTuple):
    """Where the states of some rows go."""

    target: NDArray[np.int32]
    mass: NDArray[np.float64]
    first: NDArray[np.int64]
    records: NDArray[np.int64]


class Space(NamedTuple):
    """Arrays that the sweep grows, which the next one may have: new pages cost more than what is written."""

    here: NDArray[np.uint64]
    there: NDArray[np.uint64]
    table: NDArray[np.int32]
    sources: NDArray[np.int32]
    target: NDArray[np.int32]
    mass: NDArray[np.float64]


@numba.njit(cache=True)
def no_space():  # type: ignore[no-untyped-def]
    """Nothing yet."""
    words, places = np.empty(64, np.uint64), np.empty(64, np.int32)
    return Space(words, words.copy(), places, places.copy(), np.empty((0, 2), np.int32), np.empty(0))


@numba.njit(cache=True)
def forth(rows, chances, free, lean, begin, layer, max_states, most, sums, space):  # type: ignore[no-untyped-def]
    """Decide links from row ``begin`` on while the trace has room."""
    rows_left, row, count, peak = len(rows) - begin, begin, len(layer) // 2, 1
    most = max(most, _most_records(rows[row], free[row], count))
    first, records = np.zeros(rows_left + 1, np.int64), np.zeros(rows_left + 1, np.int64)
    here, there, table, sources, target, mass = space
    if len(mass) < most:
        target, mass = np.empty((most, 2), np.int32), np.empty(most)
    here, bits = grown(here, 0, count), -1
    for i in range(2 * count):
        here[i] = layer[i]
    buffer, origin = np.empty(16 * _BATCH, np.uint64), np.empty(8 * _BATCH, np.int64)
    while row < len(rows) and records[row - begin] + _most_records(rows[row], free[row], count) <= most:
        i, kind = row - begin, rows[row, KIND]
        m, r = first[i], records[i]
        if row > 0 and rows[row - 1, HOLDS] == ALL != rows[row, HOLDS]:
            tell_apart(here[: 2 * count])
            bits = -1
        if kind >= MERGE:
            there = grown(there, 0, count)
            if len(sources) < count:
                sources = np.empty(2 * count, np.int32)
            made, ends = decide_in_place(here[: 2 * count], rows[row], chances[row], sums, there, sources)
            if chances[row, 1 if kind == SUCCEED else 0] == 0.0:
                made = _kept(here, there, sources, made)
            first[i + 1], records[i + 1] = m + made + ends, r + made + ends
            end = FAILURE if kind == SUCCEED else SUCCESS
            _record_shares(here, there[: 2 * count], sources, made, ends, end, target[r:], mass[m:])
            if bits < 0:
                table, bits = indexed(table, here, count, 2 * count + made)
            here, table, bits, found = add_states(there[: 2 * made], here, table, bits, count)
            for k in range(made):
                target[r + k, 1] = np.int64(there[2 * k]) + ENDS
        else:
            first[i + 1], records[i + 1] = m + count, r + _most_records(rows[row], free[row], count)
            masses = here.view(np.float64)
            for k in range(count):
                mass[m + k] = masses[2 * k + 1]
            there, table, bits, found = _decide(
                here[: 2 * count], rows[row], chances[row], free[row], lean, target[r : records[i + 1]],
                there, table, buffer, origin, sums,
            )  # fmt: skip
            here, there = there, here
        peak, count = max(peak, found), found
        if peak > max_states:
            break
        row += 1
    used = row - begin
    trace = Trace(target, mass, first[: used + 1], records[: used + 1])
    space = Space(here, there, table, sources, target[:0], mass[:0])
    return row, here[: 2 * count].copy(), trace, peak, space


@numba.njit(cache=True)
def _most_records(row, free, states):  # type: ignore[no-untyped-def]
    """Records of one row: at most so many where it is in place, else just as many."""
    return states if row[KIND] >= MERGE else states * (1 + free[1]) * (1 + free[2])


@numba.njit(cache=True)
def _kept(here, moved, sources, made):  # type: ignore[no-untyped-def]
    """Keep what moves with chance 0 only from states that have mass; return how many those are."""
    stays, kept = here.view(np.float64), 0
    for k in range(made):
        if stays[2 * sources[k] + 1] > 0.0:
            moved[2 * kept], moved[2 * kept + 1], sources[kept] = moved[2 * k], moved[2 * k + 1], sources[k]
            kept += 1
    return kept


@numba.njit(cache=True)
def _record_shares(here, moved, sources, made, ends, end, target, mass):  # type: ignore[no-untyped-def]
    """Write down from where shares move and the mass there was, which is that of both shares."""
    stays, share = here.view(np.float64), moved.view(np.float64)
    for k in range(made):
        target[k, 0], mass[k] = ENDS + sources[k], share[2 * k + 1] + stays[2 * sources[k] + 1]
    for k in range(ends):
        at = len(moved) - 2 * (k + 1)
        source = np.int64(moved[at])
        target[made + k, 0], target[made + k, 1] = ENDS + source, end
        mass[made + k] = share[at + 1] + stays[2 * source + 1]


@numba.njit(cache=True)
def _decide(here, row, chance, free, lean, target, there, table, buffer, origin, sums):  # type: ignore[no-untyped-def]
    """Decide one link in all states of a layer, a batch at a time."""
    states, ways, found = len(here) // 2, (1 + free[1]) * (1 + free[2]), 0
    table, bits = indexed(table, there, 0, len(here))
    for start in range(0, states, _BATCH):
        end = min(start + _BATCH, states)
        records = target[ways * start : ways * end]
        made = _expand(here[2 * start : 2 * end], row, chance, free, lean, records, buffer, origin, sums)
        there, table, bits, found = add_states(buffer[: 2 * made], there, table, bits, found)
        for k in range(made):
            records[origin[k] >> 1, origin[k] & 1] = np.int64(buffer[2 * k]) + ENDS
        for record in range(len(records)):
            for side in range(2):
                if records[record, side] == _SAME:
                    records[record, side] = records[record, 1 - side]
    return there, table, bits, found


@numba.njit(cache=True)
def _expand(here, step, chance, free, lean, target, buffer, origin, sums):  # type: ignore[no-untyped-def]
    """Decide one link in some states: what they become goes to the buffer; whence: record and side."""
    old, new, made, record = here.view(np.float64), buffer.view(np.float64), 0, 0
    a, b = np.uint64(4 * step[4]), np.uint64(4 * step[5])
    for i in range(0, len(here), 2):
        labels_here, flags_here = unpack(here[i], step[HOLDS])
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
                    if step[8] == 0 and together(after, held, step[HOLDS]):
                        target[record, 1] = SUCCESS
                        sums[0], sums[1] = two_sum(sums[0], sums[1], old[i + 1] * weight * chance[0])
                        continue
                elif joins and not free[0]:
                    continue
                own = weight * (chance[1 - side] if joins else 1.0)
                share = old[i + 1] * own
                if share == 0.0 and (lean or (own == 0.0 and old[i + 1] == 0.0)):  # it does not count
                    target[record, side] = FAILURE
                    continue
                after, held, closed = depart(after, held, step, step[HOLDS])
                if closed:
                    target[record, side] = FAILURE
                    sums[2], sums[3] = two_sum(sums[2], sums[3], share)
                    continue
                buffer[2 * made], origin[made] = pack(after, held), 2 * record + side
                new[2 * made + 1] = share
                made += 1
            record += 1
    return made


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
