"""Augmentation and disjoint routes against enumeration and networkx."""

from itertools import combinations, pairwise, permutations, product

import networkx as nx
import numpy as np
import pytest

from chapters.s12.disjoint_routes import disjoint_routes
from chapters.s12.survivable_augmentation import survivable_augmentation


def instance(seed: int) -> tuple[nx.Graph, nx.Graph]:
    rng = np.random.default_rng(seed)
    network = nx.random_labeled_tree(6, seed=seed)
    candidates = nx.gnm_random_graph(6, 9, seed=seed + 1)
    candidates.remove_edges_from(list(network.edges))
    for pair in candidates.edges:
        candidates.edges[pair]["cost"] = float(rng.integers(1, 10))
    return network, candidates


@pytest.mark.parametrize("kind", ["edge", "node"])
@pytest.mark.parametrize("wanted", [2, 3])
@pytest.mark.parametrize("seed", range(6))
def test_the_augmentation_is_what_enumeration_finds(seed, wanted, kind):
    network, candidates = instance(seed)
    measure = nx.edge_connectivity if kind == "edge" else nx.node_connectivity
    prices = {pair: candidates.edges[pair]["cost"] for pair in candidates.edges}
    costs = [
        sum(prices[pair] for pair in bought)
        for size in range(len(prices) + 1)
        for bought in combinations(prices, size)
        if measure(nx.Graph([*network.edges, *bought])) >= wanted
    ]
    if not costs:
        with pytest.raises(ValueError, match="connectivity must be within reach"):
            survivable_augmentation(network, candidates, wanted, kind)
        return
    design = survivable_augmentation(network, candidates, wanted, kind)
    assert design.cost == min(costs)
    assert measure(nx.Graph([*network.edges, *design.links])) >= wanted


def test_a_backbone_of_forty_nodes_is_augmented():
    rng = np.random.default_rng(4)
    network, candidates = nx.random_labeled_tree(40, seed=4), nx.gnm_random_graph(40, 220, seed=5)
    candidates.remove_edges_from(list(network.edges))
    prices = rng.integers(1, 50, candidates.number_of_edges()).astype(float)
    design = survivable_augmentation(network, candidates, cost=prices)
    assert nx.edge_connectivity(nx.Graph([*network.edges, *design.links])) == 2
    assert design.cost < prices.sum() / 4


def least_risk(graph: nx.Graph, groups: dict, risks: dict, link_risk: float) -> tuple[float, int]:
    """Least shared risk, and then least length, over all pairs of simple paths."""
    paths = [list(pairwise(p)) for p in nx.all_simple_paths(graph, 0, 5)]
    links = [{frozenset(e) for e in path} for path in paths]
    hit = [
        {g for g, pairs in groups.items() if any(frozenset(e) in path for e in pairs)}
        for path in links
    ]
    return min(
        (
            round(sum(risks[g] for g in hit[i] & hit[j]) + link_risk * len(links[i] & links[j]), 9),
            len(paths[i]) + len(paths[j]),
        )
        for i, j in product(range(len(paths)), repeat=2)
    )


@pytest.mark.parametrize("seed", range(25))
def test_the_routes_are_what_enumeration_finds(seed):
    rng = np.random.default_rng(seed)
    graph = nx.gnm_random_graph(6, 9, seed=seed)
    if not nx.has_path(graph, 0, 5):
        with pytest.raises(ValueError, match="target must be reachable"):
            disjoint_routes(graph, 0, 5)
        return
    pairs = list(graph.edges)
    groups = {name: [pairs[i] for i in rng.choice(9, 3, replace=False)] for name in "abc"}
    risks = {name: float(rng.integers(1, 5)) for name in groups}
    found = disjoint_routes(graph, 0, 5, groups, risk=risks, link_risk=2.0)
    assert (round(found.risk, 9), round(found.cost)) == least_risk(graph, groups, risks, 2.0)
    for route in found.routes:
        assert nx.is_simple_path(graph, list(route))
        assert (route[0], route[-1]) == (0, 5)
    assert found.disjoint == (not found.shared)


@pytest.mark.parametrize("scale", [1e-12, 1e-7, 1e-3, 1e6])
@pytest.mark.parametrize("seed", [1, 2, 5, 7])
def test_routes_do_not_depend_on_the_unit_of_risks(seed, scale):
    graph = nx.gnm_random_graph(6, 9, seed=seed)
    pairs = list(graph.edges)
    rng = np.random.default_rng(seed)
    groups = {name: [pairs[i] for i in rng.choice(9, 3, replace=False)] for name in "abc"}
    risks = {name: float(rng.integers(1, 5)) for name in groups}
    scaled = {name: scale * risk for name, risk in risks.items()}
    found = disjoint_routes(graph, 0, 5, groups, risk=scaled, link_risk=2 * scale)
    assert (round(found.risk / scale, 9), round(found.cost)) == least_risk(
        graph, groups, risks, 2.0
    )


@pytest.mark.parametrize("order", list(permutations((1.0, 1.5, 3.0))))
@pytest.mark.parametrize(
    ("unit", "link_risk"), [(1e-13, 1.0), (1e-7, 1.0), (1e-9, 1e-8), (1.0, 1e9)]
)
def test_risks_far_below_others_decide_among_themselves(order, unit, link_risk):
    """Three routes of two links, any two of which share one risk: the two that share the least."""
    graph = nx.Graph([(end, via) for via in "abc" for end in ("s", "t")])
    shared = {pair: unit * risk for pair, risk in zip(("ab", "ac", "bc"), order, strict=True)}
    groups = {pair: [("s", pair[0]), (pair[1], "t")] for pair in shared}
    found = disjoint_routes(graph, "s", "t", groups, risk=shared, link_risk=link_risk)
    assert found.shared == (min(shared, key=shared.get),)
    assert found.risk == pytest.approx(unit)


def test_nothing_to_choose_from():
    nothing = nx.empty_graph(4)
    assert survivable_augmentation(nx.cycle_graph(4), nothing).links == ()
    with pytest.raises(ValueError, match="connectivity must be within reach"):
        survivable_augmentation(nx.path_graph(4), nothing)
    with pytest.raises(ValueError, match="target must be reachable"):
        disjoint_routes(nothing, 0, 1)


@pytest.mark.parametrize(("connectivity", "cost"), [(1, 0.0), (2, 0.0), (3, 2.0), (4, 7.0)])
def test_parallel_cables_that_are_there_count_each(connectivity, cost):
    network = nx.MultiGraph([(0, 1), (0, 1), (1, 2), (1, 2)])
    offered = nx.Graph()
    offered.add_weighted_edges_from([(0, 1, 1.0), (1, 2, 1.0), (0, 2, 5.0)], weight="cost")
    assert survivable_augmentation(network, offered, connectivity).cost == pytest.approx(cost)


@pytest.mark.parametrize("kind", ["edge", "node"])
def test_nothing_to_build_with_is_refused(kind):
    with pytest.raises(ValueError, match="connectivity must be within reach"):
        survivable_augmentation(nx.empty_graph(2), nx.empty_graph(2), 1, kind)
