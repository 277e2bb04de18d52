"""The slowest of many: mean and spread of the largest of independent draws."""

import math
from collections.abc import Callable
from typing import Any, Final, NamedTuple

import numpy as np
import scipy
from scipy.special import log1p, ndtri


class Law(NamedTuple):
    """What is asked of a continuous law, under the names of scipy.stats, which loads slowly."""

    ppf: Callable[[float], Any]  # quantile
    isf: Callable[[float], Any]  # quantile of 1 - q
    mean: Callable[[], float]
    std: Callable[[], float]


LAWS: Final = {
    "normal": Law(ndtri, lambda q: -ndtri(q), lambda: 0.0, lambda: 1.0),
    "exponential": Law(lambda q: -log1p(-q), lambda q: -np.log(q), lambda: 1.0, lambda: 1.0),
}
"""Laws by name: standard normal; exponential of mean 1."""
NORMAL: Final = 1.6448536269514722  # standard deviations on either side of a 90 % interval
_MOST_ATOMS: Final = 10**6  # of a discrete law


def expected_maximum(count: int, law: Any = "normal") -> float:
    """Mean largest of n independent draws (David, Nagaraja, "Order statistics", 2003, section 3.1).

    E = int Q(e^{-e^{-g}/n}) e^{-g - e^{-g}} dg over all g, Q being the quantile: the uniform level
    of the largest is the n-th root of one uniform level, here that of a Gumbel variable, which is
    smooth for any continuous law. Adaptive quadrature, absolute error about 1e-9; for discrete
    scipy.stats laws the sum over their atoms. sqrt(2 ln n) is 11 to 43 % too large for n = 16,384
    to 8; an exponential distribution has the harmonic number H_n.
    """
    return _moment(count, law_of(law), 1)


def largest(n: int, law: Any) -> tuple[float, float]:
    """Mean and standard deviation of the largest of n draws of a standardised distribution."""
    mean, scale = float(law.mean()), float(law.std())
    if not 0 < scale < math.inf:
        raise ValueError(f"law must have a finite standard deviation, got {scale}")
    first = _moment(n, law, 1)
    variance = max(_moment(n, law, 2) - first**2, 0.0)
    return (first - mean) / scale, math.sqrt(variance) / scale


def law_of(law: Any) -> Any:
    """A distribution by name, or as given."""
    if isinstance(law, str) and law in LAWS:
        return LAWS[law]
    if not math.isfinite(law.mean()):
        raise ValueError(f"law must have a finite mean, got {law!r}")
    return law


def _moment(n: int, law: Any, power: int) -> float:
    """Power of the largest of n draws, expected."""
    if callable(getattr(law, "pmf", None)):
        atoms = _atoms(n, law)
        larger = np.minimum(np.cumsum(law.pmf(atoms)[:0:-1])[::-1], 1.0)
        with np.errstate(divide="ignore"):
            above = -np.expm1(n * np.log1p(-larger))
        return float(atoms[0] ** power + np.diff(atoms**power) @ above)

    def weighted(g: float) -> float:
        tail = math.exp(-g)
        x = law.isf(-math.expm1(-tail / n)) if tail < n else law.ppf(math.exp(-tail / n))
        return float(x**power * math.exp(-g - tail))

    pieces = [(-6.0, 0.0), (0.0, 4.0), (4.0, 16.0), (16.0, 120.0), (120.0, 600.0)]
    return math.fsum(
        scipy.integrate.quad(weighted, low, high, epsabs=1e-11, limit=200)[0]
        for low, high in pieces
    )


def _atoms(n: int, law: Any) -> Any:
    """Values of a discrete law, without tails that no moment of the largest of n draws notices."""
    listed = getattr(getattr(law, "dist", law), "pk", None)
    if listed is not None:
        return np.unique(law.ppf(np.cumsum(listed) - np.asarray(listed) / 2))
    middle, spread, (least, most) = law.ppf(0.5), max(float(law.std()), 1.0), law.support()
    for wide in 2.0 ** np.arange(24):
        low = max(middle - np.ceil(wide * spread), least)
        high = min(middle + np.ceil(wide * spread), most)
        if high - low > _MOST_ATOMS:
            break
        beyond = max(law.pmf(low - 1), law.pmf(high + 1)) * wide * spread
        if n * wide**2 * beyond < 1e-17 and law.cdf(low - 1) + law.sf(high) < 1e-12:
            return np.arange(low, high + 1)
    raise ValueError(f"law must have at most {_MOST_ATOMS:,} atoms that count, got {law!r}")
