"""Power series in one variable, cut off after the cube: the first three moments of a time.

A series (c0, c1, c2, c3) stands for E[e^{-sT}; event] = c0 + c1 s + c2 s^2 + c3 s^3, the Laplace transform
of a time on an event. Sums of events add, times that follow each other multiply, and loops are geometric
series; so the transform of a nested process is written down as for probabilities, and its moments are read
off at the end. Compiled: a plan of checkpoints is evaluated at hundreds of intervals.
"""

from typing import Any

import numba
import numpy as np

njit = numba.njit(cache=True, error_model="numpy")
Series = tuple[float, float, float, float]


@njit  # type: ignore[misc]
def added(a: Series, b: Series) -> Series:
    """One event or the other."""
    return a[0] + b[0], a[1] + b[1], a[2] + b[2], a[3] + b[3]


@njit  # type: ignore[misc]
def chained(a: Series, b: Series) -> Series:
    """One time after the other."""
    return (
        a[0] * b[0],
        a[0] * b[1] + a[1] * b[0],
        a[0] * b[2] + a[1] * b[1] + a[2] * b[0],
        a[0] * b[3] + a[1] * b[2] + a[2] * b[1] + a[3] * b[0],
    )


@njit  # type: ignore[misc]
def looped(start: Series, turn: Series, out: float) -> Series:
    """Start / (1 - turn): any number of turns first; 1 - turn begins with ``out``, known to more digits."""
    c0 = start[0] / out
    c1 = (start[1] + c0 * turn[1]) / out
    c2 = (start[2] + c0 * turn[2] + c1 * turn[1]) / out
    return c0, c1, c2, (start[3] + c0 * turn[3] + c1 * turn[2] + c2 * turn[1]) / out


@njit  # type: ignore[misc]
def passed(time: float) -> Series:
    """A time without failure; failures have rate 1."""
    alive = np.exp(-time)
    return alive, -time * alive, time * time * alive / 2, -time * time * time * alive / 6


@njit  # type: ignore[misc]
def struck(time: float) -> Series:
    """The time to the failure, on the event that it strikes within ``time``: (1 - e^{-(1+s)t})/(1 + s)."""
    alive = passed(time)
    c0 = -np.expm1(-time)
    c1 = -alive[1] - c0
    c2 = -alive[2] - c1
    return c0, c1, c2, -alive[3] - c2


@njit  # type: ignore[misc]
def geometric(ratio: Series, terms: int) -> tuple[Any, Any]:
    """Sum of ratio^r over r < terms, and ratio^terms; by doubling, O(log terms), sound at ratio 1."""
    total, power = (0.0, 0.0, 0.0, 0.0), (1.0, 0.0, 0.0, 0.0)
    bit = 1
    while bit <= terms // 2:
        bit *= 2
    while bit:
        total, power = added(total, chained(power, total)), chained(power, power)
        if terms & bit:
            total, power = added(total, power), chained(power, ratio)
        bit //= 2
    return total, power
