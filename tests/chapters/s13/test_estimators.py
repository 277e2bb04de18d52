"""Estimators that the library does not offer: mean and coverage against exact answers."""

import networkx as nx
import numpy as np
import pytest
from scipy.stats import binom

import relparallel as rp
from chapters import s13
from chapters.s13.estimators import SAMPLED, estimate_problem
from pace import pace
from relparallel.reliability.problem import read_problem

NETWORKS = {
    "dodecahedron pair": (nx.dodecahedral_graph(), [0, 10], 0.9, 1.0),
    "fat-tree pair": (rp.topology.fat_tree(4), [0, 15], 0.99, 0.95),
    "three of a random graph": (nx.gnm_random_graph(12, 24, seed=3), [0, 5, 9], 0.95, 0.9),
}
OWN = ("splitting", "recursive", "zero_variance")
RUNS = pace(60, 120)
LEAST, MOST = binom.ppf([1e-4, 1 - 1e-4], RUNS, 0.95)


def runs(name, method, samples):
    problem = read_problem(*NETWORKS[name])
    return [
        estimate_problem(problem, method, np.random.default_rng(seed), samples=samples)
        for seed in range(RUNS)
    ]


def exact(name):
    return rp.reliability.evaluate(*NETWORKS[name], method="exact").unreliability


@pytest.mark.parametrize(("method", "samples"), [("splitting", 64), ("zero_variance", 256)])
def test_intervals_hold_as_often_as_they_say(method, samples):
    """A band that an estimator of coverage 0.95 leaves once in 5,000 tests."""
    truth, found = (
        exact("three of a random graph"),
        runs("three of a random graph", method, samples),
    )
    assert LEAST <= sum(x.lower <= truth <= x.upper for x in found) <= MOST
    assert max(x.bias_bound for x in found) == 0


@pytest.mark.parametrize("name", ["fat-tree pair", "three of a random graph"])
def test_recursive_intervals_hold_at_least_as_often(name):
    """Samples are nearly equal: the bound on values never drawn is most of the width."""
    truth, found = exact(name), runs(name, "recursive", 16)
    assert sum(x.lower <= truth <= x.upper for x in found) >= LEAST
    assert all(x.bias_bound > 0.5 * (x.upper - x.lower) / 2 for x in found)


@pytest.mark.parametrize("method", OWN)
@pytest.mark.parametrize("name", NETWORKS)
def test_means_agree_with_the_exact_programme(name, method):
    problem = read_problem(*NETWORKS[name])
    found = estimate_problem(problem, method, np.random.default_rng(11), samples=2000)
    error = (found.value - exact(name)) / (found.upper - found.lower)
    assert abs(error) < 1  # half a width is 1.96 standard errors
    assert found.relative_error < 0.3


@pytest.mark.parametrize("method", ["recursive", "zero_variance"])
def test_rare_failures_do_not_cost_accuracy(method):
    problem = read_problem(nx.petersen_graph(), "all", 1.0, 1.0, 1e-6)
    truth = rp.reliability.evaluate(nx.petersen_graph(), link_down=1e-6).unreliability
    found = estimate_problem(problem, method, np.random.default_rng(2), samples=1000)
    assert truth < 2e-17
    assert found.lower <= truth <= found.upper
    assert found.relative_error < 0.1


@pytest.mark.parametrize("method", OWN)
def test_what_is_too_much_work_is_refused(method):
    large = read_problem(rp.topology.torus((8, 8, 8)), "all", 1.0, 1.0, 1e-3)
    with pytest.raises(ValueError, match=f"max_work must be .* or more for method='{method}'"):
        estimate_problem(large, method, np.random.default_rng(7))


@pytest.mark.parametrize("method", OWN)
@pytest.mark.parametrize("up", [0.0, 5e-324, 1e-17])
def test_parts_that_are_nearly_never_up(method, up):
    # two routes, of which one is as good as lost: 1 - up has no digits of up left
    links = {(0, 1): 0.9, (1, 2): 0.9, (2, 3): up, (3, 0): 0.9}
    problem = read_problem(nx.cycle_graph(4), (0, 2), links, 1.0)
    found = estimate_problem(problem, method, np.random.default_rng(5), 1e-2, 0.9999, 2000)
    assert found.lower * (1 - 1e-12) <= 0.19 <= found.upper * (1 + 1e-12)


def test_the_table_ranks_methods():
    table = s13.estimator_table(
        nx.petersen_graph(),
        "all",
        0.99,
        rng=np.random.default_rng(10),
        methods=("crude", "recursive"),
        samples=500,
    ).set_index("method")
    assert table.work_variance["recursive"] < table.work_variance["crude"]
    assert set(table.index) < set(SAMPLED)
