from dataclasses import replace
from typing import get_args

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, strategies as st

import relparallel as rp
from chapters.s23.power import with_power_domains
from chapters.s23.resilience import (
    Failing,
    _busiest_first,
    _load_of_links,
    _load_of_nodes,
    resilience_curve,
)
from relparallel.topology import (
    SharedRisk,
    Topology,
    bcube,
    dcell,
    fat_tree,
    leaf_spine,
    names,
    torus,
)
from valid_calls import CALLS

SHARES = [0.0, 0.1, 0.3, 0.6, 1.0]


def curve(t, failing, shares=SHARES, samples=8, seed=1, **other):
    return resilience_curve(
        t, failing, shares, samples=samples, rng=np.random.default_rng(seed), **other
    )


@pytest.mark.parametrize(
    "failing", ["links", "nodes", "switches", "hosts", "degree", "tier", "racks"]
)
@pytest.mark.parametrize(
    "t", [fat_tree(4), bcube(3, 1), dcell(3, 1), leaf_spine(4, 2, 3)], ids=repr
)
def test_more_failures_leave_less(t, failing):
    found = curve(t, failing)
    for shares in (found.pairs, found.accessible):
        assert np.all(shares[:, 0] == 1)
        assert np.all(np.diff(shares, axis=1) <= 1e-12)
    assert found.failed.tolist() == [round(s * found.parts) for s in SHARES]
    assert np.all(found.accessible >= found.pairs - 1e-12)


def test_hosts_that_fail_take_their_pairs_along():
    found = curve(fat_tree(4), "hosts")
    left = 16 - found.failed
    assert found.parts == 16
    assert found.pairs == pytest.approx(np.tile(left * (left - 1) / 240, (8, 1)), rel=1e-12)
    assert found.accessible == pytest.approx(np.tile(left / 16, (8, 1)), rel=1e-12)


def test_racks_of_a_clos_network_are_leaves_with_their_hosts():
    found = curve(leaf_spine(5, 2, 4), "racks", [0.0, 0.2, 0.4])
    assert found.parts == 5
    assert found.pairs[0] == pytest.approx([1, 16 * 15 / 380, 12 * 11 / 380], rel=1e-12)


def test_racks_of_a_bcube_are_its_lowest_switches_and_of_a_torus_its_pods():
    assert curve(bcube(4, 1), "racks").parts == 4
    assert curve(torus((5, 3)), "racks").parts == 5


def test_the_core_is_the_tier_that_a_fat_tree_cannot_lose():
    found = curve(fat_tree(8), "tier", [0, 16 / 80, 48 / 80, 1])
    # pods, then edge switches
    assert found.pairs[0] == pytest.approx([1, 15 / 127, 3 / 127, 0], rel=1e-12)
    assert np.ptp(found.pairs, axis=0).max() == 0


def test_the_largest_switches_fail_first():
    graph = nx.star_graph(6)
    nx.set_node_attributes(graph, {0: False}, "endpoint")
    graph.add_edge(1, "s")
    graph.nodes["s"]["endpoint"] = False
    assert curve(graph, "degree", [0.5]).pairs.max() == 0
    assert curve(graph, "degree", [0.5]).parts == 2


def test_parallel_cables_fail_one_by_one():
    t = replace(torus((2,)), multiplicity=np.array([4]))
    found = curve(t, "links", [0.0, 0.75, 1.0])
    assert found.parts == 4
    assert found.pairs[0].tolist() == [1, 1, 0]


def test_power_domains_are_the_groups_of_shared_risk():
    groups = tuple(
        SharedRisk(name=f"feed {i}", nodes=tuple(range(4 * i, 4 * i + 4))) for i in range(4)
    )
    t = replace(torus((4, 4)), shared_risk=groups)
    found = curve(t, "shared_risk", [0.25, 0.5])
    assert found.parts == 4
    assert found.accessible[:, 0] == pytest.approx(0.75)
    # a ring of two rows, or two rows apart
    assert set(np.round(found.accessible[:, 1], 3)) <= {0.25, 0.5}
    with pytest.raises(ValueError, match="failing must name parts that the network has"):
        curve(torus((4, 4)), "shared_risk")


def test_the_mean_of_links_is_that_of_chance():
    """One cable of a tree of three lost: the pairs that it separates, averaged over the cables."""
    found = curve(nx.path_graph(3), "links", [0.5], samples=1000)
    assert found.to_frame()["pairs"].iloc[0] == pytest.approx(1 / 3, rel=1e-12)
    found = curve(nx.path_graph(4), "links", [1 / 3], samples=1000)
    row = found.to_frame().iloc[0]
    truth = np.mean([3 / 6, 2 / 6, 3 / 6])
    assert abs(row["pairs"] - truth) < 4 * row["pairs error"]
    assert row["pairs error"] == pytest.approx(np.std([3 / 6, 2 / 6, 3 / 6]) / 1000**0.5, rel=0.1)


def test_a_table_for_the_reader():
    found = curve(fat_tree(4), "links")
    assert found.to_frame().index.name == "share of links"
    assert "accessible" in found._repr_html_()


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"topology": nx.empty_graph(1)}, "topology must have"),
        ({"failing": "fans"}, "failing must be one of"),
        ({"topology": torus((3,)), "failing": "switches"}, "failing must name parts"),
        ({"shares": [1.2]}, "shares must be"),
        ({"shares": []}, "shares must be"),
        ({"samples": 1}, "samples must be"),
    ],
)
def test_bad_arguments_are_named(arguments, error):
    good = {
        "topology": fat_tree(4),
        "failing": "links",
        "shares": [0.1],
        "samples": 2,
        "rng": np.random.default_rng(0),
    }
    with pytest.raises((TypeError, ValueError), match=error):
        resilience_curve(**good | arguments)


def split(n, a):
    """Share of the pairs of n hosts that are left when a of them are on one side of a cut."""
    return (a * (a - 1) + (n - a) * (n - a - 1)) / (n * (n - 1))


@given(st.integers(4, 12), st.integers(0, 10**6))
def test_load_is_betweenness(n, seed):
    graph = nx.gnp_random_graph(n, 0.5, seed=seed)
    t = Topology.from_networkx(graph, strict=False)
    if not t.edges.size:
        return
    by_edge = nx.edge_betweenness_centrality(graph, normalized=False)
    expected = np.array([by_edge[tuple(e)] for e in t.edges.tolist()])
    assert _load_of_links(t, t.multiplicity) == pytest.approx(expected / expected.max(), abs=1e-8)
    own = np.array([len(nx.node_connected_component(graph, v)) - 1 for v in graph])
    through = np.array(list(nx.betweenness_centrality(graph, normalized=False).values()))
    # every pair goes in and out at what it passes; ends send and receive
    traffic = 2 * (own + 2 * through)
    found = _load_of_nodes(t, np.ones(n, dtype=bool))
    assert found == pytest.approx(traffic / traffic.max(), abs=1e-8)


@given(st.integers(4, 10), st.integers(0, 10**6), st.booleans())
def test_an_attack_that_looks_again_always_takes_one_of_the_busiest(n, seed, links):
    graph = nx.connected_watts_strogatz_graph(n, 3, 0.4, seed=seed)
    t = Topology.from_networkx(graph, strict=False)
    owner, size = (np.arange(len(t.edges)), len(t.edges)) if links else (np.arange(n), n)
    order = _busiest_first(t, owner, links, size - 2, np.random.default_rng(seed).random(size))
    assert sorted(order.tolist()) == list(range(size))
    for part in order[: size - 2].tolist():
        load = nx.edge_betweenness_centrality(graph) if links else nx.betweenness_centrality(graph)
        own = {} if links else {v: len(nx.node_connected_component(graph, v)) - 1 for v in graph}
        scale = 1.0 if links else (len(graph) - 1) * (len(graph) - 2) or 1.0
        busy = {v: scale * load[v] + own.get(v, 0) for v in load}
        taken = tuple(t.edges[part].tolist()) if links else part
        assert busy[taken] == pytest.approx(max(busy.values()), abs=1e-6)
        graph.remove_edge(*taken) if links else graph.remove_node(taken)


@given(st.integers(3, 14), st.integers(0, 10**6))
def test_the_busiest_cable_of_a_tree_is_the_worst_to_lose(n, seed):
    """A tree cable carries as many pairs as it joins: no single cable, hence no mean, is worse."""
    tree = nx.random_labeled_tree(n, seed=seed)
    found = curve(tree, "link_load", [1 / (n - 1)], samples=2)
    cut = [nx.node_connected_component(nx.restricted_view(tree, [], [e]), e[0]) for e in tree.edges]
    every = [split(n, len(side)) for side in cut]
    assert found.pairs.max() == pytest.approx(min(every), rel=1e-12)
    assert found.pairs.max() <= np.mean(every) + 1e-12


def test_the_bridge_of_two_cliques_fails_first():
    found = curve(nx.barbell_graph(5, 0), "link_load", [1 / 21])
    assert found.pairs == pytest.approx(split(10, 5), rel=1e-12)


def test_the_middle_of_a_star_fails_first():
    star = nx.star_graph(6)
    assert curve(star, "switch_load", [1 / 7]).pairs.max() == 0
    nx.set_node_attributes(star, {0: False}, "endpoint")
    assert curve(star, "switch_load", [1.0]).parts == 1


def test_the_edge_of_a_fat_tree_is_its_busiest_tier():
    """Edge switches pass 58 units each, aggregation 52, core 48: each failure takes two hosts."""
    found = curve(fat_tree(4), "switch_load", [m / 20 for m in range(9)])
    left = 16 - 2 * found.failed
    assert found.pairs == pytest.approx(np.tile(left * (left - 1) / 240, (8, 1)), rel=1e-12)


def test_the_spine_with_the_most_cables_is_the_busiest():
    """Two spines, one of them with three cables to every leaf: nine of ten paths lead over it."""
    t = leaf_spine(3, 2, 1)
    wide = (t.edges == t.num_hosts + 3).any(axis=1)
    t = replace(t, multiplicity=np.where(wide, 3, 1))
    load = _load_of_nodes(t, np.ones(t.num_nodes, dtype=bool))
    assert load[6] == pytest.approx(9 * load[7])


def test_looking_again_cuts_a_ring_into_halves():
    """The second cable is the middle of the path the first left; no two cables cut more pairs."""
    ring = nx.cycle_graph(8)
    again = curve(ring, "link_load", [0.25], recalculated=True)
    once = curve(ring, "link_load", [0.25], samples=40)
    assert again.pairs == pytest.approx(split(8, 4), rel=1e-12)
    assert once.pairs.min() >= again.pairs.max() - 1e-12
    assert once.pairs.max() > again.pairs.max()


def test_parallel_cables_are_attacked_one_by_one():
    """A path of three nodes with one and four cables: the single one carries four times as much."""
    graph = nx.path_graph(3)
    graph.edges[1, 2]["multiplicity"] = 4
    for again in (False, True):
        found = curve(graph, "link_load", [0.2, 0.8, 1.0], recalculated=again)
        assert found.parts == 5
        assert found.pairs == pytest.approx(np.tile([1 / 3, 1 / 3, 0], (8, 1)), rel=1e-12)


@pytest.mark.parametrize("failing", get_args(Failing))
@pytest.mark.parametrize("name", names())
def test_every_design_has_every_kind_of_failure(name, failing):
    t = with_power_domains(getattr(rp.topology, name)(**CALLS[f"topology.{name}"]()), 2)
    if (failing == "switches" and not t.num_switches) or (failing == "pods" and t.pod.max() < 0):
        with pytest.raises(ValueError, match="failing must name parts that the network has"):
            curve(t, failing)
        return
    found = curve(t, failing, [0.0, 0.3, 1.0], samples=2)
    assert np.all(found.pairs[:, 0] == 1)
    assert np.all(np.diff(found.pairs, axis=1) <= 1e-12)
    if failing in ("racks", "nodes", "hosts"):
        assert np.all(found.pairs[:, 2] == 0)


def test_pods_are_what_a_design_calls_so():
    found = curve(fat_tree(4), "pods", [0.25, 0.5])
    assert found.parts == 4
    assert found.pairs == pytest.approx(np.tile([12 * 11 / 240, 8 * 7 / 240], (8, 1)), rel=1e-12)


def test_only_loads_are_recalculated():
    with pytest.raises(ValueError, match=r"recalculated must be False where .*, got degree"):
        curve(fat_tree(4), "degree", recalculated=True)
