"""What becomes of the states for which a layer has no place: they move on to better and to worse ones.

A state is *better* than another if what is connected in the other is connected in it, and *worse* the other
way round. The best one has all live vertices up and in one block. A worse one is found as follows: the
largest block that holds terminals stays, all else falls apart into single vertices; and so that few states
come out of many, vertices that leave one after the other form groups, and the whole group falls apart where
one of its vertices is outside of the largest block. Terminals that have left stay with one vertex of their
block.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from relparallel.reliability.bounding.packed_rows import connected, find, store

_EXPONENT = np.uint64(52)
_LABEL, _FLAG = 127, 128
_U0 = np.uint64(0)
_HELD = 1000  # more than any block has vertices


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
        size[slots[slot] & _LABEL] += 1 + (slots[slot] >> 7) * _HELD
    size[0] = 0
    for label in range(1, len(group) + 1):
        if size[label] > size[largest]:
            largest = label
    held = size[largest] > _HELD
    for slot in range(len(group)):
        label = slots[slot] & _LABEL
        size[label] = 0
        if label not in (0, largest):
            hit |= group[slot]
    for slot in range(len(group) - 1, -1, -1):
        if slots[slot] & _LABEL == largest and hit & group[slot] == _U0:
            leader = slot
    for slot in range(len(group)):
        label, flag = slots[slot] & _LABEL, slots[slot] & _FLAG
        if label == 0:
            continue
        if label == largest:
            if leader >= 0 and hit & group[slot] == _U0:
                slots[slot] = leader + 1 + (_FLAG if held and slot == leader else 0)
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
