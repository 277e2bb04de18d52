import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from relparallel.metrics import survival
from relparallel.metrics.resilience import Survival
from relparallel.topology import (
    Topology,
    bcube,
    fat_tree,
    leaf_spine,
)
from small_networks import random_graphs

graphs = random_graphs(2, 10, 0.1, 0.7)
marks = st.lists(st.booleans(), min_size=10, max_size=10)


def oracle(t, alive):
    """Share of host pairs with a path, and of hosts around one part of forwarding nodes."""
    nodes, pairs = alive[: t.num_nodes], alive[t.num_nodes :]
    graph = nx.Graph()
    graph.add_nodes_from(np.flatnonzero(nodes).tolist())
    graph.add_edges_from(
        (u, v)
        for (u, v), up in zip(t.edges.tolist(), pairs, strict=True)
        if up and nodes[u] and nodes[v]
    )
    hosts = [v for v in graph if t.endpoint[v]]
    silent = {v for v in graph if not t.transit[v]}
    joined = sum(
        nx.has_path(graph.subgraph([v for v in graph if v in (a, b) or v not in silent]), a, b)
        for a in hosts
        for b in hosts
        if a != b
    )
    around = [
        sum(h in part or any(u in part for u in graph[h]) for h in hosts)
        for part in nx.connected_components(graph.subgraph([v for v in graph if v not in silent]))
    ]
    alone = [1] if hosts else []
    total = t.num_hosts
    return joined / (total * (total - 1)), max([*around, *alone], default=0) / total


@settings(max_examples=150)
@given(graphs, marks, marks, st.integers(0, 10**6))
def test_what_survives_is_what_paths_say(graph, endpoint, transit, seed):
    nx.set_node_attributes(graph, dict(enumerate([True, True, *endpoint])), "endpoint")
    nx.set_node_attributes(graph, dict(enumerate(transit)), "transit")
    t = Topology.from_networkx(graph, strict=False)
    alive = np.random.default_rng(seed).random(t.num_nodes + len(t.edges)) < 0.8
    found = survival(t, alive)
    pairs, accessible = oracle(t, alive)
    assert found.pairs == pytest.approx(pairs, rel=1e-14)
    assert found.accessible == pytest.approx(accessible, rel=1e-14)


@pytest.mark.parametrize("t", [fat_tree(4), bcube(3, 1), leaf_spine(3, 2, 2)], ids=repr)
def test_everything_survives_where_nothing_fails(t):
    everything = np.ones(t.num_nodes + len(t.edges), dtype=bool)
    assert survival(t, everything) == Survival(pairs=1.0, accessible=1.0)
    assert survival(t, ~everything) == Survival(pairs=0.0, accessible=0.0)


def test_a_bad_state_is_named():
    with pytest.raises(ValueError, match="alive must be"):
        survival(fat_tree(4), np.ones(5, dtype=bool))
