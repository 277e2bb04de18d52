from fractions import Fraction
from itertools import product
from math import comb

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import relparallel as rp
from chapters.s13 import polynomial, survival_signature
from chapters.s13.counting import weigh
from relparallel.reliability import evaluate
from relparallel.reliability.problem import read_problem
from relparallel.topology import fat_tree, leaf_spine


def counted(graph, classes, terminals):
    """Counts by sets of working parts; ``classes`` maps parts (nodes, edges) to class numbers."""
    parts = list(classes)
    sizes = [list(classes.values()).count(c) for c in sorted(set(classes.values()))]
    counts = np.zeros([size + 1 for size in sizes], dtype=object)
    for states in product((0, 1), repeat=len(parts)):
        works = dict(zip(parts, states, strict=True))
        alive = nx.Graph()
        alive.add_nodes_from(v for v in graph if works.get(v, 1))
        alive.add_edges_from(
            (u, v) for u, v in graph.edges if works.get((u, v), 1) and u in alive and v in alive
        )
        if all(t in alive for t in terminals):
            together = nx.node_connected_component(alive, terminals[0]) >= set(terminals)
            place = tuple(
                sum(works[part] for part in parts if classes[part] == c) for c in range(len(sizes))
            )
            counts[place] += together
    return counts.tolist()


def small(seed, nodes=6, links=9):
    """A random graph, terminals, and a class for some of its parts."""
    rng = np.random.default_rng(seed)
    graph = nx.gnm_random_graph(int(rng.integers(2, nodes)), int(rng.integers(1, links)), seed=seed)
    labels = rng.permutation(list(graph)).tolist()
    terminals = labels[: int(rng.integers(1, len(labels) + 1))]
    parts = [part for part in [*graph, *graph.edges] if rng.random() < 0.7] or [0]
    return graph, terminals, {part: i % 3 for i, part in enumerate(parts)}


def test_complete_graph_of_six():
    expected = (0, 0, 0, 0, 0, 1296, 3660, 5700, 6165, 4945, 2997, 1365, 455, 105, 15, 1)
    assert polynomial(nx.complete_graph(6)) == expected


@settings(max_examples=80)
@given(st.integers(0, 10**6))
def test_signature_counts_every_set(seed):
    graph, terminals, classes = small(seed)
    found = survival_signature(graph, classes, terminals)
    assert found.classes == tuple(dict.fromkeys(classes.values()))
    assert found.counts.tolist() == counted(graph, classes, terminals)


@given(seed=st.integers(0, 10**6), first=st.integers(0, 8), second=st.integers(0, 8))
def test_signature_answers_every_reliability(seed, first, second, by_counting):
    graph, terminals, _ = small(seed)
    up = {"links": Fraction(first, 8), "nodes": Fraction(second, 8)}
    classes = dict.fromkeys(graph.edges, "links") | dict.fromkeys(graph, "nodes")
    named = {name: up[name] for name in dict.fromkeys(classes.values())}
    found = survival_signature(graph, classes, terminals).reliability(named)
    exact = by_counting(graph, terminals, float(1 - up["links"]), float(1 - up["nodes"]))
    assert (found.reliability, found.unreliability) == (float(1 - exact), float(exact))


def test_three_classes_of_unequal_sizes_against_the_programme():
    fabric = leaf_spine(4, 3, 2)
    own = fabric.endpoint[fabric.edges].any(axis=1)
    classes = dict.fromkeys(fabric.switches.tolist(), "switch")
    pairs = map(tuple, fabric.edges.tolist())
    classes |= {
        pair: "lower" if host else "upper" for pair, host in zip(pairs, own.tolist(), strict=True)
    }
    found = survival_signature(fabric, classes, (0, 7)).reliability(
        {"switch": 0.99, "lower": 0.9, "upper": 0.8}
    )
    exact = evaluate(fabric, (0, 7), np.where(own, 0.9, 0.8), np.where(fabric.endpoint, 1.0, 0.99))
    assert found.unreliability == pytest.approx(exact.unreliability, rel=1e-13)


@given(st.integers(0, 10**6), st.sampled_from([0.5, 0.75, 0.9]), st.sampled_from([0.5, 0.875, 1.0]))
def test_links_and_nodes_as_two_classes(seed, link, node):
    graph, terminals, _ = small(seed)
    found = survival_signature(graph, "both", terminals)
    assert found.classes == ("nodes", "links")
    expected = evaluate(graph, terminals, link, node)
    answered = found.reliability({"links": link, "nodes": node})
    assert answered.unreliability == pytest.approx(expected.unreliability, rel=1e-12)
    assert answered.reliability == pytest.approx(expected.reliability, rel=1e-12)


def test_signature_keeps_the_digits_of_rare_failures():
    found = survival_signature(nx.complete_graph(8)).reliability(0.999)
    assert found.unreliability == pytest.approx(8.000000000000028e-21, rel=1e-12)


def test_classes_of_a_fabric_and_their_sizes():
    fabric = fat_tree(4)
    found = survival_signature(fabric, dict.fromkeys(range(32, 36), "core"), "all")
    assert found.sizes == (4,)
    assert found.counts.tolist() == [0, 4, 6, 4, 1]
    assert found.shares.tolist() == [0, 1, 1, 1, 1]
    by_kind = survival_signature(nx.path_graph(3), "kinds", (0, 2))
    assert by_kind.sizes == (3, 2)
    assert by_kind.counts.tolist() == [[0, 0, 0], [0, 0, 0], [0, 0, 0], [0, 0, 1]]
    assert by_kind.sets[1].tolist() == [3, 6, 3]


def test_parallel_cables_and_idle_links_are_parts():
    twice = nx.MultiGraph([(0, 1), (0, 1), (1, 2)])
    assert polynomial(twice) == (0, 0, 2, 1)
    assert polynomial(twice, (0, 1)) == (0, 2, 3, 1)
    assert polynomial(twice, (2,)) == (1, 3, 3, 1)
    assert polynomial(twice, parts="nodes", terminals=(0, 2)) == (0, 0, 0, 1)
    assert polynomial(nx.Graph([(0, 1), (2, 3)]), (0, 2)) == (0, 0, 0)


def test_polynomials_of_trees_and_rings():
    assert polynomial(nx.path_graph(40))[-2:] == (0, 1)
    ring = polynomial(nx.cycle_graph(150))
    assert ring[-3:] == (0, 150, 1)
    assert sum(polynomial(nx.cycle_graph(9), (0, 4))) == 2**5 + 2**4 - 1


@pytest.mark.parametrize("reductions", [True, False])
def test_weights_need_not_add_up_to_one(reductions):
    problem = read_problem(nx.cycle_graph(4), (0, 2), 0.5, 0.5)
    given = [(2, 3)] * 4 + [(1, 1)] * 4
    pairs = (2 * 2 * 1, 5 * 5 * 2 - 2 * 2 * 1)  # two links and the node between them
    expected = ((sum(pairs)) ** 2 - pairs[1] ** 2) * 1 * 1
    assert weigh(problem, given, 100, reductions) == expected


def test_every_published_polynomial():
    facts = rp.published.facts("network-reliability")
    assert sum(name.endswith("-poly") for name in facts) >= 20
    dodecahedron = polynomial(nx.dodecahedral_graph())
    assert list(dodecahedron) == list(facts["NR-dodecahedron-all-poly"].value)
    assert sum(dodecahedron) == facts["NR-dodecahedron-all-count"].value
    subsets = [comb(30, j) for j in range(31)]
    assert all(
        0 <= found <= all_sets for found, all_sets in zip(dodecahedron, subsets, strict=True)
    )


def test_what_is_too_large_is_refused():
    with pytest.raises(
        ValueError, match=r"10 states in a layer .* for max_states; `evaluate` takes wider"
    ):
        polynomial(nx.complete_graph(9), max_states=10)
    with pytest.raises(ValueError, match="for the memory that whole numbers of this length take"):
        polynomial(nx.grid_2d_graph(16, 16))
    with pytest.raises(ValueError, match="classes must leave a table"):
        survival_signature(nx.path_graph(60), {(i, i + 1): i for i in range(59)})


@pytest.mark.parametrize(
    "classes", ["parts", {}, {99: "a"}, {(0, 2): "a"}, {(0, 1, 2): "a"}, {0: [1]}, 3, None], ids=str
)
def test_bad_classes_are_refused(classes):
    with pytest.raises((ValueError, TypeError), match="classes must"):
        survival_signature(nx.path_graph(3), classes)


def test_bad_chances_are_refused():
    ring = survival_signature(nx.cycle_graph(4))
    with pytest.raises(ValueError, match="up must"):
        ring.reliability(1.5)
    with pytest.raises(ValueError, match="up must name the classes"):
        ring.reliability({"nodes": 0.5})
    for wrong in ([0.5], np.array([0.5, 0.6]), {"links": [0.5]}, True):
        with pytest.raises(TypeError, match="up must be"):
            ring.reliability(wrong)
