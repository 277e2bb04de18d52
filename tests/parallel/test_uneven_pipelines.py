"""Uneven pipelines: who holds which layers, against the simulator, and layouts as published."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, strategies as st

from relparallel.hardware import cluster
from relparallel.parallel import (
    Strategy,
    StrategyGrid,
    memory,
    price_strategies,
    read_strategy,
    step_time,
)
from relparallel.parallel.feasibility import DEALT, rules_of_rows
from relparallel.parallel.stages import dealt_layers, in_chunks
from relparallel.workload import Transformer, transformer

COUNTS = (43, 61, 62, 78, 92, 94)
MODEL = Transformer(layers=61, hidden=4096, heads=32, vocabulary=128256, sequence=4096)


def kept(model, split):
    """Whether a search asks about this split."""
    grid = StrategyGrid.of(
        pipeline=split.pipeline, virtual_stages=split.virtual_stages, schedule=split.schedule
    )
    return not rules_of_rows(model, grid.choices, 1)[0] & DEALT


@pytest.mark.parametrize("layers", COUNTS)
@pytest.mark.parametrize("stages", range(2, 17))
def test_any_number_of_layers_goes_on_any_number_of_stages(layers, stages):
    model, split = replace(MODEL, layers=layers), Strategy(pipeline=stages)
    chunks = dealt_layers(model, split)
    assert chunks.sum() == layers
    assert chunks.max() == -(-layers // stages)
    assert kept(model, split)
    text = in_chunks(chunks)
    said, unsaid = (
        step_time(model, split, cluster("h100-80gb-dgx", 16), 32, stage_layers=one)
        for one in (text, None)
    )
    assert unsaid.total == pytest.approx(said.total, rel=0.035)
    assert unsaid.total >= said.total * (1 - 2e-3)
    held, dealt = (memory(model, split, 32, stage_layers=one).peak.max() for one in (text, None))
    assert dealt == pytest.approx(held, rel=1e-12)


@given(
    st.sampled_from(COUNTS),
    st.sampled_from([2, 4, 8, 16]),
    st.integers(2, 8),
    st.integers(2, 8),
    st.integers(0, 15),
    st.sampled_from(["none", "full"]),
)
def test_interleaved_chunks_that_a_search_asks_about_take_what_the_simulator_says(
    layers, p, v, rounds, more, again
):
    """Closed form at most 3 % above it and 1 % below; memory of the fullest stage never below."""
    model, m = replace(MODEL, layers=layers), rounds * p + more % p
    split = Strategy(
        tensor=4, pipeline=p, virtual_stages=v, schedule="interleaved_1f1b", recompute=again
    )
    if not kept(model, split):
        with pytest.raises(ValueError, match="interleaved chunks but the last of each stage equal"):
            memory(model, split, m)
        return
    machine, text = cluster("h100-80gb-dgx", gpus=64), in_chunks(dealt_layers(model, split))
    closed, found = (
        step_time(model, split, machine, m, stage_layers=one).total for one in (None, text)
    )
    assert found * 0.99 <= closed <= found * 1.03
    dealt, held = (memory(model, split, m, stage_layers=one) for one in (None, text))
    assert held.peak.max() * (1 - 1e-12) <= dealt.peak.max() <= held.peak.max() * 1.1


def test_a_search_finds_the_chunks_of_61_layers():
    """Every framework schedule has pipelines of 4, 8 and 16 stages, and the best say theirs."""
    model, machine = transformer("deepseek-v3"), cluster("h100-80gb-dgx", gpus=2048)
    for stages in (4, 8, 16):
        grid = StrategyGrid.all(
            gpus=2048,
            model=model,
            global_batch=8192,
            pipeline=stages,
            tensor=1,
            context=1,
            micro_batch=1,
            zero_stage=1,
            expert=64,
            recompute="full",
            schedule=("1f1b", "interleaved_1f1b"),
        )
        found = price_strategies(model, grid, machine, 8192, complete=True)
        chunks = {grid[row].virtual_stages for row in np.flatnonzero(found.feasible).tolist()}
        assert {1, 2} <= chunks
        for row in np.flatnonzero(found.feasible)[::7].tolist():
            assert step_time(model, grid[row], machine, 8192).total == found.time[row]


# Published layouts, each in one line: model, strategy, layers of the chunks, and whether they are
# ours.
LAYOUTS = {
    "Llama 3 (2024), section 3.3.2": ("llama3-405b", "TP8 PP16 DP128 VPP8 SP", "0+1x126+0", True),
    "BLOOM (Le Scao 2022), section 3.3": ("bloom-176b", "TP4 PP12 DP8 full", "5+6x10+5", True),
    "Narayanan 2021, table 1, 310B": ("megatron-310b", "TP8 PP16 DP15 full", "6x16", True),
    "Narayanan 2021, table 1, 530B": ("megatron-530b", "TP8 PP35 DP9 full", "3x35", True),
    "Narayanan 2021, table 1, 1T": ("megatron-1t", "TP8 PP64 DP6 full", "2x64", True),
    "MLPerf Training 6.0, NVIDIA": ("deepseek-v3", "PP4 DP128 EP32 VPP4", "4x15+1", False),
}


def test_with_its_mtp_layer_the_dealing_is_the_published_one():
    model = replace(transformer("deepseek-v3"), mtp_layers=1)
    assert in_chunks(dealt_layers(model, read_strategy("PP4 VPP4"))) == "4x15+1"


@pytest.mark.parametrize("source", LAYOUTS)
def test_a_published_layout_is_one_line(source):
    name, label, chunks, ours = LAYOUTS[source]
    model, split = transformer(name), read_strategy(label)
    assert (in_chunks(dealt_layers(model, split)) == chunks) == ours
    machine, batch = (
        cluster("h100-80gb-dgx", gpus=-(-split.gpus // 8) * 8),
        16 * split.data * split.pipeline,
    )
    said, dealt = (
        step_time(model, split, machine, batch, stage_layers=one) for one in (chunks, None)
    )
    assert said.total == pytest.approx(dealt.total, rel=0.03)
    assert memory(model, split, batch, stage_layers=chunks).total.size == split.pipeline
