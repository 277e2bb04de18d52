"""Truncated weights against their definition, and a batch that many workers send."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from chapters import descent, s36
from pace import pace

few = settings(max_examples=pace(15, 50), deadline=None)
seeds = st.integers(0, 500)


def normal(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape)


@given(seed=seeds, gravity=st.floats(0, 1), limit=st.floats(0, 2), every=st.integers(1, 4))
@few
def test_truncation_is_that_of_its_definition(seed, gravity, limit, every):
    g, w, rate = normal(8, 6, seed=seed), normal(6, seed=seed + 1), 0.3
    rows = iter(g)
    pull = s36.truncated_gradient(lambda a, b: next(rows), rate, gravity, limit, every)
    path = descent.delayed_descent(pull, w, np.full(8, rate), 0)
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


def test_a_batch_sent_by_many_workers_is_their_mean():
    problem = descent.logistic_problem(200, 5, np.random.default_rng(1))
    sent = s36.CompressedGradient(
        problem.gradient(50, np.random.default_rng(2)), s36.top_k(1.0), workers=3
    )
    alone, w = problem.gradient(50, np.random.default_rng(2)), np.ones(5)
    assert sent(w, w) == pytest.approx(np.mean([alone(w, w) for _ in range(3)], axis=0))
    assert sent.bits == 3 * 5 * (32 + 3)
