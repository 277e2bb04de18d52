import pickle
from dataclasses import replace

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, strategies as st

import relparallel as rp
from relparallel.topology import Design, SharedRisk, Topology, fat_tree, names, torus
from relparallel.topology.parts import LINK_CAPACITY
from valid_calls import CALLS


def trunk(**changes):
    """Three servers in a row; the first two are joined by two cables."""
    edges = changes.pop("edges", [(1, 0), (2, 1), (0, 1)])
    kinds = changes.pop("node_kind", {"server": 3})
    return Topology.of(edges=edges, node_kind=kinds, meta=Design(name="trunk"), **changes)


def test_parallel_cables_are_one_pair_for_hops_and_two_cables_for_failures():
    t = trunk()
    assert t.edges.tolist() == [[0, 1], [1, 2]]
    assert t.multiplicity.tolist() == [2, 1]
    assert t.num_links == 3
    assert t.degrees.tolist() == [2, 3, 1]
    assert np.split(t.indices, t.indptr[1:-1])[1].tolist() == [0, 2]


@given(st.integers(1, 30), st.data())
def test_neighbour_lists_are_those_of_networkx_and_ascending(n, data):
    pair = st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)).filter(lambda p: p[0] != p[1])
    cables = data.draw(st.lists(pair, max_size=60)) if n > 1 else []
    t = trunk(edges=cables, node_kind={"server": n})
    graph = nx.Graph(cables)
    graph.add_nodes_from(range(n))
    rows = np.split(t.indices, t.indptr[1:-1])
    assert [row.tolist() for row in rows] == [sorted(graph[v]) for v in range(n)]
    assert t.num_links == len(cables)
    assert t.degrees.tolist() == [sum(v in c for c in cables) for v in range(n)]


def test_hosts_are_the_first_kind_and_switches_the_rest():
    t = trunk(node_kind={"server": 1, "switch": 2})
    assert (t.num_hosts, t.num_switches, t.num_nodes) == (1, 2, 3)
    assert t.hosts.tolist() == [0]
    assert t.switches.tolist() == [1, 2]
    assert t.is_kind("switch").tolist() == [False, True, True]
    assert t.tier.tolist() == [0, 1, 1]


def test_defaults_are_stated_numbers():
    t = trunk()
    assert set(t.capacity) == {LINK_CAPACITY} == {50e9}
    assert set(t.latency) == {0.0}
    assert t.transit.all()
    assert set(t.pod) == set(t.rail) == {-1}
    assert trunk(capacity=1.0, latency=2.0).latency.tolist() == [2.0, 2.0]


def test_kinds_may_share_a_hardware_class():
    t = fat_tree(4)
    assert t.device_classes == ("server", "switch")
    assert np.array_equal(t.device_class, (t.node_kind > 0).astype(int))


def test_arrays_are_read_only_and_topologies_pickle():
    t = fat_tree(4)
    with pytest.raises(ValueError, match="read-only"):
        t.capacity[0] = 1.0
    assert pickle.loads(pickle.dumps(t)) == t
    assert t != fat_tree(6)
    assert t != "fat_tree"
    assert replace(t, latency=t.latency + 1e-6) != t


def test_a_topology_does_not_change_with_the_arrays_it_was_made_of():
    transit, price = np.array([True, True, False]), np.array([1.0, 2.0])
    t = replace(trunk(transit=transit), edge_attributes={"price": price})
    transit[:], price[:] = False, 0.0
    assert (t.transit.tolist(), t.edge_attributes["price"].tolist()) == (
        [True, True, False],
        [1.0, 2.0],
    )


@pytest.mark.parametrize("field", ["tier", "transit", "multiplicity", "capacity"])
def test_an_empty_array_is_no_array_of_the_right_length(field):
    with pytest.raises((TypeError, ValueError), match=f"{field} must be"):
        replace(trunk(), **{field: []})


def test_labels_are_indices_and_unknown_ones_are_refused():
    t = fat_tree(4)
    assert t.index_of(7) == 7
    for bad in (36, -1, "7", None, [], float("nan"), 1e300):
        with pytest.raises(ValueError, match="label must be a node of <Topology fat_tree"):
            t.index_of(bad)


def test_shared_risks_are_sorted_groups_of_members():
    risks = [SharedRisk(name="rack", nodes=(2, 0)), SharedRisk(name="conduit", edges=(1,))]
    t = replace(trunk(), shared_risk=tuple(risks))
    assert [risk.name for risk in t.shared_risk] == ["conduit", "rack"]
    assert t.shared_risk[1].nodes == (0, 2)


@pytest.mark.parametrize(
    ("field", "value", "error"),
    [
        ("edges", [[1, 0], [1, 2]], "edges must be pairs u < v"),
        ("edges", [[1, 2], [0, 1]], "edges must be pairs u < v"),
        ("edges", [[0, 1], [0, 1]], "edges must be pairs u < v"),
        ("edges", [[0, 1], [1, 3]], "edges must be integers"),
        ("edges", [[0, 1, 2]], "edges must be integers"),
        ("edges", [[0.0, 1.0]], "edges must be integers"),
        ("edges", [[0, 1], [2]], "edges must be integers"),
        ("node_kind", [0, 1, 0], "node_kind must be integers"),
        ("kinds", (), "kinds must be distinct texts"),
        ("kinds", ("a", "a"), "kinds must be distinct texts"),
        ("tier", [0, 0], "tier must be integers"),
        ("pod", [-2, 0, 0], "pod must be integers >= -1"),
        ("transit", [1, 1, 1], "transit must be booleans"),
        ("endpoint", [True], "endpoint must be booleans"),
        ("device_class", [0, 0, 1], "device_class must be integers"),
        ("device_classes", (1,), "device_classes must be distinct texts"),
        ("multiplicity", [0, 1], "multiplicity must be integers >= 1"),
        ("capacity", [0.0, 1.0], "capacity must be a number > 0"),
        ("capacity", [1.0], "capacity must be numbers"),
        ("capacity", [np.inf, 1.0], "capacity must be a number"),
        ("latency", [-1.0, 0.0], "latency must be a number >= 0"),
        ("latency", [np.nan, 0.0], "latency must be a number"),
        ("labels", ("a", "a", "b"), "labels must be 3 distinct labels"),
        ("labels", ("a",), "labels must be 3 distinct labels"),
        ("shared_risk", (SharedRisk(name="x", nodes=(5,)),), "shared_risk nodes must be"),
        ("shared_risk", (SharedRisk(name="x", edges=(2,)),), "shared_risk edges must be"),
        (
            "shared_risk",
            (SharedRisk(name="x", nodes=(0,)),) * 2,
            "shared_risk must have distinct names",
        ),
        ("shared_risk", ("x",), "shared_risk must be SharedRisk"),
        ("node_attributes", {"a": [1]}, r"node_attributes\['a'\] must be values"),
        ("edge_attributes", {1: [1, 2]}, "edge_attributes must be str"),
    ],
)
def test_a_bad_field_is_named(field, value, error):
    with pytest.raises((TypeError, ValueError), match=error):
        replace(trunk(), **{field: value})


@pytest.mark.parametrize(
    ("argument", "value"),
    [
        ("edges", [(0, 0)]),
        ("edges", [(0, 3)]),
        ("edges", None),
        ("node_kind", {"server": -1}),
        ("node_kind", ["server"]),
        ("capacity", 0.0),
        ("capacity", "fast"),
        ("latency", float("nan")),
        ("device_class", "server"),
        ("transit", [True]),
    ],
)
def test_a_bad_argument_of_the_builder_is_named(argument, value):
    with pytest.raises((TypeError, ValueError), match=argument):
        trunk(**{argument: value})


@pytest.mark.parametrize("bad", [{"name": 1}, {"parameters": []}, {"paper": None}])
def test_a_design_names_its_bad_field(bad):
    with pytest.raises(TypeError, match=next(iter(bad))):
        Design(**{"name": "graph", **bad})


@pytest.mark.parametrize(
    "bad", [{}, {"nodes": (-1,)}, {"edges": ("a",)}, {"name": None, "nodes": (1,)}]
)
def test_a_shared_risk_names_its_bad_field(bad):
    with pytest.raises((TypeError, ValueError), match="|".join(bad) or "nodes"):
        SharedRisk(**{"name": "rack", **bad})


def test_a_single_node_without_cables_is_a_topology():
    t = torus((1,))
    assert (t.num_nodes, t.num_links, t.degrees.tolist()) == (1, 0, [0])
    assert t.indptr.tolist() == [0, 0]


def test_a_topology_needs_a_node():
    with pytest.raises(ValueError, match="node_kind must hold at least one node"):
        trunk(node_kind={"server": 0}, edges=[])


@pytest.mark.parametrize("name", names())
def test_no_builder_takes_true_for_one_or_a_broken_number(name):
    """Every integer of every design, alone or in a tuple."""
    good = CALLS[f"topology.{name}"]()
    for argument, value in good.items():
        first = value[0] if isinstance(value, tuple) else value
        if isinstance(first, bool) or not isinstance(first, int):
            continue
        for bad in (True, 2.0, -3):
            given = (bad, *value[1:]) if isinstance(value, tuple) else bad
            with pytest.raises((TypeError, ValueError), match=rf"\b{argument}\b"):
                getattr(rp.topology, name)(**good | {argument: given})


BROKEN_RULES = [
    ("fat_tree", {"k": 5}, "a pod has k/2 edge and k/2 aggregation switches"),
    ("f10", {"k": 5}, "a pod has k/2 edge and k/2 aggregation switches"),
    (
        "aspen",
        {"levels": 3, "k": 5, "fault_tolerance": (0, 0)},
        "half of an Aspen switch's ports go up",
    ),
    ("vl2", {"d_a": 4, "d_i": 5}, "VL2 halves its switches' ports"),
    ("ficonn", {"n": 3, "k": 1}, "first level takes half of a switch's servers"),
    ("mdcube", {"n": 4, "k": 1, "dims": (6, 5)}, r"sum\(m - 1\) <= \(k\+1\) n\^k = 8 uplinks"),
    ("slim_fly", {"q": 6, "p": 1}, "a prime power, for there is no field of other size"),
    ("slim_fly", {"q": 2, "p": 1}, r"4w \+ delta with delta -1, 0 or 1 and w >= 1"),
    ("polarfly", {"q": 12, "p": 1}, "a prime power, for there is no field of other size"),
    (
        "jellyfish",
        {"n": 5, "k": 4, "r": 3, "rng": np.random.default_rng()},
        "n r even, for r ports each",
    ),
    ("tpu_v4", {"dims": (4, 4, 5)}, "three multiples of 4, at most 64 cubes"),
    (
        "helios",
        {"pods": 4, "hosts_per_pod": 8, "electrical": 0.0, "optical": 1.0},
        "the packet core joins all",
    ),
    ("hpn7", {"segments": 16}, "a pod's aggregation switches have no ports for more"),
    ("nvl72", {"racks": 9}, "an even number of leaves that divides 144"),
    ("rail_only", {"domains": 100}, "an even number of leaves that divides 64"),
]


@pytest.mark.parametrize(("name", "arguments", "rule"), BROKEN_RULES)
def test_a_refused_parameter_is_told_with_the_rule_of_the_design(name, arguments, rule):
    with pytest.raises(ValueError, match=rule):
        getattr(rp.topology, name)(**arguments)
