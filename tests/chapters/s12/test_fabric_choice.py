"""The cheapest fabric is the cheapest that holds, and its bracket holds the exact value."""

from itertools import combinations

import networkx as nx
import numpy as np
import pytest

import relparallel as rp
from chapters import s12
from chapters.s12._fabric_index import connection_bracket, index_bracket, pair_classes
from chapters.s12.equipment import equipped
from chapters.s12.fabric_choice import cheapest_fabric
from relparallel.topology import Topology, as_topology

FABRICS = {f"{s} spines": rp.topology.leaf_spine(4, s, 4) for s in (1, 2, 4)} | {
    "bcube": rp.topology.bcube(4, 1)
}
# parts that fail often, so that every digit shows
BAD = {"switch": 3e6, "cable": 2e6, "server": 1e6}


def dual_homed(leaves: int, spines: int, hosts: int, planes: int = 1) -> Topology:
    """Every host on two leaves; with two planes even and odd leaves have spines of their own."""
    graph = rp.topology.leaf_spine(leaves, spines, hosts).to_networkx()
    own = [(u, v) for u, v in graph.edges if graph.nodes[u]["kind"] == "host"]
    graph.add_edges_from([(u, v ^ 1) for u, v in own])
    if planes == 2:
        up = [(u, v) for u, v in graph.edges if graph.nodes[v]["kind"] == "spine"]
        graph.remove_edges_from([(u, v) for u, v in up if (u ^ v) & 1])
    return as_topology(graph)


def chances(t: Topology, ends) -> dict:
    """Arguments of `evaluate` for hosts that are up."""
    node = 1 - t.node_attributes["availability"]
    node[list(ends)] = 0.0
    return {"link_down": 1 - t.edge_attributes["availability"], "node_down": node}


@pytest.mark.parametrize("name", FABRICS)
@pytest.mark.parametrize("requirement", ["pair", "job", "all", "share"])
def test_the_bracket_holds_the_exact_value(name, requirement):
    t = equipped(FABRICS[name], mtbf=BAD)
    sets = {"job": [range(6)], "all": [range(16)]}.get(
        requirement, [(0, other) for other in range(1, 16)]
    )
    values = [
        rp.reliability.evaluate(t, tuple(ends), **chances(t, ends), method="exact").unreliability
        for ends in sets
    ]
    exact = np.mean(values) if requirement == "share" else max(values)  # all hosts are alike
    lower, upper = index_bracket(t, requirement, 6)
    assert lower <= exact * (1 + 1e-9)
    assert upper >= exact * (1 - 1e-9)
    assert upper <= lower * 1.05


def test_closed_forms_and_the_programme_agree():
    fat, leaf = equipped(rp.topology.fat_tree(4)), equipped(rp.topology.leaf_spine(32, 8, 32))
    switch = float(leaf.node_attributes["availability"][-1])
    cable = float(leaf.edge_attributes["availability"][0])
    parts = {"leaf_up": switch, "link_up": cable, "spine_up": switch}
    closed = rp.reliability.leaf_spine_leaves_connected(
        32, 8, **parts, host_up=cable, hosts_per_leaf=32
    ).unreliability
    pair = rp.reliability.leaf_spine_pair(32, 8, **parts, host_up=cable).unreliability
    tree = rp.reliability.evaluate(fat, "all", cable, np.where(fat.endpoint, 1.0, switch))
    for t, requirement, exact in (
        (leaf, "all", closed),
        (leaf, "pair", pair),
        (fat, "all", tree.unreliability),
    ):
        assert index_bracket(t, requirement, 2) == pytest.approx((exact, exact), rel=1e-8)


@pytest.mark.parametrize("planes", [1, 2])
def test_hosts_with_two_cables_do_not_forward(planes):
    """Against all states of the cables, for three hosts on two racks."""
    lives = {"switch": np.inf, "cable": 1e5, "server": 1e6}
    t = equipped(dual_homed(4, 2, 2, planes), mtbf=lives, mttr=1e4)
    down, ends = 1 - t.edge_attributes["availability"], (0, 1, 4)
    useful = np.array([u in ends or t.transit[u] for u, _ in t.edges])
    edges, down = t.edges[useful], down[useful]
    states = (np.arange(2 ** len(edges))[:, None] >> np.arange(len(edges))) & 1 > 0
    reach = np.zeros((len(states), t.num_nodes), dtype=np.int64)
    reach[:, list(ends)] = 1 << np.arange(3)
    switches = [v for v in range(t.num_nodes) if t.transit[v]]
    # which terminals every switch is joined to, over switches alone
    for _ in range(2 * len(switches)):
        for i, (u, v) in enumerate(edges.tolist()):
            both = reach[:, u] | reach[:, v]
            for w in (u, v):
                if t.transit[w]:
                    reach[:, w] = np.where(~states[:, i], both, reach[:, w])
    fine = np.ones(len(states), dtype=bool)
    for a, b in combinations(range(3), 2):
        fine &= ((reach[:, switches] >> a) & (reach[:, switches] >> b) & 1 > 0).any(axis=1)
    chance = np.where(states, down, 1 - down).prod(axis=1)
    exact = chance[~fine].sum()
    lower, upper = connection_bracket(t, np.array(ends))
    assert lower <= exact * (1 + 1e-9)
    assert upper >= exact * (1 - 1e-9)
    if planes == 2:
        assert upper <= 1.6 * lower


def test_the_classes_count_every_pair_once():
    for t in (
        *FABRICS.values(),
        rp.topology.fat_tree(8),
        rp.topology.dcell(4, 1),
        dual_homed(8, 2, 4),
    ):
        counts, pairs = pair_classes(t)
        assert counts.sum() == t.num_hosts * (t.num_hosts - 1) // 2
        assert (pairs[:, 0] != pairs[:, 1]).all()
        assert np.isin(pairs, t.hosts).all()
    assert len(pair_classes(dual_homed(8, 2, 4))[0]) == 2
    # no symmetry
    assert len(pair_classes(as_topology(nx.gnp_random_graph(9, 0.5, seed=2)))[0]) == 36


@pytest.mark.parametrize("admitted", [1e-3, 2e-5, 1e-8, 1e-15])
def test_the_choice_is_the_cheapest_that_is_good_enough(admitted):
    choice = cheapest_fabric(FABRICS, 16, admitted)
    good = choice.table[choice.table["upper"] <= admitted]
    assert choice.proven
    assert choice.name == (good["cost"].idxmin() if len(good) else None)
    assert choice.at(0.5).name == choice.table["cost"].idxmin()


def test_what_is_asked_decides():
    catalogue = {"leaf-spine": rp.topology.leaf_spine(4, 2, 16), "dual": dual_homed(8, 4, 8, 2)}
    chosen = {
        q: cheapest_fabric(catalogue, 64, 1e-4, q).name for q in ("pair", "job", "all", "share")
    }
    assert chosen == {"pair": "leaf-spine", "job": "dual", "all": "dual", "share": "leaf-spine"}
    assert "first 64 hosts" in cheapest_fabric(catalogue, 64, 1e-4, "job").formulation


def test_small_fabrics_are_not_chosen():
    choice = cheapest_fabric(FABRICS, 17, 0.5)
    assert choice.name is None
    assert set(choice.verdicts) == {"too few hosts"}


def test_an_open_bracket_is_not_called_proven():
    table = cheapest_fabric(FABRICS, 16, 0.5).table.copy()
    table.iloc[0, table.columns.get_loc("lower")] = 0.0
    choice = s12.fabric_choice.FabricChoice(table=table, hosts=16, unavailability=1e-12)
    assert choice.verdicts.iloc[0] == "not decided"
    assert not choice.proven
