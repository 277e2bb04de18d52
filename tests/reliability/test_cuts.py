"""Minimal cuts: complete, and what is not listed is bounded."""

from itertools import combinations, pairwise

import networkx as nx
import numba
import numpy as np
import pytest

from relparallel.reliability.bounding import cut_bounds
from relparallel.reliability.bounding.cut_bounds import (
    disjoint_cuts,
    near_minimum_cuts,
    part_chances,
    union_bracket,
)
from relparallel.reliability.bounding.cut_families import find_cuts, karger_tail
from relparallel.reliability.frontier.decomposition import into_blocks
from relparallel.reliability.problem import read_problem
from relparallel.topology import fat_tree, torus


def separates(problem, failed):
    """Whether two terminals are apart when these parts are down."""
    m = len(problem.edges)
    graph = nx.Graph()
    graph.add_nodes_from(v for v in range(len(problem.node)) if m + v not in failed)
    graph.add_edges_from(
        (u, v)
        for e, (u, v) in enumerate(problem.edges.tolist())
        if e not in failed and u in graph and v in graph
    )
    return not set(problem.terminals.tolist()) <= nx.node_connected_component(
        graph, problem.terminals[0]
    )


def minimal_cuts(problem):
    """All of them, by trying every set of parts that can fail."""
    parts, found = np.flatnonzero(part_chances(problem)).tolist(), []
    for size in range(1, len(parts) + 1):
        for some in map(frozenset, combinations(parts, size)):
            if not any(cut <= some for cut in found) and separates(problem, some):
                found.append(some)
    return found


def listed(family):
    bounds = family.starts.tolist()
    return [frozenset(family.parts[i:j].tolist()) for i, j in pairwise(bounds)]


def small_problems(count, seed):
    """Random connected graphs with at most 12 parts that can fail."""
    rng = np.random.default_rng(seed)
    while count:
        n = int(rng.integers(3, 8))
        graph = nx.gnm_random_graph(n, int(rng.integers(n, 2 * n)), seed=int(rng.integers(2**31)))
        terminals = rng.choice(n, int(rng.integers(2, n + 1)), replace=False).tolist()
        node = np.where(np.isin(np.arange(n), terminals), 0.0, rng.choice([0.0, 0.05, 0.3], n))
        down = 10 ** rng.uniform(-3, -0.3, graph.number_of_edges())
        if nx.is_connected(graph) and np.count_nonzero(node) + len(down) <= 12:
            count -= 1
            yield read_problem(graph, terminals, 1.0, 1.0, down, node)


def test_every_minimal_cut_is_listed_and_nothing_else_is_a_cut():
    for problem in small_problems(15, 1):
        family, wanted = find_cuts(problem, 0.0), minimal_cuts(problem)
        found = listed(family)
        assert set(wanted) <= set(found)
        assert len(found) == len(set(found))
        assert family.rest == 0
        assert all(separates(problem, cut) for cut in found)
        down = part_chances(problem)
        assert np.allclose(family.chances, [np.prod(down[list(cut)]) for cut in found], rtol=1e-12)
        if len(problem.terminals) == len(problem.node):
            assert len(found) == len(wanted)


def test_cuts_above_the_floor_are_listed_whatever_is_pruned():
    for problem in small_problems(40, 2):
        down = part_chances(problem)
        for floor in (1e-1, 1e-2, 1e-4):
            family = find_cuts(problem, floor)
            missing = set(minimal_cuts(problem)) - set(listed(family))
            assert all(np.prod(down[list(cut)]) <= floor * (1 + 1e-9) for cut in missing)
            assert family.rest >= max((np.prod(down[list(cut)]) for cut in missing), default=0.0)


@numba.njit
def cut_sizes(indptr, near, most):
    """How many splits of a graph cut 0, 1, ... links, by Gray code over all node sets without 0."""
    n, size, found = len(indptr) - 1, 0, np.zeros(most + 1, np.int64)
    inside = np.zeros(n, np.bool_)
    for step in range(1, 2 ** (n - 1)):
        v, rest = 1, step
        while rest % 2 == 0:
            v, rest = v + 1, rest // 2
        for k in range(indptr[v], indptr[v + 1]):
            size += 1 if inside[near[k]] == inside[v] else -1
        inside[v] = not inside[v]
        if size <= most:
            found[size] += 1
    return found


def test_the_torus_3x3x3_by_all_its_splits():
    graph = nx.convert_node_labels_to_integers(nx.grid_graph((3, 3, 3), periodic=True))
    adjacency = nx.to_scipy_sparse_array(graph, format="csr")
    most = 16
    splits = cut_sizes(adjacency.indptr, adjacency.indices, most)
    family = find_cuts(read_problem(torus((3, 3, 3)), "nodes", 1.0, 1.0, 0.5), 0.0, limit=most)
    cuts = np.bincount(family.sizes[family.sizes <= most], minlength=most + 1)
    # a node, and a node or a link that shares no link with it, are splits of 12 and 16 that are not
    # minimal
    far = {v: set(graph) - {v} - set(graph[v]) for v in graph}
    splits[12] -= sum(map(len, far.values())) // 2
    splits[16] -= sum(1 for v in graph for a, b in graph.edges if a in far[v] and b in far[v])
    assert cuts.tolist() == splits.tolist()
    assert (cuts[6], cuts[10]) == (27, 81)


def test_the_torus_4x4x4_up_to_sixteen_links():
    """The 6-cube: by Harper's theorem five or more nodes (and complements) cut at least 20."""
    family = find_cuts(read_problem(torus((4, 4, 4)), "nodes", 1.0, 1.0, 0.5), 0.0, limit=16)
    sizes = np.bincount(family.sizes[family.sizes <= 16], minlength=17)
    graph = nx.hypercube_graph(6)
    triples = sum(degree * (degree - 1) // 2 for _, degree in graph.degree)
    squares = 64 * 15 // 4
    assert {i: int(c) for i, c in enumerate(sizes) if c} == {
        6: 64,
        10: 192,
        14: triples,
        16: squares,
    }


def test_near_minimum_cuts_of_the_large_networks():
    family = find_cuts(read_problem(torus((8, 8, 8)), "nodes", 1.0, 1.0, 1e-3), 0.0, limit=10)
    assert np.bincount(family.sizes[family.sizes <= 10]).tolist() == [0] * 6 + [512, 0, 0, 0, 1536]
    family = find_cuts(read_problem(fat_tree(16), "switches", 1.0, 1.0, 1e-3), 0.0, limit=16)
    assert np.bincount(family.sizes[family.sizes <= 16]).tolist() == [0] * 8 + [128] + [0] * 7 + [
        192
    ]


def test_a_stopped_search_still_bounds_everything():
    problem = read_problem(nx.hypercube_graph(4), "all", 1.0, 1.0, 0.1)
    exact = 1.625611418042183e-03  # NR-Q4-all-p9_10
    for steps in (1, 100, 3000, 20_000):
        family = find_cuts(problem, 1e-12, max_steps=steps)
        assert (
            union_bracket(problem, family)[1] + family.rest >= exact
            if len(family)
            else family.rest >= exact
        )


def test_unions_are_bracketed():
    for problem in small_problems(60, 3):
        family, down = find_cuts(problem, 0.0), part_chances(problem)
        parts = np.flatnonzero(down).tolist()
        truth = 0.0
        for states in range(2 ** len(parts)):
            failed = frozenset(p for i, p in enumerate(parts) if states >> i & 1)
            if any(cut <= failed for cut in listed(family)):
                truth += np.prod([down[p] if p in failed else 1 - down[p] for p in parts])
        low, high = union_bracket(problem, family)
        assert low <= truth <= high
        assert disjoint_cuts(family) <= truth


def test_karger_bounds_the_cuts_below_the_floor():
    problem = read_problem(nx.hypercube_graph(4), "all", 1.0, 1.0, 1e-3)
    family = find_cuts(problem, 0.0)
    for floor in (1e-17, 1e-20):
        below = family.chances[family.chances <= floor].sum()
        assert below <= karger_tail(16, 1e-12, floor) < 1e-12
    assert karger_tail(16, 0.01, 1e-9) == 1.0  # too likely: nothing is known


def test_likelier_cuts_are_found_first_and_the_bound_falls():
    block = into_blocks(read_problem(torus((5, 5)), "nodes", 1.0, 1.0, 0.01)).blocks[0].problem
    rests = [near_minimum_cuts(block, rtol).rest for rtol in (1e-1, 1e-3, 1e-5)]
    assert rests == sorted(rests, reverse=True)
    assert rests[-1] <= 1e-5 * 25e-8


@pytest.mark.parametrize("terminals", [(0, 7), (0, 3, 9)])
def test_terminals_apart_are_an_empty_cut(terminals):
    graph = nx.disjoint_union(nx.cycle_graph(5), nx.cycle_graph(5))
    family = find_cuts(read_problem(graph, terminals, 1.0, 1.0, 0.1), 0.0)
    assert 1.0 in family.chances


def test_large_groups_of_cuts_are_bounded_by_the_pairs_that_share_a_part(monkeypatch):
    for graph, down, floor in (
        (nx.grid_2d_graph(12, 12), 0.05, 1e-6),
        (nx.petersen_graph(), 0.2, 0.0),
    ):
        problem = read_problem(graph, "all", 1.0, 0.99, down)
        family, chances = find_cuts(problem, floor), cut_bounds.part_chances(problem)
        order = np.argsort(-family.chances, kind="stable")
        network = order, family.starts, family.parts, chances, family.chances[order]
        (pairs, shares, tree), (few, same, branches) = (
            cut_bounds._pair_sums(*network),
            cut_bounds._sparse_sums(*network),
        )
        assert few == pytest.approx(pairs, rel=1e-9)
        np.testing.assert_allclose(same, shares, rtol=1e-9)
        assert 0.9 * tree <= branches <= tree * (1 + 1e-12)
        all_pairs = union_bracket(problem, family)
        monkeypatch.setattr(cut_bounds, "PAIRED", 3)
        sparse = union_bracket(problem, family)
        monkeypatch.setattr(cut_bounds, "_MOST_OVERLAPS", 0)
        likeliest = union_bracket(problem, family)
        monkeypatch.undo()
        assert likeliest[0] <= sparse[0] <= sparse[1] <= likeliest[1]
        assert sparse == pytest.approx(all_pairs, rel=0.02)
