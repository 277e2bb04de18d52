"""Throughput of a job that goes on with fewer replicas after a failure.

Nodes fail and are repaired independently, every failed node by a repairman of its own; only the
mean repair time counts.
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from relparallel._checks import (
    bare,
    require_broadcast,
    require_choice,
    require_int,
    require_real,
)
from relparallel.training._arguments import Real

BATCHES: Final = ("shrink", "keep")


def statistical_efficiency(share: Real, noise: Real) -> Real:
    """Progress per sample of a batch shrunk to a share of its size, over that of the full batch.

    Parameters
    ----------
    share : float or array
        Size of the batch over the full one, above 0.
    noise : float or array
        Gradient noise scale over the full batch: 0 where every sample says the same, large where
        each says something new.

    Returns
    -------
    float or numpy.ndarray
        (noise + 1) / (noise + share). Throughput times this is the goodput of Pollux: a smaller
        batch loses less progress than samples, most where the full batch was larger than the noise.

    References
    ----------
    Qiao et al., "Pollux", OSDI 2021, equation 4. McCandlish et al., arXiv:1812.06162.

    Examples
    --------
    >>> [round(0.5 * statistical_efficiency(0.5, noise), 3) for noise in (0.0, 1.0, 100.0)]
    [1.0, 0.667, 0.502]
    """
    share = require_real(share=share, above=0, at_most=1)
    noise = require_real(noise=noise, at_least=0, at_most=1e30)
    require_broadcast(share=share, noise=noise)
    return bare((np.asarray(noise) + 1) / (noise + np.asarray(share)))


def mean_speed(
    nodes: int,
    nodes_per_replica: int,
    node_rate: Real,
    repair: Real,
    batch: str,
    micro_batches: int | None,
    regroup: bool,
) -> Real:
    """Mean share of the throughput with nodes missing, pauses aside."""
    from scipy.special import gammaln, xlog1py, xlogy

    up, replicas = 1 / (1 + node_rate * repair), nodes // nodes_per_replica
    if batch == "shrink" and not regroup:
        return bare(up**nodes_per_replica)
    trials, success = (nodes, up) if regroup else (replicas, up**nodes_per_replica)
    success = np.asarray(success, dtype=np.float64)[..., None]
    count = np.arange(trials + 1)
    choose = gammaln(trials + 1) - gammaln(count + 1) - gammaln(trials - count + 1)  # binomial
    chance = np.exp(choose + xlogy(count, success) + xlog1py(trials - count, -success))
    return bare(chance @ speed_of(count // (trials // replicas), replicas, batch, micro_batches))


def check_batch(batch: str, micro_batches: int | None) -> None:
    """Refuse micro-batches where they mean nothing, and ask for them where they are needed."""
    require_choice(BATCHES, batch=batch)
    if batch == "keep":
        require_int(micro_batches=micro_batches, at_least=1, at_most=10**9)
    elif micro_batches is not None:
        raise ValueError(
            f"micro_batches must be left out unless batch is 'keep', got {micro_batches!r}"
        )


def speed_of(
    alive: NDArray[np.int64], replicas: int, batch: str, micro_batches: int | None
) -> NDArray[np.float64]:
    """Throughput, as a share of the full one, with a given number of replicas alive."""
    if batch == "shrink" or micro_batches is None:
        return alive / replicas
    rounds = -(-replicas * micro_batches // np.maximum(alive, 1))
    return np.where(alive > 0, micro_batches / rounds, 0.0)
