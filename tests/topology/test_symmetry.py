from dataclasses import replace
from inspect import signature
from itertools import permutations

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, strategies as st

from relparallel.topology import (
    Design,
    Topology,
    bcube,
    dcell,
    fat_tree,
    jellyfish,
    leaf_spine,
    names,
    orbits,
    torus,
)
from relparallel.topology.description import rules
from relparallel.topology.symmetry import (
    _declared,
    arc_orbits,
    automorphisms,
    is_automorphism,
    neighbour_classes,
    refine_colours,
)
from small_networks import built, random_graphs, small_networks

RULES = {name for name, rule in rules().items() if rule.symmetries}
# Orbits of hosts that the wiring rule leaves, by the shape of the design. A server of a FiConn_1
# has a cable to another copy or is idle; larger DCells and FiConns count backwards. Points of a
# plane over GF(q), q odd: on the conic, outside, inside. A group of a Dragonfly stands at a
# multiple of h or between two, and everything is counted backwards.
ORBITS = {
    "fat_tree": {(2,): 1, (4,): 1, (6,): 1},
    "f10": {(2,): 1, (4,): 1, (6,): 1},
    "leaf_spine": {(3, 2, 4): 1, (1, 1, 1): 1},
    "helios": {(3, 8, 0.5, 0.5, 2): 1},
    "three_tier": {(1, 1, 1, 1): 1, (3, 2, 4, 5): 1},
    "vl2": {(2, 2): 1, (8, 4): 1},
    "c_through": {(1, 1, 1): 1, (3, 2, 4): 1},
    "aspen": {
        (2, 4, (0,)): 1,
        (3, 4, (1, 0)): 1,
        (4, 6, (0, 2, 0)): 1,
        (4, 8, (3, 1, 0)): 1,
        (4, 12, (5, 1, 2)): 1,
    },
    "bcube": {(2, 1): 1, (4, 0): 1, (3, 2): 1, (2, 3): 1},
    "dcell": {(3, 0): 1, (4, 1): 1, (2, 2): 21, (2, 3): 903},
    "ficonn": {(4, 0): 1, (2, 1): 2, (8, 1): 2, (4, 2): 24, (6, 2): 154, (8, 2): 193, (4, 3): 336},
    "mdcube": {
        (3, 0, (2,)): 1,
        (3, 1, (1,)): 1,
        (4, 1, (3, 3)): 2,
        (3, 1, (3, 2, 3)): 4,
        (6, 1, (5, 6)): 16,
        (4, 1, (9,)): 5,
        (3, 2, (3, 2)): 54,
    },
    "dragonfly": {
        (1, 1, 1): 1,
        (2, 1, 3): 2,
        (2, 4, 2): 18,
        (1, 3, 3): 11,
        (3, 2, 1): 3,
        (2, 4, 2, "palmtree"): 2,
        (1, 3, 3, "palmtree"): 2,
    },
    "dragonfly_plus": {(2, 2, 2, 2): 3, (2, 4, 2, 1): 3, (2, 3, 2, 4): 4},
    "torus": {
        ((4, 3, 2),): 1,
        ((5,),): 1,
        ((3, 3, 1),): 1,
        ((2, 2),): 1,
        ((4, 4, 3), False): 6,
        ((3, 3), (True, False)): 2,
    },
    "tpu_v4": {((4, 4, 4),): 1, ((4, 8, 4), (7, 3)): 1},
    "hyperx": {((4, 4), 2): 1, ((2, 3, 3), 1, 2): 1, ((5,), 0): 1},
    "hammingmesh": {(2, 2, 2, 2): 1, (3, 4, 2, 5): 4, (1, 5, 3, 2): 3},
    "dgx_superpod": {(1,): 1, (2, True): 1, (16,): 1},
    "rail_only": {(1, 1, 2): 1, (4, 2, 8): 1, (16, 3, 8): 1},
    "nvl72": {(1,): 1, (2, True): 1, (16,): 1},
    "hpn7": {(1,): 1, (2,): 1},
    "meta_roce": {(1,): 1, (2,): 1},
    "slim_fly": {(q, p): 1 + (q % 4 != 1) for q in (3, 4, 5, 7, 8, 9) for p in (0, 2)},
    "polarfly": {(q, p): 3 for q in (2, 3, 4, 5, 7, 8, 9) for p in (0, 2)},
}
WITH_ORBITS = [
    (built(name, shape), hosts)
    for name, shapes in ORBITS.items()
    for shape, hosts in shapes.items()
]
OTHERS = [t for t in small_networks(130) if t.meta.name in RULES - set(ORBITS)]
DESIGNS = [*(t for t, _ in WITH_ORBITS), *OTHERS]
SMALL = [t for t in DESIGNS if t.num_nodes < 120]


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
    return replace(t, **lost, edge_attributes={}, shared_risk=())


@pytest.mark.parametrize("t", DESIGNS, ids=repr)
def test_every_declared_symmetry_of_the_designs_is_one(t):
    declared, found = _declared(t), automorphisms(t)
    assert len(found) == len(declared) > 0
    assert all(keeps(t, image) for image in found)


@pytest.mark.parametrize(("t", "hosts"), WITH_ORBITS, ids=repr)
def test_the_wiring_rule_leaves_so_many_orbits_of_hosts(t, hosts):
    assert np.unique(orbits(t)[t.hosts]).size == hosts


def test_every_design_but_the_random_ones_declares_some():
    random = {name for name, rule in rules().items() if "rng" in signature(rule.builder).parameters}
    assert set(names()) - random == RULES, "name its symmetries in its @design"
    assert {t.meta.name for t in DESIGNS} == RULES
    assert automorphisms(jellyfish(10, 6, 4, np.random.default_rng(1))).shape == (0, 30)


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


@pytest.mark.parametrize("t", [t for t in SMALL if len(t.edges) > 2], ids=repr)
def test_a_lost_cable_leaves_only_the_symmetries_that_keep_it(t):
    for row in (0, len(t.edges) // 2):
        broken = without(t, row)
        kept = [image.tolist() for image in automorphisms(t) if keeps(broken, image)]
        assert automorphisms(broken).tolist() == kept


@pytest.mark.parametrize("name", sorted(RULES))
def test_a_lost_cable_breaks_some_symmetry_of_every_design(name):
    some = [t for t in DESIGNS if t.meta.name == name]
    assert any(len(automorphisms(without(t, 0))) < len(automorphisms(t)) for t in some)


def test_an_uneven_capacity_or_a_doubled_cable_breaks_them_too():
    t = torus((5,))
    one = np.arange(5) == 2
    assert len(automorphisms(replace(t, multiplicity=t.multiplicity + one))) < len(automorphisms(t))
    assert len(automorphisms(replace(t, capacity=t.capacity * (1 + one)))) < len(automorphisms(t))
    assert orbits(replace(t, latency=np.full(5, 1e-6))).max() == 0


def test_what_was_found_is_kept_with_the_topology_and_cannot_be_changed():
    t = torus((5,))
    assert automorphisms(t) is automorphisms(t)
    assert orbits(t) is orbits(t)
    assert arc_orbits(t) is arc_orbits(t)
    assert t == torus((5,))
    with pytest.raises(ValueError, match="read-only"):
        orbits(t)[0] = 1


def test_a_network_that_only_carries_the_name_has_no_declared_symmetry():
    edges = [(0, 1), (1, 2)]
    for parameters in ({"k": 4}, {"k": "four"}, {"k": 4, "j": 2}, {}):
        named = Topology.of(
            edges=edges, node_kind={"host": 3}, meta=Design(name="fat_tree", parameters=parameters)
        )
        assert automorphisms(named).shape == (0, 3)


@pytest.mark.parametrize("t", SMALL, ids=repr)
def test_classes_of_colour_refinement_are_unions_of_orbits(t):
    own = np.column_stack([t.node_kind, t.endpoint, t.transit])
    node, pair = refine_colours(t.edges, own, t.multiplicity)
    orbit = orbits(t)
    assert len(np.unique(np.column_stack([orbit, node]), axis=0)) == orbit.max() + 1
    arcs = np.sort(arc_orbits(t), axis=1)
    assert len(np.unique(np.column_stack([arcs, pair]), axis=0)) == len(np.unique(arcs, axis=0))


def test_colours_of_nodes_and_edges_part_what_is_else_alike():
    t = torus((6,))
    assert np.bincount(orbits(t, np.arange(6) == 0)).tolist() == [1, 2, 2, 1]
    assert np.bincount(orbits(t, None, [0.5, 0.1, 0.1, 0.1, 0.1, 0.1])).tolist() == [2, 2, 2]
    for colour in (np.arange(6) == 0, [0.5, 0.1, 0.1, 0.1, 0.1, 0.1]):
        assert np.array_equal(refine_colours(t.edges, colour)[0], orbits(t, colour))
    assert refine_colours(t.edges, np.arange(6) == 0, most=3)[0].max() == 2
    assert refine_colours(t.edges, np.arange(6) == 0, most=2)[0].max() == 1


def test_edges_may_look_different_from_their_two_ends():
    around = np.array([[0, 1], [1, 2], [2, 0]])
    assert refine_colours(around, np.zeros(3), np.ones(3), np.zeros(3))[0].tolist() == [0, 0, 0]
    turned = np.array([[0, 1], [1, 2], [0, 2]])
    assert refine_colours(turned, np.zeros(3), np.ones(3), np.zeros(3))[0].tolist() == [0, 1, 2]


def test_refinement_is_coarser_than_orbits_where_all_degrees_are_equal():
    two = nx.to_numpy_array(nx.disjoint_union(nx.cycle_graph(3), nx.cycle_graph(4)))
    assert set(refine_colours(np.argwhere(np.triu(two)), np.zeros(7))[0]) == {0}


@pytest.mark.parametrize("bad", [[0, 1], 1.0, ["a", "b", "c"]])
def test_colours_are_one_row_for_each_part(bad):
    with pytest.raises(ValueError, match="node_colours must be 3 rows"):
        orbits(nx.cycle_graph(3), bad)
    with pytest.raises(ValueError, match="edge_colours must be 3 rows"):
        orbits(nx.cycle_graph(3), None, bad)


def test_twins_have_the_same_neighbours():
    edges = np.array([[0, 2], [1, 2], [0, 3], [1, 3], [3, 4]])
    assert neighbour_classes(edges, np.zeros(5)).tolist() == [0, 0, 1, 2, 3]
    assert neighbour_classes(edges, [0, 1, 0, 0, 0]).tolist() == [0, 1, 2, 3, 4]
    assert neighbour_classes(edges, np.zeros(5), [1, 2, 1, 1, 1]).tolist() == [0, 1, 2, 3, 4]


graphs = random_graphs(2, 5, 0.3, 1.0)


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


@pytest.mark.parametrize("t", SMALL, ids=repr)
def test_arcs_of_an_orbit_join_the_same_orbits_of_nodes(t):
    node, arc = orbits(t), arc_orbits(t)
    both = np.concatenate(
        [
            np.column_stack([arc[:, 0], node[t.edges]]),
            np.column_stack([arc[:, 1], node[t.edges[:, ::-1]]]),
        ]
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
        found, far = (
            orbits(t, np.arange(t.num_nodes) == v),
            nx.single_source_shortest_path_length(graph, v),
        )
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
