"""The bandwidth that failures leave a pair of leaves, in closed form."""

import numpy as np
from numpy.typing import NDArray

from relparallel._checks import require_int
from relparallel.reliability.probability import single_probabilities

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
    from scipy.stats import binom

    return np.asarray(binom.pmf(np.arange(spines + 1), spines, spine_up * link_up**2))
