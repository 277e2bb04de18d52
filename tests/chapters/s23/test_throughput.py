import dataclasses
import itertools
import math

import networkx as nx
import numpy as np
import pytest
from hypothesis import assume, given, settings, strategies as st
from scipy.optimize import linprog

from chapters.s23.throughput import (
    aggregate_bottleneck_throughput,
    throughput_under_failures,
)
from relparallel.metrics import concurrent_flow
from relparallel.metrics._demand import all_to_all, longest_matching, permutation
from relparallel.metrics._linear import commodities, solve
from relparallel.metrics._network import switch_level
from relparallel.metrics._paths import distances
from relparallel.metrics.throughput import bracket, routed
from relparallel.topology import (
    Design,
    as_topology,
    bcube,
    dcell,
    dragonfly,
    fat_tree,
    hyperx,
    leaf_spine,
    torus,
)

small = st.builds(
    lambda n, p, seed: nx.gnp_random_graph(n, p, seed=seed),
    st.integers(2, 5),
    st.floats(0.4, 1.0),
    st.integers(0, 10**6),
)
PATTERNS = ("all_to_all", "permutation", "longest_matching")


def paths(t, s, d):
    """Every loop-free path through forwarding nodes only, as arcs (row, direction)."""
    graph = nx.Graph()
    graph.add_nodes_from(range(t.num_nodes))
    for row, (u, v) in enumerate(t.edges.tolist()):
        graph.add_edge(u, v, row=row)
    inside = graph.subgraph([v for v in graph if v in (s, d) or t.transit[v]])
    for path in nx.all_simple_paths(inside, s, d):
        yield [2 * graph[u][v]["row"] + (u > v) for u, v in itertools.pairwise(path)]


def by_paths(t, demand):
    """Concurrent flow of a demand {(s, d): amount} by one variable per path: the definition."""
    unit = min(c for e, c in zip(t.edges, t.capacity, strict=True) if t.endpoint[e].any())
    wide = t.multiplicity * t.capacity / unit
    used, sent = [], []
    for i, (s, d) in enumerate(demand):
        for arcs in paths(t, s, d):
            used.append(np.bincount(arcs, minlength=2 * len(t.edges)))
            sent.append(np.eye(len(demand))[i])
    total = np.array(list(demand.values()))
    rows = np.column_stack([np.array(sent).T, -total])
    found = linprog(
        -np.eye(len(used) + 1)[-1],
        A_ub=np.column_stack([np.array(used).T, np.zeros(2 * len(t.edges))]),
        b_ub=np.repeat(wide, 2),
        A_eq=rows,
        b_eq=np.zeros(len(demand)),
    )
    return found.x[-1]


def anonymous(t):
    return dataclasses.replace(t, meta=Design(name="own"))


@settings(max_examples=40)
@given(
    small,
    st.lists(st.booleans(), min_size=5, max_size=5),
    st.integers(1, 3),
    st.sampled_from([1e9, 2e9]),
)
def test_all_to_all_is_the_linear_program_over_all_paths(graph, transit, cables, fast):
    nx.set_node_attributes(graph, dict(enumerate(transit)), "transit")
    nx.set_edge_attributes(graph, 1e9, "capacity")
    for u, v in list(graph.edges)[:2]:
        graph.edges[u, v].update(multiplicity=cables, capacity=fast)
    t = as_topology(graph)
    n = t.num_nodes
    pairs = list(itertools.permutations(range(n), 2))
    leaf = [
        not transit[v] and graph.degree(v) == 1 and transit[next(iter(graph[v]))] for v in graph
    ]
    assume(not any(leaf))  # such a host has no limit of its own
    found = concurrent_flow(t)
    assert found.exact
    if all(any(paths(t, s, d)) for s, d in pairs):
        assert float(found) == pytest.approx(
            by_paths(t, dict.fromkeys(pairs, 1 / (n - 1))), rel=1e-6
        )
    else:
        assert float(found) == 0.0


@settings(max_examples=20)
@given(small, st.integers(0, 100))
def test_a_permutation_is_the_linear_program_over_all_paths(graph, seed):
    assume(nx.is_connected(graph))
    t = as_topology(graph)
    ring = np.random.default_rng(seed).permutation(t.num_nodes)
    demand = dict.fromkeys(zip(ring.tolist(), np.roll(ring, 1).tolist(), strict=True), 1.0)
    found = concurrent_flow(t, "permutation", rng=np.random.default_rng(seed))
    assert float(found) == pytest.approx(by_paths(t, demand), rel=1e-6)


@settings(max_examples=8)
@given(st.integers(1, 4).map(lambda half: 2 * half))
def test_a_fat_tree_carries_what_leaves_its_switches(k):
    """(N-1)/(N-k/2): traffic within an edge switch needs no uplink."""
    hosts = k**3 // 4
    found = concurrent_flow(fat_tree(k))
    assert found.exact
    assert float(found) == pytest.approx((hosts - 1) / (hosts - k / 2), rel=1e-9)


@pytest.mark.parametrize(
    "t",
    [
        fat_tree(4),
        leaf_spine(4, 2, 3),
        bcube(3, 1),
        dcell(3, 1),
        torus((4, 3)),
        torus((3, 2, 2)),
        dragonfly(1, 2, 1),
        hyperx((3, 3), t=2),
    ],
    ids=repr,
)
def test_the_quotient_is_the_whole_program(t):
    found, wanted = concurrent_flow(t), concurrent_flow(anonymous(t))
    assert found.exact
    assert wanted.exact
    assert float(found) == pytest.approx(float(wanted), rel=1e-7)


def test_the_quotient_of_a_large_fat_tree_is_small():
    found = concurrent_flow(fat_tree(48))
    assert found.exact
    assert "proved orbits" in found.method
    assert float(found) == pytest.approx(27647 / 27624, rel=1e-9)


@pytest.mark.parametrize("t", [torus((3, 4)), bcube(3, 1), dcell(4, 1)], ids=repr)
@pytest.mark.parametrize("named", [True, False])
def test_prices_of_the_program_prove_its_value(t, named):
    problem = all_to_all(t if named else anonymous(t), switch_level(t))
    value, price = solve(problem, commodities(problem, 10**6))
    assert (price >= 0).all()
    assert routed(problem, price, 1e-6)[1] == pytest.approx(value, rel=1e-9)
    # the same bound by other means: all pairs, on the cheapest paths of networkx
    net = problem.net
    graph = nx.DiGraph()
    graph.add_weighted_edges_from(
        zip(net.tail.tolist(), net.head.tolist(), price.tolist(), strict=True)
    )
    cheapest = dict(nx.all_pairs_dijkstra_path_length(graph))
    demand = np.outer(net.weight, net.weight) / (t.num_hosts - 1)
    cost = sum(demand[s, d] * c for s, row in cheapest.items() for d, c in row.items() if s != d)
    assert float(net.capacity @ price) / cost == pytest.approx(value, rel=1e-6)


@settings(max_examples=25)
@given(st.integers(0, 10**6), st.sampled_from(["all", "matching", "permutation"]))
def test_the_bracket_holds_the_exact_value_whatever_the_cables_carry(seed, kind):
    draw = np.random.default_rng(seed)
    graph = nx.gnp_random_graph(11, 0.4, seed=seed)
    assume(nx.is_connected(graph))
    for ends in graph.edges:
        graph.edges[ends].update(
            multiplicity=int(draw.integers(1, 4)), capacity=float(draw.integers(1, 4))
        )
    t = as_topology(graph)
    problem = {
        "all": lambda: all_to_all(t, switch_level(t)),
        "matching": lambda: longest_matching(t, switch_level(t)),
        "permutation": lambda: permutation(switch_level(t), t.hosts, draw),
    }[kind]()
    value = solve(problem, commodities(problem, 10**6))[0]
    for lower, upper in (bracket(problem, 0.01), bracket(problem, 0.3)):
        assert lower <= value * (1 + 1e-6)
        assert upper >= value * (1 - 1e-6)
    lower, upper = bracket(problem, 0.01)
    assert upper <= 1.0100001 * lower


@pytest.mark.parametrize("traffic", ["all_to_all", "longest_matching"])
def test_beyond_the_program_the_bounds_are_a_percent_apart(traffic):
    t = as_topology(nx.random_regular_graph(10, 120, seed=5))
    found = concurrent_flow(t, traffic)
    assert not found.exact
    assert found.lower == found.value
    assert found.upper <= 1.01 * found.lower
    wide = concurrent_flow(t, traffic, gap=0.2)
    assert max(found.lower, wide.lower) <= min(found.upper, wide.upper)


def test_the_longest_matching_is_the_longest():
    t = as_topology(nx.barbell_graph(3, 1))
    net = switch_level(t)
    hops = distances(
        net.indptr, net.head, net.transit, np.ones(net.head.size), np.arange(t.num_nodes)
    )
    assert np.array_equal(hops, np.array(nx.floyd_warshall_numpy(t.to_networkx())))
    problem = longest_matching(t, net)
    travelled = (problem.demand * hops[problem.roots]).sum()
    best = max(
        sum(hops[i, j] for i, j in enumerate(order)) for order in itertools.permutations(range(7))
    )
    assert travelled == best
    assert problem.demand.sum(axis=1).max() == problem.demand.sum(axis=0).max() == 1


def test_switches_with_different_numbers_of_hosts_are_matched_host_by_host():
    graph = nx.Graph([("a", "s"), ("b", "s"), ("s", "t"), ("t", "c")])
    for v in graph:
        graph.nodes[v].update(endpoint=v in "abc", transit=v in "st")
    found = concurrent_flow(graph, "longest_matching")
    assert float(found) == pytest.approx(1.0)  # two flows cross in opposite directions


def test_a_share_of_the_hosts_has_the_network_for_itself():
    t = hyperx((4, 4), t=1)
    few = [float(concurrent_flow(t, s, share=0.25, rng=np.random.default_rng(2))) for s in PATTERNS]
    every = [float(concurrent_flow(t, s, rng=np.random.default_rng(2))) for s in PATTERNS]
    assert all(f > e for f, e in zip(few, every, strict=True))
    two = concurrent_flow(fat_tree(4), share=0.01, rng=np.random.default_rng(0))
    # two hosts of different edge switches, two uplinks each
    assert float(two) == pytest.approx(2.0)


@settings(max_examples=15)
@given(st.integers(0, 10**6))
def test_a_share_is_the_program_of_its_pairs(seed):
    t = as_topology(nx.cycle_graph(6))
    hosts = np.random.default_rng(seed).choice(6, size=3, replace=False)
    demand = dict.fromkeys(itertools.permutations(hosts.tolist(), 2), 0.5)
    found = concurrent_flow(t, share=0.5, rng=np.random.default_rng(seed))
    assert float(found) == pytest.approx(by_paths(t, demand), rel=1e-6)


def test_what_needs_no_network_and_what_has_none():
    assert float(concurrent_flow(leaf_spine(1, 2, 4))) == math.inf
    assert float(concurrent_flow(nx.empty_graph(3))) == 0.0
    assert float(concurrent_flow(nx.disjoint_union(nx.cycle_graph(3), nx.cycle_graph(3)))) == 0.0


def test_shares_of_failures_are_counted_in_whole_parts():
    t = bcube(4, 1)
    found = throughput_under_failures(t, 12, np.random.default_rng(3), servers=0.25)
    assert found.hosts == 12
    assert (found.throughput <= 12 * 11 / 11 * 2).all()
    every = throughput_under_failures(t, 2, np.random.default_rng(3), switches=1.0)
    assert every.throughput.tolist() == [0.0, 0.0]
    assert every.unreachable.tolist() == [1.0, 1.0]
    none = throughput_under_failures(t, 2, np.random.default_rng(3), servers=1.0)
    assert (none.hosts, none.throughput.tolist(), none.unreachable.tolist()) == (
        0,
        [0.0] * 2,
        [0.0] * 2,
    )


def test_each_scenario_is_the_throughput_of_the_masked_network():
    """One cable of eight fails: the scenarios are the eight networks without it."""
    t = as_topology(nx.cycle_graph(8))
    found = throughput_under_failures(t, 6, np.random.default_rng(5), links=1 / 8)
    path = float(aggregate_bottleneck_throughput(nx.path_graph(8)))
    assert found.throughput == pytest.approx(path)
    assert not found.unreachable.any()


def test_parallel_cables_fail_singly():
    graph = nx.MultiGraph([("a", "b")] * 4)
    found = throughput_under_failures(graph, 4, np.random.default_rng(0), links=0.5)
    assert found.throughput.tolist() == [4.0] * 4  # two cables of the four, both directions


def test_the_interval_covers_the_mean_of_many():
    t = bcube(4, 1)
    many = throughput_under_failures(t, 400, np.random.default_rng(1), links=0.1).estimate
    few = [
        throughput_under_failures(t, 20, np.random.default_rng(s), links=0.1).estimate
        for s in range(40)
    ]
    covered = sum(e.lower <= many.value <= e.upper for e in few)
    assert covered >= 33
    assert many.upper - many.lower < min(e.upper - e.lower for e in few)


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda: concurrent_flow(nx.cycle_graph(4), "permutation"), "rng must be"),
        (lambda: concurrent_flow(nx.cycle_graph(4), share=0.5), "rng must be"),
        (lambda: concurrent_flow(nx.cycle_graph(4), share=0.0), "share must be"),
        (lambda: concurrent_flow(nx.cycle_graph(4097), "longest_matching"), "traffic must not be"),
        (lambda: concurrent_flow(nx.empty_graph(1)), "topology must have at least two hosts"),
        (
            lambda: throughput_under_failures(nx.cycle_graph(4), 1, np.random.default_rng(0)),
            "samples must",
        ),
        (
            lambda: throughput_under_failures(
                nx.cycle_graph(4), 2, np.random.default_rng(0), links=2
            ),
            "links must",
        ),
    ],
)
def test_bad_arguments_are_named(call, error):
    with pytest.raises((TypeError, ValueError), match=error):
        call()
