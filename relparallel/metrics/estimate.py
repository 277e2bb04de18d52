"""A number together with how sure it is."""

import math
from dataclasses import dataclass

from relparallel._checks import require_int, require_real


@dataclass(frozen=True, kw_only=True, slots=True)
class Estimate:
    """A metric with a bracket: ``float(estimate)`` is the value. Infinity is allowed."""

    value: float
    lower: float  #: equal to the value where that is exact
    upper: float  #: the same
    method: str  #: how the value was found
    exact: bool

    def __float__(self) -> float:
        return float(self.value)

    def __repr__(self) -> str:
        if self.exact:
            return f"Estimate({self.value:g}, exact, {self.method})"
        digits = 6 if math.isfinite(self.value) else 1
        return (
            f"Estimate({self.value:.{digits}g} in [{self.lower:.6g}, {self.upper:.6g}], "
            f"{self.method})"
        )


def exactly(value: float, method: str) -> Estimate:
    """An exact value."""
    return Estimate(value=value, lower=value, upper=value, method=method, exact=True)


def binomial_estimate(successes: int, trials: int, confidence: float) -> Estimate:
    """Share of successes in independent trials, with the interval of Clopper and Pearson (1934).

    >>> binomial_estimate(9, 10, 0.95)
    Estimate(0.9 in [0.554984, 0.997471], 10 samples, 95 % interval)
    """
    from scipy.special import betaincinv

    n = require_int(trials=trials, at_least=1)
    k = require_int(successes=successes, at_least=0, at_most=n)
    tail = (1 - require_real(confidence=confidence, above=0, below=1)) / 2
    return Estimate(
        value=k / n,
        lower=float(betaincinv(k, n - k + 1, tail)) if k else 0.0,
        upper=float(betaincinv(k + 1, n - k, 1 - tail)) if k < n else 1.0,
        method=f"{n} samples, {100 * confidence:g} % interval",
        exact=False,
    )
