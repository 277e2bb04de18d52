"""Exact K-terminal reliability by a dynamic programme over the frontier of a sweep through the links.

Links are decided one after the other. A vertex is *live* between its first and its last link; all that the
past tells the future is which live vertices are already connected, which of them are dead, and which of the
connected blocks hold a terminal. States that agree in this are one state, and carry the probability of all
the pasts that lead to them. A block with a terminal that closes while another terminal is outside is a
failure; a single block that holds every terminal is a success. Both are sums of positive terms, so the
failure mass keeps its relative accuracy at 1e-300, where 1 - R has none left from 1e-16.

A state is two integers. Every live vertex owns a slot; nibble s of ``labels`` is 0 when slot s is empty or
its vertex dead, else 1 + the first slot of its block. Bit s of ``flags`` says that the block led by slot s
holds a terminal. Four bits per slot leave room for 15 live vertices.

References
----------
Sekine, Imai and Tani, "Computing the Tutte polynomial of a graph of moderate size", ISAAC 1995.
Hardy, Lucet and Limnios, "K-terminal network reliability measures with binary decision diagrams", IEEE
Transactions on Reliability 56, 2007.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

__all__ = ["MAX_LIVE", "NotExactError", "Programme", "Sweep", "compile_programme", "run_programme"]

MAX_LIVE = 15  # live vertices that four-bit labels can tell apart

_ONES = np.uint64(0x0111_1111_1111_1111)  # the low bit of each of the 15 nibbles
_NIBBLE = np.uint64(15)
_MIX_LABELS = np.uint64(0x9E37_79B9_7F4A_7C15)
_MIX_FLAGS = np.uint64(0xC2B2_AE3D_27D4_EB4F)
_U0, _U1, _U2, _U4, _U29 = (np.uint64(i) for i in (0, 1, 2, 4, 29))


class NotExactError(ValueError):
    """The exact programme does not fit this network."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Programme:
    """The sweep as arrays: one row per link, in the order in which links are decided.

    Attributes
    ----------
    steps : int64[m, 9]
        Entering slots a and b (-1: none), their terminal bits, the link's two slots, leaving slots a and b
        (-1: none), and the number of terminals that are still to enter after this row.
    chances : float64[m, 6]
        Up- and down-probability of the link and of the entering vertices a and b.
    width : int
        Largest number of live vertices.
    """

    steps: NDArray[np.int64]
    chances: NDArray[np.float64]
    width: int


class Sweep(NamedTuple):
    """Success and failure mass, the largest layer of states, and the states of all layers."""

    success: float
    failure: float
    peak: int
    visited: int


def compile_programme(
    edges: NDArray[np.int64],
    link: NDArray[np.float64],
    node: NDArray[np.float64],
    terminal: NDArray[np.bool_],
) -> Programme:
    """Turn links in processing order into a programme; ``link`` and ``node`` hold (up, down) per row."""
    m = len(edges)
    ends = edges.ravel().tolist()
    first = {v: i for i, v in reversed(list(enumerate(ends)))}
    last = {v: i for i, v in enumerate(ends)}
    steps = np.full((m, 9), -1, dtype=np.int64)
    steps[:, 2:4] = 0
    chances = np.tile(np.array([1.0, 0.0]), (m, 3))
    chances[:, 0:2] = link
    slot: dict[int, int] = {}
    free = list(range(len(first)))[::-1]
    pending = int(terminal.sum())
    width = 0
    for i, v in enumerate(ends):
        row, side = divmod(i, 2)
        if first[v] == i:
            slot[v] = free.pop()
            pending -= int(terminal[v])
            steps[row, side], steps[row, 2 + side] = slot[v], int(terminal[v])
            chances[row, 2 + 2 * side : 4 + 2 * side] = node[v]
            width = max(width, len(slot))
        steps[row, 4 + side] = slot[v]
        if side:
            for end in (i - 1, i):
                if last[ends[end]] == end:
                    steps[row, 6 + (end & 1)] = slot[ends[end]]
                    free.append(slot.pop(ends[end]))
            steps[row, 8] = pending
    return Programme(steps=steps, chances=chances, width=width)


def run_programme(programme: Programme, max_states: int) -> Sweep:
    """Decide all links.

    Raises
    ------
    NotExactError
        If more than ``MAX_LIVE`` vertices are live at once or a layer holds more than ``max_states`` states.
    """
    if programme.width > MAX_LIVE:
        raise _too_large(f"{MAX_LIVE} live vertices", programme.width)
    sweep = Sweep(*_sweep(programme.steps, programme.chances, max_states))
    if sweep.peak > max_states:
        raise _too_large(f"max_states={max_states} states in a layer", sweep.peak)
    return sweep


def _too_large(limit: str, found: int) -> NotExactError:
    return NotExactError(
        f"graph must need at most {limit} in the exact programme, got {found}; "
        "use method='monte_carlo' with an rng"
    )


@numba.njit(cache=True)
def _same_label(labels, label):  # type: ignore[no-untyped-def]
    """Mark, in the low bit of its nibble, every slot that carries ``label``."""
    x = labels ^ (label * _ONES)
    x |= x >> _U1
    x |= x >> _U2
    return ~x & _ONES


@numba.njit(cache=True)
def _merge(labels, flags, x, y):  # type: ignore[no-untyped-def]
    """Join the blocks with labels x and y: the smaller label, which is the first slot's, survives."""
    low, high = min(x, y), max(x, y)
    labels -= _same_label(labels, high) * (high - low)
    bit = (flags >> (high - _U1)) & _U1
    flags = (flags & ~(_U1 << (high - _U1))) | (bit << (low - _U1))
    return labels, flags


@numba.njit(cache=True)
def _leave(labels, flags, slot):  # type: ignore[no-untyped-def]
    """Empty a slot; also return whether this closed a block that holds a terminal."""
    shift = slot * _U4
    label = (labels >> shift) & _NIBBLE
    if label == _U0:
        return labels, flags, False
    others = _same_label(labels, label) & ~(_U1 << shift)
    labels &= ~(_NIBBLE << shift)
    if others == _U0:
        return labels, flags, (flags >> slot) & _U1 == _U1
    if label == slot + _U1:  # the leader leaves: the next slot of the block leads
        leader = label
        while (others >> (leader * _U4)) & _U1 == _U0:
            leader += _U1
        labels += others * (leader + _U1 - label)
        bit = (flags >> slot) & _U1
        flags = (flags & ~(_U1 << slot)) | (bit << leader)
    return labels, flags, False


@numba.njit(cache=True)
def _store(labels, flags, weight, states, marks, masses, table, mask, count):  # type: ignore[no-untyped-def]
    """Add ``weight`` to the state (labels, flags), which is appended when new; return the new count."""
    h = labels * _MIX_LABELS ^ flags * _MIX_FLAGS
    h = (h ^ (h >> _U29)) & mask
    while True:
        place = table[h]
        if place < 0:
            table[h] = count
            states[count], marks[count], masses[count] = labels, flags, weight
            return count + 1
        if states[place] == labels and marks[place] == flags:
            masses[place] += weight
            return count
        h = (h + _U1) & mask


@numba.njit(cache=True)
def _sum(total, rest, term):  # type: ignore[no-untyped-def]
    """Add a term to a running sum and what rounding lost to ``rest`` (Knuth's two-sum)."""
    new = total + term
    back = new - total
    return new, rest + ((total - (new - back)) + (term - back))


@numba.njit(cache=True)
def _sweep(steps, chances, max_states):  # type: ignore[no-untyped-def]
    """Process all links; stop early, with peak > max_states, when a layer grows too large."""
    states, marks, masses = np.zeros(1, np.uint64), np.zeros(1, np.uint16), np.ones(1)
    new_states, new_marks, new_masses = np.empty(0, np.uint64), np.empty(0, np.uint16), np.empty(0)
    table = np.empty(0, np.int32)
    count, peak, total = 1, 1, 0
    success, failure, success_rest, failure_rest = 0.0, 0.0, 0.0, 0.0
    for row in range(len(steps)):
        enter_a, enter_b, terminal_a, terminal_b, at_a, at_b, leave_a, leave_b, pending = steps[row]
        up, down, up_a, down_a, up_b, down_b = chances[row]
        a, b = np.uint64(at_a), np.uint64(at_b)
        born_a = np.uint64(enter_a + 1) << (a * _U4) if enter_a >= 0 else _U0
        born_b = np.uint64(enter_b + 1) << (b * _U4) if enter_b >= 0 else _U0
        flag_a, flag_b = np.uint64(terminal_a) << a, np.uint64(terminal_b) << b
        ways = (1 + (down_a > 0.0)) * (1 + (down_b > 0.0)) * (1 + (down > 0.0 and up > 0.0))
        room = count * ways
        if len(new_states) < room:
            new_states, new_marks = np.empty(room, np.uint64), np.empty(room, np.uint16)
            new_masses = np.empty(room)
        size = 16
        while size < room + room // 2:
            size *= 2
        if len(table) < size:
            table = np.empty(size, np.int32)
        table[:size] = -1
        mask = np.uint64(size - 1)
        found = 0
        for i in range(count):
            for variant in range(4):
                dead_a, dead_b = variant & 1, variant >> 1
                weight = masses[i] * (down_a if dead_a else up_a) * (down_b if dead_b else up_b)
                if weight == 0.0:
                    continue
                labels, flags = states[i], np.uint64(marks[i])
                if not dead_a:
                    labels, flags = labels | born_a, flags | flag_a
                if not dead_b:
                    labels, flags = labels | born_b, flags | flag_b
                x, y = (labels >> (a * _U4)) & _NIBBLE, (labels >> (b * _U4)) & _NIBBLE
                joins = x != _U0 and y != _U0 and x != y
                for connected in range(2):
                    after, held, share = labels, flags, weight
                    if joins:
                        share *= up if connected else down
                        if connected:
                            after, held = _merge(labels, flags, x, y)
                            if pending == 0 and held & (held - _U1) == _U0 and held != _U0:
                                success, success_rest = _sum(success, success_rest, share)
                                continue
                    elif connected:
                        continue
                    if share == 0.0:
                        continue
                    closed = False
                    if leave_a >= 0:
                        after, held, closed = _leave(after, held, a)
                    if leave_b >= 0 and not closed:
                        after, held, closed = _leave(after, held, b)
                    if closed:
                        failure, failure_rest = _sum(failure, failure_rest, share)
                    else:
                        found = _store(
                            after, held, share, new_states, new_marks, new_masses, table, mask, found
                        )
        states, new_states = new_states, states
        marks, new_marks = new_marks, marks
        masses, new_masses = new_masses, masses
        count = found
        total += count
        peak = max(peak, count)
        if count > max_states:
            break
    return success + success_rest, failure + failure_rest, peak, total
