"""Share of servers within reach: the mean over all pairs of small fabrics, pair by pair."""

from time import process_time

import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from relparallel.reliability import accessible_servers, evaluate, job_connected
from relparallel.topology import bcube, dcell, describe, leaf_spine, orbits


def mean_over_pairs(fabric, server, switch, cable):
    """By the frontier DP, any path, from one server of every orbit to all others."""
    nodes, n = np.where(fabric.endpoint, server, switch), fabric.num_hosts
    _, first, count = np.unique(orbits(fabric)[:n], return_index=True, return_counts=True)
    apart = [
        [evaluate(fabric, (start, end), cable, nodes).unreliability for end in range(n) if end != start]
        for start in first.tolist()
    ]
    return count @ np.mean(apart, axis=1) / n


@pytest.mark.parametrize("ups", [(0.9, 0.8, 0.85), (0.999, 0.99, 0.9999)])
@pytest.mark.parametrize(
    ("form", "fabric"),
    [
        (describe("bcube", n=3, k=1), bcube(3, 1)),
        (describe("bcube", n=2, k=2), bcube(2, 2)),
        (describe("dcell", n=2, k=1), dcell(2, 1)),
        (describe("dcell", n=3, k=1), dcell(3, 1)),
        (describe("leaf_spine", leaves=2, spines=3, hosts_per_leaf=2), leaf_spine(2, 3, 2)),
        (describe("leaf_spine", leaves=1, spines=1, hosts_per_leaf=3), leaf_spine(1, 1, 3)),
    ],
    ids=repr,
)
def test_ratio_is_the_mean_over_all_pairs(form, fabric, ups):
    closed = accessible_servers(form, *ups)
    assert closed.unreliability == pytest.approx(mean_over_pairs(fabric, *ups), rel=1e-11)
    assert closed.reliability + closed.unreliability == pytest.approx(1.0, abs=1e-14)


def test_a_fat_tree_is_the_mean_over_the_pairs_of_its_jobs():
    server, switch, cable = 0.97, 0.9, 0.95
    ups = (switch, switch, switch, cable, cable, server * cable)
    jobs = [job_connected(4, (0, other), *ups, routing="updown").unreliability for other in range(1, 16)]
    closed = accessible_servers(describe("fat_tree", k=4), server, switch, cable)
    assert closed.unreliability == pytest.approx(np.mean(jobs), rel=1e-12)
    assert closed.routing == "updown"


def test_a_bcube_agrees_with_a_simulation():
    """States are drawn, parts that are down taken out, and servers counted in what is left together."""
    fabric, rng, runs = bcube(8, 1), np.random.default_rng(5), 400
    server, switch, cable, n = 0.95, 0.8, 0.9, bcube(8, 1).num_hosts
    shares = []
    for _ in range(runs):
        alive = rng.random(fabric.num_nodes) < np.where(fabric.endpoint, server, switch)
        kept = (rng.random(len(fabric.edges)) < cable) & alive[fabric.edges].all(axis=1)
        ends = fabric.edges[kept].T
        size = fabric.num_nodes
        label = connected_components(csr_array((np.ones(len(ends[0])), ends), shape=(size, size)))[1]
        together = np.bincount(label[fabric.hosts][alive[fabric.hosts]])
        shares.append((together * (together - 1)).sum() / (n * (n - 1)))
    found = accessible_servers(describe("bcube", n=8, k=1), server, switch, cable).reliability
    assert abs(np.mean(shares) - found) < 4 * np.std(shares) / np.sqrt(runs)


def test_wide_networks_are_bracketed():
    found = accessible_servers(describe("bcube", n=4, k=2), 0.999, 0.99, 0.9999)
    assert found.method == "bounds"
    assert 0 < found.lower <= found.unreliability <= found.upper < 1.1 * found.lower


def test_any_size_takes_no_time():
    start = process_time()
    ratio = accessible_servers(describe("fat_tree", k=256), 0.999, 0.9999, 0.9999)
    assert process_time() - start < 0.5
    assert ratio.unreliability == pytest.approx(2 * 0.001 + 2 * 1e-4 + 2 * 1e-4, rel=0.01)


@pytest.mark.parametrize("form", [describe("dcell", n=3, k=2), describe("torus", dims=(4, 4)), None])
def test_designs_without_classes_are_refused_by_name(form):
    with pytest.raises((TypeError, ValueError), match="form must"):
        accessible_servers(form)
