"""What layers mix tokens with: windows, compressed keys, states, layers of one block."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st

from chapters.s63.rlhf import rlhf
from relparallel.workload import Transformer, operators
from relparallel.workload.mixers import LatentAttention, Mixer, attended

SIZES = {"layers": 6, "hidden": 32, "heads": 4, "vocabulary": 50, "sequence": 24, "gated": True}
STATE = Mixer(layers=2, products=((32, 80), (16, 32)), vectors=7, operations=640)


@given(sequence=st.integers(1, 200), window=st.integers(1, 300))
def test_a_causal_window_is_the_mean_of_the_mask_but_for_the_diagonal(sequence, window):
    query, key = np.indices((sequence, sequence))
    mask = (key <= query) & (query - key < window)
    within = attended(sequence, window, causal=True)
    seen = min(window, sequence)
    assert mask.sum() / sequence == pytest.approx(within + seen / (2 * sequence))
    assert attended(sequence, window) == seen


def test_a_window_as_long_as_the_sequence_is_full_attention():
    full, seen = Transformer(**SIZES), Transformer(**SIZES, window=24)
    assert seen.flops_per_iteration(3) == full.flops_per_iteration(3)
    assert Transformer(**SIZES, window=12).core_flops(24) == full.core_flops(24) / 2
    assert (
        Transformer(**SIZES, window=12, windowed_layers=2).core_flops(24)
        == full.core_flops(24) * 5 / 6
    )


def test_states_cost_the_same_for_every_token_and_attention_more_behind_more():
    mixed = Transformer(**SIZES | {"layers": 2}, mixers=(STATE,))
    assert mixed.core_flops(10) == mixed.core_flops(10_000) == 2 * 640
    assert Transformer(**SIZES).core_flops(20) == 2 * Transformer(**SIZES).core_flops(10)


def test_layers_with_a_mixer_have_its_parameters_in_the_place_of_the_attention():
    plain, mixed = Transformer(**SIZES), Transformer(**SIZES, mixers=(STATE,))
    attention, biases = plain.attention_weights, 4 * 32
    assert mixed.parameters - plain.parameters == 2 * (STATE.weights + 7 - attention - biases)
    assert STATE.weights == 32 * 80 + 16 * 32
    assert STATE.kept == 80 + 16


def test_layers_of_one_block_have_one_norm_and_that_block():
    sizes = {**SIZES, "biases": False, "learned_positions": False}
    both = Transformer(**sizes)
    alone = Transformer(**sizes | {"layers": 12}, attention_layers=6, ffn_layers=6)
    assert alone.parameters == both.parameters
    assert alone.flops_per_iteration(2) == both.flops_per_iteration(2)


def test_compressed_keys_are_fewer_and_the_best_of_them_fewer_still():
    sizes = {"layers": 1, "products": ((8, 8), (8, 8)), "heads": 2, "head_size": 4, "window": 16}
    heavy = Mixer(**sizes, stride=8)
    sparse = Mixer(**sizes, stride=4, top=10, index=6)
    assert heavy.looks_at(800) == 16 + 100
    assert sparse.looks_at(800) == 16 + 10
    assert sparse.looks_at(20) == 16 + 5
    assert sparse.core(800) == 4 * 2 * 4 * 26 + 2 * 6 * 200


@given(
    window=st.none() | st.integers(1, 40),
    windowed=st.integers(0, 4),
    experts=st.sampled_from([1, 4]),
    ffn=st.integers(2, 6),
    stride=st.sampled_from([0, 4]),
    batch=st.integers(1, 3),
)
def test_operators_add_up_whatever_layers_hold(window, windowed, experts, ffn, stride, batch):
    other = Mixer(
        layers=1,
        products=((32, 48), (16, 32)),
        heads=4,
        head_size=4,
        window=5,
        stride=stride,
        top=3,
        index=8 if stride else 0,
    )
    model = Transformer(
        **SIZES,
        window=window,
        windowed_layers=min(windowed, 3),
        mixers=(STATE, other),
        ffn_layers=ffn,
        experts=experts,
        active_experts=min(experts, 2),
        dense_layers=1,
        vectors=11,
    )
    table = operators(model, micro_batch=batch)
    assert table.parameters == model.parameters
    assert table.flops(kind="contraction") == model.flops_per_iteration(batch)


def test_tokens_behind_a_window_cost_no_more():
    actor = Transformer(**SIZES, window=8)
    phases = [
        rlhf(actor, actor, prompt=prompt, response=4, sequences=2).phases[1] for prompt in (8, 80)
    ]
    assert phases[0].flops == phases[1].flops


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"windowed_layers": 7, "window": 4}, "windowed_layers must be an integer in .0, 6."),
        ({"mixers": (STATE,) * 4}, "attention_layers must be an integer in"),
        ({"attention_layers": 13}, "attention_layers must be an integer in .0, 12."),
        ({"mixers": (3,)}, "mixers"),
        ({"ffn_layers": 19}, "ffn_layers must be an integer in .0, 18."),
        ({"ffn_layers": 2, "dense_layers": 3}, "dense_layers must be an integer in .0, 2."),
        ({"mtp_layers": -1}, "mtp_layers must be an integer >= 0"),
        ({"window": 0}, "window must be an integer >= 1"),
    ],
)
def test_layers_that_do_not_add_up_are_refused(change, said):
    with pytest.raises((TypeError, ValueError), match=said):
        Transformer(**SIZES | change)


def test_an_index_needs_short_queries():
    with pytest.raises(ValueError, match="index_heads must be 0 without q_rank"):
        LatentAttention(kv_rank=8, nope=4, rope=4, value=4, index_heads=2, index_size=4)
