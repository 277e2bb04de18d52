"""Arcs that traffic uses: both directions of living pairs of joined nodes, in units of a host link.

Hosts that do not forward and have the same neighbours, cables and capacities are *twins*: one of
them stands for the class, with the cables of all. Exchanging twins changes nothing else, so all of
them carry the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from relparallel.topology import Topology, as_topology
from relparallel.topology._arrays import BoolArray, FloatArray, IntArray, flags
from relparallel.topology.compiled import first_twins

if TYPE_CHECKING:
    import networkx as nx


@dataclass(frozen=True, kw_only=True, slots=True)
class Network:
    """One node for each class of twins, one arc per direction of a pair, sorted by tail, then head.

    ``member[v]`` is the node that stands for v, ``origin`` the first that it stands for, ``weight``
    the hosts of a node that live; ``cables`` and ``capacity`` (in host links) are of all cables
    between two classes.
    """

    indptr: IntArray
    tail: IntArray
    head: IntArray
    cables: FloatArray
    capacity: FloatArray
    weight: FloatArray
    transit: BoolArray
    member: IntArray
    origin: IntArray

    @property
    def reverse(self) -> IntArray:
        """The arc back, of every arc."""
        n = self.weight.size
        return np.searchsorted(self.tail * n + self.head, self.head * n + self.tail)


def network(t: Topology, weight: FloatArray, cables: IntArray) -> Network:
    """Arcs of the living cables; ``weight`` is 1 at the living hosts and 0 elsewhere."""
    tail, head, number, capacity = _arcs(t, cables)
    starts = np.searchsorted(tail, np.arange(t.num_nodes + 1))
    # bits of the floats
    rows = np.column_stack([head, number.view(np.int64), capacity.view(np.int64)])
    candidates = (weight > 0) & ~t.transit & (np.diff(starts) > 0)
    stands = first_twins(starts, rows, t.transit, candidates)
    size = np.bincount(stands, minlength=t.num_nodes).astype(np.float64)
    return _merged(t, stands, (tail, head, number, capacity), weight * size, size)


def _merged(
    t: Topology,
    stands: IntArray,
    arcs: tuple[IntArray, IntArray, FloatArray, FloatArray],
    weight: FloatArray,
    size: FloatArray,
) -> Network:
    """One node for all that one node stands for; ``size`` is that of a class of twins, else 1."""
    tail, head, number, capacity = arcs
    kept = np.flatnonzero(stands == np.arange(t.num_nodes))
    member = np.searchsorted(kept, stands)
    inside = (stands[tail] == tail) & (stands[head] == head)
    many = size[tail[inside]] * size[head[inside]]
    tail, head = member[tail[inside]], member[head[inside]]
    return Network(
        indptr=np.searchsorted(tail, np.arange(kept.size + 1)),
        tail=tail,
        head=head,
        cables=number[inside] * many,
        capacity=capacity[inside] * many,
        weight=weight[kept],
        transit=t.transit[kept],
        member=member,
        origin=kept,
    )


def carriers(t: Topology, net: Network, cables: IntArray) -> tuple[IntArray, FloatArray]:
    """Of each direction of every pair, [m, 2]: the arc for it, and its share of that arc's load.

    The share is 0 where the pair has no living cable.
    """
    ends = np.stack([t.edges, t.edges[:, ::-1]], axis=1)
    n = net.weight.size
    wanted = net.member[ends[..., 0]] * n + net.member[ends[..., 1]]
    found = np.minimum(np.searchsorted(net.tail * n + net.head, wanted), max(net.tail.size - 1, 0))
    living = np.flatnonzero(cables)
    share = np.zeros(found.shape)
    share[living] = cables[living, None] / net.cables[found[living]]
    return found, share


def link_capacity(t: Topology) -> float:
    """The unit: bytes/s of the slowest cable of a host."""
    at_hosts = t.capacity[t.endpoint[t.edges].any(axis=1)]
    return float(at_hosts.min()) if at_hosts.size else 1.0


def arcs_of(t: Topology, alive: BoolArray) -> tuple[FloatArray, IntArray]:
    """Living hosts and cables, from the state of all nodes and all pairs."""
    nodes, pairs = alive[: t.num_nodes], alive[t.num_nodes :]
    both = pairs & nodes[t.edges].all(axis=1)
    return (t.endpoint & nodes).astype(np.float64), t.multiplicity * both


def require_alive(t: Topology, alive: BoolArray | None) -> BoolArray:
    """Return the state of nodes and pairs; everything lives by default."""
    size = t.num_nodes + len(t.edges)
    return (
        np.ones(size, dtype=bool)
        if alive is None
        else flags("alive", alive, size, "nodes, then edges")
    )


def require_hosts(topology: Topology | nx.Graph[Any]) -> Topology:
    """Return the topology if traffic has two ends."""
    t = as_topology(topology, name="topology")
    if t.num_hosts < 2:
        raise ValueError(f"topology must have at least two hosts, got {t.num_hosts} in {t!r}")
    return t


def _arcs(t: Topology, cables: IntArray) -> tuple[IntArray, IntArray, FloatArray, FloatArray]:
    """Tail, head, cables and capacity of both directions of every living pair, sorted."""
    living = np.flatnonzero(cables)
    tail, head = np.concatenate([t.edges[living], t.edges[living, ::-1]]).T
    order = np.lexsort((head, tail))
    number = np.tile(cables[living].astype(np.float64), 2)
    capacity = number * np.tile(t.capacity[living] / link_capacity(t), 2)
    return tail[order], head[order], number[order], capacity[order]


def switch_level(t: Topology) -> Network:
    """Hosts that hang on one forwarding node are counted there; others stay nodes of their own."""
    tail, head, number, capacity = _arcs(t, t.multiplicity)
    joined = np.searchsorted(tail, np.arange(t.num_nodes + 1))
    single = t.endpoint & ~t.transit & (np.diff(joined) == 1)
    leaf = np.flatnonzero(single)
    leaf = leaf[t.transit[head[joined[leaf]]]]
    stands = np.arange(t.num_nodes)
    stands[leaf] = head[joined[leaf]]
    hosts = np.bincount(stands[t.hosts], minlength=t.num_nodes).astype(np.float64)
    return _merged(t, stands, (tail, head, number, capacity), hosts, np.ones(t.num_nodes))
