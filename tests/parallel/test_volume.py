"""What a strategy moves, against rings counted round by round and the published volumes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relparallel.parallel import (
    Collective,
    Strategy,
    bytes_sent,
    ring_all_reduce,
    strategy_collectives,
    zero_communication_bytes,
)
from relparallel.workload import Transformer

MODEL = Transformer(layers=24, hidden=64, heads=4, vocabulary=100, sequence=32)


def sent(strategy, batch, degree):
    return sum(c.bytes_sent for c in strategy_collectives(MODEL, strategy, batch) if c.degree == degree)


@given(t=st.sampled_from([2, 4, 8]), b=st.integers(1, 3), m=st.integers(1, 5), p=st.sampled_from([1, 2, 3]))
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
    kinds = [c.kind for c in strategy_collectives(MODEL, Strategy(tensor=8, sequence_parallel=True), 4)]
    assert kinds == ["reduce_scatter", "all_gather"]
    split, whole = (sent(Strategy(tensor=8, sequence_parallel=s), 4, "tensor") for s in (True, False))
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
    expected = zero_communication_bytes(MODEL.parameters / 4, 8, stage)
    assert sent(strategy, 8, "data") == pytest.approx(expected, rel=1e-12)


def test_hybrid_sharding_gathers_inside_the_shard_group_and_reduces_shards_between_copies():
    whole = 2 * MODEL.parameters
    inside, across = whole * 3 / 4, 2 * whole / 4 * 3 / 4
    assert sent(Strategy(data=16, shard=4, zero_stage=1), 16, "data") == pytest.approx(2 * inside + across)
    assert sent(Strategy(data=16, shard=4, zero_stage=3), 16, "data") == pytest.approx(3 * inside + across)


def test_a_single_gpu_moves_nothing():
    assert strategy_collectives(MODEL, Strategy(), 4) == ()


def test_context_and_expert_parallelism_are_refused():
    for strategy in (Strategy(context=2), Strategy(data=2, expert=2)):
        with pytest.raises(ValueError, match="strategy must have context 1 and expert 1"):
            strategy_collectives(MODEL, strategy, 4)


@pytest.mark.parametrize("name", ["model", "strategy", "global_batch"])
def test_bad_arguments_are_refused(name):
    good = {"model": MODEL, "strategy": Strategy(), "global_batch": 4}
    with pytest.raises((TypeError, ValueError), match=name):
        strategy_collectives(**good | {name: None})


@pytest.mark.parametrize(
    ("name", "bad"),
    [
        ("kind", "gossip"), ("degree", "expert"), ("ranks", 0), ("ranks", 2.0), ("payload", -1.0),
        ("payload", float("nan")), ("times", -1), ("times", "4"),
    ],
)  # fmt: skip
def test_bad_fields_of_a_collective_are_refused(name, bad):
    good = {"kind": "send", "degree": "pipeline", "ranks": 2, "payload": 1.0, "times": 1}
    with pytest.raises((TypeError, ValueError), match=name):
        Collective(**good | {name: bad})
