"""Stocks against enumeration, intervals against dense grids and simulation."""

import math
from itertools import product

import numpy as np
import pytest
from scipy.stats import poisson

from chapters.s12.maintenance import inspection_interval, replacement_interval
from chapters.s12.spare_parts import spares
from relparallel.training import spares_needed


@pytest.mark.parametrize("seed", range(6))
def test_the_stock_is_what_enumeration_finds(seed):
    rng = np.random.default_rng(seed)
    count, lead = rng.integers(10, 200, 3), 1e6
    mtbf, price = rng.uniform(2e7, 2e8, 3), rng.integers(1, 12, 3).astype(float)
    plan = spares(count, mtbf, lead, 0.97, price=price)
    enough = poisson.cdf(np.arange(40)[None], (count * lead / mtbf)[:, None])
    costs = [
        price @ np.array(stock)
        for stock in product(range(40), repeat=3)
        if math.prod(enough[i, s] for i, s in enumerate(stock)) >= 0.97
    ]
    assert plan.cost == min(costs)
    assert plan.availability >= 0.97
    assert plan.availability == pytest.approx(
        math.prod(enough[i, s] for i, s in enumerate(plan.spares)), rel=1e-12
    )


@pytest.mark.parametrize("kind", ["cold", "hot"])
def test_one_kind_of_part_is_what_the_training_model_says(kind):
    plan = spares(2048, 1 / 3.79e-3, 1.0, 0.999, kind=kind)
    assert plan.spares == (spares_needed(2048, 3.79e-3, 1.0, 1e-3, kind),)


@pytest.mark.parametrize("shape", [1.3, 2.0, 4.5])
@pytest.mark.parametrize("failure", [2.0, 10.0, 300.0])
def test_the_age_is_the_minimum_of_a_dense_grid(shape, failure):
    plan = replacement_interval(shape, 1.0, 1.0, failure)
    grid = np.linspace(0, 6, 300_001)
    up = np.exp(-(grid**shape))
    integral = np.cumsum((up[1:] + up[:-1]) / 2) * grid[1]
    rate = (up + failure * (1 - up))[1:] / integral
    assert plan.cost_rate == pytest.approx(rate.min(), rel=1e-6)
    if plan.interval < 3:
        assert plan.interval == pytest.approx(grid[1:][rate.argmin()], rel=5e-3)


def test_a_block_is_what_simulation_says():
    plan = replacement_interval(3.0, 1.0, 1.0, 12.0, "block")
    lives = np.random.default_rng(1).weibull(3.0, (200_000, 12))
    renewals = (lives.cumsum(axis=1) <= plan.interval).sum(axis=1)
    sampled = (1.0 + 12.0 * renewals) / plan.interval
    assert abs(sampled.mean() - plan.cost_rate) < 4 * sampled.std() / math.sqrt(len(lives))
    for factor in (0.8, 1.25):
        time = factor * plan.interval
        other = (1.0 + 12.0 * (lives.cumsum(axis=1) <= time).sum(axis=1)) / time
        assert other.mean() > sampled.mean()


def test_parts_that_do_not_age_are_never_replaced():
    for policy in ("age", "block", "minimal"):
        assert replacement_interval(1.0, 1e6, 1.0, 10.0, policy).interval == math.inf
    assert replacement_interval(3.0, 1e6, 10.0, 5.0).interval == math.inf


@pytest.mark.parametrize("price", [1e-9, 1e-3, 0.2, 0.7])
def test_inspection_is_the_minimum_of_a_dense_grid(price):
    plan = inspection_interval(1.0, price, 1.0)
    y = np.geomspace(1e-6, 20, 400_001)
    rate = price / y + 1 + np.expm1(-y) / y
    assert plan.cost_rate == pytest.approx(rate[y > 1e-3 * math.sqrt(price)].min(), rel=1e-5)
    assert plan.cost_rate < plan.unplanned


def test_a_look_that_costs_more_than_it_saves_is_never_taken():
    assert inspection_interval(1.0, 1.0, 1.0).interval == math.inf


@pytest.mark.parametrize("policy", ["age", "block"])
@pytest.mark.parametrize("price", [1e-5, 1e-9, 1e-15])
def test_cheap_replacements_are_as_with_minimal_repair(policy, price):
    # a part that is replaced long before it fails hardly fails twice: the closed form is the limit
    plan, limit = (replacement_interval(2.0, 1e7, price, 1.0, name) for name in (policy, "minimal"))
    assert plan.interval == pytest.approx(limit.interval, rel=1e-4)
    assert plan.cost_rate == pytest.approx(limit.cost_rate, rel=1e-5)
