"""Throughput of a job that goes on with the replicas that are left."""

from relparallel._checks import bare
from relparallel.training._arguments import Real
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

    Of N ``nodes`` always g stop together; a node fails ``node_rate`` times a second and is back
    after ``repair`` seconds; at each failure the whole job stands still for ``pause`` seconds.
    ``batch``: the global batch shrinks with the replicas ("shrink"), or is kept ("keep"), so that
    the remaining replicas do more of the ``micro_batches`` of each with all of them up. With
    ``regroup`` healthy nodes of broken replicas are put together to whole ones.

    A node is up for the share a = 1/(1 + lam r) of the time, and U of D = N/g units are up.
    "shrink" E[U/D] = a^g; "keep" E[m / ceil(D m / U)] where U = 0 counts 0; both times 1 / (1 + N
    lam pause). With ``regroup`` U = floor((N - K)/g), K binomial (N, 1 - a), instead of U binomial
    (D, a^g). The pause counts failures at rate N lam, as if nodes under repair could fail as well,
    and neglects a second failure within it: both second order. Independent machines: Barlow and
    Proschan, "Mathematical Theory of Reliability", 1965, chapter 5.

    >>> job = dict(nodes=2048, nodes_per_replica=16, node_rate=3.79e-3 / 86400, repair=86400, pause=30)
    >>> round(elastic_throughput(**job), 5)
    0.93874
    >>> round(elastic_throughput(**job, batch="keep", micro_batches=8), 5)
    0.88581
    """
    if nodes % nodes_per_replica:
        raise ValueError(
            f"nodes must be a multiple of nodes_per_replica = {nodes_per_replica}, got {nodes}"
        )
    check_batch(batch, micro_batches)
    share = mean_speed(nodes, nodes_per_replica, node_rate, repair, batch, micro_batches, regroup)
    return bare(share / (1 + nodes * node_rate * pause))
