"""How each row of a programme is decided, and in which slots, so that most states stay where they are.

A link between two live vertices leaves a state as it is when it is down. A vertex that enters by a link to
one that leaves with it can take over its slot; then the state stays as it is when the link is up. In both
cases only the other outcome has to be looked up, and a layer becomes the next one in place: a state that
stays keeps its share of the mass, and what moves is listed until the whole layer is decided.
"""

from __future__ import annotations

import numba
import numpy as np

from relparallel.reliability.frontier.compiling import njit_borrowing
from relparallel.reliability.frontier.labels import (
    ALL,
    NONE,
    SOME,
    flagged,
    leave,
    merge,
    pack,
    together,
    unpack,
)

KIND, HOLDS = 9, 10  # columns of a row that say how it is decided, and which blocks hold a terminal
GENERAL, FRESH, LEAVE, MERGE, SUCCEED = 0, 1, 2, 3, 4  # from MERGE on in place
_SLOTS = 16


@numba.njit(cache=True)
def planned_rows(steps, fails):  # type: ignore[no-untyped-def]
    """Choose slots anew, so that vertices take over from those that leave, and how to decide each row."""
    rows = np.empty((len(steps), HOLDS + 1), np.int64)
    place, free, room = np.full(_SLOTS, -1, np.int64), np.arange(_SLOTS - 1, -1, -1), _SLOTS
    mortal, alike, any_yet = np.zeros(_SLOTS, np.bool_), True, False  # may be dead; all are terminals; one is
    for r in range(len(steps)):
        step, row = steps[r], rows[r]
        for side in range(2):
            alike &= step[side] < 0 or (step[2 + side] == 1 and not fails[r, 1 + side])
            any_yet |= step[2 + side] == 1
        holds = ALL if alike else SOME if any_yet else NONE
        kind = _kind(step, fails[r], place, mortal, holds)
        row[8], row[KIND], row[HOLDS] = step[8], kind, holds
        row[2], row[3] = (step[2], step[3]) if holds == SOME else (0, 0)
        for side in range(2):
            row[side] = -1
            if step[side] >= 0:
                if kind == SUCCEED:
                    slot = place[step[5 - side]]
                else:
                    room -= 1
                    slot = free[room]
                row[side] = place[step[side]] = slot
                mortal[slot] = fails[r, 1 + side]
        for side in range(2):
            row[4 + side], row[6 + side] = place[step[4 + side]], -1
            if step[6 + side] >= 0:
                row[6 + side] = place[step[6 + side]]
                if kind != SUCCEED:
                    free[room] = row[6 + side]
                    room += 1
    return rows


@njit_borrowing
def _kind(step, fails, place, mortal, holds):  # type: ignore[no-untyped-def]
    """How one row is decided."""
    enters = (step[0] >= 0) + (step[1] >= 0)
    leaves = (step[6] >= 0) + (step[7] >= 0)
    if enters == 0:
        if leaves == 1:
            return LEAVE
        return MERGE if leaves == 0 and fails[0] else GENERAL
    if holds == SOME and (step[2] == 1 or step[3] == 1):  # the new terminal may flag a block: then it differs
        return GENERAL
    if leaves == 0:
        return FRESH
    side = 0 if step[0] >= 0 else 1
    if enters == 2 or leaves == 2 or step[6 + side] >= 0 or not fails[0] or fails[1 + side]:
        return GENERAL
    if mortal[place[step[5 - side]]] or (step[2 + side] == 1 and step[8] == 0):  # the last may be a success
        return GENERAL
    return SUCCEED


_NIBBLE = np.uint64(15)
_U0 = np.uint64(0)


@njit_borrowing
def decide_in_place(layer, row, chance, sums, moved, sources):  # type: ignore[no-untyped-def]
    """Decide one link in all states of a layer."""
    if row[KIND] == SUCCEED:
        return _succeed(layer, row, chance, sums, moved, sources)
    return _merge(layer, row, chance, sums, moved, sources)


@njit_borrowing
def _merge(layer, row, chance, sums, moved, sources):  # type: ignore[no-untyped-def]
    """Decide a link between vertices that stay: down, nothing changes; up, their blocks become one."""
    mass, share = layer.view(np.float64), moved.view(np.float64)
    up, down, last, holds, traced = chance[0], chance[1], row[8] == 0, row[HOLDS], len(sources) > 0
    a, b = np.uint64(4 * row[4]), np.uint64(4 * row[5])
    made, ends, success, rest = 0, 0, sums[0], sums[1]
    for i in range(0, len(layer), 2):
        labels, flags = unpack(layer[i], holds)
        x, y = (labels >> a) & _NIBBLE, (labels >> b) & _NIBBLE
        if x in (_U0, y) or y == _U0:
            continue
        part = mass[i + 1] * up
        mass[i + 1] *= down
        labels, flags = merge(labels, flags, x, y)
        if last and together(labels, flags, holds):
            success, rest = two_sum(success, rest, part)
            ends += 1
            moved[len(layer) - 2 * ends], share[len(layer) - 2 * ends + 1] = i >> 1, part
        else:
            moved[2 * made], share[2 * made + 1] = pack(labels, flags), part
            if traced:
                sources[made] = i >> 1
            made += 1
    sums[0], sums[1] = success, rest
    return made, ends


@njit_borrowing
def _succeed(layer, row, chance, sums, moved, sources):  # type: ignore[no-untyped-def]
    """Decide the last link of a vertex, whose slot the other end takes over: up, nothing changes."""
    mass, share = layer.view(np.float64), moved.view(np.float64)
    up, down, side, traced = chance[0], chance[1], 0 if row[0] >= 0 else 1, len(sources) > 0
    holds = row[HOLDS]
    at = np.uint64(4 * row[side])
    alone, flag = np.uint64(row[side] + 1) << at, np.uint64(row[2 + side]) << at
    made, ends, failure, rest = 0, 0, sums[2], sums[3]
    for i in range(0, len(layer), 2):
        labels, flags = unpack(layer[i], holds)
        labels, flags, closed = leave(labels, flags, at, holds)
        part = mass[i + 1] * down
        if closed:
            failure, rest = two_sum(failure, rest, part)
            ends += 1
            moved[len(layer) - 2 * ends], share[len(layer) - 2 * ends + 1] = i >> 1, part
        else:
            state = pack(labels | alone, flags | flag)
            if state == layer[i]:  # it was alone without a terminal, and so is its successor
                continue
            moved[2 * made], share[2 * made + 1] = state, part
            if traced:
                sources[made] = i >> 1
            made += 1
        mass[i + 1] *= up
    sums[2], sums[3] = failure, rest
    return made, ends


@njit_borrowing
def tell_apart(layer):  # type: ignore[no-untyped-def]
    """Write flags into states, all of whose blocks hold a terminal, in place."""
    for i in range(0, len(layer), 2):
        layer[i] = flagged(layer[i])


@numba.njit(cache=True)
def two_sum(total, rest, term):  # type: ignore[no-untyped-def]
    """Add a term to a running sum and what rounding lost to ``rest`` (Knuth's two-sum)."""
    new = total + term
    back = new - total
    return new, rest + ((total - (new - back)) + (term - back))
