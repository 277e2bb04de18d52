"""Descent whose gradients come late, simulated update by update with weights out of the past."""

from collections.abc import Callable
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from relparallel._checks import (
    require_instance,
    require_real,
)

LONGEST_DELAY: Final = 4096  # updates
Gradient: TypeAlias = Callable[[NDArray[np.float64], NDArray[np.float64]], ArrayLike]


def delayed_descent(
    gradient: Gradient,
    start: ArrayLike,
    rates: ArrayLike,
    forward_delay: ArrayLike,
    backward_delay: ArrayLike = 0,
    *,
    decay: ArrayLike | None = None,
) -> NDArray[np.float64]:
    """Return the weights of a training run whose gradients are computed with old weights.

    Parameters
    ----------
    gradient : callable
        From the forward and the backward weights to the gradient, all of the shape of ``start``; it
        is called once for every update and may draw its own noise.
    start : array_like
        Weights before the first update, which passes from before it read too.
    rates : array_like
        Learning rates at least 0, shape (updates,), or (updates, ...) with rows that fit ``start``.
    forward_delay, backward_delay : array_like
        Whole updates, 0 ... 4096, one for all weights or one for each; the first is not the smaller
        one. With one dimension more than ``start``: a row for every update, as runs of
        unequal workers have them.
    decay : array_like, optional
        With it the backward weights are corrected by the average change, as in `delayed_taps`; in
        [0, 1).

    Returns
    -------
    numpy.ndarray
        float64, shape (updates + 1, ...): w(t+1) = w(t) - rate(t) gradient(w(t-f), u(t)), with u(t)
        and v(t) of `delayed_taps`. What diverges for long ends in infinite values or NaN. Yang et
        al., "PipeMare", MLSys 2021.

    Examples
    --------
    >>> path = delayed_descent(lambda w, u: w, 1.0, np.full(2000, 0.99), forward_delay=1)
    >>> bool(np.abs(path[-100:]).max() < 1)  # steps of 1 and more diverge
    True
    """
    require_instance(Callable, gradient=gradient)
    first = np.asarray(require_real(start=start))
    steps = _rows(rates, first)
    f = _lags("forward_delay", forward_delay, first, len(steps))
    b = _lags("backward_delay", backward_delay, first, len(steps))
    if np.any(f < b):
        raise ValueError(f"forward_delay must be at least backward_delay, got {forward_delay!r}")
    keep = (
        None
        if decay is None
        else _fitting("decay", require_real(decay=decay, at_least=0, below=1), first)
    )
    with np.errstate(over="ignore", invalid="ignore"):
        return _descend(gradient, first, steps, f, b, keep)


def _descend(
    gradient: Gradient,
    start: NDArray[np.float64],
    rates: NDArray[np.float64],
    f: NDArray[np.int64],
    b: NDArray[np.int64],
    keep: NDArray[np.float64] | None,
) -> NDArray[np.float64]:
    """The loop of `delayed_descent`: weights lie flat in the rows of the path."""
    path = np.empty((len(rates) + 1, start.size))
    path[0], every, drift = start.ravel(), np.arange(start.size), np.zeros(start.size)
    for t, (rate, late, later) in enumerate(zip(rates, b, f, strict=True)):
        forward, backward = (
            path[np.maximum(t - later, 0), every],
            path[np.maximum(t - late, 0), every],
        )
        if keep is not None:
            backward = backward - (later - late) * drift
        found = np.asarray(gradient(forward.reshape(start.shape), backward.reshape(start.shape)))
        if found.shape != start.shape:
            raise ValueError(f"gradient must return shape {start.shape}, got shape {found.shape}")
        change = -rate * found.ravel()
        path[t + 1] = path[t] + change
        drift = change if keep is None else keep * drift + (1 - keep) * change
    return path.reshape(-1, *start.shape)


def _rows(rates: ArrayLike, start: NDArray[np.float64]) -> NDArray[np.float64]:
    """The rate of every update, flat for every weight."""
    given = np.asarray(require_real(rates=rates, at_least=0))
    if given.ndim == 0:
        raise ValueError(f"rates must have one row for each update, got {rates!r}")
    return np.array([_fitting("rates", row, start) for row in given])


def _lags(name: str, delay: Any, start: NDArray[np.float64], updates: int) -> NDArray[np.int64]:
    """Whole delays, flat for every weight, in a row for every update."""
    given = np.asarray(require_real(at_least=0, at_most=LONGEST_DELAY, **{name: delay}))
    if np.any(given != np.floor(given)):
        raise ValueError(f"{name} must be whole updates, got {delay!r}")
    if given.ndim <= start.ndim:
        row = _fitting(name, given, start).astype(np.int64)
        return np.broadcast_to(row, (updates, row.size))
    if len(given) != updates:
        raise ValueError(
            f"{name} must have one row for each of {updates} updates, got {len(given)}"
        )
    return np.array([_fitting(name, row, start) for row in given]).astype(np.int64)


def _fitting(name: str, values: Any, start: NDArray[np.float64]) -> NDArray[np.float64]:
    """One value for every weight, flat."""
    try:
        return np.broadcast_to(np.asarray(values, dtype=np.float64), start.shape).ravel()
    except ValueError:
        raise ValueError(
            f"{name} must fit the shape {start.shape} of start, got shape {np.shape(values)}"
        ) from None
