"""Problems to train: their gradients, and that they are learnt."""

from __future__ import annotations

import numpy as np
import pytest

from chapters.descent import delayed_descent, logistic_problem, network_problem


@pytest.mark.parametrize("name", ["logistic", "network"])
def test_gradients_of_the_problems_are_differences_of_their_losses(name):
    make = {"logistic": logistic_problem, "network": network_problem}[name]
    problem = make(60, 6, np.random.default_rng(1))
    w = problem.start + 0.1 * np.random.default_rng(0).normal(size=problem.start.size)
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
        end = delayed_descent(slope, problem.start, np.full(updates, rate), 0)[-1]
        assert problem.accuracy(end) > least
        assert problem.loss(end) < 0.7 * problem.loss(problem.start)
