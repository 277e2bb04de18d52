"""Independent work in the gaps of a schedule, against every way to place it."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from chapters.s34.bubbles import fill_bubbles
from relparallel.parallel import simulate_schedule
from relparallel.parallel.timeline import simulate_timeline


def gaps(timeline, row):
    mine = np.flatnonzero(timeline.resource == row)
    mine = mine[np.argsort(timeline.start[mine])]
    edges = [
        0.0,
        *np.ravel(np.column_stack([timeline.start[mine], timeline.finish[mine]])),
        timeline.makespan,
    ]
    return [b - a for a, b in zip(edges[::2], edges[1::2], strict=True) if b > a]


@given(
    name=st.sampled_from(["1f1b", "gpipe", "zb_h1"]),
    p=st.integers(1, 3),
    m=st.integers(1, 3),
    sizes=st.lists(st.sampled_from([0.5, 1.0, 1.5, 2.5, 3.25]), min_size=1, max_size=4),
    seed=st.integers(0, 9),
)
@settings(max_examples=80, deadline=None)
def test_no_placement_fills_more(name, p, m, sizes, seed):
    f = np.random.default_rng(seed).integers(1, 4, p)
    timeline = simulate_schedule(name, p, m, forward=f, communication=0.5)
    filling = fill_bubbles(timeline, [p - 1] * len(sizes), sizes)
    room = gaps(timeline, p - 1)
    best = 0.0
    for choice in product(range(-1, len(room)), repeat=len(sizes)):
        load = [
            sum(s for s, c in zip(sizes, choice, strict=True) if c == g) for g in range(len(room))
        ]
        if all(used <= free + 1e-9 for used, free in zip(load, room, strict=True)):
            best = max(best, sum(load))
    assert filling.filled[p - 1] == pytest.approx(best)
    assert filling.filled[: p - 1].sum() == 0


def test_the_simulator_confirms_that_nothing_is_delayed():
    timeline = simulate_schedule("1f1b", 4, 6, communication=0.25)
    filling = fill_bubbles(timeline, np.repeat(np.arange(4), 12), 0.75)
    both = filling.timeline
    rank = np.argsort(np.argsort(both.start, kind="stable"), kind="stable")
    start = simulate_timeline(both.resource, both.duration, rank, [], [], in_order=True)
    own = both.kind != "extra"
    assert (start <= both.start + 1e-9).all()
    assert np.array_equal(both.start[own], timeline.start)
    assert both.makespan == timeline.makespan
    order = np.lexsort((both.start, both.resource))
    same = np.diff(both.resource[order]) == 0
    assert (both.finish[order][:-1][same] <= both.start[order][1:][same] + 1e-9).all()
    assert filling.placed.sum() == (both.kind == "extra").sum()


def test_unit_work_fills_a_bubble_to_the_last_second_and_a_long_task_does_not_fit():
    timeline = simulate_schedule("1f1b", 4, 8)
    assert (
        fill_bubbles(timeline, [2] * 40, 1.0).filled[2] == timeline.makespan - timeline.busy[2] == 9
    )
    assert not fill_bubbles(timeline, [2], 7.0).placed.any()


def test_tiny_seconds_are_placed_as_well_as_large_ones():
    for scale in (1e-6, 1.0, 1e6):
        timeline = simulate_schedule("gpipe", 3, 4, forward=scale, backward=2 * scale)
        filling = fill_bubbles(timeline, [0, 0, 0], np.array([4.0, 2.0, 3.0]) * scale)
        assert filling.filled[0] == pytest.approx(6 * scale)


@pytest.mark.parametrize(
    ("given", "message"), [({"resource": [3]}, "resource"), ({"duration": 0.0}, "duration")]
)
def test_bad_work_is_refused(given, message):
    with pytest.raises(ValueError, match=message):
        fill_bubbles(
            **{"timeline": simulate_schedule("1f1b", 3, 3), "resource": [0], "duration": 1.0}
            | given
        )
