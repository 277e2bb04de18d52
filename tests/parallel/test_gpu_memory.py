"""Bytes of model states and activations against tensor-by-tensor sums and published tables."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import relparallel as rp
from chapters.s34.activations import stage_activation_bytes
from relparallel.parallel import (
    Strategy,
    activation_bytes_per_layer,
    model_state_bytes,
    simulate_schedule,
)
from relparallel.parallel.memory_forms import micro_batches_in_flight
from relparallel.workload import Transformer

counts = st.integers(1, 6)


def test_zero_stage_one_of_the_paper():
    assert rp.parallel.model_state_bytes(parameters=7.5e9, data=64, zero_stage=1) == 31.40625e9


def test_published_figure_of_zero():
    states = model_state_bytes(7.5e9, 64, np.arange(4)) / 1e9
    assert np.round(states, 1).tolist() == [120.0, 31.4, 16.6, 1.9]


@given(psi=st.integers(1, 10**12), data=st.integers(1, 10**4))
def test_the_shards_of_all_ranks_together_are_one_copy_of_what_is_sharded(psi, data):
    copies = {"parameter_bytes": 2, "gradient_bytes": 2, "optimizer_bytes": 12}
    for stage, sharded in enumerate(
        [(), ("optimizer_bytes",), ("optimizer_bytes", "gradient_bytes"), copies]
    ):
        kept = sum(size for name, size in copies.items() if name not in sharded)
        shared = sum(size for name, size in copies.items() if name in sharded)
        expected = psi * (data * kept + shared)
        assert data * model_state_bytes(psi, data, stage) == pytest.approx(expected, rel=1e-12)


def test_states_broadcast_over_arrays():
    table = model_state_bytes([[1e9], [2e9]], [1, 4, 16], 3)
    assert table.shape == (2, 3)
    assert np.array_equal(table[1], 2 * table[0])
    assert model_state_bytes(1.0, 4, np.array([0, 3])).tolist() == [16.0, 4.0]
    for stage in range(4):  # also where the ranks change nothing
        assert model_state_bytes(1.0, [1, 4, 16], stage).shape == (3,)


@pytest.mark.parametrize(
    ("precision", "plain", "fixed", "shared"),
    [((2, 2, 16), 20, 4, 16), ((2, 4, 12), 18, 6, 12), ((4, 4, 8), 16, 8, 8)],  # rows MEGMEM-*
)
@pytest.mark.parametrize("d", [1, 2, 8, 64])
def test_megatrons_distributed_optimiser_is_zero_stage_one(precision, plain, fixed, shared, d):
    sizes = dict(
        zip(("parameter_bytes", "gradient_bytes", "optimizer_bytes"), precision, strict=True)
    )
    assert model_state_bytes(1, d, 0, **sizes) == plain
    assert model_state_bytes(1, d, 1, **sizes) == fixed + shared / d


def activations(s: int, b: int, h: int, a: int) -> dict[str, int]:
    """Bytes of tensors a layer keeps (Korthikanti et al. 2022, section 4.1), by who splits them."""
    sbh, scores = s * b * h, a * s * s * b
    return {
        # two norms, inputs, two dropout masks
        "always": 2 * sbh + 2 * sbh + sbh + 2 * sbh + 2 * sbh + sbh,
        # Q, K, V, projection input, both sides of GeLU
        "tensor": 2 * sbh * 3 + 2 * sbh + 8 * sbh + 8 * sbh,
        "core": 2 * scores + scores + 2 * scores,  # softmax, dropout mask, dropout output
    }


@given(s=counts, b=counts, heads=counts, head=counts, t=counts, c=counts)
def test_activations_are_the_sum_of_the_kept_tensors(s, b, heads, head, t, c):
    h = heads * head
    kept = activations(s, b, h, heads)
    size = {"sequence": s, "hidden": h, "heads": heads, "micro_batch": b, "tensor": t, "context": c}
    split = kept["tensor"] / t
    expected = {
        ("none", False): kept["always"] + split + kept["core"] / t,
        ("none", True): (kept["always"] + kept["tensor"] + kept["core"]) / t,
        ("selective", False): kept["always"] + split,
        ("selective", True): (kept["always"] + kept["tensor"]) / t,
        ("full", False): 2 * s * b * h,
        ("full", True): 2 * s * b * h / t,
    }
    for (recompute, sequence_parallel), value in expected.items():
        got = activation_bytes_per_layer(
            **size, recompute=recompute, sequence_parallel=sequence_parallel
        )
        assert got == pytest.approx(value / c, rel=1e-12)


def test_activations_broadcast_over_arrays():
    table = activation_bytes_per_layer(
        2048, 6144, 64, [[1], [4]], tensor=[1, 2, 8], recompute="full"
    )
    assert table.tolist() == [[2 * 2048 * 6144] * 3, [8 * 2048 * 6144] * 3]


@given(p=st.integers(1, 7), m=st.integers(1, 40), v=st.integers(1, 4))
@settings(deadline=None)  # the first call compiles
def test_in_flight_equals_the_simulated_peak_of_every_stage(p, m, v):
    for name, chunks in (("gpipe", 1), ("1f1b", 1), ("interleaved_1f1b", v)):
        simulated = simulate_schedule(name, p, m, chunks).peak_in_flight
        assert micro_batches_in_flight(name, p, m, chunks) == pytest.approx(simulated, rel=1e-12)


@pytest.mark.parametrize(("p", "v"), [(8, 2), (8, 4), (16, 2), (35, 3)])
def test_the_first_stage_interleaved_holds_the_published_factor(p, v):
    first = micro_batches_in_flight("interleaved_1f1b", p, 4 * p, v)[0]
    assert first / p == pytest.approx(1 + (p - 1) / (p * v), rel=1e-12)


def test_stage_bytes_are_bytes_per_layer_times_layers_times_micro_batches_in_flight():
    model = Transformer(layers=12, hidden=64, heads=4, vocabulary=100, sequence=32)
    strategy = Strategy(tensor=2, pipeline=3, context=2, micro_batch=5, schedule="gpipe")
    layer = activation_bytes_per_layer(32, 64, 4, 5, tensor=2, context=2)
    assert stage_activation_bytes(model, strategy, micro_batches=7).tolist() == [layer * 4 * 7] * 3
    one = Strategy(tensor=2, pipeline=3, context=2, micro_batch=5)
    assert stage_activation_bytes(model, one, micro_batches=7).tolist() == [
        layer * 4 * k for k in (3, 2, 1)
    ]


def test_layers_that_do_not_fill_the_chunks_are_refused():
    model = Transformer(layers=10, hidden=64, heads=4, vocabulary=100, sequence=32)
    strategy = Strategy(pipeline=4, schedule="interleaved_1f1b", virtual_stages=2)
    with pytest.raises(ValueError, match=r"model must have a multiple of 8 layers .* got 10"):
        stage_activation_bytes(model, strategy, micro_batches=8)


STATES = {"parameters": 1e9, "data": 8, "zero_stage": 1}
LAYER = {"sequence": 8, "hidden": 8, "heads": 2, "micro_batch": 1, "tensor": 1, "context": 1}
BAD = [float("nan"), "text", None, -1, [], 1.5]


@pytest.mark.parametrize("name", [*STATES, "parameter_bytes", "gradient_bytes", "optimizer_bytes"])
@pytest.mark.parametrize("bad", BAD)
def test_bad_arguments_of_model_state_bytes_are_refused(name, bad):
    if bad != 1.5 or name in ("data", "zero_stage"):
        with pytest.raises((TypeError, ValueError), match=name):
            model_state_bytes(**STATES | {name: bad})


@pytest.mark.parametrize("name", [*LAYER, "sequence_parallel", "recompute"])
@pytest.mark.parametrize("bad", [*BAD, float("inf")])
def test_bad_arguments_of_activation_bytes_are_refused(name, bad):
    with pytest.raises((TypeError, ValueError), match=name):
        activation_bytes_per_layer(**LAYER | {name: bad})


@pytest.mark.parametrize("name", ["schedule", "stages", "micro_batches", "virtual_stages"])
@pytest.mark.parametrize("bad", BAD)
def test_bad_arguments_of_micro_batches_in_flight_are_refused(name, bad):
    good = {"schedule": "1f1b", "stages": 4, "micro_batches": 8, "virtual_stages": 1}
    with pytest.raises((TypeError, ValueError), match=name):
        micro_batches_in_flight(**good | {name: bad})
