"""Throughput of nodes that do not fail alike, grouped at random or sorted."""

import numpy as np
from numpy.typing import ArrayLike


def unequal_throughput(
    node_rates: ArrayLike, nodes_per_replica: int, repair: float, pause: float, sort: bool = False
) -> float:
    """Share of the throughput that an elastic job keeps where every node has its own failure rate.

    Failures per second of every node come replica by replica, g nodes each; a failed node is back
    after ``repair``, and the job stands still for ``pause`` at each failure [s]. ``sort`` puts bad
    nodes together: no other order keeps more, for the mean of products is largest where like stands
    with like (Ruderman, "Two new inequalities", American Mathematical Monthly 59, 1952).

    (g / N) sum over replicas of prod 1 / (1 + lam_i r), over 1 + pause sum lam_i; with equal rates
    the elastic throughput of notebook 43. A job that restarts as a whole only sees the sum of the
    rates.

    >>> rates = [1e-6, 1e-8, 1e-6, 1e-8]  # two of four nodes fail a hundred times as often
    >>> [round(unequal_throughput(rates, 2, 86400, 0, sort=s), 3) for s in (False, True)]
    [0.92, 0.923]
    """
    rates = np.asarray(node_rates)
    up = 1 / (1 + rates * repair)
    replicas = np.reshape(np.sort(up) if sort else up, (-1, nodes_per_replica))
    return float(replicas.prod(axis=1).mean() / (1 + rates.sum() * pause))
