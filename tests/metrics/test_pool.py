import dataclasses

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from relparallel.metrics import _pool, concurrent_flow
from relparallel.metrics._approximate import bracket
from relparallel.metrics._demand import longest_matching, permutation
from relparallel.metrics._network import switch_level
from relparallel.metrics._pool import pool, split
from relparallel.topology import as_topology, dragonfly, slim_fly


def walked(problem, paths):
    """Nodes of every path of a pool, from root to target, by pair."""
    net, found = problem.net, {}
    for p, pair in enumerate(paths.pair.tolist()):
        arcs = paths.arcs[paths.start[p] : paths.start[p + 1]][::-1]
        assert (net.head[arcs[:-1]] == net.tail[arcs[1:]]).all() or arcs.size == 1
        found.setdefault(pair, []).append((int(net.tail[arcs[0]]), *net.head[arcs].tolist()))
    return found


@settings(max_examples=20)
@given(st.integers(0, 10**6), st.integers(0, 7))
def test_the_pool_holds_the_paths_with_the_fewest_hops(seed, silent):
    graph = nx.compose(nx.gnp_random_graph(8, 0.3, seed=seed), nx.cycle_graph(8))
    transit = [v != silent for v in range(8)]
    nx.set_node_attributes(graph, dict(enumerate(transit)), "transit")
    t = as_topology(graph)
    net = switch_level(t)
    problem = permutation(net, t.hosts, np.random.default_rng(seed))
    ends = list(zip(*np.nonzero(problem.demand), strict=True))
    every = [
        [
            p
            for p in nx.all_simple_paths(graph, int(problem.roots[r]), int(v))
            if all(transit[u] for u in p[1:-1])
        ]
        for r, v in ends
    ]
    found = walked(problem, pool(problem))
    for pair, wanted in enumerate(every):
        fewest = min(map(len, wanted))
        near = {tuple(path) for path in wanted if len(path) < fewest + 4}
        assert len(found[pair]) == len(set(found[pair]))
        assert set(found[pair]) == near


def test_a_full_pool_keeps_paths_over_every_last_hop(monkeypatch):
    monkeypatch.setattr(_pool, "WANTED", (1, 1))
    monkeypatch.setattr(_pool, "MOST", (6, 6))
    t = as_topology(nx.complete_multipartite_graph(6, 6))
    problem = longest_matching(t, switch_level(t))
    for paths in walked(problem, pool(problem)).values():
        assert len(paths) == len({path[-2] for path in paths}) == 6


def test_a_pool_that_does_not_fit_is_left(monkeypatch):
    t = as_topology(nx.random_regular_graph(4, 14, seed=1))
    problem = longest_matching(t, switch_level(t))
    monkeypatch.setattr(_pool, "WANTED", (8, 8))
    assert pool(problem).arcs.size > 400
    for entries in (100, 400):  # too few for any, or for all
        monkeypatch.setattr(_pool, "ENTRIES", entries)
        assert pool(problem) is None
        without = bracket(problem, 0.01)
        assert without[1] <= 1.0100001 * without[0]


def test_traffic_splits_by_the_cost_of_the_paths():
    t = as_topology(nx.cycle_graph(4))
    problem = longest_matching(t, switch_level(t))
    paths = pool(problem)
    price, load = np.random.default_rng(0).random(8), np.zeros(8)
    travelled = split(paths.pair, paths.start, paths.arcs, paths.demand, price, 0.5, load)
    cost = np.add.reduceat(price[paths.arcs], paths.start[:-1])
    wanted, cheapest = np.zeros(8), 0.0
    for pair, sent in enumerate(paths.demand):
        own = np.flatnonzero(paths.pair == pair)
        share = sent * np.exp(-cost[own] / 0.5) / np.exp(-cost[own] / 0.5).sum()
        cheapest += sent * cost[own].min()
        for path, part in zip(own, share, strict=True):
            wanted[paths.arcs[paths.start[path] : paths.start[path + 1]]] += part
    assert load == pytest.approx(wanted)
    assert travelled == pytest.approx(cheapest)


def test_a_pool_grows_by_the_cheapest_paths(monkeypatch):
    monkeypatch.setattr(_pool, "WANTED", (1, 1))
    t = as_topology(nx.random_regular_graph(3, 20, seed=4))
    problem = longest_matching(t, switch_level(t))
    net, before = problem.net, pool(problem)
    length = np.random.default_rng(1).random(net.head.size)
    after = before.grown(problem, length)
    graph = nx.DiGraph()
    graph.add_weighted_edges_from(zip(net.tail.tolist(), net.head.tolist(), length.tolist(), strict=True))
    new = dataclasses.replace(
        after, pair=after.pair[before.pair.size :], start=after.start[before.pair.size :], demand=after.demand
    )
    for paths in walked(problem, new).values():
        cost = nx.path_weight(graph, paths[0], "weight")
        assert cost == pytest.approx(nx.dijkstra_path_length(graph, paths[0][0], paths[0][-1]))
    assert np.unique(new.pair).size == new.pair.size == before.demand.size
    monkeypatch.setattr(_pool, "ENTRIES", 10)
    few = before.grown(problem, length)
    assert few.arcs.size - before.arcs.size <= 10
    assert few.start[-1] == few.arcs.size
    assert few.pair.size == few.start.size - 1 < after.pair.size


@pytest.mark.parametrize("traffic", ["permutation", "longest_matching"])
@pytest.mark.parametrize("t", [slim_fly(13, 10), dragonfly(3, 6, 3)], ids=repr)
def test_pairs_of_hundreds_of_switches_are_a_percent_apart(t, traffic):
    found = concurrent_flow(t, traffic, rng=np.random.default_rng(1))
    assert not found.exact
    assert found.upper <= 1.01 * found.lower
