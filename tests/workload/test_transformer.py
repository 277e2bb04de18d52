"""Transformer parameters and operations against matrix-by-matrix counts and published models."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from relparallel.workload import Transformer

SIZES = {"layers": 2, "hidden": 8, "heads": 2, "vocabulary": 11, "sequence": 5}

transformers = st.builds(
    lambda layers, heads, head, vocabulary, sequence: Transformer(
        layers=layers, hidden=heads * head, heads=heads, vocabulary=vocabulary, sequence=sequence
    ),
    *[st.integers(1, 50)] * 5,
)


def shapes(model: Transformer) -> list[tuple[int, ...]]:
    """Every weight tensor of the model, as an implementation allocates them."""
    h, f = model.hidden, model.ffn_hidden
    layer = [(h,), (h,), (h, 3 * h), (3 * h,), (h, h), (h,), (h,), (h,), (h, f), (f,), (f, h), (h,)]
    return [(model.vocabulary, h), (model.sequence, h), *layer * model.layers, (h,), (h,)]


def products(model: Transformer) -> int:
    """Multiply-adds of one sequence's forward pass, product by product."""
    s, h, f, a = model.sequence, model.hidden, model.ffn_hidden, model.heads
    head = h // a
    layer = s * h * 3 * h + a * s * head * s + a * s * s * head + s * h * h + s * h * f + s * f * h
    return model.layers * layer + s * h * model.vocabulary


@given(model=transformers)
def test_parameters_are_the_entries_of_all_weight_tensors(model):
    count = 0
    for shape in shapes(model):
        size = 1
        for side in shape:
            size *= side
        count += size
    assert model.parameters == count


def test_ffn_width_is_four_times_the_hidden_size_unless_given():
    assert Transformer(**SIZES).parameters == Transformer(**SIZES, ffn=32).parameters
    assert Transformer(**SIZES, ffn=33).parameters - Transformer(**SIZES).parameters == 2 * (
        2 * 8 + 1
    )


@given(model=transformers)
def test_parameters_follow_the_published_formula_but_for_the_last_layernorm(model):
    L, h, V, s = model.layers, model.hidden, model.vocabulary, model.sequence
    formula = 12 * L * h**2 * (1 + 13 / (12 * h) + (V + s) / (12 * L * h))
    assert model.parameters - 2 * h == pytest.approx(formula, rel=1e-12)


@given(model=transformers, batch=st.integers(1, 9))
def test_a_training_step_is_three_forward_passes_of_two_operations_per_multiply_add(model, batch):
    assert model.flops_per_iteration(batch) == 6 * batch * products(model)
    assert model.flops_per_token == pytest.approx(6 * products(model) / model.sequence, rel=1e-12)


@given(model=transformers, batch=st.integers(1, 9))
def test_recomputation_follows_the_published_formulas(model, batch):
    L, h, V, s = model.layers, model.hidden, model.vocabulary, model.sequence
    unit = batch * s * L * h**2
    full = 96 * unit * (1 + s / (6 * h) + V / (16 * L * h))
    selective = 72 * unit * (1 + s / (3 * h) + V / (12 * L * h))
    none = 72 * unit * (1 + s / (6 * h) + V / (12 * L * h))
    for recompute, expected in (("full", full), ("selective", selective), ("none", none)):
        assert model.flops_per_iteration(batch, recompute) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("field", [*SIZES, "ffn"])
def test_sizes_begin_with_one(field):
    with pytest.raises(ValueError, match=field):
        Transformer(**SIZES | {field: 0})


def test_heads_that_do_not_divide_the_hidden_size_are_refused():
    with pytest.raises(ValueError, match=r"heads must divide hidden = 5140, got 40"):
        Transformer(layers=40, hidden=5140, heads=40, vocabulary=50257, sequence=2048)


@pytest.mark.parametrize(
    ("batch", "recompute", "name"), [(0, "none", "batch"), (1, "some", "recompute")]
)
def test_bad_arguments_of_flops_per_iteration_are_refused(batch, recompute, name):
    with pytest.raises(ValueError, match=name):
        Transformer(**SIZES).flops_per_iteration(batch, recompute)
