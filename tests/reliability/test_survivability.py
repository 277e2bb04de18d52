"""Share of servers within reach: the mean over all pairs of small fabrics, pair by pair."""

from itertools import combinations
from time import process_time

import networkx as nx
import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

import relparallel as rp
from chapters.s13.isolation import mean_time_to_isolation, smallest_cuts
from relparallel.reliability import accessible_servers, evaluate
from relparallel.topology import bcube, dcell, describe, fat_tree, leaf_spine, orbits


def mean_over_pairs(fabric, server, switch, cable):
    """By the frontier DP, any path, from one server of every orbit to all others."""
    nodes, n = np.where(fabric.endpoint, server, switch), fabric.num_hosts
    _, first, count = np.unique(orbits(fabric)[:n], return_index=True, return_counts=True)
    apart = [
        [
            evaluate(fabric, (start, end), cable, nodes).unreliability
            for end in range(n)
            if end != start
        ]
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


def test_a_fat_tree_is_the_mean_over_its_pairs(by_climbing):
    server, switch, cable = 0.97, 0.9, 0.95
    fabric = fat_tree(4)
    nodes = np.where(fabric.endpoint, server, switch)
    pairs = [by_climbing(fabric, (0, other), cable, nodes).unreliability for other in range(1, 16)]
    closed = accessible_servers(describe("fat_tree", k=4), server, switch, cable)
    assert closed.unreliability == pytest.approx(np.mean(pairs), rel=1e-12)


def test_a_bcube_agrees_with_a_simulation():
    """States are drawn, down parts taken out, and servers counted in what is left together."""
    fabric, rng, runs = bcube(8, 1), np.random.default_rng(5), 400
    server, switch, cable, n = 0.95, 0.8, 0.9, bcube(8, 1).num_hosts
    shares = []
    for _ in range(runs):
        alive = rng.random(fabric.num_nodes) < np.where(fabric.endpoint, server, switch)
        kept = (rng.random(len(fabric.edges)) < cable) & alive[fabric.edges].all(axis=1)
        ends = fabric.edges[kept].T
        size = fabric.num_nodes
        label = connected_components(csr_array((np.ones(len(ends[0])), ends), shape=(size, size)))[
            1
        ]
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


@pytest.mark.parametrize(
    "form", [describe("dcell", n=3, k=2), describe("torus", dims=(4, 4)), None]
)
def test_designs_without_classes_are_refused_by_name(form):
    with pytest.raises((TypeError, ValueError), match="form must"):
        accessible_servers(form)


SMALL = [
    ("fat_tree", {"k": 4}),
    ("leaf_spine", {"leaves": 3, "spines": 2, "hosts_per_leaf": 2}),
    ("bcube", {"n": 3, "k": 0}),
    ("bcube", {"n": 3, "k": 1}),
    ("bcube", {"n": 4, "k": 1}),
    ("dcell", {"n": 3, "k": 0}),
    ("dcell", {"n": 3, "k": 1}),
    ("dcell", {"n": 4, "k": 1}),
]


@pytest.mark.parametrize("parts", ["links", "switches"])
@pytest.mark.parametrize(("design", "sizes"), SMALL, ids=repr)
def test_smallest_cuts_by_enumeration(design, sizes, parts):
    fabric = getattr(rp.topology, design)(**sizes)
    graph, hosts = fabric.to_networkx(), {fabric.labels[v] for v in fabric.hosts}
    loses = nx.Graph.remove_edges_from if parts == "links" else nx.Graph.remove_nodes_from
    items = [*graph.edges] if parts == "links" else [fabric.labels[v] for v in fabric.switches]

    def cuts(count):
        found = 0
        for lost in combinations(items, count):
            rest = graph.copy()
            loses(rest, lost)
            found += not hosts <= nx.node_connected_component(rest, min(hosts))
        return found

    size, number = smallest_cuts(describe(design, **sizes), parts)
    assert [cuts(count) for count in range(1, size + 1)] == [0] * (size - 1) + [number]


@pytest.fixture(scope="module")
def exact_lives():
    """Mean of a BCube's exact survival function; parts live an exponential time with mean one."""
    fabric, times = rp.topology.bcube(4, 1), np.linspace(0.0, 3.0, 121)
    up = np.exp(-times)
    links = [evaluate(fabric, "all", p).reliability for p in up]
    switches = [
        evaluate(fabric, "all", 1.0, np.where(fabric.endpoint, 1.0, p)).reliability for p in up
    ]
    return {"links": np.trapezoid(links, times), "switches": np.trapezoid(switches, times)}


def test_life_of_links_nears_the_exact_one(exact_lives):
    """No two of the smallest cuts share a cable."""
    near = mean_time_to_isolation(1.0, *smallest_cuts(describe("bcube", n=4, k=1), "links"))
    assert near == pytest.approx(exact_lives["links"], rel=0.12)


def test_cuts_that_share_switches_come_later(exact_lives):
    """The first row and the first column are both down after 1/4 + 1/4 - 1/8."""
    near = mean_time_to_isolation(1.0, *smallest_cuts(describe("bcube", n=4, k=1), "switches"))
    assert near < 0.7 * exact_lives["switches"]
    assert exact_lives["switches"] == pytest.approx(3 / 8, rel=0.03)


def test_life_scales_as_its_parts_do():
    assert mean_time_to_isolation(3.0, 1, 6) == pytest.approx(0.5)
    assert mean_time_to_isolation(1.0, 2, 4) == pytest.approx(np.sqrt(np.pi) / 4)


@pytest.mark.parametrize(
    "form", [describe("bcube", n=2, k=1), describe("dcell", n=3, k=2), describe("fat_tree", k=2)]
)
def test_designs_without_a_form_are_refused_by_name(form):
    with pytest.raises(ValueError, match="form must"):
        smallest_cuts(form, "links")
