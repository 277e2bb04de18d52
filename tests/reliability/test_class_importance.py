"""Importance of classes of alike parts against backward sweep and conditioning without classes."""

from fractions import Fraction

import networkx as nx
import numpy as np
import pytest

from relparallel.reliability import evaluate
from relparallel.reliability.frontier.compiled_sweep import NotExactError
from relparallel.reliability.frontier.decomposition import compiled
from relparallel.reliability.methods import ROUTES, Question
from relparallel.reliability.problem import read_problem
from relparallel.reliability.sensitivity.class_importance import class_importance
from relparallel.reliability.sensitivity.reverse_pass import gradient
from relparallel.topology import Topology, as_topology, fat_tree, leaf_spine, three_tier


def by_class(fabric, problem):
    """U and importances by classes, with the ways to answer that `evaluate` has."""
    form, bounds = (
        lambda some, way=ROUTES[name]: way(Question(fabric, some, 2**24, 1.0))
        for name in ("closed_form", "bounds")
    )
    return class_importance(as_topology(fabric), problem, form, bounds)


def both(fabric, terminals, link, node):
    """U and importances by class, and by the sweep back."""
    problem = read_problem(fabric, terminals, link, node)
    wanted = np.concatenate([problem.link[:, 1], problem.node[:, 1]]) > 0
    return by_class(fabric, problem), gradient(
        compiled(problem), problem.link, problem.node, wanted
    )


def tiered(fabric, down):
    """Every tier, and the links below it, with another chance."""
    node = 1 - down * np.array([1, 2, 3, 4])[fabric.tier]
    return 1 - down * np.array([1, 1, 2, 5])[fabric.tier[fabric.edges].max(axis=1)], node


def assert_two_digits(found, swept):
    """What matters to the fabric has two digits; what matters a thousandth of it may be 0."""
    (failed, slopes), (expected, exact) = found, swept
    assert failed == pytest.approx(expected, rel=0.05)
    inner = exact[exact < 0.5]  # the others must work in any case
    np.testing.assert_allclose(slopes, exact, rtol=0.05, atol=2e-3 * inner.max(initial=0))


@pytest.mark.parametrize("down", [1e-3, 1e-6, 1e-12])
def test_every_part_of_a_fat_tree(down):
    fabric = fat_tree(4)
    assert_two_digits(*both(fabric, "all", *tiered(fabric, down)))


def test_a_wide_fat_tree_by_bounds():
    """Conditioning, part by part, by brackets far narrower than the difference."""
    fabric = fat_tree(8)
    node = np.where(fabric.is_kind("host"), 1.0, 0.999)
    result = evaluate(fabric, "all", 0.9999, node)
    found = result.importance()
    assert (result.method, result.tight) == ("bounds", True)
    assert found.unreliability == pytest.approx(result.unreliability, rel=1e-6)
    names = dict(zip(found.names, found.birnbaum.tolist(), strict=True))
    switch = int(np.flatnonzero(fabric.is_kind("aggregation"))[-1])
    without, perfect = (
        evaluate(fabric, "all", 0.9999, np.where(np.arange(len(node)) == switch, up, node))
        for up in (0.0, 1.0)
    )
    low, high = without.lower - perfect.upper, without.upper - perfect.lower
    assert 0.9 * low < names[switch] < 1.1 * high
    assert names[int(np.flatnonzero(fabric.is_kind("edge"))[0])] == pytest.approx(
        (1 - found.unreliability) / 0.999, rel=1e-9
    )


@pytest.mark.parametrize("kind", ["host", "leaf"])
def test_every_part_of_a_leaf_spine(kind):
    fabric = leaf_spine(leaves=6, spines=4, hosts_per_leaf=2)
    found, expected = both(fabric, np.flatnonzero(fabric.is_kind(kind)), 0.99, 0.999)
    assert found[0] == pytest.approx(expected[0], rel=1e-13)
    assert found[1] == pytest.approx(expected[1], rel=1e-6, abs=0)


def test_some_parts_that_never_fail():
    fabric = fat_tree(6)
    node = np.array([1.0, 1.0, 0.99, 0.999])[fabric.tier]
    found, expected = both(fabric, np.flatnonzero(fabric.is_kind("edge")), 1.0, node)
    assert found[1] == pytest.approx(expected[1], rel=1e-6, abs=0)
    assert (
        np.count_nonzero(found[1])
        == fabric.is_kind("core").sum() + fabric.is_kind("aggregation").sum()
    )


def test_a_fabric_that_is_too_wide_for_the_sweep_has_its_importances():
    """60 leaves: the frontier would need more live vertices than there are labels."""
    fabric = leaf_spine(leaves=60, spines=16, hosts_per_leaf=1)
    result = evaluate(fabric, "all", 0.99, 0.999)
    found = result.importance()
    assert found.unreliability == pytest.approx(result.unreliability, rel=1e-12)
    table = found.to_frame().groupby("kind")["birnbaum"].max()
    spine = fabric.is_kind("spine")
    names = dict(zip(found.names, found.birnbaum.tolist(), strict=True))
    slopes = [names[v] for v in np.flatnonzero(spine).tolist()]
    assert np.ptp(slopes) == 0
    worse = evaluate(fabric, "all", 0.99, np.where(spine, 0.999 - 1e-6, 0.999)).unreliability
    better = evaluate(fabric, "all", 0.99, np.where(spine, 0.999 + 1e-6, 0.999)).unreliability
    assert (worse - better) / 2e-6 == pytest.approx(16 * slopes[0], rel=1e-3, abs=1e-12)
    assert table["node"] > 0.1  # a leaf or a host fails alone


@pytest.mark.parametrize("hosts", [(0, 4), (0, 1, 4), (0, 4, 8), (0, 2, 4), (0, 1, 2, 3, 12)])
@pytest.mark.parametrize("down", [1e-4, 1e-8])
def test_every_part_where_some_pods_have_no_terminals(hosts, down):
    fabric = fat_tree(4)
    terminals = np.flatnonzero(fabric.is_kind("host"))[list(hosts)]
    assert_two_digits(*both(fabric, terminals, *tiered(fabric, down)))


def test_leaves_without_terminals():
    fabric = leaf_spine(leaves=5, spines=3, hosts_per_leaf=1)
    terminals = np.flatnonzero(fabric.is_kind("leaf"))[:2]
    assert_two_digits(*both(fabric, terminals, 0.999, 0.9999))


def test_what_is_not_alike_is_refused():
    fabric = fat_tree(4)
    link = np.full(len(fabric.edges), 0.9)
    link[-1] = 0.8
    for terminals, up in (("switches", 0.9), ((0, 4), link)):
        with pytest.raises(NotExactError):
            by_class(fabric, read_problem(fabric, terminals, up, 0.9))
    failed, slopes = by_class(fabric, read_problem(fabric, "all", 1.0, 1.0))
    assert (failed, slopes[fabric.num_links :][fabric.is_kind("core")].any()) == (0.0, False)


def under_single_aggregation_switches():
    """Three tiers with one aggregation switch per pod in the place of a pair."""
    graph = nx.Graph(three_tier(3, 4, 2, 1).to_networkx())
    pairs = [v for v, tier in graph.nodes("tier") if tier == 2]
    graph.remove_nodes_from(pairs[::2])
    return Topology.from_networkx(graph)


NETWORKS = {
    "leaf-spine": (leaf_spine(5, 4, 2), ()),
    "leaves under one spine": (leaf_spine(4, 1, 2), ()),
    "switches of a fat-tree": (fat_tree(4), (2, 3)),
    "partitions of pods": (fat_tree(4), (2,)),
    "two aggregation switches per plane": (three_tier(3, 3, 3, 2), (2, 3)),
    "one plane, cables to cores": (under_single_aggregation_switches(), (2,)),
}
TERMINALS = {
    "all": "all",
    "one": (2,),
    "one switch": (0, 1),
    "one pod": (0, 2),
    "two": (0, 5),
    "many": (0, 1, 3, 7),
}


def chances(network, perfect_cables, down, host=0.9):
    """Chances by tier and by tier of cables; switches at the edge that are no terminals' work."""
    node = np.where(network.endpoint, 1 - host, down * np.array([1, 2, 3, 4])[network.tier])
    if network.tier.max() > 2:
        node[network.tier == 1] = 0.0
    link = down * np.array([0, 1, 2, 5])[network.tier[network.edges].max(axis=1)]
    link[np.isin(network.tier[network.edges].max(axis=1), perfect_cables)] = 0.0
    return {"link_up": 1 - link, "node_up": 1 - node}


@pytest.mark.parametrize("down", [1e-3, 1e-9])
@pytest.mark.parametrize("asked", TERMINALS.values(), ids=TERMINALS)
@pytest.mark.parametrize(("network", "perfect"), NETWORKS.values(), ids=NETWORKS)
def test_every_part_of_a_fabric_with_a_closed_form(network, perfect, asked, down):
    parts = chances(network, perfect, down)
    closed = evaluate(network, asked, method="closed_form", **parts)
    found, swept = both(network, asked, *parts.values())
    assert closed.unreliability == pytest.approx(found[0], rel=1e-12, abs=0)
    assert_two_digits(found, swept)


@pytest.mark.parametrize(
    "graph", [nx.complete_graph(8), nx.complete_bipartite_graph(5, 3)], ids=str
)
@pytest.mark.parametrize("down", [0.2, 1e-6])
def test_every_part_of_complete_graphs(graph, down):
    found, swept = both(graph, "nodes", 1 - down, 0.9)
    np.testing.assert_allclose(found[1], swept[1], rtol=1e-6, atol=1e-9 * swept[0])


@pytest.mark.parametrize("asked", ["all"], ids=str)
@pytest.mark.parametrize("down", [Fraction(1, 8), Fraction(1, 2**20)])
@pytest.mark.parametrize("name", ["leaf-spine", "switches of a fat-tree", "partitions of pods"])
def test_one_part_of_every_class_against_conditioning_in_fractions(
    name, down, asked, by_conditioning
):
    network, perfect = NETWORKS[name]
    kinds = network.tier[network.edges].max(axis=1)
    links = {
        tuple(pair): down * int(kind) * (int(kind) not in (1, *perfect))
        for pair, kind in zip(network.edges.tolist(), kinds.tolist(), strict=True)
    }
    nodes = {v: down * int(t) * (t > 1 or not perfect) for v, t in enumerate(network.tier.tolist())}
    asked_nodes = set(range(network.num_hosts)) if asked == "all" else set(asked)
    floats = {pair: float(q) for pair, q in links.items()}, {v: float(q) for v, q in nodes.items()}
    result = evaluate(network, asked, link_down=floats[0], node_down=floats[1])
    assert result.method == "closed_form"
    problem = read_problem(network, asked, 1.0, 1.0, floats[0], floats[1])
    found = result.importance()
    by_classes = by_class(network, problem)[1]
    slopes = dict(zip(found.names, by_classes[found.part].tolist(), strict=True))
    near = {max(pair) for pair in links if min(pair) in asked_nodes}
    classes = {}
    for part in found.names:
        ends = part if isinstance(part, tuple) else (part,)
        classes[tuple(sorted((int(network.tier[v]), v in near) for v in ends))] = part
    assert len(classes) >= 2
    for part in classes.values():
        exact = by_conditioning(network, asked, *floats, part)
        assert slopes[part] == pytest.approx(exact, rel=1e-6, abs=0)


def test_importance_of_large_fabrics_is_the_derivative_of_the_form():
    """Far too wide for the programme: the sum over all switches, by a central difference."""
    for network, asked in (
        (leaf_spine(30, 16, 1), (0, 29)),
        (fat_tree(24), "all"),
    ):
        switch, step = network.tier >= 2, 1e-5
        if network.tier.max() == 2:
            switch = network.tier >= 1
        down = np.where(switch, 0.6, 0.0)
        found = evaluate(network, asked, node_down=down).importance()
        high, low = (
            evaluate(network, asked, node_down=np.where(switch, 0.6 + h, 0.0)).unreliability
            for h in (step, -step)
        )
        assert found.birnbaum.sum() == pytest.approx((high - low) / (2 * step), rel=1e-2, abs=0)
