from itertools import permutations

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, strategies as st

from relparallel.metrics import Expansion, expansion
from relparallel.topology import Topology, bcube, dcell, fat_tree, ficonn, leaf_spine, torus


@pytest.mark.parametrize(
    ("before", "after", "pulled"),
    [
        (dcell(3, 1), dcell(3, 2), 0),
        (bcube(3, 1), bcube(3, 2), 0),
        (ficonn(n=4, k=1), ficonn(n=4, k=2), 0),
        (leaf_spine(3, 2, 4), leaf_spine(5, 3, 4), 0),
        (torus((4, 4)), torus((5, 4)), 4),  # the rings of the first dimension are opened
        (torus((4, 4)), torus((4, 6)), 4),
        (fat_tree(4), fat_tree(4), 0),
    ],
    ids=repr,
)
def test_growth_of_the_designs(before, after, pulled):
    found = expansion(before, after)
    assert found.pulled == pulled
    assert found.kept == before.num_links - pulled
    assert found.laid == after.num_links - found.kept
    assert (found.hosts, found.switches) == (
        after.num_hosts - before.num_hosts,
        after.num_switches - before.num_switches,
    )


@given(st.integers(2, 6), st.integers(0, 2), st.integers(0, 10**6), st.integers(1, 3), st.integers(1, 3))
def test_kept_cables_are_those_in_both(n, more, seed, old, new):
    before, after = nx.gnp_random_graph(n, 0.6, seed=seed), nx.gnp_random_graph(n + more, 0.6, seed=seed + 1)
    nx.set_edge_attributes(before, old, "multiplicity")
    nx.set_edge_attributes(after, new, "multiplicity")
    both = sum(after.has_edge(*e) for e in before.edges)
    assert expansion(before, after).kept == both * min(old, new)


def test_a_placement_may_keep_more():
    before, after = nx.path_graph(4), nx.relabel_nodes(nx.path_graph(4), {0: 2, 1: 0, 2: 3, 3: 1})
    t = Topology.from_networkx(nx.Graph(sorted(tuple(sorted(e)) for e in after.edges)))
    kept = {p: expansion(before, t, placement=np.array(p)).kept for p in permutations(range(4))}
    assert max(kept.values()) == 3
    assert expansion(before, t).kept <= 3


@pytest.mark.parametrize(("k", "switches"), [(4, 20), (6, 45)])
def test_a_fat_tree_grows_without_moving_a_cable_but_every_switch_is_replaced(k, switches):
    found = expansion(fat_tree(k), fat_tree(k + 2))
    assert (found.pulled, found.outgrown) == (0, switches)
    assert found.laid == 3 * ((k + 2) ** 3 - k**3) // 4


def test_growth_of_servers_with_few_ports_is_seen():
    assert expansion(dcell(3, 1), dcell(3, 2)).outgrown == 12  # every server takes one more cable
    assert expansion(leaf_spine(3, 2, 4), leaf_spine(5, 2, 4)).outgrown == 2  # the spines


@given(st.integers(2, 5), st.integers(0, 2), st.integers(0, 10**6))
def test_trades_lose_no_cable_and_beat_no_search(n, more, seed):
    """Between the best of the first placements and the best of all placements."""
    before, after = nx.gnp_random_graph(n, 0.6, seed=seed), nx.gnp_random_graph(n + more, 0.6, seed=seed + 1)
    nx.set_node_attributes(before, {v: v % 2 for v in before}, "tier")
    nx.set_node_attributes(after, {v: v % 2 for v in after}, "tier")
    all_kept = [
        sum(after.has_edge(p[u], p[v]) for u, v in before.edges) for p in permutations(range(n + more), n)
    ]
    first = sum(after.has_edge(*e) for e in before.edges)
    assert first <= expansion(before, after).kept <= max(all_kept)


def test_rewiring_per_node():
    assert expansion(torus((4, 4)), torus((5, 4))).rewired_per_node == 1
    assert Expansion(hosts=0, switches=0, kept=1, pulled=2, laid=2).rewired_per_node == np.inf
    assert Expansion(hosts=0, switches=0, kept=1, pulled=0, laid=2).rewired_per_node == 0


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"before": None}, "before must be"),
        ({"after": None}, "after must be"),
        ({"after": torus((3, 4))}, "after must have a place for every node of before"),
        ({"placement": [0] * 16}, "placement must give every node a place of its own"),
        ({"placement": [0, 1]}, "placement must be"),
        ({"placement": "first"}, "placement must be"),
    ],
)
def test_bad_arguments_are_named(arguments, error):
    with pytest.raises((TypeError, ValueError), match=error):
        expansion(**{"before": torus((4, 4)), "after": torus((5, 4))} | arguments)
