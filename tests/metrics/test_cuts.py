import networkx as nx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from relparallel.metrics import edge_connectivity
from relparallel.topology import bcube, dcell, fat_tree, leaf_spine, torus

graphs = st.builds(
    lambda n, p, seed: nx.gnp_random_graph(n, p, seed=seed),
    st.integers(2, 12),
    st.floats(0.1, 1.0),
    st.integers(0, 10**6),
)


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
        (bcube(2, 3), 2),  # two-port switches hang on two cables, though servers have four disjoint paths
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


def test_no_path_is_connectivity_zero():
    apart = nx.disjoint_union(nx.cycle_graph(3), nx.cycle_graph(3))
    assert float(edge_connectivity(apart)) == 0
    assert float(edge_connectivity(apart, 0, 5)) == 0


def test_labels_of_a_graph_are_its_nodes():
    assert float(edge_connectivity(nx.cycle_graph(["a", "b", "c"]), "a", "c")) == 2


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (("net",), "topology must be"),
        ((nx.empty_graph(1),), "topology must have at least two nodes"),
        ((fat_tree(4), 0), "target must be a node where source is one"),
        ((fat_tree(4), None, 0), "source must be a node where target is one"),
        ((fat_tree(4), 0, 0), "target must differ from source"),
        ((fat_tree(4), 0, 36), "target must be a node"),
        ((fat_tree(4), "a", 1), "source must be a node"),
    ],
)
def test_bad_arguments_are_named(arguments, error):
    with pytest.raises((TypeError, ValueError), match=error):
        edge_connectivity(*arguments)
