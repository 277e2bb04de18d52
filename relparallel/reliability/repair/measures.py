"""What a state delivers: the share of the pairs of hosts that is joined, and the largest flow."""

from collections.abc import Callable
from fractions import Fraction
from typing import Final

import numba
import numpy as np
from numpy.typing import NDArray

from relparallel.metrics import survival
from relparallel.topology import Topology
from relparallel.topology.routing import maximum_flow

BoolArray = NDArray[np.bool_]
IntArray = NDArray[np.int64]
Measure = Callable[[Topology, BoolArray], float]
_MOST_UNITS: Final = 2**20  # of the smallest capacity in the largest


def pairs_measure(t: Topology) -> Measure:
    """Share of the ordered pairs of hosts that a path joins, from connected parts where these decide."""
    neighbours = np.bincount(t.edges.ravel(), minlength=t.num_nodes)
    if t.num_hosts < 2 or (~t.transit & (neighbours > 1)).any():
        return lambda topology, alive: survival(topology, alive).pairs
    pairs = t.num_hosts * (t.num_hosts - 1)
    return lambda topology, alive: _joined_pairs(topology.edges, topology.endpoint, alive) / pairs


def flow_measure(t: Topology, marks: IntArray) -> Measure:
    """Largest flow between marked nodes as a function of the state, in smallest capacities."""
    n = t.num_nodes
    cable = [
        Fraction(float(c)).limit_denominator(10**6) if c < 1e6 else Fraction(round(c)) for c in t.capacity
    ]
    smallest = min(cable, default=Fraction(1))
    shares = [(c / smallest).limit_denominator(64) for c in cable]
    parts = int(np.lcm.reduce([share.denominator for share in shares])) if shares else 1
    units = np.array([int(share * parts) for share in shares], dtype=np.int64) * t.multiplicity
    if units.sum() > _MOST_UNITS**2 or units.max(initial=0) > _MOST_UNITS or parts > _MOST_UNITS:
        raise ValueError(f"graph must have capacities with a common unit, got {np.unique(t.capacity)[:4]}")
    forwards = t.transit | (marks > 0)
    ends = np.array([n, n + 1])
    outer = np.minimum(units.sum() + 1, 2**30)

    def flow(topology: Topology, alive: BoolArray) -> float:
        node = alive[:n] & forwards
        keep = alive[n:] & node[topology.edges].all(axis=1)
        u, v = topology.edges[keep].T
        start, goal = (np.flatnonzero(node & (marks == mark)) for mark in (1, 2))
        tail = np.concatenate([u, v, np.full(start.size, ends[0]), goal])
        head = np.concatenate([v, u, start, np.full(goal.size, ends[1])])
        amount = np.concatenate([np.tile(units[keep], 2), np.full(start.size + goal.size, outer)])
        return maximum_flow(tail, head, amount, n + 2, n, n + 1).value / parts

    return flow


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
