"""Upper bounds of the unreliability: from disjoint trees, and from a part of the network.

*Edge packing.* Trees that join all terminals and share no part that can fail are independent, and
the network fails only if every one of them does, so

    U <= product over the trees of P(some part of it is down) .

The trees are found greedily: the one in hand grows to the terminal that is most likely within reach
(Takahashi and Matsuyama's heuristic for Steiner trees; Prim's algorithm when every node is a
terminal), its parts are taken out, and the next one starts.

*Subgraph.* What fails less often in the whole network than in a part of it is every connection:
links and nodes that are left out could only help. The part is what lies around a likely tree that
joins the terminals, as far around as the work of the frontier DP allows.

References
----------
Takahashi and Matsuyama, "An approximate solution for the Steiner problem in graphs", Mathematica
Japonica 24,
1980. Ball, Colbourn and Provan, "Network reliability", Handbooks in OR and MS 7, 1995 (edge-packing
      bounds).
"""

import math
from dataclasses import replace
from heapq import heappop, heappush
from typing import Final

import numba
import numpy as np
from numpy.typing import NDArray

from relparallel.reliability.bounding.cut_families import TINY, rows_of
from relparallel.reliability.bounding.cut_search import distances
from relparallel.reliability.frontier.decomposition import solved
from relparallel.reliability.frontier.states import MAX_LIVE
from relparallel.reliability.problem import Problem

IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

_ROUNDING: Final = 1 + 1e-9  # relative; more than that of a million products, or of the frontier DP
_MOST_NODES: Final = 2**13  # of a part, which is too wide long before


def edge_packing_bound(problem: Problem) -> float:
    """Upper bound of the unreliability of a block, O(trees * m log n)."""
    rows = rows_of(len(problem.node), problem.edges)
    return min(float(_packed(rows, problem.link, *_nodes(problem))), 1.0)


def subgraph_bound(problem: Problem, max_visits: int) -> float:
    """Upper bound of the unreliability of a block, from at most so many states."""
    rows = rows_of(len(problem.node), problem.edges)
    far, queue = np.empty((2, len(problem.node)), np.int64)
    distances(rows, np.flatnonzero(_likely_tree(problem, rows)), far, queue)
    if far[problem.terminals].any():
        return 1.0  # they are apart for good
    best = 1.0
    for radius in range(int(far.max(initial=0)) + 1):
        inside = far <= radius
        if inside.sum() > _MOST_NODES:
            break
        found = solved(_part_of(problem, inside), max_visits, max_visits)
        if found.width > MAX_LIVE or found.peak > max_visits or found.states > max_visits:
            break
        best = min(best, found.unreliability * _ROUNDING)
        max_visits -= found.states
    return best


def _part_of(problem: Problem, inside: BoolArray) -> Problem:
    """The problem on some of the nodes, the terminals among them."""
    number, kept = np.cumsum(inside) - 1, inside[problem.edges].all(axis=1)
    return replace(
        problem,
        edges=number[problem.edges[kept]],
        link=problem.link[kept],
        node=problem.node[inside],
        terminals=number[problem.terminals],
        transit=problem.transit[inside],
    )


def _likely_tree(problem: Problem, rows: tuple[IntArray, IntArray, IntArray]) -> BoolArray:
    """Nodes that a likely tree joining the terminals goes through; ``rows`` as from `rows_of`."""
    n, m = len(problem.node), len(problem.link)
    inside = np.empty(n, np.bool_)
    _grow(
        rows,
        problem.link,
        *_nodes(problem),
        np.zeros(m, np.bool_),
        np.zeros(n, np.bool_),
        inside,
        np.empty(n, np.int64),
    )
    return inside


def _nodes(problem: Problem) -> tuple[NDArray[np.float64], BoolArray]:
    """Chances of the nodes, terminals certain, and which are terminals."""
    terminal = np.zeros(len(problem.node), np.bool_)
    terminal[problem.terminals] = True
    return np.where(terminal[:, None], [1.0, 0.0], problem.node), terminal


@numba.njit(cache=True)
def _packed(rows, link, node, terminal):  # type: ignore[no-untyped-def]
    """Product over disjoint trees of the chance that a part of the tree is down."""
    used, gone = np.zeros(len(link), np.bool_), np.zeros(len(node), np.bool_)
    tree, inside = np.empty(len(node), np.int64), np.empty(len(node), np.bool_)
    bound = 1.0
    while bound > 0.0:
        size = _grow(rows, link, node, terminal, used, gone, inside, tree)
        if size < 0:
            break
        works, broken = 1.0, 0.0
        for e in tree[:size]:
            broken += works * link[e, 1]
            works *= link[e, 0]
            used[e] = link[e, 1] > 0.0
        for v in range(len(node)):
            if inside[v]:
                broken += works * node[v, 1]
                works *= node[v, 0]
                gone[v] = node[v, 1] > 0.0
        bound = max(bound * min(broken * _ROUNDING, 1.0), TINY) if broken > 0.0 else 0.0
    return bound


@numba.njit(cache=True)
def _grow(rows, link, node, terminal, used, gone, inside, tree):  # type: ignore[no-untyped-def]
    """Fill in the links and nodes of a tree joining the terminals; return its size, -1 if none.

    Dijkstra's algorithm on -log of the chances; when it reaches a terminal, the path becomes part
    of the tree and the search goes on from there as well.
    """
    indptr, near, which = rows
    length, parent = np.full(len(node), np.inf), np.empty(len(node), np.int64)
    via, root = np.empty(len(node), np.int64), np.argmax(terminal)
    inside[:] = False
    inside[root], length[root], size, missing = True, 0.0, 0, terminal.sum() - 1
    heap = [(0.0, root)]
    while missing > 0 and len(heap) > 0:
        so_far, v = heappop(heap)
        if so_far > length[v]:
            continue
        if terminal[v] and not inside[v]:
            while not inside[v]:
                inside[v], length[v], tree[size] = True, 0.0, via[v]
                heappush(heap, (0.0, v))
                missing -= terminal[v]
                size += 1
                v = parent[v]
            continue
        for k in range(indptr[v], indptr[v + 1]):
            u, e = near[k], which[k]
            works = link[e, 0] * node[u, 0]
            if used[e] or gone[u] or inside[u] or works <= 0.0:
                continue
            longer = so_far - math.log(works)
            if longer < length[u]:
                length[u], parent[u], via[u] = longer, v, e
                heappush(heap, (longer, u))
    return size if missing == 0 else -1
