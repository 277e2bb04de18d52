"""In which order to sweep through a graph: a beam search for a narrow frontier, within a budget.

The work of the frontier programme grows by about a factor of four per live vertex, so the order decides
between milliseconds and never. Vertices leave one by one; before one leaves, its links to those that are
still to leave are decided, those first that let no new vertex enter. (Deciding the links of a vertex when it
enters has the same frontiers, but more states: nothing keeps blocks apart that have no past.)

The search builds the sweep from its end and keeps the cheapest endings of every length. Endings that look
alike (equal cost, width and boundary: mirror images, mostly) share a small quota, without which symmetric
graphs would fill the beam with copies of one bad idea. Two guides are tried: the cost so far, which suits
complete and bipartite graphs, and one that also avoids cut links, which suits geometric graphs. A wider beam
is tried only while the sweep that the best order promises would take longer than the search, while the search
finds better orders, and only for a moment where no sweep can be hoped for. Work is counted, not timed, so
that the order is the same on every machine.
"""

from __future__ import annotations

import numba
import numpy as np
from numpy.typing import NDArray

__all__ = ["link_order", "vertex_order"]

_BEAMS = (1, 4, 16, 64, 256)
_ENOUGH = 16  # beam from which another that finds nothing better is the last
_PULLS = (1.001, 1.2)  # factor of the score per cut link, one per guide
_QUOTA = 3  # prefixes kept that look alike
_SHARE = 0.25  # of the work of the sweep that the next search may take
_CANDIDATE = 3.0  # work of looking at one candidate, in states of the sweep
_HOPELESS, _EFFORT = 1e10, 1e7  # states that no sweep can visit; work of the search in spite of that
_S7, _S13, _S17 = np.uint64(7), np.uint64(13), np.uint64(17)

IntArray = NDArray[np.int64]


@numba.njit(cache=True)
def vertex_order(n, edges):  # type: ignore[no-untyped-def]
    """Order the vertices of a connected graph for a narrow frontier; deterministic.

    Parameters
    ----------
    n : int
        Number of vertices.
    edges : int64[m, 2]
        Links.

    Returns
    -------
    int64[n]
        Vertices in the order in which they leave.
    """
    indptr, indices = _adjacency(n, edges)
    states = _growth(n)
    best, cost = np.arange(n), np.inf
    for beam in _BEAMS:
        looked, before = 0, cost
        for pull in _PULLS:
            order, total, candidates = _search(indptr, indices, states, beam, pull)
            looked += candidates
            if total < cost:
                best, cost = order, total
        if beam > _ENOUGH and cost == before:
            break
        work = looked * _CANDIDATE * 4.0  # of the next beam
        if work > (_SHARE * cost if cost < _HOPELESS else _EFFORT):
            break
    return best[::-1].copy()


@numba.njit(cache=True)
def link_order(order, edges):  # type: ignore[no-untyped-def]
    """Indices of the links in the order of the sweep: by first end, those that let a vertex enter last.

    Parameters
    ----------
    order : int64[n]
        Vertices in the order in which they leave.
    edges : int64[m, 2]
        Links.

    Returns
    -------
    int64[m]
        Rows of ``edges``.
    """
    n = len(order)
    place, first = np.empty(n, np.int64), np.full(n, n, np.int64)  # first neighbour to leave
    for i in range(n):
        place[order[i]] = i
    for e in range(len(edges)):
        a, b = place[edges[e, 0]], place[edges[e, 1]]
        first[a], first[b] = min(first[a], b), min(first[b], a)
    rank = np.empty(len(edges), np.int64)
    for e in range(len(edges)):
        a, b = place[edges[e, 0]], place[edges[e, 1]]
        early, late = min(a, b), max(a, b)
        rank[e] = (early * 2 + (first[late] == early)) * n + late
    return np.argsort(rank)


@numba.njit(cache=True)
def _adjacency(n, edges):  # type: ignore[no-untyped-def]
    """Compressed rows of neighbours, both directions."""
    indptr = np.zeros(n + 1, np.int64)
    for v in edges.flat:
        indptr[v + 1] += 1
    indptr = np.cumsum(indptr)
    indices, filled = np.empty(2 * len(edges), np.int64), indptr[:-1].copy()
    for e in range(len(edges)):
        for side in range(2):
            v = edges[e, side]
            indices[filled[v]] = edges[e, 1 - side]
            filled[v] += 1
    return indptr, indices


@numba.njit(cache=True)
def _growth(n):  # type: ignore[no-untyped-def]
    """States per number of live vertices: Catalan numbers, exact for planar graphs."""
    states = np.ones(n + 3)
    for w in range(1, n + 3):
        states[w] = min(states[w - 1] * (4 * w - 2) / (w + 1), 1e200)
    return states


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
def _price(v, indptr, indices, missing, width, states):  # type: ignore[no-untyped-def]
    """Cost of adding v to an ending, the width before it, and the change of the number of cut links.

    ``missing[u]`` counts the neighbours of u that are not yet added, as -1 - count once u itself is.
    """
    earlier, freed = 0, 0
    for i in range(indptr[v], indptr[v + 1]):
        count = missing[indices[i]]
        earlier += count < 0
        freed += count == -2
    stays = missing[v] > 0
    cost, live = 0.0, width + 1
    for i in range(earlier):  # one layer of states per link; `freed` links let a vertex enter
        live -= i < freed
        cost += states[live - (i == earlier - 1 and not stays)]
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
    if beam == 1:
        chosen[0] = np.argmin(score)
        return chosen
    mask = 8 * beam - 1
    seen = np.zeros(mask + 1, np.uint64)  # sets that were chosen, hashed
    for i in np.argsort(score, kind="mergesort"):
        place, alike = np.int64(member[i] & np.uint64(mask)), 0
        while seen[place] != 0 and seen[place] != member[i]:
            place = (place + 1) & mask
        for k in range(taken - 1, -1, -1):
            j = chosen[k]
            if score[j] != score[i]:  # those that look alike score alike, and so are neighbours
                break
            alike += cost[j] == cost[i] and width[j] == width[i] and bound[j] == bound[i]
        if seen[place] == 0 and alike < _QUOTA:
            chosen[taken], seen[place] = i, member[i]
            taken += 1
            if taken == beam:
                break
    return chosen[:taken]


@numba.njit(cache=True)
def _search(indptr, indices, states, beam, pull):  # type: ignore[no-untyped-def]
    """Beam search; return the vertices from the last on, the predicted states, and the candidates seen."""
    n, degree, keys = len(indptr) - 1, indptr[1:] - indptr[:-1], _keys(len(indptr) - 1)
    vertices, parents = np.zeros((n, beam), np.int64), np.zeros((n, beam), np.int64)
    missing, spare = np.empty((beam, n), np.int64), np.empty((beam, n), np.int64)
    missing[0] = degree
    factors = np.minimum(pull ** np.arange(len(indices) + 1), 1e90)
    kept, costs, sets, looked = 1, np.zeros(beam), np.zeros(beam, np.uint64), 0
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
                price, live, cut = _price(v, indptr, indices, missing[s], widths[s], states)
                parent[found], vertex[found], member[found] = s, v, sets[s] ^ keys[v]
                cost[found], width[found], bound[found] = costs[s] + price, live, bounds[s] + cut
                score[found] = (cost[found] + states[live]) * factors[bound[found]]
                found += 1
        best = _choose(score[:found], member, cost, width, bound, beam)
        kept, looked = len(best), looked + found
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
    return order, total, looked
