"""Two methods made for linear models: small weights truncated to zero, and local dual updates."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from relparallel._checks import require_choice, require_instance, require_int, require_number, require_rng
from relparallel.communication.descent import Gradient, require_samples

Vector = NDArray[np.float64]


def truncated_gradient(
    gradient: Gradient, rate: float, gravity: float, threshold: float = 1e300, every: int = 1
) -> Gradient:
    """Return a gradient whose updates pull small weights to zero, for `delayed_descent` with a constant rate.

    (w - T1(w - a gradient))/a with the rate a of that descent: at every K-th update weights up to the
    threshold move by a g K towards zero. With K = 1 and no threshold: proximal descent on the loss + g |w|_1.
    Langford et al., JMLR 2009, section 3.3.
    """
    require_instance(Callable, gradient=gradient)
    a = require_number(rate=rate, above=0)
    g, limit = require_number(gravity=gravity, threshold=threshold, at_least=0)
    period, done = require_int(every=every, at_least=1), [0]

    def direction(forward: Vector, backward: Vector) -> Vector:
        moved = forward - a * np.asarray(gradient(forward, backward))
        done[0] += 1
        if done[0] % period == 0:
            shrunk = np.sign(moved) * np.maximum(np.abs(moved) - a * g * period, 0)
            moved = np.where(np.abs(moved) <= limit, shrunk, moved)
        return np.asarray((forward - moved) / a)

    return direction


class DualRun(NamedTuple):
    """Weights in the end, and the values of the primal and of the dual problem after every round."""

    weights: Vector
    primal: Vector
    dual: Vector


def cocoa(
    inputs: ArrayLike, targets: ArrayLike, workers: int, local_steps: int, rounds: int,
    rng: np.random.Generator, *, regularization: float = 0.1, combine: str = "add",
) -> DualRun:  # fmt: skip
    """Train a ridge regression by CoCoA: every worker improves its own dual variables between two rounds.

    Parameters
    ----------
    inputs, targets : array_like
        Shapes (samples, weights) and (samples,); worker k has samples k, k + workers, ...
    workers, local_steps, rounds : int
        K; steps along single coordinates of each in a round; rounds, in which a worker sends one vector.
    rng : numpy.random.Generator
        Draws the coordinates.
    regularization : float
        l > 0 of mean((x w - y)**2)/2 + l |w|**2/2.
    combine : {"add", "average", "naive"}
        Changes are added, found with sigma' = K; or averaged, with sigma' = 1; or added with sigma' = 1,
        which may diverge.

    Returns
    -------
    DualRun
        ``weights``, and ``primal`` and ``dual``, shape (rounds + 1,), whose difference bounds the distance to
        the optimum. Smith et al., JMLR 2018, algorithm 1 and subproblem 10.

    Examples
    --------
    >>> x = np.random.default_rng(0).normal(size=(64, 8))
    >>> run = cocoa(x, x.sum(axis=1), 4, 64, 90, rng=np.random.default_rng(0))
    >>> bool(run.primal[-1] - run.dual[-1] < 1e-6)
    True
    """
    x, y = require_samples(inputs, targets)
    K = require_int(workers=workers, at_least=1, at_most=len(x))
    steps, count = require_int(local_steps=local_steps, rounds=rounds, at_least=1)
    scale = 1 / (require_number(regularization=regularization, above=0) * len(x))
    require_choice(("add", "average", "naive"), combine=combine)
    share, safety = (1 / K if combine == "average" else 1.0), (K if combine == "add" else 1.0)
    draw, own = require_rng(rng=rng), [np.arange(k, len(x), K) for k in range(K)]
    a, values = np.zeros(len(x)), []
    with np.errstate(over="ignore", invalid="ignore"):
        for _ in range(count):
            values.append(_values(x, y, a, scale))
            a = a + share * sum(_local(x, y, a, scale, safety, draw.choice(part, steps)) for part in own)
        values.append(_values(x, y, a, scale))
    primal, dual = np.array(values).T
    return DualRun(scale * x.T @ a, primal, dual)


def _local(x: Vector, y: Vector, a: Vector, scale: float, safety: float, rows: NDArray[np.int64]) -> Vector:
    """Change of a worker's dual variables: exact steps along single coordinates of its subproblem."""
    change, seen = np.zeros_like(a), scale * x.T @ a
    for i in rows:
        step = (y[i] - x[i] @ seen - a[i] - change[i]) / (1 + safety * scale * (x[i] @ x[i]))
        change[i] += step
        seen += safety * scale * step * x[i]
    return change


def _values(x: Vector, y: Vector, a: Vector, scale: float) -> tuple[float, float]:
    """Primal value at the weights that belong to dual variables, and the dual value."""
    w = scale * x.T @ a
    ridge = (w @ w) / (2 * scale * len(x))
    return float(ridge + np.mean((x @ w - y) ** 2) / 2), float(np.mean(a * y - a**2 / 2) - ridge)
