"""Steady-state availability of k-out-of-n components, which fail alone or for a common reason.

Each component has its own repair crew. Only the means of lives and repairs matter, not their
distributions. A common cause takes a set of components at once: every set has a cause of its own,
and all are independent.

References
----------
Barlow and Proschan, "Statistical Theory of Reliability and Life Testing", 1975: alternating renewal
processes and k-out-of-n systems.
"""

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from relparallel._checks import require_int, require_real

FloatArray = NDArray[np.float64]


def availability(
    mtbf: ArrayLike, mttr: ArrayLike, *, needed: int = 1, installed: int = 1
) -> float | FloatArray:
    """Long-run share of time in which at least ``needed`` of ``installed`` components are up.

    Parameters
    ----------
    mtbf : float or array
        Mean time between the end of a repair and the next failure [s], above 0.
    mttr : float or array
        Mean time to repair [s], at least 0; broadcasts with ``mtbf``.
    needed, installed : int, optional
        At least 1; needed <= installed <= 1000. One of one by default.

    Returns
    -------
    float or array
        Inside [0, 1].

    Notes
    -----
    A = MTBF / (MTBF + MTTR) for one component; sum over j >= needed of C(n, j) A^j (1 - A)^(n-j)
    for n.

    Examples
    --------
    >>> availability(mtbf=999 * 3600, mttr=3600)
    0.999
    """
    require_int(installed=installed, at_least=1, at_most=1000)
    require_int(needed=needed, at_least=1, at_most=installed)
    return _sum(*_shares(mtbf, mttr), int(installed), range(needed, installed + 1))


def unavailability(
    mtbf: ArrayLike, mttr: ArrayLike, *, needed: int = 1, installed: int = 1
) -> float | FloatArray:
    """Long-run share of time in which fewer than ``needed`` of ``installed`` components are up.

    Parameters
    ----------
    mtbf, mttr, needed, installed : as in `availability`

    Returns
    -------
    float or array
        Its own sum of positive terms: as many correct digits at 1e-30 as at 0.5.

    Notes
    -----
    MTTR / (MTBF + MTTR) for one component; sum over j < needed of C(n, j) A^j (1 - A)^(n-j) for n.

    Examples
    --------
    >>> print(f"{unavailability(mtbf=1e9, mttr=1.0, installed=3):.2e}")
    1.00e-27
    """
    require_int(installed=installed, at_least=1, at_most=1000)
    require_int(needed=needed, at_least=1, at_most=installed)
    return _sum(*_shares(mtbf, mttr), int(installed), range(needed))


def _shares(mtbf: ArrayLike, mttr: ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Shares of time up and down of one component."""
    life = np.asarray(require_real(mtbf=mtbf, above=0))
    repair = np.asarray(require_real(mttr=mttr, at_least=0))
    try:
        np.broadcast_shapes(life.shape, repair.shape)
    except ValueError:
        raise ValueError(
            f"mttr must have a shape that fits mtbf {life.shape}, got {repair.shape}"
        ) from None
    half = np.where(life > 1, 0.5, 1.0)  # the sum of two huge times would overflow
    life, repair = half * life, half * repair
    return life / (life + repair), repair / (life + repair)


def _sum(up: FloatArray, down: FloatArray, n: int, counts: range) -> float | FloatArray:
    """Probability that the number of components that are up lies in ``counts``."""
    terms = [float(math.comb(n, j)) * up**j * down ** (n - j) for j in counts]
    total = np.minimum(np.sum(terms, axis=0), 1.0)
    return float(total) if total.ndim == 0 else total
