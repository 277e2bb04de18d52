"""How many replicas a few failures hit, and what a split drops with them."""

import numpy as np


def expected_replicas_hit(replicas: int, nodes_per_replica: int, failures: int) -> float:
    """Mean number of D replicas on g nodes each that k failed nodes hit, all sets of k as likely.

    D (1 - C(N-g, k) / C(N, k)) with N = D g, between k/g and k.

    >>> round(expected_replicas_hit(replicas=128, nodes_per_replica=16, failures=4), 5)
    3.95623
    """
    nodes = replicas * nodes_per_replica
    if not 0 <= failures <= nodes:
        raise ValueError(f"failures must be of the {nodes} nodes, got {failures}")
    few, many = sorted((nodes_per_replica, failures))
    # P(a replica is missed) = prod (N - many - i)/(N - i), its complement by log1p: small k keeps
    # its digits.
    if many > nodes - few:
        return float(replicas)
    missed = np.log1p(-many / (nodes - np.arange(few))).sum()
    return float(-replicas * np.expm1(missed))
