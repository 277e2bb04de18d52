import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given, strategies as st

from chapters.s48.degraded_states import RepairableParts, expected_speed, states_of
from chapters.s48.joint_losses import joint_loss_rate
from relparallel.training import published_network_rates

DAY = 86400.0
CLASSES = st.lists(
    st.builds(
        RepairableParts,
        name=st.just("part"),
        count=st.integers(1, 4),
        rate=st.floats(0.0, 3.0),
        repair=st.just(1.0),
        slowdown=st.one_of(st.floats(1.0, 5.0), st.just(math.inf)),
    ),
    min_size=1,
    max_size=3,
)


def by_single_parts(parts, speed):
    """Expected speed over all states of single parts, without any counting."""
    single = [(c, entry.down) for c, entry in enumerate(parts) for _ in range(entry.count)]
    total = []
    for state in product((0, 1), repeat=len(single)):
        chance = math.prod(q if off else 1 - q for off, (_, q) in zip(state, single, strict=True))
        down = [0] * len(parts)
        for off, (c, _) in zip(state, single, strict=True):
            down[c] += off
        total.append(chance * speed(tuple(down)))
    return math.fsum(total)


@given(CLASSES)
def test_the_closed_form_is_the_sum_over_all_states_of_single_parts(parts):
    def worst(down):
        return 1 / max([1.0] + [entry.slowdown for entry, k in zip(parts, down, strict=True) if k])

    exact = expected_speed(parts)
    assert exact.exact
    assert float(exact) == pytest.approx(by_single_parts(parts, worst), abs=1e-12)


@given(CLASSES, st.floats(0.0, 0.5))
def test_the_bracket_holds_whatever_is_left_out(parts, remainder):
    def shared(down):
        return 1 / (1 + sum(k * (c + 1) for c, k in enumerate(down)))

    truth = by_single_parts(parts, shared)
    found = expected_speed(parts, shared, remainder=remainder)
    assert found.lower - 1e-12 <= truth <= found.upper + 1e-12
    assert found.upper - found.lower <= remainder + 1e-12
    whole = expected_speed(parts, shared, remainder=0.0)
    assert whole.lower == pytest.approx(truth, abs=1e-12)


@given(CLASSES)
def test_states_come_once_and_most_likely_first(parts):
    down, probability, left = states_of(parts, 0.0, 10**6)
    assert (np.diff(probability) <= 1e-15).all()
    assert len(np.unique(down, axis=0)) == len(down)
    assert probability.sum() + left == pytest.approx(1, abs=1e-12)
    dark = math.prod(1 - entry.down for entry in parts for _ in range(entry.count))
    assert probability[(down == 0).all(axis=1)].sum() == pytest.approx(dark, abs=1e-12)


def test_a_large_fabric_needs_few_states():
    rates = published_network_rates()
    parts = (
        RepairableParts(name="port", count=30720, rate=rates["cable"], repair=DAY, slowdown=1.05),
        RepairableParts(name="leaf", count=240, rate=rates["switch"], repair=DAY, slowdown=1.1),
        RepairableParts(name="spine", count=120, rate=rates["switch"], repair=DAY, slowdown=1.01),
    )
    assert len(states_of(parts, 1e-9, 10**6)[1]) < 100
    slow = expected_speed(parts, lambda down: 1 / max(1, 1.05 * (down[0] > 0), 1.1 * (down[1] > 0)))
    quick = expected_speed(
        [
            p
            if p.name != "spine"
            else RepairableParts(name="spine", count=120, rate=p.rate, repair=DAY)
            for p in parts
        ]
    )
    assert slow.lower - 1e-12 <= float(quick) <= slow.upper + 1e-12
    assert slow.upper - slow.lower < 1e-9


def test_it_ends_after_as_many_states_as_allowed():
    (entry,) = [RepairableParts(name="a", count=50, rate=1.0, repair=1.0)]
    down, probability, left = states_of([entry], 0.0, 3)
    assert sorted(down.ravel().tolist()) == [24, 25, 26]
    assert left == pytest.approx(1 - probability.sum())


def test_double_failures_of_cards_are_rare():
    """The published estimate for 3,000 GPUs with two ports each, and a repair within a day."""
    link = published_network_rates()["cable"]
    assert 30 * DAY * joint_loss_rate(3000, 2, link, DAY) == pytest.approx(6.5e-5, rel=1e-3)
    assert joint_loss_rate(3000, 1, link, 1e-9) == pytest.approx(3000 * link)


def test_joint_losses_are_those_of_a_simulated_pair():
    rng = np.random.default_rng(7)
    rate, repair, horizon = 1.0, 0.5, 40000.0
    events = []
    for part in range(2):
        times = np.stack([rng.exponential(1 / rate, 60000), rng.exponential(repair, 60000)], axis=1)
        edges = times.ravel().cumsum()
        events += [(t, part, i % 2 == 0) for i, t in enumerate(edges.tolist()) if t < horizon]
    down, losses = [False, False], 0
    for _, part, fails in sorted(events):
        down[part] = fails
        losses += fails and all(down)
    expected = joint_loss_rate(1, 2, rate, repair) * horizon
    assert abs(losses - expected) < 3.5 * math.sqrt(expected)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"count": 0}, "count"),
        ({"rate": -1.0}, "rate"),
        ({"slowdown": 0.5}, "slowdown"),
        ({"repair": -1.0}, "repair"),
    ],
)
def test_parts_are_refused_by_name(change, message):
    fields = {"name": "leaf", "count": 2, "rate": 1e-6, "repair": 10.0, "slowdown": 1.0}
    with pytest.raises(ValueError, match=message):
        RepairableParts(**fields | change)


def test_a_speed_above_one_is_refused():
    with pytest.raises(ValueError, match="speed"):
        expected_speed([RepairableParts(name="a", count=1, rate=1.0, repair=1.0)], lambda down: 2.0)
