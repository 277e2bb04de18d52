"""Moments of samples that arrive one by one, inside kernels, without a difference of large numbers."""

from __future__ import annotations

import numba

__all__ = ["with_sample"]


@numba.njit(cache=True)
def with_sample(mean, square, cube, before, value):  # type: ignore[no-untyped-def]
    """Mean and sums of squared and cubed deviations from it, with one sample more.

    Parameters
    ----------
    mean, square, cube : float
        Those of the samples so far.
    before : int
        How many there were.
    value : float
        The new one.

    Returns
    -------
    tuple of float
        The three with it.

    References
    ----------
    Terriberry, "Computing higher-order moments online", 2007; Pebay, Sandia report SAND2008-6212.

    Examples
    --------
    >>> with_sample(1.0, 0.0, 0.0, 1, 3.0)
    (2.0, 2.0, 0.0)
    """
    after = before + 1
    change = value - mean
    step = change / after
    term = change * step * before
    cube += term * step * (before - 1) - 3.0 * step * square
    return mean + step, square + term, cube
