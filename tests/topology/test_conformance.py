from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import block_array, csr_array, eye_array

from relparallel.metrics import hop_statistics
from relparallel.topology import (
    Design,
    Topology,
    aspen,
    bcube,
    c_through,
    check,
    dcell,
    describe,
    f10,
    fat_tree,
    ficonn,
    helios,
    leaf_spine,
    mdcube,
    three_tier,
    torus,
    vl2,
)
from relparallel.topology.description import Description

SMALL = [
    *(fat_tree(k) for k in (2, 4, 6, 8)),
    *(leaf_spine(*shape) for shape in ((1, 1, 1), (1, 2, 3), (2, 1, 1), (4, 2, 3), (3, 5, 2))),
    *(bcube(n, k) for n, k in ((2, 0), (2, 3), (3, 2), (4, 1), (5, 0))),
    *(dcell(n, k) for n, k in ((2, 0), (2, 1), (2, 2), (4, 1), (3, 2))),
    *(torus(dims) for dims in ((1,), (2,), (5,), (4, 4), (2, 3), (3, 1, 2), (4, 3, 2))),
    *(f10(k) for k in (2, 4, 6)),
    *(vl2(*ports) for ports in ((2, 2), (2, 6), (4, 4), (8, 6))),
    *(three_tier(*shape) for shape in ((1, 1, 1, 1), (2, 3, 4, 5), (4, 2, 1, 3))),
    aspen(2, 4, (0,)),
    aspen(3, 4, (1, 0)),
    aspen(3, 8, (0, 3)),
    aspen(4, 4, (0, 1, 0)),
    aspen(4, 6, (0, 0, 0)),
    *(ficonn(n, k) for n, k in ((2, 0), (2, 1), (2, 3), (4, 2), (6, 1))),
    *(
        mdcube(*shape)
        for shape in ((4, 1, (5, 5)), (4, 1, (9,)), (2, 1, (3, 2)), (3, 0, (2,)), (2, 2, (1, 1)))
    ),
    helios(4, 16, 0.5, 0.5),
    helios(1, 3, 0.1, 0.0, 1),
    c_through(3, 2, 4),
    c_through(1, 1, 1),
]


def closed(t):
    return describe(t.meta.name, **t.meta.parameters)


@pytest.mark.parametrize("t", SMALL, ids=repr)
def test_every_design_agrees_with_its_closed_forms(t):
    table = check(t)
    assert (table["described"] == table["measured"]).all()
    form = closed(t)
    assert (form.hosts, form.switches, form.links) == (t.num_hosts, t.num_switches, t.num_links)


@pytest.mark.parametrize("t", [t for t in SMALL if t.num_hosts > 1], ids=repr)
def test_distances_agree_with_the_closed_forms(t):
    form, measured = closed(t), hop_statistics(t)
    assert form.diameter in (None, measured.diameter)
    assert measured.diameter <= form.diameter_bound
    assert form.mean_hops is None or form.mean_hops == pytest.approx(measured.mean, rel=1e-13)
    recursive = t.meta.name in ("dcell", "ficonn") and t.meta.parameters["k"] > 0
    joined = t.meta.name == "mdcube" and max(t.meta.parameters["dims"]) > 1
    assert (form.diameter is None) == (recursive or joined)


@pytest.mark.parametrize(
    ("t", "mean", "diameter"),
    [
        (vl2(8, 6), 5.179916, 6),
        (f10(8), 5.716535, 6),
        (ficonn(4, 2), 6.776596, 11),
        (ficonn(8, 2), 8.609805, 11),
        (mdcube(4, 1, (5, 5)), 7.315789, 10),
    ],
    ids=repr,
)
def test_distances_that_others_measured(t, mean, diameter):
    found = hop_statistics(t)
    assert (found.mean, found.diameter) == (pytest.approx(mean, abs=5e-7), diameter)


@given(st.integers(2, 6), st.integers(0, 2))
def test_the_mean_distance_of_bcube(n, k):
    assert describe("bcube", n=n, k=k).mean_hops == pytest.approx(
        hop_statistics(bcube(n, k)).mean, rel=1e-13
    )


@given(st.lists(st.integers(1, 7), min_size=1, max_size=3).filter(lambda dims: max(dims) > 1))
def test_the_mean_distance_of_a_torus(dims):
    measured = hop_statistics(torus(dims))
    form = describe("torus", dims=dims)
    assert (form.mean_hops, form.diameter) == (
        pytest.approx(measured.mean, rel=1e-13),
        measured.diameter,
    )


@given(st.integers(1, 5), st.integers(1, 4), st.integers(1, 4))
def test_the_mean_distance_of_a_leaf_spine_network(leaves, spines, hosts):
    form = describe("leaf_spine", leaves=leaves, spines=spines, hosts_per_leaf=hosts)
    if leaves * hosts == 1:
        assert form.mean_hops is None
    else:
        assert form.mean_hops == pytest.approx(
            hop_statistics(leaf_spine(leaves, spines, hosts)).mean, rel=1e-13
        )


def narrowest_halving(t):
    """Fewest cables between two halves of the hosts, by integer programming."""
    m, n = len(t.edges), t.num_nodes
    rows = np.arange(m)
    signs = csr_array(
        (np.tile([1.0, -1.0], (m, 1)).ravel(), (np.repeat(rows, 2), t.edges.ravel())), shape=(m, n)
    )
    crossing = block_array([[signs, -eye_array(m)], [-signs, -eye_array(m)]])
    half = LinearConstraint(
        np.concatenate([t.endpoint, np.zeros(m)]), t.num_hosts // 2, t.num_hosts // 2
    )
    lower, upper = np.zeros(n + m), np.ones(n + m)
    upper[int(t.hosts[0])] = 0  # one of the two mirror images
    found = milp(
        np.concatenate([np.zeros(n), t.multiplicity]),
        constraints=[half, LinearConstraint(crossing, ub=0)],
        integrality=np.concatenate([np.ones(n), np.zeros(m)]),
        bounds=Bounds(lower, upper),
    )
    return round(found.fun)


@pytest.mark.parametrize(
    "t",
    [
        fat_tree(2),
        fat_tree(4),
        leaf_spine(4, 2, 3),
        leaf_spine(4, 3, 2),
        leaf_spine(2, 4, 2),
        leaf_spine(3, 2, 2),
        bcube(2, 2),
        bcube(4, 1),
        torus((2,)),
        torus((2, 2, 2)),
        torus((4, 2)),
        torus((4, 3)),
        torus((6, 3)),
        torus((4, 4)),
        f10(4),
        vl2(2, 2),
        vl2(2, 6),
        vl2(4, 2),
        vl2(4, 4),
        aspen(2, 4, (0,)),
        aspen(3, 4, (0, 0)),
        mdcube(2, 2, (1,)),
        helios(4, 4, 0.5, 0.5, 2),
    ],
    ids=repr,
)
def test_no_halving_of_the_hosts_is_narrower_than_the_bisection(t):
    assert closed(t).bisection == narrowest_halving(t)


@pytest.mark.parametrize(
    ("design", "parameters"),
    [
        ("bcube", {"n": 3, "k": 1}),
        ("torus", {"dims": (5, 4)}),
        ("dcell", {"n": 4, "k": 1}),
        ("ficonn", {"n": 4, "k": 2}),
        ("mdcube", {"n": 4, "k": 1, "dims": (5, 5)}),
        ("aspen", {"levels": 3, "k": 4, "fault_tolerance": (1, 0)}),
    ],
)
def test_a_bisection_without_closed_form_is_none(design, parameters):
    assert describe(design, **parameters).bisection is None


def test_a_bcube_with_the_right_counts_and_wrong_wiring_is_refused():
    """A switch's range of servers forgets digits above its level, as in a published generator."""
    n, k = 4, 2
    cables = [
        (server, n ** (k + 1) + level * n**k + i)
        for level in range(k + 1)
        for i in range(n**k)
        for server in range(i, i + n ** (level + 1), n**level)
    ]
    wrong = Topology.of(
        edges=cables,
        node_kind={"server": n ** (k + 1), "switch": (k + 1) * n**k},
        meta=bcube(n, k).meta,
    )
    assert (wrong.num_hosts, wrong.num_switches, wrong.num_links) == (64, 48, 192)
    assert wrong.degrees.sum() == bcube(n, k).degrees.sum()
    with pytest.raises(
        ValueError, match=r"topology must agree with the closed forms.*server degree"
    ):
        check(wrong)


def test_two_rings_are_no_torus_even_with_the_right_degrees():
    ring = np.array([(i, (i + 1) % 4) for i in range(4)])
    two = Topology.of(
        edges=np.concatenate([ring, ring + 4]),
        node_kind={"node": 8},
        meta=torus((8,)).meta,
        pod=torus((8,)).pod,
    )
    with pytest.raises(
        ValueError, match=r"components 2 instead of 1; disjoint paths of hosts 0 instead of 2"
    ):
        check(two)


def test_a_missing_cable_and_a_missing_kind_are_named():
    t = fat_tree(4)
    cut = replace(
        t,
        edges=t.edges[1:],
        multiplicity=t.multiplicity[1:],
        capacity=t.capacity[1:],
        latency=t.latency[1:],
    )
    with pytest.raises(
        ValueError, match=r"host degree .0, 1. instead of 1.*links 47 instead of 48"
    ):
        check(cut)
    renamed = replace(t, kinds=("host", "edge", "aggregation", "spine"))
    with pytest.raises(ValueError, match="core nodes 0 instead of 4"):
        check(renamed)


def test_closed_forms_need_no_building():
    assert describe("dcell", n=6, k=3).hosts == 3_263_442
    assert describe("fat_tree", k=2000).links == 6_000_000_000
    table = describe("dcell", n=4, k=2).to_frame()["value"]
    assert table["hosts"] == 420
    assert "diameter" not in table.index


@pytest.mark.parametrize(
    ("design", "parameters", "error"),
    [
        ("thick_tree", {"q": 5}, "design must be one of .*'fat_tree'"),
        (None, {}, "design must be one of"),
        ([], {}, "design must be one of"),
        ("bcube", {"n": 4}, "parameters of bcube must be n, k, got n"),
        ("bcube", {"n": 4, "k": 1, "p": 1}, "parameters of bcube must be n, k, got n, k, p"),
        ("fat_tree", {"k": 3}, "k must be even, got 3: a pod has k/2 edge"),
        ("torus", {"dims": (0,)}, "dims must be an integer >= 1"),
        ("dcell", {"n": 1, "k": 1}, "n must be an integer >= 2"),
        ("leaf_spine", {"leaves": 1, "spines": 1, "hosts_per_leaf": -1}, "hosts_per_leaf must be"),
    ],
)
def test_bad_designs_are_named(design, parameters, error):
    with pytest.raises((TypeError, ValueError), match=error):
        describe(design, **parameters)


def test_only_designs_with_closed_forms_are_checked():
    cable = Topology.of(edges=[(0, 1)], node_kind={"server": 2}, meta=Design(name="cable"))
    with pytest.raises(ValueError, match=r"topology.meta.name must be one of"):
        check(cable)
    with pytest.raises(TypeError, match="topology must be Topology"):
        check("fat_tree")
    assert isinstance(describe("fat_tree", k=4), Description)
