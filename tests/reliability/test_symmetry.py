from fractions import Fraction
from functools import cache
from math import comb

import networkx as nx
import numpy as np
import pytest

from relparallel.reliability import evaluate
from relparallel.reliability.closed_forms.alike_nodes import same, twins
from relparallel.reliability.closed_forms.random_graph_connectivity import (
    complete_connected,
    sides_connected,
)
from relparallel.reliability.problem import read_problem
from relparallel.topology import Topology, as_topology, bcube, hyperx


def answer(network, terminals="all", link_up=1.0, node_up=1.0, **options):
    return twins(read_problem(network, terminals, link_up, node_up, **options))


def gilbert(n, q):
    """Chance in fractions that a complete graph is not connected: a node has a small component."""

    @cache
    def apart(m):
        return sum(comb(m - 1, i - 1) * (1 - apart(i)) * q ** (i * (m - i)) for i in range(1, m))

    return apart(n)


@pytest.mark.parametrize("n", [3, 5, 8])
@pytest.mark.parametrize("up", [0.3, 0.9, 0.9999])
def test_some_nodes_of_a_complete_graph(n, up):
    graph = nx.complete_graph(n)
    for terminals in (2, n // 2 + 1, n):
        node = {v: 0.7 if v >= terminals else 0.9 + v / 100 for v in graph}
        found = answer(graph, range(terminals), up, node)
        exact = evaluate(graph, range(terminals), up, node, method="exact")
        assert found.unreliability == pytest.approx(exact.unreliability, rel=1e-13)
        assert found.reliability == pytest.approx(exact.reliability, rel=1e-13)


@pytest.mark.parametrize(("n", "down"), [(12, 0.5), (40, 0.5), (60, 0.75), (30, 0.001)])
def test_complete_graphs_that_are_too_wide_for_the_programme(n, down):
    up, apart = complete_connected(n, 0, (1 - down, down), (1.0, 0.0))
    exact = gilbert(n, Fraction(down))
    assert apart == pytest.approx(float(exact), rel=1e-13, abs=0)
    assert up == pytest.approx(float(1 - exact), rel=1e-13)
    assert evaluate(nx.complete_graph(n), link_down=down).unreliability == pytest.approx(
        apart, rel=1e-14
    )


def test_failure_and_success_of_complete_graphs_keep_their_digits():
    _, apart = complete_connected(6, 0, (1.0, 1e-30), (1.0, 0.0))
    assert apart == pytest.approx(6e-150, rel=1e-14, abs=0)
    up, _ = complete_connected(6, 0, (1e-30, 1.0), (1.0, 0.0))
    assert up == pytest.approx(6**4 * 1e-150, rel=1e-14, abs=0)  # Cayley's trees
    up, _ = complete_connected(2, 3, (1.0, 0.0), (0.5, 0.5))
    assert up == 1.0


def test_automatic_answers_use_what_is_alike():
    for network in (as_topology(nx.complete_graph(20)), nx.complete_bipartite_graph(20, 12)):
        found = evaluate(network, "nodes", 0.95, 0.99)
        assert (found.method in ("exact", "closed_form"), found.width) == (True, 0)
        alike = answer(network, "nodes", 0.95, 0.99)
        assert found.unreliability == pytest.approx(alike.unreliability, rel=1e-12)


def test_what_has_no_such_symmetry():
    assert answer(nx.cycle_graph(6), link_up=0.9) is None
    assert answer(hyperx((3, 3), 2), link_up=0.9) is None
    assert answer(bcube(2, 2), link_up=0.9) is None
    assert answer(nx.complete_graph(4), link_up={(0, 1): 0.5}) is None
    assert answer(nx.complete_graph(4), [0, 1], 0.9, {2: 0.5}) is None
    assert answer(nx.complete_graph(4), [0, 1], 0.9, {0: 0.5}) is not None


def test_nodes_that_do_not_forward_are_no_complete_graph():
    graph = nx.complete_graph(4)
    nx.set_node_attributes(graph, {0: False, 1: True, 2: True, 3: True}, "transit")
    assert isinstance(as_topology(graph), Topology)
    assert answer(graph, [0, 1], 0.9) is None


@pytest.mark.parametrize(("rows", "columns"), [(2, 3), (3, 2), (3, 4), (5, 2)])
def test_complete_bipartite_graphs_against_the_programme(rows, columns):
    """All nodes, those of one side, some of both; all may fail, and terminals each otherwise."""
    graph, rng = nx.complete_bipartite_graph(rows, columns), np.random.default_rng(rows)
    own = rng.uniform(0.5, 1.0, rows + columns)
    for link in (0.9, 0.5, 1e-3, 1 - 1e-9):
        for asked in (
            "nodes",
            range(rows),
            range(max(rows - 1, 1)),
            [rows],
            [0, rows, rows + columns - 1],
        ):
            terminals = graph if asked == "nodes" else asked
            up = {v: own[v] if v in terminals else 0.8 if v < rows else 0.7 for v in graph}
            exact = evaluate(graph, asked, link, up, method="exact")
            found = twins(read_problem(graph, asked, link, up))
            assert found.unreliability == pytest.approx(exact.unreliability, rel=1e-12)
            assert found.reliability == pytest.approx(exact.reliability, rel=1e-12)


def sides(rows, columns, q):
    """Chances in fractions that all nodes of two sides, and all rows, are connected (Gilbert)."""

    @cache
    def whole(r, c):
        """That all are connected: else the component of the first row is smaller."""
        return 1 - sum(
            comb(r - 1, i - 1) * comb(c, j) * whole(i, j) * q ** (i * (c - j) + j * (r - i))
            for i in range(1, r + 1)
            for j in range(c + 1)
            if (i, j) != (r, c)
        )

    @cache
    def alone(r, c, some):
        """That the component of a row lacks one of ``some`` rows."""
        return sum(
            whole(i, j)
            * q ** (i * (c - j) + j * (r - i))
            * comb(c, j)
            * (comb(r - 1, i - 1) - (comb(r - some, i - some) if i >= some else 0))
            for i in range(1, r + 1)
            for j in range(c + 1)
        )

    return 1 - whole(rows, columns), alone


@pytest.mark.parametrize(("rows", "columns"), [(1, 1), (2, 7), (8, 4), (4, 8), (9, 9)])
@pytest.mark.parametrize("down", [0.1, 0.5, 0.9, 1e-9])
def test_two_sides_by_components_in_fractions(rows, columns, down):
    """Some rows, and all nodes."""
    link, certain, some = (1 - down, down), (1.0, 0.0), max(rows // 2, 1)
    apart, alone = sides(rows, columns, Fraction(down))
    found = sides_connected((some, rows - some), (0, columns), link, certain, certain)
    lacks = alone(rows, columns, some)
    assert found == pytest.approx((float(1 - lacks), float(lacks)), rel=1e-13, abs=0)
    found = sides_connected((rows, 0), (columns, 0), link, certain, certain)
    assert found == pytest.approx((float(1 - apart), float(apart)), rel=1e-13, abs=0)


def test_the_largest_networks_of_twins():
    """500 nodes, with binomial coefficients of 150 digits, by smallest cuts; more are refused."""
    found = twins(read_problem(nx.complete_graph(500), "nodes", 0.5, 1.0))
    assert found.unreliability == pytest.approx(500 * 0.5**499, rel=1e-13, abs=0)
    assert found.reliability == pytest.approx(1.0, rel=1e-13)
    found = twins(read_problem(nx.complete_bipartite_graph(250, 4), "nodes", 1.0, 1.0, 1e-3))
    assert found.unreliability == pytest.approx(-np.expm1(250 * np.log1p(-1e-12)), rel=1e-13, abs=0)
    assert twins(read_problem(nx.complete_bipartite_graph(995, 6), "nodes", 0.5, 1.0)) is None


def test_what_all_rows_share():
    chances = np.array([[0.5, 0.5], [0.75, 0.25], [0.75, 0.25]])
    assert same(chances) is None
    assert same(chances[1:]) == (0.75, 0.25)
    assert same(chances[:0]) == (1.0, 0.0)


def test_what_is_no_complete_bipartite_graph_of_twins():
    graph = nx.complete_bipartite_graph(3, 4)
    assert twins(read_problem(graph, [0], 0.9, {2: 0.5})) is None  # relays of a side that differ
    assert twins(read_problem(graph, [0, 1], 0.9, {2: 0.5})) is not None
    assert twins(read_problem(graph, [0, 1], 0.9, {3: 0.5})) is None
    assert twins(read_problem(graph, "nodes", {(0, 3): 0.5}, 1.0)) is None
    assert twins(read_problem(nx.cycle_graph(6), "nodes", 0.9, 1.0)) is None
    graph.remove_edge(0, 3)
    assert twins(read_problem(graph, "nodes", 0.9, 1.0)) is None


def test_stars_are_left_to_the_programme():
    star = nx.star_graph(2000)
    assert twins(read_problem(star, "nodes", 0.9, 1.0)) is None
    assert evaluate(star, [3, 4], 0.9).reliability == pytest.approx(0.81, rel=1e-15)


def test_plain_graphs_of_twins_are_exact_at_any_size():
    found = evaluate(nx.complete_bipartite_graph(40, 20), "nodes", 0.9)
    assert (found.method, found.reason) == (
        "exact",
        "alike nodes: a complete bipartite graph of alike nodes",
    )
    assert found.unreliability / (40 * 0.1**20 + 20 * 0.1**40) == pytest.approx(1, abs=1e-12)
