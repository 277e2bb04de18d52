"""Learning rates of large batches, layer-wise updates and the noise scale."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from chapters import descent, s38
from chapters.s38.batch import large_batch_rates
from pace import pace

few = settings(max_examples=pace(15, 50), deadline=None)
seeds = st.integers(0, 500)


def normal(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape)


def moved(
    rule: s38.UpdateRule, gradients: np.ndarray, start: np.ndarray, rate=0.1, layers=()
) -> np.ndarray:
    """Weights after every update with these gradients."""
    rows = iter(gradients)
    direction = rule.directed(lambda w, u: next(rows), layers)
    return descent.delayed_descent(direction, start, np.full(len(gradients), rate), 0)


@given(batch=st.integers(16, 4096), epochs=st.integers(1, 12), rise=st.integers(0, 6))
def test_rates_rise_to_the_scaled_rate_and_never_beyond(batch, epochs, rise):
    rates = large_batch_rates(batch, 8192, epochs, base_batch=64, warm_up=rise, drops=[100])
    top = 0.1 * batch / 64
    assert rates.size == epochs * 8192 // batch
    if rates.size:
        assert rates[0] == pytest.approx(0.1 if rise else top)
        assert np.all(rates <= max(top, 0.1) * (1 + 1e-12))
        assert np.all(rates >= min(top, 0.1) * (1 - 1e-12))
        epoch = np.arange(rates.size) * batch / 8192
        assert rates[epoch >= rise] == pytest.approx(top)


def test_a_large_batch_with_the_scaled_rate_is_many_small_ones_while_the_gradient_stays():
    """w - n a mean(g) = w - a sum(g): Goyal et al.'s argument, exact for a constant gradient."""
    g = normal(8, 5)
    small = moved(s38.UpdateRule(), g, np.zeros(5), rate=0.1)[-1]
    large = moved(s38.UpdateRule(), g.mean(axis=0, keepdims=True), np.zeros(5), rate=0.8)[-1]
    assert large == pytest.approx(small)
    rates = large_batch_rates(256, 25_600, 90)
    assert rates[[0, 2999, 3000, 6000, 8000]] == pytest.approx([0.1, 0.1, 0.01, 0.001, 0.0001])


@given(seed=seeds, scale=st.floats(1e-6, 1e6), trust=st.floats(1e-3, 2))
@few
def test_lars_does_not_see_how_large_the_gradient_is(seed, scale, trust):
    w, g = normal(12, seed=seed), normal(3, 12, seed=seed + 1)
    rule = s38.UpdateRule(trust=trust, momentum=0.9)
    path = moved(rule, g, w, layers=(4, 9))
    assert moved(rule, scale * g, w, layers=(4, 9)) == pytest.approx(path, rel=1e-9)
    for part in (slice(0, 4), slice(4, 9), slice(9, 12)):
        length = np.linalg.norm((path[1] - w)[part])
        assert length == pytest.approx(0.1 * trust * np.linalg.norm(w[part]))


@given(seed=seeds, decay=st.floats(0, 0.5))
@few
def test_lars_with_decay_is_its_published_update(seed, decay):
    w, g = normal(6, seed=seed), normal(2, 6, seed=seed + 1)
    path = moved(s38.UpdateRule(trust=0.01, momentum=0.8, decay=decay), g, w)
    velocity, weights = 0.0, w
    for gradient in g:
        size, slope = np.linalg.norm(weights), np.linalg.norm(gradient)
        local = 0.01 * size / (slope + decay * size)
        velocity = 0.8 * velocity + 0.1 * local * (gradient + decay * weights)
        weights = weights - velocity
    assert path[-1] == pytest.approx(weights)


@given(seed=seeds, decay=st.floats(0, 0.5))
@few
def test_lamb_is_adams_direction_with_the_length_of_the_weights(seed, decay):
    w, g = normal(8, seed=seed), normal(4, 8, seed=seed + 1)
    adam = moved(s38.UpdateRule(momentum=0.9, second=0.99), g, w)
    mean = square = 0.0
    weights = w
    for t, gradient in enumerate(g, 1):
        mean, square = 0.9 * mean + 0.1 * gradient, 0.99 * square + 0.01 * gradient**2
        step = mean / (1 - 0.9**t) / (np.sqrt(square / (1 - 0.99**t)) + 1e-8)
        weights = weights - 0.1 * step
    assert adam[-1] == pytest.approx(weights)
    lamb = moved(s38.UpdateRule(momentum=0.9, second=0.99, decay=decay, trust=1.0), g, w)
    first = g[0] / (np.abs(g[0]) + 1e-8) + decay * w
    assert w - lamb[1] == pytest.approx(0.1 * np.linalg.norm(w) * first / np.linalg.norm(first))
    before, change = lamb[-2], lamb[-1] - lamb[-2]
    assert np.linalg.norm(change) == pytest.approx(0.1 * np.linalg.norm(before))


def test_layers_without_weights_or_gradients_are_not_scaled():
    path = moved(
        s38.UpdateRule(trust=1.0),
        np.array([[1.0, 2.0, 0.0, 0.0]]),
        np.array([0.0, 0, 3, 4]),
        layers=(2,),
    )
    assert path[1].tolist() == [-0.1, -0.2, 3.0, 4.0]


@given(noise=st.floats(0.1, 1e4), small=st.integers(1, 50), factor=st.floats(1.5, 50))
def test_the_noise_scale_is_exact_where_the_norms_are(noise, small, factor):
    large = small * factor
    found = s38.noise_scale(small, large, [2 * (1 + noise / small)], [2 * (1 + noise / large)])
    assert found == pytest.approx(noise, rel=1e-6)


def test_the_noise_scale_of_drawn_gradients_is_the_true_one():
    rng, slope, spread = np.random.default_rng(1), np.full(10, 1.0), np.linspace(0.5, 7, 10)
    squares = {
        b: np.sum((slope + rng.normal(size=(4000, 10)) * spread / b**0.5) ** 2, axis=1)
        for b in (32, 1024)
    }
    true = spread @ spread / (slope @ slope)
    assert s38.noise_scale(32, 1024, squares[32], squares[1024]) == pytest.approx(true, rel=0.05)
    with pytest.raises(ValueError, match="large_norms must exceed"):
        s38.noise_scale(1, 100, [100.0], [0.5])
    with pytest.raises(
        ValueError, match="large_norms must be at most small_norms = 1 on average, got 2"
    ):
        s38.noise_scale(1, 10, [1.0], [2.0])
