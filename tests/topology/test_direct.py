import math

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from relparallel.topology import disjoint_paths, torus

shapes = st.lists(st.integers(1, 5), min_size=1, max_size=3).map(tuple)


@given(shapes)
def test_a_torus_is_the_periodic_grid_of_networkx(dims):
    t = torus(dims)
    expected = nx.grid_graph(dims[::-1], periodic=True)
    expected.remove_edges_from(list(nx.selfloop_edges(expected)))
    flat = nx.relabel_nodes(expected, lambda p: int(np.ravel_multi_index(p if len(dims) > 1 else (p,), dims)))
    assert t.num_nodes == math.prod(dims)
    assert {frozenset(e) for e in t.edges.tolist()} == {frozenset(e) for e in flat.edges}
    assert t.num_links == len(t.edges)  # also in dimensions of length two


@given(shapes)
def test_a_node_has_two_cables_per_dimension_one_in_pairs_and_none_alone(dims):
    t = torus(dims)
    assert set(t.degrees.tolist()) == {sum({1: 0, 2: 1}.get(length, 2) for length in dims)}
    assert t.endpoint.all()
    assert t.transit.all()
    assert np.bincount(t.pod).tolist() == [t.num_nodes // dims[0]] * dims[0]


@pytest.mark.parametrize("dims", [(4, 4), (3, 2, 3), (5,), (2, 2, 2)])
def test_as_many_disjoint_paths_as_cables_join_any_two_nodes(dims):
    t = torus(dims)
    assert {disjoint_paths(t, 0, other) for other in range(1, t.num_nodes)} == {int(t.degrees[0])}


def test_the_four_by_four_torus_is_the_hypercube():
    assert nx.is_isomorphic(torus((4, 4)).to_networkx(), nx.hypercube_graph(4))


def test_dims_may_be_any_sequence():
    assert torus([2, 3]) == torus((2, 3)) == torus(np.array([2, 3]))


@pytest.mark.parametrize(
    "dims", [(), (0,), (4, -1), (4.0,), 4, None, "44", [None], float("nan"), (True,), (10**6,) * 2]
)
def test_bad_dims_are_named(dims):
    with pytest.raises((TypeError, ValueError), match="dims must"):
        torus(dims)
