"""Moments of samples that arrive one by one, inside kernels, without a difference of large numbers."""

from __future__ import annotations

import numba


@numba.njit(cache=True)
def with_sample(mean, square, cube, before, value):  # type: ignore[no-untyped-def]
    """Mean and sums of squared and cubed deviations from it, with one sample more.

    References
    ----------
    Terriberry, "Computing higher-order moments online", 2007; Pebay, Sandia report SAND2008-6212.
    """
    after = before + 1
    change = value - mean
    step = change / after
    term = change * step * before
    cube += term * step * (before - 1) - 3.0 * step * square
    return mean + step, square + term, cube
