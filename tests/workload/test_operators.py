"""Operator tables against closed forms, whatever the model."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, strategies as st

from relparallel.hardware import accelerator
from relparallel.workload import (
    KINDS,
    LatentAttention,
    Transformer,
    operators,
    transformer,
    transformers,
)
from relparallel.workload.layer_operators import Operator

SMALL = {"layers": 3, "hidden": 24, "heads": 4, "vocabulary": 50, "sequence": 10}
LATENT = LatentAttention(q_rank=12, kv_rank=8, nope=6, rope=4, value=6)
BARE = {"tied": False, "learned_positions": False, "biases": False}


@st.composite
def models(draw):
    """Any combination of the options."""
    groups, share = draw(st.integers(1, 4)), draw(st.integers(1, 3))
    heads, width = groups * share, draw(st.integers(1, 6))
    layers, experts = draw(st.integers(1, 5)), draw(st.integers(1, 4))
    options = {name: draw(st.booleans()) for name in ("gated", "tied", "learned_positions")}
    if draw(st.booleans()):
        options |= {
            "latent": replace(LATENT, q_rank=draw(st.none() | st.integers(1, 9))),
            "biases": False,
        }
    else:
        options |= {name: draw(st.booleans()) for name in ("qk_norm", "biases")}
        options |= {"kv_heads": groups, "head_size": width}
    return Transformer(
        layers=layers,
        hidden=draw(st.integers(1, 40)),
        heads=heads,
        vocabulary=draw(st.integers(1, 99)),
        sequence=draw(st.integers(1, 30)),
        ffn=draw(st.integers(1, 50)),
        experts=experts,
        active_experts=draw(st.integers(1, experts)),
        expert_ffn=draw(st.integers(1, 20)),
        shared_experts=draw(st.integers(0, 2)),
        dense_layers=draw(st.integers(0, layers)),
        **options,
    )


@given(model=models(), batch=st.integers(1, 5))
def test_products_cost_what_the_closed_form_says_and_parameters_agree(model, batch):
    table = operators(model, batch)
    assert table.flops(kind="contraction") == model.flops_per_iteration(batch)
    assert table.flops("forward", "contraction") == 2 * table.multiply_adds
    assert table.parameters == model.parameters
    output = 0 if model.tied else model.vocabulary * model.hidden
    assert table.weights == model.layer_weights + output


@pytest.mark.parametrize("name", transformers())
def test_the_table_of_every_shipped_model_is_exact_and_does_not_grow_with_its_layers(name):
    model = transformer(name)
    table = operators(model, 2)
    assert table.parameters == model.parameters
    assert table.flops(kind="contraction") == model.flops_per_iteration(2)
    deeper = operators(replace(model, layers=10 * model.layers), 2)
    assert [row.name for row in deeper.operators] == [row.name for row in table.operators]
    assert len(table.operators) < 30 + 6 * len(model.mixers)


@pytest.mark.parametrize("tensor", [2, 4, 8])
def test_ranks_share_products_and_weights_but_not_norms(tensor):
    model = transformer("llama3-70b")
    whole, part = operators(model, 4), operators(model, 4, tensor)
    assert tensor * part.flops(kind="contraction") == whole.flops(kind="contraction")
    assert tensor * part.weights == whole.weights
    norms = [row for table in (whole, part) for row in table.operators if row.name == "norm"]
    assert norms[0] == norms[1]


def test_a_vocabulary_that_does_not_divide_is_padded_and_other_remainders_are_refused():
    gpt = transformer("gpt2-117m")
    logits = [row for row in operators(gpt, 1, 4).operators if row.name == "logits"]
    assert logits[0].n == 12565
    with pytest.raises(
        ValueError, match=r"tensor must divide the 12 heads of keys and values .*, got 5"
    ):
        operators(gpt, 1, 5)
    with pytest.raises(ValueError, match=r"tensor must divide the 8 heads"):
        operators(transformer("llama3-8b"), 1, 16)
    with pytest.raises(ValueError, match=r"tensor must divide the 6 expert_ffn"):
        operators(Transformer(**SMALL, experts=2, expert_ffn=6), 1, 4)


def test_one_product_is_counted_by_hand():
    """GPT-2, 2 sequences of 5 tokens: 12 heads read K and V once each."""
    gpt = replace(transformer("gpt2-117m"), sequence=5)
    rows = {row.name: row for row in operators(gpt, 2).operators}
    scores = rows["scores"]
    assert scores.forward_flops == 2 * 2 * 12 * 5 * 5 * 64
    assert scores.forward_elements == 2 * 12 * (5 * 64 + 5 * 64 + 5 * 5)
    assert (scores.backward_flops, scores.times) == (2 * scores.forward_flops, 12)
    into = rows["feed-forward in"]
    assert into.forward_elements == 10 * 768 + 768 * 3072 + 10 * 3072
    assert into.parameters == 12 * (768 * 3072 + 3072)


def test_grouped_queries_read_fewer_keys_for_the_same_products():
    model = transformer("llama3-8b")
    full = replace(model, kv_heads=None)
    few, many = (
        next(row for row in operators(m).operators if row.name == "scores") for m in (model, full)
    )
    assert few.forward_flops == many.forward_flops
    saved = (32 - 8) * model.sequence * 128
    assert many.forward_elements - few.forward_elements == saved


def test_totals_are_sums_of_phases_and_classes_and_of_the_frame():
    table = operators(transformer("mixtral-8x7b"), 2)
    for total in (table.flops, table.bytes):
        assert total() == total("forward") + total("backward")
        assert total() == sum(total(kind=kind) for kind in KINDS)
    frame = table.to_frame()
    assert frame[["FLOPs forward", "FLOPs backward"]].sum().sum() == pytest.approx(table.flops())
    assert frame[["bytes forward", "bytes backward"]].sum().sum() == pytest.approx(table.bytes())
    assert frame["parameters"].sum() == table.parameters


def test_the_roofline_is_the_slower_of_computing_and_moving():
    table, gpu = operators(transformer("gpt3-175b"), 1, 8), accelerator("a100-80gb")
    frame = table.roofline(gpu)
    work = frame["FLOPs forward"] + frame["FLOPs backward"]
    moved = frame["bytes forward"] + frame["bytes backward"]
    assert (frame["time"] * gpu.peak["bf16"] >= work * (1 - 1e-12)).all()
    assert (frame["time"] * gpu.memory_bandwidth >= moved * (1 - 1e-12)).all()
    busy = frame[work > 0]
    assert (busy["time"] * busy["attainable"]).tolist() == pytest.approx(work[work > 0].tolist())
    bounds = dict(zip(frame["operator"], frame["bound"], strict=True))
    assert (bounds["feed-forward in"], bounds["softmax"]) == ("compute", "memory")
    faster = replace(gpu, memory_bandwidth=1e6 * gpu.memory_bandwidth)
    assert set(table.roofline(faster)["bound"]) - {"compute"} <= {"memory"}
    assert table.roofline(faster)["time"].sum() == pytest.approx(
        table.flops() / gpu.peak["bf16"], rel=1e-3
    )


def test_bad_requests_are_refused():
    table = operators(Transformer(**SMALL))
    with pytest.raises(ValueError, match="phase"):
        table.flops("sideways")
    with pytest.raises(ValueError, match="kind"):
        table.bytes(kind="convolution")
    with pytest.raises(ValueError, match="number"):
        table.roofline(accelerator("a100-80gb"), "fp8")
    assert isinstance(table.operators[0], Operator)


def test_latent_attention_excludes_what_it_replaces():
    with pytest.raises(ValueError, match="latent must be None with kv_heads"):
        Transformer(**SMALL, latent=LATENT, kv_heads=2, **BARE)
    with pytest.raises(ValueError, match="value must make nope"):
        replace(LATENT, value=5)


def test_latent_attention_is_counted_matrix_by_matrix():
    model = Transformer(**SMALL, latent=LATENT, **BARE)
    h, a = 24, 4
    shapes = [(h, 12), (12, a * 10), (h, 8 + 4), (8, a * (6 + 6)), (a * 6, h)]
    assert model.attention_weights == sum(rows * columns for rows, columns in shapes)
    direct = replace(model, latent=replace(LATENT, q_rank=None))
    assert model.attention_weights - direct.attention_weights == 12 * (h + 40) - h * 40
    norms = 7 * h + 3 * (12 + 8)
    feed_forward = 3 * 2 * h * 4 * h
    assert model.parameters == 3 * model.attention_weights + feed_forward + norms + 2 * 50 * h
