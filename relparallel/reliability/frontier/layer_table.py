"""The states of a layer and where to find them: pairs of state and mass, and a hash table of their places."""

from __future__ import annotations

import numba
import numpy as np

from relparallel.reliability.frontier.compiling import njit_borrowing

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
