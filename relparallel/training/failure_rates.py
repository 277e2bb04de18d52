"""Rates and mean repairs of a log, with the doubt that few failures leave about them.

Failures at a constant rate leave a gamma posterior of it: with n of them in the time T a shape of
n + 1/2 and a mean of (n + 1/2) / T (Jeffreys 1946), whose quantiles lie between the bounds of Garwood
(1936), which are gamma quantiles of the shapes n and n + 1. Where failures come together, n is the
number over its index of dispersion. Exponential repairs, k of which ended, leave a mean with an
inverse gamma posterior of the shape k; where they differ more, k is the number over the square of
their coefficient of variation.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
import scipy
from numpy.typing import NDArray

from relparallel.metrics import Estimate
from relparallel.training._independent_logs import BLOCKS
from relparallel.training.outages import Outages
from relparallel.units import DAY

Floats = NDArray[np.float64]

FEW: Final = 20  # failures, of which it sees one in three that brings another
NONE_SEEN: Final = 0.5  # failures that count for none: the mean of the posterior
_CHANCE: Final = 0.01  # that few failures at one rate are said to come together


class Counted(NamedTuple):
    """What was counted: so many independent ones, and their rate or mean."""

    number: float  # infinite where a mean is given
    value: float

    def estimate(self, failures: int, level: float) -> Estimate:
        """A rate with its interval (Garwood 1936)."""
        tail, unit = (1 - level) / 2, self.value / (self.number or NONE_SEEN)
        lower = float(unit * scipy.special.gammaincinv(self.number, tail)) if failures else 0.0
        upper = float(unit * scipy.special.gammaincinv(self.number + 1, 1 - tail))
        what = f"{failures} failures" if failures else "no failure, mean of the posterior"
        method = f"{what}, {100 * level:g} % interval by {BLOCKS} parts of the window"
        return Estimate(value=self.value, lower=lower, upper=upper, method=method, exact=False)

    def rates(self, chance: Any) -> Any:
        """Quantiles of the posterior of a rate, over its point value."""
        return scipy.special.gammaincinv(self.number + 0.5, chance) / (self.number or NONE_SEEN)

    def means(self, chance: Any) -> Any:
        """Quantiles of the posterior of a mean, over its point value."""
        if np.isinf(self.number):
            return np.ones(np.shape(chance))
        return self.number / scipy.special.gammainccinv(self.number, chance)


def counted_rate(log: Any) -> Counted:
    """Failures of a log per second of a node that is up.

    Without a failure the mean of the posterior, half a failure over the time. Few failures come
    together where one rate gives that with a chance of 1 %, by a chi-squared number of the twelfths
    of the window.
    """
    first = np.unique(log.incident, return_index=True)[1]
    return _rate(log.start[first] - (log.watched - log.span), log.span, log.exposure)


def _rate(start: Floats, span: float, exposure: float) -> Counted:
    """Rate of failures that started at times since a window of a length [s] began."""
    if not start.size:
        return Counted(0.0, NONE_SEEN / exposure)
    counts = np.histogram(start, BLOCKS, (0.0, span))[0]
    spread = float(counts.var(ddof=1) / counts.mean())
    least = 1.0 if start.size >= FEW else scipy.special.chdtri(BLOCKS - 1, _CHANCE) / (BLOCKS - 1)
    return Counted(start.size / (spread if spread > least else 1.0), start.size / exposure)


def outage_rate(log: Outages) -> Estimate:
    """Outages per second of a node that is up, with the 95 % interval."""
    return _rate(log.start[0], log.span, log.exposure).estimate(log.start[0].size, 0.95)


def counted_repair(log: Any, cause: str | None = None) -> Counted | None:
    """Mean repair of a cause of a log, or of all but the job [s]; None where none was seen to end.

    The area under the estimate of Kaplan and Meier (1958): a node that is still down when the window
    ends counts with its time until then. Beyond a last repair that had not ended as much again as
    all time under repair over the repairs that ended. Repairs that all took the same are no sample.
    """
    took = np.where(log.still, log.watched - log.start, log.repairs)
    level = log.level_of()
    of_nodes = np.array([level[each] != "job" for each in log.cause.tolist()], dtype=np.bool_)
    known = np.isfinite(took) & (of_nodes if cause is None else log.cause == cause)
    took, still = took[known], log.still[known]
    ended = took[~still]
    if not ended.size:
        return None
    mean = took.sum() / ended.size
    spread = float(ended.var(ddof=1) / ended.mean() ** 2) if np.ptp(ended) else 0.0
    number = ended.size / max(spread, 1.0) if spread or ended.size == 1 else np.inf
    if still.any():
        alive = scipy.stats.ecdf(scipy.stats.CensoredData.right_censored(took, still)).sf
        left = np.append(1.0, alive.probabilities)
        mean = np.diff(alive.quantiles, prepend=0.0) @ left[:-1] + left[-1] * mean
    return Counted(number, float(mean))


def in_node_days(rate: Estimate, level: str = "90 %") -> str:
    """A rate with its interval in words."""
    value, low, high = (1000 * DAY * each for each in (rate.value, rate.lower, rate.upper))
    return f"{value:.3g} per 1000 node-days ({low:.2g} to {high:.2g}, {level})"
