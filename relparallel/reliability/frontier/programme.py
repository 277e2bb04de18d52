"""Exact K-terminal reliability by a dynamic programme over the frontier of a sweep through the links.

Links are decided one after the other. A vertex is *live* between its first and its last link; all that the
past tells the future is which live vertices are already connected, which of them are dead, and which of the
connected blocks hold a terminal. States that agree in this are one state, and carry the probability of all
the pasts that lead to them. A block with a terminal that closes while another terminal is outside is a
failure; a single block that holds every terminal is a success. Both are sums of positive terms, so the
failure mass keeps its relative accuracy at 1e-300, where 1 - R has none left from 1e-16.

`labels` writes a state as two integers, `frontier_layers`
sweeps through the layers; here links in their order become the rows of a programme, and its limits are kept.

References
----------
Sekine, Imai and Tani, "Computing the Tutte polynomial of a graph of moderate size", ISAAC 1995.
Hardy, Lucet and Limnios, "K-terminal network reliability measures with binary decision diagrams", IEEE
Transactions on Reliability 56, 2007.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cache
from typing import Final, NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from relparallel.reliability.frontier.compiled_sweep import sweep
from relparallel.reliability.frontier.labels import MAX_LIVE

ANY: Final = 2**62  # no limit
_BYTES: Final = 100  # of memory per state, where arrays have just grown


class NotExactError(ValueError):
    """The frontier DP does not fit this network."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Programme:
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


def compile_programme(
    edges: NDArray[np.int64],
    link: NDArray[np.float64],
    node: NDArray[np.float64],
    terminal: NDArray[np.bool_],
) -> Programme:
    """Turn links in processing order into a programme; ``link`` and ``node`` hold (up, down) per row."""
    m, n = len(edges), len(node)
    steps, parts, width = compile_steps(
        np.arange(m), np.asarray(edges), np.arange(m), np.arange(m, m + n), terminal
    )
    return Programme(steps=steps, chances=gather(parts, np.concatenate([link, node])), width=width)


def run_programme(programme: Programme, max_states: int) -> Sweep:
    """Decide all links."""
    require_fit(programme.width)
    most = fitting(max_states)
    found = Sweep(*sweep(programme.steps, programme.chances, most, ANY))
    require_fit(programme.width, found.peak, most)
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
    """Refuse a programme that is too wide or had too many states."""
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
    """Rows of a programme of links in this order, the parts whose chances they use, and its width."""
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
    """Chances float64[m, 6] of the parts of a programme, from slots of (up, down)."""
    found = np.empty((len(parts), 6))
    for row in range(len(parts)):
        for k in range(3):
            slot = parts[row, k]
            found[row, 2 * k] = chances[slot, 0] if slot >= 0 else 1.0
            found[row, 2 * k + 1] = chances[slot, 1] if slot >= 0 else 0.0
    return found
