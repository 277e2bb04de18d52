"""All-to-all, broadcast and all-gather: executed on vectors and counted."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st

from relparallel.parallel import bytes_sent, execute
from relparallel.parallel.algorithms import (
    bruck_all_gather,
    chain_broadcast,
    direct_all_to_all,
    hierarchical_all_gather,
    hierarchical_all_to_all,
    ring_all_to_all,
    tree_broadcast,
)

sizes = {"nodes": st.integers(1, 5), "g": st.integers(1, 5), "elements": st.integers(1, 30)}
EXCHANGES = {
    "direct": lambda ranks, elements, g: direct_all_to_all(ranks, elements),
    "ring": lambda ranks, elements, g: ring_all_to_all(ranks, elements),
    "hierarchical": hierarchical_all_to_all,
}


def cut(parts: int, elements: int) -> np.ndarray:
    return np.arange(parts + 1) * elements // parts


@pytest.mark.parametrize("name", EXCHANGES)
@given(**sizes)
def test_every_chunk_arrives_at_its_rank(name, nodes, g, elements):
    ranks = nodes * g
    rows = 1 + np.arange(ranks * elements).reshape(ranks, elements)
    vectors = np.zeros((ranks, ranks, elements))
    vectors[np.arange(ranks), np.arange(ranks)] = rows  # rank i has row i
    held = execute(EXCHANGES[name](ranks, elements, g), vectors.reshape(ranks, -1))
    held = held.reshape(ranks, ranks, elements)
    for rank, (start, stop) in enumerate(
        zip(cut(ranks, elements), cut(ranks, elements)[1:], strict=False)
    ):
        assert np.array_equal(held[rank, :, start:stop], rows[:, start:stop])


@given(nodes=st.integers(1, 5), g=st.integers(1, 5), chunk=st.integers(1, 3))
def test_the_hierarchy_loads_the_network_like_the_direct_exchange(nodes, g, chunk):
    def out(rounds):
        return sum(
            step.elements[step.source // g != step.destination // g].sum() for step in rounds
        )

    ranks = nodes * g
    same = ranks * ranks * chunk * (ranks - g)
    assert out(direct_all_to_all(ranks, ranks * chunk)) * ranks == same
    assert out(hierarchical_all_to_all(ranks, ranks * chunk, g)) * ranks == same


@given(**sizes, pieces=st.integers(1, 5))
def test_a_broadcast_reaches_everybody(nodes, g, elements, pieces):
    vectors = np.zeros((nodes * g, elements))
    vectors[0] = 1 + np.arange(elements)
    for rounds in (
        tree_broadcast(nodes * g, elements, g),
        chain_broadcast(nodes * g, elements, pieces),
    ):
        assert (execute(rounds, vectors) == vectors[0]).all()


@given(ranks=st.integers(1, 40), elements=st.integers(1, 60))
def test_bruck_gathers_in_the_logarithm_of_the_ranks(ranks, elements):
    whole, ends = 1 + np.arange(elements), cut(ranks, elements)
    vectors = np.zeros((ranks, elements))
    for rank in range(ranks):
        vectors[rank, ends[rank] : ends[rank + 1]] = whole[ends[rank] : ends[rank + 1]]
    rounds = list(bruck_all_gather(ranks, elements))
    assert len(rounds) == int(np.ceil(np.log2(ranks)))
    assert (execute(rounds, vectors) == whole).all()


@given(ranks=st.integers(1, 40), chunk=st.integers(1, 3))
def test_bruck_sends_no_byte_twice(ranks, chunk):
    sent = bytes_sent(bruck_all_gather(ranks, ranks * chunk), ranks, element_bytes=1)
    assert sent == pytest.approx(np.full(ranks, (ranks - 1) * chunk))


@given(**sizes)
def test_a_hierarchy_gathers_what_its_reduction_scattered(nodes, g, elements):
    whole, chunks = 1 + np.arange(elements), cut(g, elements)
    vectors = np.zeros((nodes * g, elements))
    for rank in range(nodes * g):
        chunk = (rank % g + 1) % g
        ends = chunks[chunk] + cut(nodes, chunks[chunk + 1] - chunks[chunk])
        mine = slice(ends[rank // g], ends[rank // g + 1])
        vectors[rank, mine] = whole[mine]
    assert (execute(hierarchical_all_gather(nodes * g, elements, g), vectors) == whole).all()
