"""Roots of delayed recurrences against the unit circle, closed forms and the recurrence itself."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from chapters.s40 import largest_stable_step, stable_step
from chapters.s40.pipeline_staleness import (
    compensated_taps,
    correction_decay,
    delayed_taps,
)
from chapters.s40.staleness import companion_matrix, spectral_radius
from pace import pace

delays = st.integers(0, 24)
curvatures = st.floats(0.02, 50)


def first_crossing(c, gap, f, b):
    """Smallest step with a root on the unit circle: z - 1 = -a ((c + D) z^-f - D z^-b), a real."""
    angle = np.linspace(1e-6, np.pi, 400_001)
    z = np.exp(1j * angle)
    step = (1 - z) / ((c + gap) * z**-f - gap * z**-b)
    # at z = -1 it is real without a change
    found = [step[-1].real] if abs(step[-1].imag) < 1e-9 else []
    turn = np.flatnonzero(step.imag[1:] * step.imag[:-1] < 0)
    share = step.imag[turn] / (step.imag[turn] - step.imag[turn + 1])
    real = step.real[turn] + share * (step.real[turn + 1] - step.real[turn])
    # no pole between the two
    smooth = np.abs(step[turn + 1] - step[turn]) < 0.1 * np.abs(step[turn])
    return min(x for x in [*real[smooth], *found] if x > 0)


@given(delay=delays, curvature=curvatures)
@settings(max_examples=60, deadline=None)
def test_the_closed_form_is_where_a_root_leaves_the_unit_circle(delay, curvature):
    method = partial(delayed_taps, forward_delay=delay, curvature=curvature)
    assert largest_stable_step(method) == pytest.approx(stable_step(delay, curvature), rel=1e-9)
    assert spectral_radius(method(0.99 * stable_step(delay, curvature))) < 1
    assert spectral_radius(method(1.01 * stable_step(delay, curvature))) > 1


@given(b=delays, gap=st.integers(1, 12), curvature=curvatures, share=st.floats(0.05, 20))
@settings(max_examples=pace(25, 60), deadline=None)
def test_with_discrepancy_the_threshold_is_the_first_crossing_of_the_unit_circle(
    b, gap, curvature, share
):
    method = partial(
        delayed_taps,
        forward_delay=b + gap,
        backward_delay=b,
        curvature=curvature,
        discrepancy=share * curvature,
    )
    step = largest_stable_step(method)
    assert step == pytest.approx(first_crossing(curvature, share * curvature, b + gap, b), rel=1e-5)
    assert step < min(2 / (share * curvature * gap), stable_step(b + gap, curvature))


@given(f=st.integers(1, 16), curvature=st.floats(0.1, 10), share=st.floats(0.05, 50))
@settings(max_examples=60, deadline=None)
def test_the_correction_raises_the_stable_step_where_the_backward_weights_are_new(
    f, curvature, share
):
    method = partial(
        delayed_taps, forward_delay=f, curvature=curvature, discrepancy=share * curvature
    )
    corrected = largest_stable_step(partial(method, decay=correction_decay(f)))
    assert corrected > largest_stable_step(method)


def test_the_correction_can_lower_the_stable_step_where_the_backward_weights_are_old_too():
    method = partial(delayed_taps, forward_delay=7, backward_delay=6, discrepancy=20.0)
    corrected = largest_stable_step(partial(method, decay=correction_decay(1)))
    assert corrected < 0.8 * largest_stable_step(method)


@given(
    taps=st.dictionaries(
        st.integers(0, 6), st.lists(st.floats(-1, 1), min_size=4, max_size=4), min_size=1
    ),
    seed=st.integers(0, 1000),
)
@settings(max_examples=100, deadline=None)
def test_the_companion_matrix_is_the_recurrence(taps, seed):
    blocks = {d: np.reshape(a, (2, 2)) for d, a in taps.items()}
    past = np.random.default_rng(seed).normal(size=(max(taps) + 1, 2))  # newest first
    new = sum(a @ past[d] for d, a in blocks.items())
    moved = (companion_matrix(blocks) @ past.ravel()).reshape(past.shape)
    assert moved == pytest.approx(np.vstack([[new], past[:-1]]))


def test_momentum_is_two_taps_and_has_its_known_threshold():
    """w(t+1) = w(t) + m (w(t) - w(t-1)) - a w(t) is stable for a < 2 (1 + m)."""
    for m in (0.0, 0.5, 0.9):
        assert largest_stable_step(lambda a, m=m: {0: 1 + m - a, 1: -m}) == pytest.approx(
            2 * (1 + m)
        )


@given(
    delay=st.integers(0, 5),
    m=st.floats(0, 0.95),
    rate=st.floats(0.01, 0.3),
    spike=st.booleans(),
    horizon=st.floats(0, 6),
)
@settings(max_examples=60, deadline=None)
def test_mitigated_momentum_is_its_definition_update_by_update(delay, m, rate, spike, horizon):
    matrix = companion_matrix(compensated_taps(rate, delay, m, spike=spike, horizon=horizon))
    state = np.tile([1.0, 0.0], delay + 1)
    w, v = [1.0] * (delay + 1), [0.0] * (delay + 1)
    # what the gradient would still have done
    late = sum(m**k for k in range(delay)) if spike else 0.0
    for _ in range(25):
        g = w[-1 - delay] - rate * horizon * v[-1 - delay]
        v.append(m * v[-1] + g)
        w.append(w[-1] - rate * ((m**delay if spike else 1) * v[-1] + late * g))
        state = matrix @ state
        assert state[:2] == pytest.approx([w[-1], v[-1]])


def test_without_momentum_the_mitigated_method_is_delayed_descent():
    taps, plain = compensated_taps(0.1, 4, spike=True), delayed_taps(0.1, 4)
    assert spectral_radius(taps) == pytest.approx(spectral_radius(plain))


def test_momentum_divides_the_stable_step_under_delay():
    """Eight updates late: the more momentum, the smaller the step, by more than a factor 1 - m."""
    steps = [
        largest_stable_step(lambda a, m=m: compensated_taps(a, 8, m)) for m in (0.0, 0.5, 0.9, 0.99)
    ]
    assert np.round(steps, 4).tolist() == [0.1845, 0.0851, 0.0139, 0.0013]
    assert steps[0] == pytest.approx(stable_step(8))


def test_what_has_no_threshold_is_refused():
    with pytest.raises(ValueError, match="smallest must be a stable step, got 1e-06"):
        largest_stable_step(lambda a: {0: 1 + a})
    with pytest.raises(ValueError, match="method must be unstable at some step"):
        largest_stable_step(lambda a: {0: 0.5})


@pytest.mark.parametrize(
    ("taps", "error"),
    [
        ({}, "at least one delay"),
        ({-1: 1.0}, "taps must be an integer in"),
        ({5000: 1.0}, "taps must be an integer in"),
        ({0: 1.0, 1: np.eye(2)}, "square blocks of one shape"),
        ({0: [1.0, 2.0]}, "square blocks of one shape"),
        ({0: np.nan}, "taps must be a number"),
    ],
)
def test_bad_taps_are_refused(taps, error):
    with pytest.raises(ValueError, match=error):
        companion_matrix(taps)
