"""The bandwidth that failures leave a pair of leaves, in closed form."""

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom

from relparallel._checks import require_probability

FloatArray = NDArray[np.float64]


def leaf_spine_pair_bandwidth(spines: int, spine_up: float, link_up: float = 1.0) -> FloatArray:
    """Probability of 0, 1, ..., S units of bandwidth of one link between two leaves that are up.

    Each of S spines is joined to every leaf by one link, and carries one unit when it and both its
    links are up: Bin(S, s l^2).

    >>> leaf_spine_pair_bandwidth(2, 0.9).round(6).tolist()
    [0.01, 0.18, 0.81]
    """
    require_probability(spine_up=spine_up, link_up=link_up)
    return np.asarray(binom.pmf(np.arange(spines + 1), spines, spine_up * link_up**2))
