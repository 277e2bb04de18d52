"""Two small classification problems that train in a second, to see a method's cost in accuracy."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from relparallel._checks import require_int, require_number, require_rng
from relparallel.communication.descent import Gradient

Vector = NDArray[np.float64]
Labels = NDArray[np.int64]


class Problem(NamedTuple):
    """A model with flat weights, and data: the first half for training, the second for the test.

    ``evaluate`` goes from weights, inputs and labels to the mean loss, its gradient and the labels
    given; ``layers`` says where the second and later layers start.
    """

    start: Vector
    inputs: Vector
    labels: Labels
    evaluate: Callable[[Vector, Vector, Labels], tuple[float, Vector, Labels]]
    layers: tuple[int, ...] = ()

    def loss(self, weights: Vector) -> float:
        """Mean loss of the training data."""
        half = len(self.labels) // 2
        return self.evaluate(weights, self.inputs[:half], self.labels[:half])[0]

    def accuracy(self, weights: Vector) -> float:
        """Share of the test data that is given the right label."""
        half = len(self.labels) // 2
        labels = self.labels[half:]
        return float(np.mean(self.evaluate(weights, self.inputs[half:], labels)[2] == labels))

    def gradient(self, batch: int, rng: np.random.Generator) -> Gradient:
        """Gradient of random batches for `delayed_descent`; it reads the forward weights."""
        half = len(self.labels) // 2

        def gradient(forward: Vector, backward: Vector) -> Vector:
            rows = rng.choice(half, batch, replace=False)
            return self.evaluate(forward, self.inputs[rows], self.labels[rows])[1]

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

    def evaluate(w: Vector, x: Vector, y: Labels) -> tuple[float, Vector, Labels]:
        score = x @ w
        loss = np.mean(np.logaddexp(0, score) - y * score) + regularization / 2 * (w @ w)
        miss = np.exp(-np.logaddexp(0, -score)) - y
        return float(loss), x.T @ miss / len(y) + regularization * w, (score > 0).astype(np.int64)

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

    def evaluate(w: Vector, x: Vector, y: Labels) -> tuple[float, Vector, Labels]:
        first, second = w[:cut].reshape(3, hidden), w[cut:].reshape(hidden + 1, classes)
        inner = np.tanh(x @ first[:2] + first[2])
        score = inner @ second[:-1] + second[-1]
        log = score - np.logaddexp.reduce(score, axis=1, keepdims=True)
        miss = (np.exp(log) - np.eye(classes)[y]) / len(y)
        back = (miss @ second[:-1].T) * (1 - inner**2)
        parts = (x.T @ back, back.sum(axis=0), inner.T @ miss, miss.sum(axis=0))
        loss = float(-log[np.arange(len(y)), y].mean())
        return loss, np.concatenate([part.ravel() for part in parts]), score.argmax(axis=1)

    return Problem(start=start, inputs=inputs, labels=labels, evaluate=evaluate, layers=(cut,))
