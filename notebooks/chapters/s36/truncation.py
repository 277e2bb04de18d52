"""Small weights truncated to zero while they are learnt."""

import numpy as np
from numpy.typing import NDArray

from chapters.descent import Gradient

Vector = NDArray[np.float64]


def truncated_gradient(
    gradient: Gradient, rate: float, gravity: float, threshold: float = 1e300, every: int = 1
) -> Gradient:
    """A gradient whose updates pull small weights to 0, for `delayed_descent` with a constant rate.

    (w - T1(w - a gradient))/a with the rate a of that descent: at every K-th update weights up to
    the threshold move by a g K towards zero. With K = 1 and no threshold: proximal descent on the
    loss + g |w|_1. Langford et al., JMLR 2009, section 3.3.
    """
    a, g, limit, period, done = rate, gravity, threshold, every, [0]

    def direction(forward: Vector, backward: Vector) -> Vector:
        moved = forward - a * np.asarray(gradient(forward, backward))
        done[0] += 1
        if done[0] % period == 0:
            shrunk = np.sign(moved) * np.maximum(np.abs(moved) - a * g * period, 0)
            moved = np.where(np.abs(moved) <= limit, shrunk, moved)
        return np.asarray((forward - moved) / a)

    return direction
