"""Parts that fail together: beta factor and multiple Greek letters."""

import math
from collections.abc import Sequence
from typing import Final

import numpy as np

from relparallel._checks import require_int, require_probability
from relparallel.reliability.repair.component_availability import FloatArray

_MOST_PARTS: Final = 10  # 2^n causes act on 2^n sets of parts


def multiple_greek_letters(down: float, installed: int, letters: Sequence[float]) -> FloatArray:
    """Probability of the cause that takes a given set of k of n parts, as entry k - 1.

    A part is down for any reason with probability Q (``down``); ``letters`` are beta, gamma, delta,
    ...: at most n - 1 probabilities, and those not given are 1, so that beta alone is the beta
    factor model. Q_k = Q (1 - rho_{k+1}) prod_{i <= k} rho_i / comb(n - 1, k - 1), with rho_1 = 1,
    rho_2 = beta, rho_3 = gamma, ... and rho_{n+1} = 0. The n sizes weighted by comb(n - 1, k - 1)
    add up to Q. Fleming, Kalinowski, "An extension of the beta factor method to systems with high
    levels of redundancy", PLG-0289, 1983; Mosleh et al., NUREG/CR-5485, 1998.

    >>> multiple_greek_letters(0.01, 3, [0.1, 0.5]).round(6).tolist()
    [0.009, 0.00025, 0.0005]
    """
    n = installed
    if len(letters) > n - 1:
        raise ValueError(f"letters must be at most {n - 1} for {n} parts, got {len(letters)}")
    rho = np.array([1.0, *letters, *[1.0] * (n - 1 - len(letters)), 0.0])
    require_probability(down=down, letters=rho)
    sets = np.array([float(math.comb(n - 1, k)) for k in range(n)])
    return np.asarray(down * np.cumprod(rho[:n]) * (1 - rho[1:]) / sets)


def common_cause_unavailability(needed: int, causes: Sequence[float] | FloatArray) -> float:
    """Probability that fewer than ``needed`` of n equal parts are up if each set has its own cause.

    ``causes`` have the probability of the cause of a given set of 1, 2, ..., n parts, as of
    `multiple_greek_letters`. At most ten sizes; any number where only single parts and all parts
    have a cause. The causes are applied one after the other to the distribution of the set of parts
    that are down, [2^n] numbers: O(4^n). Single parts and all parts: q_n + (1 - q_n) P(Bin(n, q_1)
    > n - needed). A sum of positive terms: 1e-30 has as many correct digits as 0.5. Mosleh et al.,
    NUREG/CR-5485, 1998.

    >>> one_of_two = common_cause_unavailability(1, multiple_greek_letters(0.01, 2, [0.1]))
    >>> round(one_of_two, 9)  # 0.001 + 0.999 * 0.009 ** 2
    0.001080919
    """
    probabilities = np.asarray(require_probability(causes=causes))
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
