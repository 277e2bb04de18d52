"""Disjoint paths by maximum flow, where hosts that do not forward carry only their own traffic."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING, Any

import numpy as np

from relparallel.topology.fabric import Topology, as_topology

if TYPE_CHECKING:
    import networkx as nx


def disjoint_paths(topology: Topology | nx.Graph[Any], source: Hashable, target: Hashable) -> int:
    """Largest number of paths from source to target that share no cable.

    Parameters
    ----------
    topology : Topology or networkx.Graph
        Parallel cables count singly; a node without ``transit`` lies on no path but its own.
    source, target : hashable
        Labels of two different nodes (indices for the built designs).

    Returns
    -------
    int
        0 where no path joins them.

    Notes
    -----
    By Menger's theorem this is also the smallest number of cables whose loss separates the two. Dinic's
    algorithm on unit capacities, at most O(m min(m^1/2, n^2/3)).

    Examples
    --------
    >>> import networkx as nx
    >>> disjoint_paths(nx.cycle_graph(5), 0, 2)
    2
    """
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import maximum_flow

    t = as_topology(topology, name="topology")
    s, d = node_index(t, "source", source), node_index(t, "target", target)
    if s == d:
        raise ValueError(f"target must differ from source, got {target!r} for both")
    tail, head = np.concatenate([t.edges, t.edges[:, ::-1]]).T
    cables = np.tile(t.multiplicity, 2).astype(np.int32)
    forwards = t.transit.copy()
    forwards[[s, d]] = True
    usable = forwards[tail] & forwards[head]
    arcs = csr_array((cables[usable], (tail[usable], head[usable])), shape=(t.num_nodes,) * 2)
    arcs.indices, arcs.indptr = arcs.indices.astype(np.int32), arcs.indptr.astype(np.int32)
    return int(maximum_flow(arcs, s, d, method="dinic").flow_value)


def node_index(topology: Topology, name: str, label: Hashable) -> int:
    """Index of the node that an argument of that name labels."""
    try:
        return topology.index_of(label)
    except ValueError:
        raise ValueError(f"{name} must be a node of {topology!r}, got {label!r}") from None
