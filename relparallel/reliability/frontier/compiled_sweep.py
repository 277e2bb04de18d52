"""The compiled sweep of the frontier DP: links in their order as rows, and layer after layer of states.

Links are decided one after the other. A vertex is *live* between its first and its last link; all that the
past tells the future is which live vertices are connected, which are dead, and which blocks hold a terminal
(`labels`). States that agree in this are one, with the probability of all pasts that lead there. A block
with a terminal that closes while another terminal is outside is a failure; a single block with every terminal
is a success. Both are sums of positive terms: the failure mass keeps its relative accuracy at 1e-300.

A layer is an array of pairs, state and mass, in the order in which its states were found; a hash table says
where each of them is. Most rows change a layer in place (`layers`); the others write a new one, in batches.

References
----------
Sekine, Imai and Tani, "Computing the Tutte polynomial of a graph of moderate size", ISAAC 1995.
Hardy, Lucet and Limnios, "K-terminal network reliability measures with binary decision diagrams", IEEE
Transactions on Reliability 56, 2007.
"""

import os
from dataclasses import dataclass
from functools import cache
from typing import Any, Final, NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from relparallel.reliability.frontier.labels import (
    ALL,
    MAX_LIVE,
    depart,
    merge,
    njit_borrowing,
    pack,
    regroup,
    same_label,
    together,
    unpack,
)
from relparallel.reliability.frontier.layers import (
    FRESH,
    HOLDS,
    KIND,
    LEAVE,
    MERGE,
    add_states,
    decide_in_place,
    grown,
    indexed,
    planned_rows,
    tell_apart,
    two_sum,
)

_NIBBLE, _U1 = np.uint64(15), np.uint64(1)
_BATCH = 256  # states that are decided before what they become is stored
_U0 = np.uint64(0)
_NONE: Any = np.int64(0)  # a plain 0 would compile what is called with it once more


ANY: Final = 2**62  # no limit
_BYTES: Final = 100  # of memory per state, where arrays have just grown


class NotExactError(ValueError):
    """The frontier DP does not fit this network."""


@dataclass(frozen=True, kw_only=True, slots=True)
class LinkSweep:
    """The sweep as arrays: one row per link, in the order in which links are decided."""

    steps: NDArray[np.int64]
    chances: NDArray[np.float64]
    width: int


class Sweep(NamedTuple):
    """Success and failure mass, the largest layer of states, and the states of all layers."""

    success: float
    failure: float
    peak: int
    visited: int


def compile_sweep(
    edges: NDArray[np.int64],
    link: NDArray[np.float64],
    node: NDArray[np.float64],
    terminal: NDArray[np.bool_],
) -> LinkSweep:
    """Turn links in processing order into a sweep; ``link`` and ``node`` hold (up, down) per row."""
    m, n = len(edges), len(node)
    steps, parts, width = compile_steps(
        np.arange(m), np.asarray(edges), np.arange(m), np.arange(m, m + n), terminal
    )
    return LinkSweep(steps=steps, chances=gather(parts, np.concatenate([link, node])), width=width)


def run_sweep(rows: LinkSweep, max_states: int) -> Sweep:
    """Decide all links."""
    require_fit(rows.width)
    most = fitting(max_states)
    found = Sweep(*sweep(rows.steps, rows.chances, most, ANY))
    require_fit(rows.width, found.peak, most)
    return found


def fitting(max_states: int) -> int:
    """The limit of states in a layer, lowered where they would need more than half of the memory."""
    return min(max_states, memory() // (2 * _BYTES))


@cache
def memory() -> int:
    """Bytes of main memory; no limit where the system does not say."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return ANY


def require_fit(width: int, peak: int = 0, max_states: int = 0, visited: int = 0, visits: int = 0) -> None:
    """Refuse a sweep that is too wide or had too many states."""
    if width <= MAX_LIVE and peak <= max_states and visited <= visits:
        return
    limits = {f"{MAX_LIVE} live vertices": (width, MAX_LIVE)}
    limits[f"max_states={max_states} states in a layer"] = (peak, max_states)
    limits[f"{visits} states in all layers"] = (visited, visits)
    limit, found = next((limit, found) for limit, (found, most) in limits.items() if found > most)
    raise NotExactError(
        f"graph must need at most {limit} in the frontier DP, got {found}; "
        "use method='bounds', or 'monte_carlo' with an rng"
    )


@numba.njit(cache=True)
def compile_steps(order, edges, link, node, terminal):  # type: ignore[no-untyped-def]
    """Rows of a sweep of links in this order, the parts whose chances they use, and its width."""
    m, n = len(order), len(node)
    left, place, free, room = np.zeros(n, np.int64), np.empty(n, np.int64), np.empty(n, np.int64), n
    pending, width = 0, 0
    for v in range(n):
        place[v], free[v] = -1, n - 1 - v
        pending += terminal[v]
    for e in range(m):
        left[edges[e, 0]] += 1
        left[edges[e, 1]] += 1
    steps, parts = np.empty((m, 9), np.int64), np.empty((m, 3), np.int64)
    for row in range(m):
        e, step, part = order[row], steps[row], parts[row]
        part[0] = link[e]
        for side in range(2):
            v = edges[e, side]
            step[side], step[2 + side], part[1 + side] = -1, 0, -1
            if place[v] < 0:
                room -= 1
                place[v] = free[room]
                pending -= terminal[v]
                step[side], step[2 + side], part[1 + side] = place[v], terminal[v], node[v]
            step[4 + side] = place[v]
            left[v] -= 1
        width = max(width, n - room)
        for side in range(2):
            v = edges[e, side]
            step[6 + side] = -1
            if left[v] == 0:
                step[6 + side] = free[room] = place[v]
                room += 1
        step[8] = pending
    return steps, parts, width


@numba.njit(cache=True)
def gather(parts, chances):  # type: ignore[no-untyped-def]
    """Chances float64[m, 6] of the parts of a sweep, from slots of (up, down)."""
    found = np.empty((len(parts), 6))
    for row in range(len(parts)):
        for k in range(3):
            slot = parts[row, k]
            found[row, 2 * k] = chances[slot, 0] if slot >= 0 else 1.0
            found[row, 2 * k + 1] = chances[slot, 1] if slot >= 0 else 0.0
    return found


class Ways(NamedTuple):
    """How the entering vertices can be, up or down: mass, labels and flags that they add, [4]."""

    weight: NDArray[np.float64]
    labels: NDArray[np.uint64]
    flags: NDArray[np.uint64]


@numba.njit(cache=True)
def sweep(steps, chances, max_states, max_visits):  # type: ignore[no-untyped-def]
    """Decide all links; stop early, with peak > max_states or visited > max_visits."""
    fails, nothing = np.empty((len(steps), 3), np.bool_), np.empty(0, np.int32)
    for r in range(len(steps)):  # plain loops compile faster than expressions of arrays
        for part in range(3):
            fails[r, part] = chances[r, 2 * part + 1] > 0.0
    rows = planned_rows(steps, fails)
    here, there = np.zeros(2, np.uint64), np.empty(64, np.uint64)
    here.view(np.float64)[1] = 1.0
    table, bits, buffer = np.empty(64, np.int32), -1, np.empty(64, np.uint64)
    count, peak, total, sums = np.int64(1), np.int64(1), np.int64(0), np.zeros(4)
    ways = Ways(np.empty(4), np.empty(4, np.uint64), np.empty(4, np.uint64))
    for r in range(len(rows)):
        row, chance, kind, most = rows[r], chances[r], rows[r, KIND], min(max_states, max_visits - total)
        if r > 0 and rows[r - 1, HOLDS] == ALL != row[HOLDS]:
            tell_apart(here[: 2 * count])
            bits = -1
        if kind >= MERGE:
            there = grown(there, _NONE, count)
            made, _ = decide_in_place(here[: 2 * count], row, chance, sums, there, nothing)
            if bits < 0:
                table, bits = indexed(table, here, count, 2 * count + made)
            here, table, bits, found = add_states(there[: 2 * made], here, table, bits, count)
        else:
            kinds, found, bits = _ways(row, chance, ways), _NONE, -1
            if kind == FRESH:
                there = grown(there, _NONE, min(2 * kinds * count, most + 2 * kinds * _BATCH))
            else:
                buffer = grown(buffer, _NONE, min(8 * count, 8 * _BATCH))
                table, bits = indexed(table, there, _NONE, 2 * count)
            for start in range(0, 2 * count, 2 * _BATCH):
                batch = here[start : min(start + 2 * _BATCH, 2 * count)]
                if kind == FRESH:
                    found += _expand(batch, row, chance, ways, kinds, sums, there[2 * found :]) // 2
                else:
                    if kind == LEAVE:
                        made = _let_go(batch, row, chance, sums, buffer)
                    else:
                        made = _expand(batch, row, chance, ways, kinds, sums, buffer)
                    there, table, bits, found = add_states(buffer[:made], there, table, bits, found)
                if found > most:
                    break
            here, there = there, here
        if found > most:
            return sums[0], sums[2], max(peak, found), total + found
        count = found
        total += count
        peak = max(peak, count)
    return sums[0] + sums[1], sums[2] + sums[3], peak, total


@njit_borrowing
def _ways(row, chance, ways):  # type: ignore[no-untyped-def]
    """Fill in how the entering vertices can be: their mass, labels and flags; return the number of ways."""
    kinds = 0
    for dead in range(4):
        weight, labels, flags = 1.0, _U0, _U0
        for side in range(2):
            if (dead >> side) & 1:
                weight *= chance[3 + 2 * side]
            else:
                weight *= chance[2 + 2 * side]
                if row[side] >= 0:
                    shift = np.uint64(4 * row[side])
                    labels |= np.uint64(row[side] + 1) << shift
                    flags |= np.uint64(row[2 + side]) << shift
        if weight > 0.0:
            ways.weight[kinds], ways.labels[kinds], ways.flags[kinds] = weight, labels, flags
            kinds += 1
    return kinds


@njit_borrowing
def _expand(here, row, chance, ways, kinds, sums, buffer):  # type: ignore[no-untyped-def]
    """Decide one link in some states: write what they become to the buffer, return how many that are."""
    old, new = here.view(np.float64), buffer.view(np.float64)
    up, down, last, holds = chance[0], chance[1], row[8] == 0, row[HOLDS]
    a, b = np.uint64(4 * row[4]), np.uint64(4 * row[5])
    made, success, failure, success_rest, failure_rest = 0, sums[0], sums[2], sums[1], sums[3]
    for i in range(0, len(here), 2):
        old_labels, old_flags = unpack(here[i], holds)
        for kind in range(kinds):
            weight = old[i + 1] * ways.weight[kind]
            labels, flags = old_labels | ways.labels[kind], old_flags | ways.flags[kind]
            x, y = (labels >> a) & _NIBBLE, (labels >> b) & _NIBBLE
            joins = x != _U0 and y != _U0 and x != y
            for connected in range(2 if joins else 1):
                after, held, share = labels, flags, weight
                if joins:
                    share *= up if connected else down
                    if connected:
                        after, held = merge(labels, flags, x, y)
                        if last and together(after, held, holds):
                            success, success_rest = two_sum(success, success_rest, share)
                            continue
                if share == 0.0:
                    continue
                after, held, closed = depart(after, held, row, holds)
                if closed:
                    failure, failure_rest = two_sum(failure, failure_rest, share)
                    continue
                buffer[made], new[made + 1] = pack(after, held), share
                made += 2
    sums[0], sums[1], sums[2], sums[3] = success, success_rest, failure, failure_rest
    return made


@njit_borrowing
def _let_go(here, row, chance, sums, buffer):  # type: ignore[no-untyped-def]
    """The same for the last link of a vertex to one that stays: take it out, then join what it leaves."""
    old, new = here.view(np.float64), buffer.view(np.float64)
    up, down, last, holds, side = chance[0], chance[1], row[8] == 0, row[HOLDS], 0 if row[6] >= 0 else 1
    at, to = np.uint64(4 * row[4 + side]), np.uint64(4 * row[5 - side])
    own = _U1 << at
    made, success, failure, success_rest, failure_rest = 0, sums[0], sums[2], sums[1], sums[3]
    for i in range(0, len(here), 2):
        labels, flags = unpack(here[i], holds)
        x, y, share = (labels >> at) & _NIBBLE, (labels >> to) & _NIBBLE, old[i + 1]
        block = same_label(labels, x)
        if x != _U0 and y != _U0 and x != y:
            both = block | same_label(labels, y)
            after, held = regroup(labels, flags, both, both & ~own)
            if last and together(after, held, holds):
                success, success_rest = two_sum(success, success_rest, share * up)
            else:
                buffer[made], new[made + 1] = pack(after, held), share * up
                made += 2
            share *= down
            if share == 0.0:
                continue
        if x != _U0:
            if block != own:
                labels, flags = regroup(labels, flags, block, block & ~own)
            elif flags & own != _U0 or holds == ALL:
                failure, failure_rest = two_sum(failure, failure_rest, share)
                continue
            else:
                labels ^= x << at
        buffer[made], new[made + 1] = pack(labels, flags), share
        made += 2
    sums[0], sums[1], sums[2], sums[3] = success, success_rest, failure, failure_rest
    return made
