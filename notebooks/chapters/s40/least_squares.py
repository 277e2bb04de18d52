"""A least-squares problem with gradients of known noise."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from chapters.descent import Gradient
from relparallel._checks import require_real


def least_squares_gradient(
    inputs: ArrayLike, targets: ArrayLike, batch: int, rng: np.random.Generator
) -> Gradient:
    """Mini-batch gradient of mean squared error / 2 of a linear model, for `delayed_descent`.

    From forward and backward weights, of which one layer reads the forward ones only; the ``batch``
    samples of an update are drawn without replacement.

    >>> gradient = least_squares_gradient([[1.0], [2.0]], [1.0, 2.0], 2, np.random.default_rng(0))
    >>> gradient(np.array([3.0]), np.array([3.0])).tolist()
    [5.0]
    """
    x, y = require_samples(inputs, targets)

    def gradient(
        forward: NDArray[np.float64], backward: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        rows = rng.choice(len(x), batch, replace=False)
        return np.asarray(x[rows].T @ (x[rows] @ forward - y[rows]) / batch)

    return gradient


def require_samples(
    inputs: ArrayLike, targets: ArrayLike
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Inputs of shape (samples, weights) and targets of shape (samples,), or why they are none."""
    x, y = (np.asarray(values) for values in require_real(inputs=inputs, targets=targets))
    if x.ndim != 2:
        raise ValueError(f"inputs must have shape (samples, weights), got shape {x.shape}")
    if y.shape != x.shape[:1]:
        raise ValueError(f"targets must have shape {x.shape[:1]}, got shape {y.shape}")
    return x, y
