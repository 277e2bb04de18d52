import math
from functools import reduce

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, strategies as st

from relparallel.metrics import bisection
from relparallel.topology import check, describe, hammingmesh, torus, tpu_v4

shapes = st.lists(st.integers(1, 5), min_size=1, max_size=3).map(tuple)


@given(shapes)
def test_a_torus_is_the_periodic_grid_of_networkx(dims):
    t = torus(dims)
    expected = nx.grid_graph(dims[::-1], periodic=True)
    expected.remove_edges_from(list(nx.selfloop_edges(expected)))
    flat = nx.relabel_nodes(
        expected, lambda p: int(np.ravel_multi_index(p if len(dims) > 1 else (p,), dims))
    )
    assert t.num_nodes == math.prod(dims)
    assert {frozenset(e) for e in t.edges.tolist()} == {frozenset(e) for e in flat.edges}
    assert t.num_links == len(t.edges)  # also in dimensions of length two


boxes = st.lists(st.tuples(st.integers(1, 5), st.booleans()), min_size=1, max_size=3)


@given(boxes)
def test_an_open_dimension_is_a_path_and_a_wrapped_one_a_ring(box):
    dims, wrap = zip(*box, strict=True)
    t = torus(dims, wrap)
    lines = [nx.path_graph(k) if k < 3 or not ring else nx.cycle_graph(k) for k, ring in box]
    expected = reduce(nx.cartesian_product, lines[1:], nx.relabel_nodes(lines[0], lambda p: (p,)))
    assert t.num_links == len(t.edges) == expected.number_of_edges()
    assert nx.is_isomorphic(t.to_networkx(), expected)
    check(t)


@pytest.mark.parametrize(
    ("dims", "wrap", "cables"),
    [
        ((4, 4), False, 4),
        ((4, 4), (True, False), 4),
        ((2, 6), (False, True), 4),
        ((6, 2), False, 2),
        ((3, 6), (False, True), 6),
        ((2, 2, 4), (True, True, False), 4),
        ((4, 3), False, 3),
    ],
)
def test_the_bisection_of_a_mesh_is_that_of_the_integer_program(dims, wrap, cables):
    assert describe("torus", dims=dims, wrap=wrap).bisection == cables
    solved = bisection(torus(dims, wrap), method="exact")
    assert solved.lower == solved.upper == cables


def test_all_flags_or_one_for_all_make_the_same_torus():
    assert torus((3, 4), True) == torus((3, 4), (True, True)) == torus((3, 4))
    assert (
        torus((3, 4), False)
        == torus((3, 4), np.array([False, False]))
        == torus((3, 4), [False] * 2)
    )


def test_the_four_by_four_torus_is_the_hypercube():
    assert nx.is_isomorphic(torus((4, 4)).to_networkx(), nx.hypercube_graph(4))


def test_dims_may_be_any_sequence():
    assert torus([2, 3]) == torus((2, 3)) == torus(np.array([2, 3]))


@pytest.mark.parametrize("dims", [(4, 4, 4), (8, 4, 12), (4, 16, 4)])
def test_optical_switches_join_opposite_faces_of_cubes(dims):
    """Each of 48 switches has both faces of each cube in one dimension, at one chip of the face."""
    t = tpu_v4(dims)
    place = np.stack(np.unravel_index(np.arange(t.num_nodes), dims), axis=1)
    cubes = t.num_nodes // 64
    optical = t.edge_attributes["optical"]
    assert np.count_nonzero(optical) == cubes * 96 // 2
    assert (
        sorted(edge for switch in t.shared_risk for edge in switch.edges)
        == np.flatnonzero(optical).tolist()
    )
    assert len(t.shared_risk) == 48
    for switch in t.shared_risk:
        ends = t.edges[list(switch.edges)]
        assert (np.bincount(t.pod[ends].ravel()) == 2).all()  # both faces of every cube
        axis = {
            int(a)
            for a in np.argwhere((place[ends[:, 0]] != place[ends[:, 1]]).any(axis=0)).ravel()
        }
        assert len(axis) == 1
        rest = np.delete(place[ends.ravel()] % 4, axis.pop(), axis=1)
        assert len(np.unique(rest, axis=0)) == 1
    assert (t.pod[t.edges[~optical, 0]] == t.pod[t.edges[~optical, 1]]).all()


def test_any_cubes_make_the_same_slice():
    # cube 3 has failed
    first, other = tpu_v4((4, 8, 4), cubes=(7, 3)), tpu_v4((4, 8, 4), cubes=(7, 60))
    assert (first.edges == other.edges).all()
    assert first.shared_risk == other.shared_risk
    assert set(first.pod.tolist()) == {7, 3}
    moved = first.pod == 3
    assert (other.pod[moved] == 60).all()
    assert (other.pod[~moved] == 7).all()


@pytest.mark.parametrize(("a", "b", "x", "y"), [(2, 3, 2, 2), (1, 4, 3, 1), (3, 3, 1, 2)])
def test_boards_are_meshes_and_their_edges_meet_the_switches_of_rows_and_columns(a, b, x, y):
    rows, columns = b * y, a * x
    wanted = []
    for i in range(rows):
        for j in range(columns):
            here = i * columns + j
            east = here + 1 if (j + 1) % a else rows * columns + i
            south = here + columns if (i + 1) % b else rows * columns + rows + j
            wanted += [(here, east), (here, south)]
            wanted += [(here, rows * columns + i)] * (j % a == 0)
            wanted += [(here, rows * columns + rows + j)] * (i % b == 0)
    t = hammingmesh(a, b, x, y)
    assert np.repeat(t.edges, t.multiplicity, axis=0).tolist() == sorted(map(list, wanted))
