import networkx as nx
import numpy as np
import pytest

from relparallel.metrics import hop_statistics
from relparallel.topology import dgx_superpod, hpn7, nvl72, rail_only
from relparallel.topology.parts import LINK_CAPACITY
from relparallel.units import GB, GBIT


def cables(t, one, other):
    """Cables between two kinds of nodes."""
    ends = t.is_kind(one)[t.edges], t.is_kind(other)[t.edges]
    meet = (ends[0] & ends[1][:, ::-1]).any(axis=1)
    return int(t.multiplicity[meet].sum())


def without(t, nodes):
    graph = t.to_networkx()
    graph.remove_nodes_from(np.flatnonzero(nodes).tolist())
    return graph


@pytest.mark.parametrize(("domains", "gpus", "ports"), [(8, 3, 4), (18, 2, 6)])
def test_rails_of_two_tiers_are_not_blocking(domains, gpus, ports):
    t = rail_only(domains, gpus, ports)
    assert cables(t, "gpu", "leaf") == cables(t, "leaf", "spine") == t.num_hosts
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


def test_a_lost_tray_of_nvl72_takes_two_links_of_every_gpu():
    t = nvl72(nvswitch_detail=True)
    assert t.to_networkx().number_of_edges() == t.num_links  # no two are parallel
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


def test_a_leaf_of_a_superpod_serves_one_rail_of_one_unit():
    t = dgx_superpod(scalable_units=2)
    ends = t.edges[t.is_kind("leaf")[t.edges[:, 1]] & t.endpoint[t.edges[:, 0]]]
    assert (t.rail[ends[:, 0]] == t.rail[ends[:, 1]]).all()
    assert (t.pod[ends[:, 0]] == t.pod[ends[:, 1]]).all()
    trunks = t.is_kind("spine")[t.edges].any(axis=1)
    assert set(t.multiplicity[trunks].tolist()) == {4}


def test_spine_j_of_every_pod_meets_the_same_cores():
    t = dgx_superpod(scalable_units=16)
    first, cores = np.flatnonzero(t.is_kind("spine"))[0], t.is_kind("core")
    rows = (t.indices[t.indptr[s] : t.indptr[s + 1]] for s in range(first, first + 128))
    met = [set(row[cores[row]].tolist()) for row in rows]
    assert all(met[j] == met[j % 32] for j in range(128))
    assert all(met[i].isdisjoint(met[j]) for i in range(32) for j in range(i))


def test_cards_of_hpn_are_two_ports_of_half_the_speed_of_its_switches():
    t = hpn7(segments=15)
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
