from fractions import Fraction

import networkx as nx
import pytest
from hypothesis import given, settings, strategies as st

from relparallel.reliability import evaluate

SIXTEENTHS = st.integers(1, 16).map(lambda i: Fraction(i, 16))


@settings(max_examples=60)
@given(
    seed=st.integers(0, 10**6), ups=st.lists(SIXTEENTHS, min_size=7, max_size=7), node=SIXTEENTHS
)
def test_fractions_equal_enumeration(seed, ups, node, by_enumeration):
    graph = nx.gnm_random_graph(5, 7, seed=seed)
    link = dict(zip(graph.edges, ups, strict=True))
    found = evaluate(graph, (0, 1, 4), link, {2: node})
    nodes = dict.fromkeys(graph, 1) | {2: node}
    exact = by_enumeration(
        [(u, v, up) for (u, v), up in link.items()], nodes, (0, 1, 4), set(graph)
    )
    assert (found.reliability, found.unreliability) == (exact, 1 - exact)
    assert found == evaluate(graph, (0, 1, 4), link, {2: node}, reductions=False)
    floats = evaluate(
        graph, (0, 1, 4), {pair: float(up) for pair, up in link.items()}, {2: float(node)}
    )
    assert floats.unreliability == pytest.approx(float(1 - exact), rel=1e-13)


def test_every_spelling_gives_the_same_fraction():
    graph, third = nx.cycle_graph(4), Fraction(1, 3)
    same = evaluate(graph, link_up=third)
    assert same.reliability + same.unreliability == 1
    assert isinstance(same.lower, Fraction)
    assert same.reliability == 4 * third**3 * (1 - third) + third**4
    assert same == evaluate(graph, link_up=[third] * 4)
    assert same == evaluate(graph, link_up=dict.fromkeys(graph.edges, third))
    assert same == evaluate(graph, link_down=1 - third)
    assert evaluate(graph, link_down={(0, 1): third}).unreliability == 0
    mixed = evaluate(graph, (0, 2), 0.5, [1, third, 1, 0])
    assert mixed.reliability == Fraction(1, 4) * third


def test_parallel_cables_in_fractions():
    assert (
        evaluate(nx.MultiGraph([(0, 1)] * 3), link_up=Fraction(1, 10)).unreliability
        == Fraction(9, 10) ** 3
    )


@pytest.mark.parametrize(
    "up", [Fraction(3, 2), Fraction(-1, 2), [Fraction(1, 2)] * 3, {9: Fraction(1, 2)}]
)
def test_bad_fractions_are_refused(up):
    with pytest.raises((ValueError, TypeError), match="link_up must"):
        evaluate(nx.cycle_graph(4), link_up=up)


@pytest.mark.parametrize("groups", [None, [((0, 1), 0.1)]])
@pytest.mark.parametrize(("limit", "states"), [("_STATES", 100), ("_ROOM", 2**15)])
def test_fractions_stop_before_they_exhaust_memory(groups, limit, states, monkeypatch):
    from relparallel.reliability.extensions import counting

    monkeypatch.setattr(counting, limit, states)
    with pytest.raises(ValueError, match="states in a layer of this sweep"):
        evaluate(nx.complete_graph(9), (0, 1), Fraction(9, 10), groups=groups)
