"""The layers of the frontier DP: where to find states, and how a row changes a layer in place.

States are pairs of state and mass; a hash table holds their places. A link between two live vertices leaves a
state as it is when it is down. A vertex that enters by a link to one that leaves with it can take over its
slot; then the state stays as it is when the link is up. In both cases only the other outcome is looked up: a
state that stays keeps its share of the mass, and what moves is listed until the whole layer is decided.
"""

import numba
import numpy as np

from relparallel.reliability.frontier.labels import (
    ALL,
    NONE,
    SOME,
    flagged,
    leave,
    merge,
    njit_borrowing,
    pack,
    together,
    unpack,
)

KIND, HOLDS = 9, 10  # columns of a row that say how it is decided, and which blocks hold a terminal
GENERAL, FRESH, LEAVE, MERGE, SUCCEED = 0, 1, 2, 3, 4  # from MERGE on in place
_SLOTS = 16
_NIBBLE = np.uint64(15)


_MIX = np.uint64(0x9E37_79B9_7F4A_7C15)
_BATCH = 64  # states that are looked up together
_CACHED = 2**17  # states that the caches hold, so that nothing is gained by looking ahead
_U0, _U1, _UNUSED = np.uint64(0), np.uint64(1), np.uint64(63)


@numba.njit(cache=True)
def indexed(table, layer, found, room):  # type: ignore[no-untyped-def]
    """Where to find the first states of a layer, with at least so many places; reuse the table if it fits."""
    bits = 5
    while (1 << bits) < room:
        bits += 1
    if len(table) < 1 << bits:
        table = np.empty(1 << bits, np.int32)
    for i in range(1 << bits):
        table[i] = -1
    shift, mask = np.uint64(64 - bits), np.uint64((1 << bits) - 1)
    for entry in range(found):
        place = (layer[2 * entry] * _MIX) >> shift
        while table[place] >= 0:
            place = (place + _U1) & mask
        table[place] = entry
    return table, bits


@numba.njit(cache=True)
def grown(layer, found, room):  # type: ignore[no-untyped-def]
    """The same states, with room for so many more, and as many again if they have to move."""
    if len(layer) >= 2 * (found + room):
        return layer
    larger = np.empty(4 * (found + room), np.uint64)
    for i in range(2 * found):  # an assignment of slices would compile texts of what may go wrong
        larger[i] = layer[i]
    return larger


@numba.njit(cache=True)
def add_states(part, layer, table, bits, found):  # type: ignore[no-untyped-def]
    """Add pairs of state and mass to a layer."""
    start = np.int64(0)
    while start < len(part):
        start, found = _add(part, start, layer, table, bits, found)
        room = min(_BATCH, (len(part) - start) // 2)
        layer = grown(layer, found, room)
        if 2 * (found + room) > 1 << bits:
            table, bits = indexed(table, layer, found, 3 * found + 2 * room)
    return layer, table, bits, found


@njit_borrowing
def _add(part, start, layer, table, bits, found):  # type: ignore[no-untyped-def]
    """Add batches from ``start`` on while there is room; return where the next one starts, and the states."""
    while start < len(part):
        stop = min(start + 2 * _BATCH, len(part))
        needed = 2 * found + stop - start
        if needed > min(len(layer), 1 << bits):
            break
        if found > _CACHED:
            found += _look_up(part, start, stop, layer, table, bits)
        found = _insert(part, start, stop, layer, table, bits, found)
        start = stop
    return start, found


@njit_borrowing
def _look_up(part, start, stop, layer, table, bits):  # type: ignore[no-untyped-def]
    """Touch the memory that `_insert` will need: all places at once, not one after the other; return 0."""
    shift, seen = np.uint64(64 - bits), _U0
    for i in range(start, stop, 2):
        seen ^= layer[2 * max(table[(part[i] * _MIX) >> shift], 0)]
    return np.int64(seen >> _UNUSED)  # no state has this bit, but no compiler knows and leaves the look out


@njit_borrowing
def _insert(part, start, stop, layer, table, bits, found):  # type: ignore[no-untyped-def]
    """Add the masses of one batch; return how many states there are."""
    share, mass, shift = part.view(np.float64), layer.view(np.float64), np.uint64(64 - bits)
    mask = np.uint64((1 << bits) - 1)
    for i in range(start, stop, 2):
        state = part[i]
        place = (state * _MIX) >> shift
        while True:
            entry = np.int64(table[place])
            if entry < 0:
                table[place] = entry = found
                layer[2 * found], mass[2 * found + 1] = state, share[i + 1]
                found += 1
                break
            if layer[2 * entry] == state:
                mass[2 * entry + 1] += share[i + 1]
                break
            place = (place + _U1) & mask
        part[i] = entry
    return found


@numba.njit(cache=True)
def planned_rows(steps, fails):  # type: ignore[no-untyped-def]
    """Choose slots anew, so that vertices take over from those that leave, and how to decide each row."""
    rows = np.empty((len(steps), HOLDS + 1), np.int64)
    place, free, mortal = np.empty(_SLOTS, np.int64), np.empty(_SLOTS, np.int64), np.empty(_SLOTS, np.bool_)
    room, alike, any_yet = _SLOTS, True, False  # all are terminals; one is
    for slot in range(_SLOTS):
        place[slot], free[slot], mortal[slot] = -1, _SLOTS - 1 - slot, False  # mortal: may be dead
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
