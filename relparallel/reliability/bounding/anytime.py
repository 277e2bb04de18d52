"""The frontier programme with a limit on its states: bounds at any time, exact when nothing was dropped.

The programme of `frontier` stops where a layer holds too many states. Here a layer
that grows beyond the limit keeps its likeliest states and drops the others. The mass that has failed and the
mass that has succeeded are then lower bounds of U and R, and the mass that was dropped is all that is open:

    failed <= U <= failed + dropped .

A state is a row of bytes, one per slot of a live vertex: 0 when the slot is empty or its vertex dead, else
1 + the first slot of its block, plus 128 when the block holds a terminal. That is slower than the four-bit
labels of the exact programme, and has room for 126 live vertices.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numba
import numpy as np

from relparallel.reliability.programme.blocks import Bracket
from relparallel.reliability.programme.frontier import Programme

__all__ = ["Truncated", "anytime_bracket", "run_truncated"]

MAX_WIDTH: Final = 126
_FIRST: Final = 2**10  # states of the first round
_GROWTH: Final = 8
_ROUNDING: Final = 2.0**-49  # relative, per visited state: each takes at most eight products and sums
_B0, _LABEL, _FLAG = np.uint8(0), np.uint8(127), np.uint8(128)


class Truncated(NamedTuple):
    """Mass that failed, succeeded and was dropped, the largest layer, and the states of all layers."""

    failure: float
    success: float
    dropped: float
    peak: int
    visited: int

    @property
    def bracket(self) -> Bracket:
        """Bounds of the unreliability."""
        slack = 1e-12 + _ROUNDING * self.visited
        return self.failure * (1 - slack), min((self.failure + self.dropped) * (1 + slack), 1.0)


def anytime_bracket(programme: Programme, rtol: float, max_states: int) -> Truncated:
    """Keep eight times as many states per round until the bracket is tight or ``max_states`` are not enough.

    A programme with more than 126 live vertices leaves everything open.
    """
    if programme.width > MAX_WIDTH:
        return Truncated(0.0, 0.0, 1.0, 0, 0)
    states = min(_FIRST, max_states)
    while True:
        found = run_truncated(programme, states)
        if found.dropped <= rtol * found.failure or states >= max_states:
            return found
        states = min(states * _GROWTH, max_states)


def run_truncated(programme: Programme, max_states: int) -> Truncated:
    """Decide all links, with at most ``max_states`` states kept per layer."""
    return Truncated(
        *_sweep(np.ascontiguousarray(programme.steps[:, :9]), programme.chances, programme.width, max_states)
    )


@numba.njit(cache=True)
def _merge(row, x, y, pending):  # type: ignore[no-untyped-def]
    """Join the blocks with labels x and y, in place; tell whether this connects all terminals."""
    low, high, flag = min(x, y), max(x, y), _B0
    for byte in row:
        if byte & _LABEL in (low, high):
            flag |= byte & _FLAG
    alone = pending == 0 and flag != _B0
    for s in range(len(row)):
        label = row[s] & _LABEL
        if label in (low, high):
            row[s] = low | flag
        elif row[s] & _FLAG:
            alone = False
    return alone


@numba.njit(cache=True)
def _leave(row, slot):  # type: ignore[no-untyped-def]
    """Empty a slot, in place; tell whether this closed a block that holds a terminal."""
    label, flag, leader = row[slot] & _LABEL, row[slot] & _FLAG, _B0
    row[slot] = _B0
    if label == _B0:
        return False
    for s in range(len(row)):
        if row[s] & _LABEL == label:
            if leader == _B0:
                leader = np.uint8(s + 1)
            row[s] = leader | flag
    return leader == _B0 and flag != _B0


@numba.njit(cache=True)
def _store(row, share, states, masses, table, count):  # type: ignore[no-untyped-def]
    """Add a state, which is appended when new; return the new count."""
    h = np.uint64(14695981039346656037)
    for byte in row:
        h = (h ^ np.uint64(byte)) * np.uint64(1099511628211)
    mask = np.uint64(len(table) - 1)
    h = (h ^ (h >> np.uint64(29))) & mask
    while True:
        place = table[h]
        if place < 0:
            table[h], masses[count] = count, share
            states[count] = row
            return count + 1
        same = True
        for s in range(len(row)):
            if states[place, s] != row[s]:
                same = False
                break
        if same:
            masses[place] += share
            return count
        h = (h + np.uint64(1)) & mask


@numba.njit(cache=True)
def _truncate(states, masses, count, most):  # type: ignore[no-untyped-def]
    """Keep the likeliest states, in place and in their order; return their number and the mass dropped."""
    if count <= most:
        return count, 0.0
    bar = np.partition(masses[:count], count - most)[count - most]
    ties, dropped, kept = most - np.sum(masses[:count] > bar), 0.0, 0
    for i in range(count):
        tie = masses[i] == bar
        if masses[i] > bar or (tie and ties > 0):
            ties -= tie
            states[kept], masses[kept] = states[i], masses[i]
            kept += 1
        else:
            dropped += masses[i]
    return kept, dropped


@numba.njit(cache=True)
def _branch(row, step, chance, weight, states, masses, table, count):  # type: ignore[no-untyped-def]
    """Follow one state through one link; return the count, and the mass that succeeded and failed."""
    enter_a, enter_b, terminal_a, terminal_b, at_a, at_b, leave_a, leave_b, pending = step
    up, down, up_a, down_a, up_b, down_b = chance
    success, failure, now = 0.0, 0.0, np.empty_like(row)
    for variant in range(8):
        dead_a, dead_b, connected = variant & 1, (variant >> 1) & 1, variant >> 2
        share = weight * (down_a if dead_a else up_a) * (down_b if dead_b else up_b)
        if share == 0.0:
            continue
        now[:] = row
        if enter_a >= 0 and not dead_a:
            now[enter_a] = np.uint8(enter_a + 1 + 128 * terminal_a)
        if enter_b >= 0 and not dead_b:
            now[enter_b] = np.uint8(enter_b + 1 + 128 * terminal_b)
        x, y = now[at_a] & _LABEL, now[at_b] & _LABEL
        if x != _B0 and y != _B0 and x != y:
            share *= up if connected else down
            if share == 0.0:
                continue
            if connected and _merge(now, x, y, pending):
                success += share
                continue
        elif connected:
            continue
        closed = leave_a >= 0 and _leave(now, leave_a)
        closed = closed or (leave_b >= 0 and _leave(now, leave_b))
        if closed:
            failure += share
        else:
            count = _store(now, share, states, masses, table, count)
    return count, success, failure


@numba.njit(cache=True)
def _sweep(steps, chances, width, max_states):  # type: ignore[no-untyped-def]
    """Process all links."""
    states, masses, count = np.zeros((1, width), np.uint8), np.ones(1), 1
    success, failure, lost, peak, total = 0.0, 0.0, 0.0, 1, 0
    for r in range(len(steps)):
        _, down, _, down_a, _, down_b = chances[r]
        room = count * (1 + (down_a > 0.0)) * (1 + (down_b > 0.0)) * (1 + (down > 0.0))
        size = 16
        while size < 2 * room:
            size *= 2
        table = np.full(size, -1, np.int32)
        new_states, new_masses, found = np.empty((room, width), np.uint8), np.empty(room), 0
        for i in range(count):
            found, worked, failed = _branch(
                states[i], steps[r], chances[r], masses[i], new_states, new_masses, table, found
            )
            success += worked
            failure += failed
        count, dropped = _truncate(new_states, new_masses, found, max_states)
        states, masses = new_states[:count], new_masses[:count]
        lost += dropped
        total += count
        peak = max(peak, count)
    return failure, success, lost, peak, total
