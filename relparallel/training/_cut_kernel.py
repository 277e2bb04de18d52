"""Which hosts of a job are apart from most of the others, compiled."""

from __future__ import annotations

import numba
import numpy as np


@numba.njit(cache=True)
def _root(above, node):  # type: ignore[no-untyped-def]
    """First node of the part that a node is in; shortens the way there."""
    while above[node] != node:
        above[node] = above[above[node]]
        node = above[node]
    return node


@numba.njit(cache=True)
def apart_from_most(indptr, head, link, cables, transit, living, hosts):  # type: ignore[no-untyped-def]
    """Whether each host is not at the part of the network that most of them are at.

    Union-find over living cables between nodes that forward; of two parts the lower node leads.
    """
    n, m = indptr.size - 1, cables.size
    above = np.arange(n)
    for u in range(n):
        if not transit[u]:
            continue
        for a in range(indptr[u], indptr[u + 1]):
            v = head[a]
            if v > u and transit[v] and cables[link[a] % m] > 0:
                one, other = _root(above, u), _root(above, v)
                above[max(one, other)] = min(one, other)
    number, seen = np.zeros(n, dtype=np.int64), np.full(n, -1, dtype=np.int64)
    at = np.zeros(hosts.size, dtype=np.bool_)
    most = -1
    for counting in (True, False):  # first how many are where, then who is not there
        seen[:] = -1
        for i in range(hosts.size):
            u = hosts[i]
            if not living[u]:
                continue
            for a in range(indptr[u] - 1, indptr[u + 1]):
                v = head[a] if a >= indptr[u] else u
                if not transit[v] or (v != u and cables[link[a] % m] == 0):
                    continue
                part = _root(above, v)
                if counting and seen[part] != i:
                    seen[part] = i
                    number[part] += 1
                elif not counting and part == most:
                    at[i] = True
        most = int(np.argmax(number))
    return ~at
