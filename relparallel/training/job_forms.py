"""Relative goodput of a recovery policy at an equal hardware budget, over many repair times.

The budget is N nodes. Every policy is charged for all of them: spares that stand by, replicas that
have dropped out, and time that is lost all count as goodput that is missing.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from relparallel._checks import (
    bare,
    flag,
    instance,
    real,
    record,
    require_choice,
    require_instance,
    require_int,
    whole,
)
from relparallel.parallel import Placement
from relparallel.training._arguments import FASTEST, LONGEST, MOST_NODES, Real, require_time
from relparallel.training.domains import POLICIES, blast_radius
from relparallel.training.factors import NEVER, Factors, best_rollback
from relparallel.training.failures import ComponentClass, FailureModel
from relparallel.training.recovery import check_batch, mean_speed
from relparallel.training.spares import loss_probability

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@record
class Job:
    """A training job on a budget of nodes, with its failure rates and what recovery costs.

    Parameters
    ----------
    nodes, nodes_per_replica : int
        Hardware budget N, and the g nodes of it that stop together; N is a multiple of g.
    node_rate, job_rate : float
        Failures lam per node and second that stop this node only; Lam_j per second that stop the
        whole job.
    checkpoint, restart, pause : float
        Blocking time C of a checkpoint, restart R after a failure, pause of an elastic job [s].
    batch, micro_batches, regroup
        As in `elastic_throughput`.
    droppable, reason : bool, str
        Whether a unit may be dropped at all, see `drop_rule`, and why not.

    Examples
    --------
    >>> job = Job(nodes=2048, nodes_per_replica=16, node_rate=3.79e-3 / 86400,
    ...           checkpoint=60, restart=900, pause=30)
    >>> round(relative_goodput(job, "elastic", repair=86400).share, 5)
    0.93874
    """

    nodes: int = whole(at_least=1, at_most=MOST_NODES)
    nodes_per_replica: int = whole(at_least=1, at_most=MOST_NODES)
    node_rate: float = real(at_least=0, at_most=FASTEST)
    checkpoint: float = real(at_least=0, at_most=LONGEST)
    restart: float = real(at_least=0, at_most=LONGEST)
    pause: float = real(at_least=0, at_most=LONGEST)
    job_rate: float = real(at_least=0, at_most=FASTEST, default=0.0)
    batch: str = "shrink"
    micro_batches: int | None = None
    regroup: bool = flag(default=False)
    droppable: bool = flag(default=True)
    reason: str = instance(str, default="")

    def __post_init__(self) -> None:
        if self.nodes % self.nodes_per_replica:
            raise ValueError(
                f"nodes must be a multiple of nodes_per_replica = {self.nodes_per_replica}, got "
                f"{self.nodes}"
            )
        check_batch(self.batch, self.micro_batches)

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
        """Build the job of a strategy, which fills the cluster: its blast radius is the unit.

        Not droppable where a shard of the training state would be lost; ``reshard`` as in
        `drop_rule`. Failures with a source are refused: those of a `Job` are independent.
        """
        if require_instance(FailureModel, failures=failures).source is not None:
            kind = type(failures.source).__name__
            raise ValueError(
                f"failures must be independent here, without a source, got {kind}: "
                + ("`goodput` takes it" if kind == "SharedEvents" else "`simulate` takes it")
            )
        cluster = failures.cluster
        if cluster.spare_trays and not any(entry.spared for entry in failures.classes):
            raise ValueError(
                "failures must be told apart by with_spare_trays(repair) first, got spare trays"
            )
        node = ComponentClass(name="node", level="node", rate=failures.node_rate)
        hit = unit = blast_radius(node, placement, cluster, reshard)
        if hit.whole_job:  # the unit in which spares are held back, whatever ZeRO shards
            plain_data = replace(placement.strategy, zero_stage=0, shard=None)
            unit = blast_radius(node, replace(placement, strategy=plain_data), cluster)
        if unit.nodes * cluster.gpus_per_node != unit.ranks or cluster.nodes % unit.nodes:
            raise ValueError(
                f"placement must give the replicas that leave together nodes of their own, got "
                f"{unit.replicas} replicas with {unit.ranks} ranks on {unit.nodes} nodes"
            )
        return cls(
            nodes=cluster.nodes,
            nodes_per_replica=unit.nodes,
            node_rate=failures.node_rate,
            job_rate=failures.job_rate,
            checkpoint=checkpoint,
            restart=restart,
            pause=pause,
            batch=batch,
            micro_batches=micro_batches,
            droppable=not hit.whole_job,
            reason=hit.reason if hit.whole_job else "",
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class RelativeGoodput(Factors):
    """Share of all nodes' failure-free throughput, and where the rest goes; numbers or arrays."""

    policy: str
    spares: Any  # nodes held back
    interval: (
        Real  # optimal work between checkpoints [s], infinite where nothing stops the whole job
    )
    ceiling: float = 0.0  # no number of spares that was left out reaches more than this

    def _said(self) -> str:
        shares = np.ravel(self.share)
        low, high = float(shares.min()), float(shares.max())
        share = f"{low:.2%}" + (
            f" to {high:.2%} at {shares.size} repair times" if shares.size > 1 else ""
        )
        return f"relative goodput {share} with {self.policy}; closed form"

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw what each factor keeps at the first repair time."""
        from relparallel.plotting import bars

        kept = self.to_frame().iloc[0].loc["share":"degraded_nodes"]
        return bars(100 * kept.astype(float), "kept [%]", ax)

    def to_frame(self) -> pd.DataFrame:
        """Return one row per repair time: policy, share, its factors, spares and interval."""
        columns = np.broadcast_arrays(*(np.atleast_1d(getattr(self, name)) for name in _COLUMNS))
        rows = [column.ravel() for column in columns]
        return pd.DataFrame({"policy": self.policy} | dict(zip(_COLUMNS, rows, strict=True)))


_COLUMNS: Final = (
    "share",
    "active",
    "availability",
    "recovery",
    "rollback",
    "degraded_nodes",
    "spares",
    "interval",
)


def relative_goodput(
    job: Job, policy: str, repair: Real, spares: int | None = None
) -> RelativeGoodput:
    """Relative goodput of a job under a recovery policy.

    Parameters
    ----------
    job : Job
        Budget, failures and costs.
    policy : {"restart", "spares", "elastic"}
        "restart": the job uses all nodes and waits for each repair. "spares": it uses N - S and
        takes a spare for a failed node, waiting only when none is left. "elastic": it uses all and
        goes on without the units that are hit.
    repair : float or array
        Mean time r until a failed node is back [s].
    spares : int, optional
        Nodes S held back, whole multiples of ``nodes_per_replica`` below N; the best number where
        omitted. Only for ``policy="spares"``.

    Returns
    -------
    RelativeGoodput
        With the shape of ``repair``.

    Notes
    -----
    With n = N - S, L = n lam + Lam_j, and y(c) the root of -log(1 - y) - y = c, which is W*/M:

    spares = (n/N) (1 - ErlangB(S + 1, n lam r)) (1 - y(C L)) e^{-R L}, exact for exponential
    failures and any distribution of repairs: waiting begins at a failure and stops the clock of all
    others. restart is S = 0.

    elastic = `elastic_throughput` (1 - y(C Lam_j)) e^{-R Lam_j}: only failures of the whole job go
    back to a checkpoint, and those that break the last of U units, N lam a^g (1 - a^g)^(U - 1) a
    second with the share a of nodes that are up. A product of means; it neglects that a pause may
    meet a failure of the whole job.

    `goodput` of the same job without pauses, for all repair times at once; with a pause it also
    counts the failures that fall into it. The best S is found by enumeration: (n/N)(1 - y) e^{-RL}
    does not depend on r and bounds the goodput; the search ends once its maximum over all larger S
    lies below what is reached. (Daly 2006; Erlang 1917.)

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


def _elastic(job: Job, repair: Any) -> RelativeGoodput:
    """Drop the units that are hit; go back to a checkpoint only when the whole job is hit."""
    if not job.droppable:
        raise ValueError(
            f"policy must be 'restart' or 'spares' for this job, got 'elastic': {job.reason}"
        )
    units, whole = job.nodes // job.nodes_per_replica, job.node_rate * repair
    whole = (1 + np.asarray(whole)) ** -job.nodes_per_replica
    last = job.nodes * job.node_rate * whole * (1 - whole) ** (units - 1)
    rate = job.job_rate + np.where(~np.bool_(job.regroup) & (last > NEVER), last, 0.0)
    kept, interval = best_rollback(job.checkpoint, job.restart, rate)
    batch = job.batch, job.micro_batches, job.regroup
    return RelativeGoodput(
        policy="elastic",
        recovery=1 / (1 + job.nodes * job.node_rate * job.pause),
        rollback=bare(kept),
        degraded_nodes=mean_speed(job.nodes, job.nodes_per_replica, job.node_rate, repair, *batch),
        spares=0,
        interval=bare(interval),
    )


def _with_spares(job: Job, policy: str, repair: Any, spares: NDArray[np.int64]) -> RelativeGoodput:
    """Hold back spares; the whole job stops at every failure and waits when short of nodes."""
    active = job.nodes - spares
    kept, interval = best_rollback(
        job.checkpoint, job.restart, active * job.node_rate + job.job_rate
    )
    available = 1 - loss_probability(spares + 1, active * job.node_rate * repair)
    return RelativeGoodput(
        policy=policy,
        active=bare(active / job.nodes),
        availability=bare(available),
        rollback=bare(kept),
        spares=int(spares) if spares.ndim == 0 else spares,
        interval=bare(interval),
    )


_BLOCK: Final = 8  # numbers of spares evaluated at once


def _best_spares(job: Job, repair: Any) -> RelativeGoodput:
    """Best whole number of units held back, for every repair time."""
    flat = np.asarray(repair, dtype=np.float64).ravel()
    candidates = np.arange(0, job.nodes, job.nodes_per_replica)
    active = job.nodes - candidates
    rates = active * job.node_rate + job.job_rate
    bound = active / job.nodes * best_rollback(job.checkpoint, job.restart, rates)[0]
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
    return replace(
        _with_spares(job, "spares", repair, held.reshape(np.shape(repair))), ceiling=skipped
    )
