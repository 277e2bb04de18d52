"""Circles of buffers, spreading pauses and colliding flows, against other ways to find them."""

from itertools import combinations, pairwise, product

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from chapters.s24.link_sharing import (
    buffer_cycle,
    expected_max_load,
    pause_spread,
    place_flows,
)
from relparallel.metrics import ecmp_load
from relparallel.topology import dragonfly, fat_tree, leaf_spine, paths, torus


def down(topology, links):
    """State in which these joined pairs are dead."""
    alive = np.ones(topology.num_nodes + len(topology.edges), dtype=bool)
    rows = {tuple(pair): i for i, pair in enumerate(topology.edges.tolist())}
    alive[[topology.num_nodes + rows[pair] for pair in links]] = False
    return alive


def waits(topology, alive):
    """Which directed link waits for which, by listing all shortest paths."""
    graph = nx.Graph(topology.edges[alive[topology.num_nodes :]].tolist())
    found = nx.DiGraph()
    for s, t in product(topology.hosts.tolist(), repeat=2):
        if s != t and s in graph and t in graph and nx.has_path(graph, s, t):
            for walk in nx.all_shortest_paths(graph, s, t):
                if topology.transit[walk[1:-1]].all():
                    arcs = list(pairwise(walk))
                    nx.add_path(found, arcs)
    return found


@pytest.mark.parametrize(
    "topology",
    [torus((5, 5)), torus((4, 4)), torus((6,)), dragonfly(2, 4, 2), torus((4, 3), wrap=False)],
)
def test_direct_networks_can_wait_in_a_circle_that_shortest_paths_use(topology):
    circle = buffer_cycle(topology)
    graph = waits(topology, np.ones(topology.num_nodes + len(topology.edges), bool))
    assert len(circle) >= 3
    for before, after in zip(circle, circle[1:] + circle[:1], strict=False):
        assert before[1] == after[0]
        assert graph.has_edge(before, after)


@pytest.mark.parametrize("topology", [fat_tree(4), fat_tree(6), leaf_spine(4, 2, 4), torus((3,))])
def test_trees_cannot(topology):
    assert buffer_cycle(topology) == ()


@given(data=st.data(), topology=st.sampled_from([fat_tree(4), leaf_spine(4, 2, 2)]))
@settings(max_examples=40, deadline=None)
def test_failures_close_a_circle_exactly_where_detours_do_and_never_under_up_down_routing(
    data, topology
):
    inner = [tuple(e) for e in topology.edges.tolist() if (topology.tier[e] > 0).all()]
    alive = down(topology, data.draw(st.lists(st.sampled_from(inner), max_size=6, unique=True)))
    graph = waits(topology, alive)
    assert bool(buffer_cycle(topology, alive=alive)) == (not nx.is_directed_acyclic_graph(graph))
    assert buffer_cycle(topology, "updown", alive) == ()


def test_up_down_routing_needs_tiers():
    with pytest.raises(
        ValueError, match="routing must be 'ecmp' where links join nodes of one tier"
    ):
        buffer_cycle(torus((4, 4)), "updown")


@pytest.mark.parametrize("topology", [fat_tree(4), leaf_spine(4, 2, 2), torus((4, 4))])
def test_pauses_reach_the_pairs_whose_paths_cross_a_paused_link(topology):
    found = pause_spread(topology, 0)
    hosts = [h for h in topology.hosts.tolist() if h != 0]
    distance = nx.single_source_shortest_path_length(nx.Graph(topology.edges.tolist()), 0)
    paused = {arc for h in hosts for walk in paths(topology, h, 0) for arc in pairwise(walk)}
    for k, share in enumerate(found):
        reached = {arc for arc in paused if distance[arc[0]] <= k}
        pairs = [(s, t) for s, t in product(hosts, repeat=2) if s != t]
        hit = [any(a in reached for w in paths(topology, *p) for a in pairwise(w)) for p in pairs]
        assert share == pytest.approx(np.mean(hit))
    assert found[-1] == 1 or topology.meta.name == "torus"


@pytest.mark.parametrize(("flows", "links"), [(0, 3), (1, 1), (4, 2), (5, 3), (6, 4)])
def test_the_mean_of_the_busiest_link_is_that_over_all_hashes(flows, links):
    loads = [np.bincount(way, minlength=links).max() for way in product(range(links), repeat=flows)]
    assert expected_max_load(flows, links) == pytest.approx(np.mean(loads), rel=1e-12)


@given(st.randoms(use_true_random=False))
@settings(max_examples=15, deadline=None)
def test_no_placement_beats_the_best_and_a_fat_tree_has_one_without_collisions(random):
    fabric, order = fat_tree(4), list(range(16))
    random.shuffle(order)
    flows = list(zip(order, order[1:] + order[:1], strict=False))
    best, fit = (place_flows(fabric, flows, name) for name in ("best", "first_fit"))
    hashed = place_flows(fabric, flows, "ecmp", np.random.default_rng(random.randrange(1000)))
    assert best.load == 1  # a fat-tree is rearrangeably non-blocking
    assert best.load <= fit.load
    assert best.load <= hashed.load
    for found in (best, fit, hashed):
        arcs = [arc for walk in found.paths for arc in pairwise(walk)]
        assert max(arcs.count(arc) for arc in set(arcs)) == found.load
        assert [(walk[0], walk[-1]) for walk in found.paths] == flows


def test_the_hashed_load_of_all_pairs_is_ecmp_on_average():
    """Mean over hashes of flows on a link is what the exact load of all-to-all traffic says."""
    fabric = leaf_spine(leaves=3, spines=2, hosts_per_leaf=2)
    pairs = [(s, t) for s, t in product(range(6), repeat=2) if s != t]
    rng, rows = np.random.default_rng(1), {tuple(e): i for i, e in enumerate(fabric.edges.tolist())}
    total = np.zeros((len(fabric.edges), 2))
    for _ in range(200):
        for walk in place_flows(fabric, pairs, "ecmp", rng).paths:
            for u, v in pairwise(walk):
                total[rows[min(u, v), max(u, v)], int(u > v)] += 1
    assert total / 200 == pytest.approx(ecmp_load(fabric).flow, rel=0.08)


def test_a_trunk_carries_a_flow_on_each_of_its_cables():
    trunk = nx.MultiGraph([("a", "b"), ("a", "b"), ("b", "c"), ("b", "c")])
    assert place_flows(trunk, [("a", "c")] * 3).load == 1.5
    with pytest.raises(ValueError, match="must be joined by paths"):
        place_flows(nx.Graph([(0, 1), (2, 3)]), [(0, 1), (0, 3)])


@pytest.mark.slow
def test_one_link_of_each_kind_gives_the_share_of_all_pairs_that_close_a_cycle():
    """Links between switches of a fat-tree are of two kinds, interchangeable within each."""
    tree = fat_tree(4)
    inner = np.flatnonzero((tree.tier[tree.edges] > 0).all(axis=1))
    lowest = (tree.tier[tree.edges[inner]] == 1).any(axis=1)

    def closes(*failed):
        state = np.ones(tree.num_nodes + len(tree.edges), dtype=bool)
        state[tree.num_nodes + np.array(failed)] = False
        return bool(buffer_cycle(tree, "ecmp", state))

    every = sum(closes(*pair) for pair in combinations(inner, 2))
    assert every == 56
    shares = [
        np.mean([closes(first, other) for other in inner if other != first])
        for first in (inner[lowest][0], inner[~lowest][0])
    ]
    weights = [lowest.sum(), (~lowest).sum()]
    assert np.average(shares, weights=weights) == pytest.approx(every / 496)
