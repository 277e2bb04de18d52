"""Slopes of networks of alike nodes by components, by the sweep back, and from both states of a part."""

from fractions import Fraction

import networkx as nx
import numpy as np
import pytest

from relparallel.reliability import evaluate
from relparallel.reliability.lumped.alike_nodes import recognised
from relparallel.reliability.lumped.alike_slopes import twin_slopes
from relparallel.reliability.problem import read_problem
from relparallel.reliability.sensitivity.adjoint import swept_slopes

COMPLETE = {"all": "all", "two": (0, 1), "three": (1, 3, 4), "one": (2,)}
SIDES = {"all": "all", "leaves": (0, 1, 2, 3), "two": (0, 2), "spines": (4, 5), "both": (1, 2, 4, 6)}
CASES = [(nx.complete_graph(6), asked) for asked in COMPLETE.values()]
CASES += [(nx.complete_bipartite_graph(4, 3), asked) for asked in SIDES.values()]
NAMES = [f"complete, {name}" for name in COMPLETE] + [f"two sides, {name}" for name in SIDES]


def spine(graph, v):
    """Whether a node is on the second side of the bipartite case."""
    return len(graph) == 7 and v > 3


def chances(graph, asked, others):
    """A chance of its own for each terminal, and the same one for the other nodes of a side."""
    terminals = list(graph) if asked == "all" else asked
    return {v: 1 - 0.01 * (v + 1) if v in terminals else others - 0.1 * spine(graph, v) for v in graph}


@pytest.mark.parametrize(("graph", "asked"), CASES, ids=NAMES)
@pytest.mark.parametrize("up", [0.9, 0.5, 1 - 1e-9])
def test_every_part_against_the_sweep_back(graph, asked, up):
    """Perfect parts too; the sweep knows values to 1e-31 of U, and its terminals to 1e-16 of 1."""
    for node_up in (1.0, chances(graph, asked, 0.8), chances(graph, asked, 1.0)):
        problem = read_problem(graph, asked, up, node_up)
        failed, slopes = twin_slopes(problem)
        wanted = np.ones(len(slopes), dtype=bool)
        expected, swept = swept_slopes(problem, wanted, True, 2**20)
        assert failed == pytest.approx(expected, rel=1e-12, abs=0)
        np.testing.assert_allclose(slopes, swept, rtol=1e-12, atol=1e-30 * expected)


@pytest.mark.parametrize(("graph", "asked"), CASES, ids=NAMES)
@pytest.mark.parametrize("down", [Fraction(1, 10), Fraction(1, 2), Fraction(1, 10**9)])
def test_one_part_of_every_class_against_conditioning_in_fractions(graph, asked, down, by_conditioning):
    """No part is certain."""
    terminals = list(graph) if asked == "all" else asked
    node = {v: Fraction(1, 50 + v) if v in terminals else Fraction(1, 5 + spine(graph, v)) for v in graph}
    rounded = {v: float(q) for v, q in node.items()}
    assert recognised(read_problem(graph, asked, 1.0, 1.0, float(down), rounded)) is not None
    parts = evaluate(graph, asked, link_down=float(down), node_down=rounded).importance()
    slopes = dict(zip(parts.names, parts.birnbaum.tolist(), strict=True))
    assert len(slopes) == len(graph) + len(graph.edges)
    classes = {}
    for name in parts.names:
        ends = name if isinstance(name, tuple) else (name,)
        classes[tuple(sorted((v in terminals, spine(graph, v)) for v in ends))] = name
    for name in classes.values():
        exact = by_conditioning(graph, asked, dict.fromkeys(graph.edges, down), node, name)
        assert slopes[name] == pytest.approx(exact, rel=1e-12, abs=0)


def test_slopes_where_the_system_nearly_always_fails():
    """Trees alone work: a terminal's slope is the chance of one, Cayley's n^(n-2), with all its digits."""
    n, up = 7, 1e-6
    _, slopes = twin_slopes(read_problem(nx.complete_graph(n), "all", up, 1.0))
    rare = n ** (n - 2) * up ** (n - 1)
    assert slopes[-1] == pytest.approx(rare, rel=1e-4, abs=0)
    assert slopes[:-n].sum() == pytest.approx((n - 1) * rare / up, rel=1e-4, abs=0)


@pytest.mark.parametrize("terminals", ["all", (0, 1)])
def test_slopes_are_the_derivative_of_large_networks(terminals):
    """Too wide for the programme: 60 nodes, and 60 by 8; the sum over links, by a central difference."""
    for graph in (nx.complete_graph(60), nx.complete_bipartite_graph(60, 8)):
        down, step = 0.6, 1e-5
        found = evaluate(graph, terminals, link_down=down).importance()
        high, low = (
            evaluate(graph, terminals, link_down=q).unreliability for q in (down + step, down - step)
        )
        assert found.birnbaum.sum() == pytest.approx((high - low) / (2 * step), rel=1e-6, abs=0)


def test_other_measures_follow():
    """K5 and K(4, 2) by classes, and without reductions, which leaves them to the programme."""
    relays = {2: 0.8, 3: 0.8, 4: 0.8}
    for graph, up in ((nx.complete_graph(5), relays), (nx.complete_bipartite_graph(4, 2), {0: 0.7})):
        by_class, swept = (
            evaluate(graph, (0, 1), 0.9, up, method="exact", reductions=simple).importance()
            for simple in (True, False)
        )
        assert by_class.names == swept.names
        for measure in ("birnbaum", "structural", "risk_reduction", "risk_achievement", "criticality"):
            assert getattr(by_class, measure) == pytest.approx(getattr(swept, measure), rel=1e-12, abs=0)


def test_a_nearly_single_point_of_failure_of_a_large_complete_graph():
    """It is evaluated anew with that node perfect, which the programme could not do."""
    found = evaluate(nx.complete_graph(60), "all", link_down=1e-3, node_down={7: 1e-6}).importance()
    assert found.risk_reduction[found.names.index(7)] > 1e100
    assert np.isfinite(found.risk_reduction).all()
    assert found.to_frame("structural")["part"].iloc[0] == 7


def test_what_has_no_such_classes():
    graph = nx.complete_graph(5)
    assert twin_slopes(read_problem(graph, "all", {(0, 1): 0.5}, 1.0)) is None
    assert twin_slopes(read_problem(graph, (0, 1), 0.9, {3: 0.5})) is None
    assert twin_slopes(read_problem(nx.petersen_graph(), "all", 0.9, 1.0)) is None
    assert twin_slopes(read_problem(nx.complete_graph(620), (0, 1), 0.5, 1.0)) is None


@pytest.mark.parametrize("graph", [nx.complete_graph(5), nx.complete_bipartite_graph(3, 3)], ids=str)
def test_nodes_that_are_never_up(graph):
    """Their own slope counts what they would join."""
    dead = dict.fromkeys(range(2, len(graph)), 0.0)
    parts = [evaluate(graph, (0, 1), 0.9, dead, reductions=simple).importance() for simple in (True, False)]
    assert parts[0].names == parts[1].names
    assert parts[0].birnbaum == pytest.approx(parts[1].birnbaum, rel=1e-12, abs=0)
