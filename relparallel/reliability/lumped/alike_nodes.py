"""Networks whose nodes have no other relation than being alike: complete ones, and complete bipartite ones.

Terminals may fail each in its own way. All links must be alike, and all nodes of a side that are no
terminals; then `alike_sums` goes through the sizes of one terminal's component.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from relparallel.reliability.lumped.alike_sums import bipartite_sum, choices, complete_sum
from relparallel.reliability.probability import Chance, series
from relparallel.reliability.problem import Problem
from relparallel.reliability.result import Reliability, exactly

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]

_MOST_STEPS: Final = 10**8  # of the sums
_MOST_NODES: Final = 1000  # binomial coefficients of more are no floats


class Twins(NamedTuple):
    """A network of alike nodes."""

    complete: bool
    right: BoolArray
    size: NDArray[np.int64]
    link: FloatArray
    other: FloatArray


def twins(problem: Problem) -> Reliability | None:
    """The exact answer where the network is complete, or complete between two sides of alike nodes."""
    found = recognised(problem)
    if found is None:
        return None
    if found.complete:
        (terminals, others), table = found.size[0].tolist(), choices(len(problem.node))
        inner = complete_sum(table, terminals, others, found.link, found.other[0])
        return with_terminals((inner, terminals * (others + 1)), problem)
    (a, more), (b, rest) = found.size.tolist()
    inner = bipartite_sum(choices(len(problem.node)), found.size, found.link, found.other)
    return with_terminals((inner, a * (more + 1) * (b + 1) * (rest + 1)), problem)


def recognised(problem: Problem) -> Twins | None:
    """What is alike in the network; None if it is of another kind, or a tree, or too large."""
    n, m = len(problem.node), len(problem.edges)
    if m < n or n < 3 or n > _MOST_NODES:  # a tree, which reductions undo, or in parts
        return None
    complete, apart = 2 * m == n * (n - 1), n * n - 4 * m  # the squared difference of the two sides
    if not complete and (apart < 0 or math.isqrt(apart) ** 2 < apart or m * m > _MOST_STEPS):
        return None
    network = problem.edges, problem.link, problem.node, problem.terminals, problem.transit
    alike, *found = _recognised(*network, complete)
    return Twins(complete, *found) if alike else None


def complete_connected(terminals: int, others: int, link: Chance, other: Chance) -> tuple[Chance, int]:
    """Chance that the terminals of a complete graph are connected, and the number of terms.

    Notes
    -----
    The component of one terminal has t terminals, h others, and all of k = t + h, with probability ::

        C(T - 1, t - 1) C(O, h) joined[k] up^h link_down^(k (T - t)) (down + up link_down^k)^(O - h)

    O(n^2) operations.
    """
    chances = np.array([link, other], dtype=np.float64)
    inner = complete_sum(choices(terminals + others), terminals, others, *chances)
    return inner, terminals * (others + 1)


def bipartite_connected(
    rows: tuple[int, int], columns: tuple[int, int], link: Chance, row: Chance, column: Chance
) -> Chance:
    """Chance that the terminals on both sides of a complete bipartite graph are connected.

    Notes
    -----
    O(rows^2 columns^2) operations.
    """
    chances, table = np.array([link, row, column], dtype=np.float64), choices(sum(rows) + sum(columns))
    up, down = bipartite_sum(table, np.array([rows, columns]), chances[0], chances[1:])
    return (1.0 - down, down) if down < up else (up, 1.0 - up)


def same(chances: FloatArray) -> Chance | None:
    """The chance that all rows of ``chances`` have; certain if there is none."""
    alike, up, down = _same(chances, np.ones(len(chances), dtype=bool))
    return (up, down) if alike else None


def with_terminals(inner: tuple[Chance, int], problem: Problem) -> Reliability:
    """The answer with the terminals' own failures."""
    own = map(tuple, problem.node[problem.terminals].tolist())
    return exactly(*series(inner[0], *own), "exact", states=inner[1], reason=f"{inner[1]} lumped states")


@numba.njit(cache=True)
def _recognised(edges, link, node, terminals, transit, complete):  # type: ignore[no-untyped-def]
    """Whether all is alike, and the fields of `Twins` but for the first."""
    n, size, other = len(node), np.zeros((2, 2), np.int64), np.empty((2, 2))
    right = np.zeros(n, np.bool_) if complete else _other_side(edges, n, terminals[0])
    relay = np.ones(n, np.bool_)
    relay[terminals] = False
    for v in range(n):
        size[int(right[v]), int(relay[v])] += 1
    alike = transit.all() and (complete or size[0].sum() * size[1].sum() == len(edges))
    all_same, up, down = _same(link, np.ones(len(link), np.bool_))
    alike &= all_same
    for side in range(2):
        all_same, other[side, 0], other[side, 1] = _same(node, relay & (right == bool(side)))
        alike &= all_same
    return alike, right, size, np.array([up, down]), other


@numba.njit(cache=True)
def _same(chances, chosen):  # type: ignore[no-untyped-def]
    """Whether the rows that are chosen are equal, and the row that they are."""
    found, up, down = False, 1.0, 0.0
    for i in range(len(chances)):
        if chosen[i] and not found:
            found, up, down = True, chances[i, 0], chances[i, 1]
        elif chosen[i] and (chances[i, 0] != up or chances[i, 1] != down):
            return False, up, down
    return True, up, down


@numba.njit(cache=True)
def _other_side(edges, n, node):  # type: ignore[no-untyped-def]
    """Neighbours of a node, bool[n]; none where a link has both or neither of its ends among them."""
    right = np.zeros(n, np.bool_)
    for u, v in edges:
        right[v] |= u == node
        right[u] |= v == node
    for u, v in edges:
        if right[u] == right[v]:
            return np.zeros(n, np.bool_)
    return right
