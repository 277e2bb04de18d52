"""The compiled sweep of the frontier DP: links in order as rows, and layer after layer of states.

Links are decided one after the other. A vertex is *live* between its first and its last link; all
that the past tells the future is which live vertices are connected, which are dead, and which
blocks hold a terminal (`states`). States that agree in this are one, with the probability of all
pasts that lead there. A block with a terminal that closes while another terminal is outside is a
failure; a single block with every terminal is a success. Both are sums of positive terms: the
failure mass keeps its relative accuracy at 1e-300.

For derivatives the sweep also writes down where every state goes (`reverse_pass` goes back). What
has chance 0 is then followed where a derivative needs it, from states that can be reached: what two
parts with chance 0 would come to together is left out.

References
----------
Sekine, Imai and Tani, "Computing the Tutte polynomial of a graph of moderate size", ISAAC 1995.
Hardy, Lucet and Limnios, "K-terminal network reliability measures with binary decision diagrams",
IEEE Transactions on Reliability 56, 2007.
"""

import os
from dataclasses import dataclass
from functools import cache
from typing import Any, Final, NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from relparallel.reliability.frontier.states import (
    MAX_LIVE,
    add_states,
    depart,
    indexed,
    merge,
    njit_borrowing,
    pack,
    together,
    two_sum,
    unpack,
)

_NIBBLE, _U0 = np.uint64(15), np.uint64(0)
_BATCH = 256  # states that are decided before what they become is stored
# the two ends take the first places of a layer, its states the next
SUCCESS, FAILURE, ENDS = 0, 1, 2
_SAME = -1  # the other side of a record
_MOST_RECORDS = 2**27  # 1 GiB

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
    """Turn links in processing order into a sweep; ``link`` and ``node`` hold (up, down) by row."""
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
    """Limit of states in a layer, lowered where they would need more than half of the memory."""
    return min(max_states, memory() // (2 * _BYTES))


@cache
def memory() -> int:
    """Bytes of main memory; no limit where the system does not say."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return ANY


def require_fit(
    width: int, peak: int = 0, max_states: int = 0, visited: int = 0, visits: int = 0
) -> None:
    """Refuse a sweep that is too wide or had too many states."""
    if width <= MAX_LIVE and peak <= max_states and visited <= visits:
        return
    limits = {f"{MAX_LIVE} live vertices": (width, MAX_LIVE)}
    limits[f"max_states={max_states} states in a layer"] = (peak, max_states)
    limits[f"{visits} states in all layers, which max_seconds allows,"] = (visited, visits)
    limit, found = next((limit, found) for limit, (found, most) in limits.items() if found > most)
    raise NotExactError(
        f"graph must need at most {limit} in the frontier DP, got {found}; use method='bounds', or "
        "`estimate`, which samples"
    )


@numba.njit(cache=True)
def compile_steps(order, edges, link, node, terminal):  # type: ignore[no-untyped-def]
    """Rows of a sweep of links in this order, the parts whose chances they use, and its width."""
    # Columns of a row, -1 for none: slots of ends that enter (0, 1), whether these are terminals (2,
    # 3), slots of both ends (4, 5), slots that leave (6, 7), terminals still outside (8).
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
    free = np.empty((len(steps), 3), np.bool_)
    for r in range(len(steps)):  # plain loops compile faster than expressions of arrays
        for part in range(3):
            free[r, part] = chances[r, 2 * part + 1] > 0.0
    # literals would compile what is called with them once more
    lean, traced = free.ndim == 2, free.ndim == 0
    sums, peak, total, _, _ = forth(steps, chances, free, lean, traced, max_states, max_visits)
    return sums[0] + sums[1], sums[2] + sums[3], peak, total


@numba.njit(cache=True)
def forth(steps, chances, free, lean, traced, max_states, max_visits):  # type: ignore[no-untyped-def]
    """Decide all links; write down the masses of each row and where its states go if it is traced.

    ``free``: which of the three parts of a row may be down; ``lean``: whether chances of 0 are left
    out.
    """
    here, there = np.zeros(2, np.uint64), np.empty(64, np.uint64)
    here.view(np.float64)[1] = 1.0
    table, bits, buffer, origin = (
        np.full(64, -1, np.int32),
        np.int64(5),
        np.empty(64, np.uint64),
        np.empty(8 * _BATCH, np.int64),
    )
    count, peak, total, records, sums = (
        np.int64(1),
        np.int64(1),
        np.int64(0),
        np.int64(0),
        np.zeros(4),
    )
    ways = Ways(np.empty(4), np.empty(4, np.uint64), np.empty(4, np.uint64))
    targets, masses = [np.empty((0, 2), np.int32)], [np.empty(0)]
    for r in range(len(steps)):
        kinds, found, most = (
            _ways(steps[r], chances[r], free[r], ways),
            0,
            min(max_states, max_visits - total),
        )
        target = targets[0]
        if traced:
            target, mass = np.full((kinds * count, 2), _SAME, np.int32), np.empty(count)
            for k in range(count):
                mass[k] = here.view(np.float64)[2 * k + 1]
            targets.append(target)
            masses.append(mass)
            records += len(target)
        stays = (
            not traced
            and steps[r, 0] < 0
            and steps[r, 1] < 0
            and steps[r, 6] < 0
            and steps[r, 7] < 0
        )
        room: Any = min(count, _BATCH)
        if stays:  # a link that is down leaves the states as they are
            if len(there) < 2 * count:
                there = np.empty(4 * count, np.uint64)
            made = _join(here[: 2 * count], steps[r], chances[r], sums, there)
            here, table, bits, found = add_states(there[:made], here, table, bits, count)
            here, there = there, here
        elif len(buffer) < 16 * room:  # a state becomes up to 8: 4 ways to enter, link up or down
            buffer = np.empty(32 * room, np.uint64)
        if not stays:
            table, bits = indexed(table, there, 0, 4 * count)
        for start in range(0, 0 if stays else count, _BATCH):
            stop: Any = min(start + _BATCH, count)
            batch, own = here[2 * start : 2 * stop], target[kinds * start : kinds * stop]
            made = _expand(
                batch,
                steps[r],
                chances[r],
                free[r, 0],
                lean,
                ways,
                kinds,
                sums,
                buffer,
                origin,
                own,
            )
            there, table, bits, found = add_states(buffer[:made], there, table, bits, found)
            if traced:
                _write_down(buffer[:made], origin, own)
            if found > most:
                break
        here, there = there, here
        count, total = found, total + found  # type: ignore[assignment]
        peak = max(peak, found)  # type: ignore[arg-type]
        if records > _MOST_RECORDS:
            peak = max_states + 1
        if found > most or peak > max_states:
            break
    return sums, peak, total, targets, masses


@njit_borrowing
def _ways(step, chance, free, ways):  # type: ignore[no-untyped-def]
    """Fill in how entering vertices can be: mass, labels and flags; return the number of ways."""
    kinds = 0
    for dead in range(4):
        if (dead & 1 and not free[1]) or (dead & 2 and not free[2]):
            continue
        weight, labels, flags = 1.0, _U0, _U0
        for side in range(2):
            if (dead >> side) & 1:
                weight *= chance[3 + 2 * side]
            elif step[side] >= 0:
                weight *= chance[2 + 2 * side]
                shift = np.uint64(4 * step[side])
                labels |= np.uint64(step[side] + 1) << shift
                flags |= np.uint64(step[2 + side]) << shift
        ways.weight[kinds], ways.labels[kinds], ways.flags[kinds] = weight, labels, flags
        kinds += 1
    return kinds


@njit_borrowing
def _expand(here, step, chance, fails, lean, ways, kinds, sums, buffer, origin, target):  # type: ignore[no-untyped-def]
    """Decide one link in some states: write what they become to the buffer, return how much."""
    old, new, last, traced = (
        here.view(np.float64),
        buffer.view(np.float64),
        step[8] == 0,
        len(target) > 0,
    )
    a, b = np.uint64(4 * step[4]), np.uint64(4 * step[5])
    made, record, success, failure, success_rest, failure_rest = (
        0,
        -1,
        sums[0],
        sums[2],
        sums[1],
        sums[3],
    )
    for i in range(0, len(here), 2):
        old_labels, old_flags = unpack(here[i])
        for kind in range(kinds):
            labels, flags = old_labels | ways.labels[kind], old_flags | ways.flags[kind]
            x, y = (labels >> a) & _NIBBLE, (labels >> b) & _NIBBLE
            joins = x != _U0 and y != _U0 and x != y
            record += 1
            for side in range(0 if fails or not joins else 1, 2 if joins else 1):  # down, up
                after, held, own = labels, flags, ways.weight[kind]
                if joins:
                    own *= chance[1 - side]
                share, end = old[i + 1] * own, -1
                if side == 1:
                    after, held = merge(labels, flags, x, y)
                if side == 1 and last and together(held):
                    success, success_rest = two_sum(success, success_rest, share)
                    end = SUCCESS
                elif share == 0.0 and (lean or (own == 0.0 and old[i + 1] == 0.0)):
                    end = FAILURE  # it does not count
                else:
                    after, held, closed = depart(after, held, step)
                    if closed:
                        failure, failure_rest = two_sum(failure, failure_rest, share)
                        end = FAILURE
                if end < 0:
                    buffer[made], new[made + 1] = pack(after, held), share
                    if traced:
                        origin[made >> 1] = 2 * record + side
                    made += 2
                elif traced:
                    target[record, side] = end
    sums[0], sums[1], sums[2], sums[3] = success, success_rest, failure, failure_rest
    return made


@njit_borrowing
def _join(here, step, chance, sums, moved):  # type: ignore[no-untyped-def]
    """Decide a link between vertices that stay, in place: what is up moves; return how much."""
    old, new, last, made = here.view(np.float64), moved.view(np.float64), step[8] == 0, 0
    a, b = np.uint64(4 * step[4]), np.uint64(4 * step[5])
    for i in range(0, len(here), 2):
        labels, flags = unpack(here[i])
        x, y = (labels >> a) & _NIBBLE, (labels >> b) & _NIBBLE
        if x in (_U0, y) or y == _U0:
            continue
        share = old[i + 1] * chance[0]
        old[i + 1] *= chance[1]
        labels, flags = merge(labels, flags, x, y)
        if last and together(flags):
            sums[0], sums[1] = two_sum(sums[0], sums[1], share)
            continue
        moved[made], new[made + 1] = pack(labels, flags), share
        made += 2
    return made


@njit_borrowing
def _write_down(added, origin, target):  # type: ignore[no-untyped-def]
    """Put the places of the added states where they come from; what has one side has both."""
    for k in range(len(added) >> 1):
        target[origin[k] >> 1, origin[k] & 1] = np.int64(added[2 * k]) + ENDS
    for record in range(len(target)):
        for side in range(2):
            if target[record, side] == _SAME:
                target[record, side] = target[record, 1 - side]
