"""Bounds hold, and get tight with budget."""

import math
import time
from itertools import product

import networkx as nx
import numpy as np
import pytest

from pace import pace
from relparallel.reliability import bounds, evaluate
from relparallel.reliability.bounding.anytime import run_truncated
from relparallel.reliability.bounding.certified import Bounds
from relparallel.reliability.bounding.cut_bounds import near_minimum_cuts
from relparallel.reliability.frontier.compiled_sweep import run_sweep
from relparallel.reliability.frontier.decomposition import into_blocks
from relparallel.reliability.problem import read_problem
from relparallel.topology import fat_tree, torus

METHODS = ("auto", "anytime", "bonferroni", "subgraph", "disjoint")


def random_networks(count, seed):
    """Graphs of up to 11 nodes with all kinds of chances and terminals."""
    rng = np.random.default_rng(seed)
    for _ in range(count):
        n = int(rng.integers(2, 12))
        graph = nx.gnm_random_graph(
            n, int(rng.integers(n - 1, 3 * n)), seed=int(rng.integers(2**31))
        )
        m = graph.number_of_edges()
        equal = rng.random() < 0.5
        terminals = (
            "all"
            if rng.random() < 0.3
            else rng.choice(n, int(rng.integers(2, n + 1)), replace=False)
        )
        down = np.full(m, 10 ** rng.uniform(-4, -0.1)) if equal else 10 ** rng.uniform(-6, -0.1, m)
        node = np.where(rng.random(n) < 0.5 * rng.integers(2), 10 ** rng.uniform(-6, -0.3, n), 0.0)
        budget = {
            "max_states": int(rng.integers(1, 200)),
            "max_steps": int(10 ** rng.uniform(0, 6)),
        }
        yield graph, terminals, {"link_down": down, "node_down": node}, budget


@pytest.mark.parametrize("seed", range(11, pace(13, 19)))
def test_they_hold_on_six_hundred_and_forty_random_networks(seed):
    for graph, terminals, chances, budget in random_networks(80, seed):
        exact = evaluate(graph, terminals, **chances).unreliability
        for method in METHODS:
            found = bounds(graph, terminals, method=method, **budget, **chances)
            assert found.lower <= exact <= found.upper, method
            assert method == "auto" or list(found.tried) in ([method], ["exact"])


@pytest.mark.parametrize(
    ("graph", "terminals", "down"),
    [
        (nx.dodecahedral_graph(), "all", 0.1),
        (torus((5, 5)), "nodes", 0.01),
        (fat_tree(4), "switches", 0.05),
        (nx.grid_2d_graph(5, 5), ((0, 0), (4, 4)), 0.2),
    ],
)
def test_more_states_and_more_steps_make_them_tight(graph, terminals, down):
    exact = evaluate(graph, terminals, link_down=down).unreliability
    gaps = []
    for states in (2**4, 2**8, 2**16):
        found = bounds(
            graph, terminals, link_down=down, method="anytime", max_states=states, rtol=1e-9
        )
        assert found.lower <= exact <= found.upper
        gaps.append(found.upper - found.lower)
    assert gaps == sorted(gaps, reverse=True)
    assert gaps[-1] <= 1e-6 * exact
    widths = []
    for rtol in (0.5, 1e-2, 1e-6):
        found = bounds(graph, terminals, link_down=down / 100, method="bonferroni", rtol=rtol)
        widths.append(found.gap)
    assert widths == sorted(widths, reverse=True)
    assert widths[-1] < 1e-3


def test_truncated_brackets_hold_at_every_size_and_close():
    for graph, terminals, chances, _ in random_networks(60, 5):
        exact = evaluate(graph, terminals, **chances).unreliability
        found = [
            bounds(graph, terminals, method="anytime", max_states=states, rtol=1e-12, **chances)
            for states in (1, 4, 16, 64, 4096)
        ]
        assert all(x.lower <= exact <= x.upper for x in found)
        assert found[-1].upper <= found[-1].lower * (1 + 1e-9)


CHANCES = [0.5, 0.1, 1e-3, 1e-9]


def middling_networks(count, seed, down):
    """Grids, tori and random graphs that are not too wide, some with nodes that fail."""
    rng = np.random.default_rng(seed)
    for i in range(count):
        kinds = (
            lambda: nx.grid_2d_graph(int(rng.integers(3, 8)), int(rng.integers(3, 9))),
            lambda: nx.random_regular_graph(
                3, 2 * int(rng.integers(4, 18)), seed=int(rng.integers(2**31))
            ),
            lambda: nx.gnm_random_graph(
                16, int(rng.integers(20, 30)), seed=int(rng.integers(2**31))
            ),
            lambda: nx.grid_graph((int(rng.integers(3, 5)), 4), periodic=True),
        )
        graph = nx.convert_node_labels_to_integers(kinds[i % 4]())
        n, m = len(graph), graph.number_of_edges()
        some = rng.choice(n, int(rng.integers(2, 9)), replace=False)
        link = down * 2.0 ** rng.uniform(-1, 0.9, m)
        yield (
            graph,
            "all" if i % 3 == 0 else some,
            link,
            np.where(rng.random(n) < 0.2 * (i % 2), down, 0.0),
        )


@pytest.mark.parametrize("down", CHANCES)
def test_lifted_and_lowered_mass_hold_the_truth_on_five_hundred_and_sixty_networks(down):
    truncated, count = 0, pace(20, 140)
    for graph, terminals, link, node in middling_networks(count, 23, down):
        problem = read_problem(graph, terminals, 1.0, 1.0, link, node)
        for _, programme in into_blocks(problem, ordered=True).blocks:
            exact = run_sweep(programme, 2**22).failure
            for states in (1, 2, 5, 20, 90):
                found = run_truncated(programme, states)
                low, high = found.bracket
                assert low <= exact <= high
                assert found.peak <= max(states, 1)
                assert found.failure + found.success + found.dropped == pytest.approx(1, abs=1e-9)
                truncated += high - low > 1e-9 * high
            low, high = run_truncated(programme, 64, 10**4, 0.1 * exact).bracket
            assert low <= exact <= high
    assert truncated > 0.7 * count


@pytest.mark.parametrize("down", CHANCES)
def test_all_methods_hold_on_middling_networks_with_little_work(down):
    for graph, terminals, link, node in middling_networks(pace(4, 24), 29, down):
        exact = evaluate(graph, terminals, link_down=link, node_down=node).unreliability
        for method in METHODS:
            for steps in (1, 3000, 10**6):
                found = bounds(
                    graph,
                    terminals,
                    link_down=link,
                    node_down=node,
                    method=method,
                    max_states=50,
                    max_steps=steps,
                )
                assert found.lower <= exact <= found.upper, method


def test_a_subgraph_is_nearly_as_good_as_the_grid():
    grid = nx.grid_2d_graph(11, 11)
    exact = evaluate(grid, [(0, 0), (10, 10)], link_up=0.9, method="exact").unreliability
    found = bounds(grid, [(0, 0), (10, 10)], link_up=0.9, method="subgraph", max_steps=2**22)
    assert exact <= found.upper <= 1.05 * exact


def test_wide_networks_are_bounded_closely_and_soon():
    for side, up, gap in ((60, 0.99, 1e-3), (30, 0.9, 1e-2)):
        found = evaluate(nx.grid_2d_graph(side, side), [(0, 0), (side - 1, side - 1)], link_up=up)
        assert found.method == "bounds"
        assert found.upper - found.lower <= gap * found.lower


def test_a_long_network_of_any_size_is_exact():
    few, many = (
        evaluate(nx.circular_ladder_graph(rungs), "all", link_up=1 - 1e-9).unreliability
        for rungs in (100, 20_000)
    )
    # two links of a rail, and then the rungs
    assert many == pytest.approx(few * 200 * 200, rel=0.02)


def test_many_wide_blocks_share_the_time_to_look_for_orders():
    chain, start = nx.Graph(), time.process_time()
    for block in range(100):
        wide = nx.gnp_random_graph(60, 0.2, seed=block)
        chain.add_edges_from(((block, u), (block, v)) for u, v in wide.edges)
        if block:
            chain.add_edge((block, 0), (block - 1, 1))
    found = evaluate(chain, "all", link_up=0.99)
    assert time.process_time() - start < 10
    assert found.method == "bounds"
    assert 1 - 0.99**99 <= found.lower <= found.upper <= 1.01 * found.lower


def test_bounds_from_cuts_need_no_more_than_the_work_allowed():
    problem = read_problem(nx.grid_2d_graph(30, 30), [(0, 0), (29, 29)], 0.9, 1.0)
    for steps in (10**4, 10**6):
        assert near_minimum_cuts(problem, 1e-3, steps).steps <= 1.25 * steps + 12 * len(
            problem.edges
        )


@pytest.mark.parametrize("method", METHODS)
def test_terminals_that_never_meet_and_parts_that_never_fail(method):
    up = {(0, 1): 0.0, (0, 3): 0.9, (1, 3): 0.0, (1, 4): 0.0, (2, 4): 0.9, (2, 3): 0.0, (3, 4): 0.9}
    found = bounds(nx.Graph(list(up)), [4, 1, 0, 2], up, {2: 0.5, 4: 0.8}, method)
    assert found.lower <= 1.0 <= found.upper
    up = {(0, 1): 0.0, (0, 3): 1.0, (0, 2): 0.5, (1, 3): 0.9, (1, 2): 1.0, (2, 3): 1.0}
    graph, node = nx.Graph(list(up)), {0: 0.8, 1: 0.8, 3: 0.8}
    found = bounds(graph, [2, 1, 3, 0], up, node, method)
    assert found.lower <= evaluate(graph, [2, 1, 3, 0], up, node).unreliability <= found.upper


def test_narrow_blocks_next_to_wide_ones_are_exact():
    graph = nx.disjoint_union(nx.grid_2d_graph(20, 20), nx.petersen_graph())
    graph.add_edge(399, 400)
    both = evaluate(graph, [0, 409], link_up=0.99)
    grid = evaluate(nx.grid_2d_graph(20, 20), [(0, 0), (19, 19)], link_up=0.99)
    rest = evaluate(nx.petersen_graph(), [0, 9], link_up=0.99).unreliability
    assert (both.method, grid.method) == ("bounds", "bounds")
    tight = 0.01 + 0.99 * rest
    assert both.lower <= 1 - (1 - grid.upper) * (1 - tight)
    assert both.upper >= 1 - (1 - grid.lower) * (1 - tight)
    assert both.upper - both.lower <= 1e-4 * both.lower


def test_a_programme_that_drops_nothing_is_exact():
    problem = read_problem(nx.dodecahedral_graph(), "all", 0.9, 0.99)
    block = into_blocks(problem).blocks[0]
    found = run_truncated(block.sweep, 2**16)
    assert found.dropped == 0
    assert found.failure + found.success == pytest.approx(1, abs=1e-12)
    some = run_truncated(block.sweep, 20)
    assert 16 <= some.peak <= 20
    assert some.failure + some.success + some.dropped == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize("down", [1.64e-4, 1e-3, 0.0354])
def test_the_torus_of_512_nodes(down):
    found = bounds(torus((8, 8, 8)), link_down=down)
    assert found.lower <= 512 * down**6 * (1 + 1e-9) + 1536 * down**10
    assert found.upper >= 512 * down**6 * (1 - 256 * down**6 - 3 * down**5)
    assert found.gap < 1e-3


def test_the_fat_tree_with_nodes_that_fail():
    network = fat_tree(4)
    fails = np.where(np.isin(np.arange(network.num_nodes), network.hosts), 0.0, 0.01)
    exact = evaluate(network, link_down=0.01, node_down=fails).unreliability
    found = bounds(network, link_down=0.01, node_down=fails)
    assert found.lower <= exact <= found.upper
    assert found.gap < 1e-3


def test_chances_too_small_for_one_minus_them():
    found = bounds(torus((6, 6)), link_down=1e-60)
    assert found.lower == pytest.approx(36e-240, rel=1e-9)
    assert found.gap < 1e-3


def test_a_network_that_is_apart_and_one_that_never_fails():
    apart = nx.disjoint_union(nx.path_graph(2), nx.path_graph(2))
    assert bounds(apart, link_up=0.9).lower == pytest.approx(1)
    sure = bounds(nx.complete_graph(4))
    assert (sure.lower, sure.upper, sure.gap) == (0, 0, 0)


def test_the_table_lists_what_was_tried():
    found = bounds(nx.petersen_graph(), link_up=0.7)
    frame = found.to_frame()
    assert set(frame.method) == set(found.tried) >= {"bonferroni", "disjoint", "anytime"}
    assert (frame.lower.max(), frame.upper.min()) == (found.lower, found.upper)
    assert "bonferroni" in found._repr_html_()
    assert math.isinf(Bounds(lower=0, upper=1, method="auto", tried={}).gap)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"method": "best"}, "method must be"),
        ({"rtol": 0.0}, "rtol must be"),
        ({"max_states": 0}, "max_states must be"),
        ({"max_steps": 0}, "max_steps must be"),
    ],
)
def test_what_does_not_apply_is_refused(arguments, words):
    with pytest.raises(ValueError, match=words):
        bounds(nx.petersen_graph(), **{"link_up": 0.9} | arguments)


def test_hosts_with_two_links_that_forward_nothing_are_refused():
    network = nx.complete_bipartite_graph(3, 2)
    dual = {v: {"kind": "host" if v < 3 else "switch", "transit": v >= 3} for v in network}
    nx.set_node_attributes(network, dual)
    from relparallel.topology import Topology

    with pytest.raises(ValueError, match="terminals must forward"):
        bounds(Topology.from_networkx(network), link_up=0.9)


def test_hosts_with_two_links_that_forward_nothing_are_bounded_pair_by_pair():
    """Three hosts on two leaves, not joined otherwise: every two of them need a common leaf."""
    hosts, leaves = range(3), (3, 4)
    network = nx.Graph([(host, leaf) for host in hosts for leaf in leaves])
    nx.set_node_attributes(network, dict.fromkeys(hosts, False), "transit")
    for up in (0.5, 0.9, 0.999):
        works = 0.0
        for links in product((0, 1), repeat=6):
            at = [{leaf for leaf in (0, 1) if links[2 * host + leaf]} for host in hosts]
            if at[0] & at[1] and at[0] & at[2] and at[1] & at[2]:
                works += float(np.prod([up if link else 1 - up for link in links]))
        found = evaluate(network, tuple(hosts), up)
        assert found.method == "bounds"
        assert found.lower <= 1 - works <= found.upper
    assert found.upper < 3 * found.lower
