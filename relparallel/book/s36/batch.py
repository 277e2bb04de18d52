"""Larger batches: the rate and its warm-up, updates layer by layer, and how large a batch is still useful."""

from collections.abc import Callable
from itertools import pairwise
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from relparallel._checks import real, record, require_instance, require_int, require_number, require_real
from relparallel.communication.descent import Gradient

Vector = NDArray[np.float64]
_EPSILON: Final = 1e-8  # of Adam


def large_batch_rates(
    batch: int, samples: int, epochs: int, *, base_rate: float = 0.1, base_batch: int = 256,
    warm_up: int = 5, drops: ArrayLike = (30, 60, 80),
) -> Vector:  # fmt: skip
    """Learning rate of every update under linear scaling with a gradual warm-up.

    ``epochs * samples // batch`` rates, up to base_rate * batch/base_batch after ``warm_up`` epochs; from
    each of the epochs ``drops`` on a tenth of it. Goyal et al., 2017, sections 2.1, 2.2 and 5.1.
    """
    size, data, rounds = require_int(batch=batch, samples=samples, epochs=epochs, at_least=1)
    base, rise = require_number(base_rate=base_rate, above=0), require_int(warm_up=warm_up, at_least=0)
    top = base * size / require_int(base_batch=base_batch, at_least=1)
    falls = np.atleast_1d(require_real(drops=drops, at_least=0))
    epoch = np.arange(rounds * data // size) * size / data
    rates = base + (top - base) * (np.minimum(epoch / rise, 1) if rise else 1.0)
    return np.asarray(rates * 0.1 ** (epoch[:, None] >= falls.ravel()).sum(axis=1))


@record
class UpdateRule:
    """How a gradient becomes the direction of an update: momentum, Adam, LARS, LAMB.

    Parameters
    ----------
    momentum : float
        m in [0, 1), of a sum of past directions; of the mean gradient where ``second`` is given.
    second : float or None
        Decay of the mean square of the gradients, in [0, 1): the rule is Adam's.
    decay : float
        Weight decay, at least 0.
    trust : float or None
        With it each layer's direction d becomes trust * |w|/|d| * d. Without ``second``, before the momentum:
        LARS (You et al., 2017, equation 6: 0.001). With it, after Adam's quotient: LAMB (You et al., ICLR
        2020, algorithm 2: 1).

    Examples
    --------
    >>> steep = UpdateRule(trust=1.0).directed(lambda forward, backward: 1e6 * forward)
    >>> steep(np.array([3.0, 4.0]), np.zeros(2)).tolist()
    [3.0, 4.0]
    """

    momentum: float = real(default=0.0, at_least=0, below=1)
    second: float | None = real(default=None, at_least=0, below=1)
    decay: float = real(default=0.0, at_least=0)
    trust: float | None = real(default=None, above=0)

    def directed(self, gradient: Gradient, layers: tuple[int, ...] = ()) -> Gradient:
        """The rule on a gradient, for `delayed_descent`; layers by where the second and later ones start."""
        require_instance(Callable, gradient=gradient)
        state: dict[str, Any] = {"mean": 0.0, "square": 0.0, "t": 0}

        def summed(forward: Vector, backward: Vector) -> Vector:
            found = np.asarray(gradient(forward, backward), dtype=np.float64)
            step = self._scaled(found + self.decay * forward, found, self.decay, forward, layers)
            state["mean"] = self.momentum * state["mean"] + step
            return np.asarray(state["mean"])

        def divided(forward: Vector, backward: Vector) -> Vector:
            found, state["t"] = np.asarray(gradient(forward, backward), dtype=np.float64), state["t"] + 1
            for name, keep, new in (("mean", self.momentum, found), ("square", self.second or 0.0, found**2)):
                state[name] = keep * state[name] + (1 - keep) * new
            size = np.sqrt(state["square"] / (1 - (self.second or 0.0) ** state["t"])) + _EPSILON
            step = state["mean"] / (1 - self.momentum ** state["t"]) / size + self.decay * forward
            return self._scaled(step, step, 0.0, forward, layers)

        return summed if self.second is None else divided

    def _scaled(
        self, step: Vector, found: Vector, decay: float, weights: Vector, layers: tuple[int, ...]
    ) -> Vector:
        """Each layer of the step times trust |w|/(|found| + decay |w|); as it is where one of them is 0."""
        if self.trust is None:
            return step
        scaled = step.copy()
        for first, last in pairwise([0, *layers, weights.size]):
            size, over = (np.linalg.norm(values[first:last]) for values in (weights, found))
            if size > 0 and over > 0:
                scaled[first:last] *= self.trust * size / (over + decay * size)
        return scaled


def noise_scale(small: float, large: float, small_norms: ArrayLike, large_norms: ArrayLike) -> float:
    """Estimate the gradient noise scale, the critical batch, from gradients of two batch sizes.

    Parameters
    ----------
    small, large : float
        Samples of the two batches, the first at least 1 and the second larger.
    small_norms, large_norms : array_like
        Squared norms of gradients of each; their means count.

    Returns
    -------
    float
        tr(Sigma)/|G|**2 [samples], both estimated without bias from E |G_B|**2 = |G|**2 + tr(Sigma)/B. With a
        batch of B training takes 1 + noise/B times the fewest updates and 1 + B/noise times the fewest
        samples (`relparallel.training.statistical_efficiency`). McCandlish et al., 2018, appendix A.1.

    Examples
    --------
    >>> round(noise_scale(1, 10, [3.0], [1.2]), 9)  # |G|**2 = 1, tr(Sigma) = 2
    2.0
    """
    b = require_number(small=small, at_least=1)
    B = require_number(large=large, above=b)
    few, many = (
        np.mean(x) for x in require_real(small_norms=small_norms, large_norms=large_norms, at_least=0)
    )
    squared, trace = (B * many - b * few) / (B - b), (few - many) / (1 / b - 1 / B)
    if squared <= 0:
        raise ValueError(f"large_norms must exceed small_norms * small/large on average, got {many:g}")
    if trace < 0:
        raise ValueError(f"large_norms must be at most small_norms = {few:g} on average, got {many:g}")
    return float(trace / squared)
