"""All-reduces beside the ring: executed on vectors, counted and priced."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st

from relparallel.parallel import Links, bytes_sent, execute, ring_all_reduce, rounds_time
from relparallel.parallel.algorithms import (
    double_tree_all_reduce,
    halving_doubling_all_reduce,
    hierarchical_all_reduce,
    tree_all_reduce,
)

ALGORITHMS = {
    "tree": lambda nodes, g, elements, pieces: tree_all_reduce(nodes * g, elements, g),
    "halving": lambda nodes, g, elements, pieces: halving_doubling_all_reduce(
        nodes * g, elements, g
    ),
    "hierarchical": lambda nodes, g, elements, pieces: hierarchical_all_reduce(
        nodes * g, elements, g
    ),
    "hierarchical tree": lambda nodes, g, elements, pieces: hierarchical_all_reduce(
        nodes * g, elements, g, pieces
    ),
    "double tree": lambda nodes, g, elements, pieces: double_tree_all_reduce(
        nodes * g, elements, pieces
    ),
}
sizes = {
    "nodes": st.integers(1, 6),
    "g": st.integers(1, 6),
    "elements": st.integers(1, 40),
    "pieces": st.integers(1, 5),
}


@pytest.mark.parametrize("name", ALGORITHMS)
@given(**sizes, seed=st.integers(0, 2**32))
def test_every_rank_ends_with_the_sum_whatever_the_sizes(name, nodes, g, elements, pieces, seed):
    vectors = np.random.default_rng(seed).integers(-99, 99, (nodes * g, elements))
    held = execute(ALGORITHMS[name](nodes, g, elements, pieces), vectors)
    assert np.array_equal(held, np.tile(vectors.sum(axis=0), (nodes * g, 1)))


@given(ranks=st.integers(1, 40), pieces=st.integers(1, 9))
def test_a_double_tree_has_the_depth_of_the_logarithm(ranks, pieces):
    depth = int(np.ceil(np.log2(ranks)))
    assert len(list(double_tree_all_reduce(ranks, 8, pieces))) == (
        2 * (depth + pieces - 1) if depth else 0
    )


@given(ranks=st.integers(2, 40), pieces=st.integers(1, 9))
def test_no_rank_of_a_double_tree_sends_more_than_two_pieces_at_once(ranks, pieces):
    for step in double_tree_all_reduce(ranks, 2 * pieces, pieces):
        assert np.bincount(step.source, weights=step.elements).max() <= 2


@pytest.mark.parametrize("ranks", [4, 7, 16, 31])
def test_a_double_tree_of_many_pieces_sends_at_the_full_rate(ranks):
    rounds = double_tree_all_reduce(ranks, 2000, pieces=1000)
    links = Links(latency=0, bandwidth=1, network_latency=0, network_bandwidth=1)
    seconds = rounds_time(rounds, ranks, links, element_bytes=1)
    assert 2000 * 2 * (ranks - 1) / ranks <= seconds <= 2 * 2000 * 1.01


@given(level=st.integers(0, 5), chunk=st.integers(1, 4))
def test_halving_sends_the_bytes_of_the_ring_in_the_rounds_of_a_tree(level, chunk):
    ranks = 2**level
    rounds = list(halving_doubling_all_reduce(ranks, ranks * chunk))
    ring = bytes_sent(ring_all_reduce(ranks, ranks * chunk), ranks)
    assert len(rounds) == 2 * level
    assert bytes_sent(rounds, ranks).tolist() == ring.tolist()


@given(nodes=st.integers(1, 6), g=st.integers(1, 6), chunk=st.integers(1, 4))
def test_a_hierarchy_leaves_the_least_for_the_network(nodes, g, chunk):
    elements = nodes * g * chunk
    out = np.zeros(nodes)
    for step in hierarchical_all_reduce(nodes * g, elements, g):
        away = step.source // g != step.destination // g
        out += np.bincount(step.source[away] // g, step.elements[away], minlength=nodes)
    assert out == pytest.approx(np.full(nodes, 2 * (nodes - 1) / nodes * elements))


@pytest.mark.parametrize(
    "generator", [tree_all_reduce, halving_doubling_all_reduce, hierarchical_all_reduce]
)
def test_unequal_nodes_are_refused(generator):
    with pytest.raises(ValueError, match="ranks_per_node must divide ranks = 6, got 4"):
        generator(6, 10, 4)
