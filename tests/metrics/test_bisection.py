from dataclasses import replace
from itertools import combinations

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from relparallel.metrics import bisection
from relparallel.metrics._bisection_search import _modes
from relparallel.topology import (
    Topology,
    bcube,
    dcell,
    describe,
    fat_tree,
    ficonn,
    jellyfish,
    leaf_spine,
    rail_only,
    torus,
)
from small_networks import random_graphs

graphs = random_graphs(2, 9, 0.2, 1.0)


def brute(t):
    """Smallest cut between two halves of the hosts: one flow per halving places the switches."""
    arcs = nx.Graph()
    arcs.add_nodes_from([*range(t.num_nodes), "a", "b"])
    for (u, v), cables in zip(t.edges.tolist(), t.multiplicity.tolist(), strict=True):
        arcs.add_edge(u, v, capacity=cables)
    hosts, smallest = t.hosts.tolist(), float("inf")
    for half in combinations(hosts, len(hosts) // 2):
        tied = arcs.copy()
        tied.add_edges_from(("a" if h in half else "b", h) for h in hosts)  # no capacity: unbounded
        smallest = min(smallest, nx.maximum_flow_value(tied, "a", "b"))
    return smallest


@settings(max_examples=40)
@given(
    graphs,
    st.lists(st.booleans(), min_size=9, max_size=9),
    st.lists(st.integers(1, 3), min_size=36, max_size=36),
)
def test_all_halvings_of_small_networks(graph, endpoint, cables):
    nx.set_node_attributes(graph, dict(enumerate([True, True, *endpoint])), "endpoint")
    nx.set_edge_attributes(graph, dict(zip(graph.edges, cables, strict=False)), "multiplicity")
    t = Topology.from_networkx(graph, strict=False)
    truth = brute(t)
    for method in ("auto", "exact"):
        found = bisection(t, method=method)
        assert (found.lower, found.value, found.upper, found.exact) == (truth, truth, truth, True)
    bracket = bisection(t, method="bracket")
    assert bracket.lower <= truth <= bracket.upper
    assert bracket.exact == (bracket.lower == bracket.upper)


@pytest.mark.parametrize(
    ("t", "cables"),
    [
        (fat_tree(4), 8),
        (bcube(4, 1), 8),
        (bcube(2, 2), 4),
        (bcube(3, 1), 4),
        (dcell(4, 1), 6),
        (ficonn(n=4, k=2), 4),
        (torus((6, 6)), 12),
        (torus((4, 3)), 6),
        (leaf_spine(4, 2, 4), 4),
        (leaf_spine(3, 2, 4), 4),
    ],
    ids=repr,
)
def test_the_integer_program_and_the_closed_forms_agree(t, cables):
    solved, found = bisection(t, method="exact") if t.num_nodes < 36 else bisection(t), bisection(t)
    assert solved.lower == solved.upper == found.lower == found.upper == float(found) == cables
    bracket = bisection(t, method="bracket")
    assert bracket.lower <= cables <= bracket.upper


def test_the_local_search_finds_the_cheapest_halving_of_the_designs():
    for t in (fat_tree(8), torus((8, 8, 8)), leaf_spine(8, 4, 8), bcube(2, 4), torus((4, 16))):
        assert (
            bisection(t, method="bracket").upper
            == describe(t.meta.name, **t.meta.parameters).bisection
        )


@settings(max_examples=25)
@given(st.integers(1, 5), st.integers(1, 5), st.integers(1, 5))
def test_leaves_are_split_whole_but_one(leaves, spines, h):
    t = leaf_spine(leaves, spines, h)
    if 2 <= t.num_hosts <= 20:
        solved = bisection(t, method="exact")
        assert describe("leaf_spine", **t.meta.parameters).bisection == solved.value == solved.lower


@pytest.mark.parametrize(("n", "k", "cables"), [(16, 1, 110), (8, 2, 208), (6, 1, 16)])
def test_boxes_of_servers_are_cheap_halves_of_a_bcube(n, k, cables):
    assert bisection(bcube(n, k), method="bracket").upper <= cables < n ** (k + 1) // 2


def test_rails_are_cut_by_a_box_of_domains_and_rails():
    """Six of eight rails of two thirds of domains: 2 cables of each, 6 of each of the others."""
    t = rail_only(domains=128, gpus_per_domain=8, switch_ports=32)
    assert bisection(t, method="bracket").upper <= 86 * 2 + 43 * 6 < t.num_hosts // 2


@pytest.mark.parametrize("dims", [(8, 8, 8), (6, 4), (16,), (12, 12, 12)])
def test_the_routing_proves_the_bisection_of_a_torus(dims):
    t = torus(dims)
    assert bisection(t, method="bracket").lower == t.num_hosts * 2 // max(dims)


def test_a_halving_refutes_half_the_servers_of_a_bcube():
    """A square of 4 x 4 servers and two more cut sixteen cables of the 6 x 6, not N/2 = 18."""
    t = bcube(6, 1)
    digit = np.divmod(t.hosts, 6)
    inside = (np.maximum(*digit) < 4) | ((digit[0] == 4) & (digit[1] < 2))
    assert np.count_nonzero(inside) == 18
    lines = [np.bincount(d[inside], minlength=6) for d in digit]
    by_hand = sum(int(np.minimum(line, 6 - line).sum()) for line in lines)
    assert by_hand == 16
    assert bisection(t, method="bracket").upper <= by_hand < t.num_hosts // 2
    assert bisection(bcube(8, 2)).upper < 256  # no closed form is believed that a halving beats


def test_a_network_that_lost_a_cable_has_no_closed_form():
    t = fat_tree(4)
    middle = np.flatnonzero(~t.endpoint[t.edges].any(axis=1))
    gone = {
        name: np.delete(getattr(t, name), middle[-8:], axis=0)
        for name in ("edges", "multiplicity", "capacity", "latency")
    }
    broken = replace(t, **gone)
    assert bisection(broken).method != "closed form"
    assert bisection(broken).upper < bisection(t).upper
    assert bisection(replace(t, multiplicity=2 * t.multiplicity), method="bracket").upper == 16


def test_hosts_apart_need_no_cut():
    apart = nx.disjoint_union(nx.complete_graph(4), nx.complete_graph(4))
    assert bisection(apart).value == 0
    assert bisection(nx.empty_graph(3)).exact


def test_large_networks_have_brackets_of_what_can_be_proved():
    found = bisection(dcell(4, 2))
    assert 44 <= found.lower < found.upper <= 80
    assert not found.exact
    graph = nx.random_regular_graph(4, 100, seed=1)
    bound = 100 / 4 * nx.algebraic_connectivity(graph, method="tracemin_lu", seed=1)
    assert bisection(graph).lower >= bound


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"topology": nx.empty_graph(1)}, "topology must have at least two hosts"),
        ({"method": "guess"}, "method must be one of"),
    ],
)
def test_bad_arguments_are_named(arguments, error):
    with pytest.raises((TypeError, ValueError), match=error):
        bisection(**{"topology": fat_tree(4)} | arguments)


def test_the_slow_modes_eliminate_the_switches():
    """Placed by its neighbours, every switch leaves the hosts' vector as smooth as it can be."""
    t = leaf_spine(3, 2, 4)
    laplacian = nx.laplacian_matrix(
        nx.Graph(t.edges.tolist()), nodelist=range(t.num_nodes)
    ).toarray()
    x, s = np.zeros(t.num_nodes), t.switches
    x[t.hosts] = _modes(t)[:, 1]
    x[s] = np.linalg.lstsq(laplacian[np.ix_(s, s)], -laplacian[s] @ x, rcond=None)[0]
    found = laplacian @ x
    assert np.abs(found[s]).max() < 1e-9
    assert found[t.hosts] == pytest.approx((x @ found) * x[t.hosts], abs=1e-9)


def test_a_large_network_without_symmetry_has_a_bound():
    found = bisection(jellyfish(600, 8, 5, rng=np.random.default_rng(1)))
    assert 0.2 * found.upper < found.lower < found.upper
