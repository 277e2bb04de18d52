"""Share of the pairs of hosts that a state leaves joined, fast where connected parts decide it."""

from __future__ import annotations

from collections.abc import Callable

import numba
import numpy as np
from numpy.typing import NDArray

from relparallel.metrics import survival
from relparallel.topology import Topology

BoolArray = NDArray[np.bool_]


def pairs_measure(t: Topology) -> Callable[[Topology, BoolArray], float]:
    """Share of the ordered pairs of hosts that a path joins, from connected parts where these decide."""
    neighbours = np.bincount(t.edges.ravel(), minlength=t.num_nodes)
    if t.num_hosts < 2 or (~t.transit & (neighbours > 1)).any():
        return lambda topology, alive: survival(topology, alive).pairs
    pairs = t.num_hosts * (t.num_hosts - 1)
    return lambda topology, alive: _joined_pairs(topology.edges, topology.endpoint, alive) / pairs


@numba.njit(cache=True)
def _joined_pairs(edges, host, alive):  # type: ignore[no-untyped-def]
    """Ordered pairs of hosts in one connected part of what is alive."""
    n = host.size
    root = np.arange(n)
    for e in range(len(edges)):
        u, v = edges[e]
        if alive[n + e] and alive[u] and alive[v]:
            while root[u] != u:
                root[u] = root[root[u]]
                u = root[u]
            while root[v] != v:
                root[v] = root[root[v]]
                v = root[v]
            root[max(u, v)] = min(u, v)
    hosts, total = np.zeros(n, np.int64), 0
    for v in range(n):
        root[v] = root[root[v]]  # a root is the first node of its part, so the one above is settled
        if host[v] and alive[v]:
            total += 2 * hosts[root[v]]
            hosts[root[v]] += 1
    return total
