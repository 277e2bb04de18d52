"""How many cables, or nodes, must fail to separate nodes, and the disjoint paths that prove it."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy

from relparallel.metrics.estimate import Estimate, exactly
from relparallel.topology import Topology, as_topology
from relparallel.topology.routing import disjoint_paths

if TYPE_CHECKING:
    import networkx as nx


def edge_connectivity(
    topology: Topology | nx.Graph[Any],
    source: Hashable | None = None,
    target: Hashable | None = None,
) -> Estimate:
    """Fewest cables whose loss separates source from target; or any two nodes, if both are None.

    Parameters
    ----------
    topology : Topology or networkx.Graph
        Parallel cables count singly; a node without ``transit`` lies on no path but its own.
    source, target : hashable, optional
        Labels of two different nodes. Both or none.

    Returns
    -------
    Estimate
        Exact; also the number of paths that share no cable (Menger). 0 where no path exists.

    Notes
    -----
    One maximum flow (Dinic) for a pair. For the whole, one flow from a forwarding node to every
    other is enough: what is not separated from it is joined through it.

    Examples
    --------
    >>> from relparallel.topology import bcube
    >>> edge_connectivity(bcube(n=4, k=2), 0, 63)
    Estimate(3, exact, maximum flow)
    """
    t = as_topology(topology, name="topology")
    if source is None and target is None:
        value = _fewest_cables(t)
    else:
        value = disjoint_paths(t, *both_ends(source, target))
    return exactly(value, "maximum flow")


def both_ends(source: Hashable | None, target: Hashable | None) -> tuple[Hashable, Hashable]:
    """Return source and target where both are given."""
    if source is None or target is None:
        name, other = ("source", "target") if source is None else ("target", "source")
        raise ValueError(f"{name} must be a node where {other} is one, got None")
    return source, target


def _fewest_cables(t: Topology) -> int:
    """Fewest disjoint paths over all pairs of nodes."""
    n = t.num_nodes
    if n < 2:
        raise ValueError(f"topology must have at least two nodes, got {t!r}")
    if not t.transit.any():  # only a direct cable joins two nodes
        return int(t.multiplicity.min()) if len(t.edges) == n * (n - 1) // 2 else 0
    first = int(np.argmax(t.transit))
    fewest = int(t.degrees.min()) if reaches_all(t, first) else 0
    for other in range(n):
        if fewest <= 1:  # joined, so no pair has less
            break
        if other != first:
            fewest = min(fewest, disjoint_paths(t, t.labels[first], t.labels[other]))
    return fewest


def reaches_all(t: Topology, first: int) -> bool:
    """Whether a forwarding node has a path to every other node."""
    tail, head = np.concatenate([t.edges, t.edges[:, ::-1]]).T
    arcs = t.transit[tail]
    graph = scipy.sparse.csr_array(
        (np.ones(arcs.sum()), (tail[arcs], head[arcs])), shape=(t.num_nodes,) * 2
    )
    return bool(
        scipy.sparse.csgraph.breadth_first_order(graph, first, return_predecessors=False).size
        == t.num_nodes
    )
