"""What a picture of a large cluster omits: hosts attached alike, and most of what a pod repeats."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import networkx as nx
import numpy as np
from numpy.typing import NDArray

from chapters.drawing.grids import is_nvswitch, is_tiered
from relparallel._checks import require_choice
from relparallel.topology import Topology, as_topology

IntArray = NDArray[np.int64]


def abridge(
    topology: Topology | nx.Graph[Any],
    shown: Mapping[str, int] | None = None,
    *,
    hosts: Sequence[int] | None = None,
) -> Topology:
    """Part of a Clos network or cluster, with tiers above its hosts, that is enough for a picture.

    ``shown`` says how many nodes of a kind to keep in every pod, and of those in none, spread
    evenly; kinds that are not named are kept whole. Hosts on one NVSwitch, or else on one switch,
    are one node: ``node_attributes["count"]`` is the number of hosts in it,
    ``node_attributes["of"]`` how many nodes there were in its row. With ``hosts`` these alone
    stay, one by one, and the switches above them. For pictures alone: it no longer agrees with the
    closed forms of its design.

    >>> from relparallel.topology import vl2
    >>> abridge(vl2(d_a=4, d_i=4)).node_attributes["count"][:2].tolist()
    [20, 20]
    """
    t = as_topology(topology, name="topology")
    if not is_tiered(t):
        raise ValueError(f"topology must have tiers above its hosts, got {t!r}")
    kept = dict(shown or {})
    for kind in kept:
        require_choice(t.kinds, shown=kind)
    into = _merged_into(t) if hosts is None else np.arange(t.num_nodes)
    alone = np.flatnonzero(into == np.arange(t.num_nodes)) if hosts is None else _above(t, hosts)
    chosen, of = _spread_out(t, into, alone, kept)
    count = np.bincount(into[t.hosts], minlength=t.num_nodes)
    return _part(t, into, chosen, {"count": count[chosen], "of": of})


def _above(t: Topology, hosts: Sequence[int]) -> IntArray:
    """Some hosts and all switches that they reach by going up."""
    above = np.zeros(t.num_nodes, dtype=bool)
    above[list(hosts)] = True
    for low, high in t.edges[np.argsort(t.tier[t.edges[:, 0]], kind="stable")].tolist():
        above[high] |= above[low]
    return np.flatnonzero(above)


def _merged_into(t: Topology) -> IntArray:
    """Node that stands for each: the first host of a switch, for an NVSwitch its first GPU."""
    inner, node = is_nvswitch(t), np.arange(t.num_nodes)
    home = np.full(t.num_nodes, -1)
    low, high = t.edges.T
    mine = t.endpoint[low] & ~t.endpoint[high] & (inner[high] | ~inner.any())
    home[low[mine]] = high[mine]
    # a host with cables to several switches
    several = np.bincount(low[mine], minlength=t.num_nodes) > 1
    home[several] = -1
    hosts = np.flatnonzero(home >= 0)
    _, first, which = np.unique(home[hosts], return_index=True, return_inverse=True)
    into = node.copy()
    into[hosts] = hosts[first][which]
    own = inner & np.isin(node, home)
    into[own] = hosts[first][np.searchsorted(np.unique(home[hosts]), node[own])]
    return into


def _spread_out(
    t: Topology, into: IntArray, nodes: IntArray, kept: Mapping[str, int]
) -> tuple[IntArray, IntArray]:
    """Nodes that stay, and the size of the row of each: of one kind in one pod."""
    stay, of = np.zeros(t.num_nodes, dtype=bool), np.zeros(t.num_nodes, dtype=np.int64)
    # from the top, so that hosts stay with their switches
    for tier in np.unique(t.tier[nodes])[::-1]:
        near = np.zeros(t.num_nodes, dtype=bool)
        near[into[t.edges[stay[t.edges[:, 1]], 0]]] = True
        for kind, pod in {
            (int(t.node_kind[v]), int(t.pod[v])) for v in nodes[t.tier[nodes] == tier]
        }:
            whole = nodes[(t.node_kind[nodes] == kind) & (t.pod[nodes] == pod)]
            row = whole[near[whole]] if tier == 0 else whole
            most = min(kept.get(t.kinds[kind], len(row)), len(row))
            stay[row[np.linspace(0, len(row) - 1, most).round().astype(np.int64)]] = True
            of[row] = len(row)
    return np.flatnonzero(stay), of[stay]


def _part(
    t: Topology, into: IntArray, chosen: IntArray, attributes: Mapping[str, IntArray]
) -> Topology:
    """Topology of the chosen nodes, with the cables of those that they stand for."""
    place = np.full(t.num_nodes, -1)
    place[chosen] = np.arange(chosen.size)
    ends = place[into[t.edges]]
    inside = (ends >= 0).all(axis=1) & (ends[:, 0] != ends[:, 1])
    edges, first = np.unique(np.sort(ends[inside], axis=1), axis=0, return_index=True)
    cable = np.flatnonzero(inside)[first]
    return Topology(
        edges=edges,
        multiplicity=t.multiplicity[cable],
        capacity=t.capacity[cable],
        latency=t.latency[cable],
        kinds=t.kinds,
        device_classes=t.device_classes,
        labels=[t.labels[node] for node in chosen],
        node_attributes=dict(attributes),
        meta=t.meta,
        **{
            name: getattr(t, name)[chosen]
            for name in ("node_kind", "endpoint", "transit", "tier", "pod", "rail", "device_class")
        },
    )
