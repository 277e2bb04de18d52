"""Symmetry with proof: permutations of the nodes that a design declares, checked against its cables.

A design is *said* to look the same from every host; a wiring rule or a lost cable may break that. So each
declared permutation is compared with the built network, and only those that map it onto itself are used. The
nodes that the rest carry into each other form an orbit: what is measured from one holds for all of it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, cast

import numba
import numpy as np
from numpy.typing import ArrayLike

from relparallel.topology import _arrays
from relparallel.topology._arrays import IntArray
from relparallel.topology._generators import RULES
from relparallel.topology.description import describe
from relparallel.topology.fabric import Topology
from relparallel.topology.interchange import as_topology

if TYPE_CHECKING:
    import networkx as nx

_STEPS: Final = 64  # images of a node from which symmetries that keep it in place are composed


def is_automorphism(topology: Topology | nx.Graph[Any], permutation: ArrayLike) -> bool:
    """Whether a permutation of the nodes maps the network onto itself.

    Parameters
    ----------
    topology : Topology or networkx.Graph
        The network.
    permutation : int array [n]
        The node that each node is carried to, by index.

    Returns
    -------
    bool
        True where cables go to cables of the same number, capacity and latency, and nodes to nodes of the
        same kind and hardware, hosts to hosts, forwarding ones to forwarding ones.

    Notes
    -----
    Compares the neighbours of every node with those of its image, O(n + m).

    Examples
    --------
    >>> import networkx as nx
    >>> is_automorphism(nx.cycle_graph(4), [1, 2, 3, 0]), is_automorphism(nx.path_graph(3), [1, 2, 0])
    (True, False)
    """
    t = as_topology(topology, name="topology")
    return _proved(t, _permutation(t.num_nodes, permutation))


def automorphisms(topology: Topology | nx.Graph[Any]) -> IntArray:
    """Symmetries that the design declares and the network has: generators of a group.

    Parameters
    ----------
    topology : Topology or networkx.Graph
        All designs but the random ones declare theirs; another network has none.

    Returns
    -------
    int array [generators, n]
        One permutation of the nodes per row, each proved by `is_automorphism`; those that fail are left out.

    Notes
    -----
    Found once for a topology and kept with it, as its other derived arrays are; so are the orbits.

    Examples
    --------
    >>> from relparallel.topology import fat_tree
    >>> automorphisms(fat_tree(k=4)).shape
    (5, 36)
    """
    return _once(as_topology(topology, name="topology"), _automorphisms)


def orbits(topology: Topology | nx.Graph[Any]) -> IntArray:
    """Sets of nodes that proved symmetries carry into each other.

    Parameters
    ----------
    topology : Topology or networkx.Graph
        The network.

    Returns
    -------
    int array [n]
        The orbit of every node, 0, 1, ... by first node. Without a proved symmetry each node is alone.

    Notes
    -----
    Connected components of "node and image" over the generators. The network may have more symmetry than is
    declared; then the orbits are finer than they could be, and never wrong.

    Examples
    --------
    >>> from relparallel.topology import fat_tree
    >>> np.bincount(orbits(fat_tree(k=4))).tolist()
    [16, 8, 8, 4]
    """
    return _once(as_topology(topology, name="topology"), _orbits)


def arc_orbits(topology: Topology | nx.Graph[Any]) -> IntArray:
    """Sets of directed cables that proved symmetries carry into each other.

    Parameters
    ----------
    topology : Topology or networkx.Graph
        The network.

    Returns
    -------
    int array [m, 2]
        The orbit of every joined pair u < v: column 0 for u to v, column 1 for v to u. Loads of a traffic
        that has the symmetry are equal on an orbit.

    Examples
    --------
    >>> from relparallel.topology import torus
    >>> int(arc_orbits(torus((4, 3))).max()) + 1  # the rings of either length
    2
    """
    return _once(as_topology(topology, name="topology"), _arc_orbits)


def orbits_that_fix(t: Topology, node: int) -> IntArray:
    """Orbits of all nodes, [n], under proved symmetries that keep one node in place.

    Where g carries the image of the node under u to its image under w, w^-1 g u keeps it (Schreier); a part
    of these is enough, for a smaller group only has finer orbits.
    """
    generators = automorphisms(t)
    carried = {node: np.arange(t.num_nodes)}
    queue = [node]
    while queue and len(carried) < _STEPS:
        u = carried[queue.pop(0)]
        for image, g in ((int(g[u[node]]), g) for g in generators):
            if image not in carried:
                carried[image] = g[u]
                queue.append(image)
    back = {image: np.argsort(u) for image, u in carried.items()}
    kept = [back[int(g[i])][g[u]] for i, u in carried.items() for g in generators if int(g[i]) in back]
    return _components(np.array(kept, dtype=np.int64).reshape(-1, t.num_nodes))


def _once(t: Topology, find: Callable[[Topology], IntArray]) -> IntArray:
    """What a function finds for a topology, kept with it like its cached properties."""
    found = vars(t)
    if find.__name__ not in found:
        found[find.__name__] = _arrays.read_only(find(t))
    return cast(IntArray, found[find.__name__])


def _automorphisms(t: Topology) -> IntArray:
    """Declared permutations that are proved, one per row."""
    proved = [g for g in _declared(t) if _proved(t, g)]
    return np.array(proved, dtype=np.int64).reshape(-1, t.num_nodes)


def _orbits(t: Topology) -> IntArray:
    """Orbits of the nodes."""
    return _components(automorphisms(t))


def _arc_orbits(t: Topology) -> IntArray:
    """Orbits of the directed cables, [m, 2]."""
    n, m = t.num_nodes, len(t.edges)
    u, v = t.edges.T
    tail, head = np.concatenate([u, v]), np.concatenate([v, u])
    key = tail * n + head
    order = np.argsort(key)
    images = [order[np.searchsorted(key[order], g[tail] * n + g[head])] for g in automorphisms(t)]
    return _components(np.array(images, dtype=np.int64).reshape(-1, 2 * m)).reshape(2, m).T


def _permutation(n: int, permutation: ArrayLike) -> IntArray:
    image = _arrays.integers("permutation", permutation, n, at_most=n - 1, per="node_kind")
    if np.unique(image).size < n:
        raise ValueError(f"permutation must name every node once, got {image.tolist()[:20]}")
    return image


def _proved(t: Topology, image: IntArray) -> bool:
    """Whether a permutation keeps kinds, roles, hardware, cables and what is written on them."""
    kept = (t.node_kind, t.endpoint, t.transit, t.device_class)
    if not all(np.array_equal(attribute, attribute[image]) for attribute in kept):
        return False
    return bool(_keeps_neighbours(t.indptr, t.indices, image)) and _keeps_cables(t, image)


def _keeps_cables(t: Topology, image: IntArray) -> bool:
    """Whether joined pairs go to pairs of the same number, capacity and latency of cables."""
    written = [a for a in (t.multiplicity, t.capacity, t.latency) if a.size and np.any(a != a[0])]
    if not written:
        return True
    ends = np.sort(image[t.edges], axis=1)
    order = np.argsort(ends[:, 0] * t.num_nodes + ends[:, 1])  # the pairs themselves are ascending
    return all(np.array_equal(attribute, attribute[order]) for attribute in written)


@numba.njit(cache=True)
def _keeps_neighbours(indptr, indices, image):  # type: ignore[no-untyped-def]
    """Whether the image of every node has the images of its neighbours."""
    seen_by = np.full(image.size, -1)
    for v in range(image.size):
        w = image[v]
        if indptr[v + 1] - indptr[v] != indptr[w + 1] - indptr[w]:
            return False
        for arc in range(indptr[w], indptr[w + 1]):
            seen_by[indices[arc]] = v
        for arc in range(indptr[v], indptr[v + 1]):
            if seen_by[image[indices[arc]]] != v:
                return False
    return True


def _components(images: IntArray) -> IntArray:
    """Orbits of 0..size-1 under the rows, numbered by first member."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    count, size = images.shape
    start, ones = np.tile(np.arange(size), count), np.ones(count * size, dtype=np.int8)
    graph = coo_array((ones, (start, images.ravel())), shape=(size, size)).tocsr()
    label = np.asarray(connected_components(graph, directed=False)[1])
    _, first, orbit = np.unique(label, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[orbit].astype(np.int64)


def _declared(t: Topology) -> Sequence[IntArray]:
    """Permutations that the design of a topology names; none where it has no rule or other parameters."""
    rule = RULES.get(t.meta.name)
    try:
        form = None if rule is None else describe(t.meta.name, **t.meta.parameters)
    except (TypeError, ValueError):
        form = None
    if rule is None or form is None or form.hosts + form.switches != t.num_nodes:
        return ()
    return rule(**t.meta.parameters)
