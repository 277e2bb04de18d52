"""States of a wide frontier, and what becomes of those for which a layer has no place.

One byte per slot of a live vertex, eight in a word. The low seven bits are 0 where the slot is empty or its
vertex dead, else the label 1 + the first slot of its block; the top bit of the first slot's byte says that
the block holds a terminal. That leaves room for 126 live vertices; all bytes of a word change at once.

A state is *better* than another if what is connected in the other is connected in it, and *worse* the other
way round. The best one has all live vertices up and in one block. A worse one: the largest block that holds
terminals stays, all else falls apart into single vertices; and so that few states come out of many, vertices
that leave one after the other form groups, and the whole group falls apart where one of its vertices is
outside of the largest block. Terminals that have left stay with one vertex of their block.
"""

import math
from typing import Final, NamedTuple

import numba
import numpy as np
from numba.cpython.unsafe.numbers import trailing_zeros
from numpy.typing import NDArray

_EXPONENT = np.uint64(52)
_LOW, _TOP = 127, 128  # the same of one byte
_HELD = 1000  # more than any block has vertices


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


_U0 = np.uint64(0)


class Live(NamedTuple):
    """The vertices in the slots."""

    here: NDArray[np.bool_]
    terminal: NDArray[np.uint8]
    group: NDArray[np.uint64]


@numba.njit(cache=True)
def truncate(layer, count, most, spare, live, pending, begun, sums):  # type: ignore[no-untyped-def]
    """Keep the likeliest states, in place, and move the mass of the others."""
    states, masses = layer[:2]
    bar, ties = _negligible(masses[:count], spare), count
    if count > most:
        shares = np.maximum(masses[:count, 0], masses[:count, 1])
        first = max(most - most // 4 - 1, 0)
        needed = np.partition(shares, count - first - 1)[count - first - 1]
        if needed >= bar:
            bar, ties = needed, 0
    kept, lifted = np.int64(0), 0.0  # a literal 0 would compile `_moved` twice
    for i in range(count):
        share = max(masses[i, 0], masses[i, 1])
        if share > bar or (share == bar and ties > 0):
            if kept < i:
                for k in range(states.shape[1]):
                    states[kept, k], states[i, k] = states[i, k], states[kept, k]
                for k in range(2):
                    masses[kept, k], masses[i, k] = masses[i, k], masses[kept, k]
            kept += 1
        else:
            lifted += masses[i, 1]
    return kept if kept == count else _moved(layer, kept, count, most, lifted, live, pending, begun, sums)


@numba.njit(cache=True)
def _moved(layer, kept, count, most, lifted, live, pending, begun, sums):  # type: ignore[no-untyped-def]
    """Move the mass of the states from ``kept`` on; return how many states are left."""
    states, masses, table = layer
    left, words, size = kept, states.shape[1], np.zeros(128, np.int64)
    worse, room = np.empty(words, np.uint64), (most - 1 - most // 8, most - 1)
    table[:] = -1
    for i in range(kept):
        store(states, table, i, np.bool_(True))
    for i in range(kept, count):
        mass = masses[i, 0]
        if mass == 0.0:
            continue
        worse[:] = states[i]
        for level in range(2):
            _lower(worse, live.group[level], live.terminal, size)
            states[left] = worse  # whose own mass has moved, or is that of this state
            at = store(states, table, left, left < room[level])
            if at < left:
                masses[at, 0] += mass
                break
            if left < room[level]:
                masses[left, 0], masses[left, 1] = mass, 0.0
                left += 1
                break
        else:
            sums[2, 0] += mass
    if pending == 0:
        sums[1, 1] += lifted
        return left
    best = connected(live.here, begun, words)
    at = find(states, left, best)
    if at == left:
        states[left], masses[left] = best, 0.0
        left += 1
    masses[at, 1] += lifted
    return left


@numba.njit(cache=True)
def _lower(state, group, terminal, size):  # type: ignore[no-untyped-def]
    """Make a state worse, in place; ``size`` holds zeros, before and after."""
    slots, hit, leader, largest = state.view(np.uint8), _U0, -1, 0
    for slot in range(len(group)):
        size[slots[slot] & _LOW] += 1 + (slots[slot] >> 7) * _HELD
    size[0] = 0
    for label in range(1, len(group) + 1):
        if size[label] > size[largest]:
            largest = label
    held = size[largest] > _HELD
    for slot in range(len(group)):
        label = slots[slot] & _LOW
        size[label] = 0
        if label not in (0, largest):
            hit |= group[slot]
    for slot in range(len(group) - 1, -1, -1):
        if slots[slot] & _LOW == largest and hit & group[slot] == _U0:
            leader = slot
    for slot in range(len(group)):
        label, flag = slots[slot] & _LOW, slots[slot] & _TOP
        if label == 0:
            continue
        if label == largest:
            if leader >= 0 and hit & group[slot] == _U0:
                slots[slot] = leader + 1 + (_TOP if held and slot == leader else 0)
                continue
            flag = flag if leader < 0 else 0
        slots[slot] = (slot + 1) | flag | terminal[slot]


@numba.njit(cache=True)
def _negligible(masses, spare):  # type: ignore[no-untyped-def]
    """A power of two such that all states with smaller masses have no more lowered mass than is to spare."""
    if spare <= 0.0:
        return 0.0
    shares = np.zeros(2048)
    one = np.empty(1)
    for i in range(len(masses)):
        one[0] = max(masses[i, 0], masses[i, 1])
        shares[np.int64(one.view(np.uint64)[0] >> _EXPONENT)] += masses[i, 0]
    for exponent in range(2048):
        spare -= shares[exponent]
        if spare < 0.0:
            return math.ldexp(1.0, exponent - 1023) if exponent > 0 else 0.0
    return math.inf
