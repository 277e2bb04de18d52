"""Whether a copy of a checkpoint in memory is left."""

import numpy as np
from numpy.typing import NDArray

from relparallel._checks import bare, require_broadcast, require_int
from relparallel.training._arguments import Real, require_rate, require_time
from relparallel.training.redundancy import LARGEST, replicas_placed, shards_held


def checkpoint_recovery_probability(
    nodes: int, replicas: int, failures: int | NDArray[np.int64], placement: str = "group"
) -> Real:
    """Probability that every shard survives in memory when k nodes fail at random places.

    Parameters
    ----------
    nodes, replicas : int
        Nodes N, and the m of them that hold a shard, the owner counted; m divides N in groups.
    failures : int or array of int
        Failed nodes k, at most N.
    placement : {"group", "ring", "mixed"}
        Who holds the copies.

    Returns
    -------
    float or numpy.ndarray
        Share of the C(N, k) subsets with a surviving copy everywhere, correctly rounded: in groups
        the coefficient of x^k in ((1 + x)^m - x^m)^(N/m); on a ring N/(N-k) times that in (1 + ...
        + x^(m-1))^(N-k).

    References
    ----------
    Wang et al., "Gemini", SOSP 2023, section 4. Li et al., "Parameter Server", OSDI 2014, section
    4.3 (ring).

    Examples
    --------
    >>> round(checkpoint_recovery_probability(nodes=12, replicas=2, failures=6, placement="group"), 6)
    0.069264
    """
    replicas_placed(nodes, replicas, placement)
    wanted = [
        require_int(failures=k, at_least=0, at_most=nodes)
        for k in np.ravel(np.asarray(failures, object))
    ]
    if not wanted:
        raise ValueError(f"failures must hold at least one number, got {failures}")
    kept = [shards_held(nodes, replicas, k, placement) for k in wanted]
    return bare(np.array(kept).reshape(np.shape(failures)))


def time_to_pair_loss(nodes: int, node_rate: Real, window: Real) -> Real:
    """Mean time until both nodes of a pair are down at once, if nodes fail independently.

    Parameters
    ----------
    nodes : int
        Nodes N, in pairs.
    node_rate, window : float or array
        Failures of a node per second; time from a failure until the copy is whole again [s].

    Returns
    -------
    float or numpy.ndarray
        1/(N lam (1 - e^{-lam w})) [s], relative error below lam w; infinite without failures or a
        window.

    Examples
    --------
    >>> round(time_to_pair_loss(nodes=2048, node_rate=3.79e-3 / 86400, window=600.0) / (365 * 86400), 2)
    13.41
    """
    if require_int(nodes=nodes, at_least=2, at_most=LARGEST) % 2:
        raise ValueError(f"nodes must be even, got {nodes}")
    node_rate, window = require_rate(node_rate=node_rate), require_time(window=window)
    require_broadcast(node_rate=node_rate, window=window)
    with np.errstate(divide="ignore"):
        return bare(np.divide(1.0, -nodes * node_rate * np.expm1(-node_rate * window)))
