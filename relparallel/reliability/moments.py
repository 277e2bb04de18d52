"""Moments of samples, the intervals made of them, and the estimate that is handed out."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple, get_args

from scipy.special import ndtri, stdtrit

from relparallel._checks import require_choice, require_int, require_probability, require_real
from relparallel.metrics import binomial_estimate

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Estimator", "Moments", "UnreliabilityEstimate", "mean_interval", "share_interval"]

Estimator = Literal["auto", "crude", "permutation", "splitting", "recursive", "zero_variance", "karp_luby"]
_FEW = 10  # failures below which Wilson's interval is too short for some unreliabilities


class Moments(NamedTuple):
    """Number of samples, their mean, the sum of squared deviations from it, and the elementary steps."""

    count: int
    mean: float
    square: float
    work: int

    @property
    def variance(self) -> float:
        """Unbiased; 0 for one sample."""
        return self.square / max(self.count - 1, 1)

    def joined(self, other: Moments) -> Moments:
        """Moments of both samples together, after Chan, Golub and LeVeque."""
        count = self.count + other.count
        apart = other.mean - self.mean
        return Moments(
            count,
            self.mean + apart * other.count / count,
            self.square + other.square + apart * apart * self.count * other.count / count,
            self.work + other.work,
        )


def mean_interval(moments: Moments, confidence: float) -> tuple[float, float, float, float]:
    """Mean of the samples, its interval, and by how much it was widened for values never drawn.

    Parameters
    ----------
    moments : Moments
        Of two or more independent samples in [0, 1].
    confidence : float
        Inside (0, 1).

    Returns
    -------
    tuple of float
        Mean, lower, upper, allowance.

    Notes
    -----
    Student's interval for the logarithm of the mean, whose variance is the relative variance of the mean: for
    samples that are skewed to the right it errs to both sides about equally.

    Values that together have a chance above -ln(1 - confidence) / n are drawn at least once with the stated
    confidence. Rarer ones are taken to add at most that share of the mean. This matters where the samples are
    nearly equal, and only there. Where all samples are 0, the upper end is that of Clopper and Pearson for
    one side: no sample exceeds 1.
    """
    n, mean = moments.count, moments.mean
    if mean == 0.0:
        return 0.0, 0.0, float(-math.expm1(math.log1p(-confidence) / n)), 0.0
    spread = float(stdtrit(n - 1, (1 + confidence) / 2)) * math.sqrt(moments.variance / n) / mean
    unseen = -math.log1p(-confidence) / n
    half = max(spread, unseen)
    return mean, mean * math.exp(-half), min(mean * math.exp(half), 1.0), mean * max(unseen - spread, 0.0)


def share_interval(moments: Moments, confidence: float) -> tuple[float, float, float, float]:
    """Share of failures with Wilson's interval, or that of Clopper and Pearson where there are few.

    Parameters
    ----------
    moments : Moments
        Of samples that are 0 or 1.
    confidence : float
        Inside (0, 1).

    Returns
    -------
    tuple of float
        Share, lower, upper, and no allowance.

    Notes
    -----
    Clopper and Pearson hold with at least the stated confidence and usually with more; Wilson's interval is
    close to it on average, but too short for some chances when only a few samples fail or only a few do not.
    """
    n, mean = moments.count, moments.mean
    failures = round(mean * n)
    if min(failures, n - failures) < _FEW:
        exact = binomial_estimate(failures, n, confidence)
        return mean, min(exact.lower, mean), max(exact.upper, mean), 0.0
    z = float(ndtri((1 + confidence) / 2))
    middle = (mean + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * math.sqrt(mean * (1 - mean) / n + (z / (2 * n)) ** 2)
    return mean, middle - half, middle + half, 0.0


@dataclass(frozen=True, kw_only=True, slots=True)
class UnreliabilityEstimate:
    """An estimate of the unreliability with its interval.

    Parameters
    ----------
    value, lower, upper : float
        The estimate and the interval that holds the unreliability with the confidence stated.
    method : str
        The estimator.
    confidence : float
        Inside (0, 1).
    bias_bound : float
        What the interval has been widened by for what the samples cannot show: cuts left out ("karp_luby"),
        or values too rare to be drawn.
    samples : int
        Independent samples in the answer; 0 where nothing had to be drawn.
    work : float
        Elementary steps in all: parts, arcs and terms looked at, pilot runs included.

    Raises
    ------
    TypeError, ValueError
        If a number is out of range or the interval does not hold the value.

    Examples
    --------
    >>> found = UnreliabilityEstimate(
    ...     value=2e-9, lower=1.9e-9, upper=2.1e-9, method="splitting", confidence=0.95
    ... )
    >>> round(found.relative_error, 6)
    0.05
    """

    value: float
    lower: float
    upper: float
    method: Estimator
    confidence: float
    bias_bound: float = 0.0
    samples: int = 0
    work: float = 0.0

    def __post_init__(self) -> None:
        for name in ("value", "lower", "upper"):
            object.__setattr__(self, name, require_probability(**{name: getattr(self, name)}))
        if not self.lower <= self.value <= self.upper:
            raise ValueError(f"value must lie in [{self.lower!r}, {self.upper!r}], got {self.value!r}")
        require_choice(get_args(Estimator), method=self.method)
        require_real(confidence=self.confidence, above=0, below=1)
        require_real(bias_bound=self.bias_bound, work=self.work, at_least=0)
        require_int(samples=self.samples, at_least=0)

    @property
    def relative_error(self) -> float:
        """Half the width of the interval over the value; 0 for a certain 0, infinity for an uncertain one."""
        half = (self.upper - self.lower) / 2
        return half / self.value if self.value > 0 else math.inf if half > 0 else 0.0

    def to_frame(self) -> pd.DataFrame:
        """One row: the table that a notebook shows."""
        import pandas as pd

        names = ("method", "value", "lower", "upper", "relative_error", "bias_bound", "samples", "work")
        return pd.DataFrame({name: [getattr(self, name)] for name in names})

    def _repr_html_(self) -> str:
        """The table of `to_frame`, numbers to six digits."""
        return str(self.to_frame().to_html(index=False, float_format="{:.6g}".format))
