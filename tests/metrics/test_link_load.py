import dataclasses
from itertools import pairwise

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from chapters.s23.throughput import aggregate_bottleneck_throughput
from relparallel.metrics import ecmp_load
from relparallel.topology import (
    Design,
    Topology,
    as_topology,
    bcube,
    dcell,
    fat_tree,
    leaf_spine,
    torus,
)
from small_networks import random_graphs, small_networks

graphs = random_graphs(2, 9, 0.2, 1.0)


@st.composite
def networks(draw):
    """Small graphs with silent nodes, switches and parallel cables of two speeds."""
    graph = draw(graphs)
    for v in graph:
        graph.nodes[v]["transit"] = draw(st.booleans())
        graph.nodes[v]["endpoint"] = v < 2 or draw(st.booleans())
    for u, v in graph.edges:
        graph.edges[u, v]["multiplicity"] = draw(st.integers(1, 3))
        graph.edges[u, v]["capacity"] = draw(st.sampled_from([1e9, 2e9]))
    return as_topology(graph)


def listed(t, split):
    """Load by listing all shortest paths, parallel cables as paths of their own: the definition."""
    graph = nx.Graph([(int(u), int(v)) for u, v in t.edges])
    graph.add_nodes_from(range(t.num_nodes))
    cables = {frozenset(map(int, e)): int(c) for e, c in zip(t.edges, t.multiplicity, strict=True)}
    flow, pairs = {}, 0
    for s in map(int, t.hosts):
        for d in map(int, t.hosts):
            inside = graph.subgraph([v for v in graph if v in (s, d) or t.transit[v]])
            if s == d or not nx.has_path(inside, s, d):
                continue
            pairs += 1
            paths = list(nx.all_shortest_paths(inside, s, d))
            weights = np.array([float(chance(p, paths, cables, split)) for p in paths])
            for path, weight in zip(paths, weights / weights.sum(), strict=True):
                for arc in pairwise(path):
                    flow[arc] = flow.get(arc, 0.0) + weight
    return np.array(
        [[flow.get((u, v), 0.0), flow.get((v, u), 0.0)] for u, v in t.edges.tolist()]
    ), pairs


def chance(path, paths, cables, split):
    """Weight of one path: its parallel copies, or the product of the chances at its nodes."""
    found = 1.0
    for i, (u, v) in enumerate(pairwise(path)):
        nexts = {other[i + 1] for other in paths if other[i] == u}
        total = 1 if split == "paths" else sum(cables[frozenset((u, w))] for w in nexts)
        found *= cables[frozenset((u, v))] / total
    return found


@settings(max_examples=60)
@given(networks(), st.sampled_from(["paths", "hops"]))
def test_the_load_is_that_of_all_shortest_paths_listed(t, split):
    found = ecmp_load(t, split=split)
    flow, pairs = listed(t, split)
    assert np.allclose(found.flow, flow.reshape(-1, 2), rtol=1e-12, atol=1e-12)
    assert found.pairs == pairs
    assert found.unreachable == t.num_hosts * (t.num_hosts - 1) - pairs
    unit = min(
        (c for e, c in zip(t.edges, t.capacity, strict=True) if t.endpoint[e].any()), default=1.0
    )
    assert np.allclose(found.capacity, t.multiplicity * t.capacity / unit)


@given(graphs)
def test_without_roles_the_load_is_edge_betweenness(graph):
    found, wanted = ecmp_load(graph), nx.edge_betweenness_centrality(graph, normalized=False)
    edges = as_topology(graph).edges.tolist()
    assert np.allclose(found.flow.sum(axis=1), [2 * wanted[u, v] for u, v in edges])


@settings(max_examples=12)
@given(st.integers(2, 6), st.integers(0, 2))
def test_the_throughput_of_bcube_is_the_theorem(n, k):
    """n(N-1)/(n-1): every cable carries the same."""
    hosts = n ** (k + 1)
    found = aggregate_bottleneck_throughput(bcube(n, k))
    assert float(found) == pytest.approx(n * (hosts - 1) / (n - 1), rel=1e-11)
    assert found.exact


@settings(max_examples=12)
@given(st.integers(2, 6).map(lambda half: 2 * half))
def test_every_host_of_a_fat_tree_gets_its_link(k):
    assert float(aggregate_bottleneck_throughput(fat_tree(k))) == pytest.approx(k**3 / 4, rel=1e-11)


@settings(max_examples=20)
@given(st.integers(2, 5), st.integers(1, 4), st.integers(1, 6))
def test_leaf_spine_is_limited_by_the_uplinks_or_the_hosts(leaves, spines, h):
    hosts = leaves * h
    busiest = max(hosts - 1, h * (hosts - h) / spines)
    found = float(aggregate_bottleneck_throughput(leaf_spine(leaves, spines, h)))
    assert found == pytest.approx(hosts * (hosts - 1) / busiest, rel=1e-11)


@settings(max_examples=12)
@given(st.lists(st.sampled_from([2, 4, 6]), min_size=1, max_size=3))
def test_a_torus_of_even_lengths_is_limited_by_its_longest(dims):
    """A ring of k > 2 carries k/8 all-to-all over each cable of a node; two nodes one cable k/4."""
    hosts = int(np.prod(dims))
    busiest = max(hosts * (k / 8 if k > 2 else 1 / 2) for k in dims)
    found = float(aggregate_bottleneck_throughput(torus(tuple(dims))))
    assert found == pytest.approx(hosts * (hosts - 1) / busiest, rel=1e-11)


@pytest.mark.parametrize("t", small_networks(130), ids=repr)
@pytest.mark.parametrize("split", ["paths", "hops"])
def test_proved_orbits_change_nothing(t, split):
    unknown = dataclasses.replace(t, meta=Design(name="own"))
    found, wanted = ecmp_load(t, split=split), ecmp_load(unknown, split=split)
    assert np.allclose(found.flow, wanted.flow, rtol=1e-12)
    assert found.pairs == wanted.pairs


def test_a_false_name_is_not_believed():
    """A fat-tree that lost a cable has no right to the orbits of one."""
    t = fat_tree(4)
    cut = Topology.of(
        edges=t.edges[:-1],
        node_kind=dict(zip(t.kinds, np.bincount(t.node_kind).tolist(), strict=True)),
        transit=t.transit,
        meta=t.meta,
    )
    alive = np.ones(t.num_nodes + len(t.edges), dtype=bool)
    alive[-1] = False
    assert ecmp_load(cut).maximum == ecmp_load(t, alive).maximum > ecmp_load(t).maximum


def test_the_two_splits_differ_where_paths_branch_unevenly():
    found = [
        float(aggregate_bottleneck_throughput(dcell(4, 2), split=s)) / 420
        for s in ("paths", "hops")
    ]
    assert found == pytest.approx([0.410447, 0.408269], abs=1e-6)


def test_a_failed_switch_parts_its_hosts():
    t = leaf_spine(leaves=3, spines=2, hosts_per_leaf=2)
    alive = np.ones(t.num_nodes + len(t.edges), dtype=bool)
    alive[6] = False
    found = ecmp_load(t, alive)
    assert (found.pairs, found.unreachable) == (12, 18)
    assert "18 pairs unreachable" in aggregate_bottleneck_throughput(t, alive).method
    assert found.capacity[(t.edges == 6).any(axis=1)].max() == 0
    assert "18 pairs unreachable" in found._repr_html_()
    alive[:6] = False
    assert float(aggregate_bottleneck_throughput(t, alive)) == 0.0


def test_the_table_starts_with_the_busiest_cable():
    found = ecmp_load(nx.path_graph(4))
    table = found.to_frame()
    assert table["load"].iloc[0] == found.maximum == 4.0
    assert table["flow"].sum() == found.flow.sum()


def test_a_large_fat_tree_takes_one_search():
    assert float(aggregate_bottleneck_throughput(fat_tree(48))) == 27648


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ((nx.empty_graph(1),), "topology must have at least two hosts"),
        ((nx.path_graph(3), np.ones(3, dtype=bool)), r"alive must be booleans of shape \[5\]"),
        ((nx.path_graph(3), np.ones(5)), "alive must be booleans"),
    ],
)
def test_bad_arguments_are_named(arguments, error):
    with pytest.raises((TypeError, ValueError), match=error):
        ecmp_load(*arguments)
