"""Arguments of this package: times and rates in the range where its formulas keep their meaning."""

from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from relparallel._checks import bare, require_real

Real: TypeAlias = float | NDArray[np.float64]
"""What formulas take and return: a float for scalars, else a float64 array of broadcast shape."""

SHORTEST: Final = 1e-9  # s
LONGEST: Final = 1e18  # s, beyond the age of the universe: a slip in the unit, not a time
FASTEST: Final = 1e9  # 1/s
MOST_NODES: Final = 10**6


def require_time(*, positive: bool = False, single: bool = False, **named: Any) -> Any:
    """Return the named times [s]; at least 0, or a nanosecond where zero has no meaning."""
    if single:
        require_single(**named)
    return require_real(at_least=SHORTEST if positive else 0.0, at_most=LONGEST, **named)


def require_rate(**named: Any) -> Any:
    """Return the named rates [1/s], at least 0."""
    return require_real(at_least=0.0, at_most=FASTEST, **named)


def require_single(**named: Any) -> None:
    """Refuse arrays and sequences where a formula takes one number."""
    for name, value in named.items():
        if isinstance(value, (list, tuple)) or (isinstance(value, np.ndarray) and value.ndim):
            raise TypeError(f"{name} must be one number, got {value!r:.80}")


def run_percentiles(
    levels: Any, run: float, mean: float, variance_rate: float, third_rate: float
) -> Real:
    """Return percentiles of a share over a run, nearly normal as the sum of many renewals.

    Wilson and Hilferty's cube for the distribution of its skewness, from the asymptotic variance
    and third cumulant: it agrees with Cornish and Fisher's series in the first order and rises at
    every level. A skewness beyond 2 is taken as 2.
    """
    from scipy.special import ndtri

    levels = require_real(levels=levels, at_least=0.0, at_most=100.0)
    run = require_time(horizon=run, positive=True)
    skewness = third_rate / (variance_rate**1.5 * run**0.5) if variance_rate > 0 else 0.0
    skewness = min(max(skewness, -2.0), 2.0)
    shifted = np.clip(ndtri(np.divide(levels, 100.0)), -1e9, 1e9) - skewness / 6
    deviate = shifted + skewness * shifted**2 / 6 + skewness**2 * shifted**3 / 108
    return bare(np.clip(mean + np.sqrt(variance_rate / run) * deviate, 0.0, 1.0))
