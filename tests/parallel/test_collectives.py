"""The ring, executed, counted and priced."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st

from relparallel.parallel import COLLECTIVES, Links, bytes_sent, collective, execute, rounds_time
from relparallel.parallel.collectives import (
    Round,
    algorithm,
    messages,
    ring_all_gather,
    ring_all_reduce,
    ring_reduce_scatter,
)


def price(rounds, latency, bandwidth):
    """Of one byte an element, all ranks in one node."""
    links = Links(latency=latency, bandwidth=bandwidth, network_latency=0.0, network_bandwidth=1.0)
    return rounds_time(rounds, 9, links, element_bytes=1)


ranks_and_elements = {"ranks": st.integers(1, 9), "elements": st.integers(1, 40)}


@given(**ranks_and_elements, seed=st.integers(0, 2**32))
def test_every_rank_ends_with_the_sum_whatever_the_sizes(ranks, elements, seed):
    vectors = np.random.default_rng(seed).integers(-99, 99, (ranks, elements))
    held = execute(ring_all_reduce(ranks, elements), vectors)
    assert np.array_equal(held, np.tile(vectors.sum(axis=0), (ranks, 1)))


@given(**ranks_and_elements, seed=st.integers(0, 2**32))
def test_reduce_scatter_leaves_each_rank_one_summed_chunk(ranks, elements, seed):
    vectors = np.random.default_rng(seed).integers(-99, 99, (ranks, elements))
    held = execute(ring_reduce_scatter(ranks, elements), vectors)
    bounds = np.arange(ranks + 1) * elements // ranks
    for rank in range(ranks):
        chunk = (rank + 1) % ranks
        mine = slice(bounds[chunk], bounds[chunk + 1])
        assert np.array_equal(held[rank, mine], vectors.sum(axis=0)[mine])


def test_all_gather_spreads_the_chunk_that_reduce_scatter_leaves():
    owned = np.zeros((4, 4))
    owned[np.arange(4), (np.arange(4) + 1) % 4] = 1 + np.arange(4)
    assert execute(ring_all_gather(4, 4), owned).tolist() == [[4.0, 1.0, 2.0, 3.0]] * 4


@given(ranks=st.integers(1, 9), chunk=st.integers(1, 9), seed=st.integers(0, 99))
def test_the_vectors_given_are_left_as_they_are(ranks, chunk, seed):
    vectors = np.random.default_rng(seed).random((ranks, ranks * chunk))
    before = vectors.copy()
    execute(ring_all_reduce(ranks, ranks * chunk), vectors)
    assert np.array_equal(vectors, before)


@given(ranks=st.integers(1, 9), chunk=st.integers(1, 9))
def test_each_rank_sends_twice_its_vector_less_one_share(ranks, chunk):
    elements = ranks * chunk
    counted = bytes_sent(ring_all_reduce(ranks, elements), ranks, element_bytes=4)
    assert counted == pytest.approx(np.full(ranks, 2 * (ranks - 1) / ranks * elements * 4))


@given(**ranks_and_elements)
def test_all_ranks_together_always_send_2_n_minus_1_vectors(ranks, elements):
    assert (
        bytes_sent(ring_all_reduce(ranks, elements), ranks, 1).sum() == 2 * (ranks - 1) * elements
    )


@given(
    ranks=st.integers(1, 9), chunk=st.integers(1, 9), alpha=st.floats(0, 1), beta=st.floats(1e-3, 1)
)
def test_price_is_the_alpha_beta_formula(ranks, chunk, alpha, beta):
    rounds = ring_all_reduce(ranks, ranks * chunk)
    assert price(rounds, alpha, 1 / beta) == pytest.approx(
        2 * (ranks - 1) * (alpha + beta * chunk), rel=1e-12
    )


def test_a_round_waits_for_its_largest_message():
    # 5 elements over 2 ranks: chunks of 2 and 3, so both rounds carry 3 somewhere.
    assert price(ring_all_reduce(2, 5), 0.0, 1.0) == 6


def test_all_messages_of_a_round_leave_before_any_arrives():
    columns = {"source": [0, 1], "destination": [1, 0], "start": [0, 0], "stop": [2, 2]}
    swap = Round(**{name: np.array(values) for name, values in columns.items()}, reduce=False)
    assert execute([swap], [[1, 2], [3, 4]]).tolist() == [[3, 4], [1, 2]]


@pytest.mark.parametrize(
    ("kind", "name"), [(k, n) for k, names in COLLECTIVES.items() for n in names]
)
def test_every_algorithm_is_found_and_keeps_its_messages_inside_the_vectors(kind, name):
    rounds = list(
        collective(
            kind, name, 8 - (name == "gpu_hierarchical"), 64, ranks_per_node=4, pieces=2, servers=3
        )
    )
    length = 8 * 64 if kind == "all_to_all" else 64
    for step in rounds:
        assert ((step.start >= 0) & (step.start <= step.stop) & (step.stop <= length)).all()
        assert (step.source != step.destination).all()
    assert bytes_sent(rounds, 8).sum() > 0


def test_a_new_algorithm_is_one_generator():
    @algorithm("broadcast", "flat")
    def flat_broadcast(ranks, elements):
        others = np.arange(1, ranks)
        yield messages(np.zeros_like(others), others, 0, elements, False)

    try:
        held = execute(collective("broadcast", "flat", 3, 2), [[1, 2], [0, 0], [0, 0]])
        assert held.tolist() == [[1, 2]] * 3
    finally:
        del COLLECTIVES["broadcast"]["flat"]


@pytest.mark.parametrize(("kind", "name"), [("gossip", "ring"), ("all_reduce", "star")])
def test_unknown_algorithms_are_refused_with_those_there_are(kind, name):
    with pytest.raises(ValueError, match=r"'ring'|'all_reduce'"):
        collective(kind, name, 2, 4)


def test_a_ring_only_talks_to_its_neighbour():
    for step in ring_all_reduce(5, 23):
        assert np.array_equal(step.destination, (step.source + 1) % 5)
        assert (step.elements == step.stop - step.start).all()


@pytest.mark.parametrize("ring", [ring_all_reduce, ring_all_gather, ring_reduce_scatter])
@pytest.mark.parametrize("bad", [0, -1, 2.5, True, None, "4", float("nan"), []])
def test_bad_sizes_are_refused_before_the_first_round(ring, bad):
    with pytest.raises((TypeError, ValueError), match="ranks"):
        ring(bad, 4)
    with pytest.raises((TypeError, ValueError), match="elements"):
        ring(4, bad)


@pytest.mark.parametrize("bad", [None, 3, "text", [None], float("nan")])
def test_rounds_of_anything_else_are_refused(bad):
    for use in (
        lambda: execute(bad, [[1.0]]),
        lambda: bytes_sent(bad, 2),
        lambda: price(bad, 0.0, 1.0),
    ):
        with pytest.raises(TypeError, match="rounds"):
            use()


@pytest.mark.parametrize("bad", [None, "text", [], [1.0, 2.0], [[float("nan")]], 3.0])
def test_vectors_that_are_no_matrix_are_refused(bad):
    with pytest.raises((TypeError, ValueError), match="vectors"):
        execute(ring_all_reduce(1, 1), bad)


@pytest.mark.parametrize("bad", [-1, None, "text", float("nan"), float("inf"), []])
def test_bad_widths_are_refused(bad):
    with pytest.raises((TypeError, ValueError), match="element_bytes"):
        bytes_sent(ring_all_reduce(2, 2), 2, bad)
