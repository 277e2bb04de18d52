"""Simulated runs with stale weights against the roots, and PipeMare's two remedies on them."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from chapters.descent import delayed_descent
from chapters.s40 import largest_stable_step, quadratic_gradient, stable_step
from chapters.s40.least_squares import least_squares_gradient
from chapters.s40.pipeline_staleness import (
    correction_decay,
    delayed_taps,
    pipeline_delays,
    rescheduled_rate,
)
from chapters.s40.staleness import companion_matrix
from relparallel.parallel import simulate_schedule, weight_delay


def grows(path: np.ndarray) -> bool:
    """Whether the largest weight of the last quarter exceeds that of the second quarter."""
    quarter = len(path) // 4
    return bool(np.abs(path[-quarter:]).max() > np.abs(path[quarter : 2 * quarter]).max())


@pytest.mark.parametrize("curvature", [1.0, 3.0])
@pytest.mark.parametrize("delay", [0, 1, 2, 4, 8, 16])
def test_a_run_flips_between_099_and_101_of_the_closed_form(delay, curvature):
    step = stable_step(delay, curvature)
    run = partial(delayed_descent, quadratic_gradient(curvature), 1.0, forward_delay=delay)
    updates = 200 * (delay + 1)
    assert not grows(run(np.full(updates, 0.99 * step)))
    assert grows(run(np.full(updates, 1.01 * step)))


@pytest.mark.parametrize("decay", [None, correction_decay(4)])
@pytest.mark.parametrize("backward", [0, 6])
def test_with_discrepancy_a_run_flips_where_the_roots_say(backward, decay):
    f = backward + 4
    method = partial(
        delayed_taps, forward_delay=f, backward_delay=backward, discrepancy=5.0, decay=decay
    )
    step, slope = largest_stable_step(method), quadratic_gradient(1.0, discrepancy=5.0)
    runs = [
        delayed_descent(slope, 1.0, np.full(4000, k * step), f, backward, decay=decay)
        for k in (0.99, 1.01)
    ]
    assert [grows(run) for run in runs] == [False, True]


@given(
    b=st.integers(0, 4),
    gap=st.integers(0, 5),
    rate=st.floats(0.01, 0.3),
    share=st.floats(0, 3),
    decay=st.one_of(st.none(), st.floats(0, 0.9)),
)
@settings(max_examples=60, deadline=None)
def test_a_run_is_the_companion_matrix_applied_again_and_again(b, gap, rate, share, decay):
    f = b + gap
    taps = delayed_taps(rate, f, b, discrepancy=share, decay=decay)
    matrix, width = companion_matrix(taps), 1 if decay is None else 2
    state = np.tile(np.eye(1, width)[0], len(matrix) // width)  # weights 1, no change so far
    path = delayed_descent(
        quadratic_gradient(1.0, discrepancy=share), 1.0, np.full(20, rate), f, b, decay=decay
    )
    for weight in path:
        assert weight == pytest.approx(state[0])
        state = matrix @ state


def test_without_delay_and_noise_it_is_gradient_descent():
    path = delayed_descent(quadratic_gradient([1.0, 2.0]), [1.0, 1.0], np.full(10, 0.25), 0)
    assert path[-1] == pytest.approx([0.75**10, 0.5**10])


def test_every_weight_has_its_own_delay():
    steps = np.full(50, 0.3)
    both = delayed_descent(
        quadratic_gradient(1.0), [1.0, 1.0], steps, [3, 1], [1, 0], decay=[0.5, 0.2]
    )
    for i, (f, b, decay) in enumerate([(3, 1, 0.5), (1, 0, 0.2)]):
        alone = delayed_descent(quadratic_gradient(1.0), 1.0, steps, f, b, decay=decay)
        assert both[:, i] == pytest.approx(alone)


def test_delay_raises_the_noise_that_is_left():
    """Without delay the variance is a s^2/(2 - a); with one update of delay it is larger."""
    rates, spread = np.full(4000, 0.5), []
    for delay in (0, 1):
        slope = quadratic_gradient(1.0, noise=0.1, rng=np.random.default_rng(1))
        spread.append(delayed_descent(slope, np.zeros(50), rates, delay)[200:].var())
    assert spread[0] == pytest.approx(0.5 * 0.1**2 / (2 - 0.5), rel=0.02)
    assert spread[1] > 1.3 * spread[0]


@pytest.mark.parametrize(("stages", "per_update"), [(1, 1), (4, 1), (7, 1), (4, 2), (5, 3), (6, 8)])
def test_pipeline_delays_are_those_of_the_simulated_schedule(stages, per_update):
    """A gradient of N micro-batches reads weights as old as its first one's, without that one."""
    simulated = (
        weight_delay(simulate_schedule("pipemare", stages, 12 * per_update * stages), per_update)
        - 1
    )
    without_own = pipeline_delays(stages, per_update) - 1 / per_update
    assert simulated.tolist() == np.ceil(without_own - 1e-9).astype(int).tolist()


@given(rate=st.floats(1e-4, 1), delay=st.floats(1, 200), annealing=st.integers(1, 500))
def test_rates_start_divided_by_the_delay_and_end_untouched(rate, delay, annealing):
    rates = rescheduled_rate(rate, delay, np.arange(2 * annealing + 1), annealing)
    assert rates[0] == pytest.approx(rate / delay)
    assert rates[annealing:] == pytest.approx(rate)
    assert np.all(np.diff(np.log(rates)) >= -1e-12)
    assert np.log(rates[: annealing + 1]) == pytest.approx(
        np.linspace(np.log(rate / delay), np.log(rate), annealing + 1)
    )


def least_squares(stages: int):
    rng = np.random.default_rng(7)
    inputs = rng.normal(size=(64, stages))
    return inputs, inputs @ np.ones(stages), rng


def test_rescheduling_carries_a_deep_pipeline_over_the_steps_that_are_too_large_for_it():
    """The base rate falls meanwhile; where it does not, the run diverges after the annealing."""
    inputs, targets, rng = least_squares(8)
    lags = weight_delay(simulate_schedule("pipemare", 8, 96), 1) - 1
    curvature = np.linalg.eigvalsh(inputs.T @ inputs / len(inputs)).max()
    base, updates = 0.5 * stable_step(0, curvature), np.arange(2000)
    falling = base * np.maximum(1 - updates / 400, 0.02)
    reach = {}
    for name, rates in {
        "plain": falling[:, None],
        "falling": falling[:, None],
        "constant": base,
    }.items():
        slope = least_squares_gradient(inputs, targets, 16, rng)
        rates_of_run = (
            rates
            if name == "plain"
            else rescheduled_rate(rates, pipeline_delays(8), updates[:, None], 400)
        )
        path = delayed_descent(slope, np.zeros(8), rates_of_run, lags)
        reach[name] = np.abs(path[-1] - 1).max()
    assert reach["falling"] < 1e-3
    assert not reach["plain"] < 1e3
    assert not reach["constant"] < 1e3


def test_shapes_that_do_not_fit_are_refused():
    slope = quadratic_gradient(1.0)
    with pytest.raises(ValueError, match=r"rates must have one row for each update, got 0\.1"):
        delayed_descent(slope, 1.0, 0.1, 0)
    with pytest.raises(
        ValueError, match=r"rates must fit the shape \(2,\) of start, got shape \(3,\)"
    ):
        delayed_descent(slope, [1.0, 2.0], np.ones((4, 3)), 0)
    with pytest.raises(ValueError, match="forward_delay must be at least backward_delay, got 1"):
        delayed_descent(slope, 1.0, np.ones(3), 1, 2)
    with pytest.raises(ValueError, match=r"gradient must return shape \(\), got shape \(3,\)"):
        delayed_descent(lambda w, u: np.ones(3), 1.0, np.ones(3), 1)
    with pytest.raises(
        TypeError, match=r"rng must be Generator from numpy.random.default_rng\(seed\), got"
    ):
        quadratic_gradient(1.0, noise=0.1)
    with pytest.raises(ValueError, match=r"targets must have shape \(2,\), got shape \(3,\)"):
        least_squares_gradient(np.ones((2, 2)), np.ones(3), 1, np.random.default_rng(0))
    with pytest.raises(ValueError, match="must have shapes that broadcast"):
        stable_step([1, 2], [1.0, 2.0, 3.0])
