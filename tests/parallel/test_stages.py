"""What a schedule's stages hold, by rule and simulated: micro-batches, and what is recomputed."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from relparallel.parallel import Strategy, memory, simulate_schedule
from relparallel.parallel.memory_forms import micro_batches_in_flight
from relparallel.parallel.schedules import SCHEDULES, SPLIT, V_SHAPED
from relparallel.parallel.stages import FLIGHT_RULES, flight, waiting
from relparallel.workload import Transformer

GPT3 = Transformer(layers=96, hidden=12288, heads=96, vocabulary=51200, sequence=2048)


@pytest.mark.parametrize("p", [2, 4, 6, 8])
@pytest.mark.parametrize("name", SCHEDULES)
def test_every_schedule_holds_what_it_holds_when_simulated(name, p):
    v = 2 if name in ("interleaved_1f1b", "zb_v", "v_half", "v_min") else 1
    for m in (p, 4 * p):
        simulated = simulate_schedule(name, p, m, v).peak_in_flight
        rule = micro_batches_in_flight(name, p, m, v)
        assert np.all(rule >= simulated)
    if name == "v_min":  # its stages differ by a chunk; the rule is that of the fullest
        assert rule.max() == simulated.max()
    else:
        assert rule.tolist() == simulated.tolist()


@given(
    name=st.sampled_from(SCHEDULES),
    p=st.integers(1, 10),
    m=st.integers(1, 30),
    v=st.integers(1, 4),
    times=st.tuples(*[st.floats(0.25, 4)] * 3),
)
@settings(deadline=None, max_examples=200)
def test_no_schedule_holds_more_when_simulated_however_long_its_passes(name, p, m, v, times):
    v = 2 if name in V_SHAPED else v if name == "interleaved_1f1b" and p > 1 else 1
    p = 2 * p if name == "chimera" else p
    f, b, w = times
    timeline = simulate_schedule(name, p, m, v, forward=f, backward=b + w, backward_weight=w)
    assert np.all(micro_batches_in_flight(name, p, m, v) >= timeline.peak_in_flight - 1e-9)


def waits_for_weights(timeline, stage):
    """Most passes of a stage at once with gradients of inputs but not yet those of weights."""
    mine = (timeline.resource == stage) & (timeline.kind != "forward")
    change = np.where(timeline.kind[mine] == "backward_input", 1, -1)
    return np.cumsum(change[np.lexsort((change, timeline.finish[mine].round(9)))]).max()


@pytest.mark.parametrize("p", [1, 2, 3, 5, 8])
@pytest.mark.parametrize("name", SPLIT)
def test_weights_wait_for_as_many_passes_as_when_simulated(name, p):
    v = 2 if name in V_SHAPED else 1
    for m in (1, 2, p, 4 * p):
        timeline = simulate_schedule(name, p, m, v)
        simulated = [waits_for_weights(timeline, stage) / v for stage in range(p)]
        rule = [waiting(FLIGHT_RULES[name], float(m), stage) for stage in range(p)]
        assert np.all(np.array(rule) >= simulated)
    if name in ("zb_h1", "zb_2p", "zb_v"):
        assert rule == simulated
    elif p > 1:
        assert max(rule) == max(simulated)


@pytest.mark.parametrize("name", ["1f1b", *SPLIT])
def test_what_is_computed_again_stays_until_the_weights_have_their_gradients(name):
    """Pass by pass: inputs of layers before the backward pass, half of what they need after it."""
    p, m, v = 4, 16, 2 if name in V_SHAPED else 1
    split = Strategy(pipeline=p, recompute="full", schedule=name, virtual_stages=v)
    did = "megatron-2022"  # with attention scores and dropout
    whole, kept = (
        memory(GPT3, Strategy(pipeline=p, recompute=again), p, software=did).activations[2]
        for again in ("none", "full")
    )
    layers, one = GPT3.layers / p, 2 * GPT3.sequence * GPT3.hidden
    needed = kept - 2 * layers * one + one  # of one layer, all of it
    assert whole == pytest.approx(2 * layers * needed)
    core = 5 * GPT3.heads * GPT3.sequence**2
    half = (needed - core) / 2
    timeline, most = simulate_schedule(name, p, m, v), np.zeros(p)
    value = {
        "forward": one,
        "backward": -one,
        "backward_input": half - one,
        "backward_weight": -half,
    }
    for stage in range(p):
        mine = timeline.resource == stage
        begins = mine & (timeline.kind == "forward")
        ends = mine & ~begins
        when = np.r_[timeline.start[begins], timeline.finish[ends]].round(9)
        change = np.array([value[k] for k in np.r_[timeline.kind[begins], timeline.kind[ends]]])
        rank = np.r_[np.ones(begins.sum()), np.zeros(ends.sum())]
        most[stage] = np.cumsum(change[np.lexsort((rank, change, when))]).max() / v * layers
    held = memory(GPT3, split, m, software=did).activations[1 : p - 1] - (needed - one)
    assert np.all(held >= most[1:-1] * (1 - 1e-12))
    assert np.all(held <= most[1:-1] + 2 * p * layers * one)  # the two need not be largest at once


@pytest.mark.parametrize(("stage", "part", "column"), [(0, 0, 1), (-1, -1, 2)])
@given(p=st.integers(2, 8), v=st.integers(2, 4), m=st.integers(1, 50))
@settings(deadline=None, max_examples=100)
def test_the_first_and_the_last_chunk_hold_what_they_hold_when_simulated(
    stage, part, column, p, v, m
):
    timeline = simulate_schedule("interleaved_1f1b", p, m, v)
    own = (timeline.resource == stage % p) & (timeline.part == part % v)
    change = np.where(timeline.kind[own] == "forward", 1, -1)
    at = np.where(
        change > 0, timeline.start[own], timeline.start[own] + timeline.duration[own]
    ).round(9)
    peak = np.cumsum(change[np.lexsort((change, at))]).max()
    rule = flight(FLIGHT_RULES["interleaved_1f1b"], p, float(m), v, stage % p)[column]
    assert rule >= peak
    if column == 2 or m % p == 0:
        assert rule == peak
