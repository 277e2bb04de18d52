"""Which algorithm sums soonest, by size of the message."""

from relparallel._checks import (
    require_choice,
    require_number,
)
from relparallel.parallel.collective_time import FORMS, collective_time
from relparallel.parallel.collectives import COLLECTIVES as COLLECTIVES, Links


def fastest_algorithm(kind: str, size: float, ranks: int, ranks_per_node: int, links: Links) -> str:
    """Choose the algorithm of a collective as a communication library does: by size and ranks.

    Parameters
    ----------
    kind, size, ranks, ranks_per_node, links : str, float, int, int, Links
        As of `collective_time`, one number each.

    Returns
    -------
    str
        The one of ``FORMS[kind]`` with the least `collective_time`, the first of several. Thakur,
        Rabenseifner and Gropp 2005, section 5 (switching by size and by whether n is a power of two).

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
