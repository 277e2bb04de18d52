"""In which order to sweep through a graph: a beam search for a narrow frontier, within a budget.

The work of the frontier DP grows by about a factor of four per live vertex, so the order decides
between milliseconds and never. Vertices leave one by one; before one leaves, its links to those
that are still to leave are decided, those first that let no new vertex enter. Terminals had better
leave late: once one has left, a block may hold it or not, and every way to tell is a state of its
own.

The search builds the sweep from its end and keeps the cheapest endings of every length; few that
look alike (mirror images, mostly). Guides are the cost so far, and one that also avoids cut links,
each from any end and from one far from the terminals. A wider beam is tried only while the sweep
would take longer than the search and the search finds better orders. Work is counted, not timed:
the order is the same on every machine.
"""

import numba
import numpy as np
from numpy.typing import NDArray

from relparallel.reliability.frontier.states import njit_borrowing

_BEAMS = (1, 4, 16, 64, 256)
_ENOUGH = 16  # beam from which another that finds nothing better is the last
_PULLS = (1.001, 1.2)  # factor of the score per cut link, one per guide
_QUOTA = 3  # prefixes kept that look alike
_SHARE = 0.125  # of the work of the sweep that the next search may take
_CANDIDATE = 5.0  # work of looking at one candidate, in states of the sweep
# states that no sweep can visit; work of the search in spite of that
_HOPELESS, _EFFORT = 1e10, 1e7
_COPIED = 64.0  # vertices of an ending that are copied in the time of a candidate
_GONE = 4  # terminals that have left, from which more make no difference
_S7, _S13, _S17 = np.uint64(7), np.uint64(13), np.uint64(17)
IntArray = NDArray[np.int64]


def vertex_order(edges: IntArray, terminal: NDArray[np.bool_], share: float) -> IntArray:
    """Order the vertices of a connected graph for a narrow frontier; deterministic."""
    found: IntArray = _by_beams(edges, terminal, share)
    return found


@numba.njit(cache=True)
def _by_beams(edges, terminal, share):  # type: ignore[no-untyped-def]
    """Best order of wider and wider beams, as long as they are worth their time."""
    indptr, indices, states, far, guides = _prepared(edges, terminal)
    n, pulls, active, cost = len(terminal), len(_PULLS), guides, np.inf
    every, best, tried, prices = (
        np.empty(n, np.int64),
        np.empty(n, np.int64),
        np.arange(guides),
        np.full(guides, np.inf),
    )
    for v in range(n):
        every[v] = best[n - 1 - v] = v
    for beam in _BEAMS:
        if beam > 1 and active > pulls and cost <= _HOPELESS:  # for each pull the better end
            active = pulls
            for k in range(pulls):
                tried[k] = k + pulls if prices[pulls + k] < prices[k] else k
        before, looked, work = cost, 0.0, 0.0
        for k in tried[:active]:
            if _too_long(work / 4, cost, share):
                continue
            ends, pull = every if k < pulls else far, _PULLS[k % pulls]
            order, prices[k], work = _search(
                indptr, indices, terminal, states, ends, beam, pull, share
            )
            looked += work
            if prices[k] < cost:
                cost = prices[k]
                for i in range(n):
                    best[i] = order[n - 1 - i]
        kept = guides if cost > _HOPELESS else pulls
        wider = 1.0 if beam == 1 else 4.0
        if _too_long(wider * looked * kept / active, cost, share) or (
            beam > _ENOUGH and cost == before
        ):
            break
    return best


@numba.njit(cache=True)
def _prepared(edges, terminal):  # type: ignore[no-untyped-def]
    """Neighbours, states by width, a vertex far from the terminals, and the number of guides."""
    n, terminals, guides = len(terminal), 0, len(_PULLS)
    far, (indptr, indices) = np.empty(n, np.int64), _adjacency(n, edges)
    for v in range(n):
        if terminal[v]:
            far[terminals] = v
            terminals += 1
    if 0 < terminals < n:
        _finish(far, terminals, indptr, indices)
        guides *= 2
    return indptr, indices, _growth(n, terminals), far[n - 1 :], guides


@numba.njit(cache=True)
def _too_long(candidates, cost, share):  # type: ignore[no-untyped-def]
    """Whether another search costs more than it may save of the states of the best sweep so far."""
    return candidates * _CANDIDATE > (_SHARE * cost if cost < _HOPELESS else _EFFORT * share)


@numba.njit(cache=True)
def link_order(order, edges):  # type: ignore[no-untyped-def]
    """Indices of the links in sweep order: by first end, those that let a vertex enter last."""
    n = len(order)
    place, first = np.empty(n, np.int64), np.full(n, n, np.int64)  # first neighbour to leave
    for i in range(n):
        place[order[i]] = i
    for e in range(len(edges)):
        a, b = place[edges[e, 0]], place[edges[e, 1]]
        first[a], first[b] = min(first[a], b), min(first[b], a)
    rank = np.empty(len(edges))
    for e in range(len(edges)):
        a, b = place[edges[e, 0]], place[edges[e, 1]]
        early, late = min(a, b), max(a, b)
        rank[e] = (early * 2 + (first[late] == early)) * n + late
    return np.argsort(rank, kind="mergesort")


@numba.njit(cache=True)
def _adjacency(n, edges):  # type: ignore[no-untyped-def]
    """Compressed rows of neighbours, both directions."""
    indptr, filled = np.zeros(n + 1, np.int64), np.empty(n, np.int64)
    for e in range(len(edges)):
        indptr[edges[e, 0] + 1] += 1
        indptr[edges[e, 1] + 1] += 1
    for v in range(n):
        filled[v] = indptr[v]
        indptr[v + 1] += indptr[v]
    indices = np.empty(2 * len(edges), np.int64)
    for e in range(len(edges)):
        for side in range(2):
            v = edges[e, side]
            indices[filled[v]] = edges[e, 1 - side]
            filled[v] += 1
    return indptr, indices


@numba.njit(cache=True)
def _growth(n, terminals):  # type: ignore[no-untyped-def]
    """States by terminals that left and live vertices: Catalan numbers (planar graphs), times ways.

    Any of (w + 1) / 2 blocks may hold terminals that have left; about the root of these ways is
    met.
    """
    most = min(terminals, _GONE) if terminals < n else 0
    states, others = np.ones((most + 1, n + 3)), 1.0 - terminals / n
    for w in range(1, n + 3):
        states[0, w] = min(states[0, w - 1] * (4 * w - 2) / (w + 1), 1e200)
        blocks = others * (w + 1) / 2
        for gone in range(1, most + 1):
            ways, term = 0.0, 1.0
            for j in range(1, gone + 1):
                term *= max(blocks - j + 1, 0.0) / j
                ways += term if j > 1 or gone < terminals else 0.0
            states[gone, w] = states[0, w] * np.sqrt(max(ways, 1.0))
    return states


@numba.njit(cache=True)
def _keys(n):  # type: ignore[no-untyped-def]
    """Fixed random keys (xorshift): a set of vertices is known by the xor of its keys."""
    keys, x = np.empty(n, np.uint64), np.uint64(0x9E37_79B9_7F4A_7C15)
    for v in range(n):
        x ^= x << _S13
        x ^= x >> _S7
        x ^= x << _S17
        keys[v] = x
    return keys


@numba.njit(cache=True)
def _price(states, row, width, earlier, freed, missing):  # type: ignore[no-untyped-def]
    """Cost of adding a vertex with so many neighbours in an ending, and the width before it."""
    cost, live = 0.0, width + 1
    for i in range(earlier):  # one layer of states per link; `freed` links let a vertex enter
        live -= i < freed
        cost += states[row, live - (i == earlier - 1 and missing == 0)]
    return cost, width + (missing > 0) - freed


@numba.njit(cache=True)
def _powers(pull, most):  # type: ignore[no-untyped-def]
    """Powers of a number up to the one named, or up to 1e90."""
    found = np.empty(most + 1)
    found[0] = 1.0
    for i in range(most):
        found[i + 1] = min(found[i] * pull, 1e90)
    return found


@njit_borrowing
def _add(v, indptr, indices, missing, freed, near, length):  # type: ignore[no-untyped-def]
    """Mark v as added; return how many vertices are next to the ending now, or 1 apart from it."""
    # missing[u]: neighbours of u still to add, as -1 - count once u is; freed[u]: those that miss
    # only u
    kept, last = 0, v
    for i in range(length):
        near[kept] = near[i]
        kept += near[i] != v
    for i in range(indptr[v], indptr[v + 1]):
        u = indices[i]
        if missing[u] < 0:
            missing[u] += 1
            if missing[u] == -2:
                for j in range(indptr[u], indptr[u + 1]):  # whoever is added does not ask
                    freed[indices[j]] += 1
            continue
        missing[u] -= 1
        last = u
        if missing[u] == indptr[u + 1] - indptr[u] - 1:
            at = kept
            while at > 0 and near[at - 1] > u:
                near[at] = near[at - 1]
                at -= 1
            near[at] = u
            kept += 1
    missing[v] = -1 - missing[v]
    freed[last] += missing[v] == -2
    for u in range(len(missing) if kept == 0 else 0):
        if missing[u] >= 0:
            near[0] = u
            return 1
    return kept


@numba.njit(cache=True)
def _finish(order, found, indptr, indices):  # type: ignore[no-untyped-def]
    """Fill up an order by the distance from what it has, in place."""
    seen, at = np.zeros(len(order), np.bool_), 0
    for i in range(found):
        seen[order[i]] = True
    for root in range(-1, len(order)):  # one is enough where the graph is connected
        if root >= 0 and not seen[root]:
            order[found], seen[root] = root, True
            found += 1
        while at < found:
            for i in range(indptr[order[at]], indptr[order[at] + 1]):
                u = indices[i]
                if not seen[u]:
                    order[found], seen[u] = u, True
                    found += 1
            at += 1


@numba.njit(cache=True)
def _choose(score, member, cost, width, bound, beam):  # type: ignore[no-untyped-def]
    """Indices of the best candidates: no set twice, few that look alike."""
    chosen, taken = np.empty(beam, np.int64), 0
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
def _search(indptr, indices, terminal, states, ends, beam, pull, share):  # type: ignore[no-untyped-def]
    """Beam search: vertices from the last on, the predicted states, and the work in candidates."""
    n, keys, most, degree = (
        len(terminal),
        _keys(len(terminal)),
        len(states) - 1,
        np.empty(len(terminal), np.int64),
    )
    vertices, parents = np.empty((n, beam), np.int64), np.empty((n, beam), np.int64)
    now, then = np.empty((3, beam, n), np.int64), np.empty((3, beam, n), np.int64)
    factors, cheapest = _powers(pull, len(indices)), 0.0
    kept, costs, sets, work, step = 1, np.zeros(beam), np.zeros(beam, np.uint64), 0.0, 0
    ending = np.zeros((5, beam), np.int64)
    widths, bounds, lengths, gone, longer = ending[0], ending[1], ending[2], ending[3], ending[4]
    for v in range(n):
        degree[v] = now[0, 0, v] = indptr[v + 1] - indptr[v]
        now[1, 0, v] = 0
        gone[0] += terminal[v]
    for i in range(len(ends)):
        now[2, 0, i] = ends[i]
    lengths[0] = len(ends)
    found_int, found_float = np.empty((5, beam * n), np.int64), np.empty((2, beam * n))
    parent, vertex, left = found_int[0], found_int[1], found_int[2]
    width, bound, cost, score = found_int[3], found_int[4], found_float[0], found_float[1]
    member = np.empty(beam * n, np.uint64)
    while step < n and (work * _CANDIDATE < _EFFORT * share or cheapest < _HOPELESS):
        found = 0
        for s in range(kept):
            for i in range(lengths[s]):
                v = now[2, s, i]
                left[found], stays, enter = gone[s] - terminal[v], now[0, s, v], now[1, s, v]
                row, earlier = min(left[found], most), degree[v] - stays
                price, live = _price(states, row, widths[s], earlier, enter, stays)
                parent[found], vertex[found], member[found] = s, v, sets[s] ^ keys[v]
                cost[found], width[found], bound[found] = (
                    costs[s] + price,
                    live,
                    bounds[s] + stays - earlier,
                )
                # every continuation pays for the layer in front, so a wide ending is no bargain
                score[found] = (cost[found] + states[row, live]) * factors[bound[found]]
                found += 1
        best = _choose(score[:found], member, cost, width, bound, beam)
        kept, work, cheapest = len(best), work + found + len(best) * n / _COPIED, np.inf
        for s in range(kept):
            i = best[s]
            vertices[step, s], parents[step, s] = vertex[i], parent[i]
            costs[s], sets[s], widths[s], bounds[s], gone[s] = (
                cost[i],
                member[i],
                width[i],
                bound[i],
                left[i],
            )
            cheapest = min(cheapest, cost[i])
            for v in range(n):
                then[0, s, v], then[1, s, v] = now[0, parent[i], v], now[1, parent[i], v]
            for v in range(lengths[parent[i]]):
                then[2, s, v] = now[2, parent[i], v]
        now, then = then, now
        for s in range(kept):
            length = lengths[parent[best[s]]] if step > 0 else 0
            longer[s] = _add(
                vertex[best[s]], indptr, indices, now[0, s], now[1, s], now[2, s], length
            )
        lengths, longer, step = longer, lengths, step + 1
    order, s = np.empty(n, np.int64), 0
    while costs[s] > cheapest:
        s += 1
    total = costs[s] if step == n else np.inf
    for i in range(step - 1, -1, -1):
        order[i], s = vertices[i, s], parents[i, s]
    _finish(order, step, indptr, indices)
    return order, total, work
