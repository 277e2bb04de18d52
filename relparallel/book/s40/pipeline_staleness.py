"""How stale weights are in a pipeline without a flush, and what two remedies do about it."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from relparallel._checks import (
    bare,
    require_broadcast,
    require_int,
    require_number,
    require_real,
)
from relparallel.communication.staleness import LONGEST_DELAY, Taps


def pipeline_delays(stages: int, micro_batches: int = 1) -> NDArray[np.float64]:
    """Return PipeMare's delay of the forward weights on every stage; its backward weights are the newest.

    Parameters
    ----------
    stages, micro_batches : int
        P, and N whose gradients make one update.

    Returns
    -------
    numpy.ndarray
        float64, shape (stages,), updates: (2 (P - i) + 1)/N on stage i = 1 ... P, a gradient's own
        micro-batch counted. Yang et al., "PipeMare", MLSys 2021, table 1.

    Examples
    --------
    >>> pipeline_delays(4, micro_batches=2).tolist()
    [3.5, 2.5, 1.5, 0.5]
    """
    require_int(stages=stages, micro_batches=micro_batches, at_least=1)
    return (2.0 * np.arange(stages)[::-1] + 1) / micro_batches


def correction_decay(gap: ArrayLike, remainder: float = 0.135) -> Any:
    """Return the decay of the average change of the weights that PipeMare corrects the discrepancy with.

    Parameters
    ----------
    gap : array_like
        Updates f - b between the weights of forward and backward pass, above 0.
    remainder : float
        Share of a change that the average still holds after ``gap`` updates, in (0, 1); 0.135 is exp(-2).

    Returns
    -------
    float or numpy.ndarray
        remainder**(1/gap), for `delayed_taps` and `delayed_descent` (Yang et al., MLSys 2021, technique 2).

    Examples
    --------
    >>> round(correction_decay(10 - 6), 4)
    0.6062
    """
    between = require_real(gap=gap, above=0)
    return bare(require_number(remainder=remainder, above=0, below=1) ** (1 / np.asarray(between)))


def rescheduled_rate(
    rate: ArrayLike, delay: ArrayLike, update: ArrayLike, annealing_updates: int
) -> NDArray[np.float64]:
    """Return PipeMare's learning rates, divided by the delay at first and unchanged after the annealing.

    Parameters
    ----------
    rate, delay, update : array_like
        Rates that training without a delay would use, above 0; updates t of delay, above 0; number k of the
        update, from 0 on.
    annealing_updates : int
        K, at least 1.

    Returns
    -------
    numpy.ndarray
        rate t**-p with p = 1 - min(k/K, 1), of the shape that the three arrays broadcast to. A delay below 1
        raises the rate. Yang et al., "PipeMare", MLSys 2021, technique 1.

    Examples
    --------
    >>> rescheduled_rate(0.1, 4.0, [0, 50, 100, 200], annealing_updates=100).tolist()
    [0.025, 0.05, 0.1, 0.1]
    """
    require_int(annealing_updates=annealing_updates, at_least=1)
    rates, lags = require_real(rate=rate, delay=delay, above=0)
    updates = require_real(update=update, at_least=0)
    require_broadcast(rate=rates, delay=lags, update=updates)
    power = 1 - np.minimum(np.asarray(updates) / annealing_updates, 1)
    return np.asarray(rates * np.asarray(lags) ** -power)


def delayed_taps(
    rate: float, forward_delay: int, backward_delay: int = 0, *, curvature: float = 1.0,
    discrepancy: float = 0.0, decay: float | None = None,
) -> Taps:  # fmt: skip
    """Return delayed descent on a quadratic as taps, with discrepancy and its correction if wanted.

    Parameters
    ----------
    rate, curvature, discrepancy : float
        The step a and the second derivative c, above 0; D >= 0: how much the gradient depends on the
        difference of forward and backward weights.
    forward_delay, backward_delay : int
        Updates f and b by which the weights of the forward and of the backward pass are old.
    decay : float, optional
        With it the backward weights are corrected; in [0, 1), as `correction_decay` gives it.

    Returns
    -------
    mapping of int to array
        For `spectral_radius` and, as a function of ``rate``, `largest_stable_step`; numbers without a
        correction, blocks for (w, v) with one.

    Notes
    -----
    w(t+1) = w(t) - a ((c + D) w(t-f) - D u(t)) with u(t) = w(t-b). With the correction u(t) = w(t-b) - (f -
    b) v(t) and v(t+1) = decay v(t) + (1 - decay)(w(t+1) - w(t)). Without it the largest stable step is below
    2/(D (f - b)) and `stable_step`. The correction raises it where b = 0; where b > 0 and f - b = 1 it can
    lower it. Yang et al., "PipeMare", MLSys 2021, lemma 2 and technique 2.

    Examples
    --------
    >>> from functools import partial
    >>> from relparallel.communication import largest_stable_step
    >>> stale = partial(delayed_taps, forward_delay=10, backward_delay=6, discrepancy=5.0)
    >>> round(largest_stable_step(stale), 5)
    0.03807
    >>> round(largest_stable_step(partial(stale, decay=correction_decay(10 - 6))), 5)
    0.10587
    """
    a, c = require_number(rate=rate, curvature=curvature, above=0)
    gap = require_number(discrepancy=discrepancy, at_least=0)
    b = require_int(backward_delay=backward_delay, at_least=0, at_most=LONGEST_DELAY)
    f = require_int(forward_delay=forward_delay, at_least=b, at_most=LONGEST_DELAY)
    if decay is None:
        kept, moves, average = np.eye(1), np.ones((1, 1)), 0.0
    else:
        keep = require_number(decay=decay, at_least=0, below=1)
        kept, moves, average = np.diag([1.0, keep]), np.array([[1.0], [1 - keep]]), gap * (f - b)
    size = len(kept)
    taps = {delay: np.zeros((size, size)) for delay in (0, b, f)}
    taps[0] += kept
    # What each delayed (w, v) adds to the gradient, which moves w by -a and v by -a (1 - decay).
    for delay, row in ((f, (c + gap, 0.0)), (b, (-gap, 0.0)), (0, (0.0, average))):
        taps[delay] -= a * moves * row[:size]
    return taps
