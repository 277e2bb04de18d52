from itertools import combinations

import networkx as nx
import numpy as np
import pytest

from relparallel.topology import aspen, fat_tree, three_tier, vl2
from relparallel.topology.parts import LINK_CAPACITY
from relparallel.topology.routing import disjoint_paths, ecmp_paths
from small_networks import ASPEN


def kind(t, name):
    return np.flatnonzero(t.is_kind(name)).tolist()


def neighbours(t, v, name):
    found = t.indices[t.indptr[v] : t.indptr[v + 1]]
    return found[t.is_kind(name)[found]].tolist()


@pytest.mark.parametrize(("d_a", "d_i"), [(2, 2), (4, 4), (8, 6), (6, 10)])
def test_every_port_of_vl2_is_used_and_every_rack_has_two_uplinks(d_a, d_i):
    t = vl2(d_a, d_i)
    racks = d_a * d_i // 4
    assert [len(kind(t, name)) for name in t.kinds] == [20 * racks, racks, d_i, d_a // 2]
    assert t.num_links == 5 * d_a * d_i + d_a * d_i // 2 + d_a * d_i // 2
    for tor in kind(t, "tor"):
        assert len(neighbours(t, tor, "server")) == 20
        assert len(set(neighbours(t, tor, "aggregation"))) == 2
    for switch in kind(t, "aggregation"):
        assert neighbours(t, switch, "intermediate") == kind(t, "intermediate")
        assert len(neighbours(t, switch, "tor")) == d_a // 2
    assert set(t.degrees[t.is_kind("aggregation")]) == {d_a}
    assert set(t.degrees[t.is_kind("intermediate")]) == {d_i}


def test_paths_between_racks_of_vl2():
    t, d_a = vl2(d_a=8, d_i=6), 8
    first, *_, last = kind(t, "tor")
    assert disjoint_paths(t, first, last) == 2
    assert len(ecmp_paths(t, first, last)) == 2 * d_a
    graph = t.to_networkx()
    pods = {frozenset(neighbours(t, tor, "aggregation")) for tor in kind(t, "tor")}
    assert sorted(map(sorted, pods)) == [[252, 253], [254, 255], [256, 257]]
    assert all(
        graph.nodes[v]["pod"] == graph.nodes[tor]["pod"]
        for tor in kind(t, "tor")
        for v in graph[tor]
    )


def test_the_uplinks_of_a_rack_are_as_fast_as_its_servers():
    t = vl2(d_a=4, d_i=4)
    tor = kind(t, "tor")[0]
    inside = (t.edges == tor).any(axis=1) & t.endpoint[t.edges].any(axis=1)
    outside = (t.edges == tor).any(axis=1) & ~inside
    assert t.capacity[inside].sum() == pytest.approx(t.capacity[outside].sum())
    assert t.capacity.max() == LINK_CAPACITY


@pytest.mark.parametrize(
    ("cores", "pods", "access", "hosts"), [(1, 1, 1, 1), (2, 3, 4, 5), (4, 2, 3, 2)]
)
def test_a_three_tier_network_is_a_tree_of_redundant_pairs(cores, pods, access, hosts):
    t = three_tier(cores, pods, access, hosts)
    assert [len(kind(t, name)) for name in t.kinds] == [
        pods * access * hosts,
        pods * access,
        2 * pods,
        cores,
    ]
    assert t.num_links == pods * access * (hosts + 2) + 2 * pods * cores
    for switch in kind(t, "aggregation"):
        assert neighbours(t, switch, "core") == kind(t, "core")
        assert set(t.pod[neighbours(t, switch, "access")]) == {t.pod[switch]}
        assert len(neighbours(t, switch, "access")) == access
    for a, b in combinations(kind(t, "access"), 2):
        assert disjoint_paths(t, a, b) == 2


@pytest.mark.parametrize("k", [2, 4, 6, 8])
def test_an_aspen_tree_of_three_levels_without_fault_tolerance_is_the_fat_tree(k):
    ours, usual = aspen(3, k, (0, 0)), fat_tree(k)
    assert np.array_equal(ours.edges, usual.edges)
    assert np.array_equal(ours.pod, usual.pod)


@pytest.mark.parametrize(("n", "k", "vector"), ASPEN)
def test_switches_of_an_aspen_tree_have_f_plus_one_links_into_each_pod_below(n, k, vector):
    """A pod of level i is what is joined by switches up to level i."""
    t = aspen(n, k, vector)
    graph = t.to_networkx()
    for level in range(2, n + 1):
        below = graph.subgraph([v for v in graph if graph.nodes[v]["tier"] < level])
        pod = {
            v: number for number, part in enumerate(nx.connected_components(below)) for v in part
        }
        for switch in kind(t, f"level {level}"):
            down = [v for v in graph[switch] if graph.nodes[v]["tier"] == level - 1]
            links = {}
            for v in down:
                links[pod[v]] = links.get(pod[v], 0) + graph.edges[switch, v]["multiplicity"]
            assert set(links.values()) == {vector[n - level] + 1}


@pytest.mark.parametrize(("n", "k", "vector"), ASPEN)
def test_links_into_a_pod_end_at_different_switches_where_it_has_as_many(n, k, vector):
    t = aspen(n, k, vector)
    upper, switches = t.tier[t.edges].max(axis=1), 1
    for level, f in enumerate(reversed(vector), start=2):
        assert t.multiplicity[upper == level].max() == -(-(f + 1) // switches)
        switches = switches * k // (2 * (f + 1))
