"""The split that makes the slowest stage fastest, against all splits there are."""

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from chapters.s33.stage_split import _balanced, best_stage_layers
from relparallel.hardware import cluster
from relparallel.parallel import Strategy, memory, step_time
from relparallel.parallel.gpu_memory import RESERVE
from relparallel.workload import Transformer, transformer

MACHINE = cluster("a100-80gb-selene", gpus=8)
WORDY = Transformer(layers=32, hidden=4096, heads=32, vocabulary=250880, sequence=2048)
WORK = ("compute", "recompute", "launch", "head", "tensor", "context", "expert")


def splits(layers, stages, fewest=1):
    """Every way to deal layers to stages."""
    spare = layers - fewest * stages
    for bars in combinations(range(spare + stages - 1), stages - 1):
        yield tuple(np.diff([-1, *bars, spare + stages - 1]) - 1 + fewest)


def slowest(model, split, batch, said):
    """Work of the slowest stage."""
    found = step_time(model, split, MACHINE, batch, stage_layers=said)
    return sum(getattr(found, part) for part in WORK)


@given(
    st.lists(st.floats(0, 5), min_size=1, max_size=4),
    st.floats(0.1, 3),
    st.integers(1, 3),
    st.data(),
)
@settings(deadline=None, max_examples=300)
def test_no_split_has_a_faster_slowest_stage(begin, layer, fewest, data):
    """Any times and any limits: enumerated."""
    p, begin = len(begin), np.array(begin)
    room = np.array(data.draw(st.lists(st.integers(0, 8), min_size=p, max_size=p)))
    layers = data.draw(st.integers(fewest * p, fewest * p + 6))
    every = [s for s in splits(layers, p, fewest) if np.all(np.array(s) <= room)]
    found = _balanced(begin, layer, room, fewest, layers)
    if found is None:
        assert every == []
        return
    assert tuple(found) in every
    best = min((begin + layer * np.array(s)).max() for s in every)
    assert (begin + layer * np.array(found)).max() == pytest.approx(best, rel=1e-12)


@pytest.mark.parametrize(
    ("layers", "changed"),
    [
        (9, {"pipeline": 4}),
        (10, {"pipeline": 2, "tensor": 2, "recompute": "full"}),
        (8, {"pipeline": 3, "tensor": 2, "schedule": "gpipe", "recompute": "full"}),
        (9, {"pipeline": 2, "schedule": "interleaved_1f1b", "virtual_stages": 2}),
        (9, {"pipeline": 2, "schedule": "zb_v", "virtual_stages": 2}),
        (9, {"pipeline": 4, "schedule": "pipedream"}),
    ],
)
def test_priced_steps_have_no_faster_slowest_stage(layers, changed):
    model, split = replace(WORDY, layers=layers), Strategy(**changed)
    found = best_stage_layers(model, split, MACHINE, 24)
    every = splits(layers, split.pipeline * split.virtual_stages)
    best = min(slowest(model, split, 24, s) for s in every)
    assert slowest(model, split, 24, found) == pytest.approx(best, rel=1e-12)


@pytest.mark.parametrize("batch", [16, 32])
@pytest.mark.parametrize("schedule", ["gpipe", "1f1b", "zb_h1"])
def test_the_whole_step_is_the_fastest_but_for_the_filling(schedule, batch):
    """All splits simulated: a better one gains less than a layer on every stage once per step."""
    model, split = (
        replace(WORDY, layers=10),
        Strategy(pipeline=4, tensor=2, schedule=schedule, recompute="full"),
    )
    found, *every = (
        step_time(model, split, MACHINE, batch, stage_layers=s)
        for s in (best_stage_layers(model, split, MACHINE, batch), *splits(10, 4))
    )
    best = min(time.total for time in every)
    one = step_time(
        replace(model, layers=1), replace(split, pipeline=1, schedule="1f1b"), MACHINE, 1
    )
    layer = sum(getattr(one, part) for part in WORK) - one.head
    assert best <= found.total < best + 4 * layer
    assert found.total < 1.05 * best


def test_bloom_was_split_in_the_best_way():
    """Its 70 layers on 12 stages: embedding and output layer took the place of a layer each."""
    split = Strategy(tensor=4, pipeline=12, data=8, micro_batch=2, recompute="full", zero_stage=1)
    machine = cluster("a100-80gb-jean-zay", gpus=384)
    found = best_stage_layers(
        transformer("bloom-176b"), split, machine, 2048, software="megatron-deepspeed-2022"
    )
    assert found == (5, *[6] * 10, 5)


def test_memory_limits_against_every_split():
    model, split = replace(WORDY, layers=11), Strategy(pipeline=3)
    kept = {"cluster": MACHINE}
    found = best_stage_layers(model, split, MACHINE, 12)
    most = memory(model, split, 12, stage_layers=found, **kept).peak.max()
    reserve = float(MACHINE.accelerator.memory - 0.98 * most)
    fitting = [
        s
        for s in splits(11, 3)
        if memory(model, split, 12, stage_layers=s, **kept).fits(MACHINE, reserve).fits
    ]
    found = best_stage_layers(model, split, MACHINE, 12, reserve=reserve)
    best = min(slowest(model, split, 12, s) for s in fitting)
    assert found in fitting
    assert slowest(model, split, 12, found) == pytest.approx(best, rel=1e-12)


def test_what_cannot_be_split_is_refused():
    with pytest.raises(ValueError, match=r"strategy must have at most 32 chunks.*Chimera"):
        best_stage_layers(WORDY, Strategy(pipeline=4, schedule="chimera"), MACHINE, 16)
    with pytest.raises(ValueError, match="strategy must have at most 3 chunks"):
        best_stage_layers(replace(WORDY, layers=3), Strategy(pipeline=4), MACHINE, 16)
    with pytest.raises(
        ValueError, match="strategy must leave room for 32 layers, 1 or more on every stage"
    ):
        best_stage_layers(WORDY, Strategy(pipeline=4), MACHINE, 16, reserve=RESERVE + 70e9)
