"""Orders of passes: against lists written pass by pass, and against what each paper promises."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from relparallel.parallel import Strategy, simulate_schedule
from relparallel.parallel.schedules import ASYNCHRONOUS, SCHEDULES, SPLIT

V_SHAPED = ("zb_v", "v_half", "v_min")
LETTERS = {"forward": "F", "backward": "B", "backward_input": "B", "backward_weight": "W"}


def chunks(name):
    return 2 if name in V_SHAPED else 1


def played(timeline, stage):
    """Passes of a stage as they run: letter, part, micro-batch."""
    mine = np.flatnonzero(timeline.resource == stage)
    mine = mine[np.argsort(timeline.start[mine], kind="stable")]
    return [
        (LETTERS[str(timeline.kind[k])], int(timeline.part[k]), int(timeline.item[k])) for k in mine
    ]


def one_forward_one_backward(stage, p, m, ahead):
    """A stage of ZB-H1 (ahead 1) or ZB-2p (ahead 2), pass by pass."""
    order, forward, backward, weight = [], 0, 0, 0
    for _ in range(min(ahead * (p - 1 - stage), m)):
        order.append(("F", 0, forward))
        forward += 1
    while backward < m:
        if forward < m:
            order.append(("F", 0, forward))
            forward += 1
        order.append(("B", 0, backward))
        backward += 1
        if backward - weight > ahead * stage:
            order.append(("W", 0, weight))
            weight += 1
    return order + [("W", 0, k) for k in range(weight, m)]


def v_order(stage, p, m):
    """A stage of ZB-V without its weight passes, phase by phase."""
    order, n = [], {"F0": 0, "F1": 0, "B0": 0, "B1": 0}

    def run(*passes):
        for name in passes:
            order.append((name[0], int(name[1]), n[name]))
            n[name] += 1

    run(*["F0"] * (2 * (p - stage) - 1))
    run(*["F1", "F0"] * stage)
    run(*["F1", "B1"] * (p - stage))
    while n["F1"] < m:
        if n["F0"] < m:
            run("F0")
        run("B0", "F1", "B1")
    run(*["B0", "B1"] * stage)
    run(*["B0"] * (p - stage))
    return order


@given(p=st.integers(1, 7), extra=st.integers(0, 9), ahead=st.sampled_from([1, 2]))
@settings(max_examples=60, deadline=None)
def test_zero_bubble_orders_are_those_written_pass_by_pass(p, extra, ahead):
    m = 2 * p - 1 + extra
    timeline = simulate_schedule({1: "zb_h1", 2: "zb_2p"}[ahead], p, m)
    for stage in range(p):
        assert played(timeline, stage) == one_forward_one_backward(stage, p, m, ahead)


@given(p=st.integers(1, 7), extra=st.integers(0, 9))
@settings(max_examples=60, deadline=None)
def test_zero_bubble_v_runs_forward_and_backward_passes_in_its_phases(p, extra):
    timeline = simulate_schedule("zb_v", p, 2 * p - 1 + extra, 2)
    for stage in range(p):
        without_weights = [step for step in played(timeline, stage) if step[0] != "W"]
        assert without_weights == v_order(stage, p, 2 * p - 1 + extra)


def test_chimera_of_four_stages_is_the_figure_of_its_paper():
    timeline = simulate_schedule("chimera", 4, 4, forward=1.0, backward=1.0)
    first = [
        ("F", 0, 0),
        ("F", 0, 2),
        ("F", 1, 1),
        ("B", 1, 1),
        ("F", 1, 3),
        ("B", 1, 3),
        ("B", 0, 0),
        ("B", 0, 2),
    ]
    assert played(timeline, 0) == first
    mirrored = [(letter, 1 - part, item ^ 1) for letter, part, item in first]
    assert played(timeline, 3) == mirrored
    assert timeline.makespan == 10


def sizes(name, p, m):
    return (2 * p if name == "chimera" else p), m, chunks(name)


@given(
    name=st.sampled_from(SCHEDULES),
    p=st.integers(1, 5),
    m=st.integers(1, 14),
    seed=st.integers(0, 99),
    iterations=st.integers(1, 2),
)
@settings(max_examples=150, deadline=None)
def test_every_schedule_runs_every_pass_once_and_after_its_neighbours(name, p, m, seed, iterations):
    p, m, v = sizes(name, p, m)
    f, b, w = np.random.default_rng(seed).uniform(0.5, 2, (3, p))
    timeline = simulate_schedule(
        name,
        p,
        m,
        v,
        forward=f,
        backward=b + w,
        backward_weight=w,
        communication=0.3,
        iterations=iterations,
    )
    assert timeline.busy == pytest.approx(m * iterations * (f + b + w))
    assert timeline.holding.sum() == pytest.approx(0)
    assert len(timeline.kind) == m * iterations * p * v * (3 if name in SPLIT else 2)
    end = {}
    for kind, item, stage, part, start, finish in zip(
        timeline.kind.tolist(),
        timeline.item.tolist(),
        timeline.resource.tolist(),
        timeline.part.tolist(),
        timeline.start.tolist(),
        timeline.finish.tolist(),
        strict=True,
    ):
        depth = model_chunk(name, p, stage, part)
        end[LETTERS[kind], item, depth] = (start, finish, stage)
    for (letter, item, depth), (start, _, stage) in end.items():
        before = {
            "F": ("F", item, depth - 1),
            "B": ("B", item, depth + 1),
            "W": ("B", item, depth),
        }[letter]
        if letter == "B" and depth == p * v - 1:
            before = ("F", item, depth)
        if before in end:
            lag = 0.3 if end[before][2] != stage else 0.0
            assert start >= end[before][1] + lag - 1e-9
        else:
            assert (letter, depth) == ("F", 0)


def model_chunk(name, p, stage, part):
    """Place of a stage's part in the model."""
    if name == "chimera":
        return p - 1 - stage if part else stage
    if name in V_SHAPED:
        return 2 * p - 1 - stage if part else stage
    return part * p + stage


@given(p=st.integers(1, 9), m=st.integers(1, 30))
@settings(max_examples=60, deadline=None)
def test_peaks_of_the_one_forward_one_backward_family(p, m):
    behind = p - 1 - np.arange(p)
    for name in ("1f1b", "dapple", "pipedream", "pipedream_2bw"):
        assert (
            simulate_schedule(name, p, m).peak_in_flight.tolist()
            == np.minimum(m, behind + 1).tolist()
        )
    for name in ("eager_1f1b", "pipemare"):
        assert (
            simulate_schedule(name, p, m).peak_in_flight.tolist()
            == np.minimum(m, 2 * behind + 1).tolist()
        )


@given(p=st.integers(1, 9), extra=st.integers(0, 20))
@settings(max_examples=40, deadline=None)
def test_peaks_of_zero_bubble_and_chimera(p, extra):
    m, stage = 2 * p - 1 + extra, np.arange(p)
    assert simulate_schedule("zb_h1", p, m).peak_in_flight.tolist() == (p - stage / 2).tolist()
    assert simulate_schedule("zb_2p", p, m).peak_in_flight.tolist() == (2 * p - 1 - stage).tolist()
    assert simulate_schedule("zb_v", p, m, 2).peak_in_flight.tolist() == [p] * p
    up = simulate_schedule("chimera", 2 * p, 4 * p).peak_in_flight
    assert (
        up.tolist() == (p + 1 + np.minimum(np.arange(2 * p), 2 * p - 1 - np.arange(2 * p))).tolist()
    )


@pytest.mark.parametrize("p", range(3, 17))
def test_v_min_and_v_half_hold_a_third_and_a_half(p):
    """Counted until the weights' pass, as in their paper: (p + 4) // 3; (p + 2) // 2 and a half."""
    for name, expected in (("v_min", (p + 4) // 3), ("v_half", (p + 2) // 2 + 1)):
        timeline = simulate_schedule(name, p, 6 * p, 2)
        gains = np.where(
            timeline.kind == "forward", 0.5, np.where(timeline.kind == "backward_weight", -0.5, 0)
        )
        when = np.where(gains > 0, timeline.start, timeline.finish)
        for stage in range(p):
            mine = timeline.resource == stage
            order = np.lexsort((gains[mine], when[mine]))
            assert gains[mine][order].cumsum().max() <= expected


@given(
    p=st.integers(1, 6),
    m=st.integers(1, 12),
    limit=st.integers(1, 12),
    name=st.sampled_from(["1f1b", "eager_1f1b", "dapple", *ASYNCHRONOUS, "zb_h1", "zb_2p"]),
)
@settings(max_examples=80, deadline=None)
def test_a_memory_limit_is_kept_and_costs_time(name, p, m, limit):
    free, tight = (simulate_schedule(name, p, m, most_in_flight=k) for k in (None, limit))
    assert tight.peak_in_flight.max() <= limit
    assert tight.makespan >= free.makespan - 1e-9 or limit >= p
    uneven = np.arange(p, 0, -1) + limit - 1
    assert (
        simulate_schedule(name, p, m, most_in_flight=uneven[::-1]).peak_in_flight <= uneven[::-1]
    ).all()


def test_dapple_is_1f1b_under_a_limit_and_its_policy_b_is_eager():
    peaks = {
        n: simulate_schedule(n, 6, 18, most_in_flight=4).peak_in_flight
        for n in ("dapple", "eager_1f1b")
    }
    stage = np.arange(6)
    assert peaks["dapple"].tolist() == np.minimum(6 - stage, 4).tolist()
    assert peaks["eager_1f1b"].tolist() == np.minimum(2 * (6 - stage) - 1, 4).tolist()


def test_eager_hides_transfers_up_to_half_a_pass_pair_and_1f1b_none():
    def pace(name, lag):
        ends = [simulate_schedule(name, 4, m, communication=lag).makespan for m in (100, 200)]
        return (ends[1] - ends[0]) / 100

    assert pace("eager_1f1b", 1.5) == pytest.approx(3)
    assert pace("eager_1f1b", 1.6) > 3.01
    assert pace("1f1b", 0.1) > 3.01


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"name": "zb_v", "virtual_stages": 1}, "virtual_stages must be 2"),
        ({"name": "zb_h1", "virtual_stages": 2}, "virtual_stages must be 1"),
        ({"name": "chimera", "stages": 3}, "stages must be even"),
        ({"name": "gpipe", "most_in_flight": 2}, "most_in_flight must be None"),
        ({"name": "zb_h1", "backward_weight": 2.0}, "backward_weight must be below backward"),
        ({"name": "1f1b", "iterations": 0}, "iterations"),
        ({"name": "1f1b", "most_in_flight": 0.5}, "most_in_flight"),
    ],
)
def test_what_does_not_fit_a_schedule_is_refused(given, message):
    with pytest.raises(ValueError, match=message):
        simulate_schedule(**{"stages": 4, "micro_batches": 8} | given)


def test_a_strategy_takes_every_schedule_with_its_chunks():
    for name in SCHEDULES:
        strategy = Strategy(pipeline=4, schedule=name, virtual_stages=chunks(name))
        assert strategy.micro_batches(8) == 8
    with pytest.raises(ValueError, match="virtual_stages must be 2"):
        Strategy(pipeline=4, schedule="v_min")
    with pytest.raises(ValueError, match="even with schedule 'chimera'"):
        Strategy(pipeline=3, schedule="chimera")
