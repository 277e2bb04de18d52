"""A chance is a pair (up, down) that adds up to one, each entry with its own correct digits.

Combining pairs by products and sums, never by 1 - x, keeps a down-probability of 1e-300 as accurate as the
up-probability beside it. The arithmetic is generic: floats or `fractions.Fraction`.
"""

from typing import Any, Final

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
