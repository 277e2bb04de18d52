"""What a strategy moves, against rings counted round by round and the published volumes."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from chapters.s33.volume import strategy_collectives
from relparallel.parallel import Strategy, bytes_sent, ring_all_reduce
from relparallel.parallel.algorithms import direct_all_to_all
from relparallel.parallel.collectives import ring_all_gather, ring_reduce_scatter
from relparallel.workload import Transformer

MODEL = Transformer(layers=24, hidden=64, heads=4, vocabulary=100, sequence=32)


def sent(strategy, batch, degree):
    return sum(
        c.bytes_sent for c in strategy_collectives(MODEL, strategy, batch) if c.degree == degree
    )


@given(
    t=st.sampled_from([2, 4, 8]),
    b=st.integers(1, 3),
    m=st.integers(1, 5),
    p=st.sampled_from([1, 2, 3]),
)
def test_tensor_parallelism_runs_four_ring_all_reduces_per_layer_and_micro_batch(t, b, m, p):
    ring = bytes_sent(ring_all_reduce(t, b * 32 * 64), t).max()
    strategy = Strategy(tensor=t, pipeline=p, micro_batch=b)
    assert sent(strategy, b * m, "tensor") == pytest.approx(4 * m * 24 / p * ring, rel=1e-12)


def test_full_recomputation_repeats_the_forward_all_reduces():
    none, selective, full = (
        sent(Strategy(tensor=8, recompute=r), 4, "tensor") for r in ("none", "selective", "full")
    )
    assert (selective, full) == (none, 1.5 * none)


def test_sequence_parallelism_moves_the_same_bytes_in_two_halves():
    kinds = [
        c.kind for c in strategy_collectives(MODEL, Strategy(tensor=8, sequence_parallel=True), 4)
    ]
    assert kinds == ["reduce_scatter", "all_gather"]
    split, whole = (
        sent(Strategy(tensor=8, sequence_parallel=s), 4, "tensor") for s in (True, False)
    )
    assert split == whole


@pytest.mark.parametrize(("p", "v"), [(2, 1), (4, 1), (4, 2), (4, 3)])
def test_pipelines_send_every_boundary_twice(p, v):
    schedule = "interleaved_1f1b" if v > 1 else "1f1b"
    strategy = Strategy(pipeline=p, virtual_stages=v, schedule=schedule)
    boundaries = [(chunk, stage) for chunk in range(v) for stage in range(p)][1:]
    total = 8 * len(boundaries) * 2 * (2 * 32 * 64)
    assert sent(strategy, 8, "pipeline") * p == pytest.approx(total)


@pytest.mark.parametrize("stage", [0, 1, 2, 3])
def test_data_parallelism_moves_the_volume_of_zero(stage):
    strategy = Strategy(tensor=2, pipeline=2, data=8, zero_stage=stage)
    parts = 8 * 1000  # a ring moves as much of every vector
    scatter, gather = (
        bytes_sent(ring(8, parts), 8).max() for ring in (ring_reduce_scatter, ring_all_gather)
    )
    expected = (scatter + (2 if stage == 3 else 1) * gather) * MODEL.parameters / 4 / parts
    assert sent(strategy, 8, "data") == pytest.approx(expected, rel=1e-12)


def test_hybrid_sharding_gathers_inside_the_shard_group_and_reduces_shards_between_copies():
    whole = 2 * MODEL.parameters
    inside, across = whole * 3 / 4, 2 * whole / 4 * 3 / 4
    assert sent(Strategy(data=16, shard=4, zero_stage=1), 16, "data") == pytest.approx(
        2 * inside + across
    )
    assert sent(Strategy(data=16, shard=4, zero_stage=3), 16, "data") == pytest.approx(
        3 * inside + across
    )


def test_a_single_gpu_moves_nothing():
    assert strategy_collectives(MODEL, Strategy(), 4) == ()


@given(
    c=st.sampled_from([2, 4]), t=st.sampled_from([1, 2]), b=st.integers(1, 3), m=st.integers(1, 3)
)
def test_context_parallelism_passes_keys_and_values_round(c, t, b, m):
    model = Transformer(layers=6, hidden=64, heads=4, kv_heads=2, vocabulary=100, sequence=32)
    found = strategy_collectives(model, Strategy(context=c, tensor=t, micro_batch=b), b * m)
    passed = [x for x in found if x.degree == "context"]
    # both, all tokens, two heads
    rows = bytes_sent(ring_all_gather(c, 2 * b * 32 * 2 * 16 // t), c).max()
    assert sum(x.bytes_sent for x in passed) == pytest.approx(3 * 6 * m * rows)
    tensor = sum(x.bytes_sent for x in found if x.degree == "tensor")
    ring = bytes_sent(ring_all_reduce(t, b * 32 * 64 // c), t).max()
    assert tensor == pytest.approx(4 * 6 * m * ring)


@given(e=st.sampled_from([2, 4, 8]), k=st.integers(1, 2), m=st.integers(1, 3))
def test_experts_exchange_their_tokens_and_reduce_over_fewer_replicas(e, k, m):
    model = Transformer(
        layers=6,
        hidden=64,
        heads=4,
        vocabulary=100,
        sequence=32,
        experts=8,
        active_experts=k,
        dense_layers=2,
    )
    found = strategy_collectives(model, Strategy(data=8, expert=e), 8 * m)
    exchanged = bytes_sent(direct_all_to_all(e, 32 * 64 * k), e).max()
    assert sum(x.bytes_sent for x in found if x.degree == "expert") == pytest.approx(
        4 * 4 * m * exchanged
    )
    reduced = [x for x in found if x.degree == "data"]
    kept = 4 * 8 * model.expert_weights
    assert reduced[0].payload == 2 * (model.parameters - kept)
    assert [(x.ranks, x.payload) for x in reduced[1:]] == (
        [(8 // e, 2 * kept / e)] if e < 8 else []
    )


def test_what_no_sharding_of_experts_can_do_is_refused():
    with pytest.raises(
        ValueError, match="strategy must have expert 1 or zero_stage 0, got 2 and 1"
    ):
        strategy_collectives(MODEL, Strategy(data=2, expert=2, zero_stage=1), 4)
    with pytest.raises(ValueError, match="expert degree that divides the 1 experts, got 2"):
        strategy_collectives(MODEL, Strategy(data=2, expert=2), 4)
