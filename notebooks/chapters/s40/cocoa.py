"""Local dual updates of a linear model between two rounds of communication."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from chapters.s40.least_squares import require_samples
from relparallel._checks import require_choice

Vector = NDArray[np.float64]


class DualRun(NamedTuple):
    """Weights in the end, and values of the primal and of the dual problem after every round."""

    weights: Vector
    primal: Vector
    dual: Vector


def cocoa(
    inputs: ArrayLike,
    targets: ArrayLike,
    workers: int,
    local_steps: int,
    rounds: int,
    rng: np.random.Generator,
    *,
    combine: str = "add",
) -> DualRun:
    """Ridge regression by CoCoA: every worker improves its own dual variables between two rounds.

    Worker k of K has the samples k, k + K, ..., takes ``local_steps`` along single coordinates in a
    round, and sends one vector. Minimised is mean((x w - y)**2)/2 + l |w|**2/2 with l = 0.1;
    ``primal - dual`` after each round bounds the distance to the optimum. ``combine``: changes are
    added ("add"), found with sigma' = K; or averaged ("average"), with sigma' = 1; or added with
    sigma' = 1 ("naive"), which may diverge. Smith et al., JMLR 2018, algorithm 1 and subproblem 10.

    >>> x = np.random.default_rng(0).normal(size=(64, 8))
    >>> run = cocoa(x, x.sum(axis=1), 4, 64, 90, rng=np.random.default_rng(0))
    >>> bool(run.primal[-1] - run.dual[-1] < 1e-6)
    True
    """
    x, y = require_samples(inputs, targets)
    require_choice(("add", "average", "naive"), combine=combine)
    K, scale = workers, 1 / (0.1 * len(x))
    share, safety = (1 / K if combine == "average" else 1.0), (K if combine == "add" else 1.0)
    own = [np.arange(k, len(x), K) for k in range(K)]
    a, values = np.zeros(len(x)), []
    with np.errstate(over="ignore", invalid="ignore"):
        for _ in range(rounds):
            values.append(_values(x, y, a, scale))
            drawn = [rng.choice(part, local_steps) for part in own]
            a = a + share * sum(_local(x, y, a, scale, safety, rows) for rows in drawn)
        values.append(_values(x, y, a, scale))
    primal, dual = np.array(values).T
    return DualRun(scale * x.T @ a, primal, dual)


def _local(
    x: Vector, y: Vector, a: Vector, scale: float, safety: float, rows: NDArray[np.int64]
) -> Vector:
    """Change of a worker's dual variables: exact steps in single coordinates of its subproblem."""
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
