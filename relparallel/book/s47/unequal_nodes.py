"""Throughput of nodes that do not fail alike, grouped at random or sorted."""

import numpy as np
from numpy.typing import ArrayLike

from relparallel._checks import (
    require_flag,
    require_int,
)
from relparallel.training._arguments import MOST_NODES, require_rate, require_time


def unequal_throughput(
    node_rates: ArrayLike, nodes_per_replica: int, repair: float, pause: float, sort: bool = False
) -> float:
    """Share of the throughput that an elastic job keeps where every node has its own failure rate.

    Parameters
    ----------
    node_rates : array_like [N]
        Failures per second of every node, replica by replica; N is a multiple of g.
    nodes_per_replica : int
        Nodes g that stop together.
    repair, pause : float
        Mean time until a failed node is back, and standstill of the job at each failure [s].
    sort : bool
        Whether nodes are first put in the order of their rates, so that bad ones share replicas. No
        other order keeps more: the mean of products is largest where like stands with like.

    Returns
    -------
    float
        (g / N) sum over replicas of prod 1 / (1 + lam_i r), over 1 + pause sum lam_i. With equal
        rates `elastic_throughput`. A job that restarts as a whole only sees the sum of the rates.

    References
    ----------
    Ruderman, "Two new inequalities", American Mathematical Monthly 59, 1952 (sums of products).

    Examples
    --------
    >>> rates = [1e-6, 1e-8, 1e-6, 1e-8]  # two of four nodes fail a hundred times as often
    >>> [round(unequal_throughput(rates, 2, 86400, 0, sort=s), 3) for s in (False, True)]
    [0.92, 0.923]
    """
    rates = np.atleast_1d(require_rate(node_rates=node_rates))
    require_int(nodes_per_replica=nodes_per_replica, at_least=1, at_most=MOST_NODES)
    require_flag(sort=sort)
    if rates.ndim != 1 or rates.size % nodes_per_replica:
        raise ValueError(
            f"node_rates must be one for each node of whole replicas, got shape {rates.shape}"
        )
    up = 1 / (1 + rates * float(require_time(repair=repair)))
    replicas = np.reshape(np.sort(up) if sort else up, (-1, nodes_per_replica))
    return float(
        replicas.prod(axis=1).mean() / (1 + rates.sum() * float(require_time(pause=pause)))
    )
