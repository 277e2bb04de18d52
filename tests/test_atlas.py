"""Cards against exact metrics, their brackets against the truth, and the catalogue of designs."""

import math
import re

import networkx as nx
import numpy as np
import pytest

import relparallel as rp
from chapters import s23
from relparallel.atlas.measures import cut_row, shortest_paths
from small_networks import small_networks

T = rp.topology
# Of each design the last one of 40 nodes at most, where it comes so small.
SMALL = list({t.meta.name: t for size in (130, 40) for t in small_networks(size)}.values())


@pytest.fixture(scope="module", params=SMALL, ids=repr)
def measured(request):
    return request.param, rp.atlas.card(request.param)


@pytest.fixture(scope="module")
def halving(measured):
    return rp.metrics.bisection(measured[0])


def test_the_rows_are_the_metrics_run_exactly(measured):
    t, card = measured
    hops, bill = rp.metrics.hop_statistics(t), T.bill_of_materials(t)
    assert card["hosts"].value == t.num_hosts
    assert card["links"].value == t.num_links
    assert (
        sum(row.value for row in card.rows if row.quantity.startswith("switches")) == t.num_switches
    )
    assert (card["cost"].value, card["power"].value) == (bill.cost, bill.power)
    assert card["mean hops"].value == pytest.approx(hops.mean, rel=1e-12)
    assert card["diameter"].value == hops.diameter
    best = float(s23.aggregate_bottleneck_throughput(t))
    assert card["aggregate bottleneck throughput"].value == pytest.approx(best, rel=1e-12)
    last = rp.metrics.edge_connectivity(t, t.labels[t.hosts[0]], t.labels[t.hosts[-1]])
    assert card["disjoint host paths, first to last"].value == float(last)


def test_brackets_hold_what_is_measured_exactly(measured, halving):
    t, card = measured
    cut, exact = card["bisection"], halving
    assert exact.lower <= cut.lower <= cut.value <= cut.upper <= exact.upper
    flow, truth = card["all-to-all throughput"], rp.metrics.concurrent_flow(t)
    # there the linear program leaves out the hosts' cables
    single = np.diff(t.indptr)[t.hosts].max() == 1
    limited = min(truth.value, 1.0) if single else truth.value
    assert flow.lower * (1 - 1e-9) <= limited <= flow.upper * (1 + 1e-9)
    pairs = card["disjoint host paths, any pair"]
    fewest = min(
        float(rp.metrics.edge_connectivity(t, t.labels[t.hosts[0]], t.labels[h]))
        for h in t.hosts[1:]
    )
    assert pairs.lower <= fewest


def test_without_work_the_bounds_still_hold(measured):
    t, exact = measured
    bound = rp.atlas.card(t, work=0)
    for quantity in (
        "mean hops",
        "aggregate bottleneck throughput",
        "all-to-all throughput",
        "bisection",
    ):
        row, true = bound[quantity], exact[quantity]
        assert row.lower <= true.upper * (1 + 1e-9)
        assert true.lower <= row.upper * (1 + 1e-9)
    aggregate = bound["aggregate bottleneck throughput"]
    assert math.isnan(aggregate.value)
    assert aggregate.how.startswith("bracket")


@pytest.mark.parametrize("t", [t for t in SMALL if t.num_nodes + len(t.edges) < 60], ids=repr)
def test_the_bracket_of_a_pair_holds_its_exact_unavailability(t):
    """By the frontier DP, every part failing but the two ends and hosts that forward nothing."""
    link_up, switch_up, server_up = 0.9, 0.8, 0.7
    card = rp.atlas.card(t, link_up=link_up, switch_up=switch_up, server_up=server_up)
    first, last = t.hosts[[0, -1]]
    up = np.where(t.endpoint, server_up, switch_up)
    up[[first, last]] = 1.0
    graph = t.to_networkx()
    graph.remove_nodes_from(
        [t.labels[v] for v in t.hosts if not t.transit[v] and v not in (first, last)]
    )
    pair = (t.labels[first], t.labels[last])
    node_up = {t.labels[v]: float(up[v]) for v in range(t.num_nodes) if t.labels[v] in graph}
    for node, chance in node_up.items():
        graph.nodes[node]["up"] = chance
    exact = rp.reliability.evaluate(
        T.as_topology(graph),
        terminals=pair,
        link_up=link_up,
        node_up=np.array(list(node_up.values())),
    )
    row = card["host-pair unavailability"]
    assert row.lower <= exact.unreliability * (1 + 1e-12)
    assert exact.unreliability <= row.upper * (1 + 1e-12)


def test_the_closed_form_of_a_fat_tree_lies_in_the_bracket_of_its_parts():
    card = rp.atlas.card(T.fat_tree(4), link_up=0.9, switch_up=0.8)
    free, tree = card["host-pair unavailability"], card["host-pair unavailability, up-down paths"]
    inner = rp.reliability.fat_tree_pair(4, 0.8, 0.8, 0.8, 0.9, 0.9)
    assert tree.value == pytest.approx(1 - 0.9**2 * inner.reliability, rel=1e-12)
    assert free.lower < tree.value


@pytest.mark.parametrize("t", [T.leaf_spine(4, 3, 2), T.leaf_spine(2, 1, 1)], ids=repr)
def test_closed_forms_of_a_pair_close_the_bracket(t):
    row = rp.atlas.card(t, link_up=0.9, switch_up=0.8, server_up=0.7)["host-pair unavailability"]
    assert row.exact
    assert row.how.startswith("closed form")


@pytest.mark.parametrize("t", [T.leaf_spine(4, 3, 2), T.fat_tree(4)], ids=repr)
@pytest.mark.parametrize("ups", [(0.9, 0.8), (0.999, 0.999)])
def test_all_hosts_agree_with_the_exact_programme(t, ups):
    row = rp.atlas.card(t, link_up=ups[0], switch_up=ups[1])["all-host unavailability"]
    nodes = np.where(t.endpoint, 1.0, ups[1])
    exact = rp.reliability.evaluate(t, "all", ups[0], nodes).unreliability
    assert row.lower * (1 - 1e-12) <= exact <= row.upper * (1 + 1e-12)
    assert row.exact == (t.meta.name == "leaf_spine")


def test_the_share_out_of_reach_is_that_of_the_closed_form():
    card = rp.atlas.card(T.dcell(4, 1), link_up=0.9, switch_up=0.8, server_up=0.7)
    ratio = rp.reliability.accessible_servers(T.describe("dcell", n=4, k=1), 0.7, 0.8, 0.9)
    assert card["mean share of hosts out of reach"].value == ratio.unreliability
    assert all("share" not in row.quantity for row in rp.atlas.card(T.torus((3, 4))).rows)


def test_parts_that_both_ends_hang_on_are_all_that_matters_in_one_rack():
    star = T.leaf_spine(1, 1, 2)
    row = rp.atlas.card(star, link_up=0.9, switch_up=0.8)["host-pair unavailability"]
    assert row.lower == pytest.approx(1 - 0.9 * 0.9 * 0.8, rel=1e-11)
    assert row.upper == pytest.approx(1 - 0.9 * 0.9 * 0.8, rel=1e-11)


def test_the_bracket_of_a_ring_by_hand():
    """Both ways round are all paths: the upper bound is exact; the lower sees more than one cut."""
    cable, server = 0.1, 0.3
    row = rp.atlas.card(nx.cycle_graph(5), link_up=1 - cable, server_up=1 - server)[
        "host-pair unavailability"
    ]
    way = 1 - (1 - cable) ** 4 * (1 - server) ** 3
    arm = 1 - (1 - cable) * (1 - server)
    assert row.upper == pytest.approx(cable * way, rel=1e-12)
    assert cable * arm < row.lower <= row.upper


def test_pairs_without_a_form_are_bracketed_closely():
    """A three-level BCube: three ways out of either end."""
    row = rp.atlas.card(T.bcube(3, 2), link_up=0.9999, switch_up=0.9999, server_up=0.999)[
        "host-pair unavailability"
    ]
    assert not row.exact
    assert row.upper < 1.01 * row.lower
    assert 1.6e-11 < row.lower < 1.7e-11


def test_a_large_network_of_forwarding_hosts_is_sampled_and_says_so():
    t = T.ficonn(16, 2)
    card, true = rp.atlas.card(t, work=1e6), rp.metrics.hop_statistics(t)
    assert card["mean hops"].how.startswith("sampled")
    assert card["mean hops"].lower <= true.mean <= card["mean hops"].upper
    assert card["diameter"].lower <= true.diameter <= card["diameter"].upper


def test_what_hosts_reach_never_proves_more_cables_than_a_halving_cuts(measured, halving):
    t, card = measured
    truth = halving
    if truth.exact:
        value = float(truth) + 100
        wide = rp.metrics.Estimate(value=value, lower=0, upper=value, method="none", exact=False)
        row = cut_row(t, wide, shortest_paths(t, False), card["all-to-all throughput"].lower)
        assert 0 < row.lower <= float(truth)
        assert row.how == "bracket: none"


KNOWN = re.compile(r"closed form|exact run|bracket closed|bracket: |sampled, ")


def test_every_number_of_a_card_carries_how_it_is_known(measured):
    t, card = measured
    for row in card.rows:
        assert KNOWN.match(row.how), row
        assert row.exact == (row.how.startswith(("closed", "exact", "bracket closed"))), row
    aggregate = card["aggregate bottleneck throughput"]
    symmetric = t.meta.name != "jellyfish" and np.unique(T.orbits(t)[t.hosts]).size < t.num_hosts
    assert aggregate.exact
    assert ("proved orbits" in aggregate.how) <= symmetric


def test_every_design_of_a_thousand_hosts_has_the_symmetry_that_it_declares():
    """Host orbits: all racks differ in random designs; DCell and FiConn only count backwards."""
    found = {
        name: np.unique(T.orbits(t)[t.hosts]).size for name, t in rp.atlas.designs(1000).items()
    }
    several = {"polarfly": 3, "hammingmesh": 4, "mdcube": 3, "dragonfly_plus": 7, "dragonfly": 68}
    unlike = {name: found.pop(name) for name in ("jellyfish", "xpander", "dcell", "ficonn")}
    assert found == dict.fromkeys(found, 1) | several
    assert all(2 * orbits >= 1000 * 0.8 for orbits in unlike.values())


def test_a_network_that_is_not_as_built_gets_no_closed_form():
    whole = T.fat_tree(4)
    graph = whole.to_networkx()
    graph.remove_edge(16, 24)
    card = rp.atlas.card(graph)
    assert {"closed form"} & {row.how for row in card.rows} == set()
    assert "closed form" in {row.how for row in rp.atlas.card(whole).rows}


def test_the_catalogue_has_every_design_at_about_the_size():
    built = rp.atlas.designs(3000)
    assert list(built) == sorted(built)
    assert set(built) == set(T.names())
    for name, t in built.items():
        assert t.meta.name == name
        assert 0.5 <= t.num_hosts / 3000 <= 2, t


def test_published_clusters_stop_at_their_largest():
    built = rp.atlas.designs()
    largest = {"dgx_superpod": 32768, "hpn7": 15360, "meta_roce": 24576, "tpu_v4": 4096}
    assert {name: built[name].num_hosts for name in largest} == largest
    near = [t.num_hosts for name, t in built.items() if name not in {*largest, "nvl72"}]
    assert 80_000 <= min(near) <= max(near) <= 135_000


def test_the_random_designs_are_wired_by_the_generator_given():
    one, same, other = (
        rp.atlas.designs(1000, rng=np.random.default_rng(seed)) for seed in (1, 1, 2)
    )
    assert one["jellyfish"] == same["jellyfish"]
    assert one["jellyfish"] != other["jellyfish"]


def test_the_table_and_the_page():
    card = rp.atlas.card(nx.cycle_graph(5))
    table = card.to_frame()
    assert list(table.columns) == ["value", "lower", "upper", "unit", "how"]
    assert table.loc["hosts", "value"] == 5
    assert "graph" in card._repr_html_()
    assert "<table" in card._repr_html_()
    with pytest.raises(ValueError, match="quantity must be one of hosts"):
        card["colour"]


@pytest.mark.parametrize("name", ["link_up", "switch_up", "server_up"])
@pytest.mark.parametrize("bad", [math.nan, "text", None, -1, 1.5, [], [0.5, 0.5]])
def test_availabilities_are_probabilities(name, bad):
    with pytest.raises((TypeError, ValueError), match=name):
        rp.atlas.card(T.fat_tree(4), **{name: bad})


@pytest.mark.parametrize(
    ("function", "arguments", "named"),
    [
        ("card", {"topology": "text"}, "topology"),
        ("card", {"topology": nx.empty_graph(1)}, "topology"),
        ("card", {"topology": nx.Graph([(0, 1), (2, 3)])}, "topology"),
        ("card", {"topology": nx.path_graph(3), "work": math.nan}, "work"),
        ("card", {"topology": nx.path_graph(3), "work": -1}, "work"),
        ("card", {"topology": nx.path_graph(3), "work": None}, "work"),
        ("card", {"topology": nx.path_graph(3), "work": [1.0, 2.0]}, "work"),
        ("card", {"topology": nx.path_graph(3), "rng": 1}, "rng"),
        ("designs", {"endpoints": 999}, "endpoints"),
        ("designs", {"endpoints": 1e5}, "endpoints"),
        ("designs", {"endpoints": None}, "endpoints"),
        ("designs", {"endpoints": 1000, "rng": "text"}, "rng"),
    ],
)
def test_bad_arguments_are_refused_by_name(function, arguments, named):
    with pytest.raises((TypeError, ValueError), match=named):
        getattr(rp.atlas, function)(**arguments)
