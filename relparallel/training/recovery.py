"""Throughput of a job that goes on with fewer replicas after a failure.

Nodes fail and are repaired independently, every failed node by a repairman of its own; only the mean repair
time counts.
"""

from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from relparallel._checks import (
    bare,
    require_broadcast,
    require_choice,
    require_flag,
    require_int,
    require_real,
)
from relparallel.training._arguments import MOST_NODES, Real, require_rate, require_time

BATCHES: Final = ("shrink", "keep")


def elastic_throughput(
    nodes: int,
    nodes_per_replica: int,
    node_rate: Real,
    repair: Real,
    pause: Real,
    batch: str = "shrink",
    micro_batches: int | None = None,
    regroup: bool = False,
) -> Real:
    """Share of the failure-free throughput that a job keeps when it drops the replicas that are hit.

    Parameters
    ----------
    nodes, nodes_per_replica : int
        Nodes N of the job, and the g of them that stop together; N is a multiple of g.
    node_rate, repair : float or array
        Failures lam per node and second; mean time r until a failed node is back [s].
    pause : float or array
        Standstill of the whole job at each failure [s]: detection, regrouping, the step done again.
    batch : {"shrink", "keep"}
        "shrink": the global batch shrinks with the replicas. "keep": it is kept, so that the remaining
        replicas do more micro-batches each, a whole number of them.
    micro_batches : int, optional
        Micro-batches m per replica and step with all replicas up; for ``batch="keep"`` and only there.
    regroup : bool
        False: healthy nodes of a broken replica idle. True: they are put together to whole replicas.

    Returns
    -------
    float or numpy.ndarray
        Share in [0, 1].

    Notes
    -----
    A node is up for the share a = 1/(1 + lam r) of the time, and U of D = N/g units are up. "shrink" E[U/D] =
    a^g; "keep" E[m / ceil(D m / U)] where U = 0 counts 0; both times 1 / (1 + N lam pause). With ``regroup``
    U = floor((N - K)/g), K binomial (N, 1 - a), instead of U binomial (D, a^g). The pause counts failures at
    rate N lam, as if nodes under repair could fail as well, and neglects a second failure within it: both
    second order.

    References
    ----------
    Independent machines: Barlow and Proschan, "Mathematical Theory of Reliability", 1965, chapter 5.

    Examples
    --------
    >>> job = dict(nodes=2048, nodes_per_replica=16, node_rate=3.79e-3 / 86400, repair=86400, pause=30)
    >>> round(elastic_throughput(**job), 5)
    0.93874
    >>> round(elastic_throughput(**job, batch="keep", micro_batches=8), 5)
    0.88581
    """
    require_int(nodes_per_replica=nodes_per_replica, at_least=1, at_most=MOST_NODES)
    if require_int(nodes=nodes, at_least=1, at_most=MOST_NODES) % nodes_per_replica:
        raise ValueError(f"nodes must be a multiple of nodes_per_replica = {nodes_per_replica}, got {nodes}")
    check_batch(batch, micro_batches)
    require_flag(regroup=regroup)
    require_broadcast(node_rate=node_rate, repair=repair, pause=pause)
    node_rate, repair = require_rate(node_rate=node_rate), require_time(repair=repair)
    share = mean_speed(nodes, nodes_per_replica, node_rate, repair, batch, micro_batches, regroup)
    return bare(share / (1 + nodes * node_rate * require_time(pause=pause)))


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
        Whether nodes are first put in the order of their rates, so that bad ones share replicas. No other
        order keeps more: the mean of products is largest where like stands with like.

    Returns
    -------
    float
        (g / N) sum over replicas of prod 1 / (1 + lam_i r), over 1 + pause sum lam_i. With equal rates
        `elastic_throughput`. A job that restarts as a whole only sees the sum of the rates.

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
        raise ValueError(f"node_rates must be one for each node of whole replicas, got shape {rates.shape}")
    up = 1 / (1 + rates * float(require_time(repair=repair)))
    replicas = np.reshape(np.sort(up) if sort else up, (-1, nodes_per_replica))
    return float(replicas.prod(axis=1).mean() / (1 + rates.sum() * float(require_time(pause=pause))))


def statistical_efficiency(share: Real, noise: Real) -> Real:
    """Progress per sample of a batch that shrank to a share of its size, over that of the full batch.

    Parameters
    ----------
    share : float or array
        Size of the batch over the full one, above 0.
    noise : float or array
        Gradient noise scale over the full batch: 0 where every sample says the same, large where each says
        something new.

    Returns
    -------
    float or numpy.ndarray
        (noise + 1) / (noise + share). Throughput times this is the goodput of Pollux: a smaller batch loses
        less progress than samples, most where the full batch was larger than the noise.

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
    nodes: int, nodes_per_replica: int, node_rate: Real, repair: Real, batch: str, micro_batches: int | None,
    regroup: bool,
) -> Real:  # fmt: skip
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
        raise ValueError(f"micro_batches must be left out unless batch is 'keep', got {micro_batches!r}")


def speed_of(
    alive: NDArray[np.int64], replicas: int, batch: str, micro_batches: int | None
) -> NDArray[np.float64]:
    """Throughput, as a share of the full one, with a given number of replicas alive."""
    if batch == "shrink" or micro_batches is None:
        return alive / replicas
    rounds = -(-replicas * micro_batches // np.maximum(alive, 1))
    return np.where(alive > 0, micro_batches / rounds, 0.0)
