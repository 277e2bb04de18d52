"""Traffic over all shortest paths alike (ECMP): of every group of a placement, and of single pairs."""

from __future__ import annotations

import numba
import numpy as np

from relparallel.metrics._paths import spread


@numba.njit(cache=True)
def _grow(  # type: ignore[no-untyped-def]
    indptr, head, link, cables, transit, order, first, last, level, ways, weight, goal
):
    """Label the nodes one cable beyond those in order[first:last]; returns the new end of ``order``."""
    m, end = cables.size, last
    for i in range(first, last):
        u = order[i]
        for a in range(indptr[u], indptr[u + 1]):
            v, wide = head[a], cables[link[a] % m]
            if wide == 0 or not (transit[v] or v == goal):
                continue
            if level[v] < 0:
                level[v], ways[v], weight[v], order[end] = level[u] + 1, 0.0, 0.0, v
                end += 1
            if level[v] == level[u] + 1:
                ways[v] += wide * ways[u]
    return end


@numba.njit(cache=True)
def _trace(  # type: ignore[no-untyped-def]
    indptr, head, link, cables, order, inner, level, ways, weight, paths, turn, links, values, used
):
    """Share of all paths over every cable between the nodes order[:inner] and those beyond them.

    ``weight`` holds the ways on to the other end; ``turn`` is m where traffic runs against the search.
    """
    m = cables.size
    for i in range(inner - 1, -1, -1):
        u = order[i]
        for a in range(indptr[u], indptr[u + 1]):
            v = head[a]
            if level[v] == level[u] + 1 and weight[v] > 0:
                wide = cables[link[a] % m]
                if wide > 0:
                    weight[u] += wide * weight[v]
                    links[used], values[used] = (link[a] + turn) % (2 * m), ways[u] * wide * weight[v] / paths
                    used += 1
    return used


@numba.njit(cache=True)
def _room(indptr, orders, inner, used, links, values):  # type: ignore[no-untyped-def]
    """The arrays of the result, longer where the next pair might not fit."""
    need = used
    for side in range(2):
        for i in range(inner[side]):
            need += indptr[orders[side, i] + 1] - indptr[orders[side, i]]
    if need <= links.size:
        return links, values
    more_links, more_values = np.empty(2 * need, dtype=np.int64), np.empty(2 * need)
    more_links[:used], more_values[:used] = links[:used], values[:used]
    return more_links, more_values


@numba.njit(cache=True)
def shortest_flows(indptr, head, link, cables, transit, ends):  # type: ignore[no-untyped-def]
    """Links that each pair of ends uses, and its share on each; none for a pair without a path.

    ``link`` is the number of an arc from the tail, ``link % m`` its row of ``cables``. The side with fewer
    nodes at its rim grows, until both meet: O(cables near the two ends) a pair, not O(all cables).
    """
    n = indptr.size - 1
    level, order = np.full((2, n), -1, dtype=np.int64), np.empty((2, n), dtype=np.int64)
    ways, weight = np.empty((2, n)), np.empty((2, n))
    links, values = np.empty(1024, dtype=np.int64), np.empty(1024)
    starts, used = np.zeros(len(ends) + 1, dtype=np.int64), 0
    inner, last = np.empty(2, dtype=np.int64), np.empty(2, dtype=np.int64)
    for pair in range(len(ends)):
        for side in range(2):
            u = ends[pair, side]
            level[side, u], ways[side, u], weight[side, u], order[side, 0] = 0, 1.0, 0.0, u
            inner[side], last[side] = 0, 1
        paths = 0.0
        while paths == 0 and ends[pair, 0] != ends[pair, 1]:
            side = 0 if last[0] - inner[0] <= last[1] - inner[1] else 1
            end = _grow(
                indptr, head, link, cables, transit, order[side], inner[side], last[side], level[side],
                ways[side], weight[side], ends[pair, 1 - side],
            )  # fmt: skip
            if end == last[side]:
                break
            inner[side], last[side] = last[side], end
            for i in range(inner[side], end):
                v = order[side, i]
                if level[1 - side, v] >= 0:
                    paths += ways[0, v] * ways[1, v]
                    weight[0, v], weight[1, v] = ways[1, v], ways[0, v]
        if paths > 0:
            links, values = _room(indptr, order, inner, used, links, values)
            for side in range(2):
                used = _trace(
                    indptr, head, link, cables, order[side], inner[side], level[side], ways[side],
                    weight[side], paths, side * cables.size, links, values, used,
                )  # fmt: skip
        for side in range(2):
            for i in range(last[side]):
                level[side, order[side, i]] = -1
        starts[pair + 1] = used
    return starts, links[:used].copy(), values[:used].copy()


@numba.njit(cache=True)
def group_flows(arcs, place, hosts, source, starts, sends):  # type: ignore[no-untyped-def]
    """Links that carry traffic of each group, ascending, and how much."""
    indptr, head, cables, transit = arcs
    total, weight, once = np.zeros(head.size), np.zeros(transit.size), np.ones(1)
    heads, arrived = np.zeros(len(hosts) + 1, np.int64), np.zeros(len(hosts))
    links, flow, found = np.empty(place.size, np.int64), np.empty(place.size), 0
    for g in range(len(hosts)):
        ranks = hosts[g]
        total[:] = 0.0
        for r in range(ranks.size):
            senders = source[starts[r] : starts[r + 1]]
            if senders.size == 0:
                continue
            for s in senders:
                weight[ranks[s]] = sends[ranks[s]]
            root, by_paths = ranks[r : r + 1], np.bool_(True)
            arrived[g] += spread(indptr, head, cables, transit, weight, root, once, by_paths, total)
            for s in senders:
                weight[ranks[s]] = 0.0
        if found + place.size > links.size:
            links = np.concatenate((links, np.empty(links.size + place.size, np.int64)))
            flow = np.concatenate((flow, np.empty(flow.size + place.size)))
        for link in range(place.size):
            if place[link] >= 0 and total[place[link]] != 0.0:
                links[found], flow[found] = link, total[place[link]]
                found += 1
        heads[g + 1] = found
    return links[:found], flow[:found], heads, arrived
