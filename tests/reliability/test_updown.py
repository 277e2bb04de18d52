from itertools import combinations, product

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from relparallel.reliability import evaluate, fat_tree_pair
from relparallel.reliability.extensions import updown
from relparallel.reliability.extensions.updown import climbed, climbing
from relparallel.reliability.problem import read_problem
from relparallel.topology import fat_tree, leaf_spine


def reached(graph, start, down):
    """Nodes that can be climbed to while these parts are down."""
    tier, found, todo = graph.nodes(data="tier"), {start}, [start]
    while todo:
        u = todo.pop()
        for v in graph[u]:
            if tier[v] > tier[u] and not {v, (u, v), (v, u)} & down and v not in found:
                found.add(v)
                todo.append(v)
    return found


def enumerated(graph, terminals, link, node):
    events = [*link.items(), *node.items()]
    total = 0.0
    for states in product((True, False), repeat=len(events)):
        mass = np.prod(
            [up if works else 1 - up for (_, up), works in zip(events, states, strict=True)]
        )
        down = {part for (part, _), works in zip(events, states, strict=True) if not works}
        if not down & set(terminals):
            sets = [reached(graph, t, down) for t in terminals]
            total += mass * all(one & other for one, other in combinations(sets, 2))
    return total


@settings(max_examples=60)
@given(st.integers(0, 10**6))
def test_the_programme_agrees_with_enumeration(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(3, 7))
    graph = nx.gnm_random_graph(n, int(rng.integers(2, 10)), seed=seed)
    nx.set_node_attributes(graph, {v: int(rng.integers(0, 4)) for v in graph}, "tier")
    terminals = rng.permutation(n)[: rng.integers(1, 5)].tolist()
    link = {pair: float(rng.choice([0.5, 0.75, 0.9])) for pair in graph.edges}
    node = {v: 0.875 for v in graph if rng.random() < 0.3}
    exact = enumerated(graph, terminals, link, node)
    found = evaluate(graph, terminals, link, node, routing="updown")
    assert found.routing == "updown"
    assert found.reliability == pytest.approx(exact, abs=1e-13)
    assert found.unreliability == pytest.approx(1 - exact, abs=1e-13)


@pytest.mark.parametrize("k", [4, 6, 16])
@pytest.mark.parametrize("same_pod", [False, True])
def test_pairs_equal_the_closed_form(k, same_pod):
    fabric = fat_tree(k)
    core, edge = fabric.is_kind("core"), fabric.is_kind("edge")
    first = int(np.flatnonzero(edge)[0])
    node = np.where(core, 0.95, np.where(fabric.is_kind("aggregation"), 0.9, 1.0))
    link = np.where(core[fabric.edges].any(axis=1), 0.97, 0.93)
    pair = (first, first + (1 if same_pod else k // 2))
    found = evaluate(fabric, pair, link, node, routing="updown")
    closed = fat_tree_pair(
        k, 0.95, 0.9, 1.0, 0.97, 0.93, turn="aggregation" if same_pod else "core"
    )
    assert found.unreliability == pytest.approx(closed.unreliability, rel=1e-12)
    if not same_pod and k == 4:
        # zigzag helps
        assert evaluate(fabric, pair, link, node).unreliability < 0.6 * found.unreliability


def test_hosts_of_a_leaf_spine_network():
    fabric = leaf_spine(leaves=6, spines=4, hosts_per_leaf=2)
    found = evaluate(fabric, "all", 0.99, 0.999, routing="updown")
    assert found.unreliability > evaluate(fabric, "all", 0.99, 0.999).unreliability
    assert found.reliability + found.unreliability == pytest.approx(1, abs=1e-13)
    # same leaf
    assert evaluate(fabric, (0, 1), 0.9, routing="updown").reliability == pytest.approx(0.81)
    assert evaluate(fabric, (0,), 0.9, 0.5, routing="updown").reliability == 0.5


def test_what_has_no_tiers_or_does_not_fit_is_refused():
    with pytest.raises(ValueError, match="graph must give every node a tier"):
        evaluate(nx.path_graph(3), link_up=0.9, routing="updown")
    with pytest.raises(ValueError, match="states in a layer"):
        evaluate(fat_tree(6), "all", 0.9, 0.9, routing="updown", max_states=100, method="exact")


@pytest.mark.parametrize("up", [0.9, 0.999])
def test_truncated_sweeps_hold_the_answer(up):
    dropped = []
    for fabric, pair in ((fat_tree(4), (0, 12)), (leaf_spine(5, 3, 2), (0, 9))):
        for terminals in ((0, 5, 9), pair):
            exact = evaluate(
                fabric, terminals, up, up, routing="updown", method="exact"
            ).unreliability
            found = evaluate(fabric, terminals, up, up, routing="updown", method="bounds")
            assert found.lower <= exact * (1 + 1e-12)
            assert found.upper >= exact * (1 - 1e-12)
            _, climb = climbing(fabric, read_problem(fabric, terminals, up, up))
            few, many = climbed(climb, 4, truncate=True)[0], climbed(climb, 10**6)[0]
            assert many.dropped == 0 <= few.dropped < 1
            dropped.append(few.dropped)
            assert few.down <= many.down * (1 + 1e-12)
            assert few.down + few.dropped >= many.down * (1 - 1e-12)
            assert few.up + few.down + few.dropped == pytest.approx(1, abs=1e-12)
    assert sum(found > 0 for found in dropped) >= 3


def test_what_is_too_wide_is_bounded_and_says_so():
    fabric = fat_tree(6)
    # not alike, which would have a closed form
    links = np.linspace(0.998, 0.999, len(fabric.edges))
    found = evaluate(fabric, (0, 20, 30, 50), links, 0.999, routing="updown", max_states=1000)
    assert found.method == "bounds"
    assert "exact: graph must need at most 1000 states in a layer" in found.reason
    assert 0.001 < found.lower < found.upper < 1.05 * found.lower


@pytest.mark.slow
def test_what_is_far_too_wide_is_no_better_than_over_any_path():
    fabric = fat_tree(16)
    wide = evaluate(fabric, "all", np.linspace(0.9998, 0.9999, len(fabric.edges)), routing="updown")
    assert (wide.method, wide.upper) == ("bounds", 1.0)
    assert wide.reason.endswith("any path: no better than over any path")


def test_a_truncated_bracket_leaves_out_what_is_known(monkeypatch):
    fabric = fat_tree(4)
    always, climb = climbing(fabric, read_problem(fabric, (0, 5, 9, 12), 0.97, 0.99))
    outcomes = sum(2 ** len(cables) for cables in climb.below.values())
    monkeypatch.setattr(updown, "_OUTCOMES", 8 * outcomes)
    few = climbed(climb, 8, truncate=True)[0]
    found = evaluate(fabric, (0, 5, 9, 12), 0.97, 0.99, routing="updown", method="bounds")
    assert few.dropped > 1e-4
    assert found.lower == pytest.approx(always[1] + always[0] * few.down, rel=1e-12)
    assert 1 - found.upper == pytest.approx(always[0] * few.up, rel=1e-9)


def test_rounding_does_not_lift_a_bracket_above_one():
    graph = nx.Graph([(0, 3), (1, 3), (2, 3)])
    nx.set_node_attributes(graph, {0: 0, 1: 2, 2: 0, 3: 2}, "tier")
    links = {(0, 3): 1e-9, (1, 3): 1e-9, (2, 3): 0.5}
    found = evaluate(graph, "all", links, {1: 0.999999}, "bounds", "updown")
    assert found.lower == pytest.approx(1, abs=1e-15)
    assert found.upper == 1
