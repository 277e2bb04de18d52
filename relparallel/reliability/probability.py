"""A chance is a pair (up, down) that adds up to one, each entry with its own correct digits.

Combining pairs by products and sums, never by 1 - x, keeps a down-probability of 1e-300 as accurate
as the up-probability beside it. The arithmetic is generic: floats or `fractions.Fraction`.
"""

from typing import Any, Final

import numpy as np

from relparallel._checks import require_probability

Chance = tuple[Any, Any]  # (up, down) of one independent part

CERTAIN: Final[Chance] = (1, 0)


def part(up: float) -> Chance:
    """Chance of a part that is up with this probability; 1 - up is exact for up >= 1/2."""
    return up, 1.0 - up


def series(*parts: Chance) -> Chance:
    """Chance that all parts are up."""
    up, down = CERTAIN
    for p, q in parts:
        up, down = up * p, down + up * q
    return up, down


def parallel(*parts: Chance) -> Chance:
    """Chance that at least one part is up."""
    down, up = series(*((q, p) for p, q in parts))
    return up, down


def single_probabilities(**named: Any) -> tuple[float, ...]:
    """The named arguments, each of them one probability."""
    for name, value in named.items():
        if np.ndim(require_probability(**{name: value})):
            raise TypeError(
                f"{name} must be one probability, got an array of shape {np.shape(value)}"
            )
    return tuple(map(float, named.values()))
