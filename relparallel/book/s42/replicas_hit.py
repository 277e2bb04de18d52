"""How many replicas a few failures hit, and what a split drops with them."""

import numpy as np

from relparallel._checks import require_int


def expected_replicas_hit(replicas: int, nodes_per_replica: int, failures: int) -> float:
    """Mean number of model replicas that k failed nodes hit, every k-subset being as likely.

    Parameters
    ----------
    replicas, nodes_per_replica : int
        Replicas D, each on g nodes of its own.
    failures : int
        Failed nodes k, at most N = D g.

    Returns
    -------
    float
        D (1 - C(N-g, k) / C(N, k)), between k/g and k.

    Examples
    --------
    >>> round(expected_replicas_hit(replicas=128, nodes_per_replica=16, failures=4), 5)
    3.95623
    """
    require_int(replicas=replicas, nodes_per_replica=nodes_per_replica, at_least=1, at_most=10**6)
    nodes = replicas * nodes_per_replica
    require_int(failures=failures, at_least=0, at_most=nodes)
    few, many = sorted((nodes_per_replica, failures))
    # P(a replica is missed) = prod (N - many - i)/(N - i), its complement by log1p: small k keeps
    # its digits.
    if many > nodes - few:
        return float(replicas)
    missed = np.log1p(-many / (nodes - np.arange(few))).sum()
    return float(-replicas * np.expm1(missed))
