from dataclasses import replace

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy import stats

from relparallel.metrics import hop_statistics
from relparallel.topology import bcube, dcell, fat_tree, leaf_spine, torus
from small_networks import random_graphs

graphs = random_graphs(3, 24, 0.05, 0.6)
marks = st.lists(st.booleans(), min_size=24, max_size=24)


def oracle(graph, chosen, cost, silent=frozenset()):
    """Histogram by Dijkstra from every endpoint via forwarding nodes only; pairs without a path."""
    histogram, apart = {}, 0
    for s in chosen:
        inside = graph.subgraph([v for v in graph if v == s or v not in silent or v in chosen])
        directed = nx.DiGraph(
            (u, v)
            for a, b in inside.edges
            for u, v in ((a, b), (b, a))
            if u not in silent or u == s
        )
        directed.add_nodes_from(inside)
        distance = nx.single_source_dijkstra_path_length(
            directed, s, weight=lambda u, v, _: cost(u, v)
        )
        for v in chosen:
            if v != s and v in distance:
                histogram[distance[v]] = histogram.get(distance[v], 0) + 1
            apart += v not in distance
    return histogram, apart


@given(graphs, marks, marks)
def test_distances_are_those_of_networkx(graph, endpoint, transit):
    nx.set_node_attributes(graph, dict(enumerate(endpoint)), "endpoint")
    nx.set_node_attributes(graph, dict(enumerate(transit)), "transit")
    chosen = {v for v in graph if endpoint[v]}
    histogram, apart = oracle(graph, chosen, lambda u, v: 1, {v for v in graph if not transit[v]})
    if histogram:
        found = hop_statistics(graph)
        assert (found.histogram, found.unreachable) == (histogram, apart)
        assert found.exact
    else:
        with pytest.raises(ValueError, match="topology must"):
            hop_statistics(graph)


@given(graphs, marks, marks)
def test_server_hops_count_a_switch_with_its_cables_as_one(graph, endpoint, transit):
    graph.remove_edges_from([(u, v) for u, v in graph.edges if not endpoint[u] and not endpoint[v]])
    nx.set_node_attributes(graph, dict(enumerate(endpoint)), "endpoint")
    nx.set_node_attributes(graph, dict(enumerate(transit)), "transit")
    chosen = {v for v in graph if endpoint[v]}
    silent = {v for v in graph if not transit[v]}
    histogram, apart = oracle(
        graph, chosen, lambda u, v: 1 if endpoint[u] and endpoint[v] else 0.5, silent
    )
    if histogram:
        found = hop_statistics(graph, hops="servers")
        assert (found.histogram, found.unreachable) == (histogram, apart)


@given(st.integers(1, 12), st.integers(1, 12), marks)
def test_twins_of_a_complete_bipartite_graph_are_exact(a, b, transit):
    graph = nx.complete_bipartite_graph(a, b)
    nx.set_node_attributes(graph, dict(enumerate(transit)), "transit")
    histogram, apart = oracle(
        graph, set(graph), lambda u, v: 1, {v for v in graph if not transit[v]}
    )
    found = hop_statistics(graph)
    assert (found.histogram, found.unreachable) == (histogram, apart)


def test_servers_of_one_switch_are_one_server_hop_apart():
    assert hop_statistics(bcube(4, 0), "servers").histogram == {1: 12}
    assert hop_statistics(nx.star_graph(3), "servers").histogram == {1: 6, 2: 6}


@pytest.mark.parametrize("silent", ["u", "v"])
def test_a_twin_that_does_not_forward_does_not_hide_the_one_that_does(silent):
    graph = nx.Graph([("x", "u"), ("x", "v"), ("u", "y"), ("v", "y"), ("y", "z")])
    nx.set_node_attributes(graph, {silent: False}, "transit")
    histogram, _ = oracle(graph, set(graph), lambda u, v: 1, {silent})
    assert hop_statistics(graph).histogram == histogram


def test_more_endpoints_than_one_pass_holds():
    graph = nx.random_regular_graph(3, 700, seed=1)
    lengths = [d for _, row in nx.all_pairs_shortest_path_length(graph) for d in row.values() if d]
    found = hop_statistics(graph)
    assert found.pairs == 700 * 699
    assert found.mean == pytest.approx(np.mean(lengths), rel=1e-14)
    assert found.std == pytest.approx(np.std(lengths), rel=1e-12)
    assert found.diameter == max(lengths)


def test_long_paths_outgrow_the_first_levels():
    found = hop_statistics(nx.path_graph(100))
    assert found.histogram == {d: 2 * (100 - d) for d in range(1, 100)}


def test_bcube_server_hops_are_differing_digits():
    found = hop_statistics(bcube(3, 2), hops="servers")
    assert found.histogram == {1: 27 * 3 * 2, 2: 27 * 3 * 4, 3: 27 * 8}
    links = hop_statistics(bcube(3, 2))
    assert links.histogram == {2 * d: count for d, count in found.histogram.items()}


@pytest.mark.parametrize("endpoints", ["switches", "nodes"])
def test_other_endpoints(endpoints):
    t = leaf_spine(3, 2, 2)
    chosen = set(t.switches.tolist()) if endpoints == "switches" else set(range(t.num_nodes))
    histogram, _ = oracle(t.to_networkx(), chosen, lambda u, v: 1)
    assert hop_statistics(t, endpoints=endpoints).histogram == histogram


def test_hosts_of_a_clos_network_do_not_forward():
    graph = nx.Graph([("a", "h"), ("h", "b")])
    nx.set_node_attributes(graph, {"a": False, "b": False, "h": True}, "endpoint")
    assert hop_statistics(graph, endpoints="switches").histogram == {2: 2}
    nx.set_node_attributes(graph, {"h": False}, "transit")
    with pytest.raises(ValueError, match="topology must join at least two endpoints"):
        hop_statistics(graph, endpoints="switches")


def test_pairs_without_a_path_are_counted_apart():
    found = hop_statistics(nx.disjoint_union(nx.path_graph(3), nx.path_graph(2)))
    assert (found.pairs, found.unreachable, found.histogram) == (8, 12, {1: 6, 2: 2})
    assert found.mean == 1.25


def test_parallel_cables_are_no_shorter():
    assert hop_statistics(nx.MultiGraph([(0, 1), (0, 1), (1, 2)])).histogram == {1: 4, 2: 2}


@pytest.mark.parametrize("endpoints", ["hosts", "nodes"])
@pytest.mark.parametrize(
    "t",
    [
        fat_tree(4),
        bcube(3, 2),
        dcell(4, 1),
        dcell(3, 2),
        torus((4, 5, 3)),
        leaf_spine(3, 2, 4),
        nx.path_graph(5),
    ],
    ids=str,
)
def test_one_search_per_orbit_gives_the_same(t, endpoints):
    assert hop_statistics(t, endpoints=endpoints, symmetry=True) == hop_statistics(
        t, endpoints=endpoints
    )


def test_orbits_of_server_hops_and_of_a_network_that_lost_a_cable():
    assert hop_statistics(bcube(4, 2), "servers", symmetry=True) == hop_statistics(
        bcube(4, 2), "servers"
    )
    t = torus((5, 5))
    parts = {
        name: getattr(t, name)[1:] for name in ("edges", "multiplicity", "capacity", "latency")
    }
    broken = replace(t, **parts)
    assert hop_statistics(broken, symmetry=True) == hop_statistics(broken) != hop_statistics(t)


def test_sampling_every_source_is_exact():
    rng = np.random.default_rng(0)
    t = dcell(4, 1)
    assert hop_statistics(t, sources=20, rng=rng) == hop_statistics(t)


def test_a_sample_of_a_symmetric_network_is_exact_in_its_mean():
    found = hop_statistics(torus((6, 6, 6)), sources=16, rng=np.random.default_rng(3))
    assert not found.exact
    assert found.mean == pytest.approx(hop_statistics(torus((6, 6, 6))).mean, rel=1e-14)
    assert found.standard_error == 0


@pytest.mark.parametrize(("n", "sources", "groups"), [(4, 64, 8), (5, 600, 16)])
def test_the_standard_error_is_that_of_repeated_samples(n, sources, groups):
    t, runs = dcell(n, 2), 4000
    truth = hop_statistics(t, "servers").mean
    rng = np.random.default_rng(11)
    found = [hop_statistics(t, "servers", sources=sources, rng=rng) for _ in range(runs)]
    off = np.array([f.mean for f in found]) - truth
    error = np.array([f.standard_error for f in found])
    assert np.mean(error**2) / np.mean(off**2) == pytest.approx(1, abs=4 * (2 / runs) ** 0.5)
    covered = np.mean(np.abs(off) <= stats.t.ppf(0.95, df=groups - 1) * error)
    assert covered == pytest.approx(0.9, abs=4 * (0.9 * 0.1 / runs) ** 0.5)


def test_a_table_for_the_reader():
    found = hop_statistics(fat_tree(4))
    table = found.to_frame()
    assert table.index.tolist() == [2, 4, 6]
    assert table["share"].sum() == pytest.approx(1)
    assert "mean 5.46667 links, diameter 6" in found._repr_html_()
    sampled = hop_statistics(dcell(4, 1), sources=4, rng=np.random.default_rng(0))
    assert "(sampled)" in sampled._repr_html_()
    apart = hop_statistics(nx.Graph([(0, 1), (2, 3)]))
    assert "8 pairs unreachable" in apart._repr_html_()


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"topology": nx.empty_graph(1)}, "topology must have at least two hosts"),
        ({"topology": nx.empty_graph(3)}, "topology must join at least two endpoints"),
        ({"hops": "servers"}, "hops must be 'links' where a cable joins two switches"),
        (
            {"topology": bcube(2, 1), "hops": "servers", "endpoints": "nodes"},
            "endpoints must be 'hosts'",
        ),
        ({"sources": 1}, "sources must be an integer in"),
        ({"sources": 17}, "sources must be an integer in"),
        ({"sources": 4}, "rng must be Generator"),
        ({"symmetry": True, "sources": 4}, "symmetry must be False where sources are sampled"),
    ],
)
def test_bad_arguments_are_named(arguments, error):
    with pytest.raises((TypeError, ValueError), match=error):
        hop_statistics(**{"topology": fat_tree(4), **arguments})
