"""Moments of samples, the intervals made of them, and the estimate that is handed out."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numba
import pandas as pd
import scipy

from relparallel._checks import Result
from relparallel.metrics.estimate import binomial_estimate

Estimator = Literal["auto", "crude", "permutation", "karp_luby"]
_FEW = 10  # failures below which Wilson's interval is too short for some unreliabilities


class Moments(NamedTuple):
    """Number of samples, mean, sums of squared and cubed deviations from it, elementary steps."""

    samples: int
    mean: float
    square: float
    cube: float
    work: int

    @property
    def variance(self) -> float:
        """Unbiased; 0 for one sample."""
        return self.square / max(self.samples - 1, 1)

    @property
    def skewness(self) -> float:
        """Third central moment over the cube of the standard deviation; 0 for equal samples."""
        scale = math.sqrt(self.square / max(self.samples, 1)) ** 3
        return self.cube / self.samples / scale if scale > 0.0 else 0.0

    def joined(self, other: Moments) -> Moments:
        """Moments of both samples together, after Chan, Golub and LeVeque, and Pebay."""
        n, m = self.samples, other.samples
        apart, both = other.mean - self.mean, n + m
        bend = apart * apart * n * m / both
        return Moments(
            both,
            self.mean + apart * m / both,
            self.square + other.square + bend,
            self.cube
            + other.cube
            + bend * apart * (n - m) / both
            + 3 * apart * (n * other.square - m * self.square) / both,
            self.work + other.work,
        )


@numba.njit(cache=True)
def with_sample(mean, square, cube, before, value):  # type: ignore[no-untyped-def]
    """Mean and sums of squared and cubed deviations with one sample more (Pebay, SAND2008-6212)."""
    after = before + 1
    change = value - mean
    step = change / after
    term = change * step * before
    cube += term * step * (before - 1) - 3.0 * step * square
    return mean + step, square + term, cube


def mean_interval(moments: Moments, confidence: float) -> tuple[float, float, float, float]:
    """Mean of the samples, its interval, and by how much it was widened for values never drawn.

    Notes
    -----
    Student's interval after Hall's transformation: with T = (mean - U) / s and the skewness g of
    the samples, T + g T**2 / 3 + g**2 T**3 / 27 + g / (6 n) is symmetric but for terms of order 1 /
    n, and monotone in T. A few large samples hold much of the mean of a rare event, which Student's
    interval alone misses upwards.

    Values that together have a chance above -ln(1 - confidence) / n are drawn at least once with
    the stated confidence. Rarer ones are taken to add at most that share of the mean. This matters
    where the samples are nearly equal, and only there. Where all samples are 0, the upper end is
    that of Clopper and Pearson for one side: no sample exceeds 1.
    """
    n, mean = moments.samples, moments.mean
    if mean == 0.0:
        return 0.0, 0.0, float(-math.expm1(math.log1p(-confidence) / n)), 0.0
    reach = float(scipy.special.stdtrit(n - 1, (1 + confidence) / 2)) / math.sqrt(n)
    skewness, deviation = moments.skewness, math.sqrt(moments.variance)
    lower = mean - deviation * max(_before_transformation(reach, skewness, n), 0.0)
    upper = mean - deviation * min(_before_transformation(-reach, skewness, n), 0.0)
    unseen = -math.log1p(-confidence) / n
    least, most = mean * math.exp(-unseen), mean * math.exp(unseen)
    return mean, max(min(lower, least), 0.0), min(max(upper, most), 1.0), max(most - upper, 0.0)


def _before_transformation(value: float, skewness: float, n: int) -> float:
    """The T of which Hall's transformation is ``value``."""
    if abs(skewness) < 1e-9:
        return value
    return 3 * (math.cbrt(1 + skewness * (value - skewness / (6 * n))) - 1) / skewness


def share_interval(moments: Moments, confidence: float) -> tuple[float, float, float, float]:
    """Share of failures with Wilson's interval; that of Clopper and Pearson for few."""
    n, mean = moments.samples, moments.mean
    failures = round(mean * n)
    if min(failures, n - failures) < _FEW:
        exact = binomial_estimate(failures, n, confidence)
        return mean, min(exact.lower, mean), max(exact.upper, mean), 0.0
    z = float(scipy.special.ndtri((1 + confidence) / 2))
    middle = (mean + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * math.sqrt(mean * (1 - mean) / n + (z / (2 * n)) ** 2)
    return mean, middle - half, middle + half, 0.0


@dataclass(frozen=True, kw_only=True, slots=True)
class UnreliabilityEstimate(Result):
    """An estimate of the unreliability with the interval that holds it with the confidence stated.

    ``bias_bound`` is what the interval was widened by for what samples cannot show: cuts left out
    ("karp_luby"), or values too rare to be drawn; ``work`` counts elementary steps, pilot runs
    included.
    """

    value: float
    lower: float
    upper: float
    method: str
    confidence: float
    bias_bound: float = 0.0
    samples: int = 0
    work: float = 0.0

    @property
    def relative_error(self) -> float:
        """Half the interval's width over the value; 0 for a certain 0, infinity if not certain."""
        half = (self.upper - self.lower) / 2
        return half / self.value if self.value > 0 else math.inf if half > 0 else 0.0

    def to_frame(self) -> pd.DataFrame:
        """One row: the table that a notebook shows."""
        names = (
            "method",
            "value",
            "lower",
            "upper",
            "relative_error",
            "bias_bound",
            "samples",
            "work",
        )
        return pd.DataFrame({name: [getattr(self, name)] for name in names})
