"""The largest of many draws, against closed forms, draws and atoms."""

import math

import numpy as np
import pytest
from scipy import stats
from scipy.special import beta

from relparallel.training.order_statistics import LAWS, expected_maximum, largest


@pytest.mark.parametrize("n", [1, 2, 7, 100, 10**6])
def test_the_largest_of_laws_with_a_closed_form(n):
    assert expected_maximum(n, stats.uniform()) == pytest.approx(n / (n + 1), abs=1e-9)
    assert expected_maximum(n, stats.pareto(2.5)) == pytest.approx(n * beta(n, 0.6), rel=1e-8)
    assert expected_maximum(n, stats.gumbel_r()) == pytest.approx(
        np.euler_gamma + math.log(n), abs=1e-8
    )
    if n <= 100:
        harmonic = math.fsum(1 / i for i in range(1, n + 1))
        assert expected_maximum(n, "exponential") == pytest.approx(harmonic, abs=1e-9)


def test_the_largest_of_few_normal_draws():
    assert expected_maximum(1) == pytest.approx(0, abs=1e-9)
    assert expected_maximum(2) == pytest.approx(1 / math.sqrt(math.pi), abs=1e-9)
    assert expected_maximum(3) == pytest.approx(1.5 / math.sqrt(math.pi), abs=1e-9)


@pytest.mark.parametrize("law", [stats.lognorm(0.3), stats.gamma(2.0), stats.norm(5, 2)])
def test_the_largest_is_that_of_draws(law):
    drawn = law.rvs((20000, 64), random_state=np.random.default_rng(5)).max(axis=1)
    error = 3.5 * drawn.std() / math.sqrt(drawn.size)
    assert abs(drawn.mean() - expected_maximum(64, law)) < error


DISCRETE = [
    (stats.bernoulli(0.1), range(2)),
    (stats.randint(2, 9), range(2, 9)),
    (stats.poisson(3.3), range(80)),
    (stats.geom(0.2), range(1, 300)),
    (stats.skellam(3, 4), range(-60, 60)),
    (stats.zipf(8.0), range(1, 5000)),
    (stats.rv_discrete(values=([1.5, 2.25, 7], [0.2, 0.5, 0.3])), (1.5, 2.25, 7)),
    (stats.rv_discrete(values=([1, 2, 7], [0.2, 0.5, 0.3]))(loc=0.5), (1.5, 2.5, 7.5)),
]


@pytest.mark.parametrize(("law", "atoms"), DISCRETE)
def test_the_largest_of_a_discrete_law_by_its_atoms(law, atoms):
    below = np.cumsum([law.pmf(x) for x in atoms])
    for n in (1, 7, 1000):
        chance = np.diff(below**n, prepend=0.0)
        assert expected_maximum(n, law) == pytest.approx(
            float(chance @ np.array(atoms)), rel=1e-9, abs=1e-12
        )


@pytest.mark.parametrize("n", [2, 8, 512])
def test_the_spread_of_the_largest_is_that_of_draws(n):
    drawn = np.random.default_rng(3).standard_normal((20000, n)).max(axis=1)
    mean, spread = largest(n, LAWS["normal"])
    assert drawn.mean() == pytest.approx(mean, abs=0.02)
    assert drawn.std() == pytest.approx(spread, rel=0.02)
