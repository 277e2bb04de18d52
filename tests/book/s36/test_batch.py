"""Rates, layer-wise updates, noise scale; truncation, local dual updates, problems to train."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from pace import pace

from relparallel import communication as com
from relparallel.book import s36
from relparallel.book.s36.batch import large_batch_rates
from relparallel.book.s36.linear_models import truncated_gradient
from relparallel.book.s36.problems import logistic_problem, network_problem

few = settings(max_examples=pace(15, 50), deadline=None)
seeds = st.integers(0, 500)


def normal(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape)


def moved(
    rule: s36.UpdateRule, gradients: np.ndarray, start: np.ndarray, rate=0.1, layers=()
) -> np.ndarray:
    """Weights after every update with these gradients."""
    rows = iter(gradients)
    direction = rule.directed(lambda w, u: next(rows), layers)
    return com.delayed_descent(direction, start, np.full(len(gradients), rate), 0)


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
    small = moved(s36.UpdateRule(), g, np.zeros(5), rate=0.1)[-1]
    large = moved(s36.UpdateRule(), g.mean(axis=0, keepdims=True), np.zeros(5), rate=0.8)[-1]
    assert large == pytest.approx(small)
    rates = large_batch_rates(256, 25_600, 90)
    assert rates[[0, 2999, 3000, 6000, 8000]] == pytest.approx([0.1, 0.1, 0.01, 0.001, 0.0001])


@given(seed=seeds, scale=st.floats(1e-6, 1e6), trust=st.floats(1e-3, 2))
@few
def test_lars_does_not_see_how_large_the_gradient_is(seed, scale, trust):
    w, g = normal(12, seed=seed), normal(3, 12, seed=seed + 1)
    rule = s36.UpdateRule(trust=trust, momentum=0.9)
    path = moved(rule, g, w, layers=(4, 9))
    assert moved(rule, scale * g, w, layers=(4, 9)) == pytest.approx(path, rel=1e-9)
    for part in (slice(0, 4), slice(4, 9), slice(9, 12)):
        length = np.linalg.norm((path[1] - w)[part])
        assert length == pytest.approx(0.1 * trust * np.linalg.norm(w[part]))


@given(seed=seeds, decay=st.floats(0, 0.5))
@few
def test_lars_with_decay_is_its_published_update(seed, decay):
    w, g = normal(6, seed=seed), normal(2, 6, seed=seed + 1)
    path = moved(s36.UpdateRule(trust=0.01, momentum=0.8, decay=decay), g, w)
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
    adam = moved(s36.UpdateRule(momentum=0.9, second=0.99), g, w)
    mean = square = 0.0
    weights = w
    for t, gradient in enumerate(g, 1):
        mean, square = 0.9 * mean + 0.1 * gradient, 0.99 * square + 0.01 * gradient**2
        step = mean / (1 - 0.9**t) / (np.sqrt(square / (1 - 0.99**t)) + 1e-8)
        weights = weights - 0.1 * step
    assert adam[-1] == pytest.approx(weights)
    lamb = moved(s36.UpdateRule(momentum=0.9, second=0.99, decay=decay, trust=1.0), g, w)
    first = g[0] / (np.abs(g[0]) + 1e-8) + decay * w
    assert w - lamb[1] == pytest.approx(0.1 * np.linalg.norm(w) * first / np.linalg.norm(first))
    before, change = lamb[-2], lamb[-1] - lamb[-2]
    assert np.linalg.norm(change) == pytest.approx(0.1 * np.linalg.norm(before))


def test_layers_without_weights_or_gradients_are_not_scaled():
    path = moved(
        s36.UpdateRule(trust=1.0),
        np.array([[1.0, 2.0, 0.0, 0.0]]),
        np.array([0.0, 0, 3, 4]),
        layers=(2,),
    )
    assert path[1].tolist() == [-0.1, -0.2, 3.0, 4.0]


@given(noise=st.floats(0.1, 1e4), small=st.integers(1, 50), factor=st.floats(1.5, 50))
def test_the_noise_scale_is_exact_where_the_norms_are(noise, small, factor):
    large = small * factor
    found = s36.noise_scale(small, large, [2 * (1 + noise / small)], [2 * (1 + noise / large)])
    assert found == pytest.approx(noise, rel=1e-6)


def test_the_noise_scale_of_drawn_gradients_is_the_true_one():
    rng, slope, spread = np.random.default_rng(1), np.full(10, 1.0), np.linspace(0.5, 7, 10)
    squares = {
        b: np.sum((slope + rng.normal(size=(4000, 10)) * spread / b**0.5) ** 2, axis=1)
        for b in (32, 1024)
    }
    true = spread @ spread / (slope @ slope)
    assert s36.noise_scale(32, 1024, squares[32], squares[1024]) == pytest.approx(true, rel=0.05)
    with pytest.raises(ValueError, match="large_norms must exceed"):
        s36.noise_scale(1, 100, [100.0], [0.5])
    with pytest.raises(
        ValueError, match="large_norms must be at most small_norms = 1 on average, got 2"
    ):
        s36.noise_scale(1, 10, [1.0], [2.0])


@given(seed=seeds, gravity=st.floats(0, 1), limit=st.floats(0, 2), every=st.integers(1, 4))
@few
def test_truncation_is_that_of_its_definition(seed, gravity, limit, every):
    g, w, rate = normal(8, 6, seed=seed), normal(6, seed=seed + 1), 0.3
    rows = iter(g)
    pull = truncated_gradient(lambda a, b: next(rows), rate, gravity, limit, every)
    path = com.delayed_descent(pull, w, np.full(8, rate), 0)
    for i, gradient in enumerate(g, 1):
        w = w - rate * gradient
        cut = rate * gravity * every if i % every == 0 else 0.0
        w = np.array(
            [
                max(0, x - cut) if 0 <= x <= limit else min(0, x + cut) if -limit <= x < 0 else x
                for x in w
            ]
        )
        assert path[i] == pytest.approx(w, abs=1e-9)


@given(
    seed=seeds,
    workers=st.integers(1, 5),
    steps=st.integers(1, 20),
    combine=st.sampled_from(["add", "average"]),
)
@few
def test_a_round_of_cocoa_never_loses_and_the_gap_bounds_the_rest(seed, workers, steps, combine):
    x, y = normal(20, 4, seed=seed), normal(20, seed=seed + 1)
    rng = np.random.default_rng(seed)
    run = s36.cocoa(x, y, workers, steps, rounds=8, rng=rng, combine=combine)
    assert np.all(np.diff(run.dual) >= -1e-12)
    best = np.linalg.solve(x.T @ x / 20 + 0.1 * np.eye(4), x.T @ y / 20)
    least = np.mean((x @ best - y) ** 2) / 2 + 0.05 * (best @ best)
    assert np.all(run.dual <= least + 1e-12)
    assert np.all(run.primal >= least - 1e-12)


def test_adding_changes_that_do_not_count_each_other_diverges_and_local_work_saves_rounds():
    x = normal(40, 3) + 3.0  # samples that resemble each other
    y = x.sum(axis=1)
    gaps = {}
    for combine in ("add", "average", "naive"):
        run = s36.cocoa(x, y, 8, 20, rounds=60, rng=np.random.default_rng(1), combine=combine)
        gaps[combine] = run.primal[-1] - run.dual[-1]
    assert max(gaps["add"], gaps["average"]) < 1e-3
    assert not gaps["naive"] < 1e3
    few_steps, many = (
        s36.cocoa(x, y, 4, steps, rounds=30, rng=np.random.default_rng(1)) for steps in (2, 50)
    )
    assert many.primal[-1] - many.dual[-1] < 0.1 * (few_steps.primal[-1] - few_steps.dual[-1])


@pytest.mark.parametrize("name", ["logistic", "network"])
def test_gradients_of_the_problems_are_differences_of_their_losses(name):
    make = {"logistic": logistic_problem, "network": network_problem}[name]
    problem = make(60, 6, np.random.default_rng(1))
    w = problem.start + 0.1 * normal(problem.start.size)
    gradient = problem.gradient(60, np.random.default_rng(1))(w, w)
    for i, unit in enumerate(np.eye(w.size)):
        slope = (problem.loss(w + 1e-5 * unit) - problem.loss(w - 1e-5 * unit)) / 2e-5
        assert gradient[i] == pytest.approx(slope, abs=1e-7)
    assert 0 <= problem.accuracy(w) <= 1


def test_the_problems_are_learnt():
    for problem, rate, updates, least in (
        (logistic_problem(500, 10, np.random.default_rng(1)), 0.5, 200, 0.75),
        (network_problem(1000, 32, np.random.default_rng(1)), 0.5, 1000, 0.9),
    ):
        slope = problem.gradient(64, np.random.default_rng(2))
        end = com.delayed_descent(slope, problem.start, np.full(updates, rate), 0)[-1]
        assert problem.accuracy(end) > least
        assert problem.loss(end) < 0.7 * problem.loss(problem.start)


def test_a_batch_sent_by_many_workers_is_their_mean():
    problem = logistic_problem(200, 5, np.random.default_rng(1))
    sent = s36.CompressedGradient(
        problem.gradient(50, np.random.default_rng(2)), s36.top_k(1.0), workers=3
    )
    alone, w = problem.gradient(50, np.random.default_rng(2)), np.ones(5)
    assert sent(w, w) == pytest.approx(np.mean([alone(w, w) for _ in range(3)], axis=0))
    assert sent.bits == 3 * 5 * (32 + 3)
