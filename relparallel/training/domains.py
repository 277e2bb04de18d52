"""Blast radius: which ranks, replicas and nodes stop when one part of the cluster fails."""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from relparallel._checks import Result, require_flag, require_instance
from relparallel.hardware import Cluster
from relparallel.parallel import Placement, Strategy
from relparallel.training.failures import ComponentClass, behind, state_copies_lost

POLICIES: Final = ("restart", "spares", "elastic")
"""Wait for the repair; take a node from the spares; go on without the replicas that are hit."""


@dataclass(frozen=True, kw_only=True, slots=True)
class DropRule(Result):
    """Whether a job may go on without a failed replica, and who leaves with it."""

    allowed: bool  # whether every shard of the training state survives elsewhere
    copies: int  # of the whole state before the failure
    replicas: int  # that leave together
    reason: str


def drop_rule(strategy: Strategy, reshard: bool = True) -> DropRule:
    """Decide whether a replica may be dropped: only if its ZeRO shards survive elsewhere.

    Parameters
    ----------
    strategy : Strategy
        Its ``zero_stage``, ``shard`` and ``data`` decide.
    reshard : bool
        True: the rest of a shard group fetches the lost shards from another copy and stays. False:
        the whole group leaves.

    Returns
    -------
    DropRule
        Allowed if D/s >= 2: ZeRO stage 0 holds D copies of the state, stages 1 to 3 with shard
        groups of s ranks D/s. With s = D (plain ZeRO or FSDP) no replica can ever be dropped.

    References
    ----------
    Rajbhandari et al., "ZeRO", SC 2020, section 5: what each stage shards.

    Examples
    --------
    >>> drop_rule(Strategy(data=8, zero_stage=3, shard=4)).copies
    2
    """
    require_instance(Strategy, strategy=strategy)
    require_flag(reshard=reshard)
    copies, stage, data = strategy.state_copies, strategy.zero_stage, strategy.data
    together = 1 if reshard or stage == 0 else strategy.shard_group
    if data == 1:
        reason = "data = 1: there is no other replica to go on with"
    elif copies == 1:
        reason = f"ZeRO stage {stage} over all {data} replicas: the lost shards exist nowhere else"
    else:
        reason = f"{copies - 1} other copies of the training state survive"
    return DropRule(allowed=copies > 1, copies=copies, replicas=together, reason=reason)


@dataclass(frozen=True, kw_only=True, slots=True)
class BlastRadius(Result):
    """What stops when the worst-placed part of a class fails."""

    ranks: int
    replicas: int
    nodes: int  # with a stopped rank
    share: float  # of the job's ranks
    whole_job: bool
    reason: str


def blast_radius(
    component: ComponentClass,
    placement: Placement,
    cluster: Cluster,
    reshard: bool = True,
) -> BlastRadius:
    """Ranks, replicas and nodes of an elastic job that stop when one part of a class fails.

    Parameters
    ----------
    component : ComponentClass
        What fails; its level and effect count, its rate does not.
    placement, cluster : Placement, Cluster
        Strategy and rank order, which fill the nodes.
    reshard : bool
        As in `drop_rule`.

    Returns
    -------
    BlastRadius
        Of the worst-placed part of the class: the replicas with a rank behind it leave (their shard
        groups, without resharding). Where some shard has no copy elsewhere, the whole job stops.
        O(D parts + GPUs).

    Examples
    --------
    >>> strategy = Strategy(tensor=4, pipeline=12, data=8)
    >>> node = ComponentClass(name="node", level="node", rate=1e-8)
    >>> blast_radius(node, Placement(strategy=strategy), Cluster(nodes=48)).nodes
    12
    """
    require_instance(ComponentClass, component=component)
    require_instance(Placement, placement=placement)
    require_instance(Cluster, cluster=cluster)
    placement.strategy.for_gpus(cluster.gpus)
    rule = drop_rule(placement.strategy, reshard)
    width = cluster.gpus_per_part(component.level)
    if not component.stops:
        return BlastRadius(
            ranks=0,
            replicas=0,
            nodes=0,
            share=0.0,
            whole_job=False,
            reason=f"{component.name}: it slows the job and stops nothing",
        )
    if not component.local:
        return _whole_job(cluster, placement, f"{component.name}: it concerns the job itself")
    if not rule.allowed:
        return _whole_job(cluster, placement, rule.reason)
    listed = behind(placement, component.gpus, cluster.gpus_per_node)[2]
    if listed if component.gpus else state_copies_lost(placement, width).size:
        return _whole_job(
            cluster, placement, f"all copies of a shard sit behind one {component.level}"
        )
    dropped = _dropped(placement, width, rule.replicas, component.gpus)
    held = placement.replica_nodes(cluster.gpus_per_node)
    replicas = int(dropped.sum(axis=1).max())
    return BlastRadius(
        ranks=replicas * placement.strategy.model_parallel,
        replicas=replicas,
        nodes=int((dropped.astype(np.float32) @ held.astype(np.float32) > 0).sum(axis=1).max()),
        share=replicas / placement.strategy.data,
        whole_job=replicas == placement.strategy.data,
        reason=rule.reason,
    )


def _whole_job(cluster: Cluster, placement: Placement, reason: str) -> BlastRadius:
    """Everything stops."""
    return BlastRadius(
        ranks=cluster.gpus,
        replicas=placement.strategy.data,
        nodes=cluster.nodes,
        share=1.0,
        whole_job=True,
        reason=reason,
    )


def _dropped(
    placement: Placement, width: int, together: int, gpus: tuple[int, ...] = ()
) -> NDArray[np.bool_]:
    """Which replicas (columns) leave if a part of ``width`` GPUs in a row, or these GPUs, fails."""
    replicas = placement.replicas
    if gpus:
        units = np.isin(replicas, gpus).reshape(1, -1, together * replicas.shape[1]).any(axis=2)
        return np.repeat(units, together, axis=1)
    parts, count = -(-placement.strategy.gpus // width), len(replicas)
    hit = np.zeros((parts, count // together), dtype=np.bool_)
    hit[replicas // width, np.arange(count)[:, None] // together] = True
    # Parts that hit the same groups are interchangeable: keep one row of each kind, by its bits.
    bits = np.ascontiguousarray(np.packbits(hit, axis=1))
    kinds = np.unique(bits.view(f"V{bits.shape[1]}").ravel(), return_index=True)[1]
    return np.repeat(hit[kinds], together, axis=1)
