"""Redundant work: pipelines in which a neighbour takes over, and pairs of processes."""

from __future__ import annotations

import math

import numpy as np

from relparallel._checks import require_flag, require_int, require_probability, require_real
from relparallel.training._arguments import Real, plain, require_time
from relparallel.training._random_failures import surviving_sets

MOST_STAGES = 10**4


def pipeline_survival(stages: int, failures: int, pipelines: int = 1, ring: bool = True) -> float:
    """Probability that no pipeline loses two neighbours, with k of all nodes failed.

    Parameters
    ----------
    stages, pipelines : int
        Nodes P of a pipeline, each of which also holds the layers of its successor, and pipelines D.
    failures : int
        Failed nodes k, at most D P, every set of k as likely as every other.
    ring : bool
        True: the last node backs up the first. False: the pipeline is an open chain.

    Returns
    -------
    float
        Coefficient k of the D-th power of the polynomial of surviving sets, over C(D P, k), in whole numbers:
        a ring has P/(P - k) C(P - k, k) sets of k nodes without neighbours, a chain C(P - k + 1, k).

    References
    ----------
    Thorpe et al., "Bamboo", NSDI 2023. Counts: Kaplansky, Bull. AMS 49, 1943, lemmas 1 and 2.

    Examples
    --------
    >>> round(pipeline_survival(stages=8, failures=2), 6)
    0.714286
    """
    require_int(stages=stages, pipelines=pipelines, at_least=1, at_most=MOST_STAGES)
    nodes = stages * pipelines
    require_int(failures=failures, at_least=0, at_most=min(nodes, MOST_STAGES))
    sets = surviving_sets(stages, pipelines, failures, require_flag(ring=ring))
    return sets[failures] / math.comb(nodes, failures)


def independent_failures_survived(stages: int, pipelines: int, node_down: Real, ring: bool = True) -> Real:
    """Probability that no pipeline loses two neighbours when nodes fail independently.

    Parameters
    ----------
    stages, pipelines, ring : int, int, bool
        As in `pipeline_survival`.
    node_down : float or array
        Probability q that a node is down.

    Returns
    -------
    float or numpy.ndarray
        (sum_k n_k q^k (1 - q)^(P - k))^D with n_k as in `pipeline_survival`, by a recursion over open chains.

    Examples
    --------
    >>> round(independent_failures_survived(stages=12, pipelines=8, node_down=0.01), 5)
    0.99054
    """
    require_int(stages=stages, pipelines=pipelines, at_least=1, at_most=MOST_STAGES)
    down = np.asarray(require_probability(node_down=node_down))
    up = 1 - down
    chains = [np.ones_like(down), np.ones_like(down)]
    for _ in range(stages - 1):
        chains.append(up * chains[-1] + down * up * chains[-2])
    if not require_flag(ring=ring):
        return plain(chains[stages] ** pipelines)
    closed = up * (chains[stages - 1] if stages > 1 else 1)
    if stages > 2:
        closed = closed + down * up**2 * chains[stages - 3]
    elif stages == 2:
        closed = closed + down * up
    return plain(closed**pipelines)


def pair_failures(pairs: Real) -> Real:
    """Mean number of failures until both processes of some pair are gone.

    Parameters
    ----------
    pairs : int or array
        Pairs b.

    Returns
    -------
    float or numpy.ndarray
        1 + 4^b / C(2b, b), about 1 + sqrt(pi b); each failure hits one of 2b processes, dead ones too.

    References
    ----------
    Benoit, Herault, Le Fèvre, Robert, "Replication is more efficient than you think", SC 2019.

    Examples
    --------
    >>> pair_failures(1), round(pair_failures(100_000), 1)
    (3.0, 561.5)
    """
    from scipy.special import poch

    pairs = require_real(pairs=pairs, at_least=1, at_most=1e12)
    if np.mod(pairs, 1).any():
        raise ValueError(f"pairs must be whole numbers, got {pairs!r}")
    return plain(1 + math.sqrt(math.pi) * poch(np.asarray(pairs) + 0.5, 0.5))


def pair_mtti(pairs: Real, process_mtbf: Real) -> Real:
    """Mean time until both processes of some pair are gone.

    Parameters
    ----------
    pairs : int or array
        Pairs b.
    process_mtbf : float or array
        Mean time between failures of one process [s].

    Returns
    -------
    float or numpy.ndarray
        Mean time to interruption [s]: `pair_failures` times mtbf / (2b); mtbf / b without replication.

    Examples
    --------
    >>> round(pair_mtti(pairs=100, process_mtbf=1.0), 5)
    0.09373
    """
    mtbf = require_time(process_mtbf=process_mtbf, positive=True)
    return plain(pair_failures(pairs) * mtbf / (2 * np.asarray(pairs)))
