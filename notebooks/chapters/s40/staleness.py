"""Training with stale weights as linear recurrences with delays: when stable, and what remedies do.

A recurrence x(t+1) = sum over d of A_d x(t-d) is a mapping from delays d to coefficients A_d,
numbers or square blocks: its taps. A method with a step is a function from the step to its taps;
momentum, averages and predictions of weights are further components of x.

On a quadratic of curvature c, delayed descent is w(t+1) = w(t) - a g(t). PipeMare reads other
weights in the forward than in the backward pass, and g(t) = (c + D) w(t - f) - D w(t - b) with
delays f >= b [updates] and the discrepancy D. Delays count the updates between those weights and
the ones that the gradient meets: `relparallel.parallel.weight_delay` counts one more, the
gradient's own.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from chapters.descent import LONGEST_DELAY, Gradient
from relparallel._checks import (
    bare,
    require_broadcast,
    require_instance,
    require_int,
    require_number,
    require_real,
    require_rng,
)

Taps: TypeAlias = Mapping[int, ArrayLike]
_GROWTH: Final = 1.25  # from one step that is tried to the next
_TRIES: Final = 200


def companion_matrix(taps: Taps) -> NDArray[np.float64]:
    """Return the matrix that moves the last states of a recurrence with delays one step on."""
    delays, blocks = _checked(taps)
    size = blocks.shape[1]
    matrix = np.eye(size * (max(delays) + 1), k=-size)
    for delay, block in zip(delays, blocks, strict=True):
        matrix[:size, size * delay : size * (delay + 1)] = block
    return matrix


def spectral_radius(taps: Taps) -> float:
    """Return the long-run factor by which a recurrence with delays grows per step; O((k n)**3)."""
    return float(np.abs(np.linalg.eigvals(companion_matrix(taps))).max())


def largest_stable_step(method: Callable[[float], Taps], smallest: float = 1e-6) -> float:
    """Step at which a method stops being stable: its spectral radius crosses 1 from below.

    ``method`` goes from a step above 0 to the taps of the recurrence and is stable at ``smallest``.
    Steps grow by a quarter until one is unstable, then Brent's method; a narrower unstable window
    below that may be missed.

    >>> round(largest_stable_step(lambda step: {0: 1.0, 2: -step}), 9)
    0.618033989
    """
    from scipy.optimize import brentq

    require_instance(Callable, method=method)
    low = require_number(smallest=smallest, above=0)
    if spectral_radius(method(low)) >= 1:
        raise ValueError(f"smallest must be a stable step, got {smallest!r}")
    for _ in range(_TRIES):
        high = low * _GROWTH
        if spectral_radius(method(high)) > 1:
            return float(
                brentq(lambda step: spectral_radius(method(step)) - 1, low, high, xtol=1e-15 * high)
            )
        low = high
    raise ValueError(f"method must be unstable at some step, got a stable one up to {low:g}")


def _checked(taps: Taps) -> tuple[list[int], NDArray[np.float64]]:
    """The delays and their blocks, shape (delays, k, k)."""
    require_instance(Mapping, taps=taps)
    if not taps:
        raise ValueError("taps must hold at least one delay, got an empty mapping")
    delays = [require_int(taps=delay, at_least=0, at_most=LONGEST_DELAY) for delay in taps]
    blocks = [np.atleast_2d(require_real(taps=block)) for block in taps.values()]
    shapes = {block.shape for block in blocks}
    if len(shapes) > 1 or len({*blocks[0].shape}) > 1 or blocks[0].ndim > 2:
        raise ValueError(
            f"taps must be numbers or square blocks of one shape, got shapes {sorted(shapes)}"
        )
    return delays, np.array(blocks)


def stable_step(delay: ArrayLike, curvature: ArrayLike = 1.0) -> Any:
    """Step at which delayed descent on a quadratic turns unstable, without discrepancy.

    (2/c) sin(pi/(4 t + 2)) for weights that are t updates old and the ``curvature`` c > 0: there a
    root of z**(t+1) - z**t + a c first meets the unit circle; smaller steps converge, larger ones
    diverge. Yang et al., "PipeMare", MLSys 2021, lemma 1.

    >>> stable_step([0, 1, 64]).round(8).tolist()
    [2.0, 1.0, 0.02435283]
    """
    lags, c = require_real(delay=delay, at_least=0), require_real(curvature=curvature, above=0)
    require_broadcast(delay=lags, curvature=c)
    return bare(2 / c * np.sin(np.pi / (4 * np.asarray(lags) + 2)))


def quadratic_gradient(
    curvature: ArrayLike,
    discrepancy: ArrayLike = 0.0,
    noise: float = 0.0,
    rng: np.random.Generator | None = None,
) -> Gradient:
    """A noisy gradient of independent parabolas, for `delayed_descent`.

    From forward weights w and backward weights u to c w + D (w - u) + noise: ``curvature`` c >= 0,
    and ``discrepancy`` D >= 0, how much the gradient depends on their difference, one for all
    weights or one for each; ``noise`` is the standard deviation that ``rng`` draws. Yang et al.,
    "PipeMare", MLSys 2021.

    >>> quadratic_gradient(2.0, discrepancy=1.0)(np.array([3.0]), np.array([1.0])).tolist()
    [8.0]
    """
    c, gap = require_real(curvature=curvature, discrepancy=discrepancy, at_least=0)
    require_broadcast(curvature=c, discrepancy=gap)
    sigma = require_number(noise=noise, at_least=0)
    if rng is not None or sigma > 0:
        require_rng(rng=rng)
    draw = (
        (lambda shape: 0.0) if rng is None else (lambda shape: sigma * rng.standard_normal(shape))
    )
    return lambda forward, backward: (
        c * forward + gap * (forward - backward) + draw(np.shape(forward))
    )
