from dataclasses import replace

import networkx as nx
import numpy as np
import pytest

from chapters.s23.power import with_power_domains
from chapters.s23.racks import racks
from relparallel.topology import (
    SharedRisk,
    bcube,
    fat_tree,
    hammingmesh,
    leaf_spine,
    nvl72,
    torus,
    tpu_v4,
)


def sizes(t):
    """Nodes outside racks, and the nodes of every rack."""
    return (np.count_nonzero(racks(t) < 0), *np.bincount(racks(t)[racks(t) >= 0]).tolist())


@pytest.mark.parametrize(
    ("t", "expected"),
    [
        # an edge switch with two hosts; aggregation and core outside
        (fat_tree(4), (12, *[3] * 8)),
        (leaf_spine(3, 2, 4), (2, 5, 5, 5)),
        (bcube(4, 1), (4, 5, 5, 5, 5)),  # the lowest level
        (torus((5, 3)), (0, *[3] * 5)),
        (tpu_v4((4, 4, 8)), (0, 64, 64)),
        # 72 GPUs and 18 chips; the rails' leaves outside
        (nvl72(2, nvswitch_detail=True), (4, 90, 90)),
        (hammingmesh(2, 2, 2, 2), (8, 4, 4, 4, 4)),  # boards
    ],
    ids=repr,
)
def test_racks_are_where_they_usually_stand(t, expected):
    assert sizes(t) == expected


def test_two_top_of_rack_switches_of_the_same_hosts_stand_in_one_rack():
    graph = nx.Graph([(h, s) for h in range(4) for s in ("a", "b")] + [("a", "top"), ("b", "top")])
    nx.set_node_attributes(graph, dict.fromkeys(("a", "b", "top"), False), "endpoint")
    assert dict(zip(graph, racks(graph).tolist(), strict=True)) == {
        0: 0,
        1: 0,
        2: 0,
        3: 0,
        "a": 0,
        "b": 0,
        "top": -1,
    }


def test_nodes_of_a_graph_are_racks_by_themselves():
    assert racks(nx.cycle_graph(4)).tolist() == [0, 1, 2, 3]


def test_power_domains_are_consecutive_racks_beside_what_a_design_declares():
    t = with_power_domains(fat_tree(4), racks_per_domain=3)
    assert [len(group.nodes) for group in t.shared_risk] == [9, 9, 6]
    duct = replace(fat_tree(4), shared_risk=(SharedRisk(name="duct", edges=(0,)),))
    assert [group.name for group in with_power_domains(duct, 4).shared_risk] == [
        "duct",
        "power domain 0",
        "power domain 1",
    ]


def test_power_domains_may_be_given():
    t = with_power_domains(nx.cycle_graph(12), domain=[11, -1, 11, *range(9)])
    assert t.shared_risk[-1] == SharedRisk(name="power domain 11", nodes=(0, 2))
    assert [group.name for group in t.shared_risk] == sorted(group.name for group in t.shared_risk)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"domain": [0]}, "domain must"),
        ({"domain": [-2] * 36}, "domain must"),
        ({"topology": with_power_domains(fat_tree(4))}, "shared_risk must have distinct names"),
    ],
)
def test_bad_domains_are_named(arguments, message):
    with pytest.raises((TypeError, ValueError), match=message):
        with_power_domains(**{"topology": fat_tree(4)} | arguments)
