"""Directed edges between numbered layers: checks, sums over groups, contraction."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from relparallel.topology import _arrays
from relparallel.topology._arrays import FloatArray, IntArray

if TYPE_CHECKING:
    import networkx as nx


def sums(groups: IntArray, amounts: FloatArray, count: int) -> FloatArray:
    """Sum of the amounts in each of the groups 0 ... count - 1."""
    return np.bincount(groups, amounts, count).astype(np.float64)


def directed_pairs(edges: ArrayLike, n: int) -> IntArray:
    """Check pairs of numbers below n, each pair once, and sort them."""
    pairs = _arrays.integers("edges", edges, -1, 2, at_most=n - 1)
    keys, counts = np.unique(pairs, axis=0, return_counts=True)
    if np.any(counts > 1):
        raise ValueError(f"edges must differ from each other, got {keys[counts > 1][0].tolist()} twice")
    return keys


def require_acyclic(edges: IntArray, names: tuple[str, ...]) -> None:
    """Refuse edges that form a cycle, which the message shows."""
    import networkx as nx

    graph: nx.DiGraph[int] = nx.DiGraph(edges.tolist())
    if not nx.is_directed_acyclic_graph(graph):
        cycle = [names[maker] for maker, _ in nx.find_cycle(graph)]
        raise ValueError(f"edges must form no cycle, got {' -> '.join([*cycle, cycle[0]])}")


def stages(places: ArrayLike, edges: IntArray, names: tuple[str, ...]) -> IntArray:
    """Check a stage for each layer: every one up to the last is used, and none falls along an edge."""
    place = _arrays.integers("places", places, len(names), per="names")
    if np.any(np.bincount(place) == 0):
        raise ValueError(f"places must use every stage up to the last, got {place.tolist()}")
    back = edges[place[edges[:, 0]] > place[edges[:, 1]]]
    if len(back):
        maker, user = (names[layer] for layer in back[0])
        raise ValueError(f"places must not fall along an edge, got {place.tolist()}: {maker} -> {user}")
    return place


def components(groups: IntArray, edges: IntArray) -> IntArray:
    """Strongly connected components of the quotient by groups, numbered by their first layer [n]."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    _, group = np.unique(groups, return_inverse=True)
    ends, count = group[edges], int(group.max()) + 1
    quotient = coo_array((np.ones(len(edges)), (ends[:, 0], ends[:, 1])), shape=(count, count))
    _, label = connected_components(quotient.tocsr(), connection="strong")
    _, first, found = np.unique(label[group], return_index=True, return_inverse=True)
    return np.asarray(np.argsort(np.argsort(first))[found], dtype=np.int64)
