"""Karp and Luby's estimator: honest intervals, and a small error with the bias bound in it."""

from time import process_time

import networkx as nx
import numpy as np
import pytest

from pace import pace
from relparallel.reliability import evaluate
from relparallel.reliability.problem import read_problem
from relparallel.reliability.sampling.karp_luby import karp_luby
from relparallel.topology import fat_tree, torus


def nothing_but_switches(network, down, edge_switches_fail=False):
    """Chances of failure of links and nodes: host links and hosts never fail."""
    hosts = np.isin(np.arange(network.num_nodes), network.hosts)
    access = hosts[network.edges].any(axis=1)
    spared = hosts.copy()
    if not edge_switches_fail:
        spared[network.edges[access]] = True
    return np.where(access, 0.0, down), np.where(spared, 0.0, down)


@pytest.mark.parametrize(
    ("graph", "terminals", "down", "node"),
    [
        (nx.dodecahedral_graph(), "all", 0.1, 0.0),
        (nx.dodecahedral_graph(), (0, 19), 0.05, 0.0),
        (torus((4, 4)), "nodes", 0.1, 0.0),
        (fat_tree(4), "all", 0.05, 0.02),
    ],
    ids=["dodecahedron", "pair", "torus", "fat-tree"],
)
def test_the_interval_holds_the_exact_value(graph, terminals, down, node):
    """At least as often as it says, in a thousand runs of the shipped table; here in fifty."""
    rng, hits = np.random.default_rng(3), 0
    problem = read_problem(graph, terminals, 1.0, 1.0, down, node)
    exact = evaluate(graph, terminals, link_down=down, node_down=node).unreliability
    for _ in range(50):
        found = karp_luby(problem, rng=rng, rtol=0.1, samples=400)
        hits += found.lower <= exact <= found.upper
        assert found.lower <= found.value <= found.upper
    assert hits >= 47


def test_the_mean_of_many_runs_is_the_probability_of_the_listed_cuts():
    rng = np.random.default_rng(4)
    problem = read_problem(nx.petersen_graph(), "all", 1.0, 1.0, 0.3)
    exact = evaluate(nx.petersen_graph(), link_down=0.3).unreliability
    runs = [karp_luby(problem, rng=rng, rtol=1e-3, samples=1000) for _ in range(pace(60, 200))]
    mean = np.mean([run.value for run in runs])
    error = np.std([run.value for run in runs]) / np.sqrt(len(runs))
    assert runs[0].bias_bound < 1e-3 * exact
    assert abs(mean - exact) < 4 * error + runs[0].bias_bound


def test_more_precision_where_it_is_asked_for():
    problem = read_problem(nx.dodecahedral_graph(), "all", 1.0, 1.0, 0.1)
    exact = evaluate(nx.dodecahedral_graph(), link_down=0.1).unreliability
    for rtol in (0.1, 0.01):
        found = karp_luby(problem, rng=np.random.default_rng(5), rtol=rtol)
        assert found.lower <= exact <= found.upper
        assert found.upper - found.lower <= 2 * rtol * exact
        assert abs(found.value - exact) <= rtol * exact


def test_the_torus_six_by_six():
    problem = read_problem(torus((6, 6)), "nodes", 1.0, 1.0, 1e-4)
    exact = evaluate(torus((6, 6)), "nodes", link_down=1e-4).unreliability
    found = karp_luby(problem, rng=np.random.default_rng(6), rtol=1e-9)
    assert found.value == pytest.approx(exact, rel=1e-9)
    assert found.bias_bound <= 1e-9 * exact


@pytest.mark.parametrize("down", [1.64e-4, 1e-3, 0.0354])
def test_the_torus_of_512_nodes(down):
    found, seconds = timed(read_problem(torus((8, 8, 8)), "nodes", 1.0, 1.0, down))
    assert found.value == pytest.approx(512 * down**6, rel=1e-3)
    assert found.upper - found.lower < 1e-2 * found.value
    assert seconds < 15


@pytest.mark.parametrize("down", [1.7e-3, 0.01, 0.097])
def test_the_switches_of_the_fat_tree(down):
    found, seconds = timed(read_problem(fat_tree(16), "switches", 1.0, 1.0, down))
    assert found.value == pytest.approx(128 * down**8, rel=1e-3)
    assert found.upper - found.lower < 1e-2 * found.value
    assert seconds < 15


@pytest.mark.parametrize("down", [1e-23, 1e-9])
def test_the_hosts_of_the_fat_tree(down):
    found, seconds = timed(read_problem(fat_tree(16), "all", 1.0, 1.0, down))
    assert found.value == pytest.approx(-np.expm1(1024 * np.log1p(-down)), rel=1e-9)
    assert found.upper - found.lower < 1e-9 * found.value
    assert seconds < 15


@pytest.mark.parametrize("down", [pytest.param(1e-3, marks=pytest.mark.slow), 0.01])
def test_the_fat_tree_whose_inner_switches_fail(down):
    """An edge switch is cut off with chance (1 - p**2)**8; two of a pod share eight neighbours."""
    network = fat_tree(16)
    links, nodes = nothing_but_switches(network, down)
    found, seconds = timed(read_problem(network, "all", 1.0, 1.0, links, nodes))
    single, both = (2 * down - down**2) ** 8, (down + (1 - down) * down**2) ** 8
    first, second = 128 * single, 16 * 28 * both + 64 * 127 * single**2
    assert first - second <= found.upper
    assert found.lower <= first * (1 + 1e-6)
    assert found.upper - found.lower < 2e-2 * found.value
    assert seconds < 15


def timed(problem):
    """Estimate, and CPU seconds of a warm kernel."""
    karp_luby(
        read_problem(nx.petersen_graph(), "all", 1.0, 0.99, 0.1), rng=np.random.default_rng(0)
    )
    begin = process_time()
    found = karp_luby(problem, rng=np.random.default_rng(1), rtol=1e-2)
    return found, process_time() - begin
