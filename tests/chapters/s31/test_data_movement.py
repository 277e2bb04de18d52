"""Memory traffic, fusion and formats of few bits."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st

from chapters.s31.data_movement import (
    ENCODER_FUSION,
    break_even_sram,
    encoder_layer,
    flash_attention_accesses,
    standard_attention_accesses,
    words_moved,
)
from chapters.s31.precision import lost_gradients, state_bytes_per_parameter
from relparallel.workload import FORMATS
from relparallel.workload.encoders import bert


def walk(N: int, d: int, M: int) -> int:
    """FlashAttention's algorithm 1, load by load."""
    columns = -(-M // (4 * d))
    rows = min(columns, d)
    moved = 0
    for j in range(0, N, columns):
        moved += 2 * d * min(columns, N - j)  # keys and values
        for i in range(0, N, rows):
            height = min(rows, N - i)
            moved += 2 * d * height + 2 * height  # queries, result and statistics come
            moved += d * height + 2 * height  # result and statistics go
    return moved


@given(N=st.integers(1, 200), d=st.integers(1, 16), factor=st.integers(4, 400))
def test_tiles_move_what_the_algorithm_moves(N, d, factor):
    assert flash_attention_accesses(N, d, factor * d) == walk(N, d, factor * d)


@given(d=st.integers(8, 256))
def test_tiles_save_from_the_break_even_on_and_not_below(d):
    N, enough = 10**6, break_even_sram(d)
    standard = standard_attention_accesses(N, d)
    assert flash_attention_accesses(N, d, int(1.1 * enough)) < standard
    assert flash_attention_accesses(N, d, int(0.9 * enough)) > standard


def test_a_chip_that_holds_no_key_is_refused():
    with pytest.raises(ValueError, match=r"sram must be at least 4 head = 256, got 255"):
        flash_attention_accesses(10, 64, 255)


def test_the_layer_is_one_of_berts():
    """Its products are those of the operator table; biases and dropout stand only here."""
    layer = encoder_layer()
    table = bert(24, 1024, 16, batch=8)
    pooler = 6 * 8 * 1024**2
    products = layer[layer["class"] == "contraction"]["flops"].sum()
    assert 24 * products == table.flops(kind="contraction") - pooler


def test_every_tensor_has_one_size_and_is_made_before_it_is_read():
    layer = encoder_layer(2, 6, 12, 3, 20)
    sizes: dict[str, int] = {}
    made: set[str] = set()
    outside = {"x", "dy2", "dqkv"}  # input, gradient of the output, and dq, dk and dv together
    for _, row in layer.iterrows():
        for name, size in {**row["reads"], **row["writes"]}.items():
            assert sizes.setdefault(name, size) == size
        weights = {name for name in row["reads"] if name[0] in "wbgh"}
        assert set(row["reads"]) - weights - outside <= made
        assert not set(row["writes"]) & made
        made |= set(row["writes"])
    assert sizes["dqkv"] == sizes["dq"] + sizes["dk"] + sizes["dv"]


def test_shares_of_work_are_the_published_ones_and_movement_is_shared_otherwise():
    layer = encoder_layer()
    work = layer.groupby("class")["flops"].sum() / layer["flops"].sum()
    assert 100 * work["contraction"] == pytest.approx(99.80, abs=0.005)
    moved = words_moved(layer)
    assert moved["contraction"] < 0.35 * moved.sum()


def test_fusion_moves_less_and_the_published_saving_lies_between_two_readings():
    layer = encoder_layer()
    groups = set(layer["group"]) - {""}
    fused, apart = words_moved(layer, groups).sum(), words_moved(layer).sum()
    together = words_moved(layer, ENCODER_FUSION).sum()
    assert 1 - fused / together == pytest.approx(0.1276, abs=5e-5)
    assert 1 - fused / together < 0.2291 < 1 - fused / apart
    assert (together, fused) == (1_216_376_832, 1_061_187_584)


@pytest.mark.parametrize("fused", ["softmax", ["no such group"]])
def test_unknown_groups_are_refused(fused):
    with pytest.raises(ValueError, match="fused"):
        words_moved(encoder_layer(), fused)


@pytest.mark.parametrize(("name", "kind"), [("fp16", np.float16), ("fp32", np.float32)])
def test_formats_are_those_of_the_machine(name, kind):
    known, ours = np.finfo(kind), FORMATS[name]
    assert ours.largest == float(known.max)
    assert ours.smallest_normal == float(known.tiny)
    assert ours.smallest == float(known.smallest_subnormal)
    assert ours.bytes == np.dtype(kind).itemsize


@pytest.mark.parametrize("scale", [1.0, 8.0, 1024.0, 2.0**24])
def test_lost_shares_are_those_of_rounded_samples(scale):
    rng = np.random.default_rng(5)
    drawn = scale * 10 ** rng.normal(-6, 1.5, 400_000)
    with np.errstate(over="ignore"):
        rounded = drawn.astype(np.float16)
    under, over = lost_gradients(scale, -6, 1.5)
    for share, seen in ((under, (rounded == 0).mean()), (over, np.isinf(rounded).mean())):
        assert abs(seen - share) < 4.5 * np.sqrt(share * (1 - share) / drawn.size) + 2e-5


def test_bytes_of_a_parameter_are_the_published_ones():
    assert state_bytes_per_parameter() == 16  # ZeRO, section 3.1: 2 + 2 + 12
    assert state_bytes_per_parameter("bf16", "fp32") == 18  # Megatron: gradients in full precision
    assert state_bytes_per_parameter("fp32", "fp32", master=False, moments=0) == 8
