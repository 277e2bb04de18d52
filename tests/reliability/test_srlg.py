from dataclasses import replace
from itertools import combinations, product

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from relparallel.reliability import evaluate
from relparallel.reliability.extensions.srlg import conditioned, read_groups, solve_groups, swept
from relparallel.reliability.frontier.compiled_sweep import NotExactError
from relparallel.reliability.frontier.decomposition import compiled
from relparallel.reliability.problem import read_problem
from relparallel.reliability.sensitivity import gradient as sensitivity
from relparallel.topology import SharedRisk, leaf_spine


def enumerated(graph, terminals, link, node, groups):
    """Reliability by all states of links, nodes and groups."""
    parts = [
        (*link.items(),),
        (*node.items(),),
        (*((i, 1 - q) for i, (_, q) in enumerate(groups)),),
    ]
    events = [(kind, name, up) for kind, found in enumerate(parts) for name, up in found]
    total = 0.0
    for states in product((True, False), repeat=len(events)):
        mass = np.prod(
            [up if works else 1 - up for (*_, up), works in zip(events, states, strict=True)]
        )
        failed = {event[:2] for event, works in zip(events, states, strict=True) if not works}
        down = {name for kind, name in failed if kind < 2}
        down |= {member for kind, i in failed if kind == 2 for member in groups[i][0]}
        alive = nx.Graph()
        alive.add_nodes_from(v for v in graph if v not in down)
        alive.add_edges_from(e for e in graph.edges if e not in down and not down & set(e))
        reached = (
            nx.node_connected_component(alive, terminals[0]) if terminals[0] in alive else set()
        )
        total += mass * (set(terminals) <= reached)
    return total


@st.composite
def questions(draw):
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    graph = nx.gnm_random_graph(
        int(rng.integers(3, 6)), int(rng.integers(2, 6)), seed=int(rng.integers(1000))
    )
    terminals = rng.permutation(list(graph))[: rng.integers(1, 4)].tolist()
    link = {pair: float(rng.choice([0.5, 0.75, 0.9])) for pair in graph.edges}
    node = {v: 0.875 for v in graph if rng.random() < 0.3}
    parts = [*graph, *graph.edges]
    groups = [
        (
            [parts[i] for i in rng.permutation(len(parts))[: rng.integers(1, 4)]],
            float(rng.choice([0.25, 0.1])),
        )
        for _ in range(rng.integers(0, 4))
    ]
    return graph, terminals, link, node, groups


@settings(max_examples=60)
@given(questions())
def test_both_routes_agree_with_enumeration(question):
    graph, terminals, link, node, groups = question
    exact = enumerated(*question)
    found = evaluate(graph, terminals, link, node, groups=groups)
    assert found.reliability == pytest.approx(exact, abs=1e-12)
    assert found.unreliability == pytest.approx(1 - exact, abs=1e-12)
    problem = read_problem(graph, terminals, link, node)
    shared = [
        group
        for group in read_groups(graph, problem, groups)
        if not group.nodes & {*problem.terminals.tolist()}
    ]
    up, down, rest, _ = conditioned(compiled(problem), problem, shared, 10**6)
    assert rest == 0
    assert by_sweep(problem, shared) == pytest.approx((up, down), abs=1e-13)
    for few in range(1, 5):
        _, low, open_, value = conditioned(
            compiled(problem), problem, shared, 10**6, evaluations=few
        )
        assert low - 1e-15 <= down <= low + open_ + 1e-15
        assert value == pytest.approx(low + open_ / 2)


def by_sweep(problem, groups):
    """Both masses by the programme that keeps the groups in its states."""
    return swept(compiled(problem, reductions=False), problem, groups, 10**6)


@settings(max_examples=20)
@given(questions())
def test_bounds_with_groups_hold(question):
    graph, terminals, link, node, groups = question
    exact = evaluate(graph, terminals, link, node, groups=groups).unreliability
    found = evaluate(graph, terminals, link, node, groups=groups, method="bounds")
    assert found.lower - 1e-13 <= exact <= found.upper + 1e-13


def test_too_wide_a_network_with_groups_is_bounded():
    """A 6x6x6 torus: the conduits' part is exact, and what links do is bracketed."""
    torus = nx.convert_node_labels_to_integers(nx.grid_graph((6, 6, 6), periodic=True))
    groups = [([(0, v) for v in torus[0]], 1e-9)]
    found = evaluate(torus, (0, 1), link_down=1e-3, groups=groups, max_seconds=0.5)
    assert found.method == "bounds"
    assert "exact: " in found.reason
    assert found.lower <= 1e-9 + 2e-18 <= found.upper
    assert found.upper < 1.01e-9


def ladder(rungs):
    """Two parallel lines with rungs, a conduit under every pair of opposite links."""
    graph = nx.ladder_graph(rungs)
    conduits = [([(i, i + 1), (rungs + i, rungs + i + 1)], 1e-4) for i in range(rungs - 1)]
    return graph, conduits


def test_many_groups_stay_exact():
    graph, conduits = ladder(30)
    found = evaluate(graph, (0, 29), link_down=1e-3, groups=conduits)
    assert found.exact
    # a conduit cuts the line, other cuts need two links
    assert 29e-4 < found.unreliability < 29e-4 + 2e-4
    problem = read_problem(*ladder(8)[:1], (0, 7), 1.0, 1.0, 1e-3)
    groups = read_groups(graph := ladder(8)[0], problem, ladder(8)[1])
    up, down, *_ = conditioned(compiled(problem), problem, groups, 10**6)
    assert evaluate(graph, (0, 7), link_down=1e-3, groups=ladder(8)[1]).unreliability == down
    assert by_sweep(problem, groups) == pytest.approx((up, down), rel=1e-12)


def test_too_many_live_groups_are_bounded():
    graph = nx.complete_graph(8)
    rng = np.random.default_rng(1)
    pairs = list(graph.edges)
    groups = [([pairs[i] for i in rng.permutation(len(pairs))[:3]], 1e-3) for _ in range(24)]
    problem = read_problem(graph, (0, 1), 0.9, 1.0)
    found = solve_groups(replace(problem, groups=read_groups(graph, problem, groups)), 10**4)
    assert found.method in ("bounds", "exact")
    assert found.lower <= found.unreliability <= found.upper
    assert found.upper - found.lower < 1e-6


def test_groups_of_the_topology():
    fabric = leaf_spine(leaves=2, spines=2, hosts_per_leaf=1)
    spines = np.flatnonzero(fabric.is_kind("spine")).tolist()
    power = replace(fabric, shared_risk=(SharedRisk(name="power", nodes=tuple(spines)),))
    for groups in (
        0.25,
        {"power": 0.25},
        [(spines, 0.25)],
        [(spines, 0.125), (spines[::-1], 1 / 7)],
    ):
        assert evaluate(power, groups=groups).unreliability == pytest.approx(0.25, rel=1e-15)
    assert evaluate(power, groups={}).unreliability == 0.0
    assert evaluate(power, groups=[([0, *spines], 0.25)]).unreliability == 0.25  # with a host
    assert evaluate(fabric, groups=0.5).unreliability == 0.0  # has no groups


@pytest.mark.parametrize(
    "groups",
    [
        "power",
        {"power": 0.5},
        [([0], 1.5)],
        [([99], 0.5)],
        [([(0, 2)], 0.5)],
        [([], 0.5)],
        [0.5],
        [("ab", 0.5)],
        [([0], [0.5])],
        [([[0]], 0.5)],
        -0.5,
        True,
        object(),
    ],
)
def test_bad_groups_are_refused(groups):
    graph = nx.path_graph(3)
    nx.set_node_attributes(graph, {1: ["rack"]}, "shared_risk")
    with pytest.raises((ValueError, TypeError), match="groups must"):
        evaluate(graph, groups=groups)


@pytest.mark.parametrize("seed", range(12))
def test_importance_with_groups_agrees_with_conditioning(seed):
    rng = np.random.default_rng(seed)
    graph = nx.gnm_random_graph(6, 10, seed=seed)
    parts = [*graph.edges, *graph.nodes]
    link = {edge: float(rng.choice([0.5, 0.9, 1 - 1e-6])) for edge in graph.edges}
    node = {v: 0.95 for v in graph if rng.random() < 0.5}
    groups = [([parts[i] for i in rng.permutation(len(parts))[:size]], 0.125) for size in (1, 2, 3)]
    terminals = rng.permutation(6)[:2].tolist()
    found = evaluate(graph, terminals, link, node, groups=groups).importance()
    assert found.unreliability == pytest.approx(
        evaluate(graph, terminals, link, node, groups=groups).unreliability, rel=1e-12
    )
    for name, kind, slope in zip(found.names, found.kinds, found.birnbaum, strict=True):
        down = []
        for up in (0, 1):
            chances = [dict(link), dict(node)]
            chances[kind == "node"][name] = up
            down.append(evaluate(graph, terminals, *chances, groups=groups).unreliability)
        assert slope == pytest.approx(down[0] - down[1], rel=1e-6, abs=1e-14)


def test_importance_asks_once_for_groups_that_take_down_the_same_parts(monkeypatch):
    """Ten groups of two of K5's ten links have 1024 states, but fewer sets of links are down."""
    graph = nx.complete_graph(5)
    groups = [(pair, 0.1) for pair in list(combinations(graph.edges, 2))[:30:3]]
    asked, swept = [], sensitivity.swept

    def counted(structure, link, *others):
        asked.append(link[:, 0].tobytes())
        return swept(structure, link, *others)

    monkeypatch.setattr(sensitivity, "swept", counted)
    found = evaluate(graph, (0, 4), 0.9, groups=groups)
    assert found.importance().unreliability == pytest.approx(found.unreliability)
    assert len(asked) == len(set(asked)) < 2**9


@pytest.mark.parametrize("seed", range(6))
def test_importance_with_many_groups_agrees_with_conditioning(seed):
    """Groups of one part are taken into its probability; ten others are enumerated by state."""
    rng = np.random.default_rng(seed)
    graph = nx.gnm_random_graph(7, 12, seed=seed)
    parts = [*graph.edges, *graph.nodes]
    link = {edge: float(rng.choice([0.0, 0.5, 0.9, 1 - 1e-6])) for edge in graph.edges}
    node = {v: 0.95 for v in graph if rng.random() < 0.5}
    groups = [
        ([parts[i] for i in rng.permutation(len(parts))[: 1 + k % 3]], 0.125) for k in range(15)
    ]
    terminals = rng.permutation(7)[:2].tolist()
    found = evaluate(graph, terminals, link, node, groups=groups, method="exact").importance()
    for name, kind, slope in zip(found.names, found.kinds, found.birnbaum, strict=True):
        down = []
        for up in (0, 1):
            chances = [dict(link), dict(node)]
            chances[kind == "node"][name] = up
            down.append(
                evaluate(graph, terminals, *chances, groups=groups, method="exact").unreliability
            )
        assert slope == pytest.approx(down[0] - down[1], rel=1e-9, abs=1e-14)


def test_importance_with_too_many_groups_is_refused():
    members = [([(i, i + 1), (i + 14, i + 15)], 0.01) for i in range(14)]
    found = evaluate(nx.cycle_graph(30), (0, 15), 0.9, groups=members, method="exact")
    with pytest.raises(NotExactError, match="groups must be at most 12 for importance, got 14"):
        found.importance()
