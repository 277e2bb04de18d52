import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from relparallel.metrics import bisection
from relparallel.metrics.halves import _up_down as up_down_bound
from relparallel.topology import (
    Topology,
    aspen,
    bcube,
    dgx_superpod,
    dragonfly_plus,
    fat_tree,
    helios,
    jellyfish,
    leaf_spine,
    meta_roce,
    rail_only,
    three_tier,
    vl2,
)


def network(cables, hosts):
    """Every cable (u, v, number); nodes below ``hosts`` are hosts."""
    graph = nx.Graph()
    graph.add_nodes_from(range(max(max(u, v) for u, v, _ in cables) + 1))
    graph.add_weighted_edges_from(cables, weight="multiplicity")
    for v in graph:
        graph.nodes[v].update(endpoint=v < hosts, transit=v >= hosts)
    return Topology.from_networkx(graph)


@pytest.mark.parametrize(
    ("t", "cables"),
    [
        (fat_tree(4), 8),
        (leaf_spine(4, 2, 4), 4),
        (leaf_spine(4, 8, 2), 4),
        (three_tier(1, 2, 3, 3), 2),
        (three_tier(2, 2, 2, 2), 4),
        (aspen(3, 4, (1, 0)), 4),
        (aspen(3, 4, (0, 1)), 4),
        (vl2(4, 4), 4),
    ],
    ids=repr,
)
def test_the_bound_is_the_bisection_of_trees(t, cables):
    assert up_down_bound(t) == pytest.approx(cables, rel=1e-12)
    assert bisection(t, method="exact").value == cables


@pytest.mark.parametrize(
    "t",
    [
        rail_only(domains=8, gpus_per_domain=2, switch_ports=4),
        leaf_spine(3, 2, 4),
        leaf_spine(5, 3, 3),
    ],
    ids=repr,
)
def test_the_bound_holds_where_it_is_not_met(t):
    solved = bisection(t, method="exact")
    assert solved.exact
    assert 0 < up_down_bound(t) <= solved.value


@settings(max_examples=30)
@given(
    st.integers(1, 3), st.integers(1, 3), st.integers(1, 3), st.integers(1, 3), st.integers(1, 3)
)
def test_the_bound_holds_in_small_trees(leaves, spines, each, below, above):
    hosts = leaves * each
    up = [(h, hosts + h // each, below) for h in range(hosts)]
    across = [(hosts + i, hosts + leaves + j, above) for i in range(leaves) for j in range(spines)]
    t = network(up + across, hosts)
    if hosts >= 2:
        busiest = max(1 / below, each / (spines * above))
        assert up_down_bound(t) == pytest.approx((hosts // 2) / busiest, rel=1e-12)
        assert up_down_bound(t) <= bisection(t, method="exact").value * (1 + 1e-9)


def test_hosts_that_reach_other_tops_have_no_bound():
    """Two trees joined by one cable between two hosts' switches: one cable separates the halves."""
    apart = network(
        [(0, 4, 1), (1, 4, 1), (2, 5, 1), (3, 5, 1), (4, 6, 1), (5, 7, 1), (4, 5, 1)], 4
    )
    assert up_down_bound(apart) == 0.0
    assert bisection(apart).value == 1
    uneven = network([(0, 2, 1), (0, 3, 3), (1, 2, 1), (1, 3, 1)], 2)  # three quarters, one half
    assert up_down_bound(uneven) == 0.0
    for t in (
        bcube(3, 1),
        jellyfish(20, 6, 4, rng=np.random.default_rng(0)),
        dragonfly_plus(2, 2, 2, 2),
    ):
        assert up_down_bound(t) == 0.0


def test_groups_spread_before_they_go_up():
    """Two groups of two hosts at their own switch, each host with a cable to one of two rails."""
    inner = [(0, 4, 8), (1, 4, 8), (2, 5, 8), (3, 5, 8)]
    rails = [(0, 6, 1), (2, 6, 1), (1, 7, 1), (3, 7, 1)]
    every_way = [(6, 8, 2), (7, 9, 2)]
    t = network(inner + rails + every_way, 4)
    assert up_down_bound(t) == 2.0  # of either rail one cable
    assert bisection(t, method="exact").value == 2
    thin = network([(u, v, 1) for u, v, _ in inner] + rails + every_way, 4)
    assert up_down_bound(thin) == 1.0
    mixed = network([(0, 4, 8), (1, 4, 7), *inner[2:], *rails, *every_way], 4)
    assert up_down_bound(mixed) == 0.0


def test_large_clusters_have_bounds_of_their_order(monkeypatch):
    for t in (
        dgx_superpod(2),
        rail_only(domains=64, gpus_per_domain=8, switch_ports=64),
        meta_roce(1),
    ):
        found = bisection(t)
        assert found.lower > 0.45 * found.upper
    t = helios(pods=8, hosts_per_pod=64, electrical=0.5, optical=0.5, wavelengths=8)
    assert bisection(t, method="bracket").exact
    most = bisection(t).upper
    monkeypatch.setitem(up_down_bound.__globals__, "_busiest", lambda *_: 1e-9)
    assert up_down_bound(t) > most  # a load too small would be found out
