"""Bytes of stages with given layers: equal ones against those dealt out, others stage by stage."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from relparallel.hardware import cluster
from relparallel.parallel import (
    Strategy,
    StrategyGrid,
    memory,
    price_strategies,
    simulate_schedule,
    step_time,
)
from relparallel.parallel.memory_forms import micro_batches_in_flight
from relparallel.parallel.schedules import SCHEDULES, SPLIT, V_SHAPED
from relparallel.parallel.stages import dealt_layers, kept_layers
from relparallel.parallel.strategy import ENDS, RECOMPUTE
from relparallel.workload import Transformer, transformer

GPT = Transformer(layers=24, hidden=1024, heads=16, vocabulary=51200, sequence=512)
PARTS = (
    "parameters",
    "gradients",
    "optimizer",
    "activations",
    "buffers",
    "setup",
    "host",
    "transfer",
)


def sizes(name):
    """Stages and chunks per stage that a schedule takes."""
    chunks = (
        st.just(2) if name in V_SHAPED else st.integers(1, 3 if name == "interleaved_1f1b" else 1)
    )
    return st.tuples(st.sampled_from([2, 4, 6]), chunks)


@st.composite
def cases(draw):
    name = draw(st.sampled_from(SCHEDULES))
    p, v = draw(sizes(name))
    split = Strategy(
        pipeline=p,
        virtual_stages=v,
        schedule=name,
        data=2,
        zero_stage=draw(st.integers(0, 1)),
        recompute=draw(st.sampled_from(RECOMPUTE)),
    )
    return (
        split,
        p * draw(st.integers(1, 6)) + draw(st.integers(0, p - 1)),
        draw(st.lists(st.integers(1, 4), min_size=p * v, max_size=p * v)),
    )


@given(cases(), st.integers(1, 3), st.sampled_from(["none", "optimizer"]))
@settings(deadline=None, max_examples=150)
def test_equal_layers_take_what_they_take_where_they_are_dealt_out(case, layers, offload):
    split, m, said = case
    model, said = replace(GPT, layers=layers * len(said)), [layers] * len(said)
    dealt, given_ = (
        memory(model, split, 2 * m, offload=offload, stage_layers=s) for s in (None, said)
    )
    for part in PARTS:
        assert getattr(given_, part).tolist() == getattr(dealt, part).tolist(), part


@pytest.mark.parametrize("p", [2, 3, 4, 8])
@pytest.mark.parametrize("recompute", RECOMPUTE)
def test_slots_of_embedding_and_output_layer_are_a_split_of_their_own(p, recompute):
    """As BLOOM's: to the last byte."""
    model, split = replace(GPT, layers=3 * p - 2), Strategy(pipeline=p, recompute=recompute)
    said = [2, *[3] * (p - 2), 2]
    dealt, given_ = (memory(model, split, 4 * p, stage_layers=s) for s in (None, said))
    for part in PARTS:
        assert getattr(given_, part).tolist() == getattr(dealt, part).tolist(), part


@given(cases())
@settings(deadline=None, max_examples=150)
def test_a_stage_keeps_what_the_simulated_passes_hold(case):
    """Layers of every chunk that is in flight, replayed from the times of a simulation."""
    split, m, said = case
    p, v = split.pipeline, split.virtual_stages
    timeline = simulate_schedule(split.schedule, p, m, v)
    path = np.where(timeline.part % 2, 2 * p - 1 - timeline.resource, timeline.resource)
    if split.schedule == "chimera":
        chunk = np.where(timeline.part, p - 1 - timeline.resource, timeline.resource)
    else:
        chunk = path if split.schedule in V_SHAPED else timeline.part * p + timeline.resource
    held = timeline.holding * v * np.array(said)[chunk]
    most = []
    for stage in range(p):
        mine = np.flatnonzero(timeline.resource == stage)
        most.append(held[mine[np.argsort(timeline.start[mine])]].cumsum().max())
    assert kept_layers(split, m, np.array(said)) == pytest.approx(most, rel=1e-12)


@given(cases())
@settings(deadline=None, max_examples=100)
def test_every_stage_takes_what_it_takes_among_equal_ones(case):
    """With one chunk per stage, a stage does not see what the others hold."""
    split, m, said = case
    if split.virtual_stages > 1 or split.schedule == "chimera":
        return
    found = memory(replace(GPT, layers=sum(said)), split, 2 * m, stage_layers=said)
    for i, layers in enumerate(said):
        equal = memory(replace(GPT, layers=layers * len(said)), split, 2 * m)
        for part in PARTS:
            assert getattr(found, part)[i] == pytest.approx(getattr(equal, part)[i], rel=1e-12), (
                part
            )


@given(cases())
@settings(deadline=None, max_examples=100)
def test_all_stages_hold_the_layers_of_the_model_and_the_activations_of_their_chunks(case):
    split, m, said = case
    p, v = split.pipeline, split.virtual_stages
    model = replace(GPT, layers=sum(said))
    found = memory(model, replace(split, zero_stage=0), 2 * m, stage_layers=said, dropout=False)
    copies = {"pipedream": 0, "pipedream_2bw": 0, "chimera": 2}.get(split.schedule, 1)
    table = (1 if split.schedule in V_SHAPED else 2) * model.vocabulary * model.hidden
    outside = table + model.sequence * model.hidden + 2 * model.hidden
    layer = (
        model.parameters - model.vocabulary * model.hidden - (model.sequence + 2) * model.hidden
    ) / sum(said)
    if copies:
        assert found.parameters.sum() == pytest.approx(
            2 * copies * (sum(said) * layer + outside), rel=1e-12
        )
    doubled = memory(
        replace(GPT, layers=2 * sum(said)),
        replace(split, zero_stage=0),
        2 * m,
        dropout=False,
        stage_layers=[2 * n for n in said],
    )
    one, two = (
        memory(replace(GPT, layers=n), Strategy(recompute=split.recompute), 1, dropout=False)
        for n in (1, 2)
    )
    kept = (doubled.activations - found.activations) / (two.activations - one.activations)
    slack = 1e-9 * max(said)
    assert np.all(kept >= kept_layers(split, m, np.array(said)) - slack)
    # else what is computed again waits too
    if split.recompute in ("none", "selective") or split.schedule not in SPLIT:
        assert np.all(
            kept <= micro_batches_in_flight(split.schedule, p, m, v) * v * max(said) + slack
        )


@pytest.mark.parametrize(
    ("said", "error", "text"),
    [
        (
            [12, 13],
            ValueError,
            "stage_layers must be 2 integers >= 1 that sum to the 24 layers.*got 2 that sum",
        ),
        ([24], ValueError, "got 1 that sum to 24"),
        ([25, -1], ValueError, r"\[25, -1\]"),
        ([12.0, 12], TypeError, r"stage_layers must be.*\[12.0, 12\]"),
        (None, None, None),
    ],
)
def test_a_bad_split_is_refused(said, error, text):
    if error is None:
        assert memory(GPT, Strategy(pipeline=2), 4, stage_layers=said).total.size == 2
    else:
        with pytest.raises(error, match=text):
            memory(GPT, Strategy(pipeline=2), 4, stage_layers=said)


ENDS_AT = {"auto": (0, 0), "embedding": (1, 0), "loss": (0, 1), "both": (1, 1)}


@given(
    st.sampled_from(["embedding", "loss", "both"]),
    st.sampled_from([2, 4, 8]),
    st.integers(1, 3),
    st.integers(2, 4),
    st.sampled_from(RECOMPUTE),
)
@settings(deadline=None, max_examples=60)
def test_what_counts_as_a_layer_takes_its_place(ends, p, v, layers, recompute):
    """Each chunk has as many places; the first gives one to the embedding, the last to the loss."""
    first, last = ENDS_AT[ends]
    said = [layers - first, *[layers] * (p * v - 2), layers - last]
    model = replace(GPT, layers=sum(said))
    split = Strategy(
        pipeline=p,
        virtual_stages=v,
        schedule="interleaved_1f1b" if v > 1 else "1f1b",
        recompute=recompute,
        ends_as_layers=ends,
    )
    assert dealt_layers(model, split).tolist() == said
    dealt, given_ = (memory(model, split, 4 * p, stage_layers=s) for s in (None, said))
    same = PARTS if v == 1 else [part for part in PARTS if part != "activations"]
    for part in same:  # of chunks that differ, those in flight are counted one by one
        assert getattr(given_, part).tolist() == getattr(dealt, part).tolist(), part


def test_llama3_has_128_places_for_126_layers_and_its_ends():
    """Meta's layout, 16 stages of 8 chunks (Llama 3, section 3.3.2); the same by default."""
    model, machine = transformer("llama3-405b"), cluster("h100-80gb-dgx", gpus=16384)
    split = Strategy(
        tensor=8,
        pipeline=16,
        data=128,
        virtual_stages=8,
        schedule="interleaved_1f1b",
        zero_stage=1,
        sequence_parallel=True,
        ends_as_layers="both",
    )
    time, usual = (
        step_time(model, replace(split, ends_as_layers=ends), machine, 2048)
        for ends in ("both", "auto")
    )
    assert replace(time, notes=()) == replace(usual, notes=())
    assert time.compute == pytest.approx(
        step_time(
            replace(model, layers=128), replace(split, ends_as_layers="auto"), machine, 2048
        ).compute
    )
    held = memory(model, split, 2048)
    weights = 2 * model.layer_weights / model.layers / 8  # bytes of a layer on a rank, but norms
    assert held.parameters[1] / (8 * weights) == pytest.approx(1, rel=1e-4)
    for ends in ("embedding", "loss"):
        with pytest.raises(
            ValueError, match=r"pipeline \* virtual_stages must be at most the layers"
        ):
            step_time(model, replace(split, ends_as_layers=ends), machine, 2048)
        with pytest.raises(ValueError, match="at most the layers and what counts as one"):
            memory(model, replace(split, ends_as_layers=ends), 2048)
        more = replace(model, layers=127)
        one, other = (
            step_time(more, replace(split, ends_as_layers=e), machine, 2048) for e in (ends, "auto")
        )
        assert one.compute == time.compute
        assert (one.head > time.head) == (ends == "embedding")  # no layer makes room for the loss
        assert other.compute == one.compute


@pytest.mark.parametrize("ends", ENDS)
def test_a_grid_prices_what_counts_as_a_layer(ends):
    """15 layers in 16 chunks: with either end, the loss by default; both are one too many."""
    model = replace(GPT, layers=15)
    grid = StrategyGrid.all(
        gpus=8,
        model=model,
        global_batch=32,
        pipeline=8,
        virtual_stages=2,
        schedule="interleaved_1f1b",
        zero_stage=0,
        ends_as_layers=ends,
    )
    found = price_strategies(model, grid, cluster("a100-80gb-selene", gpus=8), 32, complete=True)
    assert found.feasible.any() == (ends != "both")
    for row in np.flatnonzero(found.feasible)[:20].tolist():
        time = step_time(model, grid[row], cluster("a100-80gb-selene", gpus=8), 32)
        assert time.total == found.time[row]
        assert time.memory.needed == pytest.approx(found.memory[row], rel=0.05)
