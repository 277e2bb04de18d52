"""Which algorithm of a collective is fastest, and from which size on."""

from typing import Any

import numpy as np

from relparallel._checks import require_choice
from relparallel.parallel._arguments import require_number
from relparallel.parallel.collective_time import FORMS, collective_time, require_form
from relparallel.parallel.collectives import Links


def fastest_algorithm(kind: str, size: float, ranks: int, ranks_per_node: int, links: Links) -> str:
    """Choose the algorithm of a collective as a communication library does: by size and ranks.

    Parameters
    ----------
    kind : str
        A key of ``FORMS``.
    size : float
        Bytes N of the whole vector.
    ranks, ranks_per_node : int
        Ranks n, and how many share a node.
    links : Links
        One set of numbers.

    Returns
    -------
    str
        The one of ``FORMS[kind]`` with the least `collective_time`, the first of several.

    References
    ----------
    Thakur, Rabenseifner and Gropp 2005, section 5 (switching by size and by whether n is a power of two).

    Examples
    --------
    >>> links = Links(latency=5e-6, bandwidth=1e9, network_latency=0, network_bandwidth=1e9)
    >>> [fastest_algorithm("all_reduce", size, 48, 48, links) for size in (1e2, 1e4, 1e9)]
    ['recursive_doubling', 'halving_doubling', 'ring']
    """
    require_number(size=size, ranks=ranks, ranks_per_node=ranks_per_node)
    require_choice(tuple(FORMS), kind=kind)
    times = {
        name: float(collective_time(kind, name, size, ranks, ranks_per_node, links)) for name in FORMS[kind]
    }
    return min(times, key=times.__getitem__)


def crossover_size(
    kind: str, first: str, second: str, ranks: int, ranks_per_node: int, links: Links
) -> float:
    """Find the size from which on the second of two algorithms is faster.

    Parameters
    ----------
    kind, first, second : str
        What happens, and two of ``FORMS[kind]``.
    ranks, ranks_per_node : int
        Ranks n, and how many share a node.
    links : Links
        One set of numbers.

    Returns
    -------
    float
        Bytes at the last change of sign from 1 byte on; 0 where the second is never slower, infinite where
        it is never faster.

    Examples
    --------
    >>> links = Links(latency=1e-6, bandwidth=1e9, network_latency=0, network_bandwidth=1e9)
    >>> round(crossover_size("all_reduce", "tree", "ring", 8, 8, links))  # 8 a = (6 - 14/8) N/B
    1882
    """
    from scipy.optimize import brentq

    require_number(ranks=ranks, ranks_per_node=ranks_per_node)

    def gain(exponent: Any) -> Any:
        times = [
            collective_time(kind, name, 2.0**exponent, ranks, ranks_per_node, links)
            for name in (first, second)
        ]
        return times[0] - times[1]

    require_form(kind, first=first)
    require_form(kind, second=second)
    grid = np.linspace(0, 50, 501)
    faster = gain(grid) > 0
    if not faster[-1]:
        return np.inf
    slower = np.flatnonzero(~faster)
    if slower.size == 0:
        return 0.0
    return float(2.0 ** brentq(gain, grid[slower[-1]], grid[slower[-1] + 1]))
