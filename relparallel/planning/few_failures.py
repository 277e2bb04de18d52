"""What few failures of a log leave open: goodput over a horizon, checkpoint interval and spares.

The rates of all classes have one gamma posterior, their repairs one inverse gamma (`failure_rates`).
Both are drawn from on a lattice; of each draw the relative goodput of the choice, its strategy,
spares and checkpoint interval as they are, is a beta variable with the mean and the variance that
failures leave it over the horizon, and beside it the chance that nothing fails.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray

from relparallel.optimize.joint_search import Choice, JointSearch
from relparallel.planning.days import without_failures
from relparallel.training import FailureLog, spares_needed
from relparallel.training.failure_rates import Counted, counted_rate, counted_repair
from relparallel.training.goodput_forms import SteadyState

TAILS: Final = (0.05, 0.95)  # of the intervals of a plan
_POINTS: Final = 34  # of a lattice of Fibonacci numbers, evenly spread over rates and repairs
_STEP: Final = 21
_NONE: Final = 1e-9  # share next to 0 or 1
Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, eq=False)
class FewFailures:
    """Doubt about the rates and repairs of a log; repairs that were given leave none."""

    log: FailureLog
    given: bool  # the repair
    _shares: dict[SteadyState, tuple[float, float]] = field(default_factory=dict, repr=False)

    @cached_property
    def rate(self) -> Counted:
        """Failures of a node."""
        return counted_rate(self.log)

    @cached_property
    def repair(self) -> Counted | None:
        """Mean repair that the log has seen, None where it has not, or another one was given."""
        return None if self.given else counted_repair(self.log)

    @cached_property
    def factors(self) -> tuple[Floats, Floats]:
        """Draws of rates and repairs over their point values."""
        place = np.arange(_POINTS)
        rates = self.rate.rates((place + 0.5) / _POINTS)
        spread = (place * _STEP % _POINTS + 0.5) / _POINTS
        return rates, np.ones(_POINTS) if self.repair is None else self.repair.means(spread)

    def share(self, state: SteadyState, horizon: float) -> tuple[float, float]:
        """Interval of the relative goodput over a horizon [s]."""
        if state not in self._shares:
            drawn = [state.at(*each) for each in zip(*self.factors, strict=True)]
            self._shares[state] = mixed_interval(drawn, horizon)
        return self._shares[state]

    def checkpoint(self, search: JointSearch, choice: Choice) -> tuple[float, float]:
        """Interval of the best work between two checkpoints [s]; rates alone decide it."""
        asked, job = search.checkpoints[choice.checkpoint], choice.state.job
        if asked.interval is not None:
            return job.interval, job.interval
        if np.isinf(job.chosen(None, asked.every).interval):  # Young's root of what was not seen
            most, least = job.interval / np.sqrt(Counted(0.0, 1.0).rates(TAILS))
            return float(least), float(most)
        found = (
            job._replace(rate=job.rate * factor).chosen(None, asked.every).interval
            for factor in self.rate.rates(TAILS)
        )
        most, least = found
        return least, most

    def spares(self, nodes: int, rate: float, repair: float, shortage: float) -> tuple[int, int]:
        """Interval of the spares that so many nodes need."""
        load = np.quantile(np.multiply(*self.factors), TAILS)
        few, many = (spares_needed(nodes, rate * x, repair, shortage, "hot") for x in load.tolist())
        return few, many


def mixed_interval(states: list[SteadyState], horizon: float) -> tuple[float, float]:
    """Quantiles 5 and 95 % of the relative goodput over a horizon [s], each state as likely.

    The upper end is that of a run without a failure, where that has a chance above 5 %; a run holds
    one checkpoint more or less.
    """
    from scipy.optimize import brentq
    from scipy.special import betainc

    none, top = np.array([without_failures(state, horizon) for state in states]).T
    none, whole = np.minimum(none, 1 - _NONE), float(top[0])
    mean = np.array([float(state.share) for state in states]) / whole
    variance = np.array([state.variance_over(horizon) for state in states]) / horizon / whole**2
    some = np.clip((mean - none) / (1 - none), _NONE, 1 - _NONE)  # mean of runs with a failure
    square = (variance + mean**2 - none) / (1 - none) - some**2
    both = some * (1 - some) / np.clip(square, 1e-18, some * (1 - some) * (1 - 1e-3)) - 1

    def below(share: float) -> float:
        """Chance of less than a share of a run without failures."""
        return float(((1 - none) * betainc(some * both, (1 - some) * both, share)).mean())

    low, high = (
        1.0 if below(1.0) <= tail else brentq(lambda x, tail=tail: below(x) - tail, 0.0, 1.0)
        for tail in TAILS
    )
    job = states[0].job
    more = float(job.cost.sum()) / horizon if high == 1 and np.isfinite(job.interval) else 0.0
    return low * whole, min(high * whole + more, 1.0)
