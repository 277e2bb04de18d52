from dataclasses import replace
from itertools import permutations

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from relparallel.topology import (
    Design,
    Topology,
    arc_orbits,
    automorphisms,
    bcube,
    dcell,
    fat_tree,
    is_automorphism,
    leaf_spine,
    orbits,
    torus,
)
from relparallel.topology.symmetry import orbits_that_fix

DESIGNS = [
    fat_tree(2), fat_tree(4), fat_tree(6), leaf_spine(3, 2, 4), leaf_spine(1, 1, 1), bcube(2, 1),
    bcube(4, 0), bcube(3, 2), bcube(2, 3), dcell(3, 0), dcell(4, 1), dcell(2, 2), dcell(2, 3),
    torus((4, 3, 2)), torus((5,)), torus((3, 3, 1)), torus((2, 2)),
    torus((4, 4, 3), wrap=False), torus((3, 3), wrap=(True, False)),
]  # fmt: skip


def cables(t, image=None):
    """Joined pairs with their number of cables, after moving the nodes."""
    image = np.arange(t.num_nodes) if image is None else image
    moved = np.sort(image[t.edges], axis=1).tolist()
    return {(*pair, int(count)) for pair, count in zip(moved, t.multiplicity, strict=True)}


def keeps(t, image):
    """By sets: what an automorphism is."""
    kept = (t.node_kind, t.endpoint, t.transit)
    return cables(t, image) == cables(t) and all(np.array_equal(a[image], a) for a in kept)


def without(t, row):
    """The network without one joined pair."""
    lost = {
        name: np.delete(getattr(t, name), row, axis=0)
        for name in ("edges", "multiplicity", "capacity", "latency")
    }
    return replace(t, **lost)


@pytest.mark.parametrize("t", DESIGNS, ids=repr)
def test_every_declared_symmetry_of_the_designs_is_one(t):
    from relparallel.topology.symmetry import _declared

    declared = _declared(t)
    found = automorphisms(t)
    assert len(found) == len(declared) > 0
    assert all(keeps(t, image) for image in found)


@pytest.mark.parametrize(
    ("t", "sizes"),
    [
        (fat_tree(24), [3456, 288, 288, 144]),
        (fat_tree(48), [27648, 1152, 1152, 576]),
        (leaf_spine(3, 2, 4), [12, 3, 2]),
        (bcube(4, 2), [64, 48]),
        (dcell(4, 1), [20, 5]),
        (torus((4, 3, 2)), [24]),
        (torus((4, 3), wrap=(True, False)), [8, 4]),
    ],
    ids=repr,
)
def test_orbits_of_the_designs(t, sizes):
    assert np.bincount(orbits(t)).tolist() == sizes


def test_orbits_are_numbered_by_first_node_and_those_of_a_graph_are_single():
    assert orbits(nx.cycle_graph(4)).tolist() == [0, 1, 2, 3]
    found = orbits(dcell(2, 2))
    assert found[:42].tolist() == [*range(21), *range(20, -1, -1)]
    first = np.unique(found, return_index=True)[1]
    assert np.all(np.diff(first) > 0)


@pytest.mark.parametrize("t", [fat_tree(4), bcube(3, 1), torus((4, 3))], ids=repr)
def test_a_lost_cable_breaks_the_symmetries_that_move_it(t):
    for row in (0, len(t.edges) // 2):
        broken = without(t, row)
        found = automorphisms(broken)
        assert len(found) < len(automorphisms(t))
        assert all(keeps(broken, image) for image in found)


def test_an_uneven_capacity_or_a_doubled_cable_breaks_them_too():
    t = torus((5,))
    one = np.arange(5) == 2
    assert len(automorphisms(replace(t, multiplicity=t.multiplicity + one))) < len(automorphisms(t))
    assert len(automorphisms(replace(t, capacity=t.capacity * (1 + one)))) < len(automorphisms(t))
    assert orbits(replace(t, latency=np.full(5, 1e-6))).max() == 0


def test_a_network_that_only_carries_the_name_has_no_declared_symmetry():
    edges = [(0, 1), (1, 2)]
    for parameters in ({"k": 4}, {"k": "four"}, {"k": 4, "j": 2}, {}):
        named = Topology.of(
            edges=edges, node_kind={"host": 3}, meta=Design(name="fat_tree", parameters=parameters)
        )
        assert automorphisms(named).shape == (0, 3)


graphs = st.builds(
    lambda n, p, seed: nx.gnp_random_graph(n, p, seed=seed),
    st.integers(2, 5),
    st.floats(0.3, 1.0),
    st.integers(0, 10**6),
)


@given(
    graphs,
    st.lists(st.integers(1, 2), min_size=10, max_size=10),
    st.lists(st.booleans(), min_size=5, max_size=5),
)
def test_the_proof_agrees_with_the_definition(graph, number, transit):
    nx.set_edge_attributes(graph, dict(zip(graph.edges, number, strict=False)), "multiplicity")
    nx.set_node_attributes(graph, dict(enumerate(transit)), "transit")
    t = Topology.from_networkx(graph, strict=False)
    for image in permutations(range(t.num_nodes)):
        assert is_automorphism(t, image) == keeps(t, np.array(image))


@pytest.mark.parametrize("t", DESIGNS, ids=repr)
def test_arcs_of_an_orbit_join_the_same_orbits_of_nodes(t):
    node, arc = orbits(t), arc_orbits(t)
    both = np.concatenate(
        [np.column_stack([arc[:, 0], node[t.edges]]), np.column_stack([arc[:, 1], node[t.edges[:, ::-1]]])]
    )
    assert len(np.unique(both, axis=0)) == arc.max() + 1
    for image in automorphisms(t):
        where = {tuple(e): a for e, a in zip(t.edges.tolist(), arc.tolist(), strict=True)}
        for (u, v), (there, back) in where.items():
            a, b = int(image[u]), int(image[v])
            assert (where[a, b] if a < b else where[b, a][::-1]) == [there, back]


@pytest.mark.parametrize("t", [bcube(3, 1), torus((4, 4)), fat_tree(4), dcell(3, 1)], ids=repr)
def test_symmetries_around_a_node_keep_the_distances_from_it(t):
    """Nodes that a symmetry around v exchanges are equally far from v."""
    graph = nx.Graph(t.edges.tolist())
    for v in (0, t.num_nodes - 1):
        found, far = orbits_that_fix(t, v), nx.single_source_shortest_path_length(graph, v)
        assert np.count_nonzero(found == found[v]) == 1
        assert all(len({far[u] for u in np.flatnonzero(found == o)}) == 1 for o in np.unique(found))
        assert found.max() < t.num_nodes - 1


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ((nx.path_graph(3), [0, 1]), "permutation must be"),
        ((nx.path_graph(3), [0, 1, 1]), "permutation must name every node once"),
        ((nx.path_graph(3), [0, 1, 3]), "permutation must be integers >= 0 and <= 2"),
        ((None, [0]), "topology must be"),
    ],
)
def test_bad_arguments_are_named(arguments, error):
    with pytest.raises((TypeError, ValueError), match=error):
        is_automorphism(*arguments)
