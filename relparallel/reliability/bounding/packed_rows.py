"""States of a wide frontier: one byte per slot of a live vertex, eight of them in a word.

The low seven bits of a byte are 0 where the slot is empty or its vertex dead, else the label 1 + the first
slot of its block; the first slot's own byte has its top bit set when the block holds a terminal. That leaves
room for 126 live vertices. All bytes of a word are compared and changed at once.
"""

from __future__ import annotations

from typing import Final

import numba
import numpy as np
from numba.cpython.unsafe.numbers import trailing_zeros

MAX_WIDTH: Final = 126

_ONES = np.uint64(0x0101_0101_0101_0101)
_LABELS = np.uint64(0x7F7F_7F7F_7F7F_7F7F)
_FLAGS = np.uint64(0x8080_8080_8080_8080)
_BYTE, _LABEL, _FLAG = np.uint64(255), np.uint64(127), np.uint64(128)
_U0, _U1, _U3, _U7, _U8 = (np.uint64(i) for i in (0, 1, 3, 7, 8))
_MIX, _HALF = np.uint64(0x9E37_79B9_7F4A_7C15), np.uint64(32)


@numba.njit(cache=True)
def _place(slot):  # type: ignore[no-untyped-def]
    """Word and shift of a slot."""
    return np.int64(slot) >> 3, np.uint64((np.int64(slot) & 7) << 3)


@numba.njit(cache=True)
def _same(word, label):  # type: ignore[no-untyped-def]
    """Mark, in the low bit of its byte, every slot of a word that carries a label."""
    return (~(((word & _LABELS) ^ (label * _ONES)) + _LABELS) & _FLAGS) >> _U7


@numba.njit(cache=True)
def _merge(state, x, y):  # type: ignore[no-untyped-def]
    """Join the blocks with labels x and y, in place; tell whether they hold a terminal."""
    low, high = min(x, y), max(x, y)
    word, shift = _place(high - _U1)
    flag = state[word] & (_FLAG << shift)
    state[word] ^= flag
    change = low ^ high
    for k in range(word, len(state)):  # the first slot of a block comes before all others
        state[k] ^= _same(state[k], high) * change
    word, shift = _place(low - _U1)
    if flag != _U0:
        state[word] |= _FLAG << shift
    return state[word] & (_FLAG << shift) != _U0


@numba.njit(cache=True)
def _leave(state, slot):  # type: ignore[no-untyped-def]
    """Empty a slot, in place; tell whether this closed a block that holds a terminal."""
    word, shift = _place(slot)
    byte = (state[word] >> shift) & _BYTE
    label = byte & _LABEL
    state[word] &= ~(_BYTE << shift)
    if label != np.uint64(slot + 1):  # it leads no block
        return False
    flag, first = byte & _FLAG, _U0
    for k in range(word, len(state)):
        same = _same(state[k], label)
        if same == _U0:
            continue
        if first == _U0:  # the next slot of the block leads
            at = np.uint64(trailing_zeros(same))  # type: ignore[call-arg]
            first = np.uint64(8 * k + 1) + (at >> _U3)
            state[k] |= flag << at
        state[k] ^= same * (label ^ first)
    return flag != _U0 and first == _U0


@numba.njit(cache=True)
def _alone(state):  # type: ignore[no-untyped-def]
    """Whether at most one block holds a terminal."""
    seen = False
    for word in state:
        flags = word & _FLAGS
        if flags != _U0:
            if seen or flags & (flags - _U1) != _U0:
                return False
            seen = True
    return True


@numba.njit(cache=True)
def row_bits(step, chance, bits, weights):  # type: ignore[no-untyped-def]
    """Fill in what each way in which the entering vertices can be adds to a state; return how many."""
    kinds = 0
    for dead in range(4):
        weight = 1.0
        bits[kinds] = _U0
        for side in range(2):
            weight *= chance[2 + 2 * side + ((dead >> side) & 1)]
            if step[side] >= 0 and not (dead >> side) & 1:
                word, shift = _place(step[side])
                bits[kinds, word] |= np.uint64(step[side] + 1 + 128 * step[2 + side]) << shift
        if weight > 0.0:
            weights[kinds] = weight
            kinds += 1
    return kinds


@numba.njit(cache=True)
def connected(here, flagged, words):  # type: ignore[no-untyped-def]
    """The state in which the vertices that are here are all up and in one block."""
    state, label = np.zeros(words, np.uint64), _U0
    for slot in range(len(here)):
        if here[slot]:
            word, shift = _place(slot)
            if label == _U0:
                label = np.uint64(slot + 1)
                state[word] = (label | (_FLAG if flagged else _U0)) << shift
            else:
                state[word] |= label << shift
    return state


@numba.njit(cache=True)
def find(states, count, state):  # type: ignore[no-untyped-def]
    """Place of a state among the first ``count``, or ``count``."""
    for i in range(count):
        same = True
        for k in range(len(state)):
            if states[i, k] != state[k]:
                same = False
                break
        if same:
            return i
    return count


@numba.njit(cache=True)
def store(states, table, count, adds):  # type: ignore[no-untyped-def]
    """Place of a state equal to that behind the first ``count``, or ``count``; remembered with ``adds``."""
    h = _U0
    for word in states[count]:
        h = (h ^ word) * _MIX
        h ^= h >> _HALF
    mask = np.uint64(len(table) - 1)
    h &= mask
    while True:
        place = table[h]
        if place < 0:
            if adds:
                table[h] = count
            return count
        same = True
        for k in range(states.shape[1]):
            if states[place, k] != states[count, k]:
                same = False
                break
        if same:
            return np.int64(place)
        h = (h + _U1) & mask


@numba.njit(cache=True)
def decide(states, masses, count, step, chance, ways, layer, sums):  # type: ignore[no-untyped-def]
    """Decide one link in all states of a layer."""
    (into, share, table), (bits, weights, kinds), found = layer, ways, np.int64(0)
    (word_a, a), (word_b, b) = _place(step[4]), _place(step[5])
    words = states.shape[1]
    for i in range(count):
        for kind in range(kinds):
            joins, last = True, 1
            while last >= 0:
                state = into[found]
                for k in range(words):
                    state[k] = states[i, k] | bits[kind, k]
                x, y = (state[word_a] >> a) & _LABEL, (state[word_b] >> b) & _LABEL
                joins = x != _U0 and y != _U0 and x != y
                factor = weights[kind]
                if joins:
                    factor *= chance[1 - last]
                    last -= 1
                else:
                    last = -1
                if factor == 0.0:
                    continue
                if joins and last == 0 and _merge(state, x, y) and step[8] == 0 and _alone(state):
                    end = 1
                elif (step[6] >= 0 and _leave(state, step[6])) or (step[7] >= 0 and _leave(state, step[7])):
                    end = 0
                else:
                    at = store(into, table, found, np.bool_(True))
                    if at == found:
                        share[found] = 0.0
                        found += 1
                    share[at, 0] += masses[i, 0] * factor
                    share[at, 1] += masses[i, 1] * factor
                    continue
                sums[end, 0] += masses[i, 0] * factor
                sums[end, 1] += masses[i, 1] * factor
    return found
