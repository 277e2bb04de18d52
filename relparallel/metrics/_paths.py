"""Traffic over shortest paths, one destination at a time: in hops (ECMP) or along given lengths.

Brandes, "A faster algorithm for betweenness centrality", 2001: search from the destination, then
push the traffic from the farthest nodes inwards.
"""

from heapq import heappop, heappush

import numba
import numpy as np


@numba.njit(cache=True)
def spread(indptr, head, cables, transit, weight, roots, scale, by_paths, against):  # type: ignore[no-untyped-def]
    """What all nodes send to each root, split over all shortest paths; returns what arrived.

    Node v sends ``weight[v]`` times the root's ``scale``. ``by_paths`` splits evenly over the
    paths, else at every node evenly over the next cables. Adds to ``against`` of every arc what
    runs from its head to its tail: the search leaves the root, the traffic comes back over the arcs
    that it used.
    """
    n = indptr.size - 1
    distance, order = np.empty(n, dtype=np.int32), np.empty(n, dtype=np.int32)
    used, start = np.empty(head.size, dtype=np.int32), np.empty(n + 1, dtype=np.int64)
    total, rate = np.empty(n), np.empty(n)  # ways to a node, and what each of them carries
    arrived, senders = 0.0, 0
    for v in range(n):
        senders += weight[v] != 0
    for i in range(roots.size):
        distance[:] = -1
        distance[roots[i]], order[0], total[roots[i]] = 0, roots[i], 1.0
        first, last, count = 0, 1, 0
        awaited = senders - (weight[roots[i]] != 0)
        farthest = n if awaited else 0  # nothing comes from beyond the last sender
        while first < last and distance[order[first]] < farthest:
            u = order[first]
            start[first] = count
            if first == 0 or transit[u]:
                ways = total[u] if by_paths else 1.0
                for a in range(indptr[u], indptr[u + 1]):
                    v = head[a]
                    if distance[v] < 0:
                        distance[v], order[last], total[v] = distance[u] + 1, v, 0.0
                        last += 1
                        awaited -= weight[v] != 0
                        if awaited == 0 and farthest == n:
                            farthest = distance[v]
                    if distance[v] > distance[u]:
                        total[v] += cables[a] * ways
                        used[count] = a
                        count += 1
            first += 1
        start[first : last + 1] = count
        for j in range(last - 1, -1, -1):
            u = order[j]
            ways = total[u] if by_paths else 1.0
            flow = weight[u]
            for b in range(start[j], start[j + 1]):
                a = used[b]
                part = rate[head[a]] * cables[a] * ways
                flow += part
                against[a] += part * scale[i]
            rate[u] = flow / total[u]
            if j > 0:
                arrived += weight[u] * scale[i]
    return arrived


@numba.njit(cache=True)
def search(indptr, head, transit, length, root, distance, order):  # type: ignore[no-untyped-def]
    """Dijkstra from a root: distances (infinite where no path leads) and the nodes by distance."""
    distance[:] = np.inf
    done = np.zeros(distance.size, dtype=np.bool_)
    distance[root] = 0.0
    heap, reached = [(0.0, root)], 0
    while len(heap) > 0:
        u = heappop(heap)[1]
        if done[u]:
            continue
        done[u], order[reached] = True, u
        reached += 1
        if u == root or transit[u]:
            for a in range(indptr[u], indptr[u + 1]):
                v, through = np.int64(head[a]), distance[u] + length[a]
                if through < distance[v]:
                    distance[v] = through
                    heappush(heap, (through, v))
    return reached


@numba.njit(cache=True)
def distances(indptr, head, transit, length, roots):  # type: ignore[no-untyped-def]
    """Distance from every root to every node, [roots, n]."""
    found = np.empty((roots.size, indptr.size - 1))
    order = np.empty(indptr.size - 1, dtype=np.int64)
    for i in range(roots.size):
        search(indptr, head, transit, length, roots[i], found[i], order)
    return found


@numba.njit(cache=True)
def route(  # type: ignore[no-untyped-def]
    indptr, head, reverse, transit, length, capacity, roots, demand, softness, load
):
    """Add to ``load`` the demand of every root, on paths about as short as the shortest.

    Row i of ``demand`` is what roots[i] sends to every node. Where an arc makes a path longer by x
    than the shortest, it takes a share in proportion to capacity x exp(-x / softness). Returns the
    sum of demand times shortest distance, infinite where a demand has no path.
    """
    n = indptr.size - 1
    distance, order, rank = np.empty(n), np.empty(n, dtype=np.int64), np.empty(n, dtype=np.int64)
    flow, width = np.empty(n), np.empty(head.size)
    travelled = 0.0
    for i in range(roots.size):
        root = roots[i]
        reached = search(indptr, head, transit, length, root, distance, order)
        rank[:] = n
        for j in range(reached):
            rank[order[j]] = j
        for v in range(n):
            flow[v] = demand[i, v]
            if flow[v] > 0.0:
                travelled += flow[v] * distance[v]
        for j in range(reached - 1, 0, -1):
            v = order[j]
            if flow[v] <= 0.0:
                continue
            total = 0.0
            for b in range(indptr[v], indptr[v + 1]):
                u, a = head[b], reverse[b]
                width[b] = 0.0
                if rank[u] < j and (u == root or transit[u]):
                    longer = (distance[u] + length[a] - distance[v]) / softness
                    if longer < 40.0:  # less than the rounding of the total
                        width[b] = capacity[a] * np.exp(-longer)
                        total += width[b]
            for b in range(indptr[v], indptr[v + 1]):
                if width[b] > 0.0:
                    part = flow[v] * width[b] / total
                    flow[head[b]] += part
                    load[reverse[b]] += part
    return travelled
