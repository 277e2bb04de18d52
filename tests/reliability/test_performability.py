from dataclasses import replace
from itertools import combinations, product

import networkx as nx
import numpy as np
import pytest
from scipy.stats import binom

from chapters.s11.expected_delivery import pairs_measure, performability
from relparallel.metrics import survival
from relparallel.reliability import evaluate
from relparallel.reliability.closed_forms.fat_tree_forms import fat_tree_pod_bandwidth
from relparallel.reliability.repair.likely_states import likely_states, orbits_of_sets
from relparallel.topology import as_topology, bcube, fat_tree, hpn7, leaf_spine, torus


def flow(graph, capacity, sources, targets):
    """Maximum flow by the preflow-push algorithm of networkx."""
    arcs = nx.DiGraph()
    arcs.add_nodes_from(["from", "to"])
    for u, v in graph.edges:
        arcs.add_edge(u, v, capacity=capacity)
        arcs.add_edge(v, u, capacity=capacity)
    arcs.add_edges_from([("from", s) for s in sources if s in graph])
    arcs.add_edges_from([(t, "to") for t in targets if t in graph])
    return nx.maximum_flow_value(arcs, "from", "to")


def enumerated(graph, link_down, node_down, value):
    """Law of a value over all states of links and nodes."""
    edges, nodes, law = list(graph.edges), list(graph.nodes), {}
    for state in product((True, False), repeat=len(edges) + len(nodes)):
        chance = np.prod([1 - link_down if up else link_down for up in state[: len(edges)]])
        chance *= np.prod([1 - node_down if up else node_down for up in state[len(edges) :]])
        left = graph.edge_subgraph([e for e, up in zip(edges, state, strict=False) if up]).copy()
        left.add_nodes_from(nodes)
        left.remove_nodes_from(
            [v for v, up in zip(nodes, state[len(edges) :], strict=True) if not up]
        )
        found = value(left)
        law[found] = law.get(found, 0.0) + chance
    return law


@pytest.mark.parametrize(
    "network",
    [fat_tree(4), torus((3, 3)), bcube(3, 1), hpn7(1), nx.Graph([(0, 1), (2, 3)])],
    ids=["fat-tree", "torus", "BCube", "HPN", "two pairs"],
)
def test_joined_pairs_are_those_that_survive(network):
    t, rng = as_topology(network), np.random.default_rng(3)
    measure = pairs_measure(t)
    for up in (0.3, 0.6, 0.9, 1.0):
        for _ in range(5):
            alive = rng.random(t.num_nodes + len(t.edges)) < up
            assert measure(t, alive) == pytest.approx(survival(t, alive).pairs, rel=1e-14)


def test_flow_against_all_states():
    graph = nx.Graph([(0, 1), (0, 2), (1, 2), (1, 3), (2, 3)])
    law = enumerated(graph, 0.2, 0.1, lambda left: flow(left, 1, [0], [3]))
    found = performability(
        graph, "max_flow", link_down=0.2, node_down=0.1, sources=[0], targets=[3], gap=0
    )
    assert found.remainder == 0
    assert dict(zip(found.delivered, found.probability, strict=True)) == pytest.approx(
        law, rel=1e-12
    )
    assert (
        found.lower == found.upper == pytest.approx(sum(x * p for x, p in law.items()), rel=1e-12)
    )


def test_pairs_against_all_states_and_the_exact_programme():
    ring = nx.cycle_graph(5)
    mean = np.mean([evaluate(ring, (0, d), link_up=0.8).reliability for d in range(1, 5)])
    whole = performability(ring, link_up=0.8, gap=0)
    assert whole.value == pytest.approx(mean, rel=1e-12)
    assert whole.at_least(1.0)[0] == pytest.approx(
        evaluate(ring, link_up=0.8).reliability, rel=1e-12
    )


def test_early_bounds_hold_the_value_and_shrink():
    mesh = nx.convert_node_labels_to_integers(nx.grid_2d_graph(3, 3))
    whole = np.mean(
        [evaluate(mesh, pair, link_up=0.9).reliability for pair in combinations(mesh, 2)]
    )
    widths = []
    for states in (1, 10, 100, 400):
        part = performability(mesh, link_up=0.9, gap=0, most_states=states)
        assert part.lower <= whole <= part.upper
        lower, upper = part.at_least(1.0)
        assert lower <= evaluate(mesh, link_up=0.9).reliability <= upper
        widths.append(part.upper - part.lower)
    assert widths == sorted(widths, reverse=True)
    assert widths[-1] < 0.2 * widths[0]


@pytest.mark.parametrize("network", [fat_tree(4), torus((3, 3)), leaf_spine(4, 3, 2)], ids=str)
def test_symmetry_changes_no_bound(network):
    given = {
        "link_down": 0.01,
        "node_down": 0.02,
        "gap": 1e-3,
        "most_states": 500,
        "most_sets": 500,
    }
    lumped = performability(network, **given)
    single = performability(network, lambda t, alive: survival(t, alive).pairs, **given)
    assert lumped.lower == pytest.approx(single.lower, rel=1e-12)
    assert lumped.upper == pytest.approx(single.upper, rel=1e-12)
    assert lumped.sets == single.sets
    assert lumped.states < single.states / 3


def test_symmetry_is_given_up_where_chances_differ():
    ring = torus((5,))
    mixed = performability(ring, link_down=np.linspace(0.01, 0.2, 5), gap=0)
    chances = dict(zip(map(tuple, ring.edges.tolist()), np.linspace(0.01, 0.2, 5), strict=True))
    plain = performability(nx.cycle_graph(5), link_down=chances, gap=0)
    assert mixed.states == mixed.sets == 32
    assert performability(ring, link_down=0.1, gap=0).states < 32
    assert mixed.value == pytest.approx(plain.value, rel=1e-12)


def test_sets_come_in_order_and_once():
    dice = np.random.default_rng(5)
    down = dice.random(9)
    down[3] = 0.0
    base = down > 0.5
    both = np.where(base, [down, 1 - down], [1 - down, down]).T
    sets, _, chances, rest = likely_states(both)
    assert rest == 0
    assert len(sets) == 256 == len({tuple(row) for row in sets.tolist()})
    assert chances.sum() == pytest.approx(1, rel=1e-13)
    assert np.all(np.diff(chances) <= 1e-15 * chances[:-1])
    failed = base.copy()
    failed[sets[100][sets[100] >= 0]] ^= True
    assert chances[100] == pytest.approx(np.prod(np.where(failed, down, 1 - down)), rel=1e-13)


def test_likely_states_of_parts_with_several_states():
    chances = np.array(
        [[0.5, 0.3, 0.2, 0.0], [0.9, 0.1, 0.0, 0.0], [0.4, 0.3, 0.2, 0.1], [1.0, 0.0, 0.0, 0.0]]
    )
    parts, states, found, rest = likely_states(chances)
    assert rest == 0
    assert len(found) == 24
    assert np.all(np.diff(found) <= 1e-15)
    whole = np.zeros((24, 4), dtype=int)
    for row, (moved, to) in enumerate(zip(parts, states, strict=True)):
        whole[row, moved[moved >= 0]] = to[moved >= 0]
    assert len(np.unique(whole, axis=0)) == 24
    np.testing.assert_allclose(found, chances[range(4), whole].prod(axis=1), rtol=1e-14)
    some = likely_states(chances, remainder=0.25)
    assert 0.0 < some[3] <= 0.25
    assert some[2].tolist() == found[: len(some[2])].tolist()


def test_orbits_of_pairs_on_a_ring():
    pairs = np.array([(i, j) for i in range(6) for j in range(i + 1, 6)])
    turn = np.roll(np.arange(6), 1)
    label = orbits_of_sets(pairs, turn[None])
    distance = np.minimum(pairs[:, 1] - pairs[:, 0], 6 - pairs[:, 1] + pairs[:, 0])
    assert len(np.unique(label)) == 3
    assert len(np.unique(np.column_stack([label, distance]), axis=0)) == 3


def test_leaf_spine_law():
    graph = nx.complete_bipartite_graph(2, 4)
    node = dict.fromkeys(range(2, 6), 0.1)
    found = performability(
        graph, "max_flow", link_down=0.05, node_down=node, sources=[0], targets=[1], gap=0
    )
    law = binom.pmf(np.arange(5), 4, 0.9 * 0.95**2)  # a spine and both its links
    np.testing.assert_allclose(found.probability[::-1], law, rtol=1e-11)


def two_pods(h):
    """Two edge switches, their pods' aggregation switches, and the cores."""
    graph = nx.Graph()
    for pod, group in product(range(2), range(h)):
        graph.add_edge(("edge", pod), ("aggregation", pod, group))
        for core in range(h):
            graph.add_edge(("aggregation", pod, group), ("core", group, core))
    return graph


def test_fat_tree_laws():
    graph = two_pods(2)
    kinds = {"core": 0.015, "aggregation": 0.01, "edge": 0.0}
    node = {v: kinds[v[0]] for v in graph}
    inner = graph.subgraph([v for v in graph if v[0] != "edge"])
    sets = [[v for v in inner if v[:2] == ("aggregation", pod)] for pod in (0, 1)]
    whole = performability(
        inner,
        "max_flow",
        node_down={v: node[v] for v in inner},
        sources=sets[0],
        targets=sets[1],
        gap=0,
    )
    pods = fat_tree_pod_bandwidth(4, 0.985, 0.99)
    np.testing.assert_allclose(whole.probability[::-1], pods, rtol=1e-11)
    assert fat_tree_pod_bandwidth(48, 0.99, 0.99, 0.999).sum() == pytest.approx(1, rel=1e-12)


def test_a_large_fabric_against_its_closed_form():
    fabric = fat_tree(8)  # 208 nodes and 384 cables
    edge = np.flatnonzero(fabric.is_kind("edge"))
    down = np.where(fabric.is_kind("core") | fabric.is_kind("aggregation"), 1e-4, 0.0)
    ends = {"sources": edge[fabric.pod[edge] == 0], "targets": edge[fabric.pod[edge] == 1]}
    found = performability(fabric, "max_flow", node_down=down, gap=1e-5, **ends)
    assert found.best == 16
    assert found.remainder < 1e-5
    assert found.states < found.sets / 3
    # The law is that of up-down routing; a second climb through a third pod helps where two
    # switches failed.
    law = fat_tree_pod_bandwidth(8, 1 - 1e-4, 1 - 1e-4)
    climbing = law @ (16 - np.arange(17))
    assert 0.995 * climbing < found.loss[0] < found.loss[1] < climbing + 2e-4


def test_sources_may_be_an_array():
    ring = nx.cycle_graph(4)
    ends = {"sources": np.array([0, 1]), "targets": np.array([2])}
    assert performability(ring, "max_flow", **ends).value == 2


def test_unequal_capacities():
    t = as_topology(nx.path_graph(3))
    thick = replace(t, capacity=np.array([4e11, 1e11]))
    assert performability(thick, "max_flow", sources=[0], targets=[2]).value == 1
    assert performability(thick, "max_flow", sources=[0], targets=[1]).value == 4
    far = replace(t, capacity=np.array([1.0, 1e9]))
    assert performability(far, "max_flow", sources=[0], targets=[1]).best == 1
    assert performability(far, "max_flow", sources=[1], targets=[2]).best == 1e9
    odd = replace(t, capacity=np.array([1.0, 1e19]))
    with pytest.raises(ValueError, match="common unit"):
        performability(odd, "max_flow", sources=[0], targets=[2])


@pytest.mark.parametrize(
    ("capacities", "expected"),
    [
        ([50e9, 50.3e9], 1.006),
        ([400, 403], 1.0075),
        ([0.3, 0.1 + 0.2], 1.0),
        ([3.0, np.pi], np.pi / 3),
    ],
)
def test_a_capacity_close_to_another_is_not_taken_for_it(capacities, expected):
    wires = replace(as_topology(nx.path_graph(3)), capacity=np.array(capacities))
    found = performability(wires, "max_flow", sources=[1], targets=[2])
    assert found.lower == found.upper == pytest.approx(expected, rel=1e-15)


@pytest.mark.parametrize("digits", [2, 6, 17])
def test_flows_with_real_capacities_against_all_states(digits):
    rng = np.random.default_rng(digits)
    for _ in range(12):
        graph = nx.gnm_random_graph(5, 7, seed=int(rng.integers(1000)))
        for edge in graph.edges:
            graph.edges[edge]["capacity"] = float(np.round(10 ** rng.uniform(0, 1.5), digits))
        smallest = min(c for *_, c in graph.edges(data="capacity"))
        mean = 0.0
        for state in product((0.8, 0.2), repeat=7):
            gone = [e for e, chance in zip(graph.edges, state, strict=True) if chance == 0.2]
            left = nx.restricted_view(graph, [], gone)
            mean += np.prod(state) * nx.maximum_flow_value(left, 0, 4) / smallest
        found = performability(graph, "max_flow", link_up=0.8, sources=[0], targets=[4], gap=0)
        assert found.lower == found.upper == pytest.approx(mean, rel=1e-12)


def test_what_is_out_of_range_is_refused():
    ring = nx.cycle_graph(4)
    with pytest.raises(ValueError, match="measure must stay between"):
        performability(ring, lambda t, alive: float((~alive).sum()), link_up=0.9)
    with pytest.raises(ValueError, match="sources must be left out"):
        performability(ring, link_up=0.9, sources=[0])
    with pytest.raises(ValueError, match="targets must be"):
        performability(ring, "max_flow", sources=[0], targets=[0])


@pytest.mark.parametrize("wrong", ["a", None, [1.0, 2.0], float("nan")])
def test_a_measure_returns_one_number(wrong):
    with pytest.raises((TypeError, ValueError), match="measure must"):
        performability(nx.cycle_graph(4), lambda t, alive: wrong, link_up=0.9)
    with pytest.raises((TypeError, ValueError), match="measure must"):
        performability(nx.cycle_graph(4), lambda t, alive: wrong, link_up=0.9, best=3.0)
