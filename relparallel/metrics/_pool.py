"""A pool of paths for traffic of few pairs: rounds over it cost little, true prices make it grow.

Column generation as in Ford and Fulkerson, "A suggested computation for maximal multi-commodity network
flows", Management Science 1958, over the paths with the fewest hops and those that prices found cheapest.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numba
import numpy as np

from relparallel.metrics._demand import Problem
from relparallel.metrics._paths import search
from relparallel.topology._arrays import FloatArray, IntArray

MANY: Final = 1.5  #: pairs of a root above which each has fewer paths
WANTED: Final = (300, 8)  #: paths of a pair below which one hop more is allowed, three times: few pairs, many
MOST: Final = (900, 64)  #: paths of a pair with as many hops, shared among the last hops
ENTRIES: Final = 3 * 10**7  #: arcs of all paths


@dataclass(frozen=True, kw_only=True, slots=True)
class Pool:
    """Path p, the arcs ``arcs[start[p]:start[p + 1]]``, joins pair ``pair[p]``, which sends ``demand``.

    Pairs are numbered by root, then node.
    """

    pair: IntArray
    start: IntArray
    arcs: IntArray
    demand: FloatArray

    def grown(self, problem: Problem, length: FloatArray) -> Pool:
        """Return the pool with the shortest path of every pair added."""
        root, target = np.nonzero(problem.demand)
        net, n = problem.net, problem.net.weight.size
        reverse = np.searchsorted(net.tail * n + net.head, net.head * n + net.tail)
        static = (net.indptr, net.head, reverse, net.transit, length)
        start, arcs = _shortest(*static, problem.roots, root, target, np.empty(ENTRIES, dtype=np.int32))
        return Pool(
            pair=np.concatenate([self.pair, np.arange(start.size - 1)]),
            start=np.concatenate([self.start, self.start[-1] + start[1:]]),
            arcs=np.concatenate([self.arcs, arcs]),
            demand=self.demand,
        )


def pool(problem: Problem) -> Pool | None:
    """Paths of every pair with the fewest hops; none where they would take too much memory."""
    root, target = np.nonzero(problem.demand)
    net, n = problem.net, problem.net.weight.size
    many = int(root.size > MANY * problem.roots.size)
    if 2 * root.size * WANTED[many] > ENTRIES:
        return None
    reverse = np.searchsorted(net.tail * n + net.head, net.head * n + net.tail)
    static = (net.indptr, net.head, reverse, net.transit)
    buffers = np.empty(ENTRIES // 2, dtype=np.int64), np.empty(ENTRIES, dtype=np.int32)
    pair, start, arcs = _few_hops(*static, problem.roots, root, target, WANTED[many], MOST[many], *buffers)
    if start.size == 0:
        return None
    demand = (problem.demand * problem.scale[:, None])[root, target]
    return Pool(pair=pair, start=start, arcs=arcs, demand=demand)


@numba.njit(cache=True)
def split(pair, start, arcs, demand, price, softness, load):  # type: ignore[no-untyped-def]
    """Add the demand of every pair to ``load``, a path that is dearer by x taking exp(-x / softness).

    Returns the sum of demand times cheapest path.
    """
    cost, least, total = np.zeros(pair.size), np.full(demand.size, np.inf), np.zeros(demand.size)
    for p in range(pair.size):
        for i in range(start[p], start[p + 1]):
            cost[p] += price[arcs[i]]
        least[pair[p]] = min(least[pair[p]], cost[p])
    for p in range(pair.size):
        cost[p] = np.exp(-(cost[p] - least[pair[p]]) / softness)
        total[pair[p]] += cost[p]
    for p in range(pair.size):
        part = demand[pair[p]] * cost[p] / total[pair[p]]
        if cost[p] > 1e-17:
            for i in range(start[p], start[p + 1]):
                load[arcs[i]] += part
    return (demand * least).sum()


@numba.njit(cache=True)
def _inwards(indptr, head, reverse, transit, hops, root, target, long, most, start, arcs, found):  # type: ignore[no-untyped-def]
    """Write paths of exactly ``long`` hops from a root to a target; returns how many, -1 without room."""
    node, seen, turn = (
        np.empty(long, dtype=np.int64),
        np.empty(long, dtype=np.int64),
        np.empty(long, dtype=np.int64),
    )
    taken = np.empty(long, dtype=np.int64)
    each = (most - 1) // (indptr[target + 1] - indptr[target]) + 1  # paths that share the last hop
    first, depth, end = found, 0, found
    node[0], seen[0], turn[0] = target, 0, root
    while depth >= 0:
        v = node[depth]
        degree = indptr[v + 1] - indptr[v]
        if seen[depth] == degree or (depth > 0 and found == end):
            depth -= 1
            continue
        b = (
            indptr[v] + (seen[depth] + turn[depth]) % degree
        )  # from anywhere, lest all pass by the first nodes
        u, taken[depth] = head[b], reverse[b]
        seen[depth] += 1
        end = found + each if depth == 0 else end
        if hops[u] > long - depth - 1 or (u == root) != (depth == long - 1) or (node[: depth + 1] == u).any():
            continue
        if u != root:
            if transit[u]:
                depth += 1
                node[depth], seen[depth], turn[depth] = u, 0, root + 7 * found
        elif found + 1 < start.size and start[found] + long <= arcs.size:
            for k in range(long):
                arcs[start[found] + k] = taken[k]
            found += 1
            start[found] = start[found - 1] + long
        else:
            return -1
    return found - first


@numba.njit(cache=True)
def _few_hops(indptr, head, reverse, transit, roots, row, target, wanted, most, start, arcs):  # type: ignore[no-untyped-def]
    """Pair of every path, where its arcs start, and the arcs; nothing if they do not fit."""
    n = indptr.size - 1
    heap, key = np.empty(head.size + 1, dtype=np.int64), np.empty(head.size + 1)
    hops, order, one = np.empty(n), np.empty(n, dtype=np.int64), np.ones(head.size)
    pair = np.empty(start.size, dtype=np.int64)
    found, last = np.int64(0), -1  # a plain 0 would have `_inwards` compiled once more, for it alone
    start[0] = 0
    for i in range(row.size):
        if row[i] != last:
            last = row[i]
            search(indptr, head, transit, one, roots[last], heap, key, hops, order)
        before, long = found, int(hops[target[i]])
        while found - before < wanted and long < hops[target[i]] + 4:
            new = _inwards(
                indptr, head, reverse, transit, hops, roots[last], target[i], long, most, start, arcs, found
            )
            if new < 0:
                return pair[:0], start[:0], arcs[:0]
            found, long = found + new, long + 1
        pair[before:found] = i
    return pair[:found].copy(), start[: found + 1].copy(), arcs[: start[found]].copy()


@numba.njit(cache=True)
def _shortest(indptr, head, reverse, transit, length, roots, row, target, arcs):  # type: ignore[no-untyped-def]
    """Arcs of the shortest path of every pair, and where they start; of the first pairs if room ends."""
    n = indptr.size - 1
    heap, key = np.empty(head.size + 1, dtype=np.int64), np.empty(head.size + 1)
    distance, order = np.empty(n), np.empty(n, dtype=np.int64)
    start, last = np.zeros(row.size + 1, dtype=np.int64), -1
    for i in range(row.size):
        if row[i] != last:
            last = row[i]
            search(indptr, head, transit, length, roots[last], heap, key, distance, order)
        v, root, end = target[i], roots[last], start[i]
        while v != root:
            if end == arcs.size:
                return start[: i + 1], arcs[: start[i]].copy()
            best, arc = np.inf, -1
            for b in range(indptr[v], indptr[v + 1]):
                u, through = head[b], distance[head[b]] + length[reverse[b]]
                if (u == root or transit[u]) and through < best:
                    best, arc = through, b
            arcs[end], v = reverse[arc], head[arc]
            end += 1
        start[i + 1] = end
    return start, arcs[: start[-1]].copy()
