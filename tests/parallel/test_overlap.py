"""Communication beside computation: closed forms against small steps in time and the simulator."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st

from relparallel.parallel import order
from relparallel.parallel.collective_forms import overlap_time
from valid_ordering import chain

times = st.floats(0, 10)
slowdowns = st.floats(1, 4)
layers = st.lists(st.tuples(*[st.integers(0, 9)] * 2), min_size=1, max_size=9)


def by_events(x: float, y: float, a: float, b: float) -> float:
    """Run both until one is done, at reduced speed while two are left."""
    clock = 0.0
    while x > 0 and y > 0:
        step = min(x * a, y * b)
        x, y = (x - step / a if step < x * a else 0.0), (y - step / b if step < y * b else 0.0)
        clock += step
    return clock + x + y


def bucketed_time(work, sent) -> float:
    """Longest work up to a bucket plus sending from it on (Li et al., VLDB 2020, section 3.2.3)."""
    sent = np.broadcast_to(sent, len(work))
    return max(sum(work[: i + 1]) + sum(sent[i:]) for i in range(len(work)))


@given(x=times, y=times, a=slowdowns, b=slowdowns)
def test_overlap_is_what_happens_event_by_event(x, y, a, b):
    found = overlap_time(x, y, compute_slowdown=a, communication_slowdown=b)
    assert found == pytest.approx(by_events(x, y, a, b), abs=1e-9)


@given(x=times, y=times, a=slowdowns, b=slowdowns)
def test_overlap_lies_between_its_bounds(x, y, a, b):
    found = overlap_time(x, y, compute_slowdown=a, communication_slowdown=b)
    assert max(x, y) - 1e-9 <= found <= max(a * x, b * y) + 1e-9
    if 1 / a + 1 / b >= 1:
        assert found <= x + y + 1e-9


@given(x=st.floats(0.1, 10), a=slowdowns, b=slowdowns)
def test_when_both_suffer_much_one_after_the_other_is_faster(x, a, b):
    found = overlap_time(x / a, x / b, compute_slowdown=a, communication_slowdown=b)
    assert found == pytest.approx(x)  # both end together
    assert (found > x / a + x / b) == (1 / a + 1 / b < 1) or abs(1 / a + 1 / b - 1) < 1e-9


def test_without_slowdown_the_longer_one_counts():
    assert overlap_time([3.0, 1.0], 2.0).tolist() == [3.0, 2.0]


@given(layers=layers)
def test_buckets_take_as_long_as_the_simulation(layers):
    work, sent = np.array(layers, dtype=float).T
    graph = chain(0 * work, work[::-1], sent[::-1])
    assert bucketed_time(work, sent) == pytest.approx(order(graph, network=(0.0, 1.0)).makespan)


@given(count=st.integers(1, 20), work=times, sent=times)
def test_equal_buckets_have_a_shorter_form(count, work, sent):
    expected = max(count * work + sent, work + count * sent)
    assert bucketed_time(np.full(count, work), sent) == pytest.approx(expected)


@given(layers=layers)
def test_what_must_be_done_bounds_every_rule(layers):
    work, sent = np.array(layers, dtype=float).T
    found = bucketed_time(work, sent)
    assert max(work.sum() + sent[-1], work[0] + sent.sum()) <= found <= work.sum() + sent.sum()
