import networkx as nx
import numpy as np
import pytest

from relparallel.topology import describe, f10, fat_tree, leaf_spine
from relparallel.topology.routing import disjoint_paths


@pytest.mark.parametrize("k", [2, 4, 6, 8])
def test_a_pod_is_a_complete_bipartite_graph_with_its_hosts(k):
    t = fat_tree(k)
    graph = t.to_networkx()
    for pod in range(k):
        inside = graph.subgraph(np.flatnonzero(t.pod == pod).tolist())
        edge = [v for v in inside if inside.nodes[v]["kind"] == "edge"]
        aggregation = [v for v in inside if inside.nodes[v]["kind"] == "aggregation"]
        assert len(edge) == len(aggregation) == k // 2
        assert all(inside.has_edge(e, a) for e in edge for a in aggregation)
        assert len(inside) == k // 2 * (k // 2 + 2)
        for e in edge:
            assert sum(inside.nodes[v]["kind"] == "host" for v in inside[e]) == k // 2


@pytest.mark.parametrize("k", [2, 4, 6, 8])
def test_aggregation_switch_j_of_every_pod_meets_core_group_j(k):
    t = fat_tree(k)
    graph = t.to_networkx()
    core = np.flatnonzero(t.is_kind("core"))
    for rank, switch in enumerate(np.flatnonzero(t.is_kind("aggregation"))):
        j = rank % (k // 2)
        above = sorted(v for v in graph[int(switch)] if graph.nodes[v]["kind"] == "core")
        assert above == core[j * k // 2 : (j + 1) * k // 2].tolist()
    assert all({graph.nodes[v]["pod"] for v in graph[c]} == set(range(k)) for c in core.tolist())


@pytest.mark.parametrize("k", [2, 4, 6, 8])
def test_pods_of_the_ab_fat_tree_meet_the_cores_in_two_orders(k):
    t, half = f10(k), k // 2
    graph = t.to_networkx()
    core = np.flatnonzero(t.is_kind("core"))
    for rank, switch in enumerate(np.flatnonzero(t.is_kind("aggregation"))):
        j, type_b = rank % half, rank // half % 2
        above = sorted(v for v in graph[int(switch)] if graph.nodes[v]["kind"] == "core")
        assert above == (core[j::half] if type_b else core[j * half : (j + 1) * half]).tolist()
    assert all({graph.nodes[v]["pod"] for v in graph[c]} == set(range(k)) for c in core.tolist())


@pytest.mark.parametrize(("leaves", "spines", "hosts"), [(1, 1, 1), (4, 2, 3), (3, 5, 2)])
def test_a_leaf_spine_network_joins_every_leaf_with_every_spine(leaves, spines, hosts):
    t = leaf_spine(leaves, spines, hosts)
    graph = t.to_networkx()
    assert (t.num_hosts, t.num_switches) == (leaves * hosts, leaves + spines)
    assert t.num_links == leaves * (hosts + spines)
    leaf, spine = (
        np.flatnonzero(t.is_kind("leaf")).tolist(),
        np.flatnonzero(t.is_kind("spine")).tolist(),
    )
    assert all(graph.has_edge(a, b) for a in leaf for b in spine)
    assert all(
        graph.nodes[h]["pod"] == graph.nodes[v]["pod"] for h in t.hosts.tolist() for v in graph[h]
    )
    assert set(t.degrees[leaf]) == {hosts + spines}
    assert set(t.degrees[spine]) == {leaves}
    if leaves > 1:
        assert disjoint_paths(t, leaf[0], leaf[-1]) == spines


@pytest.mark.parametrize("t", [fat_tree(4), leaf_spine(2, 2, 2)], ids=repr)
def test_only_switches_forward(t):
    assert np.array_equal(t.transit, ~t.endpoint)


@pytest.mark.parametrize(
    ("leaves", "spines", "hosts", "cables"), [(3, 2, 4, 2), (2, 1, 4, 3), (4, 2, 2, 1)]
)
def test_a_tapered_tree_has_parallel_cables(leaves, spines, hosts, cables):
    t = leaf_spine(leaves, spines, hosts, cables)
    up = ~t.endpoint[t.edges].any(axis=1)
    assert (t.multiplicity[up] == cables).all()
    assert t.num_links == leaves * (hosts + spines * cables)
    assert t.degrees[t.is_kind("leaf")].tolist() == [hosts + spines * cables] * leaves
    again = describe("leaf_spine", **t.meta.parameters)
    assert again.links == t.num_links
    assert ("cables" in t.meta.parameters) == (cables > 1)
    assert t == leaf_spine(**t.meta.parameters)
    g = nx.Graph()
    for (u, v), many in zip(t.edges.tolist(), t.multiplicity.tolist(), strict=True):
        g.add_edge(u, v, weight=many)
    flow = nx.maximum_flow_value(
        nx.DiGraph(g), hosts * leaves, hosts * leaves + 1, capacity="weight"
    )
    assert flow == spines * cables
