"""Steady-state availability of k-out-of-n components, which fail alone or for a common reason.

Each component has its own repair crew. Only the means of lives and repairs matter, not their distributions.
A common cause takes a set of components at once: every set has a cause of its own, and all are independent.

References
----------
Barlow and Proschan, "Statistical Theory of Reliability and Life Testing", 1975: alternating renewal processes
and k-out-of-n systems.
"""

import math
from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from relparallel._checks import require_instance, require_int, require_probability, require_real

FloatArray = NDArray[np.float64]
_MOST_PARTS: Final = 10  # 2^n causes act on 2^n sets of parts


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
    A = MTBF / (MTBF + MTTR) for one component; sum over j >= needed of C(n, j) A^j (1 - A)^(n-j) for n.

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


def multiple_greek_letters(down: float, installed: int, letters: Sequence[float]) -> FloatArray:
    """Probability of the cause that takes a given set of parts, by the size of the set.

    Parameters
    ----------
    down : float
        Probability Q that a part is down for any reason, by the model's own count.
    installed : int
        Parts n, 1 to 1000.
    letters : sequence of float
        beta, gamma, delta, ...: at most n - 1 probabilities; those not given are 1, so that beta alone
        is the beta factor model.

    Returns
    -------
    float array [n]
        Entry k - 1 for one given set of k parts. The n sizes weighted by comb(n - 1, k - 1) add up to Q.

    Notes
    -----
    Q_k = Q (1 - rho_{k+1}) prod_{i <= k} rho_i / comb(n - 1, k - 1), with rho_1 = 1, rho_2 = beta,
    rho_3 = gamma, ... and rho_{n+1} = 0.

    References
    ----------
    Fleming, Kalinowski, "An extension of the beta factor method to systems with high levels of redundancy",
    PLG-0289, 1983; Mosleh et al., NUREG/CR-5485, 1998.

    Examples
    --------
    >>> multiple_greek_letters(0.01, 3, [0.1, 0.5]).round(6).tolist()
    [0.009, 0.00025, 0.0005]
    """
    require_instance(float, down=require_probability(down=down))
    n = require_int(installed=installed, at_least=1, at_most=1000)
    require_instance((tuple, list, np.ndarray), letters=letters)
    if len(letters) > n - 1:
        raise ValueError(f"letters must be at most {n - 1} for {n} parts, got {len(letters)}")
    shares = np.atleast_1d(require_probability(letters=letters)) if len(letters) else np.empty(0)
    if shares.ndim > 1:
        raise ValueError(f"letters must be one row of probabilities, got shape {shares.shape}")
    rho = np.concatenate([[1.0], shares, np.ones(n - 1 - shares.size), [0.0]])
    sets = np.array([float(math.comb(n - 1, k)) for k in range(n)])
    return np.asarray(down * np.cumprod(rho[:n]) * (1 - rho[1:]) / sets)


def common_cause_unavailability(needed: int, causes: Sequence[float] | FloatArray) -> float:
    """Probability that fewer than ``needed`` of n equal parts are up when every set has a cause of its own.

    Parameters
    ----------
    needed : int
        Parts that have to be up, 1 to n.
    causes : sequence of float [n]
        Probability of the cause of a given set of 1, 2, ..., n parts, as of `multiple_greek_letters`. At most
        ten sizes; any number where only single parts and all parts have a cause.

    Returns
    -------
    float
        A sum of positive terms: 1e-30 has as many correct digits as 0.5.

    Notes
    -----
    The causes are applied one after the other to the distribution of the set of parts that are down, [2^n]
    numbers: O(4^n). Single parts and all parts: q_n + (1 - q_n) P(Bin(n, q_1) > n - needed).

    References
    ----------
    Mosleh et al., NUREG/CR-5485, 1998.

    Examples
    --------
    >>> one_of_two = common_cause_unavailability(1, multiple_greek_letters(0.01, 2, [0.1]))
    >>> round(one_of_two, 9)  # 0.001 + 0.999 * 0.009 ** 2
    0.001080919
    """
    require_instance((tuple, list, np.ndarray), causes=causes)
    probabilities = np.atleast_1d(require_probability(causes=causes))
    if probabilities.ndim > 1:
        raise ValueError(f"causes must be one row of probabilities, got shape {probabilities.shape}")
    n = probabilities.size
    require_int(needed=needed, at_least=1, at_most=n)
    if not probabilities[1:-1].any():
        alone, together = float(probabilities[0]), float(probabilities[-1]) if n > 1 else 0.0
        terms = (math.comb(n, j) * (1 - alone) ** j * alone ** (n - j) for j in range(needed))
        return together + (1 - together) * math.fsum(terms)
    if n > _MOST_PARTS:
        raise ValueError(f"causes must have at most {_MOST_PARTS} sizes here, got {n}")
    sets = np.arange(2**n)
    size = np.bitwise_count(sets)
    down = np.zeros(2**n)
    down[0] = 1.0
    for hit in range(1, 2**n):
        cause = probabilities[size[hit] - 1]
        if cause > 0:
            struck = np.bincount(sets | hit, down, 2**n)
            down = (1 - cause) * down + cause * struck
    return min(float(down[size > n - needed].sum()), 1.0)


def _shares(mtbf: ArrayLike, mttr: ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Shares of time up and down of one component."""
    life = np.asarray(require_real(mtbf=mtbf, above=0))
    repair = np.asarray(require_real(mttr=mttr, at_least=0))
    try:
        np.broadcast_shapes(life.shape, repair.shape)
    except ValueError:
        raise ValueError(f"mttr must have a shape that fits mtbf {life.shape}, got {repair.shape}") from None
    half = np.where(life > 1, 0.5, 1.0)  # the sum of two huge times would overflow
    life, repair = half * life, half * repair
    return life / (life + repair), repair / (life + repair)


def _sum(up: FloatArray, down: FloatArray, n: int, counts: range) -> float | FloatArray:
    """Probability that the number of components that are up lies in ``counts``."""
    terms = [float(math.comb(n, j)) * up**j * down ** (n - j) for j in counts]
    total = np.minimum(np.sum(terms, axis=0), 1.0)
    return float(total) if total.ndim == 0 else total
