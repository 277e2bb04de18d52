import time
from math import comb

import networkx as nx
import numpy as np
import pytest

from relparallel.reliability.frontier.compiled_sweep import compile_sweep, run_sweep
from relparallel.reliability.frontier.link_orders import link_order, vertex_order


def arrays(graph):
    graph = nx.convert_node_labels_to_integers(graph)
    return len(graph), np.array([sorted(edge) for edge in graph.edges], dtype=np.int64)


def programme(graph, order=None, up=0.9, backwards=False):
    """LinkSweep of an all-terminal problem with perfect vertices."""
    n, edges = arrays(graph)
    edges = edges[
        link_order(vertex_order(edges, np.ones(n, bool), 1.0) if order is None else order, edges)
    ]
    edges = edges[::-1] if backwards else edges
    link, node = np.tile([up, 1 - up], (len(edges), 1)), np.tile([1.0, 0.0], (n, 1))
    return compile_sweep(edges, link, node, np.ones(n, dtype=bool))


@pytest.mark.parametrize(
    ("graph", "width"),
    [
        (nx.path_graph(30), 2),
        (nx.cycle_graph(30), 3),
        (nx.random_labeled_tree(60, seed=1), 5),
        (nx.grid_2d_graph(8, 8), 9),
        (nx.grid_2d_graph(4, 40), 5),
        (nx.complete_graph(9), 9),
        (nx.complete_bipartite_graph(24, 8), 10),
        (nx.dodecahedral_graph(), 7),
        (nx.hypercube_graph(4), 8),
        (nx.grid_2d_graph(6, 6, periodic=True), 12),
    ],
    ids=[
        "path",
        "cycle",
        "tree",
        "grid",
        "strip",
        "complete",
        "leaf-spine",
        "dodecahedron",
        "Q4",
        "torus",
    ],
)
def test_the_frontier_is_as_narrow_as_known(graph, width):
    assert programme(graph).width <= width


def test_orders_are_permutations_and_repeat():
    for graph in (nx.petersen_graph(), nx.grid_2d_graph(5, 7), nx.complete_bipartite_graph(5, 3)):
        n, edges = arrays(graph)
        order = vertex_order(edges, np.ones(n, bool), 1.0)
        assert sorted(order) == list(range(n))
        assert sorted(link_order(order, edges)) == list(range(len(edges)))
        assert (order == vertex_order(edges, np.ones(n, bool), 1.0)).all()


def test_links_that_let_a_vertex_enter_come_last():
    # Vertex 1 has links to 2, 3 and 4 that leave later; only 3 is not yet live.
    edges = np.array([(0, 2), (0, 4), (1, 2), (1, 3), (1, 4), (2, 3), (2, 4), (3, 4)])
    ordered = edges[link_order(np.arange(5), edges)].tolist()
    assert [max(edge) for edge in ordered if min(edge) == 1] == [2, 4, 3]


def test_a_hopeless_graph_is_not_searched_for_long():
    n, edges = arrays(nx.grid_graph((8, 8, 8), periodic=True))
    vertex_order(arrays(nx.path_graph(3))[1], np.ones(3, bool), 1.0)
    start = time.process_time()
    assert sorted(vertex_order(edges, np.ones(n, bool), 1.0)) == list(range(n))
    assert time.process_time() - start < 1.0


@pytest.mark.parametrize(("n", "bell"), [(4, 15), (6, 203), (8, 4140), (9, 21147)])
def test_the_largest_layer_of_a_complete_graph_is_a_bell_number(n, bell):
    graph = nx.complete_graph(n + 1)
    # the links of a vertex when it enters
    every = programme(graph, np.arange(n + 1), backwards=True)
    assert run_sweep(every, 10**6).peak == bell
    assert run_sweep(programme(graph), 10**6).peak < bell


@pytest.mark.parametrize("side", [3, 4, 5, 6, 8])
def test_the_largest_layer_of_a_grid_is_a_catalan_number(side):
    row_by_row = programme(nx.grid_2d_graph(side, side), np.arange(side**2))
    assert run_sweep(row_by_row, 10**6).peak == comb(2 * side, side) // (side + 1)


def test_success_and_failure_mass_add_up_to_one():
    for graph in (nx.grid_2d_graph(7, 7), nx.complete_graph(9), nx.dodecahedral_graph()):
        sweep = run_sweep(programme(graph, up=0.7), 10**6)
        assert sweep.success + sweep.failure == pytest.approx(1, abs=1e-12)
