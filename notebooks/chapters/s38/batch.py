"""Larger batches: rate and warm-up, updates layer by layer, how large a batch is still useful."""

from itertools import pairwise
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from chapters.descent import Gradient

Vector = NDArray[np.float64]
_EPSILON: Final = 1e-8  # of Adam


def large_batch_rates(
    batch: int,
    samples: int,
    epochs: int,
    *,
    base_batch: int = 256,
    warm_up: int = 5,
    drops: ArrayLike = (30, 60, 80),
) -> Vector:
    """Learning rate of every update under linear scaling with a gradual warm-up.

    ``epochs * samples // batch`` rates, up to 0.1 * batch/base_batch after ``warm_up`` epochs; from
    each of the epochs ``drops`` on a tenth of it. Goyal et al., 2017, sections 2.1, 2.2 and 5.1.
    """
    base, top = 0.1, 0.1 * batch / base_batch
    epoch = np.arange(epochs * samples // batch) * batch / samples
    rates = base + (top - base) * (np.minimum(epoch / warm_up, 1) if warm_up else 1.0)
    return np.asarray(rates * 0.1 ** (epoch[:, None] >= np.asarray(drops)).sum(axis=1))


class UpdateRule(NamedTuple):
    """How a gradient becomes the direction of an update: momentum, Adam, LARS, LAMB.

    ``momentum`` m in [0, 1) is that of a sum of past directions, or of the mean gradient where
    ``second``, the decay of the mean square of the gradients, is given: the rule is Adam's.
    ``decay`` is the weight decay. With ``trust`` each layer's direction d becomes trust * |w|/|d| *
    d: without ``second`` before the momentum, LARS (You et al., 2017, equation 6: 0.001), with it
    after Adam's quotient, LAMB (You et al., ICLR 2020, algorithm 2: 1).

    >>> steep = UpdateRule(trust=1.0).directed(lambda forward, backward: 1e6 * forward)
    >>> steep(np.array([3.0, 4.0]), np.zeros(2)).tolist()
    [3.0, 4.0]
    """

    momentum: float = 0.0
    second: float | None = None
    decay: float = 0.0
    trust: float | None = None

    def directed(self, gradient: Gradient, layers: tuple[int, ...] = ()) -> Gradient:
        """Rule on a gradient, for `delayed_descent`; layers by where the second and later start."""
        state: dict[str, Any] = {"mean": 0.0, "square": 0.0, "t": 0}

        def summed(forward: Vector, backward: Vector) -> Vector:
            found = np.asarray(gradient(forward, backward), dtype=np.float64)
            step = self._scaled(found + self.decay * forward, found, self.decay, forward, layers)
            state["mean"] = self.momentum * state["mean"] + step
            return np.asarray(state["mean"])

        def divided(forward: Vector, backward: Vector) -> Vector:
            found, state["t"] = (
                np.asarray(gradient(forward, backward), dtype=np.float64),
                state["t"] + 1,
            )
            for name, keep, new in (
                ("mean", self.momentum, found),
                ("square", self.second or 0.0, found**2),
            ):
                state[name] = keep * state[name] + (1 - keep) * new
            size = np.sqrt(state["square"] / (1 - (self.second or 0.0) ** state["t"])) + _EPSILON
            step = state["mean"] / (1 - self.momentum ** state["t"]) / size + self.decay * forward
            return self._scaled(step, step, 0.0, forward, layers)

        return summed if self.second is None else divided

    def _scaled(
        self, step: Vector, found: Vector, decay: float, weights: Vector, layers: tuple[int, ...]
    ) -> Vector:
        """Each layer of the step times trust |w|/(|found| + decay |w|); as it is where one is 0."""
        if self.trust is None:
            return step
        scaled = step.copy()
        for first, last in pairwise([0, *layers, weights.size]):
            size, over = (np.linalg.norm(values[first:last]) for values in (weights, found))
            if size > 0 and over > 0:
                scaled[first:last] *= self.trust * size / (over + decay * size)
        return scaled


def noise_scale(
    small: float, large: float, small_norms: ArrayLike, large_norms: ArrayLike
) -> float:
    """Gradient noise scale tr(Sigma)/|G|**2 [samples], the critical batch, from two batch sizes.

    ``small_norms`` and ``large_norms`` are squared norms of gradients of batches of ``small`` and
    of ``large`` samples; their means count. Both parts are estimated without bias from E |G_B|**2 =
    |G|**2 + tr(Sigma)/B. With a batch of B training takes 1 + noise/B times the fewest updates and
    1 + B/noise times the fewest samples (`relparallel.training.statistical_efficiency`). McCandlish
    et al., 2018, appendix A.1.

    >>> round(noise_scale(1, 10, [3.0], [1.2]), 9)  # |G|**2 = 1, tr(Sigma) = 2
    2.0
    """
    b, B, few, many = small, large, np.asarray(small_norms).mean(), np.asarray(large_norms).mean()
    squared, trace = (B * many - b * few) / (B - b), (few - many) / (1 / b - 1 / B)
    if squared <= 0:
        raise ValueError(
            f"large_norms must exceed small_norms * small/large on average, got {many:g}"
        )
    if trace < 0:
        raise ValueError(
            f"large_norms must be at most small_norms = {few:g} on average, got {many:g}"
        )
    return float(trace / squared)
