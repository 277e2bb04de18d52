"""Where nodes stand: racks fail and are fed together, whatever a design says of its wiring."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from relparallel.topology._arrays import BoolArray, IntArray, parts
from relparallel.topology.fabric import Topology, as_topology

if TYPE_CHECKING:
    import networkx as nx


def racks(topology: Topology | nx.Graph[Any]) -> IntArray:
    """Which rack every node stands in, by where it usually stands: from 0, -1 for switches of several racks.

    Where cables join the hosts of every pod without a switch (a torus, cubes of a TPU, boards of a
    HammingMesh), a rack is a pod. Elsewhere it is a switch with the hosts whose first switch it is:
    top-of-rack switches, the lowest level of BCube and DCell, NVSwitch domains. A host on no switch
    is a rack by itself. A switch all of whose hosts are in one rack stands there too.

    >>> from relparallel.topology import leaf_spine
    >>> racks(leaf_spine(leaves=2, spines=1, hosts_per_leaf=3)).tolist()
    [0, 0, 0, 1, 1, 1, 0, 1, -1]
    """
    t = as_topology(topology, name="topology")
    group = np.where(t.endpoint, t.pod if _whole_pods(t) else _first_switch(t), -1)
    rack = np.full(t.num_nodes, -1)
    rack[t.hosts] = np.unique(group[t.hosts], return_inverse=True)[1]
    host, switch = _ends(t)
    lowest, highest = np.full(t.num_nodes, t.num_nodes), np.full(t.num_nodes, -1)
    np.minimum.at(lowest, switch, rack[host])
    np.maximum.at(highest, switch, rack[host])
    return np.where(~t.endpoint & (lowest == highest), highest, rack)


def _ends(t: Topology) -> tuple[IntArray, IntArray]:
    """Host and switch of every pair of one and the other, by host, then switch."""
    tail = np.repeat(np.arange(t.num_nodes), np.diff(t.indptr))
    cable: BoolArray = t.endpoint[tail] & ~t.endpoint[t.indices]
    return tail[cable], t.indices[cable]


def _first_switch(t: Topology) -> IntArray:
    """First switch of every host; its own index, behind all switches, where it has none."""
    host, switch = _ends(t)
    first = t.num_nodes + np.arange(t.num_nodes)
    some, at = np.unique(host, return_index=True)
    first[some] = switch[at]
    return first


def _whole_pods(t: Topology) -> bool:
    """Whether cables between hosts alone hold every pod of hosts together."""
    pod = t.pod[t.hosts]
    inside = t.edges[
        t.endpoint[t.edges].all(axis=1) & (t.pod[t.edges[:, 0]] == t.pod[t.edges[:, 1]])
    ]
    part = parts(inside, t.num_nodes)[t.hosts]
    pods, sizes = np.unique(pod, return_counts=True)
    whole = np.unique(np.column_stack([pod, part]), axis=0).shape[0] == pods.size
    return bool(whole and pod.size and pod.min() >= 0 and sizes.min() > 1)
