"""How stale weights are in a pipeline without a flush, and what two remedies do about it."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from chapters.descent import LONGEST_DELAY
from chapters.s40.staleness import Taps
from relparallel._checks import bare, require_int, require_real


def pipeline_delays(stages: int, micro_batches: int = 1) -> NDArray[np.float64]:
    """PipeMare's delay of the forward weights per stage [updates]; backward weights are the newest.

    (2 (P - i) + 1)/N on stage i = 1 ... P, a gradient's own micro-batch counted, where N
    micro-batches make one update. Yang et al., "PipeMare", MLSys 2021, table 1.

    >>> pipeline_delays(4, micro_batches=2).tolist()
    [3.5, 2.5, 1.5, 0.5]
    """
    return (2.0 * np.arange(stages)[::-1] + 1) / micro_batches


def correction_decay(gap: ArrayLike) -> Any:
    """Decay of the average change of the weights that PipeMare corrects the discrepancy with.

    0.135**(1/gap) for a ``gap`` of f - b updates between the weights of forward and backward pass,
    after which the average still holds the share 0.135 of a change, about exp(-2). Yang et al.,
    MLSys 2021, technique 2.
    """
    return bare(0.135 ** (1 / np.asarray(require_real(gap=gap, above=0))))


def rescheduled_rate(
    rate: ArrayLike, delay: ArrayLike, update: ArrayLike, annealing_updates: int
) -> NDArray[np.float64]:
    """PipeMare's learning rates, divided by the delay at first and unchanged after the annealing.

    rate t**-p with p = 1 - min(k/K, 1) at update k, from 0 on, of a delay of t updates; a delay
    below 1 raises the rate. Yang et al., "PipeMare", MLSys 2021, technique 1.

    >>> rescheduled_rate(0.1, 4.0, [0, 50, 100, 200], annealing_updates=100).tolist()
    [0.025, 0.05, 0.1, 0.1]
    """
    power = 1 - np.minimum(np.asarray(update) / annealing_updates, 1)
    return np.asarray(np.asarray(rate) * np.asarray(delay) ** -power)


def delayed_taps(
    rate: float,
    forward_delay: int,
    backward_delay: int = 0,
    *,
    curvature: float = 1.0,
    discrepancy: float = 0.0,
    decay: float | None = None,
) -> Taps:
    """Delayed descent on a quadratic as taps, with discrepancy and its correction if wanted.

    The step is a, the second derivative c (``curvature``), the weights of the forward and of the
    backward pass are f and b updates old, and the gradient depends on their difference by D
    (``discrepancy``). With ``decay``, as `correction_decay` gives it, the backward weights are
    corrected, and taps are blocks for (w, v).

    w(t+1) = w(t) - a ((c + D) w(t-f) - D u(t)) with u(t) = w(t-b). With the correction u(t) =
    w(t-b) - (f - b) v(t) and v(t+1) = decay v(t) + (1 - decay)(w(t+1) - w(t)). Without it the
    largest stable step is below 2/(D (f - b)) and `stable_step`. The correction raises it where b =
    0; where b > 0 and f - b = 1 it can lower it. Yang et al., "PipeMare", MLSys 2021, lemma 2 and
    technique 2.

    >>> from functools import partial
    >>> from chapters.s40 import largest_stable_step
    >>> stale = partial(delayed_taps, forward_delay=10, backward_delay=6, discrepancy=5.0)
    >>> round(largest_stable_step(stale), 5)
    0.03807
    >>> round(largest_stable_step(partial(stale, decay=correction_decay(10 - 6))), 5)
    0.10587
    """
    a, c, gap = rate, curvature, discrepancy
    b = require_int(backward_delay=backward_delay, at_least=0, at_most=LONGEST_DELAY)
    f = require_int(forward_delay=forward_delay, at_least=b, at_most=LONGEST_DELAY)
    if decay is None:
        kept, moves, average = np.eye(1), np.ones((1, 1)), 0.0
    else:
        kept, moves, average = np.diag([1.0, decay]), np.array([[1.0], [1 - decay]]), gap * (f - b)
    size = len(kept)
    taps = {delay: np.zeros((size, size)) for delay in (0, b, f)}
    taps[0] += kept
    # What each delayed (w, v) adds to the gradient, which moves w by -a and v by -a (1 - decay).
    for delay, row in ((f, (c + gap, 0.0)), (b, (-gap, 0.0)), (0, (0.0, average))):
        taps[delay] -= a * moves * row[:size]
    return taps


def compensated_taps(
    rate: float,
    delay: int,
    momentum: float = 0.0,
    *,
    curvature: float = 1.0,
    spike: bool = False,
    horizon: float = 0.0,
) -> Taps:
    """Delayed descent with momentum on a quadratic as taps, with Kosson's two mitigations if wanted.

    g(s) = c (w(s-t) - a T v(s-t)), v(s+1) = m v(s) + g(s) and w(s+1) = w(s) - a (p v(s+1) + q g(s))
    with p = 1 and q = 0, or with compensation p = m**t and q = (1 - m**t)/(1 - m). Kosson et al.,
    "Pipelined Backpropagation at Scale", MLSys 2021.
    """
    a, m, t, c = rate, momentum, delay, curvature
    p, q = (m**t, (1 - m**t) / (1 - m)) if spike else (1.0, 0.0)
    taps = {late: np.zeros((2, 2)) for late in (0, t)}
    taps[0] += [[1.0, -a * p * m], [0.0, m]]
    taps[t] += np.outer([-a * (p + q), 1.0], [c, -a * horizon * c])
    return taps
