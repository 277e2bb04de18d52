"""How much capacity a tier offers upwards for what comes from below."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from relparallel.topology import Topology, as_topology

if TYPE_CHECKING:
    import networkx as nx
    import pandas as pd


def oversubscription(topology: Topology | nx.Graph[Any]) -> pd.DataFrame:
    """Capacity from lower tiers over capacity to higher tiers, for every tier that has both.

    Parameters
    ----------
    topology : Topology or networkx.Graph
        Tiers are its ``tier``; nodes of tier -1 and cables inside a tier do not count.

    Returns
    -------
    pandas.DataFrame
        Indexed by tier, lowest first; columns kind (of its nodes), nodes, down and up (capacity of all cables
        in one direction [bytes/s]), ratio (down over up) and worst (largest ratio of one node, infinity where
        a node has no way up). Empty where no tier lies between two others.

    Notes
    -----
    1 is a network that can carry upwards all that its hosts send. O(n + m).

    References
    ----------
    Al-Fares, Loukissas, Vahdat, "A scalable, commodity data center network architecture", SIGCOMM 2008,
    section 2.1.

    Examples
    --------
    >>> from relparallel.topology import leaf_spine
    >>> oversubscription(leaf_spine(leaves=4, spines=2, hosts_per_leaf=8))["ratio"].tolist()
    [4.0]
    """
    import pandas as pd

    t = as_topology(topology, name="topology")
    low, high = np.where(t.tier[t.edges[:, :1]] <= t.tier[t.edges[:, 1:]], t.edges, t.edges[:, ::-1]).T
    counts = (t.tier[low] >= 0) & (t.tier[low] < t.tier[high])
    capacity = (t.multiplicity * t.capacity)[counts]
    up = np.bincount(low[counts], weights=capacity, minlength=t.num_nodes)
    down = np.bincount(high[counts], weights=capacity, minlength=t.num_nodes)
    nodes = pd.DataFrame({"tier": t.tier, "kind": np.array(t.kinds)[t.node_kind], "down": down, "up": up})
    nodes["worst"] = np.divide(down, up, out=np.full(t.num_nodes, np.inf), where=up > 0)
    groups = nodes[nodes["down"] > 0].groupby("tier")
    table = groups.agg({"kind": _joined, "down": "sum", "up": "sum", "worst": "max"})
    table["nodes"] = groups.size()
    between = table[table["up"] > 0]
    return between.assign(ratio=between["down"] / between["up"])[
        ["kind", "nodes", "down", "up", "ratio", "worst"]
    ]


def _joined(kinds: pd.Series[str]) -> str:
    return ", ".join(sorted(set(kinds)))
