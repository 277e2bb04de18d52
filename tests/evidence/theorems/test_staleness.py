"""Theorems on training with stale weights."""

from functools import partial

import numpy as np
from theorem_table import theorem

from chapters import s40
from chapters.descent import delayed_descent
from chapters.s40.staleness import companion_matrix, spectral_radius
from relparallel import parallel


@theorem("THM-pipemare-threshold", system="PipeMare")
def test_pipemare_threshold():
    """Delayed descent on a parabola is stable below (2/c) sin(pi/(4 t + 2)) and not above it."""
    # Sum over delays of the step where a root leaves the circle, curvature 3, and of the closed
    # form.
    delays = [0, 1, 3, 7, 20]
    roots = [
        s40.largest_stable_step(partial(s40.delayed_taps, forward_delay=t, curvature=3.0))
        for t in delays
    ]
    return sum(roots), float(s40.stable_step(delays, 3.0).sum())


@theorem("THM-pipemare-run", system="PipeMare")
def test_pipemare_run():
    """A simulated run with discrepancy and correction is its companion matrix, again and again."""
    # The weight after 200 updates at the largest stable step, simulated and by a power of the
    # matrix.
    decay = s40.correction_decay(3)
    method = partial(s40.delayed_taps, forward_delay=3, discrepancy=1.0, decay=decay)
    step = s40.largest_stable_step(method)
    slope = s40.quadratic_gradient(1.0, discrepancy=1.0)
    path = delayed_descent(slope, 1.0, np.full(200, step), 3, decay=decay)
    power = np.linalg.matrix_power(companion_matrix(method(step)), 200)
    return float(path[-1]), float(power[0] @ np.tile([1.0, 0.0], 4))


@theorem("THM-pipemare-rates", system="PipeMare")
def test_pipemare_rates():
    """The steps that PipeMare starts with are stable on every stage where the base rate is 1/c."""
    # Stages of 24 whose root lies inside the unit circle at the rate of update 0, and all 24.
    rates = s40.rescheduled_rate(1.0, s40.pipeline_delays(24), 0, 100)
    lags = parallel.weight_delay(parallel.simulate_schedule("pipemare", 24, 120), 1) - 1
    radii = [
        spectral_radius(s40.delayed_taps(float(a), int(lag)))
        for a, lag in zip(rates, lags, strict=True)
    ]
    return float(np.sum(np.array(radii) < 1)), 24.0
