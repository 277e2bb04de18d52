"""Non-decoder models against counts of released ones, tensor by tensor, and by closed form."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given, strategies as st

from chapters.s31.encoders import encoder_decoder, recurrent, swin, t5, vision_transformer
from chapters.s63.rlhf import rlhf
from relparallel.published import facts
from relparallel.workload import Transformer, operators, transformer, transformers
from relparallel.workload.encoders import bert

# Counts of released models: their files list every tensor.
RELEASED = {
    "gpt2-117m": 124_439_808,
    "gpt2-345m": 354_823_168,
    "gpt2-762m": 774_030_080,
    "gpt2-1542m": 1_557_611_200,
    "llama2-7b": 6_738_415_616,
    "llama2-13b": 13_015_864_320,
    "llama2-70b": 68_976_648_192,
    "llama3-8b": 8_030_261_248,
    "llama3-70b": 70_553_706_496,
    "mixtral-8x7b": 46_702_792_704,
    "qwen3-30b-a3b": 30_532_122_624,
    "bloom-176b": 176_247_271_424 - 2 * 14336,  # without the norm behind its embedding
    "deepseek-v3": 671_026_419_200 - 58 * 256,  # without the offsets of its routers
}


@pytest.mark.parametrize("name", RELEASED)
def test_a_preset_has_the_parameters_of_the_released_model(name):
    assert transformer(name).parameters == RELEASED[name]


def test_gpt3_has_the_published_size_and_its_two_odd_rows_are_handled():
    assert transformer("gpt3-175b").parameters == pytest.approx(174.6e9, rel=1e-4)
    odd = transformer("gpt3-13b")
    assert (odd.hidden, odd.heads, odd.head_width) == (5140, 40, 128)
    assert transformer("gpt3-1.3b").parameters == pytest.approx(1.3e9, rel=0.02)
    printed = Transformer(
        layers=24, hidden=2048, heads=24, head_size=128, vocabulary=50257, sequence=2048
    )
    assert printed.parameters > 1.5e9  # so the printed 24 heads cannot be meant


def test_presets_agree_with_the_published_runs_of_the_same_name():
    shipped = {**facts("parallelism-cost")}
    rows = [fact.inputs for fact in shipped.values() if fact.id.startswith(("MPT-", "PTDP-0"))]
    known, seen = set(transformers()), set()
    for row in rows:
        name = row["model"].lower().replace("gpt-", "megatron-")
        if name in known and row["s"] == 2048:
            model = transformer(name)
            hidden = row.get("d_model", row.get("h"))
            assert (model.layers, model.hidden, model.heads) == (
                row["layers"],
                hidden,
                row["heads"],
            )
            assert model.parameters == row.get("params", model.parameters)
            seen.add(name)
    assert len(seen) >= 18


def test_unknown_presets_are_refused():
    with pytest.raises(ValueError, match=r"name must be one of .*gpt3-175b"):
        transformer("gpt5")


@pytest.mark.parametrize(
    ("table", "released"),
    [
        (t5(6, 512, 8, 2048), 60_506_624),
        (t5(12, 768, 12, 3072), 222_903_552),
        (t5(24, 1024, 16, 4096), 737_668_096),
        (t5(24, 1024, 32, 16384, head_size=128), 2_851_598_336),
        (t5(24, 1024, 128, 65536, head_size=128), 11_307_321_344),
        (bert(12, 768, 12), 109_482_240),
        (bert(24, 1024, 16), 335_141_888),
        (vision_transformer(12, 768, 12), 86_567_656),
        (vision_transformer(24, 1024, 16), 304_326_632),
        (vision_transformer(32, 1280, 16, patch=14), 632_045_800),
        (swin(96), 28_288_354),
        (swin(96, (2, 2, 18, 2)), 49_606_258),
        (swin(128, (2, 2, 18, 2)), 87_768_224),
    ],
)
def test_a_table_has_the_parameters_of_the_released_model(table, released):
    assert table.parameters == released


def test_a_first_transformer_is_counted_tensor_by_tensor():
    h, f, V = 512, 2048, 37000
    block, feed = 4 * h * h, 2 * h * f + f + h
    encoder, decoder = block + feed + 4 * h, 2 * block + feed + 6 * h
    assert encoder_decoder(6, 6, h, 8, f, V).parameters == V * h + 6 * (encoder + decoder)


@given(
    layers=st.integers(1, 4),
    heads=st.integers(1, 4),
    head=st.integers(1, 8),
    batch=st.integers(1, 4),
)
def test_an_encoder_costs_what_a_decoder_of_the_same_sizes_costs(layers, heads, head, batch):
    """Full attention either way: only the logits differ."""
    sizes = {"hidden": heads * head, "heads": heads}
    decoder = Transformer(layers=layers, vocabulary=30, sequence=9, **sizes)
    encoder = bert(layers, **sizes, vocabulary=30, sequence=9, batch=batch)
    logits, pooler = 2 * batch * 9 * 30 * heads * head, 2 * batch * (heads * head) ** 2
    products = encoder.flops("forward", "contraction")
    assert products - pooler == decoder.flops_per_iteration(batch) / 3 - logits


@given(source=st.integers(1, 9), target=st.integers(1, 9), layers=st.integers(1, 3))
def test_encoder_and_decoder_are_multiplied_by_hand(source, target, layers):
    h, heads, width, f, V = 12, 3, 5, 20, 17
    inner = heads * width
    own = [4 * n * h * inner + 2 * heads * n * n * width + 2 * n * h * f for n in (source, target)]
    cross = 2 * target * h * inner + 2 * source * h * inner + 2 * heads * target * source * width
    table = encoder_decoder(
        layers, layers, h, heads, f, V, source=source, target=target, head_size=width, batch=2
    )
    assert table.multiply_adds == 2 * (layers * (sum(own) + cross) + target * h * V)


def test_windows_cost_less_than_attention_to_the_whole_image_by_the_published_formulas():
    """Liu et al. 2021, eq. 1 and 2: 4 h w C^2 + 2 M^2 h w C inside windows of side M."""
    side, C, M = 56, 96, 7
    rows = [row for row in swin(C).operators if row.name.startswith("stage 1: ")]
    names = ("query, key, value", "scores", "weighted sum", "attention output")
    attention = [row for row in rows if row.name.removeprefix("stage 1: ") in names]
    once = sum(row.forward_flops for row in attention) / 2
    assert once == 4 * side**2 * C**2 + 2 * M**2 * side**2 * C


def shapes(gates: int, inputs: int, hidden: int, layers: int) -> int:
    """Entries of every tensor of a recurrent network."""
    first = [(gates * hidden, inputs), (gates * hidden, hidden), (gates * hidden,)]
    other = [(gates * hidden, hidden), (gates * hidden, hidden), (gates * hidden,)]
    return sum(math.prod(shape) for shape in [*first, *other * (layers - 1)])


@given(
    inputs=st.integers(1, 9),
    hidden=st.integers(1, 9),
    layers=st.integers(1, 4),
    steps=st.integers(1, 9),
    batch=st.integers(1, 5),
)
def test_recurrent_networks_are_counted_by_hand(inputs, hidden, layers, steps, batch):
    for cell, gates in (("rnn", 1), ("lstm", 4)):
        table = recurrent(cell, inputs, hidden, layers=layers, steps=steps, batch=batch)
        assert table.parameters == shapes(gates, inputs, hidden, layers)
        matrices = gates * hidden * (inputs + hidden + 2 * hidden * (layers - 1))
        assert table.multiply_adds == steps * batch * matrices


def test_a_feedback_step_is_the_sum_of_its_passes_by_hand():
    actor = Transformer(layers=2, hidden=16, heads=2, vocabulary=40, sequence=64)
    critic = Transformer(layers=1, hidden=8, heads=2, vocabulary=40, sequence=64)
    step = rlhf(actor, critic, prompt=3, response=2, sequences=5, epochs=2)
    one = {
        m: operators(
            Transformer(layers=m.layers, hidden=m.hidden, heads=2, vocabulary=40, sequence=5), 5
        ).flops("forward", "contraction")
        for m in (actor, critic)
    }
    by_name = {(phase.name, phase.model): phase for phase in step.phases}
    assert by_name["train", "actor"].flops == 6 * one[actor]
    assert by_name["judge", "reward"].flops == one[critic]
    token = 2 * 2 * 12 * 16**2 + 2 * 16 * 40
    scores = [2 * 4 * 16 * context for context in (4, 5)]
    assert by_name["write answers", "actor"].flops == 5 * (2 * token + sum(scores))
    key_value = 2 * 2 * 2 * 16 * 5
    assert step.cache == 5 * key_value
    assert by_name["write answers", "actor"].bytes == 2 * 2 * actor.parameters + (4 + 5) * key_value
    assert step.bytes == 18 * (actor.parameters + critic.parameters) + step.cache
    assert step.to_frame()["flops"].sum() == step.flops


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: bert(2, 10, 3), "heads must divide hidden = 10, got 3"),
        (lambda: vision_transformer(2, 8, 2, patch=15), "patch must divide image = 224, got 15"),
        (lambda: swin(40), "head_size must divide channels = 40, got 32"),
        (lambda: swin(96, image=225), "image must be a multiple"),
    ],
)
def test_sizes_that_do_not_fit_are_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def rounds_to(value, printed):
    """Whether a count is printed so, in millions or thousand millions."""
    scale = 1e6 if printed > 20 else 1e9
    return f"{value / scale:.{len(str(printed).partition('.')[2])}f}" == str(printed)


def test_a_printed_size_that_differs_is_explained_by_what_its_row_says():
    """The sizes under the reading that the ledger names give the printed digits."""
    for name in (117, 345, 762, 1542):
        assert rounds_to(replace(transformer(f"gpt2-{name}m"), vocabulary=40478).parameters, name)
    assert rounds_to(vision_transformer(24, 1024, 16, ffn=4096, patch=32).parameters, 307)
    assert rounds_to(vision_transformer(12, 768, 12, ffn=3072).parameters - 769_000, 86)
    deepseek = transformer("deepseek-v3")
    embedding = deepseek.vocabulary * deepseek.hidden
    assert round((deepseek.active_parameters - embedding) / 1e9) == 37
    whole = t5(24, 1024, 32, 16384, head_size=128).parameters
    assert rounds_to(whole - 32128 * 1024, 2.8)
    heads = 768 * 768 + 768 + 2 * 768 + 30522 + 2 * 768 + 2  # words left out, next sentence
    assert rounds_to(bert(12, 768, 12).parameters + heads, 110)
    for size, ffn, vocabulary, printed in ((512, 2048, 41000, 65), (1024, 4096, 36000, 213)):
        layers = encoder_decoder(6, 6, size, size // 64, ffn, vocabulary)
        assert rounds_to(layers.parameters, printed)
