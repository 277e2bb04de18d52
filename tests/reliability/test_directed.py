from fractions import Fraction
from itertools import product

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from relparallel.reliability import evaluate


def enumerated(graph, terminals, link, node):
    """Reliability by all states of arcs and nodes."""
    events = [*link.items(), *node.items()]
    total = 0.0
    for states in product((True, False), repeat=len(events)):
        mass = np.prod([up if works else 1 - up for (_, up), works in zip(events, states, strict=True)])
        down = {part for (part, _), works in zip(events, states, strict=True) if not works}
        alive = nx.DiGraph()
        alive.add_nodes_from(v for v in graph if v not in down)
        alive.add_edges_from(e for e in graph.edges if e not in down and not down & set(e))
        first = terminals[0]
        if all(t in alive for t in terminals):
            total += mass * ({first, *nx.descendants(alive, first)} >= set(terminals))
    return total


@settings(max_examples=40)
@given(st.integers(0, 10**6))
def test_directed_networks_agree_with_enumeration(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 6))
    graph = nx.gnm_random_graph(n, int(rng.integers(1, 9)), seed=seed, directed=True)
    terminals = rng.permutation(n)[: rng.integers(1, n + 1)].tolist()
    link = {arc: float(rng.choice([0.5, 0.75, 0.9])) for arc in graph.edges}
    node = {v: 0.875 for v in graph if rng.random() < 0.3}
    found = evaluate(graph, terminals, link, node, directed=True)
    exact = enumerated(graph, terminals, link, node)
    assert found.reliability == pytest.approx(exact, abs=1e-13)
    assert found.unreliability == pytest.approx(1 - exact, abs=1e-13)


@pytest.mark.parametrize("terminals", [(0, 15), tuple(range(16))])
def test_two_independent_arcs_do_as_well_as_one_link(terminals):
    grid = nx.convert_node_labels_to_integers(nx.grid_2d_graph(4, 4))
    both = evaluate(grid.to_directed(), terminals, 0.9, directed=True)
    assert both.unreliability == pytest.approx(evaluate(grid, terminals, 0.9).unreliability, rel=1e-12)


def test_a_directed_ring_and_rare_failures():
    ring = nx.cycle_graph(5, create_using=nx.DiGraph)
    assert evaluate(ring, (0, 3), 0.9, directed=True).reliability == pytest.approx(0.9**3)
    four = nx.DiGraph([("s", i) for i in range(4)] + [(i, "t") for i in range(4)])
    rare = evaluate(four, ("s", "t"), link_down=1e-75, directed=True)
    assert rare.unreliability == pytest.approx(16e-300, rel=1e-14)
    assert evaluate(four, ("t", "s"), 0.9, directed=True).unreliability == 1.0


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        ({"graph": nx.path_graph(3)}, "graph"),
        ({"terminals": "all"}, "terminals"),
        ({"terminals": (0, 9)}, "terminals"),
        ({"link_up": {(1, 0): 0.5}}, "link_up"),
        ({"link_up": 2.0}, "link_up"),
        ({"link_up": 0.5, "link_down": 0.5}, "link_up"),
        ({"node_up": {9: 0.5}}, "node_up"),
        ({"node_up": "up"}, "node_up"),
        ({"directed": "both"}, "directed"),
    ],
)
def test_bad_input_is_refused(arguments, name):
    known = {"graph": nx.path_graph(3, create_using=nx.DiGraph), "terminals": (0, 2), "directed": True}
    with pytest.raises((ValueError, TypeError), match=f"{name} must"):
        evaluate(**known | arguments)


def drawn(seed):
    """A small directed network, terminals and chances."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(3, 7))
    graph = nx.gnm_random_graph(n, int(rng.integers(n, n * (n - 1) // 2 + 3)), seed=seed, directed=True)
    terminals = rng.permutation(n)[: rng.integers(2, 4)].tolist()
    link = {arc: float(rng.choice([0.5, 0.9, 0.99, 1 - 1e-6])) for arc in graph.edges}
    node = {v: 0.875 for v in graph if rng.random() < 0.4}
    return graph, terminals, link, node, True


def exactly(values):
    return {part: Fraction(value) for part, value in values.items()}


@settings(max_examples=40)
@given(st.integers(0, 10**6))
def test_fractions_are_exact_and_floats_agree_with_them(seed):
    graph, terminals, link, node, directed = drawn(seed)
    found = evaluate(graph, terminals, link, node, directed=directed)
    exact = evaluate(graph, terminals, exactly(link), exactly(node), directed=directed)
    assert exact.reliability + exact.unreliability == 1
    assert isinstance(exact.unreliability, Fraction)
    assert found.unreliability == pytest.approx(float(exact.unreliability), rel=1e-12)


@settings(max_examples=30)
@given(st.integers(0, 10**6))
def test_groups_are_summed_over_their_states(seed):
    graph, terminals, link, node, directed = drawn(seed)
    rng, parts = np.random.default_rng(seed), [*graph.edges, *graph.nodes]
    groups = [
        ([parts[i] for i in rng.permutation(len(parts))[: rng.integers(1, 4)]], Fraction(1, 4))
        for _ in range(3)
    ]
    total = Fraction(0)
    for states in product((True, False), repeat=3):
        links, nodes = exactly(link), exactly(node)
        for (members, _), works in zip(groups, states, strict=True):
            for part in members if not works else ():
                (links if part in links else nodes)[part] = Fraction(0)
        mass = Fraction(3, 4) ** sum(states) * Fraction(1, 4) ** (3 - sum(states))
        total += mass * evaluate(graph, terminals, links, nodes, directed=directed).unreliability
    asked = {"groups": groups, "directed": directed}
    assert evaluate(graph, terminals, exactly(link), exactly(node), **asked).unreliability == total
    floats = [(members, float(chance)) for members, chance in groups]
    found = evaluate(graph, terminals, link, node, groups=floats, directed=directed)
    assert found.unreliability == pytest.approx(float(total), rel=1e-12)


@pytest.mark.parametrize("method", ["bounds", "monte_carlo", "splitting"])
def test_directed_networks_are_answered_exactly_or_not_at_all(method):
    ring = nx.cycle_graph(4, create_using=nx.DiGraph)
    with pytest.raises(ValueError, match=f"method must be 'auto' or 'exact' with directed, got '{method}'"):
        evaluate(ring, (0, 2), 0.9, directed=True, method=method)
    with pytest.raises(ValueError, match="method must be 'exact' for importance"):
        evaluate(ring, (0, 2), 0.9, directed=True).importance()
    wide = nx.complete_graph(7, nx.DiGraph)
    with pytest.raises(ValueError, match="at most 100 states in a layer"):
        evaluate(wide, (0, 2), 0.9, directed=True, max_states=100)


def test_parallel_arcs_are_one_and_attributes_name_chances():
    twice = nx.MultiDiGraph([("s", "t"), ("s", "t"), ("t", "t")])
    assert evaluate(twice, ("s", "t"), 0.75, directed=True).reliability == 0.9375
    nx.set_edge_attributes(twice, 0.5, "up")
    assert evaluate(twice, ("s", "t"), "up", directed=True).reliability == 0.75


@pytest.mark.parametrize(
    ("groups", "said"),
    [
        (0.5, "groups must be"),
        ([0.5], "groups must hold pairs"),
        ([((), 0.5)], "groups must have at least one member"),
        ([([(1, 0)], 0.5)], "groups must have nodes or links"),
        ([([0], 1.5)], "groups must be"),
        ([([[0]], 0.5)], "groups must have labels"),
    ],
)
def test_bad_groups_are_refused(groups, said):
    path = nx.path_graph(3, create_using=nx.DiGraph)
    with pytest.raises((ValueError, TypeError), match=said):
        evaluate(path, (0, 2), 0.9, directed=True, groups=groups)


def test_rare_states_of_groups_are_not_left_out():
    ring = nx.cycle_graph(6, create_using=nx.DiGraph)
    groups = [([(i, i + 1), i], 1e-9) for i in (1, 2, 3)]
    found = evaluate(ring, (0, 4), link_down=1e-3, groups=groups, directed=True)
    assert found.exact
    assert found.unreliability == pytest.approx(1 - 0.999**4 + 3e-9 * 0.999**4, rel=1e-12)
