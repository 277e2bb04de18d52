"""Nodes that cut two others apart."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from itertools import chain, combinations
from typing import Any

import networkx as nx
import numpy as np

from relparallel.metrics.cuts import both_ends, reaches_all
from relparallel.metrics.estimate import Estimate, exactly
from relparallel.topology import Topology, as_topology
from relparallel.topology._arrays import IntArray
from relparallel.topology.disjoint import disjoint_path_set
from relparallel.topology.routing import flow_of_paths
from relparallel.topology.symmetry import orbits


def vertex_connectivity(
    topology: Topology | nx.Graph[Any],
    source: Hashable | None = None,
    target: Hashable | None = None,
) -> Estimate:
    """Most node-disjoint paths from source to target; or fewest nodes whose loss separates others.

    For a pair: the number of `disjoint_path_set`, where a cable between the two is one path. For
    the whole: the smallest number of nodes without which two others are apart; one less than the
    nodes where no loss can separate any. 0 where no path exists. A node without ``transit`` lies on
    no path but its own.

    Maximum flows through split nodes. For the whole they run from one forwarding node v to all
    nodes that it is not joined to, one of each orbit of the proved symmetries that keep v in place,
    and between its neighbours: a smallest set of lost nodes leaves v, or contains it and separates
    two of its neighbours. Esfahanian, Hakimi, "On computing the connectivities of graphs and
    digraphs", Networks 1984.

    >>> from relparallel.topology import bcube
    >>> float(vertex_connectivity(bcube(n=4, k=2))), float(vertex_connectivity(nx.complete_graph(5)))
    (3.0, 4.0)
    """
    t = as_topology(topology, name="topology")
    if source is None and target is None:
        value = _fewest_nodes(t)
    else:
        value = len(disjoint_path_set(t, *both_ends(source, target)))
    return exactly(value, "maximum flow")


def _fewest_nodes(t: Topology) -> int:
    """Fewest nodes whose loss separates two others."""
    n = t.num_nodes
    if n < 2:
        raise ValueError(f"topology must have at least two nodes, got {t!r}")
    if not t.transit.any():
        return n - 1 if len(t.edges) == n * (n - 1) // 2 else 0
    degree = np.diff(t.indptr)
    v = int(np.where(t.transit, degree, n).argmin())
    if not reaches_all(t, v):
        return 0
    fewest = n - 1
    for a, b in chain(((v, w) for w in _far(t, v)), _neighbour_pairs(t, v)):
        if fewest == 1:
            break
        fewest = min(fewest, flow_of_paths(t, a, b, "ends").value)
    return fewest


def _far(t: Topology, v: int) -> IntArray:
    """Nodes not joined to v, one of each orbit of the symmetries that fix v; few cables first."""
    far = np.ones(t.num_nodes, dtype=bool)
    far[[v, *t.indices[t.indptr[v] : t.indptr[v + 1]]]] = False
    _, first = np.unique(orbits(t, np.arange(t.num_nodes) == v), return_index=True)
    chosen = first[far[first]]
    return chosen[np.argsort(np.diff(t.indptr)[chosen], kind="stable")]


def _neighbour_pairs(t: Topology, v: int) -> Iterator[tuple[int, int]]:
    """Pairs of neighbours of v that no cable joins."""
    around = t.indices[t.indptr[v] : t.indptr[v + 1]].tolist()
    for a, b in combinations(around, 2):
        if b not in t.indices[t.indptr[a] : t.indptr[a + 1]]:
            yield a, b
