from itertools import pairwise

import networkx as nx
import pytest
from hypothesis import given, strategies as st

from chapters.s23.routes import vertex_connectivity
from relparallel.metrics import edge_connectivity
from relparallel.topology import bcube, dcell, fat_tree, leaf_spine, torus
from relparallel.topology.disjoint import disjoint_path_set
from small_networks import random_graphs

graphs = random_graphs(2, 12, 0.1, 1.0)


def paths(graph, s, d, silent):
    inside = graph.subgraph([v for v in graph if v in (s, d) or v not in silent])
    return nx.maximum_flow_value(nx.Graph(inside), s, d, capacity="multiplicity")


@given(graphs)
def test_the_connectivity_of_a_graph_is_that_of_networkx(graph):
    assert float(edge_connectivity(graph)) == nx.edge_connectivity(graph)


@given(graphs, st.lists(st.booleans(), min_size=12, max_size=12), st.integers(1, 3))
def test_the_connectivity_is_the_smallest_of_all_pairs(graph, transit, cables):
    nx.set_node_attributes(graph, dict(enumerate(transit)), "transit")
    nx.set_edge_attributes(graph, cables, "multiplicity")
    silent = {v for v in graph if not transit[v]}
    smallest = min(paths(graph, s, d, silent) for s in graph for d in graph if s < d)
    assert float(edge_connectivity(graph)) == smallest


@pytest.mark.parametrize(
    ("t", "connectivity"),
    [
        (fat_tree(4), 1),
        (leaf_spine(3, 2, 2), 1),
        (bcube(4, 1), 2),
        (bcube(4, 2), 3),
        # two-port switches hang on two cables, though servers have four disjoint paths
        (bcube(2, 3), 2),
        (dcell(4, 1), 2),
        (torus((4, 4, 4)), 6),
        (torus((2, 3)), 3),
        (torus((7,)), 2),
    ],
    ids=repr,
)
def test_the_connectivity_of_the_designs(t, connectivity):
    assert float(edge_connectivity(t)) == connectivity


@pytest.mark.parametrize(
    ("t", "source", "target", "paths"),
    [
        (bcube(2, 3), 0, 15, 4),
        (bcube(8, 2), 0, 511, 3),
        (dcell(4, 2), 0, 419, 3),
        (fat_tree(8), 128, 159, 4),
        (fat_tree(8), 0, 127, 1),
        (leaf_spine(4, 3, 2), 8, 11, 3),
    ],
    ids=repr,
)
def test_disjoint_paths_of_the_designs(t, source, target, paths):
    found = edge_connectivity(t, source, target)
    assert (found.value, found.lower, found.upper, found.exact) == (paths, paths, paths, True)


@given(graphs)
def test_the_vertex_connectivity_of_a_graph_is_that_of_networkx(graph):
    assert float(vertex_connectivity(graph)) == nx.node_connectivity(graph)


@given(graphs, st.lists(st.booleans(), min_size=12, max_size=12))
def test_the_vertex_connectivity_is_the_smallest_cut_of_nodes_that_forward(graph, transit):
    """By definition: some nodes fail, and two others have no path through nodes that forward."""
    nx.set_node_attributes(graph, dict(enumerate(transit)), "transit")
    apart = [(a, b) for a in graph for b in graph if a < b and not graph.has_edge(a, b)]
    cuts = [len(graph) - 1]
    for a, b in apart:
        inside = graph.subgraph([v for v in graph if v in (a, b) or transit[v]])
        cuts.append(len(nx.minimum_node_cut(inside, a, b)) if nx.has_path(inside, a, b) else 0)
    assert float(vertex_connectivity(graph)) == min(cuts)


@given(graphs, st.lists(st.booleans(), min_size=12, max_size=12), st.integers(1, 3))
def test_disjoint_paths_are_paths_share_nothing_and_are_as_many_as_the_flow(graph, transit, cables):
    nx.set_node_attributes(graph, dict(enumerate(transit)), "transit")
    nx.set_edge_attributes(graph, cables, "multiplicity")
    s, d = 0, len(graph) - 1
    inside = nx.Graph(graph.subgraph([v for v in graph if v in (s, d) or transit[v]]))
    for share in ("ends", "nodes"):
        found = disjoint_path_set(graph, s, d, share=share)
        assert found == sorted(found, key=len)
        links = [tuple(sorted(link)) for path in found for link in pairwise(path)]
        assert all(path[0] == s and path[-1] == d and len(set(path)) == len(path) for path in found)
        assert all(inside.has_edge(*link) for link in links)
        if share == "nodes":
            assert max(map(links.count, links), default=0) <= cables
            assert len(found) == nx.maximum_flow_value(inside, s, d, capacity="multiplicity")
        else:
            middle = [v for path in found for v in path[1:-1]]
            assert len(middle) == len(set(middle))
            assert len(found) == nx.node_connectivity(inside, s, d)
            assert len(found) == float(vertex_connectivity(graph, s, d))


def test_one_forwarding_node_of_every_orbit_is_enough():
    """Without the name of the design no symmetry is known; the answer stays."""
    for t in (bcube(3, 1), torus((4, 4)), dcell(3, 1)):
        bare = nx.Graph(t.edges.tolist())
        assert (
            float(vertex_connectivity(t))
            == float(vertex_connectivity(bare))
            == nx.node_connectivity(bare)
        )


def test_the_node_from_which_the_flows_start_may_itself_be_the_one_to_lose():
    """Two complete graphs meet in the node of the fewest cables, which has two cables to each."""
    graph = nx.relabel_nodes(
        nx.disjoint_union(nx.complete_graph(6), nx.complete_graph(6)), lambda v: v + 1
    )
    graph.add_edges_from([(0, 1), (0, 2), (0, 7), (0, 8)])
    assert float(vertex_connectivity(graph)) == 1
    assert float(vertex_connectivity(graph, 0, 6)) == 2


def test_disjoint_paths_of_a_bcube_are_those_of_its_levels():
    paths = disjoint_path_set(bcube(4, 2), 0, 63)
    assert [len(path) for path in paths] == [7, 7, 7]
    assert len({v for path in paths for v in path}) == 3 * 5 + 2


def test_parts_have_no_path_and_no_connectivity():
    apart = nx.disjoint_union(nx.cycle_graph(3), nx.cycle_graph(3))
    assert disjoint_path_set(apart, 0, 5) == []
    for measure in (edge_connectivity, vertex_connectivity):
        assert float(measure(apart)) == float(measure(apart, 0, 5)) == 0


def test_paths_share_ends_or_nodes():
    with pytest.raises(ValueError, match="share must be one of"):
        disjoint_path_set(fat_tree(4), 0, 1, share="cables")


def test_labels_of_a_graph_are_its_nodes():
    assert float(edge_connectivity(nx.cycle_graph(["a", "b", "c"]), "a", "c")) == 2


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ((nx.empty_graph(1),), "topology must have at least two nodes"),
        ((fat_tree(4), 0), "target must be a node where source is one"),
        ((fat_tree(4), None, 0), "source must be a node where target is one"),
        ((fat_tree(4), 0, 0), "target must differ from source"),
        ((fat_tree(4), 0, 36), "target must be a node"),
    ],
)
@pytest.mark.parametrize("measure", [edge_connectivity, vertex_connectivity])
def test_bad_arguments_are_named(measure, arguments, error):
    with pytest.raises((TypeError, ValueError), match=error):
        measure(*arguments)
