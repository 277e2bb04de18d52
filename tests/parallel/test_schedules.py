"""Pipeline schedules: closed forms, longest paths, and the values that were agreed on."""

from __future__ import annotations

import time
from itertools import pairwise

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import relparallel as rp
from relparallel.parallel import simulate_schedule

positive = st.floats(0.1, 10)
FLUSHES = ("gpipe", "1f1b")


def test_the_agreed_values():
    tl = rp.parallel.simulate_schedule(
        "interleaved_1f1b", stages=8, micro_batches=32, virtual_stages=4, forward=1.0, backward=2.0
    )
    assert tl.makespan == 101.25
    assert tl.bubble_fraction == 7 / 128
    assert tl.peak_in_flight[0] == 9.75
    assert tl.idle_fraction == pytest.approx(1 - 96 / 101.25)


@given(p=st.integers(1, 8), m=st.integers(1, 12), f=positive, b=positive)
@settings(deadline=None)
def test_gpipe_and_1f1b_have_the_same_bubble(p, m, f, b):
    for name in FLUSHES:
        timeline = simulate_schedule(name, p, m, forward=f, backward=b)
        assert timeline.makespan == pytest.approx((m + p - 1) * (f + b), rel=1e-12)
        assert timeline.bubble_fraction == pytest.approx((p - 1) / m, rel=1e-9, abs=1e-12)


@given(p=st.integers(1, 8), m=st.integers(1, 40), v=st.integers(1, 5), f=positive, b=positive)
@settings(max_examples=100, deadline=None)
def test_interleaving_divides_the_bubble_by_the_chunks(p, m, v, f, b):
    """Of fewer micro-batches than stages, all chunks of the missing ones are waited for."""
    timeline = simulate_schedule("interleaved_1f1b", p, m, v, forward=f, backward=b)
    idle = max(p - m, 0) + (min(m, p) - 1) / v
    assert timeline.bubble_fraction == pytest.approx(idle / m, rel=1e-9, abs=1e-12)


@given(p=st.integers(1, 8), m=st.integers(1, 12))
@settings(deadline=None)
def test_in_flight_is_everything_in_gpipe_and_what_is_still_to_come_in_1f1b(p, m):
    assert simulate_schedule("gpipe", p, m).peak_in_flight.tolist() == [m] * p
    expected = [min(m, p - stage) for stage in range(p)]
    assert simulate_schedule("1f1b", p, m).peak_in_flight.tolist() == expected


@given(p=st.integers(2, 6), rounds=st.integers(2, 4), v=st.integers(2, 4))
@settings(max_examples=40, deadline=None)
def test_interleaving_holds_p_plus_p_minus_1_over_v_on_the_first_stage(p, rounds, v):
    peak = simulate_schedule("interleaved_1f1b", p, p * rounds, v).peak_in_flight
    assert peak[0] == pytest.approx(p + (p - 1) / v, rel=1e-12)
    assert peak[-1] == pytest.approx(((v - 1) * p + 1) / v, rel=1e-12)


def oracle(name, p, m, v, seconds, delay):
    """Finish times of passes as longest paths; orders pass by pass, as a stage executes them."""
    graph = nx.DiGraph()
    for stage in range(p):
        order = stage_order(name, stage, p, m, v)
        for first, second in pairwise(order):
            graph.add_edge((stage, *first), (stage, *second), weight=seconds[first[0]][stage] / v)
        graph.add_nodes_from((stage, *task) for task in order)
    for k in range(m):
        path = [(stage, 0, k, chunk) for chunk in range(v) for stage in range(p)]
        path += [
            (stage, 1, k, chunk) for chunk in reversed(range(v)) for stage in reversed(range(p))
        ]
        for a, b in pairwise(path):
            weight = seconds[a[1]][a[0]] / v + (delay if a[0] != b[0] else 0.0)
            graph.add_edge(
                a, b, weight=max(weight, graph.get_edge_data(a, b, {"weight": 0.0})["weight"])
            )
    start = dict.fromkeys(graph, 0.0)
    for node in nx.topological_sort(graph):
        for follower in graph.successors(node):
            start[follower] = max(
                start[follower], start[node] + graph.edges[node, follower]["weight"]
            )
    return start


def stage_order(name, stage, p, m, v):
    """Passes (direction, micro-batch, chunk) of a stage in the order in which it runs them.

    In the smallest groups that Megatron-Core takes, or one of all where there are fewer than stages.
    """
    g = next((k for k in range(p, m + 1) if m % k == 0 or m % k >= p), m)
    forward = [
        (0, k, c)
        for first in range(0, m, g)
        for c in range(v)
        for k in range(first, min(first + g, m))
    ]
    backward = [
        (1, k, c)
        for first in range(0, m, g)
        for c in reversed(range(v))
        for k in range(first, min(first + g, m))
    ]
    if name == "gpipe":
        return forward + backward
    ahead = p - 1 - stage if v == 1 else 2 * (p - 1 - stage) + (v - 1) * g
    order = forward[:ahead]
    for after, now in enumerate(forward[ahead:]):
        order += [now, backward[after]]
    return order + backward[len(forward[ahead:]) :]


@given(
    name=st.sampled_from([*FLUSHES, "interleaved_1f1b"]),
    p=st.integers(1, 5),
    rounds=st.integers(1, 3),
    v=st.integers(1, 3),
    extra=st.integers(0, 4),
    delay=st.sampled_from([0.0, 0.25, 3.0]),
    seed=st.integers(0, 999),
)
@settings(max_examples=80, deadline=None)
def test_start_times_are_longest_paths_with_unequal_stages_and_delays(
    name, p, rounds, v, extra, delay, seed
):
    chunks = v if name == "interleaved_1f1b" else 1
    m = p * rounds + extra
    seconds = np.random.default_rng(seed).uniform(0.5, 2, (2, p))
    timeline = simulate_schedule(
        name, p, m, chunks, forward=seconds[0], backward=seconds[1], communication=delay
    )
    expected = oracle(name, p, m, chunks, seconds, delay)
    direction = (timeline.kind == "backward").astype(int)
    keys = zip(
        timeline.resource.tolist(),
        direction.tolist(),
        timeline.item.tolist(),
        timeline.part.tolist(),
        strict=True,
    )
    assert timeline.start.tolist() == pytest.approx(
        [expected[key] for key in keys], rel=1e-9, abs=1e-9
    )


def test_work_is_conserved():
    timeline = simulate_schedule("interleaved_1f1b", 4, 8, 2, forward=[1, 2, 3, 4], backward=2)
    assert timeline.busy == pytest.approx(8 * np.array([3, 4, 5, 6]))
    assert timeline.holding.sum() == 0
    assert timeline.to_frame().groupby(["resource", "kind"]).size().tolist() == [16] * 8


def test_a_slow_stage_sets_the_pace():
    even, uneven = (simulate_schedule("1f1b", 4, 64, forward=f) for f in (1.0, [1, 1, 2, 1]))
    assert uneven.makespan == pytest.approx(64 * 4, rel=0.1)
    assert uneven.bubble_fraction > even.bubble_fraction


def test_communication_delays_interleaving_more_than_plain_1f1b():
    quick, slow = (
        [
            simulate_schedule(*s, communication=c).makespan
            for s in (("1f1b", 8, 32), ("interleaved_1f1b", 8, 32, 4))
        ]
        for c in (0.0, 1.0)
    )
    assert quick[1] < quick[0]
    assert slow[1] - quick[1] > slow[0] - quick[0]


def test_a_large_pipeline_takes_well_under_a_second():
    simulate_schedule("1f1b", 2, 2)  # compiled
    began = time.process_time()
    timeline = simulate_schedule("1f1b", 64, 512)
    assert timeline.bubble_fraction == pytest.approx(63 / 512)
    assert time.process_time() - began < 1


@pytest.mark.parametrize("name", FLUSHES)
def test_chunks_need_interleaving(name):
    with pytest.raises(ValueError, match="virtual_stages must be 1"):
        simulate_schedule(name, 4, 8, 2)


def test_more_passes_than_fit_are_refused_before_they_are_laid_out():
    with pytest.raises(
        ValueError, match=r"stages \* micro_batches \* virtual_stages must be at most"
    ):
        simulate_schedule("gpipe", 2**12, 2**13)


GOOD = {
    "name": "1f1b",
    "stages": 4,
    "micro_batches": 8,
    "virtual_stages": 1,
    "forward": 1.0,
    "backward": 2.0,
    "communication": 0.0,
}


@pytest.mark.parametrize("name", list(GOOD))
@pytest.mark.parametrize("bad", [float("nan"), "text", None, -1, [], [1.0, 2.0], float("inf")])
def test_bad_arguments_are_refused(name, bad):
    with pytest.raises((TypeError, ValueError), match=name):
        simulate_schedule(**GOOD | {name: bad})


def test_weights_wait_for_fewer_passes_where_few_micro_batches_leave_no_room():
    """Stage 2 of 4 holds all 3 before its first backward pass: its weights cannot wait for 4."""
    found = simulate_schedule("zb_2p", 4, 3)
    assert found.makespan == simulate_schedule("zb_h1", 4, 3).makespan
    assert found.peak_in_flight.tolist() == [3.0, 3.0, 3.0, 2.0]
