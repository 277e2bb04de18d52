"""Simulated fleets and laws of life: rows of ``training-reliability``."""

import re

import numpy as np

from relparallel import training, units
from relparallel.claims.registry import reproduces
from relparallel.published import Fact


@reproduces("AIR-001")
def fleet_without_failures() -> float:
    """Hours of a simulated job on servers that never fail and are there at once."""
    fleet = training.Fleet(failure_rate=0.0, selection=0.0)
    return fleet.simulate(replications=2, rng=np.random.default_rng(0)).mean_total_time.value / units.HOUR


@reproduces("AIR-003")
def fleet_failures() -> float:
    """Failures of the fleet in closed form."""
    return training.Fleet().expected_failures


_FEW_RUNS = (
    "Published is the mean of two runs, 1598 and 1552. New lives for all 256 servers at every failure give "
    "1654 on average, as the row says, with a standard deviation of 60: the mean of two runs lies 1.9 "
    "standard errors below. A stationary fleet has 153.6."
)


@reproduces("AIR-004", "AIR-005", discrepancies={"AIR-004": _FEW_RUNS})
def fleet_with_lives_drawn_again(fact: Fact) -> float:
    """Mean failures of 256 servers in 60 days if each failure makes all of them new."""
    law = training.Lifetime.weibull(mean=100 * units.DAY, shape=_shape(fact))
    return 60 * units.DAY / law.first_of(256)


@reproduces("WB-001")
def first_failure_of_new_parts(k: float, n: int) -> float:
    """Mean time until the first failure, in mean lives."""
    return training.Lifetime.weibull(mean=1.0, shape=k).first_of(n)


@reproduces("WB-002")
def failures_of_new_parts(k: float, n: int) -> float:
    """Mean failures in the first 5 % of a mean life."""
    law, rng = training.Lifetime.weibull(mean=1.0, shape=k), np.random.default_rng(0)
    return float(training.fleet_failures(law, n, 0.05, rng, ages="new", replications=200).mean())


def _shape(fact: Fact) -> float:
    """Weibull's shape, which the quantity names."""
    found = re.search(r"k=([\d.]+)", fact.quantity)
    if found is None:
        raise ValueError(f"fact must name a shape k, got {fact.quantity!r}")
    return float(found.group(1))
