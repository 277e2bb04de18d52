from decimal import Decimal, getcontext

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy.optimize import minimize_scalar

import relparallel as rp
from relparallel.training import checkpoint_interval, checkpoint_time
from relparallel.training.checkpointing import availability_optimal_interval, expected_segment_time

costs = st.floats(1e-6, 1e4)
lives = st.floats(1e-1, 1e9)


def root_to_fifty_digits(ratio):
    """W/M from -log(1 - y) - y = C/M by Newton's method on 60-digit decimals."""
    getcontext().prec = 60
    c = Decimal(ratio)
    s = (2 * c).sqrt()
    y = s - s * s / 3 + s**3 / 36 if c < Decimal("0.5") else 1 - (-c - 1).exp()
    for _ in range(50):
        y -= (-(1 - y).ln() - y - c) * (1 - y) / y
    return y


def test_the_acceptance_call():
    assert rp.training.checkpoint_interval(
        checkpoint=60, mtbf=10800, method="exact"
    ) == pytest.approx(1098.776, abs=5e-4)


@pytest.mark.parametrize(
    "ratio", [1e-18, 1e-15, 1e-12, 1e-8, 1e-5, 4.9e-3, 5.1e-3, 0.03, 0.3, 1.0, 4.0, 30.0]
)
def test_the_exact_interval_keeps_thirteen_digits_down_to_tiny_checkpoints(ratio):
    reference = root_to_fifty_digits(ratio)
    error = abs((Decimal(float(checkpoint_interval(ratio, 1.0))) - reference) / reference)
    assert error < Decimal("1e-13")


@given(checkpoint=st.floats(1e-2, 1e4), mtbf=st.floats(1e2, 1e6))
def test_the_exact_interval_minimises_the_time_per_unit_of_work(checkpoint, mtbf):
    def time_per_work(log_interval):
        interval = np.exp(log_interval)
        return float(expected_segment_time(mtbf, interval, checkpoint, restart=0.0)) / interval

    best = checkpoint_interval(checkpoint, mtbf)
    found = minimize_scalar(
        time_per_work, bounds=(np.log(best) - 3, np.log(best) + 3), method="bounded"
    )
    assert time_per_work(np.log(best)) <= found.fun * (1 + 1e-12)
    assert np.exp(found.x) == pytest.approx(best, rel=1e-3)


@given(checkpoint=st.floats(1e-9, 10.0), mtbf=st.floats(1e5, 1e9))
def test_young_and_daly_are_the_first_terms_of_the_exact_series(checkpoint, mtbf):
    s = np.sqrt(2 * checkpoint / mtbf)
    young, daly, exact = (
        checkpoint_interval(checkpoint, mtbf, m) for m in ("young", "daly", "exact")
    )
    assert abs(exact - young) == pytest.approx(mtbf * s**2 / 3, rel=0.1 * s + 1e-6)
    assert abs(exact - daly) <= 1.05 * mtbf * s**4 / 270 + 1e-12 * exact


def test_daly_waits_for_the_failure_when_a_checkpoint_takes_twice_its_time():
    assert checkpoint_interval(200.0, 100.0, "daly") == 100.0
    assert checkpoint_interval(200.0 - 1e-9, 100.0, "daly") < 100.0


@given(checkpoint=costs, mtbf=lives, factor=st.floats(1e-3, 1e3))
def test_only_the_ratio_of_checkpoint_and_mtbf_matters(checkpoint, mtbf, factor):
    scaled = checkpoint_interval(factor * checkpoint, factor * mtbf)
    assert scaled == pytest.approx(factor * checkpoint_interval(checkpoint, mtbf), rel=1e-9)


@given(checkpoint=costs, mtbf=lives)
def test_dearer_checkpoints_are_written_less_often_but_never_later_than_the_mtbf(checkpoint, mtbf):
    interval = checkpoint_interval(checkpoint, mtbf)
    assert 0 < interval <= mtbf
    assert checkpoint_interval(1.5 * checkpoint, mtbf) >= interval


def test_a_free_checkpoint_is_written_all_the_time():
    assert checkpoint_interval(0.0, 3600.0) == 0.0


def test_intervals_broadcast():
    grid = checkpoint_interval(np.array([[10.0], [60.0]]), np.array([3600.0, 7200.0, 10800.0]))
    assert grid.shape == (2, 3)
    assert grid[1, 2] == checkpoint_interval(60.0, 10800.0)


@given(
    checkpoint=st.floats(1.0, 1e3),
    mtbf=st.floats(1e3, 1e6),
    restart=st.floats(0.0, 1e3),
    factor=st.floats(0.5, 2.0),
)
def test_the_availability_optimum_beats_its_neighbours(checkpoint, mtbf, restart, factor):
    def availability(period):
        return (1 - checkpoint / period) * mtbf / (mtbf + restart + period / 2)

    best = availability_optimal_interval(checkpoint, mtbf, restart)
    assert best > checkpoint
    assert availability(best) >= availability(max(best * factor, checkpoint)) * (1 - 1e-12)


def test_the_state_of_bloom_is_predicted_from_its_parameters():
    # Measured: 2.3 TB in 40 s for 176 billion parameters; 14 bytes each are 7 % more than what was
    # written.
    assert checkpoint_time(176.25e9, 2.3e12 / 40) == pytest.approx(40.0, rel=0.08)


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"checkpoint": -1.0}, "checkpoint"),
        ({"checkpoint": float("nan")}, "checkpoint"),
        ({"mtbf": 0.0}, "mtbf"),
        ({"mtbf": float("inf")}, "mtbf"),
        ({"mtbf": "long"}, "mtbf"),
        ({"mtbf": [1.0, 2.0, 3.0], "checkpoint": [1.0, 2.0]}, "checkpoint, mtbf"),
        ({"method": "best"}, "method"),
    ],
)
def test_bad_arguments_are_named(arguments, named):
    with pytest.raises((ValueError, TypeError), match=named):
        checkpoint_interval(**{"checkpoint": 60.0, "mtbf": 3600.0, **arguments})
