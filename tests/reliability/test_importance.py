"""Importance of every part against conditioning, exact fractions and its definitions."""

import os
import tarfile
from fractions import Fraction
from io import BytesIO
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from relparallel import topology
from relparallel.reliability import evaluate
from relparallel.reliability.frontier.compiled_sweep import NotExactError
from relparallel.reliability.frontier.decomposition import compiled
from relparallel.reliability.problem import read_problem
from relparallel.reliability.result import bracketed
from relparallel.reliability.sensitivity.reverse_pass import gradient


def by_conditioning(structure, problem):
    """U(part down) - U(part up) of all parts, and U(part down), by two evaluations of each."""
    chances = np.concatenate([problem.link, problem.node])
    m, differences, without = len(problem.link), [], []
    for i, own in enumerate(chances.copy()):
        outcomes = []
        for state in ((0.0, 1.0), (1.0, 0.0)):
            chances[i] = state
            outcomes.append(structure.evaluate(chances[:m], chances[m:]).unreliability)
        chances[i] = own
        differences.append(outcomes[0] - outcomes[1])
        without.append(outcomes[0])
    return np.array(differences), np.array(without)


def assert_agrees(problem, reductions=True):
    """Relative error 1e-9; conditioning's loss by subtraction is allowed for on its side alone."""
    structure = compiled(problem, reductions)
    wanted = np.ones(len(problem.link) + len(problem.node), dtype=bool)
    unreliability, found = gradient(structure, problem.link, problem.node, wanted)
    expected, without = by_conditioning(structure, problem)
    assert np.all(np.abs(found - expected) <= 1e-9 * expected + 1e-14 * without)
    exact = structure.evaluate(problem.link, problem.node).unreliability
    assert unreliability == pytest.approx(exact, rel=1e-13)


NETWORKS = {
    "dodecahedron, two": (nx.dodecahedral_graph(), (0, 19)),
    "dodecahedron, all": (nx.dodecahedral_graph(), "all"),
    "grid, three": (nx.grid_2d_graph(4, 5), [(0, 0), (3, 4), (2, 1)]),
    "K7, all": (nx.complete_graph(7), "all"),
    "torus": (nx.grid_2d_graph(4, 4, periodic=True), [(0, 0), (2, 2)]),
    "lollipop": (nx.lollipop_graph(5, 6), [2, 10]),
    "fat-tree": (topology.fat_tree(4), "switches"),
    "leaf-spine": (topology.leaf_spine(leaves=4, spines=3, hosts_per_leaf=2), "all"),
    "dcell": (topology.dcell(3, 1), "all"),
}
ZOO = {"Abilene", "Geant2012", "Arpanet19719", "Aarnet", "UsCarrier"}


@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize("node_down", [0.0, 0.05])
def test_all_parts_against_conditioning(name, node_down):
    graph, terminals = NETWORKS[name]
    assert_agrees(read_problem(graph, terminals, 1.0, 1.0, 0.1, node_down))


@settings(max_examples=60)
@given(
    seed=st.integers(0, 2**32 - 1),
    nodes=st.integers(2, 9),
    terminals=st.integers(1, 4),
    reductions=st.booleans(),
)
def test_random_networks_against_conditioning(seed, nodes, terminals, reductions):
    rng = np.random.default_rng(seed)
    graph = nx.gnm_random_graph(nodes, int(rng.integers(1, 2 * nodes)), seed=seed % 2**31)
    chosen = rng.choice(nodes, min(terminals, nodes), replace=False).tolist()
    link, node = rng.random(len(graph.edges)), rng.random(nodes)
    assert_agrees(read_problem(graph, chosen, 1.0, 1.0, link, node), reductions)


@pytest.mark.parametrize("node_down", [0.0, 1e-3])
def test_topology_zoo_against_conditioning(node_down):
    if "RELPARALLEL_DATA" not in os.environ:
        pytest.skip("RELPARALLEL_DATA names no folder with data/topology-zoo")
    archive = Path(os.environ["RELPARALLEL_DATA"]) / "data/topology-zoo/topology-zoo.tar.xz"
    with tarfile.open(archive) as files:
        members = [
            m
            for m in files.getmembers()
            if Path(m.name).stem in ZOO and m.name.endswith(".graphml")
        ]
        graphs = [
            nx.read_graphml(BytesIO(files.extractfile(m).read()), force_multigraph=True)
            for m in members
        ]
    assert len(graphs) == len(ZOO)
    for graph in graphs:
        simple = nx.Graph((u, v) for u, v in graph.edges() if u != v)
        whole = simple.subgraph(max(nx.connected_components(simple), key=len))
        assert_agrees(read_problem(nx.Graph(whole.edges), "all", 1.0, 1.0, 0.01, node_down))


@pytest.mark.parametrize("q", [Fraction(1, 8), Fraction(1, 2**10), Fraction(1, 2**24)])
def test_digits_against_factoring_in_fractions(q, by_factoring):
    """A far link decides in one of 1e22 failures at most, and still has all its digits."""
    links = [
        ("s", "a"),
        ("a", "b"),
        ("a", "c"),
        ("a", "d"),
        ("b", "c"),
        ("c", "d"),
        ("b", "t"),
        ("c", "t"),
        ("d", "t"),
    ]
    graph = nx.Graph(links)
    order = list(graph.edges)
    found = evaluate(graph, ("s", "t"), link_down=float(q)).importance()
    for i, slope in enumerate(found.birnbaum.tolist()):
        name = found.names[i]
        rest = [edge for edge in order if set(edge) != set(name)]
        parts = [(u, v, 1 - q) for u, v in rest]
        without = 1 - by_factoring(parts, ("s", "t"))
        perfect = 1 - by_factoring([*parts, (*name, Fraction(1))], ("s", "t"))
        assert slope == pytest.approx(float(without - perfect), rel=1e-13, abs=0)
        assert found.risk_achievement[i] * found.unreliability == pytest.approx(
            float(without), rel=1e-13, abs=0
        )
        assert found.unreliability / found.risk_reduction[i] == pytest.approx(
            float(perfect), rel=1e-11, abs=0
        )
    assert len(found.names) == len(links)


def test_digits_beside_a_large_unreliability():
    """Two grids share a corner: what decides in the good one is 1e-30 of the bad one's failures."""
    graph = nx.ladder_graph(6)
    q = 2.0**-40
    found = evaluate(graph, (0, 11), link_down=q).importance()
    flipped = {
        tuple(sorted((11 - u, 11 - v))): slope
        for (u, v), slope in zip(found.names, found.birnbaum, strict=True)
    }
    for pair, slope in zip(found.names, found.birnbaum.tolist(), strict=True):
        assert slope == pytest.approx(flipped[tuple(sorted(pair))], rel=1e-13, abs=0)


def test_symmetric_links_have_equal_importance():
    found = evaluate(nx.complete_graph(6), "all", link_up=0.9).importance()
    assert np.ptp(found.birnbaum) <= 1e-14 * found.birnbaum[0]


def test_derivative_of_the_polynomial():
    """The slopes of all links sum to the derivative by their common chance: U = 3 q^2 - 2 q^3."""
    q = 1e-3
    found = evaluate(nx.cycle_graph(3), "all", link_down=q).importance()
    assert found.birnbaum.sum() == pytest.approx(6 * q - 6 * q**2, rel=1e-14)


def test_structural_importance_counts_deciding_states(by_enumeration):
    links = [("s", "a"), ("s", "b"), ("a", "b"), ("a", "t"), ("b", "t")]
    found = evaluate(nx.Graph(links), ("s", "t"), link_up=0.97).importance()
    half, nodes = Fraction(1, 2), dict.fromkeys("sabt", 1)
    for name, structural in zip(found.names, found.structural, strict=True):
        given_up, given_down = (
            by_enumeration(
                [(u, v, chance if {u, v} == set(name) else half) for u, v in links],
                nodes,
                ("s", "t"),
                "sabt",
            )
            for chance in (1, 0)
        )
        assert structural == float(given_up - given_down)


def test_criticality_bounds_the_share_of_failed_minimal_cuts():
    """In an all-terminal network link uv is in a failed minimal cut just when u and v are apart."""
    graph, q = nx.petersen_graph(), 0.01
    found = evaluate(graph, "all", link_down=q).importance()
    for i, pair in enumerate(found.names):
        original = evaluate(graph, pair, link_down=q).unreliability / found.unreliability
        assert found.fussell_vesely[i] <= original <= found.fussell_vesely[i] * (1 + 4 * q)


def test_parts_that_never_fail_are_shown_when_asked_for():
    result = evaluate(nx.cycle_graph(4), (0, 2), link_up=0.9)
    assert set(result.importance().kinds) == {"link"}
    every = result.importance(perfect=True)
    assert every.kinds.count("node") == 4
    terminal = every.names.index(0)
    assert every.birnbaum[terminal] == pytest.approx(result.reliability, rel=1e-14)
    assert every.risk_reduction[terminal] == 1.0


def test_a_single_point_of_failure_has_infinite_risk_reduction():
    found = evaluate(nx.path_graph(3), (0, 2), link_up={(0, 1): 0.9}).importance()
    assert found.names == [(0, 1)]
    assert found.risk_reduction.tolist() == [np.inf]
    assert found.criticality.tolist() == [1.0]


def test_a_nearly_single_point_of_failure_keeps_its_digits():
    graph = nx.Graph([("s", "a"), ("a", "b"), ("a", "c"), ("b", "t"), ("c", "t")])
    found = evaluate(
        graph, ("s", "t"), link_down={("s", "a"): 1e-3, ("a", "b"): 1e-9, ("a", "c"): 1e-9}
    ).importance()
    first = found.names.index(("s", "a"))
    assert found.risk_reduction[first] == pytest.approx(
        (1e-3 + (1 - 1e-3) * 1e-18) / 1e-18, rel=1e-13
    )


def test_the_table_is_sorted_and_names_parts():
    graph = nx.Graph([("s", "a"), ("a", "t"), ("s", "t")])
    table = evaluate(graph, ("s", "t"), link_up=0.9, node_up={"a": 0.8}).importance().to_frame()
    assert table["part"].iloc[0] == ("s", "t")
    assert table["criticality"].is_monotonic_decreasing
    assert set(table["kind"]) == {"link", "node"}
    assert "criticality" in evaluate(graph, ("s", "t"), link_up=0.9).importance()._repr_html_()
    with pytest.raises(ValueError, match="by must be"):
        evaluate(graph, ("s", "t"), link_up=0.9).importance().to_frame(by="fame")


def test_parts_that_tie_stand_in_their_own_order():
    """All links of a torus are alike, and all nodes; rounding tells them apart."""
    graph = nx.convert_node_labels_to_integers(nx.grid_2d_graph(4, 4, periodic=True))
    found = evaluate(graph, link_down=0.03, node_down=0.01).importance()
    assert len(set(found.birnbaum.tolist())) > 2  # rounded in more than two ways
    for by in ("birnbaum", "criticality", "risk_achievement", "structural"):
        table = found.to_frame(by=by)
        for kind in ("link", "node"):
            ordered = [
                name for name, own in zip(found.names, found.kinds, strict=True) if own == kind
            ]
            assert table.loc[table["kind"] == kind, "part"].tolist() == ordered
    parts = [(i, i + 1) for i in range(5)]
    chain = evaluate(
        nx.path_graph(6), (0, 5), link_down=dict(zip(parts, (0.1, 0.3, 0.1, 0.2, 0.3), strict=True))
    )
    table = chain.importance().to_frame()
    assert table["part"].tolist() == [(1, 2), (4, 5), (3, 4), (0, 1), (2, 3)]


def test_disconnected_terminals_depend_on_nothing():
    graph = nx.Graph([(0, 1), (2, 3)])
    found = evaluate(graph, (0, 3), link_up=0.9).importance(perfect=True)
    assert found.unreliability == 1.0
    assert not found.birnbaum.any()


def test_only_results_of_evaluate_know_their_parts():
    exact, bounded = (
        evaluate(nx.cycle_graph(4), link_up=0.9, method=method) for method in ("exact", "bounds")
    )
    assert bounded.importance().birnbaum == pytest.approx(exact.importance().birnbaum)
    with pytest.raises(ValueError, match="made by hand"):
        bracketed(0.1, 0.2).importance()


def test_memory_is_guarded():
    problem = read_problem(nx.grid_2d_graph(6, 6), "all", 0.9, 1.0)
    with pytest.raises(NotExactError, match="max_states=50"):
        gradient(
            compiled(problem), problem.link, problem.node, np.ones(96, dtype=bool), max_states=50
        )


def test_where_nothing_fails_no_part_is_important():
    found = evaluate(nx.cycle_graph(4), link_up=1.0).importance()
    assert found.names == []
    assert found.to_frame().empty


@pytest.mark.parametrize("measure", ["links", "nodes"])
def test_every_measure_against_conditioning_by_evaluate(measure):
    """A part down or up, by the public function; all measures from their definitions."""
    graph = nx.convert_node_labels_to_integers(nx.grid_2d_graph(3, 4))
    base = {"link_down": 0.05} if measure == "links" else {"node_down": 0.05}
    whole = evaluate(graph, (0, 11), **base)
    found = whole.importance()
    for i, name in enumerate(found.names):
        outcomes = []
        for down in (1.0, 0.0):
            if measure == "links":
                changed = {"link_down": dict.fromkeys(graph.edges, 0.05) | {name: down}}
            else:
                changed = {"node_down": dict.fromkeys(graph, 0.05) | {name: down}}
            outcomes.append(evaluate(graph, (0, 11), **changed).unreliability)
        without, perfect = outcomes
        assert found.birnbaum[i] == pytest.approx(without - perfect, rel=1e-9, abs=1e-15)
        assert found.criticality[i] == pytest.approx(
            0.05 * (without - perfect) / whole.unreliability, rel=1e-9, abs=1e-15
        )
        assert found.fussell_vesely[i] == pytest.approx(
            1 - perfect / whole.unreliability, rel=1e-9, abs=1e-13
        )
        assert found.risk_achievement[i] == pytest.approx(without / whole.unreliability, rel=1e-9)
        assert found.risk_reduction[i] == pytest.approx(whole.unreliability / perfect, rel=1e-9)


def test_parts_of_equal_chance_and_slope_leave_rests_of_their_own():
    """Both cut off 3: with (0, 3) perfect nothing fails, with (2, 3) nodes 0 and 2 may be apart."""
    graph = nx.MultiGraph([(0, 1), (0, 1), (1, 2), (2, 3), (3, 0), (0, 2), (0, 2), (0, 2)])
    found = evaluate(graph, (0, 3), link_down=1e-9).importance()
    reduction = dict(zip(found.names, found.risk_reduction.tolist(), strict=True))
    assert reduction[0, 3] == np.inf
    # 0-2 is down with its three cables and with (1, 2) or both cables of (0, 1)
    rest = 1e-9 * 1e-27 * (1e-9 + (1 - 1e-9) * 1e-18)
    assert reduction[2, 3] == pytest.approx(found.unreliability / rest, rel=1e-12)


def test_labels_are_those_of_the_problem():
    fabric = topology.leaf_spine(leaves=3, spines=2, hosts_per_leaf=1)
    sides = nx.complete_bipartite_graph(2, 3)  # nodes carry a side, which means nothing here
    for graph in (nx.path_graph(["c", "a", "b"]), sides, fabric, fabric.to_networkx()):
        found = evaluate(graph, link_up=0.9, method="exact").importance()
        assert found.labels == tuple(topology.as_topology(graph).labels)


@pytest.mark.parametrize("terminals", ["all", (0, 2), (0, 1, 3)])
@pytest.mark.parametrize("dead", [(0, 1), (0, 1, 3), (0, 1, 2, 3)])
def test_parts_that_are_always_down(terminals, dead):
    # a node between two links that are both down: the rule of degree two divides by the chance of
    # either
    graph = nx.cycle_graph(4)
    graph.add_edge(1, 3)
    links = {pair: 0.0 if i in dead else 0.9 for i, pair in enumerate(graph.edges)}
    problem = read_problem(
        graph, terminals, links, {2: 0.0} if 2 in dead and terminals != "all" else 0.9
    )
    assert_agrees(problem)
    assert_agrees(problem, reductions=False)


def test_rounding_does_not_lift_a_probability_above_one():
    graph = nx.Graph([(0, 1), (0, 3), (1, 2), (1, 3), (2, 3), (2, 4), (3, 4)])
    links = [0.1, 0.01, 0.001, 0.01, 0.01, 0.001, 0.001]
    found = evaluate(graph, "all", links, [0.3, 0.1, 0.001, 0.001, 0.001], "exact").importance()
    assert 1 - 1e-9 < found.unreliability <= 1
    assert found.birnbaum.max() < 1e-6


def test_digits_where_success_is_rare():
    # node 1 never works: what is left is a path 2 - 3 - 0 whose first cable and end are nearly
    # always down
    graph = nx.Graph([(0, 3), (0, 1), (3, 1), (1, 2), (2, 3)])
    links = {(0, 1): 0.5, (2, 3): 1e-9}
    parts = evaluate(graph, (2, 3, 0), links, {1: 0.0, 2: 1e-9, 3: 0.9}, "exact").importance()
    found = dict(zip(parts.names, parts.birnbaum, strict=True))
    assert found[2] == pytest.approx(0.9e-9, rel=1e-12)
    assert found[3] == pytest.approx(1e-18, rel=1e-12)
    assert found[3, 2] == pytest.approx(0.9e-9, rel=1e-12)
    assert found[1] == pytest.approx(0.9e-9, rel=1e-8)  # either way to 2 is up: 1 - 1e-9 more
