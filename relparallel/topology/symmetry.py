"""Symmetry with proof: permutations of nodes that a design declares, checked against its cables.

A design is *said* to look the same from every host; a wiring rule or a lost cable may break that.
So each declared permutation is compared with the built network, and only those that map it onto
itself are used. The nodes that the rest carry into each other form an orbit: what is measured from
one holds for all of it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import TYPE_CHECKING, Any, Final, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from relparallel.topology import _arrays
from relparallel.topology._arrays import IntArray
from relparallel.topology.description import describe, rules
from relparallel.topology.fabric import Topology, as_topology

if TYPE_CHECKING:
    import networkx as nx

Words = NDArray[np.uint64]

_STEPS: Final = 64  # images of a node from which symmetries that keep it in place are composed


def is_automorphism(topology: Topology | nx.Graph[Any], permutation: ArrayLike) -> bool:
    """Whether a permutation of the nodes maps the network onto itself.

    Notes
    -----
    Compares the neighbours of every node with those of its image, O(n + m).
    """
    t = as_topology(topology, name="topology")
    return _proved(t, _permutation(t.num_nodes, permutation))


def _once(find: Callable[[Topology], IntArray]) -> Callable[[Topology | nx.Graph[Any]], IntArray]:
    """Find it once for a topology and keep it there, like its other derived arrays."""

    @wraps(find)
    def found(topology: Topology | nx.Graph[Any]) -> IntArray:
        t = as_topology(topology, name="topology")
        kept, name = vars(t), f"_{find.__name__}"
        if name not in kept:
            kept[name] = _arrays.read_only(find(t))
        return cast(IntArray, kept[name])

    return found


@_once
def automorphisms(t: Topology) -> IntArray:
    """Symmetries the design declares and the network has: generators of a group, one per row."""
    proved = [g for g in _declared(t) if _proved(t, g)]
    return np.array(proved, dtype=np.int64).reshape(-1, t.num_nodes)


def orbits(
    topology: Topology | nx.Graph[Any],
    node_colours: ArrayLike | None = None,
    edge_colours: ArrayLike | None = None,
) -> IntArray:
    """Sets of nodes that proved symmetries carry into each other.

    Parameters
    ----------
    topology : Topology or networkx.Graph
        The network.
    node_colours, edge_colours : array [n] or [n, columns], [m] or [m, columns], optional
        What else must agree for two nodes or two joined pairs to be interchangeable, such as
        failure probabilities; all alike by default.

    Returns
    -------
    int array [n]
        The orbit of every node, 0, 1, ... by first node. Without a proved symmetry each node is
        alone.

    Notes
    -----
    Connected components of "node and image" over the generators that keep the colours. The network
    may have more symmetry than is declared; then the orbits are finer than they could be, and never
    wrong. `refine_colours` errs on the other side: its classes are unions of orbits.

    Examples
    --------
    >>> from relparallel.topology import fat_tree
    >>> np.bincount(orbits(fat_tree(k=4))).tolist()
    [16, 8, 8, 4]
    """
    t = as_topology(topology, name="topology")
    if node_colours is None and edge_colours is None:
        return _orbits(t)
    if edge_colours is None:
        return _components(
            _stabiliser(automorphisms(t), _colours("node_colours", node_colours, t.num_nodes))
        )
    return _components(symmetries_that_keep(t, node_colours, edge_colours)[:, : t.num_nodes])


def symmetries_that_keep(
    topology: Topology, node_colours: ArrayLike | None, edge_colours: ArrayLike | None
) -> IntArray:
    """Some proved symmetries that keep the colours: permutations of nodes, then of joined pairs."""
    n, m, found = topology.num_nodes, len(topology.edges), automorphisms(topology)
    colours = [_colours("node_colours", node_colours, n), _colours("edge_colours", edge_colours, m)]
    arcs = [_arc_images(topology, g)[:m] % max(m, 1) for g in found]
    moves = np.hstack([found, n + np.array(arcs, dtype=np.int64).reshape(len(found), m)])
    return _stabiliser(moves, np.concatenate(colours))


def refine_colours(
    edges: IntArray,
    node_colours: ArrayLike,
    edge_colours: ArrayLike | None = None,
    back_colours: ArrayLike | None = None,
    *,
    most: int | None = None,
) -> tuple[IntArray, IntArray]:
    """Classes of nodes and of edges that look alike however far one looks: unions of orbits.

    Notes
    -----
    Colour refinement: the colour of a node is mixed from its own and those of its edges and
    neighbours until no more classes appear, O(m) a round. Nodes of different classes are never
    interchangeable. Nodes of one class may still not be: in a regular graph all nodes are alike to
    it. So it may choose what is looked at first, or group what is then compared; where a number
    must be exact, ask `orbits` or `is_automorphism`. Colours are words of 64 bits; two different
    neighbourhoods get the same one with probability 2^-64.

    References
    ----------
    Weisfeiler, Leman, "The reduction of a graph to canonical form and the algebra which appears
    therein", 1968.
    """
    arcs, label = _arcs(edges, edge_colours, back_colours)
    colour = kept = _words(node_colours)
    classes = 0
    while classes < (now := np.unique(colour).size) and (most is None or now <= most):
        classes, kept = now, colour
        colour = _mixed(colour + _gathered(arcs, _mixed(colour[arcs[0]] ^ label), colour.size))
    there, back = _mixed(kept[arcs[0]] ^ label).reshape(2, -1)
    return _numbered(kept), _numbered(there + back)


def neighbour_classes(
    edges: IntArray, node_colours: ArrayLike, edge_colours: ArrayLike | None = None
) -> IntArray:
    """Class of every node, [n]: same colour, same neighbours over edges of same colours (twins)."""
    (tail, head), label = _arcs(edges, edge_colours, None)
    own, order = _words(node_colours), np.lexsort((label, head, tail))
    starts = np.searchsorted(tail[order], np.arange(own.size + 1))
    rows = np.column_stack([head, label.view(np.int64)])[order]
    from relparallel.topology.compiled import first_twins  # loads the compiler

    return _numbered(
        first_twins(starts, rows, own.view(np.int64), np.ones(own.size, dtype=np.bool_))
    )


@_once
def arc_orbits(t: Topology) -> IntArray:
    """Sets of directed cables that proved symmetries carry into each other, [m, 2]."""
    m = len(t.edges)
    images = [_arc_images(t, g) for g in automorphisms(t)]
    return _components(np.array(images, dtype=np.int64).reshape(-1, 2 * m)).reshape(2, m).T


def _stabiliser(generators: IntArray, colour: Words) -> IntArray:
    """Some permutations that a group has and that keep the colours, one per row.

    Where g carries the image of the colours under u to their image under w, w^-1 g u keeps them
    (Schreier); a part of these is enough, for a smaller group only has finer orbits.
    """
    back = [np.argsort(g) for g in generators]
    carried = {colour.tobytes(): np.arange(colour.size)}
    queue, arrows = [colour], []
    while queue:
        seen = queue.pop(0)
        u = carried[seen.tobytes()]
        for g, inverse in zip(generators, back, strict=True):
            image = seen[inverse]
            key = image.tobytes()
            if key not in carried and len(carried) < _STEPS:
                carried[key] = g[u]
                queue.append(image)
            if key in carried:
                arrows.append((key, g[u]))
    undo = {key: np.argsort(u) for key, u in carried.items()}
    return np.array([undo[key][gu] for key, gu in arrows], dtype=np.int64).reshape(-1, colour.size)


def _arcs(
    edges: IntArray, colours: ArrayLike | None, back: ArrayLike | None
) -> tuple[IntArray, Words]:
    """Tails and heads of both directions of all edges, [2, 2m], and what is known of each, [2m]."""
    there = _words(np.zeros(len(edges)) if colours is None else colours)
    here = there if back is None else _words(back)
    return np.concatenate([edges, edges[:, ::-1]]).T, np.concatenate([there, here])


def _gathered(arcs: IntArray, seen: Words, nodes: int) -> Words:
    """What every node sees over its arcs, in any order."""
    total = np.zeros(nodes, dtype=np.uint64)
    np.add.at(total, arcs[1], seen)
    return _mixed(total)


def _words(colours: ArrayLike) -> Words:
    """One word for every row of bools, integers or floats: equal where the rows are."""
    rows = np.asarray(colours)
    word = np.zeros(len(rows), dtype=np.uint64)
    for column in np.atleast_2d(rows.T):
        floats = column.dtype.kind == "f"
        bits = (
            (column + 0.0).astype(np.float64).view(np.uint64)
            if floats
            else column.astype(np.uint64)
        )
        word = _mixed(word ^ bits)
    return word


def _colours(name: str, colours: ArrayLike | None, size: int) -> Words:
    """One word for every row of colours, all alike where there are none."""
    rows = np.zeros(size) if colours is None else np.asarray(colours)
    if rows.dtype.kind not in "biuf" or rows.ndim == 0 or len(rows) != size:
        raise ValueError(f"{name} must be {size} rows of numbers or truth values, got {colours!r}")
    return _words(rows)


def _mixed(values: Words) -> Words:
    """Scatter words so that sums of them tell sets apart (the finaliser of splitmix64)."""
    x = values + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


@_once
def _orbits(t: Topology) -> IntArray:
    """Orbits of the nodes."""
    return _components(automorphisms(t))


def _arc_images(t: Topology, image: IntArray) -> IntArray:
    """Where a symmetry takes every pair u < v and, after all of these, every v > u."""
    tail, head = np.concatenate([t.edges, t.edges[:, ::-1]]).T
    key = tail * t.num_nodes + head
    order = np.argsort(key)
    return np.asarray(order[np.searchsorted(key[order], image[tail] * t.num_nodes + image[head])])


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
    from relparallel.topology.compiled import keeps_neighbours  # loads the compiler

    cables = t.multiplicity, t.capacity, t.latency
    return bool(keeps_neighbours(t.indptr, t.indices, image)) and _keeps(t, image, *cables)


def _keeps(t: Topology, image: IntArray, *attributes: NDArray[Any]) -> bool:
    """Whether joined pairs go to pairs of the same attributes."""
    written = [a for a in attributes if a.size and np.any(a != a[0])]
    if not written:
        return True
    ends = np.sort(image[t.edges], axis=1)
    order = np.argsort(ends[:, 0] * t.num_nodes + ends[:, 1])  # the pairs themselves are ascending
    return all(np.array_equal(attribute, attribute[order]) for attribute in written)


def _components(images: IntArray) -> IntArray:
    """Orbits of 0..size-1 under the rows, numbered by first member."""
    count, size = images.shape
    return _numbered(
        _arrays.parts(np.column_stack([np.tile(np.arange(size), count), images.ravel()]), size)
    )


def _numbered(labels: ArrayLike) -> IntArray:
    """Labels as 0, 1, ... by first member."""
    _, first, label = np.unique(labels, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[label].astype(np.int64)


def _declared(t: Topology) -> Sequence[IntArray]:
    """Permutations that a topology's design names; none if it has no rule or other parameters."""
    rule = rules().get(t.meta.name)
    try:
        form = None if rule is None else describe(t.meta.name, **t.meta.parameters)
    except (TypeError, ValueError):
        form = None
    if (
        rule is None
        or rule.symmetries is None
        or form is None
        or form.hosts + form.switches != t.num_nodes
    ):
        return ()
    return rule.symmetries(**t.meta.parameters)
