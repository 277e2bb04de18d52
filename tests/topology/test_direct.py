import math
from functools import reduce

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, strategies as st

from relparallel.metrics import bisection, hop_statistics
from relparallel.topology import check, describe, hammingmesh, torus, tpu_v4
from relparallel.topology.routing import disjoint_paths

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


@given(boxes.filter(lambda box: max(k for k, _ in box) > 1))
def test_distances_with_open_dimensions_agree_with_the_closed_forms(box):
    dims, wrap = zip(*box, strict=True)
    form, found = describe("torus", dims=dims, wrap=wrap), hop_statistics(torus(dims, wrap))
    assert (form.mean_hops, form.diameter) == (pytest.approx(found.mean, rel=1e-13), found.diameter)


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


@pytest.mark.parametrize("wrap", [None, 1, "yes", (True,), (True, 1), (True, None), [True] * 3])
def test_bad_flags_are_named(wrap):
    with pytest.raises((TypeError, ValueError), match="wrap must"):
        torus((3, 4), wrap)


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


@pytest.mark.parametrize("dims", [(4, 4, 4), (4, 4, 8), (8, 4, 12)])
def test_a_slice_is_the_torus_and_agrees_with_its_closed_forms(dims):
    t = tpu_v4(dims)
    assert (t.edges == torus(dims).edges).all()
    check(t)
    form, hops = describe("tpu_v4", dims=dims), hop_statistics(t)
    assert (form.mean_hops, form.diameter) == (pytest.approx(hops.mean, rel=1e-13), hops.diameter)


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


@pytest.mark.parametrize(
    ("dims", "cubes", "error"),
    [
        ((4, 4), None, "dims must be three multiples of 4"),
        ((4, 4, 6), None, "dims must be three multiples of 4"),
        ((16, 16, 20), None, "dims must be three multiples of 4, at most 64 cubes"),
        ((4, 4, 4), (64,), "cubes must be an integer in .0, 63., got 64"),
        ((4, 4, 8), (1, 1), "cubes must be 2 different cubes"),
        ((4, 4, 8), (1,), "cubes must be 2 different cubes"),
        ((4, 4, 4), 1, "cubes must be"),
    ],
)
def test_bad_slices_are_named(dims, cubes, error):
    with pytest.raises((TypeError, ValueError), match=error):
        tpu_v4(dims, cubes)


sizes = st.integers(1, 5)


@given(sizes, sizes, st.integers(1, 3), st.integers(1, 3))
def test_hammingmesh_agrees_with_its_closed_forms(a, b, x, y):
    t = hammingmesh(a, b, x, y)
    check(t)
    if t.num_hosts > 1:
        form, hops = describe("hammingmesh", a=a, b=b, x=x, y=y), hop_statistics(t)
        assert (form.mean_hops, form.diameter) == (
            pytest.approx(hops.mean, rel=1e-13),
            hops.diameter,
        )


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


@pytest.mark.parametrize(
    ("shape", "links", "diameter", "mean"),
    [((2, 2, 16, 16), 3072, 4, 3.816227), ((4, 4, 8, 8), 2560, 8, 5.536657)],
)
def test_hammingmeshes_of_the_paper(shape, links, diameter, mean):
    t = hammingmesh(*shape)
    hops = hop_statistics(t)
    assert (t.num_hosts, t.num_switches, t.num_links) == (1024, 64, links)
    assert (hops.diameter, round(hops.mean, 6)) == (diameter, mean)


@pytest.mark.parametrize(
    "shape", [(0, 1, 1, 1), (1, -1, 1, 1), (1, 1, 1.5, 1), (1, 1, 1, None), (9999, 9999, 9, 9)]
)
def test_bad_hammingmeshes_are_named(shape):
    with pytest.raises((TypeError, ValueError), match=r"[abxy] must"):
        hammingmesh(*shape)
