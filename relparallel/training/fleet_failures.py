"""Failures of parts that are replaced at once: a fleet of them, from any state at the beginning."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from relparallel._checks import require_flag, require_instance, require_int, require_rng
from relparallel.training._arguments import require_time
from relparallel.training.lifetimes import MOST_PARTS, Ages, Lifetime


def fleet_failures(
    lifetime: Lifetime,
    parts: int,
    horizon: float,
    rng: np.random.Generator,
    ages: Ages = "stationary",
    redraw: bool = False,
    replications: int = 100,
) -> NDArray[np.int64]:
    """Count the failures of parts that are replaced at once by new ones.

    Parameters
    ----------
    lifetime : Lifetime
        Law of the life of a part.
    parts : int
        Parts n that run.
    horizon : float
        Time watched [s].
    rng : numpy.random.Generator
        Source of randomness.
    ages : {"stationary", "new"} or array
        State of the fleet at the beginning; array: one age per part [s].
    redraw : bool
        True: every failure makes the whole fleet new, a mistake found in simulators; ``ages`` then only
        counts until the first failure.
    replications : int
        Independent repetitions.

    Returns
    -------
    numpy.ndarray
        Failures, shape (replications,).

    Notes
    -----
    n horizon / m on average from the stationary state, whatever the law. With ``redraw`` failures are a
    renewal process of the minimum of n new lives: for Weibull's law about horizon n^(1/k) / m. O(failures)
    with identities, O(n failures) with ``redraw``.

    References
    ----------
    Cox, "Renewal Theory", 1962, chapters 4 and 5.

    Examples
    --------
    >>> law = Lifetime.weibull(mean=100.0, shape=0.7)
    >>> rng = np.random.default_rng(1)
    >>> bool(abs(fleet_failures(law, 256, 60.0, rng).mean() - 153.6) < 5)
    True
    >>> bool(fleet_failures(law, 256, 60.0, rng, redraw=True).mean() > 1500)
    True
    """
    require_instance(Lifetime, lifetime=lifetime)
    require_int(parts=parts, replications=replications, at_least=1, at_most=MOST_PARTS)
    require_rng(rng=rng)
    require_time(single=True, horizon=horizon, positive=True)
    require_flag(redraw=redraw)
    count = np.zeros(replications, dtype=np.int64)
    for repetition in range(replications):
        first = lifetime.remaining(rng, parts, ages)
        count[repetition] = (_renewals_of_minimum if redraw else _renewals)(lifetime, first, horizon, rng)
    return count


def _renewals(lifetime: Lifetime, ends: NDArray[np.float64], horizon: float, rng: np.random.Generator) -> int:
    """Failures until the horizon of parts whose first lives are given."""
    total = 0
    while (ends := ends[ends <= horizon]).size:
        total += ends.size
        ends = ends + lifetime.sample(rng, ends.size)
    return total


def _renewals_of_minimum(
    lifetime: Lifetime, lives: NDArray[np.float64], horizon: float, rng: np.random.Generator
) -> int:
    """Failures until the horizon if each of them makes all parts new."""
    total, clock = 0, lives.min()
    while clock <= horizon:
        total += 1
        clock += lifetime.sample(rng, lives.size).min()
    return total
