"""Simulated fleets and laws of life: rows of ``training-reliability``."""

import numpy as np

from relparallel import training, units
from relparallel.book.s41.fleet import Fleet
from relparallel.claims.registry import reproduces
from relparallel.training.lifetimes import fleet_failures


@reproduces("AIR-001")
def fleet_without_failures() -> float:
    """Hours of a simulated job on servers that never fail and are there at once."""
    fleet = Fleet(failure_rate=0.0, selection=0.0)
    return fleet.simulate(replications=2, rng=np.random.default_rng(0)).mean_total_time.value / units.HOUR


@reproduces("AIR-003")
def failures_of_a_fleet() -> float:
    """Failures of the fleet in closed form."""
    return Fleet().expected_failures


_FEW_RUNS = (
    "Published is the mean of two runs, 1598 and 1552. New lives for all 256 servers at every failure give "
    "1654 on average, as the row says, with a standard deviation of 60: the mean of two runs lies 1.9 "
    "standard errors below. A stationary fleet has 153.6."
)


@reproduces("AIR-004", "AIR-005", discrepancies={"AIR-004": _FEW_RUNS})
def fleet_with_lives_drawn_again(k: float) -> float:
    """Mean failures of 256 servers in 60 days if each failure makes all of them new."""
    law = training.Lifetime.weibull(mean=100 * units.DAY, shape=k)
    return 60 * units.DAY / law.first_of(256)


@reproduces("WB-001")
def first_failure_of_new_parts(k: float, n: int) -> float:
    """Mean time until the first failure, in mean lives."""
    return training.Lifetime.weibull(mean=1.0, shape=k).first_of(n)


@reproduces("WB-002")
def failures_of_new_parts(k: float, n: int) -> float:
    """Mean failures in the first 5 % of a mean life."""
    law, rng = training.Lifetime.weibull(mean=1.0, shape=k), np.random.default_rng(0)
    return float(fleet_failures(law, n, 0.05, rng, ages="new", replications=200).mean())
