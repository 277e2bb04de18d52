"""Closed forms by their wiring: each agrees with the frontier DP, and what has none says why."""

import numpy as np
import pytest

from relparallel.reliability import evaluate, fat_tree_pods_connected
from relparallel.topology import bcube, fat_tree, leaf_spine, three_tier, torus

TERMINALS = ["all", (0, 1), (0, 3), (0, 15), (0, 3, 7), (5,)]


def alike(network, seed, perfect_cables=(), perfect_tiers=()):
    """One random chance for each tier of switches and of cables, and one for each host."""
    rng = np.random.default_rng(seed)
    node = np.where(network.endpoint, rng.uniform(0.6, 0.99, network.num_nodes), 0.0)
    by_tier, by_cable = rng.uniform(0.6, 0.99, 4), rng.uniform(0.6, 0.99, 4)
    by_tier[list(perfect_tiers)], by_cable[list(perfect_cables)] = 1.0, 1.0
    node = np.where(network.endpoint, node, by_tier[network.tier])
    return by_cable[network.tier[network.edges].max(axis=1)], node


def assert_agree(network, terminals, link, node):
    closed = evaluate(network, terminals, link, node, method="closed_form")
    exact = evaluate(network, terminals, link, node, method="exact")
    assert (closed.method, closed.reason != "") == ("closed_form", True)
    assert closed.unreliability == pytest.approx(exact.unreliability, rel=1e-12)
    assert closed.reliability == pytest.approx(exact.reliability, rel=1e-12)
    assert evaluate(network, terminals, link, node).method == "closed_form"


@pytest.mark.parametrize("terminals", TERMINALS)
@pytest.mark.parametrize(
    ("cables", "tiers"),
    [((2,), (1,)), ((2, 3), (1,)), ((2,), (1, 2)), ((2, 3), (1, 2, 3))],
    ids=["cables to cores fail", "switches fail", "cores and their cables fail", "hosts fail"],
)
def test_fat_trees(terminals, cables, tiers):
    assert_agree(fat_tree(4), terminals, *alike(fat_tree(4), 1, cables, tiers))


@pytest.mark.parametrize("terminals", ["all", (0, 1), (0, 9), (0, 3, 7), (2,)])
def test_leaf_spines(terminals):
    network = leaf_spine(5, 4, 2)
    assert_agree(network, terminals, *alike(network, 3))


def test_three_tiers_with_two_aggregation_switches_per_pod():
    network = three_tier(3, 3, 3, 2)
    assert_agree(network, "all", *alike(network, 4, perfect_cables=(2, 3)))
    link, node = alike(network, 4, perfect_cables=(2,))
    with pytest.raises(ValueError, match="pods must have one aggregation switch per plane"):
        evaluate(network, "all", link, node, method="closed_form")


def test_tiny_failures_keep_their_digits():
    network = leaf_spine(64, 32, 1)
    down = np.where(network.tier == 2, 1e-3, 0.0)
    cables = np.where(network.tier[network.edges].max(axis=1) == 2, 1e-3, 0.0)
    found = evaluate(network, "all", node_down=down, link_down=cables)
    assert (found.method, f"{found.unreliability:.3e}") == ("closed_form", "2.705e-85")
    assert "components among 64 leaves and 32 spines" in found.reason


def test_large_fat_trees_agree_with_the_forms_by_name():
    network = fat_tree(16)
    link = np.where(network.tier[network.edges].max(axis=1) == 3, 0.999, 1.0)
    node = np.where(network.tier >= 2, 0.999, 1.0)
    found = evaluate(network, "all", link, node)
    assert found.method == "closed_form"
    named = fat_tree_pods_connected(16, 0.999, 0.999, 0.999)
    assert found.unreliability == pytest.approx(named.unreliability, rel=1e-12)


@pytest.mark.parametrize(
    ("network", "arguments", "words"),
    [
        (torus((3, 3)), {"link_up": 0.9}, "no fabric of tiers"),
        (bcube(3, 1), {"terminals": (0, 4), "link_up": 0.9}, "no fabric of tiers"),
        (fat_tree(4), {"link_up": 0.9}, "edge and aggregation switches"),
        (fat_tree(4), {"link_up": 0.9, "groups": [((0,), 0.1)]}, "must not be combined"),
    ],
)
def test_what_has_no_form_says_why(network, arguments, words):
    with pytest.raises(ValueError, match=words):
        evaluate(network, method="closed_form", **arguments)
