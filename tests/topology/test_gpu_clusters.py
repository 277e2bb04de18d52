import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from relparallel.metrics import hop_statistics
from relparallel.topology import check, describe, dgx_superpod, hpn7, meta_roce, nvl72, rail_only
from relparallel.topology.parts import LINK_CAPACITY
from relparallel.units import GB, GBIT, TB


def agrees(t):
    check(t)
    form = describe(t.meta.name, **t.meta.parameters)
    if t.num_hosts > 1:
        hops = hop_statistics(t)
        assert form.mean_hops == pytest.approx(hops.mean, rel=1e-13)
        assert form.diameter == hops.diameter
    return form


def cables(t, one, other):
    """Cables between two kinds of nodes."""
    ends = t.is_kind(one)[t.edges], t.is_kind(other)[t.edges]
    meet = (ends[0] & ends[1][:, ::-1]).any(axis=1)
    return int(t.multiplicity[meet].sum())


def without(t, nodes):
    graph = t.to_networkx()
    graph.remove_nodes_from(np.flatnonzero(nodes).tolist())
    return graph


@settings(max_examples=30)
@given(st.integers(1, 8), st.integers(1, 4), st.sampled_from([8, 10]))
def test_rails_of_one_switch_agree_with_their_closed_forms(domains, gpus, ports):
    agrees(rail_only(domains, gpus, ports))


@pytest.mark.parametrize(
    ("domains", "gpus", "ports"), [(2, 3, 2), (8, 3, 4), (16, 2, 8), (32, 1, 8), (18, 2, 6)]
)
def test_rails_of_two_tiers_agree_with_their_closed_forms(domains, gpus, ports):
    t = rail_only(domains, gpus, ports)
    agrees(t)
    if "spine" in t.kinds:
        assert cables(t, "gpu", "leaf") == cables(t, "leaf", "spine") == t.num_hosts  # non-blocking
        assert set(t.degrees[t.is_kind("leaf") | t.is_kind("spine")].tolist()) == {ports}


@pytest.mark.parametrize("domains", [8, 32])
def test_no_switch_joins_two_rails(domains):
    t = rail_only(domains, 4, 8)
    alone = without(t, t.is_kind("nvswitch"))
    assert nx.number_connected_components(alone) == 4
    for part in nx.connected_components(alone):
        assert len(set(t.rail[list(part)].tolist())) == 1
    assert nx.is_connected(t.to_networkx())


def test_neighbouring_domains_share_their_leaves():
    t = rail_only(8, 2, 4)  # two domains to a leaf
    assert [
        hop for _, hop in sorted(nx.single_source_shortest_path_length(t.to_networkx(), 0).items())
    ][: t.num_hosts : 2] == [0, 2, 4, 4, 4, 4, 4, 4]


def test_a_message_changes_rails_inside_a_domain():
    t = rail_only(4, 2)
    assert nx.shortest_path_length(t.to_networkx(), 0, 2) == 2  # same rail, other domain
    assert nx.shortest_path_length(t.to_networkx(), 0, 3) == 4
    assert t.transit[t.hosts].all()


@pytest.mark.parametrize("racks", [1, 2, 8, 16])
@pytest.mark.parametrize("detail", [False, True])
def test_nvl72_agrees_with_its_closed_forms(racks, detail):
    agrees(nvl72(racks, detail))


def test_a_rack_of_nvl72_is_72_gpus_on_18_chips():
    t = nvl72(nvswitch_detail=True)
    assert (t.num_hosts, t.num_switches, t.num_links, len(t.shared_risk)) == (72, 18, 1296, 9)
    assert t.to_networkx().number_of_edges() == 1296  # no two are parallel
    assert 2 * float(t.capacity @ t.multiplicity) == pytest.approx(129.6 * TB)
    assert sorted(node for tray in t.shared_risk for node in tray.nodes) == t.switches.tolist()
    lost = without(t, np.isin(np.arange(90), t.shared_risk[0].nodes))
    assert {lost.degree(gpu) for gpu in range(72)} == {16}


@pytest.mark.parametrize("build", [nvl72, lambda **how: dgx_superpod(1, **how)])
def test_detail_of_nvswitches_changes_neither_capacity_nor_hops(build):
    star, chips = build(nvswitch_detail=False), build(nvswitch_detail=True)
    totals = [
        float((t.capacity * t.multiplicity)[t.is_kind("nvswitch")[t.edges].any(axis=1)].sum())
        for t in (star, chips)
    ]
    assert totals[0] == pytest.approx(totals[1]) == pytest.approx(star.num_hosts * 900 * GB)
    assert hop_statistics(star).histogram == hop_statistics(chips).histogram


PUBLISHED = {
    2: (64, 512, 16, 8, 0, 512, 512, 0),
    4: (128, 1024, 32, 16, 0, 1024, 1024, 0),
    8: (256, 2048, 64, 32, 0, 2048, 2048, 0),
    16: (512, 4096, 128, 128, 64, 4096, 4096, 4096),
    32: (1024, 8192, 256, 256, 128, 8192, 8192, 8192),
    64: (2048, 16384, 512, 512, 256, 16384, 16384, 16384),
}


@pytest.mark.parametrize("units", PUBLISHED)
def test_superpods_have_the_published_switches_and_cables(units):
    t = dgx_superpod(units)
    count = {kind: int(np.count_nonzero(t.is_kind(kind))) for kind in t.kinds}
    stages = [
        cables(t, *pair) if pair[1] in t.kinds else 0
        for pair in (("gpu", "leaf"), ("leaf", "spine"), ("spine", "core"))
    ]
    found = (
        count["nvswitch"],
        count["gpu"],
        count["leaf"],
        count["spine"],
        count.get("core", 0),
        *stages,
    )
    assert found == PUBLISHED[units]


@pytest.mark.parametrize("units", [1, 2, 4, 8, 16])
def test_superpods_agree_with_their_closed_forms(units):
    agrees(dgx_superpod(units))
    check(dgx_superpod(units, nvswitch_detail=True))


def test_a_superpod_of_128_units_agrees_with_its_closed_forms():
    check(dgx_superpod(128))


def test_a_leaf_of_a_superpod_serves_one_rail_of_one_unit():
    t = dgx_superpod(scalable_units=2)
    ends = t.edges[t.is_kind("leaf")[t.edges[:, 1]] & t.endpoint[t.edges[:, 0]]]
    assert (t.rail[ends[:, 0]] == t.rail[ends[:, 1]]).all()
    assert (t.pod[ends[:, 0]] == t.pod[ends[:, 1]]).all()
    trunks = t.is_kind("spine")[t.edges].any(axis=1)
    assert set(t.multiplicity[trunks].tolist()) == {4}
    assert hop_statistics(t).mean == pytest.approx(3.851272, abs=1e-6)


def test_spine_j_of_every_pod_meets_the_same_cores():
    t = dgx_superpod(scalable_units=16)
    first, cores = np.flatnonzero(t.is_kind("spine"))[0], t.is_kind("core")
    rows = (t.indices[t.indptr[s] : t.indptr[s + 1]] for s in range(first, first + 128))
    met = [set(row[cores[row]].tolist()) for row in rows]
    assert all(met[j] == met[j % 32] for j in range(128))
    assert all(met[i].isdisjoint(met[j]) for i in range(32) for j in range(i))


@pytest.mark.parametrize("segments", [1, 2, 5])
def test_hpn_agrees_with_its_closed_forms(segments):
    agrees(hpn7(segments))


def test_a_pod_of_hpn():
    t = hpn7(segments=15)
    hops = hop_statistics(t)
    count = {kind: int(np.count_nonzero(t.is_kind(kind))) for kind in t.kinds}
    assert count == {"gpu": 15360, "nvswitch": 1920, "leaf": 240, "aggregation": 120}
    assert (t.num_links, hops.diameter, round(hops.mean, 6)) == (60480, 4, 3.982551)
    assert set(t.degrees[t.is_kind("aggregation")].tolist()) == {120}
    card = t.endpoint[t.edges[:, 0]] & t.is_kind("leaf")[t.edges[:, 1]]
    assert set(t.capacity[card].tolist()) == {200 * GBIT}
    assert set(t.capacity[t.is_kind("aggregation")[t.edges].any(axis=1)].tolist()) == {
        LINK_CAPACITY
    }


def test_the_planes_of_hpn_meet_only_in_gpus():
    t = hpn7(segments=2)
    switches = without(t, t.endpoint | t.is_kind("nvswitch"))
    planes = list(nx.connected_components(switches))
    assert [len(plane) for plane in planes] == [16 + 60] * 2
    for plane in planes:  # with one plane lost every GPU is still on the other
        rest = without(t, np.isin(np.arange(t.num_nodes), list(plane)) | t.is_kind("nvswitch"))
        assert nx.is_connected(rest)


@pytest.mark.parametrize("pods", [1, 2, 3])
def test_meta_agrees_with_its_closed_forms(pods):
    agrees(meta_roce(pods))


def test_the_cluster_of_meta():
    t = meta_roce(pods=8)
    count = {kind: int(np.count_nonzero(t.is_kind(kind))) for kind in t.kinds}
    assert (count["gpu"], count["nvswitch"], count["rack"]) == (24_576, 3_072, 1_536)
    capacity = t.capacity * t.multiplicity
    kinds = np.array(t.kinds)[t.node_kind[t.edges]]
    down, up = (
        float(capacity[(kinds == pair).all(axis=1)].sum())
        for pair in (("rack", "cluster"), ("cluster", "aggregation"))
    )
    assert down == pytest.approx(float(capacity[(kinds == ("gpu", "rack")).all(axis=1)].sum()))
    assert down / up == pytest.approx(7)


@pytest.mark.parametrize(
    ("builder", "arguments", "error"),
    [
        (dgx_superpod, (3,), "scalable_units must be one of 1, 2, 4, 8, 16, 32, 64, 128, got 3"),
        (dgx_superpod, (2.0,), "scalable_units must be one of"),
        (dgx_superpod, (2, 1), "nvswitch_detail must be True or False"),
        (hpn7, (16,), "segments must be an integer in .1, 15., got 16: a pod's aggregation"),
        (meta_roce, (0,), "pods must be an integer >= 1, got 0"),
        (meta_roce, (10**6,), "pods must give at most"),
        (
            nvl72,
            (9,),
            "racks must fill an even number of leaves that divides 144.*got 9, 2.25 leaves",
        ),
        (nvl72, (0,), "racks must be"),
        (nvl72, (1, None), "nvswitch_detail must be"),
        (
            rail_only,
            (96, 8, 64),
            "domains must fill an even number of leaves that divides 64.*got 96, 3 leaves",
        ),
        (rail_only, (4, 0), "gpus_per_domain must be"),
        (rail_only, (4, 8, 7), "switch_ports must be even"),
        (rail_only, (4, 10**9), "domains, gpus_per_domain, switch_ports must give at most"),
    ],
)
def test_bad_arguments_are_named(builder, arguments, error):
    with pytest.raises((TypeError, ValueError), match=error):
        builder(*arguments)
