"""A least-squares problem with gradients of known noise."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from relparallel._checks import (
    require_int,
    require_rng,
)
from relparallel.communication.descent import Gradient, require_samples


def least_squares_gradient(
    inputs: ArrayLike, targets: ArrayLike, batch: int, rng: np.random.Generator
) -> Gradient:
    """Return the mini-batch gradient of mean squared error / 2 of a linear model, for `delayed_descent`.

    Parameters
    ----------
    inputs, targets : array_like
        Shapes (samples, weights) and (samples,).
    batch, rng : int, numpy.random.Generator
        Samples of an update, drawn without replacement, and what draws them.

    Returns
    -------
    callable
        From forward and backward weights to the gradient; one layer reads the forward weights only.

    Examples
    --------
    >>> gradient = least_squares_gradient([[1.0], [2.0]], [1.0, 2.0], 2, np.random.default_rng(0))
    >>> gradient(np.array([3.0]), np.array([3.0])).tolist()
    [5.0]
    """
    x, y = require_samples(inputs, targets)
    size = require_int(batch=batch, at_least=1, at_most=len(x))
    require_rng(rng=rng)

    def gradient(forward: NDArray[np.float64], backward: NDArray[np.float64]) -> NDArray[np.float64]:
        rows = rng.choice(len(x), size, replace=False)
        return np.asarray(x[rows].T @ (x[rows] @ forward - y[rows]) / size)

    return gradient
