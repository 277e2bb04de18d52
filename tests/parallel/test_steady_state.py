"""Closed forms of idle time against the simulator, and weight versions against a replay."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from chapters.s34.weight_versions import iteration_period, weight_versions
from relparallel.parallel import bubble_fraction, simulate_schedule, weight_delay
from relparallel.parallel.schedules import ASYNCHRONOUS, SCHEDULES

seconds = st.floats(0.25, 4)


@given(
    name=st.sampled_from([n for n in SCHEDULES if n not in ("v_half", "v_min")]),
    p=st.integers(1, 5),
    rounds=st.integers(1, 4),
    extra=st.integers(0, 6),
    v=st.integers(1, 3),
    f=seconds,
    b=seconds,
    w=seconds,
)
@settings(max_examples=250, deadline=None)
def test_the_form_is_the_simulated_period(name, p, rounds, extra, v, f, b, w):
    m = p * rounds
    if name == "chimera":
        p, m = 2 * p, 2 * m
    v = v if name == "interleaved_1f1b" else 1
    if name.startswith("zb"):
        m = 2 * p - 1 + extra
    if name == "zb_v":
        v = 2
        w, f, b = sorted((f, b, w))
    times = {"forward": f, "backward": b + w, "backward_weight": w}
    count = 4 + (8 * p if name in ASYNCHRONOUS else 0)
    period = iteration_period(simulate_schedule(name, p, m, v, **times, iterations=count), m)
    assert period == pytest.approx(
        (1 + bubble_fraction(name, p, m, v, **times)) * m * (f + b + w), rel=1e-9
    )


def test_iterations_that_flush_take_as_long_together_as_alone():
    for name in ("gpipe", "1f1b", "eager_1f1b", "chimera"):
        alone = simulate_schedule(name, 4, 8).makespan
        assert simulate_schedule(name, 4, 8, iterations=3).makespan == pytest.approx(3 * alone)


def test_without_a_barrier_zero_bubble_hides_its_filling():
    alone, together = (simulate_schedule("zb_2p", 4, 8, iterations=k).makespan for k in (1, 5))
    assert (alone, together) == (24 + 3, 5 * 24 + 3)


@pytest.mark.parametrize(("name", "v", "extra"), [("v_half", 2, 1.5), ("v_min", 2, 2.0)])
def test_v_half_and_v_min_pay_a_half_and_two_thirds_per_stage(name, v, extra):
    idle = [
        iteration_period(simulate_schedule(name, p, 6 * p, v, iterations=3), 6 * p) - 18 * p
        for p in (6, 12)
    ]
    assert (idle[1] - idle[0]) / 6 == extra


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"name": "v_min", "virtual_stages": 2}, "name must have a closed form"),
        ({"name": "zb_2p", "micro_batches": 6}, "micro_batches must be at least 7"),
        ({"name": "chimera", "micro_batches": 10}, "micro_batches must be a multiple of 4"),
        (
            {"name": "zb_v", "virtual_stages": 2, "backward": 4.0},
            "backward_weight must be at most forward",
        ),
    ],
)
def test_where_no_form_holds_it_is_refused(given, message):
    with pytest.raises(ValueError, match=message):
        bubble_fraction(**{"stages": 4, "micro_batches": 8} | given)


def replay(timeline, per_update, stage):
    """Most weight versions at once and largest delay, event by event."""
    mine = np.flatnonzero(timeline.resource == stage)
    events = sorted(
        [(timeline.finish[k], 0, timeline.kind[k], timeline.item[k]) for k in mine]
        + [(timeline.start[k], 1, timeline.kind[k], timeline.item[k]) for k in mine]
    )
    newest, left, users, read = 0, {}, {}, {}
    most, delay = 1, 0
    for _, begins, kind, item in events:
        batch = int(item) // per_update
        if begins and kind == "forward":
            read.setdefault(batch, newest)
            users.setdefault(read[batch], set()).add(batch)
            left.setdefault(batch, per_update)
        if not begins and kind == "backward":
            left[batch] -= 1
            if left[batch] == 0:
                newest += 1
                delay = max(delay, newest - read[batch])
                users[read[batch]].discard(batch)
        alive = {version for version, batches in users.items() if batches} | {newest}
        most = max(most, len(alive))
    return most, delay


@given(
    name=st.sampled_from(["1f1b", "gpipe", *ASYNCHRONOUS]),
    p=st.integers(1, 5),
    per=st.integers(1, 7),
    seed=st.integers(0, 99),
)
@settings(max_examples=80, deadline=None)
def test_versions_and_delays_are_those_of_a_replay(name, p, per, seed):
    f, b = np.random.default_rng(seed).integers(1, 5, (2, p))
    timeline = simulate_schedule(name, p, per, forward=f, backward=b, iterations=4)
    versions, delays = weight_versions(timeline, per), weight_delay(timeline, per)
    for stage in range(p):
        most, delay = replay(timeline, per, stage)
        assert (versions[stage], delays[stage]) == (most, delay)


@pytest.mark.parametrize("p", [1, 2, 5, 8])
def test_versions_and_delays_have_their_papers_forms(p):
    stage = np.arange(p)
    assert (
        weight_versions(simulate_schedule("pipedream", p, 4 * p), 1).tolist()
        == (p - stage).tolist()
    )
    assert (
        weight_delay(simulate_schedule("pipemare", p, 4 * p), 1).tolist()
        == (2 * (p - stage) - 1).tolist()
    )
    two = weight_versions(simulate_schedule("pipedream_2bw", p, p, iterations=4), p)
    assert two.tolist() == [2] * (p - 1) + [1]
    for name in ("1f1b", "gpipe", "chimera"):
        flushed = simulate_schedule(name, 2 * p, 4 * p, iterations=3)
        assert weight_versions(flushed, 4 * p).tolist() == [1] * (2 * p)


def test_a_period_needs_three_whole_iterations():
    with pytest.raises(
        ValueError, match="micro_batches must give three or more whole iterations of 16, got 8"
    ):
        iteration_period(simulate_schedule("1f1b", 2, 8, iterations=2), 8)
