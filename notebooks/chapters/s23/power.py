"""Racks that share a feed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import networkx as nx
import numpy as np
from numpy.typing import ArrayLike

from chapters.s23.racks import racks
from relparallel.topology._arrays import integers
from relparallel.topology.fabric import Topology, as_topology
from relparallel.topology.parts import SharedRisk


def with_power_domains(
    topology: Topology | nx.Graph[Any],
    racks_per_domain: int = 1,
    *,
    domain: ArrayLike | None = None,
) -> Topology:
    """The network with a group of ``shared_risk`` for every set of nodes that lose power together.

    So many consecutive `racks` are on one feed, and switches outside racks have feeds of their own;
    or ``domain`` is that of every node, -1 for none.

    >>> from relparallel.topology import leaf_spine
    >>> t = with_power_domains(leaf_spine(leaves=4, spines=2, hosts_per_leaf=1), racks_per_domain=2)
    >>> [group.nodes for group in t.shared_risk]
    [(0, 1, 4, 5), (2, 3, 6, 7)]
    """
    t = as_topology(topology, name="topology")
    if domain is None:
        fed = np.where((rack := racks(t)) < 0, -1, rack // racks_per_domain)
    else:
        fed = integers("domain", domain, t.num_nodes, at_least=-1, per="nodes")
    names = np.unique(fed[fed >= 0])
    digits = len(str(names.max(initial=0)))
    groups = tuple(
        SharedRisk(
            name=f"power domain {name:0{digits}}", nodes=tuple(np.flatnonzero(fed == name).tolist())
        )
        for name in names.tolist()
    )
    return replace(t, shared_risk=(*t.shared_risk, *groups))
