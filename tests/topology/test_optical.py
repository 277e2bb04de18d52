from dataclasses import replace

import numpy as np
import pytest

from chapters.s22.moved_circuits import reconfigure
from relparallel.metrics import hop_statistics
from relparallel.topology import (
    bill_of_materials,
    c_through,
    check,
    fat_tree,
    helios,
    leaf_spine,
    tpu_v4,
)
from relparallel.topology.parts import LINK_CAPACITY


def test_the_packet_part_of_helios_is_a_leaf_spine_network():
    t = helios(pods=4, hosts_per_pod=16, electrical=0.5, optical=0.5)
    assert np.array_equal(t.edges, leaf_spine(4, 8, 16).edges)
    assert t.kinds == ("host", "pod switch", "core")


@pytest.mark.parametrize(
    ("hosts", "electrical", "optical", "core", "fibres"),
    [
        (1024, 0.10, 0.90, 104, 115),
        (1024, 0.10, 0.0, 104, 0),
        (1024, 1.0, 0.0, 1024, 0),
        (16, 0.5, 0.5, 8, 1),
        (4, 0.5, 0.5, 4, 0),
        (80, 0.3, 0.7, 24, 7),
    ],
)
def test_bundles_of_helios_are_whole_and_no_port_is_used_twice(
    hosts, electrical, optical, core, fibres
):
    """Electrical uplinks are rounded up and optical ones down, as its bill of materials does."""
    t = helios(2, hosts, electrical, optical)
    assert np.count_nonzero(t.is_kind("core")) == core
    for circuits in (fibres, fibres + 1):
        pairs = [(0, 1)] * circuits
        if circuits > fibres:
            with pytest.raises(ValueError, match=f"every group at most {fibres} circuits"):
                reconfigure(t, pairs)
        else:
            assert reconfigure(t, pairs).num_links == t.num_links + fibres
    bill = bill_of_materials(
        "helios", pods=2, hosts_per_pod=hosts, electrical=electrical, optical=optical
    )
    assert bill.cables == 2 * (core + fibres)


def test_c_through_is_a_tree():
    t = c_through(aggregations=3, racks_per_aggregation=2, hosts_per_rack=4)
    assert t.num_links == t.num_nodes - 1
    assert (t.num_hosts, t.num_switches) == (24, 10)
    assert check(t).loc["components", "measured"] == 1


def test_circuits_join_the_switches_of_the_groups_and_shorten_their_paths():
    tree = c_through(aggregations=2, racks_per_aggregation=2, hosts_per_rack=4)
    t = reconfigure(tree, [(0, 3), (2, 1)])
    racks = np.flatnonzero(t.is_kind("tor"))
    added = {tuple(e) for e in t.edges.tolist()} - {tuple(e) for e in tree.edges.tolist()}
    assert added == {(racks[0], racks[3]), (racks[1], racks[2])}
    assert hop_statistics(tree).histogram[6] == 2 * 8 * 8
    shorter = hop_statistics(t).histogram
    assert (shorter[3], shorter[4]) == (2 * 2 * 4 * 4, 2 * 2 * 4 * 4)
    assert 6 not in shorter


def test_a_circuit_of_helios_has_all_wavelengths_of_its_fibre():
    t = helios(pods=4, hosts_per_pod=32, electrical=0.5, optical=0.5, wavelengths=4)
    joined = reconfigure(t, [(0, 1), (1, 0), (2, 3)])
    pods = np.flatnonzero(t.is_kind("pod switch"))
    circuit = np.isin(joined.edges, pods).all(axis=1)
    assert joined.multiplicity[circuit].tolist() == [2, 1]
    assert set(joined.capacity[circuit]) == {4 * LINK_CAPACITY}
    assert np.array_equal(joined.edges[~circuit], t.edges)
    assert np.array_equal(joined.capacity[~circuit], t.capacity)


def test_rewiring_takes_old_circuits_down_and_keeps_all_else():
    tree = c_through(2, 2, 2)
    slow = replace(tree, latency=np.full(len(tree.edges), 1e-6))
    once = reconfigure(slow, [(0, 1)])
    assert reconfigure(once, [(2, 3)]) == reconfigure(slow, [(2, 3)])
    assert reconfigure(once, []) == slow
    assert np.count_nonzero(once.latency) == len(tree.edges)


def rings(dims, cubes):
    """Circuits of a slice: each cube to the next along each dimension, the last to the first."""
    place = np.array(cubes).reshape([d // 4 for d in dims])
    return [
        (axis, i, j)
        for axis in range(3)
        for i, j in zip(
            place.ravel().tolist(), np.roll(place, -1, axis).ravel().tolist(), strict=True
        )
    ]


@pytest.mark.parametrize("dims", [(4, 4, 4), (4, 8, 4), (8, 8, 12)])
def test_rings_of_cubes_are_the_torus_of_the_slice(dims):
    """Whatever the cubes are: the builder, which wires the torus itself, and the circuits agree."""
    cubes = np.random.default_rng(5).permutation(64)[: np.prod(dims) // 64].tolist()
    t = tpu_v4(dims, cubes)
    assert reconfigure(t, rings(dims, cubes)) == t
    assert reconfigure(reconfigure(t, []), rings(dims, cubes)) == t
    assert reconfigure(t, []).num_links == 144 * len(cubes)


def test_a_twist_of_the_last_circuits_shortens_a_long_slice():
    """Camarero et al., "Lattice graphs for high-scale interconnection topologies": k x 2k tori gain
    with a shift of k when they wrap round."""
    t = tpu_v4((8, 4, 4), (0, 1))
    shifted = [(0, 0, 1), (0, 1, 0), (1, 0, 1), (1, 1, 0), (2, 0, 0), (2, 1, 1)]
    twisted = reconfigure(t, shifted)
    assert twisted.num_links == t.num_links
    assert set(twisted.degrees) == {6}
    assert hop_statistics(twisted).mean < hop_statistics(t).mean
    assert [len(risk.edges) for risk in twisted.shared_risk] == [2] * 48


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (
            lambda: reconfigure(fat_tree(4), [(0, 1)]),
            "topology must be one of the designs helios, c_through, tpu_v4",
        ),
        (
            lambda: reconfigure(c_through(2, 2, 2), [(0, 4)]),
            "matching must be integers >= 0 and <= 3",
        ),
        (
            lambda: reconfigure(c_through(2, 2, 2), [(1, 1)]),
            "matching must join two different groups",
        ),
        (
            lambda: reconfigure(c_through(2, 2, 2), [(0, 1), (1, 2)]),
            "every group at most 1",
        ),
        (lambda: reconfigure(c_through(2, 2, 2), [0, 1]), "matching must be"),
        (lambda: reconfigure(tpu_v4((4, 4, 8)), [(0, 1)]), "matching must be"),
        (lambda: reconfigure(tpu_v4((4, 4, 8)), [(3, 0, 1)]), "dimensions 0 to 2 and cubes among"),
        (lambda: reconfigure(tpu_v4((4, 4, 8)), [(0, 0, 2)]), "dimensions 0 to 2 and cubes among"),
        (
            lambda: reconfigure(tpu_v4((4, 4, 8)), [(0, 0, 1), (0, 0, 0)]),
            "every face in one circuit",
        ),
        (
            lambda: reconfigure(tpu_v4((4, 4, 8)), [(2, 0, 1), (2, 1, 1)]),
            "every face in one circuit",
        ),
    ],
)
def test_bad_arguments_are_named(call, error):
    with pytest.raises((TypeError, ValueError), match=error):
        call()
