"""Arguments of this package: times and rates inside the range where its formulas keep their meaning."""

from __future__ import annotations

from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from relparallel._checks import require_real

__all__ = [
    "MOST_NODES",
    "Real",
    "normal_percentiles",
    "plain",
    "require_rate",
    "require_time",
    "require_together",
]

Real: TypeAlias = float | NDArray[np.float64]
"""What the formulas take and return: a float for scalars, else a float64 array of the broadcast shape."""

SHORTEST: Final = 1e-9  # s
LONGEST: Final = 1e18  # s, beyond the age of the universe: a slip in the unit, not a time
FASTEST: Final = 1e9  # 1/s
MOST_NODES: Final = 10**6


def require_time(*, positive: bool = False, **named: Any) -> Any:
    """Return the named times [s]; at least 0, or at least a nanosecond where zero has no meaning."""
    return require_real(at_least=SHORTEST if positive else 0.0, at_most=LONGEST, **named)


def require_rate(**named: Any) -> Any:
    """Return the named rates [1/s], at least 0."""
    return require_real(at_least=0.0, at_most=FASTEST, **named)


def plain(result: Any) -> Real:
    """Return a scalar result as a Python float and an array unchanged."""
    return float(result) if np.ndim(result) == 0 else np.asarray(result, dtype=np.float64)


def require_together(**named: Any) -> None:
    """Refuse arrays whose shapes do not broadcast against each other."""
    shapes = {name: np.shape(value) for name, value in named.items()}
    try:
        np.broadcast_shapes(*shapes.values())
    except ValueError:
        given = ", ".join(f"{name} {shape}" for name, shape in shapes.items() if shape)
        raise ValueError(f"{', '.join(shapes)} must have shapes that broadcast, got {given}") from None


def normal_percentiles(mean: float, std: float, levels: Any) -> Real:
    """Return percentiles of a share that is nearly normal: that is what many renewals add up to."""
    levels = require_real(levels=levels, above=0.0, below=100.0)
    return plain(np.clip(mean + std * ndtri(np.divide(levels, 100.0)), 0.0, 1.0))
