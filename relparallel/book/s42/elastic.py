"""Throughput of a job that goes on with the replicas that are left."""

from relparallel._checks import (
    bare,
    require_broadcast,
    require_flag,
    require_int,
)
from relparallel.training._arguments import MOST_NODES, Real, require_rate, require_time
from relparallel.training.recovery import check_batch, mean_speed


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
    """Share of the failure-free throughput that a job keeps if it drops the replicas that are hit.

    Parameters
    ----------
    nodes, nodes_per_replica : int
        Nodes N of the job, and the g of them that stop together; N is a multiple of g.
    node_rate, repair : float or array
        Failures lam per node and second; mean time r until a failed node is back [s].
    pause : float or array
        Standstill of the whole job at each failure [s]: detection, regrouping, the step done again.
    batch : {"shrink", "keep"}
        "shrink": the global batch shrinks with the replicas. "keep": it is kept, so that the
        remaining replicas do more micro-batches each, a whole number of them.
    micro_batches : int, optional
        Micro-batches m per replica and step with all replicas up; for ``batch="keep"`` and only
        there.
    regroup : bool
        False: healthy nodes of a broken replica idle. True: they are put together to whole
        replicas.

    Returns
    -------
    float or numpy.ndarray
        Share in [0, 1].

    Notes
    -----
    A node is up for the share a = 1/(1 + lam r) of the time, and U of D = N/g units are up.
    "shrink" E[U/D] = a^g; "keep" E[m / ceil(D m / U)] where U = 0 counts 0; both times 1 / (1 + N
    lam pause). With ``regroup`` U = floor((N - K)/g), K binomial (N, 1 - a), instead of U binomial
    (D, a^g). The pause counts failures at rate N lam, as if nodes under repair could fail as well,
    and neglects a second failure within it: both second order.

    References
    ----------
    Independent machines: Barlow and Proschan, "Mathematical Theory of Reliability", 1965, chapter
    5.

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
        raise ValueError(
            f"nodes must be a multiple of nodes_per_replica = {nodes_per_replica}, got {nodes}"
        )
    check_batch(batch, micro_batches)
    require_flag(regroup=regroup)
    require_broadcast(node_rate=node_rate, repair=repair, pause=pause)
    node_rate, repair = require_rate(node_rate=node_rate), require_time(repair=repair)
    share = mean_speed(nodes, nodes_per_replica, node_rate, repair, batch, micro_batches, regroup)
    return bare(share / (1 + nodes * node_rate * require_time(pause=pause)))
