"""In which order to sweep through a graph: a beam search for a narrow frontier.

The work of the frontier programme grows by about a factor of four per live vertex, so the order decides
between milliseconds and never. Vertices are added one by one; when one is added its links to earlier
vertices are decided, those first that let a vertex leave. The search keeps the cheapest prefixes of every
length; prefixes that look alike (equal cost, width and boundary: mirror images, mostly) share a small quota,
without which symmetric graphs would fill the beam with copies of one bad idea. Two guides are tried: the
cost so far, which suits complete and bipartite graphs, and one that also avoids cut links, which suits
geometric graphs.
"""

from __future__ import annotations

import numba
import numpy as np
from numpy.typing import NDArray

__all__ = ["link_order", "vertex_order"]

# Beams, and the predicted numbers of states between which the next wider beam is worth its time.
_BEAMS = ((8, 1e6, 1e24), (64, 1e10, 1e16), (512, 0.0, 0.0))
_PULLS = (1.001, 1.2)  # factor of the score per cut link, one per guide
_GROWTH = 4.0  # states per live vertex: the growth of the Catalan numbers, exact for planar graphs
_QUOTA = 3  # prefixes kept that look alike
_S7, _S13, _S17 = np.uint64(7), np.uint64(13), np.uint64(17)

IntArray = NDArray[np.int64]


def vertex_order(n: int, edges: IntArray) -> IntArray:
    """Order the vertices of a connected graph for a narrow frontier; deterministic."""
    indptr, indices = _adjacency(n, edges)
    best, cost = np.arange(n), np.inf
    for beam, long, hopeless in _BEAMS:
        for pull in _PULLS:
            order, total = _search(indptr, indices, beam, pull)
            if total < cost:
                best, cost = order, total
        if not long <= cost < hopeless:
            break
    return best


def link_order(order: IntArray, edges: IntArray) -> IntArray:
    """Indices of the links in the order of the sweep: by later end, links that free a vertex first."""
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    early, late = np.sort(place[edges], axis=1).T
    last = np.zeros(len(order), dtype=np.int64)
    np.maximum.at(last, early, late)
    np.maximum.at(last, late, early)
    return np.lexsort((early, last[early] != late, late))


def _adjacency(n: int, edges: IntArray) -> tuple[IntArray, IntArray]:
    """Compressed rows of neighbours, both directions."""
    ends = np.concatenate([edges, edges[:, ::-1]])
    ends = ends[np.lexsort((ends[:, 1], ends[:, 0]))]
    indptr = np.zeros(n + 1, dtype=np.int64)
    np.cumsum(np.bincount(ends[:, 0], minlength=n), out=indptr[1:])
    return indptr, np.ascontiguousarray(ends[:, 1])


@numba.njit(cache=True)
def _keys(n):  # type: ignore[no-untyped-def]
    """Fixed random keys (xorshift) of the vertices: a set of vertices is known by the xor of its keys."""
    keys, x = np.empty(n, np.uint64), np.uint64(0x9E37_79B9_7F4A_7C15)
    for v in range(n):
        x ^= x << _S13
        x ^= x >> _S7
        x ^= x << _S17
        keys[v] = x
    return keys


@numba.njit(cache=True)
def _price(v, indptr, indices, missing, width):  # type: ignore[no-untyped-def]
    """Cost of adding v, the width afterwards, and the change of the number of cut links.

    ``missing[u]`` counts the neighbours of u that are not yet added, as -1 - count once u itself is.
    """
    earlier, freed = 0, 0
    for i in range(indptr[v], indptr[v + 1]):
        earlier += missing[indices[i]] < 0
        freed += missing[indices[i]] == -2
    stays = missing[v] > 0
    cost, live = 0.0, width + 1
    for i in range(earlier):  # one layer of states per link; the first `freed` links let a vertex leave
        live -= i < freed
        cost += _GROWTH ** (live - (i == earlier - 1 and not stays))
    return cost, width + stays - freed, missing[v] - earlier


@numba.njit(cache=True)
def _add(v, indptr, indices, missing):  # type: ignore[no-untyped-def]
    """Mark v as added, in place."""
    for i in range(indptr[v], indptr[v + 1]):
        missing[indices[i]] += 1 if missing[indices[i]] < 0 else -1
    missing[v] = -1 - missing[v]


@numba.njit(cache=True)
def _choose(score, member, cost, width, bound, beam):  # type: ignore[no-untyped-def]
    """Indices of the best candidates: no set twice, few that look alike."""
    chosen, taken = np.empty(beam, np.int64), 0
    for i in np.argsort(score, kind="mergesort"):
        alike, seen = 0, False
        for j in chosen[:taken]:
            seen |= member[j] == member[i]
            alike += cost[j] == cost[i] and width[j] == width[i] and bound[j] == bound[i]
        if not seen and alike < _QUOTA:
            chosen[taken] = i
            taken += 1
            if taken == beam:
                break
    return chosen[:taken]


@numba.njit(cache=True)
def _search(indptr, indices, beam, pull):  # type: ignore[no-untyped-def]
    """Beam search; return the vertex order and its predicted number of states."""
    n, degree, keys = len(indptr) - 1, indptr[1:] - indptr[:-1], _keys(len(indptr) - 1)
    vertices, parents = np.zeros((n, beam), np.int64), np.zeros((n, beam), np.int64)
    missing, spare = np.empty((beam, n), np.int64), np.empty((beam, n), np.int64)
    missing[0] = degree
    kept, costs, sets = 1, np.zeros(beam), np.zeros(beam, np.uint64)
    widths, bounds = np.zeros(beam, np.int64), np.zeros(beam, np.int64)
    parent, vertex = np.empty(beam * n, np.int64), np.empty(beam * n, np.int64)
    width, bound = np.empty(beam * n, np.int64), np.empty(beam * n, np.int64)
    cost, score, member = np.empty(beam * n), np.empty(beam * n), np.empty(beam * n, np.uint64)
    for step in range(n):
        found = 0
        for s in range(kept):
            for v in range(n):
                if missing[s, v] < 0 or (widths[s] > 0 and missing[s, v] == degree[v]):
                    continue  # added already, or not next to the frontier
                price, live, cut = _price(v, indptr, indices, missing[s], widths[s])
                parent[found], vertex[found], member[found] = s, v, sets[s] ^ keys[v]
                cost[found], width[found], bound[found] = costs[s] + price, live, bounds[s] + cut
                score[found] = (cost[found] + _GROWTH**live) * pull ** bound[found]
                found += 1
        best = _choose(score[:found], member, cost, width, bound, beam)
        kept = len(best)
        for s in range(kept):
            i = best[s]
            vertices[step, s], parents[step, s] = vertex[i], parent[i]
            costs[s], sets[s], widths[s], bounds[s] = cost[i], member[i], width[i], bound[i]
            spare[s] = missing[parent[i]]
            _add(vertex[i], indptr, indices, spare[s])
        missing, spare = spare, missing
    order, s = np.empty(n, np.int64), int(np.argmin(costs[:kept]))
    total = costs[s]
    for step in range(n - 1, -1, -1):
        order[step], s = vertices[step, s], parents[step, s]
    return order, total
