"""Goodput of a recovery policy at an equal hardware budget: the share of the failure-free throughput.

The budget is N nodes. Every policy is charged for all of them: spares that stand by, replicas that have
dropped out, and time that is lost all count as goodput that is missing. Goodput is a product of four factors,

    share = active * available * effective * elastic,

active     nodes that the job is laid out for, over N (spares stand by);
available  time in which the job has the nodes that it needs (not waiting for a repair);
effective  of this time, what checkpoints, restarts and work done twice leave, at the exact optimal interval;
elastic    throughput that the replicas alive give, pauses included.

========  ==========================================================  =====================
letter    meaning                                                     field of `Job`
========  ==========================================================  =====================
N         hardware budget                                             ``nodes``
g         nodes that stop together when one fails                     ``nodes_per_replica``
lam       failures that stop one node, per node and second            ``node_rate``
Lam_j     failures that stop the whole job, per second                ``job_rate``
C, R      checkpoint and restart [s]                                  ``checkpoint``, ``restart``
t         pause of an elastic job at each failure [s]                 ``pause``
r         mean time until a failed node is back [s]                   argument ``repair``
========  ==========================================================  =====================
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from relparallel._checks import (
    require_choice,
    require_flag,
    require_instance,
    require_int,
    require_probability,
    require_real,
)
from relparallel.parallel import Placement
from relparallel.training._arguments import MOST_NODES, Real, plain, require_rate, require_time
from relparallel.training.checkpointing import lost_share
from relparallel.training.domains import POLICIES, blast_radius
from relparallel.training.failures import ComponentClass, FailureModel
from relparallel.training.recovery import _check_batch, elastic_throughput
from relparallel.training.spares import _erlang_b

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, kw_only=True, slots=True)
class Job:
    """A training job on a budget of nodes, with its failure rates and what recovery costs.

    Parameters
    ----------
    nodes : int
        Hardware budget N, a multiple of ``nodes_per_replica``.
    nodes_per_replica : int
        Nodes g that stop together: those of one replica, or of the replicas that must leave together.
    node_rate : float
        Failures per node and second that stop this node only.
    checkpoint, restart, pause : float
        Blocking time of a checkpoint, restart after a failure, pause of an elastic job [s].
    job_rate : float
        Failures per second that stop the whole job: software, and data corruption.
    batch, micro_batches, regroup
        As in `elastic_throughput`.
    droppable : bool
        Whether a unit may be dropped at all; see `drop_rule`.
    reason : str
        Why not.

    Examples
    --------
    >>> job = Job(nodes=2048, nodes_per_replica=16, node_rate=3.79e-3 / 86400,
    ...           checkpoint=60, restart=900, pause=30)
    >>> round(relative_goodput(job, "elastic", repair=86400).share, 5)
    0.93874
    """

    nodes: int
    nodes_per_replica: int
    node_rate: float
    checkpoint: float
    restart: float
    pause: float
    job_rate: float = 0.0
    batch: str = "shrink"
    micro_batches: int | None = None
    regroup: bool = False
    droppable: bool = True
    reason: str = ""

    def __post_init__(self) -> None:
        require_int(nodes_per_replica=self.nodes_per_replica, at_least=1, at_most=MOST_NODES)
        if require_int(nodes=self.nodes, at_least=1, at_most=MOST_NODES) % self.nodes_per_replica:
            raise ValueError(
                f"nodes must be a multiple of nodes_per_replica = {self.nodes_per_replica}, got {self.nodes}"
            )
        require_instance(float, node_rate=require_rate(node_rate=self.node_rate))
        require_instance(float, job_rate=require_rate(job_rate=self.job_rate))
        for name in ("checkpoint", "restart", "pause"):
            require_instance(float, **{name: require_time(**{name: getattr(self, name)})})
        _check_batch(self.batch, self.micro_batches)
        require_flag(regroup=self.regroup, droppable=self.droppable)
        require_instance(str, reason=self.reason)

    @classmethod
    def of(
        cls,
        placement: Placement,
        failures: FailureModel,
        *,
        checkpoint: float,
        restart: float,
        pause: float,
        batch: str = "shrink",
        micro_batches: int | None = None,
        reshard: bool = True,
    ) -> Job:
        """Build the job of a strategy: its blast radius decides how many nodes stop together.

        Parameters
        ----------
        placement : Placement
            Strategy and rank order.
        failures : FailureModel
            Rates and cluster; the placement fills the cluster.
        checkpoint, restart, pause, batch, micro_batches
            As the fields.
        reshard : bool
            As in `drop_rule`.

        Returns
        -------
        Job
            Not droppable where a shard of the training state would be lost.
        """
        require_instance(FailureModel, failures=failures)
        cluster = failures.cluster
        node = ComponentClass(name="node", level="node", rate=failures.node_rate)
        hit = unit = blast_radius(node, placement, cluster, policy="elastic", reshard=reshard)
        if hit.whole_job:  # the unit in which spares are held back, whatever ZeRO shards
            plain_data = replace(placement.strategy, zero_stage=0, shard=None)
            unit = blast_radius(node, replace(placement, strategy=plain_data), cluster)
        if unit.nodes * cluster.gpus_per_node != unit.ranks or cluster.nodes % unit.nodes:
            raise ValueError(
                f"placement must give the replicas that leave together nodes of their own, got "
                f"{unit.replicas} replicas with {unit.ranks} ranks on {unit.nodes} nodes"
            )
        return cls(
            nodes=cluster.nodes, nodes_per_replica=unit.nodes, node_rate=failures.node_rate,
            job_rate=failures.job_rate, checkpoint=checkpoint, restart=restart, pause=pause, batch=batch,
            micro_batches=micro_batches, droppable=not hit.whole_job,
            reason=hit.reason if hit.whole_job else "",
        )  # fmt: skip


@dataclass(frozen=True, kw_only=True, slots=True)
class Goodput:
    """Share of the failure-free throughput of all nodes, and where the rest goes.

    Parameters
    ----------
    policy : {"restart", "spares", "elastic"}
        Recovery policy.
    share, active, available, effective, elastic : float or numpy.ndarray
        The product and its four factors, each in [0, 1].
    spares : int or numpy.ndarray
        Nodes held back.
    interval : float or numpy.ndarray
        Optimal work between checkpoints [s]; infinite where nothing ever stops the whole job.
    ceiling : float or numpy.ndarray
        Proof of the best number of spares: no number that was left out reaches more than this.

    Examples
    --------
    >>> job = Job(nodes=64, nodes_per_replica=4, node_rate=4e-8, checkpoint=60, restart=600, pause=30)
    >>> best = relative_goodput(job, "spares", repair=86400)
    >>> best.spares, round(best.share, 4)
    (4, 0.9204)
    """

    policy: str
    share: Real
    active: Real
    available: Real
    effective: Real
    elastic: Real
    spares: Any
    interval: Real
    ceiling: Real = 0.0

    def __post_init__(self) -> None:
        require_choice(POLICIES, policy=self.policy)
        require_probability(share=self.share, active=self.active, available=self.available)
        require_probability(effective=self.effective, elastic=self.elastic, ceiling=self.ceiling)
        if np.mod(require_real(spares=self.spares, at_least=0, at_most=MOST_NODES), 1).any():
            raise ValueError(f"spares must be whole numbers, got {self.spares!r}")
        require_real(interval=self.interval, at_least=0, infinite=True)

    def to_frame(self) -> pd.DataFrame:
        """Return one row per repair time with the share, its four factors, spares and interval.

        Returns
        -------
        pandas.DataFrame
            Columns policy, share, active, available, effective, elastic, spares, interval.
        """
        import pandas as pd

        names = ("share", "active", "available", "effective", "elastic", "spares", "interval")
        columns = np.broadcast_arrays(*(np.atleast_1d(getattr(self, name)) for name in names))
        return pd.DataFrame(
            {"policy": self.policy, **{n: c.ravel() for n, c in zip(names, columns, strict=True)}}
        )


def relative_goodput(job: Job, policy: str, repair: Real, spares: int | None = None) -> Goodput:
    """Relative goodput of a job under a recovery policy.

    Parameters
    ----------
    job : Job
        Budget, failures and costs.
    policy : {"restart", "spares", "elastic"}
        "restart": the job uses all nodes and waits for each repair. "spares": it uses N - S and takes a spare
        for a failed node, waiting only when none is left. "elastic": it uses all and goes on without the
        units that are hit.
    repair : float or array
        Mean time until a failed node is back [s].
    spares : int, optional
        Nodes S held back, whole multiples of ``nodes_per_replica`` below N; the best number where omitted.
        Only for ``policy="spares"``.

    Returns
    -------
    Goodput
        With the shape of ``repair``.

    Raises
    ------
    TypeError, ValueError
        If an argument has the wrong type or is out of range, or the policy is "elastic" and the job's state
        would not survive a dropped replica.

    Notes
    -----
    With n = N - S, L = n lam + Lam_j, and y(c) the root of -log(1 - y) - y = c, which is W*/M:

    spares = (n/N) (1 - ErlangB(S + 1, n lam r)) (1 - y(C L)) e^{-R L}, exact for exponential failures and any
    repair law: waiting begins at a failure and stops the clock of all others. restart is its case S = 0,
    where the second factor is 1/(1 + N lam r).

    elastic = `elastic_throughput` (1 - y(C Lam_j)) e^{-R Lam_j}: only failures of the whole job go back to a
    checkpoint. A product of means; it neglects that a pause may meet a failure of the whole job.

    The best S is found by enumeration. (n/N)(1 - y) e^{-RL} does not depend on r and bounds the goodput; the
    search ends once its maximum over all larger S lies below what is already reached.

    References
    ----------
    Daly 2006; Erlang 1917; see `checkpointing` and `recovery`.

    Examples
    --------
    >>> job = Job(nodes=2048, nodes_per_replica=16, node_rate=3.79e-3 / 86400,
    ...           checkpoint=60, restart=900, pause=30)
    >>> results = [relative_goodput(job, p, repair=86400) for p in ("restart", "spares", "elastic")]
    >>> [round(result.share, 3) for result in results]
    [0.095, 0.823, 0.939]
    """
    require_instance(Job, job=job)
    require_choice(POLICIES, policy=policy)
    repair = require_time(repair=repair)
    if spares is not None and policy != "spares":
        raise ValueError(f"spares must be left out unless policy is 'spares', got {spares!r}")
    if policy == "elastic":
        return _elastic(job, repair)
    held = 0 if policy == "restart" else spares
    if held is None:
        return _best_spares(job, repair)
    most = job.nodes - job.nodes_per_replica
    if require_int(spares=held, at_least=0, at_most=most) % job.nodes_per_replica:
        raise ValueError(f"spares must be a multiple of {job.nodes_per_replica}, got {spares!r}")
    return _with_spares(job, policy, repair, np.asarray(held))


def _elastic(job: Job, repair: Any) -> Goodput:
    """Drop the units that are hit; go back to a checkpoint only when the whole job is hit."""
    if not job.droppable:
        raise ValueError(f"policy must be 'restart' or 'spares' for this job, got 'elastic': {job.reason}")
    throughput = elastic_throughput(
        job.nodes, job.nodes_per_replica, job.node_rate, repair, job.pause,
        job.batch, job.micro_batches, job.regroup,
    )  # fmt: skip
    effective, interval = _checkpointed(job, np.asarray(job.job_rate))
    return Goodput(
        policy="elastic", share=plain(throughput * effective), active=1.0, available=1.0,
        effective=plain(effective), elastic=throughput, spares=0, interval=plain(interval),
    )  # fmt: skip


def _checkpointed(job: Job, rate: Any) -> tuple[Any, Any]:
    """Largest ETTR without waiting, and the interval that reaches it, for failure rates of the whole job."""
    lost = np.asarray(lost_share(job.checkpoint * rate))
    interval = np.divide(lost, rate, out=np.full(lost.shape, np.inf), where=rate > 0)
    return (1 - lost) * np.exp(-job.restart * rate), interval


def _with_spares(job: Job, policy: str, repair: Any, spares: NDArray[np.int64]) -> Goodput:
    """Hold back spares; the job stops as a whole at every failure and waits when it is short of nodes."""
    active = job.nodes - spares
    effective, interval = _checkpointed(job, active * job.node_rate + job.job_rate)
    available = 1 - _erlang_b(spares + 1, active * job.node_rate * repair)
    share = active / job.nodes * available * effective
    whole = int(spares) if spares.ndim == 0 else spares
    return Goodput(
        policy=policy, share=plain(share), active=plain(active / job.nodes), available=plain(available),
        effective=plain(effective), elastic=1.0, spares=whole, interval=plain(interval),
    )  # fmt: skip


_BLOCK = 8  # numbers of spares evaluated at once


def _best_spares(job: Job, repair: Any) -> Goodput:
    """Best whole number of units held back, for every repair time."""
    flat = np.asarray(repair, dtype=np.float64).ravel()
    candidates = np.arange(0, job.nodes, job.nodes_per_replica)
    active = job.nodes - candidates
    bound = active / job.nodes * _checkpointed(job, active * job.node_rate + job.job_rate)[0]
    ceiling = np.maximum.accumulate(bound[::-1])[::-1]  # of this and all larger numbers of spares
    best, held, skipped = np.full(flat.shape, -1.0), np.zeros(flat.shape, dtype=np.int64), 0.0
    for start in range(0, len(candidates), _BLOCK):
        if (ceiling[start] <= best).all():
            skipped = float(ceiling[start])
            break
        block = candidates[start : start + _BLOCK, None]
        share = np.atleast_2d(_with_spares(job, "spares", flat, block).share)
        first = share.argmax(axis=0)
        value = share[first, np.arange(flat.size)]
        better = value > best
        best, held = np.where(better, value, best), np.where(better, block[first, 0], held)
    return replace(_with_spares(job, "spares", repair, held.reshape(np.shape(repair))), ceiling=skipped)
