"""The sweep of the frontier programme: layer after layer of states with their probabilities.

A layer is an array of pairs, state and mass, in the order in which its states were found; a hash table says
where each of them is. States are decided in batches, and what a batch becomes is looked up together, so that
the memory works on many places at a time.
"""

from __future__ import annotations

from typing import NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from relparallel.reliability.programme.labels import leave, merge, pack, unpack

__all__ = ["sweep"]

_NIBBLE = np.uint64(15)
_MIX = np.uint64(0x9E37_79B9_7F4A_7C15)
_BATCH = 64  # states that are decided before what they become is stored
_CACHED = 2**14  # states that the caches hold, so that nothing is gained by looking ahead
_U0, _U1 = np.uint64(0), np.uint64(1)


class Ways(NamedTuple):
    """How the entering vertices can be, up or down: mass, labels and flags that they add, [4]."""

    weight: NDArray[np.float64]
    labels: NDArray[np.uint64]
    flags: NDArray[np.uint64]


@numba.njit(cache=True)
def sweep(steps, chances, max_states, max_visits):  # type: ignore[no-untyped-def]
    """Decide all links; stop early, with peak > max_states or visited > max_visits, when there are too many.

    Parameters
    ----------
    steps, chances : int64[m, 9], float64[m, 6]
        See `Programme`.
    max_states, max_visits : int
        Largest layer, and most states of all layers.

    Returns
    -------
    success, failure : float
        Mass in which the terminals are connected, and in which they are not.
    peak, visited : int
        States of the largest layer, and of all layers.
    """
    here, there = np.zeros(2, np.uint64), np.empty(32 * _BATCH, np.uint64)
    here.view(np.float64)[1] = 1.0
    table, buffer = np.empty(64, np.int32), np.empty(16 * _BATCH + 2, np.uint64)
    count, peak, total, sums = 1, 1, 0, np.zeros(4)
    ways = Ways(np.empty(4), np.empty(4, np.uint64), np.empty(4, np.uint64))
    for row in range(len(steps)):
        kinds, found = _ways(steps[row], chances[row], ways), 0
        table, bits = _index(table, there, 0, 2 * count)
        for start in range(0, count, _BATCH):
            part = here[2 * start : 2 * min(start + _BATCH, count)]
            made = _expand(part, steps[row], chances[row], ways, kinds, sums, buffer)
            if len(there) < 2 * found + made:
                larger = np.empty(3 * found + 2 * made, np.uint64)
                larger[: 2 * found] = there[: 2 * found]
                there = larger
            if 2 * found + made > 1 << bits:
                table, bits = _index(table, there, found, 3 * found + made)
            if count > _CACHED:
                _look_up(buffer, made, there, table, bits)
            found = _insert(buffer, made, there, table, bits, found)
            if found > max_states or total + found > max_visits:
                return sums[0], sums[2], max(peak, found), total + found
        here, there, count = there, here, found
        total += count
        peak = max(peak, count)
    return sums[0] + sums[1], sums[2] + sums[3], peak, total


@numba.njit(cache=True)
def _ways(step, chance, ways):  # type: ignore[no-untyped-def]
    """Fill in how the entering vertices can be: their mass, labels and flags; return the number of ways."""
    kinds = 0
    for dead in range(4):
        weight, labels, flags = 1.0, _U0, _U0
        for side in range(2):
            if (dead >> side) & 1:
                weight *= chance[3 + 2 * side]
            else:
                weight *= chance[2 + 2 * side]
                if step[side] >= 0:
                    shift = np.uint64(4 * step[side])
                    labels |= np.uint64(step[side] + 1) << shift
                    flags |= np.uint64(step[2 + side]) << shift
        if weight > 0.0:
            ways.weight[kinds], ways.labels[kinds], ways.flags[kinds] = weight, labels, flags
            kinds += 1
    return kinds


@numba.njit(cache=True)
def _expand(here, step, chance, ways, kinds, sums, buffer):  # type: ignore[no-untyped-def]
    """Decide one link in some states: write what they become to the buffer, return how many that are."""
    old, new = here.view(np.float64), buffer.view(np.float64)
    up, down = chance[0], chance[1]
    a, b = np.uint64(4 * step[4]), np.uint64(4 * step[5])
    leave_a, leave_b, last = step[6] >= 0, step[7] >= 0, step[8] == 0
    made, success, failure, success_rest, failure_rest = 0, sums[0], sums[2], sums[1], sums[3]
    for i in range(0, len(here), 2):
        old_labels, old_flags = unpack(here[i])
        for kind in range(kinds):
            weight = old[i + 1] * ways.weight[kind]
            labels, flags = old_labels | ways.labels[kind], old_flags | ways.flags[kind]
            x, y = (labels >> a) & _NIBBLE, (labels >> b) & _NIBBLE
            joins = x != _U0 and y != _U0 and x != y
            for connected in range(2 if joins else 1):
                after, held, share, closed = labels, flags, weight, False
                if joins:
                    share *= up if connected else down
                    if connected:
                        after, held = merge(labels, flags, x, y)
                        if last and held & (held - _U1) == _U0 and held != _U0:
                            success, success_rest = _sum(success, success_rest, share)
                            continue
                if share == 0.0:
                    continue
                if leave_a:
                    after, held, closed = leave(after, held, a)
                if leave_b and not closed:
                    after, held, closed = leave(after, held, b)
                if closed:
                    failure, failure_rest = _sum(failure, failure_rest, share)
                    continue
                buffer[made], new[made + 1] = pack(after, held), share
                made += 2
    sums[0], sums[1], sums[2], sums[3] = success, success_rest, failure, failure_rest
    return made


@numba.njit(cache=True)
def _look_up(buffer, made, there, table, bits):  # type: ignore[no-untyped-def]
    """Touch the memory that `_insert` will need: all places at once, instead of one after the other."""
    shift, seen = np.uint64(64 - bits), _U0
    for i in range(0, made, 2):
        seen ^= there[2 * max(table[(buffer[i] * _MIX) >> shift], 0)]
    buffer[made] = seen  # so that no compiler leaves it out


@numba.njit(cache=True)
def _insert(buffer, made, there, table, bits, found):  # type: ignore[no-untyped-def]
    """Add the masses in the buffer to the states of the new layer; return how many states it has."""
    share, mass, shift = buffer.view(np.float64), there.view(np.float64), np.uint64(64 - bits)
    mask = np.uint64((1 << bits) - 1)
    for i in range(0, made, 2):
        state = buffer[i]
        place = (state * _MIX) >> shift
        while True:
            entry = 2 * np.int64(table[place])
            if entry < 0:
                table[place] = found
                there[2 * found], mass[2 * found + 1] = state, share[i + 1]
                found += 1
                break
            if there[entry] == state:
                mass[entry + 1] += share[i + 1]
                break
            place = (place + _U1) & mask
    return found


@numba.njit(cache=True)
def _index(table, there, found, room):  # type: ignore[no-untyped-def]
    """Where to find the first states of a layer, with at least so many places; reuse the table if it fits."""
    bits = 5
    while (1 << bits) < room:
        bits += 1
    if len(table) < 1 << bits:
        table = np.empty(1 << bits, np.int32)
    table[: 1 << bits] = -1
    shift, mask = np.uint64(64 - bits), np.uint64((1 << bits) - 1)
    for entry in range(found):
        place = (there[2 * entry] * _MIX) >> shift
        while table[place] >= 0:
            place = (place + _U1) & mask
        table[place] = entry
    return table, bits


@numba.njit(cache=True)
def _sum(total, rest, term):  # type: ignore[no-untyped-def]
    """Add a term to a running sum and what rounding lost to ``rest`` (Knuth's two-sum)."""
    new = total + term
    back = new - total
    return new, rest + ((total - (new - back)) + (term - back))
