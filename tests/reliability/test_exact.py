import os
import re
import runpy
import time
from fractions import Fraction
from math import comb, prod
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import relparallel as rp
from relparallel.reliability import estimate, evaluate
from relparallel.reliability.frontier.compiled_sweep import NotExactError
from relparallel.reliability.frontier.decomposition import compiled
from relparallel.reliability.problem import read_problem
from relparallel.topology import as_topology, bcube, fat_tree, leaf_spine, torus

SIXTEENTHS = st.integers(0, 16).map(lambda i: i / 16)  # exact as floats and as fractions


def relative(value, exact):
    """Relative error against a fraction."""
    return float(abs(Fraction(value) - exact) / exact) if exact else abs(value)


def unreduced(graph, terminals="all", link_up=1.0, node_up=1.0, link_down=None):
    """The frontier DP through the network as it is."""
    problem = read_problem(graph, terminals, link_up, node_up, link_down)
    return compiled(problem, reductions=False).evaluate(problem.link, problem.node)


def assert_equal(result, reliability):
    assert relative(result.reliability, reliability) < 1e-13
    assert relative(result.unreliability, 1 - reliability) < 1e-13


@st.composite
def networks(draw, nodes=5, cables=7, hosts=True):
    """Cables (u, v, up), node chances, terminals, nodes that forward: a tree with more cables."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n = int(rng.integers(2, nodes + 1))
    pairs = [tuple(sorted((v, int(rng.integers(v))))) for v in range(1, n)]
    for _ in range(int(rng.integers(0, cables - len(pairs) + 1))):
        pairs.append(tuple(sorted(rng.choice(n, size=2, replace=False).tolist())))
    chances = {
        pair: rng.choice([0.0, 1.0, *np.arange(1, 16) / 16], p=[0.02, 0.08, *[0.06] * 15])
        for pair in pairs
    }
    ups = {v: float(rng.choice([1.0, 0.75, 0.875], p=[0.5, 0.25, 0.25])) for v in range(n)}
    terminals = tuple(sorted(rng.permutation(n)[: rng.integers(1, n + 1)].tolist()))
    transit = {v for v in range(n) if not hosts or rng.random() < 0.8}
    return [(*pair, float(chances[pair])) for pair in pairs], ups, terminals, transit


def multigraph(links, ups, transit):
    graph = nx.MultiGraph()
    for v, up in ups.items():
        graph.add_node(v, transit=v in transit, up=up)
    for u, v, up in links:
        graph.add_edge(u, v, up=up)
    return graph


def test_the_dodecahedron_stays_whole():
    result = rp.reliability.evaluate(nx.dodecahedral_graph(), terminals="all", link_up=0.99)
    assert f"{result.unreliability:.12e}" == "2.030103316940e-05"
    assert (result.lower, result.upper, result.exact) == (
        result.unreliability,
        result.unreliability,
        True,
    )
    assert result.method == "exact"


def test_two_vertices_of_a_complete_graph():
    result = rp.reliability.evaluate(nx.complete_graph(5), terminals=(0, 1), link_up=0.9)
    assert f"{result.unreliability:.6e}" == "2.051974e-04"


@settings(max_examples=100)
@given(network=networks())
def test_links_nodes_cables_and_hosts_agree_with_enumeration(network, by_enumeration):
    links, ups, terminals, transit = network
    graph = multigraph(links, ups, transit)
    exact = by_enumeration(links, ups, terminals, transit)
    topology = as_topology(graph)
    useful = [(u, v) for u, v in topology.edges.tolist() if {u, v} <= transit | set(terminals)]
    alive = {pair for pair in useful if any(up > 0 for u, v, up in links if (u, v) == pair)}
    mute = [t for t in terminals if t not in transit and sum(t in pair for pair in alive) > 1]
    chances = {"link_up": "up" if links else 1.0, "node_up": "up"}
    if len(terminals) > 2 and mute:
        with pytest.raises(ValueError, match="terminals must forward or have one link"):
            evaluate(graph, terminals, **chances, method="exact")
        bounded = evaluate(graph, terminals, **chances)
        assert bounded.lower <= 1 - exact + 1e-15
        assert 1 - exact - 1e-15 <= bounded.upper
    else:
        assert_equal(evaluate(graph, terminals, **chances), exact)
        assert_equal(unreduced(graph, terminals, **chances), exact)
    sampled = estimate(
        graph,
        terminals,
        **chances,
        method="crude",
        samples=2000,
        confidence=1 - 1e-9,
        rng=np.random.default_rng(1),
    )
    assert sampled.lower - 1e-15 <= 1 - exact <= sampled.upper + 1e-15


@settings(max_examples=40)
@given(network=networks(nodes=9, cables=14, hosts=False))
def test_longer_sweeps_agree_with_factoring(network, by_factoring):
    links, _, terminals, _ = network
    graph = multigraph(links, dict.fromkeys(range(9), 1.0), set(range(9)))
    exact = by_factoring(links, terminals)
    assert_equal(evaluate(graph, terminals, link_up="up" if links else 1.0), exact)
    assert_equal(unreduced(graph, terminals, link_up="up" if links else 1.0), exact)


@pytest.mark.parametrize(
    ("graph", "count"),
    [
        (nx.random_regular_graph(3, 30, seed=1), 2),
        (nx.connected_watts_strogatz_graph(40, 4, 0.2, seed=2), 5),
        (nx.grid_2d_graph(5, 9), 45),
        (nx.barbell_graph(5, 4), 6),
        (nx.random_labeled_tree(30, seed=3), 4),
        (nx.complete_bipartite_graph(9, 4), 9),
    ],
    ids=["cubic", "small-world", "grid", "barbell", "tree", "bipartite"],
)
def test_reductions_and_labels_change_nothing(graph, count):
    rng = np.random.default_rng(4)
    nodes = list(graph)
    terminals = [nodes[i] for i in rng.permutation(len(nodes))[:count]]
    up = dict(zip(nodes, rng.uniform(0.8, 1.0, len(nodes)), strict=True))
    link = {edge: rng.uniform(0.8, 1.0) for edge in graph.edges}
    plain = unreduced(graph, terminals, link, up)
    reduced = evaluate(graph, terminals, link, up)
    order = dict(zip(nodes, rng.permutation(len(nodes)), strict=True))
    again = evaluate(
        nx.relabel_nodes(graph, order),
        [order[t] for t in terminals],
        {(order[u], order[v]): chance for (u, v), chance in link.items()},
        {order[v]: chance for v, chance in up.items()},
    )
    for other in (reduced, again):
        assert other.unreliability == pytest.approx(plain.unreliability, rel=1e-12)
        assert other.reliability == pytest.approx(plain.reliability, rel=1e-12)
    assert plain.reliability + plain.unreliability == pytest.approx(1, abs=1e-12)


@given(st.integers(3, 12), st.floats(1e-12, 0.5))
def test_a_ring_survives_one_cut(n, q):
    p = 1 - q
    exact = sum(comb(n, j) * Fraction(q) ** j * Fraction(p) ** (n - j) for j in range(2, n + 1))
    total = (Fraction(p) + Fraction(q)) ** n  # 1 up to the rounding of p
    for solve in (evaluate, unreduced):
        result = solve(nx.cycle_graph(n), link_down=q)
        assert relative(result.unreliability, exact / total) < 1e-13


def test_unreliability_keeps_its_digits_at_minus_21():
    result = evaluate(nx.complete_graph(8), link_up=0.999)
    assert result.unreliability == pytest.approx(8.000000000000028e-21, rel=1e-12)
    assert 1 - result.reliability == pytest.approx(0, abs=1e-12)  # nothing is left of U in R


@pytest.mark.parametrize("reductions", [True, False])
def test_unreliability_keeps_its_digits_at_minus_300(reductions):
    solve = evaluate if reductions else unreduced
    all_four = solve(nx.complete_bipartite_graph(2, 4), (0, 1), link_down=1e-75)
    # each of four paths has two links
    assert all_four.unreliability == pytest.approx(16e-300, rel=1e-14)


def test_the_reliability_polynomial_of_petersen_in_fractions():
    spanning = [0] * 9 + [2000, 2172, 1230, 445, 105, 15, 1]
    for p in (0.1, 0.5, 0.9, 0.999):
        up = Fraction(p)
        exact = sum(n * up**j * (1 - up) ** (15 - j) for j, n in enumerate(spanning))
        assert_equal(evaluate(nx.petersen_graph(), link_up=p), exact)


def test_terminals_fail_in_series_with_the_rest():
    graph = nx.petersen_graph()
    perfect = evaluate(graph, (0, 2, 7), link_up=0.9).reliability
    up = {0: 0.99, 2: 0.98, 7: 0.5}
    assert evaluate(graph, (0, 2, 7), 0.9, up).reliability == pytest.approx(
        perfect * prod(up.values())
    )
    assert evaluate(graph, (0, 2, 7), 0.9, {0: 0.0}).unreliability == 1.0
    assert evaluate(graph, (3,), 0.9, 0.75).unreliability == 0.25


@given(st.lists(SIXTEENTHS, min_size=15, max_size=15), st.integers(0, 14))
def test_a_better_link_never_hurts(chances, i):
    graph = nx.petersen_graph()
    better = list(chances)
    better[i] = min(1.0, better[i] + 1 / 16)
    worse = evaluate(graph, (0, 2, 5), chances).unreliability
    assert evaluate(graph, (0, 2, 5), better).unreliability <= worse + 1e-15


def test_hosts_of_a_fat_tree_relay_nothing_and_servers_of_bcube_do():
    clos = fat_tree(4)
    dual = nx.Graph([("a", "x"), ("x", "b"), ("a", "y"), ("y", "c"), ("c", "z"), ("z", "b")])
    relaying = evaluate(dual, ("a", "b"), 0.9)
    dual.nodes["c"]["transit"] = False
    assert evaluate(dual, ("a", "b"), 0.9).reliability == pytest.approx(0.81)
    assert relaying.reliability > 0.9
    host = evaluate(clos, (0, 4), 0.9)
    others = evaluate(
        clos, (0, 4), 0.9, dict.fromkeys(range(1, 4), 0.1) | dict.fromkeys(range(5, 16), 0.1)
    )
    assert host == others  # other hosts are dead ends
    servers = bcube(2, 1)
    assert (
        evaluate(servers, (0, 3), 0.9).reliability
        > evaluate(servers, (0, 3), 0.9, {1: 0.0}).reliability
    )


def test_three_dual_homed_hosts_need_a_pairwise_answer(by_enumeration):
    graph = nx.Graph([("A", 0), ("A", 1), ("B", 1), ("B", 2), ("C", 2), ("C", 0)])
    for host in "ABC":
        graph.nodes[host]["transit"] = False
    chance = 0.75
    links = [(u, v, chance) for u, v in graph.edges]
    exact = by_enumeration(links, dict.fromkeys(graph, 1), ("A", "B", "C"), {0, 1, 2})
    assert exact == Fraction(3, 4) ** 6  # each pair has one switch in common, and needs it
    bounded = evaluate(graph, ("A", "B", "C"), chance)
    assert bounded.method == "bounds"
    assert bounded.lower <= 1 - exact <= bounded.upper
    sampled = estimate(
        graph,
        ("A", "B", "C"),
        chance,
        method="crude",
        samples=200_000,
        confidence=0.9999,
        rng=np.random.default_rng(5),
    )
    assert sampled.method == "crude"
    assert sampled.lower <= 1 - exact <= sampled.upper


@pytest.mark.parametrize("spelling", ["array", "mapping", "reversed", "name", "topology", "list"])
def test_every_spelling_of_the_chances(spelling):
    graph = nx.Graph()
    graph.add_nodes_from([3, 1, 2, 0])
    graph.add_edges_from([(2, 3), (0, 2), (0, 3), (3, 1), (1, 0)])
    topology = as_topology(graph)
    pairs = [sorted(map(topology.index_of, edge)) for edge in graph.edges]
    assert pairs != sorted(pairs)  # the graph's own order of edges is not the topology's
    chances = [0.5, 0.75, 0.625, 0.875, 0.25]
    named = dict(zip(graph.edges, chances, strict=True))
    nodes = {3: 0.5, 1: 0.75}
    nx.set_edge_attributes(graph, named, "up")
    nx.set_node_attributes(graph, dict.fromkeys(graph, 1.0) | nodes, "alive")
    topology = as_topology(graph)
    rows = {
        tuple(sorted((topology.index_of(u), topology.index_of(v)))): p
        for (u, v), p in named.items()
    }
    given = {
        "array": (graph, np.array(chances), [0.5, 0.75, 1, 1]),
        "list": (graph, chances, [0.5, 0.75, 1, 1]),
        "mapping": (graph, named, nodes),
        "reversed": (graph, {(v, u): p for (u, v), p in named.items()}, nodes),
        "name": (graph, "up", "alive"),
        "topology": (topology, [rows[pair] for pair in map(tuple, topology.edges.tolist())], nodes),
    }[spelling]
    expected = evaluate(graph, (3, 2), named, nodes)
    assert evaluate(given[0], (3, 2), given[1], given[2]) == expected


def test_links_and_nodes_that_a_mapping_leaves_out_never_fail():
    path = nx.path_graph(4)
    assert evaluate(path, (0, 3), {(1, 2): 0.5}, {2: 0.5}).reliability == 0.25
    assert evaluate(path, (0, 3), link_down={(1, 2): 0.5}, node_down={2: 0.5}).reliability == 0.25


def test_parallel_cables_fail_together_only_by_chance():
    cable = nx.MultiGraph([(0, 1)] * 3)
    assert evaluate(cable, link_down=1e-5).unreliability == pytest.approx(1e-15, rel=1e-13)
    assert evaluate(cable, link_up=0.1).reliability == pytest.approx(1 - 0.9**3, rel=1e-14)


def test_words_for_terminals():
    fabric = leaf_spine(leaves=3, spines=2, hosts_per_leaf=2)
    hosts, switches = fabric.hosts.tolist(), fabric.switches.tolist()
    assert evaluate(fabric, "all", 0.9) == evaluate(fabric, hosts, 0.9)
    assert evaluate(fabric, "switches", 0.9) == evaluate(fabric, set(switches), 0.9)
    assert evaluate(fabric, "nodes", 0.9) == evaluate(fabric, np.arange(fabric.num_nodes), 0.9)
    assert evaluate(nx.petersen_graph(), "all", 0.9) == evaluate(nx.petersen_graph(), "nodes", 0.9)


def test_what_does_not_fit_is_refused_or_bounded_never_wrong():
    grid = nx.grid_2d_graph(4, 4)
    with pytest.raises(NotExactError, match="max_states=10"):
        evaluate(grid, link_up=0.9, max_states=10, method="exact")
    exact, bounded = evaluate(grid, link_up=0.9), evaluate(grid, link_up=0.9, max_states=10)
    assert (exact.method, bounded.method) == ("exact", "bounds")
    assert bounded.lower <= exact.unreliability <= bounded.upper
    assert "max_states=10 states in a layer" in bounded.reason


def test_a_small_memory_is_not_exhausted(monkeypatch):
    grid = nx.grid_2d_graph(6, 6)
    exact = evaluate(grid, link_up=0.9)
    monkeypatch.setattr("relparallel.reliability.frontier.compiled_sweep.memory", lambda: 4 * 4096)
    with pytest.raises(NotExactError, match="max_states=81 states in a layer"):
        evaluate(grid, link_up=0.9, method="exact")
    bounded = evaluate(grid, link_up=0.9)
    assert bounded.method == "bounds"
    assert "max_states=81 states in a layer" in bounded.reason
    assert bounded.lower <= exact.unreliability <= bounded.upper


@pytest.mark.parametrize(
    ("fabric", "exact_to"),
    [(torus((8, 8, 8)), 1e-3), (torus((16, 8, 8)), 1e-3), (fat_tree(16), 1e-6)],
    ids=["torus 8x8x8", "torus 16x8x8", "fat-tree 16"],
)
def test_a_wide_network_falls_to_bounds_and_says_so(fabric, exact_to):
    evaluate(nx.complete_graph(5), link_up=0.999, max_states=1)  # load what is compiled
    start = time.process_time()
    found = evaluate(fabric, "all", link_up=0.999)
    assert time.process_time() - start < 5.0
    assert found.method == "bounds"
    assert re.search(r"at most 15 live vertices in the frontier DP, got \d+", found.reason)
    assert 0 < found.lower <= found.upper < found.lower * (1 + exact_to)
    with pytest.raises(NotExactError, match=r"15 live vertices.*got \d+; use method='bounds', or"):
        evaluate(fabric, "all", link_up=0.999, method="exact")


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        ({"graph": nx.Graph()}, "graph"),
        ({"graph": nx.DiGraph([(0, 1)])}, "graph"),
        ({"graph": None}, "graph"),
        ({"terminals": "some"}, "terminals"),
        ({"terminals": (0, 99)}, "terminals"),
        ({"terminals": (0, 0)}, "terminals"),
        ({"terminals": ()}, "terminals"),
        ({"terminals": 3}, "terminals"),
        ({"terminals": None}, "terminals"),
        ({"terminals": "switches"}, "terminals"),
        ({"link_up": 1.5}, "link_up"),
        ({"link_up": float("nan")}, "link_up"),
        ({"link_up": None}, "groups"),
        ({"link_up": True}, "link_up"),
        ({"link_up": [0.5, 0.5]}, "link_up"),
        ({"link_up": "up"}, "link_up"),
        ({"link_up": {(0, 9): 0.5}}, "link_up"),
        ({"link_up": {(0, 2): 0.5}}, "link_up"),
        ({"link_up": {0: 0.5}}, "link_up"),
        ({"link_up": {(0, 1): 2.0}}, "link_up"),
        ({"link_down": -0.1}, "link_down"),
        ({"link_up": 0.9, "link_down": 0.1}, "link_up"),
        ({"graph": nx.MultiGraph([(0, 1), (0, 1)]), "link_up": [0.5, 0.5]}, "link_up"),
        ({"node_up": -0.5}, "node_up"),
        ({"node_up": [1.0]}, "node_up"),
        ({"node_up": {99: 0.5}}, "node_up"),
        ({"node_up": "alive"}, "node_up"),
        ({"node_down": "text"}, "node_down"),
        ({"method": "guess"}, "method"),
        ({"method": "crude"}, "method"),
        ({"max_states": 0}, "max_states"),
        ({"max_seconds": 0}, "max_seconds"),
    ],
)
def test_bad_input_is_refused_by_name(arguments, name):
    with pytest.raises((ValueError, TypeError), match=rf"{name} must .*got|{name} must"):
        evaluate(
            **{"graph": nx.path_graph(4)}
            | ({} if "link_down" in arguments else {"link_up": 0.9})
            | arguments
        )


def test_all_topology_zoo_graphs():
    if "RELPARALLEL_DATA" not in os.environ:
        pytest.skip("RELPARALLEL_DATA names no folder with data/topology-zoo")
    benchmark = Path(__file__).resolve().parents[1] / "benchmarks" / "reliability.py"
    graphs = runpy.run_path(str(benchmark))["zoo"](Path(os.environ["RELPARALLEL_DATA"]))
    assert len(graphs) == 221  # what the archive holds of 261
    assert max(map(len, graphs.values())) == 754  # Kdl
    evaluate(nx.cycle_graph(4), link_up=0.99)
    start = time.process_time()
    results = {
        name: evaluate(graph, link_up=0.99, method="exact") for name, graph in graphs.items()
    }
    assert time.process_time() - start < 1.5
    computed = {"NR-zoo-" + name: result.reliability for name, result in results.items()}
    published = rp.published.facts("network-reliability")
    rows = [fact for name, fact in published.items() if name.startswith("NR-zoo-")]
    assert len(rows) == 7
    for fact in rows:
        assert computed[fact.id] == pytest.approx(fact.value, rel=1e-11)
