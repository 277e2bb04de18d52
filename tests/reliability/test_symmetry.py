from fractions import Fraction
from functools import cache
from math import comb

import networkx as nx
import numpy as np
import pytest

from relparallel.reliability import evaluate
from relparallel.reliability.lumped.symmetry import bcube_connected, complete_connected, lumped, twins
from relparallel.reliability.problem import read_problem
from relparallel.topology import Topology, as_topology, bcube, fat_tree, hyperx, three_tier


def answer(network, terminals="all", link_up=1.0, node_up=1.0, **options):
    return lumped(as_topology(network), read_problem(network, terminals, link_up, node_up, **options))


def gilbert(n, q):
    """Probability that a complete graph is not connected, in fractions: one node has a small component."""

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
    (up, apart), states = complete_connected(n, 0, (1 - down, down), (1.0, 0.0))
    exact = gilbert(n, Fraction(down))
    assert apart == pytest.approx(float(exact), rel=1e-13, abs=0)
    assert up == pytest.approx(float(1 - exact), rel=1e-13)
    assert states == n * (n + 1)
    assert evaluate(nx.complete_graph(n), link_down=down).unreliability == pytest.approx(apart, rel=1e-14)


def test_failure_and_success_of_complete_graphs_keep_their_digits():
    (_, apart), _ = complete_connected(6, 0, (1.0, 1e-30), (1.0, 0.0))
    assert apart == pytest.approx(6e-150, rel=1e-14, abs=0)
    (up, _), _ = complete_connected(6, 0, (1e-30, 1.0), (1.0, 0.0))
    assert up == pytest.approx(6**4 * 1e-150, rel=1e-14, abs=0)  # Cayley's trees
    (up, _), _ = complete_connected(2, 3, (1.0, 0.0), (0.5, 0.5))
    assert up == 1.0


@pytest.mark.parametrize("n", [2, 3, 4])
@pytest.mark.parametrize("high", [0.9, 0.99999])
def test_two_level_bcubes(n, high):
    network = bcube(n, 1)
    rng = np.random.default_rng(n)
    node = np.where(
        network.tier == 0, rng.uniform(0.9, 1, network.num_nodes), rng.uniform(0.5, high, 3)[network.tier]
    )
    link = rng.uniform(0.5, high, 3)[network.tier[network.edges[:, 1]]]
    found = answer(network, "all", link, node)
    exact = evaluate(network, "all", link, node, method="exact")
    assert found.unreliability == pytest.approx(exact.unreliability, rel=1e-13)
    assert found.reliability == pytest.approx(exact.reliability, rel=1e-13)


def test_bcube_by_its_smallest_cuts():
    """A server is cut off if both its links are down: n^2 ways; everything else takes more failures."""
    x = 2.0**-24
    certain, link = (1.0, 0.0), (1 - x, x)
    (_, down), terms = bcube_connected(16, 16, certain, certain, link, link)
    assert down / (256 * x**2) == pytest.approx(1, abs=300 * x**2 + 1e-12)
    assert terms == 3353
    assert bcube_connected(3, 3, certain, certain, certain, certain) == ((1.0, 0.0), 0)
    assert bcube_connected(3, 3, certain, certain, (0.0, 1.0), (0.5, 0.5))[0] == (0.0, 1.0)


def test_automatic_answers_are_lumped():
    for network in (fat_tree(6), three_tier(10, 3, 4, 2), bcube(12, 1), as_topology(nx.complete_graph(20))):
        found = evaluate(network, "all", 0.95, 0.99)
        assert (found.method in ("exact", "closed_form"), found.width) == (True, 0)
        lumped = answer(network, "all", 0.95, 0.99)
        assert found.unreliability == pytest.approx(lumped.unreliability, rel=1e-12)


def test_what_has_no_such_symmetry():
    assert answer(nx.cycle_graph(6), link_up=0.9) is None
    assert answer(hyperx((3, 3), 2), link_up=0.9) is None
    assert answer(bcube(2, 2), link_up=0.9) is None
    assert answer(bcube(3, 1), [0, 1, 2], 0.9) is None  # some servers only
    assert answer(nx.complete_graph(4), link_up={(0, 1): 0.5}) is None
    assert answer(nx.complete_graph(4), [0, 1], 0.9, {2: 0.5}) is None
    assert answer(nx.complete_graph(4), [0, 1], 0.9, {0: 0.5}) is not None


def test_nodes_that_do_not_forward_are_no_complete_graph():
    graph = nx.complete_graph(4)
    nx.set_node_attributes(graph, {0: False, 1: True, 2: True, 3: True}, "transit")
    assert isinstance(as_topology(graph), Topology)
    assert answer(graph, [0, 1], 0.9) is None


@pytest.mark.parametrize(("rows", "columns"), [(1, 3), (3, 1), (3, 4), (5, 2)])
def test_complete_bipartite_graphs_against_the_programme(rows, columns):
    graph = nx.complete_bipartite_graph(rows, columns)
    relays = dict.fromkeys(range(rows, rows + columns), 0.8)
    for link in (0.9, 0.5, 1e-3, 1 - 1e-9):
        for terminals, up in (("nodes", 0.7), (range(rows), relays), (range(max(rows - 1, 1)), relays)):
            exact = evaluate(graph, terminals, link, up, method="exact")
            found = twins(read_problem(graph, terminals, link, up))
            assert found.unreliability == pytest.approx(exact.unreliability, rel=1e-12)
            assert found.reliability == pytest.approx(exact.reliability, rel=1e-12)


def test_what_is_no_complete_bipartite_graph_of_twins():
    graph = nx.complete_bipartite_graph(3, 4)
    assert twins(read_problem(graph, [0, 1], 0.9, {2: 0.5})) is None  # a row that may fail and relays
    assert twins(read_problem(graph, [0, 3], 0.9, 0.9)) is None  # of both sides, but not all
    assert twins(read_problem(graph, [0, 1], 0.9, {3: 0.5})) is None
    assert twins(read_problem(nx.cycle_graph(6), "nodes", 0.9, 1.0)) is None
    graph.remove_edge(0, 3)
    assert twins(read_problem(graph, "nodes", 0.9, 1.0)) is None


def test_plain_graphs_of_twins_are_exact_at_any_size():
    found = evaluate(nx.complete_bipartite_graph(40, 20), "nodes", 0.9)
    assert (found.method, found.reason) == ("exact", "twins: 60 lumped states")
    assert found.unreliability / (40 * 0.1**20 + 20 * 0.1**40) == pytest.approx(1, abs=1e-12)
