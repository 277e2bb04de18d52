"""Whether a copy of a checkpoint in memory is left."""

import numpy as np
from numpy.typing import NDArray

from relparallel._checks import bare
from relparallel.training._arguments import Real
from relparallel.training.redundancy import replicas_placed, shards_held


def checkpoint_recovery_probability(
    nodes: int, replicas: int, failures: int | NDArray[np.int64], placement: str = "group"
) -> Real:
    """Probability that every shard survives in memory when k of N nodes fail at random places.

    m nodes hold a shard, the owner counted, in a "group" (m divides N), on a "ring" or "mixed". The
    share of the C(N, k) subsets with a surviving copy everywhere, correctly rounded: in groups the
    coefficient of x^k in ((1 + x)^m - x^m)^(N/m); on a ring N/(N-k) times that in (1 + ... +
    x^(m-1))^(N-k). Wang et al., "Gemini", SOSP 2023, section 4. Li et al., "Parameter Server", OSDI
    2014, section 4.3 (ring).

    >>> round(checkpoint_recovery_probability(nodes=12, replicas=2, failures=6, placement="group"), 6)
    0.069264
    """
    replicas_placed(nodes, replicas, placement)
    kept = [shards_held(nodes, replicas, k, placement) for k in np.ravel(failures).tolist()]
    return bare(np.array(kept).reshape(np.shape(failures)))


def time_to_pair_loss(nodes: int, node_rate: Real, window: Real) -> Real:
    """Mean time [s] until both nodes of a pair are down at once, of N nodes in pairs that fail independently.

    A failure opens a ``window`` [s] until the copy is whole again: 1/(N lam (1 - e^{-lam w})),
    relative error below lam w; infinite without failures or a window.

    >>> round(time_to_pair_loss(nodes=2048, node_rate=3.79e-3 / 86400, window=600.0) / (365 * 86400), 2)
    13.41
    """
    if nodes % 2:
        raise ValueError(f"nodes must be even, got {nodes}")
    with np.errstate(divide="ignore"):
        return bare(np.divide(1.0, -nodes * node_rate * np.expm1(-node_rate * window)))
