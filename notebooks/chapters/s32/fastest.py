"""Which algorithm sums soonest, by size of the message."""

from relparallel.parallel.collective_forms import FORMS, collective_time
from relparallel.parallel.collectives import Links


def fastest_algorithm(kind: str, size: float, ranks: int, ranks_per_node: int, links: Links) -> str:
    """Collective algorithm with the least `collective_time`, as a communication library chooses it.

    The first of several of ``FORMS[kind]``. Thakur, Rabenseifner and Gropp 2005, section 5
    (switching by size and by whether n is a power of two).

    >>> links = Links(latency=5e-6, bandwidth=1e9, network_latency=0, network_bandwidth=1e9)
    >>> [fastest_algorithm("all_reduce", size, 48, 48, links) for size in (1e2, 1e4, 1e9)]
    ['recursive_doubling', 'halving_doubling', 'ring']
    """
    return min(
        FORMS[kind],
        key=lambda name: collective_time(kind, name, size, ranks, ranks_per_node, links),
    )
