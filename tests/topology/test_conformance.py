"""Every design is what its closed forms say, and says what it refuses."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import block_array, csr_array, eye_array

from relparallel import topology
from relparallel.metrics import hop_statistics
from relparallel.topology import (
    Design,
    Topology,
    aspen,
    bcube,
    check,
    describe,
    f10,
    fat_tree,
    helios,
    leaf_spine,
    mdcube,
    torus,
    vl2,
)
from small_networks import agrees, small_networks

few, some = st.integers(1, 4), st.integers(1, 5)
BOX = st.lists(st.tuples(st.integers(1, 7), st.booleans()), min_size=1, max_size=3)
DRAWN = {
    "bcube": (st.integers(2, 6), st.integers(0, 2)),
    "leaf_spine": (some, few, few),
    "dragonfly": (few, few, few, st.sampled_from(["consecutive", "palmtree"])),
    "dragonfly_plus": (few, few, few, few),
    "hyperx": (st.lists(few, min_size=1, max_size=3).map(tuple), st.integers(0, 3), few),
    "rail_only": (st.integers(1, 8), few, st.sampled_from([8, 10])),
    "hammingmesh": (some, some, few, few),
}


@pytest.mark.parametrize("t", small_networks(fewest_hosts=1), ids=repr)
def test_every_design_agrees_with_its_closed_forms(t):
    agrees(t)


@pytest.mark.parametrize("name", DRAWN)
@given(data=st.data())
def test_designs_of_any_size_agree_with_their_closed_forms(name, data):
    agrees(getattr(topology, name)(*data.draw(st.tuples(*DRAWN[name]))))


@given(BOX)
def test_tori_of_any_sides_agree_with_their_closed_forms(box):
    agrees(torus(*zip(*box, strict=True)))


def test_mean_distances_have_closed_forms_but_in_recursive_and_random_designs():
    forms = [describe(t.meta.name, **t.meta.parameters) for t in small_networks()]
    open_ = [form for form in forms if form.mean_hops is None]
    random = {"jellyfish", "xpander"}
    assert {form.design for form in open_} == {"dcell", "ficonn", "mdcube", "dragonfly"} | random
    assert all(form.parameters["k"] > 0 for form in open_ if form.design in ("dcell", "ficonn"))
    without = {form.design for form in forms if form.diameter is None}
    assert without == {"dcell", "ficonn", "mdcube"} | random


@pytest.mark.parametrize(
    ("name", "shape", "mean", "diameter"),
    [
        ("vl2", (8, 6), 5.179916, 6),
        ("ficonn", (4, 2), 6.776596, 11),
        ("ficonn", (8, 2), 8.609805, 11),
        ("mdcube", (4, 1, (5, 5)), 7.315789, 10),
        ("hammingmesh", (2, 2, 16, 16), 3.816227, 4),
        ("hammingmesh", (4, 4, 8, 8), 5.536657, 8),
        ("dgx_superpod", (2,), 3.851272, 4),
        ("dragonfly", (2, 4, 2), 4.319249, 5),
    ],
)
def test_distances_that_others_measured(name, shape, mean, diameter):
    found = hop_statistics(getattr(topology, name)(*shape))
    assert (found.mean, found.diameter) == (pytest.approx(mean, abs=5e-7), diameter)


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
    assert describe(t.meta.name, **t.meta.parameters).bisection == narrowest_halving(t)


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


TOO_MANY = "must give at most 67108864 nodes and cables to build"


@pytest.mark.parametrize(
    ("name", "shape", "error"),
    [
        ("fat_tree", (3,), "k must be even, got 3: a pod has k/2 edge"),
        ("fat_tree", (0,), "k must be an integer >= 2"),
        ("fat_tree", (2**20,), f"k {TOO_MANY}"),
        ("f10", (7,), "k must be even"),
        ("leaf_spine", (0, 2, 2), "leaves must be an integer >= 1"),
        ("leaf_spine", (2, 0, 2), "spines must be an integer >= 1"),
        ("leaf_spine", (2, 2, 0), "hosts_per_leaf must be an integer >= 1"),
        ("leaf_spine", (10**5, 10**5, 1), f"leaves, spines, hosts_per_leaf {TOO_MANY}"),
        ("vl2", (3, 4), "d_a must be even, got 3: VL2 halves"),
        ("vl2", (4, 0), "d_i must be an integer >= 2"),
        ("vl2", (10**4, 10**4), f"d_a, d_i {TOO_MANY}"),
        ("three_tier", (0, 1, 1, 1), "cores must be"),
        ("aspen", (1, 4, ()), "levels must be"),
        ("aspen", (3, 5, (0, 0)), "k must be even, got 5: half of"),
        ("aspen", (3, 4, (0,)), "fault_tolerance must be 2 integers"),
        ("aspen", (3, 4, (0, 2)), r"fault_tolerance \+ 1 must divide"),
        ("aspen", (2, 6, (3,)), r"fault_tolerance \+ 1 must divide"),
        ("aspen", (3, 4, (0, -1)), "fault_tolerance must be an integer >= 0"),
        ("bcube", (1, 1), "n must be an integer >= 2"),
        ("bcube", (10**9, 1), f"n, k {TOO_MANY} .* with n=1000000000, k=1"),
        ("bcube", (4, 64), "k must be"),
        ("dcell", (1, 1), "n must be an integer >= 2"),
        ("dcell", (10**9, 1), f"n, k {TOO_MANY}"),
        ("dcell", (4, 64), "k must be"),
        ("ficonn", (5, 1), "n must be even, got 5: FiConn"),
        ("ficonn", (4, 10), "k must be an integer in"),
        ("mdcube", (4, 1, (10,)), r"dims must have sum\(m - 1\) <= .* = 8 uplinks"),
        ("mdcube", (4, 1, (5, 6)), r"dims must have sum\(m - 1\)"),
        ("mdcube", (4, 1, ()), "dims must be one or more integers"),
        ("mdcube", (48, 2, (600,)), f"n, k, dims {TOO_MANY}"),
        ("torus", ((),), "dims must"),
        ("torus", ((0,),), "dims must be an integer >= 1"),
        ("torus", ((True,),), "dims must"),
        ("torus", ({4, 5},), "dims must"),
        ("torus", ("44",), "dims must"),
        ("torus", ((10**6, 10**6),), "dims must"),
        ("torus", ((3, 4), (True,)), "wrap must"),
        ("torus", ((3, 4), (True, 1)), "wrap must"),
        ("torus", ((3, 4), 1), "wrap must"),
        ("tpu_v4", ((4, 4),), "dims must be three multiples of 4"),
        ("tpu_v4", ((4, 4, 6),), "dims must be three multiples of 4"),
        ("tpu_v4", ((16, 16, 20),), "dims must be three multiples of 4, at most 64 cubes"),
        ("tpu_v4", ((4, 4, 4), (64,)), "cubes must be an integer in .0, 63., got 64"),
        ("tpu_v4", ((4, 4, 8), (1, 1)), "cubes must be 2 different cubes"),
        ("tpu_v4", ((4, 4, 8), (1,)), "cubes must be 2 different cubes"),
        ("tpu_v4", ((4, 4, 4), 1), "cubes must be"),
        ("hammingmesh", (0, 1, 1, 1), "a must"),
        ("hammingmesh", (9999, 9999, 9, 9), "y must"),
        ("dragonfly", (0, 1, 1), "p must be an integer >= 1, got 0"),
        ("dragonfly", (1, 1, 1, "star"), "arrangement must be one of 'consecutive', 'palmtree'"),
        ("dragonfly", (1, 10**5, 10**5), f"p, a, h, arrangement {TOO_MANY}"),
        ("dragonfly_plus", (0, 1, 1, 1), "l must be"),
        ("hyperx", ((), 1), "dims must be"),
        ("hyperx", ((2, 0), 1), "dims must be"),
        ("hyperx", ((2, 2), 1, 0), "k must be"),
        ("slim_fly", (2, 1), "q must"),
        ("slim_fly", (8209, 1), "q must"),
        ("slim_fly", (10**40, 1), "q must"),
        ("slim_fly", (5, 10**9), "p must"),
        ("polarfly", (1,), "q must"),
        ("jellyfish", (5, 3, 3), "n must be more than r, and n r even.*got n=5, r=3"),
        ("jellyfish", (4, 5, 5), "n must be more than r"),
        ("jellyfish", (8, 3, 4), "k must be at least r.*got k=3, r=4"),
        ("jellyfish", (8, 3, 2), "r must be an integer >= 3"),
        ("jellyfish", (10**9, 4, 4), f"n, k, r {TOO_MANY}"),
        ("xpander", (2, 3, 1), "d must be an integer >= 3"),
        ("xpander", (3, 0, 1), "k must be"),
        ("dgx_superpod", (3,), "scalable_units must be one of 1, 2, 4, 8, 16, 32, 64, 128, got 3"),
        ("dgx_superpod", (2, 1), "nvswitch_detail must be True or False"),
        ("hpn7", (16,), "segments must be an integer in .1, 15., got 16: a pod's aggregation"),
        ("meta_roce", (0,), "pods must be an integer >= 1, got 0"),
        ("meta_roce", (10**6,), f"pods {TOO_MANY}"),
        ("nvl72", (9,), "racks must fill an even number of leaves.* 144.*got 9, 2.25 leaves"),
        ("nvl72", (0,), "racks must be"),
        ("rail_only", (96, 8, 64), "domains must fill an even number.* 64.*got 96, 3 leaves"),
        ("rail_only", (4, 0), "gpus_per_domain must be"),
        ("rail_only", (4, 8, 7), "switch_ports must be even"),
        ("rail_only", (4, 10**9), f"domains, gpus_per_domain, switch_ports {TOO_MANY}"),
        ("helios", (4, 16, 0.0, 0.5), "electrical must be above 0"),
        ("helios", (4, 16, 0.6, 0.5), r"electrical \+ optical must be at most 1"),
        ("helios", (4, 16, 0.5, 1.5), "optical must be a probability"),
        ("helios", (4, 0, 0.5, 0.5), "hosts_per_pod must be"),
        ("helios", (4, 8, 0.5, 0.5, 0), "wavelengths must be"),
        ("c_through", (2, 2, 0), "hosts_per_rack must be"),
    ],
)
def test_sizes_that_break_a_rule_of_the_paper_are_named(name, shape, error):
    random = (np.random.default_rng(1),) if name in ("jellyfish", "xpander") else ()
    with pytest.raises((TypeError, ValueError), match=error):
        getattr(topology, name)(*shape, *random)


@pytest.mark.parametrize(
    ("design", "parameters", "error"),
    [
        ("thick_tree", {"q": 5}, "design must be one of .*'fat_tree'"),
        ("bcube", {"n": 4}, "parameters of bcube must be n, k, got n"),
        ("bcube", {"n": 4, "k": 1, "p": 1}, "parameters of bcube must be n, k, got n, k, p"),
        ("fat_tree", {"k": 3}, "k must be even, got 3: a pod has k/2 edge"),
    ],
)
def test_what_is_no_design_is_not_described(design, parameters, error):
    with pytest.raises(ValueError, match=error):
        describe(design, **parameters)


def test_only_designs_with_closed_forms_are_checked():
    cable = Topology.of(edges=[(0, 1)], node_kind={"server": 2}, meta=Design(name="cable"))
    with pytest.raises(ValueError, match=r"topology.meta.name must be one of"):
        check(cable)


def test_sizes_too_large_to_build_are_described():
    assert describe("fat_tree", k=2000).links == 6_000_000_000
    assert describe("xpander", d=31, k=300, p=10).links == 9600 * (10 + 31 / 2)
    table = describe("dcell", n=4, k=2).to_frame()["value"]
    assert table["hosts"] == 420
    assert "diameter" not in table.index
