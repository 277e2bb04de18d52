"""Power series in one variable, cut off after the square: the first two moments of a time.

A series stands for E[e^{-sT}; event] = c0 + c1 s + c2 s^2, the Laplace transform of a time on an event. Sums
of events add, times that follow each other multiply, and loops are geometric series; so the transform of a
nested process is written down as for probabilities, and its moments are read off at the end.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from relparallel.training._arguments import Real

__all__ = ["ONE", "ZERO", "Series", "geometric", "passed", "struck"]


@dataclass(frozen=True, slots=True)
class Series:
    """c0 + c1 s + c2 s^2; the coefficients may be arrays."""

    c0: Real
    c1: Real
    c2: Real

    def __add__(self, other: Series) -> Series:
        return Series(self.c0 + other.c0, self.c1 + other.c1, self.c2 + other.c2)

    def __sub__(self, other: Series) -> Series:
        return Series(self.c0 - other.c0, self.c1 - other.c1, self.c2 - other.c2)

    def __mul__(self, other: Series) -> Series:
        return Series(
            self.c0 * other.c0,
            self.c0 * other.c1 + self.c1 * other.c0,
            self.c0 * other.c2 + self.c1 * other.c1 + self.c2 * other.c0,
        )

    def __truediv__(self, other: Series) -> Series:
        c0 = self.c0 / other.c0
        c1 = (self.c1 - c0 * other.c1) / other.c0
        return Series(c0, c1, (self.c2 - c0 * other.c2 - c1 * other.c1) / other.c0)

    def starting(self, c0: Real) -> Series:
        """The series with its first coefficient from elsewhere, known to more digits."""
        return Series(c0, self.c1, self.c2)


ZERO = Series(0.0, 0.0, 0.0)
ONE = Series(1.0, 0.0, 0.0)


def passed(time: Real) -> Series:
    """A time without failure; failures have rate 1."""
    alive = np.exp(-time)
    return Series(alive, -time * alive, time**2 * alive / 2)


def struck(time: Real) -> Series:
    """The time to the failure, on the event that it strikes within ``time``: (1 - e^{-(1+s)t})/(1 + s)."""
    alive = passed(time)
    whole = Series(-np.expm1(-time), -alive.c1, -alive.c2)
    return Series(whole.c0, whole.c1 - whole.c0, whole.c2 - whole.c1 + whole.c0)


def geometric(ratio: Series, terms: int) -> tuple[Series, Series]:
    """Sum of ratio^r over r < terms, and ratio^terms; by doubling, O(log terms), sound at ratio 1."""
    total, power = ZERO, ONE
    for bit in format(terms, "b"):
        total, power = total + power * total, power * power
        if bit == "1":
            total, power = total + power, power * ratio
    return total, power
