"""How much bandwidth failures leave in leaf-spine and fat-tree networks, in closed form at any size.

Routing is up-down. Each distribution counts whole units of capacity, so "at least x of n" is a sum of its
last entries: k-out-of-n with shares of bandwidth in the place of connection.
"""

import numpy as np
from numpy.typing import NDArray

from relparallel._checks import require_int
from relparallel.reliability.closed_forms._arguments import half_radix, single_probabilities

FloatArray = NDArray[np.float64]


def leaf_spine_pair_bandwidth(spines: int, spine_up: float, link_up: float = 1.0) -> FloatArray:
    """Distribution of the uplinks' worth of bandwidth between two leaves that are up.

    Parameters
    ----------
    spines : int
        S, 1 to 100,000; each is joined to every leaf by one link.
    spine_up, link_up : float, optional
        Probability that a spine, and that a link, is up.

    Returns
    -------
    float array [S + 1]
        Probability of 0, 1, ..., S units of one link.

    Notes
    -----
    A spine carries one unit when it and both its links are up: Bin(S, s l^2).

    Examples
    --------
    >>> leaf_spine_pair_bandwidth(2, 0.9).round(6).tolist()
    [0.01, 0.18, 0.81]
    """
    require_int(spines=spines, at_least=1, at_most=100_000)
    single_probabilities(spine_up=spine_up, link_up=link_up)
    return _binomial(spines, spine_up * link_up**2)


def fat_tree_pod_bandwidth(
    k: int, core_up: float, aggregation_up: float, core_link_up: float = 1.0
) -> FloatArray:
    """Distribution of the core links' worth of bandwidth between two pods.

    Notes
    -----
    A group carries nothing unless both its aggregation switches are up, then Bin(h, c m^2) units: the sum of
    h = k/2 independent groups, a convolution of positive terms, O(h^4).
    """
    require_int(k=k, at_least=4)
    single_probabilities(core_up=core_up, aggregation_up=aggregation_up, core_link_up=core_link_up)
    h = half_radix(k, at_most=200)
    one = aggregation_up**2 * _binomial(h, core_up * core_link_up**2)
    one[0] += (1 - aggregation_up) * (1 + aggregation_up)
    total = np.ones(1)
    for _ in range(h):
        total = np.convolve(total, one)
    return total


def _binomial(count: int, up: float) -> FloatArray:
    """Distribution of the number that are up, 0 to count."""
    from scipy.stats import binom

    return np.asarray(binom.pmf(np.arange(count + 1), count, up))
