"""Training on problems that need a second, with gradients that come late.

`delayed_descent` goes update by update with weights out of the past; `logistic_problem` and
`network_problem` are two small classification problems, to see a method's cost in accuracy.
Compressors are in `s36`, larger batches in `s38`, asynchronous runs and pipelines in `s40`.
"""

from collections.abc import Callable
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from relparallel._checks import (
    require_instance,
    require_int,
    require_number,
    require_real,
    require_rng,
)

LONGEST_DELAY: Final = 4096  # updates
Gradient: TypeAlias = Callable[[NDArray[np.float64], NDArray[np.float64]], ArrayLike]
Vector = NDArray[np.float64]
Labels = NDArray[np.int64]
Evaluated: TypeAlias = tuple[Callable[[], float], Callable[[], Vector], Callable[[], Labels]]


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
    alike = ((f == f[:, :1]) & (b == b[:, :1])).all(axis=1)  # one row holds all weights read
    for t, (rate, late, later) in enumerate(zip(rates, b, f, strict=True)):
        if alike[t]:
            forward, backward = path[max(t - later[0], 0)].copy(), path[max(t - late[0], 0)].copy()
        else:
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
    return _fitting("rates", given, start, rows=True)


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
    return _fitting(name, given, start, rows=True).astype(np.int64)


def _fitting(
    name: str, values: Any, start: NDArray[np.float64], rows: bool = False
) -> NDArray[np.float64]:
    """One value for every weight, flat; with ``rows`` in every row of the values."""
    given = np.asarray(values, dtype=np.float64)
    many, row = (given.shape[:1], given.shape[1:]) if rows else ((), given.shape)
    try:
        spread = given.reshape((*many, *(1,) * (start.ndim - len(row)), *row))
        return np.broadcast_to(spread, (*many, *start.shape)).reshape((*many, start.size))
    except ValueError:
        raise ValueError(
            f"{name} must fit the shape {start.shape} of start, got shape {row}"
        ) from None


class Problem(NamedTuple):
    """A model with flat weights, and data: the first half for training, the second for the test.

    ``evaluate`` goes from weights, inputs and labels to functions for the mean loss, its gradient
    and the labels given: most callers want one. ``layers`` says where the second and later layers
    start.
    """

    start: Vector
    inputs: Vector
    labels: Labels
    evaluate: Callable[[Vector, Vector, Labels], Evaluated]
    layers: tuple[int, ...] = ()

    def loss(self, weights: Vector) -> float:
        """Mean loss of the training data."""
        half = len(self.labels) // 2
        return self.evaluate(weights, self.inputs[:half], self.labels[:half])[0]()

    def accuracy(self, weights: Vector) -> float:
        """Share of the test data that is given the right label."""
        half = len(self.labels) // 2
        labels = self.labels[half:]
        return float(np.mean(self.evaluate(weights, self.inputs[half:], labels)[2]() == labels))

    def gradient(self, batch: int, rng: np.random.Generator) -> Gradient:
        """Gradient of random batches for `delayed_descent`; it reads the forward weights."""
        half = len(self.labels) // 2

        def gradient(forward: Vector, backward: Vector) -> Vector:
            rows = rng.choice(half, batch, replace=False)
            return self.evaluate(forward, self.inputs[rows], self.labels[rows])[1]()

        return gradient


def logistic_problem(
    samples: int, features: int, rng: np.random.Generator, regularization: float = 1e-3
) -> Problem:
    """Return a logistic regression on two overlapping clouds of points: it has one minimum.

    Parameters
    ----------
    samples, features : int
        Points for training, as many again are for the test, and numbers of each, at least 1.
    rng : numpy.random.Generator
        Draws the points.
    regularization : float
        Factor, at least 0, of (w @ w) / 2 in the loss.

    Returns
    -------
    Problem
        Flat weights to start from, `loss`, `accuracy`, and `gradient` for `delayed_descent`.

    Examples
    --------
    >>> problem = logistic_problem(100, 5, np.random.default_rng(0))
    >>> round(problem.loss(problem.start), 4)  # log 2
    0.6931
    """
    require_int(samples=samples, features=features, at_least=1)
    require_number(regularization=regularization, at_least=0)
    labels = require_rng(rng=rng).integers(0, 2, 2 * samples)
    centre = rng.normal(size=features) / np.sqrt(features)
    inputs = rng.normal(size=(2 * samples, features)) + np.outer(2 * labels - 1, centre)

    def evaluate(w: Vector, x: Vector, y: Labels) -> Evaluated:
        score = x @ w

        def loss() -> float:
            each = np.logaddexp(0, score) - y * score
            return float(np.mean(each) + regularization / 2 * (w @ w))

        def gradient() -> Vector:
            miss = np.exp(-np.logaddexp(0, -score)) - y
            return np.asarray(x.T @ miss / len(y) + regularization * w)

        return loss, gradient, lambda: (score > 0).astype(np.int64)

    return Problem(start=np.zeros(features), inputs=inputs, labels=labels, evaluate=evaluate)


def network_problem(samples: int, hidden: int, rng: np.random.Generator) -> Problem:
    """Return a network with one hidden layer on five arms of a spiral, which no line separates.

    Parameters
    ----------
    samples, hidden : int
        Points for training, as many again are for the test, and hidden units, at least 1.
    rng : numpy.random.Generator
        Draws the points and the weights to start from.

    Returns
    -------
    Problem
        3 hidden + (hidden + 1) 5 flat weights to start from, `loss` (cross entropy of tanh units),
        `accuracy`, and `gradient` for `delayed_descent`.

    Examples
    --------
    >>> network_problem(100, 16, np.random.default_rng(0)).start.size
    133
    """
    require_int(samples=samples, hidden=hidden, at_least=1)
    classes = 5
    labels = require_rng(rng=rng).integers(0, classes, 2 * samples)
    radius = rng.uniform(0.2, 2, labels.size)
    angle = 2 * np.pi * labels / classes + 2 * radius + rng.normal(scale=0.15, size=labels.size)
    inputs = radius[:, None] * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    cut, outer = 3 * hidden, (hidden + 1) * classes
    start = np.concatenate([rng.normal(size=cut), rng.normal(size=outer) / np.sqrt(hidden)])

    right = np.eye(classes)

    def evaluate(w: Vector, x: Vector, y: Labels) -> Evaluated:
        first, second = w[:cut].reshape(3, hidden), w[cut:].reshape(hidden + 1, classes)
        inner = np.tanh(x @ first[:2] + first[2])
        score = inner @ second[:-1] + second[-1]
        log = score - np.logaddexp.reduce(score, axis=1, keepdims=True)

        def gradient() -> Vector:
            miss = (np.exp(log) - right[y]) / len(y)
            back = (miss @ second[:-1].T) * (1 - inner**2)
            parts = (x.T @ back, back.sum(axis=0), inner.T @ miss, miss.sum(axis=0))
            return np.concatenate([part.ravel() for part in parts])

        def loss() -> float:
            return float(-log[np.arange(len(y)), y].mean())

        return loss, gradient, lambda: score.argmax(axis=1)

    return Problem(start=start, inputs=inputs, labels=labels, evaluate=evaluate, layers=(cut,))
