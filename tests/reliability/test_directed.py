from itertools import product

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relparallel.reliability import evaluate


def enumerated(graph, terminals, link, node, mutual):
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
            forth = {first, *nx.descendants(alive, first)} >= set(terminals)
            back = {first, *nx.ancestors(alive, first)} >= set(terminals)
            total += mass * (forth and (back or not mutual))
    return total


@settings(max_examples=40)
@given(st.integers(0, 10**6), st.booleans())
def test_directed_networks_agree_with_enumeration(seed, mutual):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 6))
    graph = nx.gnm_random_graph(n, int(rng.integers(1, 9)), seed=seed, directed=True)
    terminals = rng.permutation(n)[: rng.integers(1, n + 1)].tolist()
    link = {arc: float(rng.choice([0.5, 0.75, 0.9])) for arc in graph.edges}
    node = {v: 0.875 for v in graph if rng.random() < 0.3}
    found = evaluate(graph, terminals, link, node, directed="mutual" if mutual else True)
    exact = enumerated(graph, terminals, link, node, mutual)
    assert found.reliability == pytest.approx(exact, abs=1e-13)
    assert found.unreliability == pytest.approx(1 - exact, abs=1e-13)


@pytest.mark.parametrize("terminals", [(0, 15), tuple(range(16))])
def test_two_independent_arcs_do_as_well_as_one_link(terminals):
    grid = nx.convert_node_labels_to_integers(nx.grid_2d_graph(4, 4))
    both = evaluate(grid.to_directed(), terminals, 0.9, directed=True)
    assert both.unreliability == pytest.approx(evaluate(grid, terminals, 0.9).unreliability, rel=1e-12)


def test_a_directed_ring_and_rare_failures():
    ring = nx.cycle_graph(5, create_using=nx.DiGraph)
    assert evaluate(ring, "all", 0.9, directed="mutual").reliability == pytest.approx(0.9**5)
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
