"""Exact K-terminal reliability by a dynamic programme over the frontier of a sweep through the links.

Links are decided one after the other. A vertex is *live* between its first and its last link; all that the
past tells the future is which live vertices are already connected, which of them are dead, and which of the
connected blocks hold a terminal. States that agree in this are one state, and carry the probability of all
the pasts that lead to them. A block with a terminal that closes while another terminal is outside is a
failure; a single block that holds every terminal is a success. Both are sums of positive terms, so the
failure mass keeps its relative accuracy at 1e-300, where 1 - R has none left from 1e-16.

A state is two integers. Every live vertex owns a slot; nibble s of ``labels`` is 0 when slot s is empty or
its vertex dead, else 1 + the first slot of its block. The low bit of nibble s of ``flags`` says that the
block led by slot s holds a terminal. Four bits per slot leave room for 15 live vertices. The first slot of a
block knows its own label, so in memory its nibble is free to say that the block is flagged: see `_pack`.

References
----------
Sekine, Imai and Tani, "Computing the Tutte polynomial of a graph of moderate size", ISAAC 1995.
Hardy, Lucet and Limnios, "K-terminal network reliability measures with binary decision diagrams", IEEE
Transactions on Reliability 56, 2007.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import NamedTuple

import numba
import numpy as np
from numba.cpython.unsafe.numbers import trailing_zeros
from numpy.typing import NDArray

__all__ = [
    "MAX_LIVE",
    "NotExactError",
    "Programme",
    "Sweep",
    "compile_programme",
    "compile_steps",
    "gather",
    "run_programme",
    "sweep",
]

MAX_LIVE = 15  # live vertices that four-bit labels can tell apart

_ONES = np.uint64(0x0111_1111_1111_1111)  # the low bit of each of the 15 nibbles
_MOST = np.uint64(0x0011_1111_1111_1111)  # of the first 14, where a label of 15 cannot be the slot's own
_OWN = np.uint64(0x0FED_CBA9_8765_4321)  # nibble s: the label of a block that slot s leads
_LAST, _TOP = np.uint64(1 << 56), np.uint64(1 << 60)  # slot 14, and where memory keeps its flag
_EMPTY = np.uint64(0xFFFF_FFFF_FFFF_FFFF)  # no state: the three topmost bits of a state are 0
_NIBBLE = np.uint64(15)
_MIX = np.uint64(0x9E37_79B9_7F4A_7C15)
_BATCH = 64  # states that are decided before what they become is stored
_CACHED = 2**14  # states that the caches hold, so that nothing is gained by looking ahead
_U0, _U1, _U2, _U4, _U32 = (np.uint64(i) for i in (0, 1, 2, 4, 32))
_LONGEST = 48  # places to look for a state before the table grows


_BYTES = 100  # of memory per state, where arrays have just grown


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


class Ways(NamedTuple):
    """How the entering vertices can be, up or down: mass, labels and flags that they add, [4]."""

    weight: NDArray[np.float64]
    labels: NDArray[np.uint64]
    flags: NDArray[np.uint64]


def compile_programme(
    edges: NDArray[np.int64],
    link: NDArray[np.float64],
    node: NDArray[np.float64],
    terminal: NDArray[np.bool_],
) -> Programme:
    """Turn links in processing order into a programme; ``link`` and ``node`` hold (up, down) per row."""
    m, n = len(edges), len(node)
    steps, parts, width = compile_steps(np.asarray(edges), np.arange(m), np.arange(m, m + n), terminal)
    return Programme(steps=steps, chances=gather(parts, np.concatenate([link, node])), width=width)


def run_programme(programme: Programme, max_states: int) -> Sweep:
    """Decide all links.

    Raises
    ------
    NotExactError
        If more than ``MAX_LIVE`` vertices are live at once or a layer holds more than ``max_states`` states.
    """
    require_fit(programme.width)
    most = fitting(max_states)
    found = Sweep(*sweep(programme.steps, programme.chances, most))
    require_fit(programme.width, found.peak, most)
    return found


def fitting(max_states: int) -> int:
    """The limit of states in a layer, lowered where they would need more than half of the memory."""
    try:
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):  # not known on this system
        return max_states
    return min(max_states, memory // (2 * _BYTES))


def require_fit(width: int, peak: int = 0, max_states: int = 0) -> None:
    """Refuse a programme that is too wide or had too many states."""
    limits = {f"{MAX_LIVE} live vertices": (width, MAX_LIVE)}
    limits[f"max_states={max_states} states in a layer"] = (peak, max_states)
    for limit, (found, most) in limits.items():
        if found > most:
            raise NotExactError(
                f"graph must need at most {limit} in the exact programme, got {found}; "
                "use method='monte_carlo' with an rng"
            )


@numba.njit(cache=True)
def compile_steps(edges, link, node, terminal):  # type: ignore[no-untyped-def]
    """Rows of a programme and the parts whose chances they use.

    Parameters
    ----------
    edges : int64[m, 2]
        Links of a connected graph, in the order of the sweep.
    link, node : int64[m], int64[n]
        Slots of their chances; -1: never fails.
    terminal : bool[n]
        Which vertices must be connected.

    Returns
    -------
    steps : int64[m, 9]
        See `Programme`.
    parts : int64[m, 3]
        Slots of the link and of the entering vertices a and b; -1: never fails.
    width : int
        Largest number of live vertices.
    """
    m, n = len(edges), len(node)
    left, place = np.zeros(n, np.int64), np.full(n, -1, np.int64)
    for v in edges.flat:
        left[v] += 1
    steps, parts = np.full((m, 9), -1, np.int64), np.full((m, 3), -1, np.int64)
    free, room = np.arange(n - 1, -1, -1), n
    pending, width = terminal.sum(), 0
    for row in range(m):
        parts[row, 0] = link[row]
        for side in range(2):
            v = edges[row, side]
            steps[row, 2 + side] = 0
            if place[v] < 0:
                room -= 1
                place[v] = free[room]
                pending -= terminal[v]
                steps[row, side], steps[row, 2 + side] = place[v], terminal[v]
                parts[row, 1 + side] = node[v]
            steps[row, 4 + side] = place[v]
            left[v] -= 1
        width = max(width, n - room)
        for side in range(2):
            v = edges[row, side]
            if left[v] == 0:
                steps[row, 6 + side] = place[v]
                free[room] = place[v]
                room += 1
        steps[row, 8] = pending
    return steps, parts, width


@numba.njit(cache=True)
def gather(parts, chances):  # type: ignore[no-untyped-def]
    """Chances float64[m, 6] of the parts of a programme, from slots of (up, down)."""
    found = np.empty((len(parts), 6))
    for row in range(len(parts)):
        for k in range(3):
            slot = parts[row, k]
            found[row, 2 * k] = chances[slot, 0] if slot >= 0 else 1.0
            found[row, 2 * k + 1] = chances[slot, 1] if slot >= 0 else 0.0
    return found


@numba.njit(cache=True)
def same_label(labels, label):  # type: ignore[no-untyped-def]
    """Mark, in the low bit of its nibble, every slot that carries ``label``."""
    x = labels ^ (label * _ONES)
    x |= x >> _U1
    x |= x >> _U2
    return ~x & _ONES


@numba.njit(cache=True)
def merge(labels, flags, x, y):  # type: ignore[no-untyped-def]
    """Join the blocks with labels x and y: the smaller label, which is the first slot's, survives."""
    low, high = min(x, y), max(x, y)
    labels -= same_label(labels, high) * (high - low)
    old = _U1 << ((high - _U1) * _U4)
    if flags & old:
        flags = (flags ^ old) | (_U1 << ((low - _U1) * _U4))
    return labels, flags


@numba.njit(cache=True)
def leave(labels, flags, shift):  # type: ignore[no-untyped-def]
    """Empty the slot at this bit; also return whether this closed a block that holds a terminal."""
    label = (labels >> shift) & _NIBBLE
    if label == _U0:
        return labels, flags, False
    own = _U1 << shift
    others = same_label(labels, label) & ~own
    labels &= ~(_NIBBLE << shift)
    if others == _U0:
        return labels, flags & ~own, flags & own != _U0
    if label << _U2 == shift + _U4:  # the leader leaves: the next slot of the block leads
        first = np.uint64(trailing_zeros(others))  # type: ignore[call-arg]
        labels += others * ((first >> _U2) + _U1 - label)
        flag = (flags >> shift) & _U1
        flags = (flags & ~own) | flag << first
    return labels, flags, False


@numba.njit(cache=True)
def pack(labels, flags):  # type: ignore[no-untyped-def]
    """One integer for both: the leader of a flagged block is written as 15, for slot 14 with a bit on top.

    No other slot than 14 can lead a block with label 15, and followers of slot 14 there are none.
    """
    return labels | flags * _NIBBLE | (flags & _LAST) << _U4


@numba.njit(cache=True)
def unpack(state):  # type: ignore[no-untyped-def]
    """Labels and flags of a packed state."""
    x = state & (state >> _U1)
    flags = (x & (x >> _U2) & _MOST) | (state & _TOP) >> _U4
    leaders = flags * _NIBBLE
    return (state & ~leaders & ~_TOP) | (_OWN & leaders), flags


@numba.njit(cache=True)
def _sum(total, rest, term):  # type: ignore[no-untyped-def]
    """Add a term to a running sum and what rounding lost to ``rest`` (Knuth's two-sum)."""
    new = total + term
    back = new - total
    return new, rest + ((total - (new - back)) + (term - back))


@numba.njit(cache=True)
def sweep(steps, chances, max_states):  # type: ignore[no-untyped-def]
    """Decide all links; stop early, with peak > max_states, when a layer grows too large.

    Parameters
    ----------
    steps, chances : int64[m, 9], float64[m, 6]
        See `Programme`.
    max_states : int
        Largest layer.

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
            if found > max_states:
                return sums[0], sums[2], found, total
        here, there, count = there, here, found
        total += count
        peak = max(peak, count)
    return sums[0] + sums[1], sums[2] + sums[3], peak, total


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
