"""Windows, states, layers of one block and multi-token prediction in times and bytes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from relparallel.hardware import cluster
from relparallel.parallel import Strategy, memory, step_time
from relparallel.parallel.quantities import Sizes
from relparallel.workload import transformer
from relparallel.workload.mixers import Mixer

BASE = replace(transformer("llama3-8b"), sequence=32768)
STRATEGY = Strategy(tensor=2, pipeline=4, data=8, sequence_parallel=True)
CLUSTER = cluster("h100-80gb-dgx", gpus=64)
STATE = Mixer(layers=24, products=((4096, 12352), (4096, 4096)), operations=4_194_304)


def seconds(model):
    return step_time(model, STRATEGY, CLUSTER, 64)


def test_neutral_fields_change_no_bit():
    row = Sizes.of(BASE)
    assert row.span == BASE.sequence
    assert row.attention == row.blocks == row.dense == 1
    assert row.mixer == row.core == row.kept == row.mtp == 0
    wide = replace(BASE, window=BASE.sequence)
    assert seconds(wide).total == seconds(BASE).total


def test_a_window_saves_time_and_no_flash_attention_saves_no_memory():
    seen = replace(BASE, window=1024, windowed_layers=24)
    assert seconds(seen).total < 0.85 * seconds(BASE).total
    assert Sizes.of(seen).span == pytest.approx((8 * 32768 + 24 * (2048 - 1024**2 / 32768)) / 32)
    np.testing.assert_array_equal(
        memory(seen, STRATEGY, 64).total, memory(BASE, STRATEGY, 64).total
    )


def test_time_of_states_grows_with_the_sequence_and_that_of_attention_faster():
    mixed = replace(BASE, mixers=(STATE,), attention_layers=8)
    growth = {}
    for name, model in (("mixed", mixed), ("full", BASE)):
        short, long = (seconds(replace(model, sequence=s)).compute for s in (8192, 32768))
        growth[name] = long / short
    assert growth["full"] > growth["mixed"] > 4


def test_states_keep_what_their_products_give():
    # as wide as the attention of the model
    same = Mixer(layers=24, products=((4096, 6144), (4096, 4096)))
    wide = replace(same, products=((4096, 2 * 6144), (4096, 4096)))
    kept = [
        memory(replace(BASE, mixers=(one,), attention_layers=8), STRATEGY, 64, flash_attention=True)
        for one in (same, wide)
    ]
    assert np.all(kept[1].activations > kept[0].activations)
    assert np.all(kept[1].parameters > kept[0].parameters)


def test_layers_of_one_block_are_half_of_layers_with_both():
    alone = replace(BASE, layers=64, attention_layers=32, ffn_layers=32)
    assert seconds(alone).compute == pytest.approx(seconds(BASE).compute, rel=1e-9)
    assert seconds(alone).tensor == pytest.approx(seconds(BASE).tensor, rel=1e-9)
    one, two = (memory(m, STRATEGY, 64, flash_attention=True) for m in (alone, BASE))
    np.testing.assert_allclose(one.parameters, two.parameters, rtol=1e-9)
    np.testing.assert_allclose(one.activations, two.activations, rtol=0.05)


def test_multi_token_prediction_is_work_and_memory_of_the_last_stage():
    more = replace(BASE, mtp_layers=1)
    assert seconds(more).head > seconds(BASE).head
    assert seconds(more).compute == seconds(BASE).compute
    one, two = (memory(m, STRATEGY, 64, flash_attention=True) for m in (BASE, more))
    np.testing.assert_array_equal(one.total[:-1], two.total[:-1])
    layer = (BASE.layer_weights / 32 + 2 * 4096**2) / 2
    bytes_each = one.parameters[0] / (8 * (BASE.layer_weights / 32) / 2 + 4096 * 128256 / 2)
    assert (two.parameters - one.parameters)[-1] == pytest.approx(layer * bytes_each, rel=1e-2)
    assert two.activations[-1] > one.activations[-1]
