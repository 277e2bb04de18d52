"""Strategy, recovery policy, spares and checkpoint interval, chosen together.

A planner that looks at speed alone picks the strategy with the largest throughput T_i. Here the goodput T_i
times the share of `relative_goodput` is maximised over all four choices at an equal hardware budget:

- strategy and policy are enumerated (tens of pairs);
- the number of spares is enumerated under a bound that proves that nothing better was left out;
- the checkpoint interval is the closed-form optimum of the exact exponential model.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING

from relparallel._checks import (
    instance,
    real,
    record,
    require_choice,
    require_instance,
    require_int,
    require_real,
)
from relparallel.hardware import Cluster
from relparallel.parallel import Placement, Strategy
from relparallel.published import Fact
from relparallel.training import (
    POLICIES,
    ComponentClass,
    FailureModel,
    Goodput,
    Job,
    checkpoint_time,
    relative_goodput,
)
from relparallel.units import TFLOP
from relparallel.workload import Transformer

if TYPE_CHECKING:
    import pandas as pd


@record
class Candidate:
    """A strategy with its measured speed and its exposure to failures.

    Parameters
    ----------
    name : str
        Shown in tables.
    throughput : float
        Failure-free throughput of all nodes [tokens/s].
    job : Job
        Budget, nodes that stop together, failure rates and costs.

    Examples
    --------
    >>> job = Job(nodes=48, nodes_per_replica=6, node_rate=4e-8, checkpoint=40, restart=300, pause=30)
    >>> Candidate(name="tp4 pp12 dp8", throughput=4e4, job=job).job.nodes_per_replica
    6
    """

    name: str = instance(str)
    throughput: float = real(above=0, at_most=1e30)
    job: Job = instance(Job)


def published_candidate(
    fact: Fact,
    *,
    node_rate: float,
    job_rate: float = 0.0,
    write_bandwidth: float,
    restart: float,
    pause: float,
    vocabulary: int = 51200,
    shard: int | None = None,
    zero_stage: int | None = None,
    order: tuple[str, ...] = ("tensor", "context", "data", "pipeline"),
) -> Candidate:
    """Turn a published measurement of a strategy into a candidate.

    Parameters
    ----------
    fact : Fact
        Row with the model (h, layers, heads, s), the degrees (tp, pp, dp), mbs, gbs, zero and gpus; its value
        is an iteration time [s] or the TFLOP/s of each GPU, recomputation counted.
    node_rate : float
        Failures per node of 8 GPUs and second that stop this node only.
    job_rate : float
        Failures per second that stop the whole job.
    write_bandwidth : float
        Of the storage, as a whole [bytes/s]; a checkpoint holds 14 bytes per parameter.
    restart : float
        Fixed part of a restart [s]; reading the checkpoint at the same bandwidth is added.
    pause : float
        Standstill of an elastic job at each failure [s].
    vocabulary : int
        Vocabulary of the model.
    shard, zero_stage : int, optional
        Replace the row's sharding of the state: what a job has to give up to become elastic.
    order : tuple of str
        Rank order of the placement.

    Returns
    -------
    Candidate
        With its throughput in tokens/s.

    References
    ----------
    Narayanan et al. 2021, table 1 and eq. 3 (rows ``PTDP-*``).

    Examples
    --------
    >>> from relparallel.published import facts
    >>> row = facts("parallelism-cost")["PTDP-0010"]
    >>> costs = dict(write_bandwidth=57.5e9, restart=300.0, pause=30.0)
    >>> candidate = published_candidate(row, node_rate=3.79e-3 / 86400, **costs)
    >>> candidate.name, candidate.job.nodes_per_replica, round(candidate.throughput)
    ('tp8 pp64 dp6', 64, 61302)
    """
    require_instance(Fact, fact=fact)
    require_real(node_rate=node_rate, job_rate=job_rate, at_least=0, at_most=1e9)
    require_real(write_bandwidth=write_bandwidth, at_least=1, at_most=1e18)
    require_real(restart=restart, pause=pause, at_least=0, at_most=1e18)
    require_int(vocabulary=vocabulary, at_least=1, at_most=10**9)
    row = fact.inputs
    missing = [key for key in _NEEDED if not isinstance(row.get(key), int)]
    if missing:
        raise ValueError(f"fact must give {', '.join(missing)} as whole numbers, got {fact.id}: {row!r}")
    size = {key: int(row[key]) for key in _NEEDED}
    strategy = Strategy(
        tensor=size["tp"], pipeline=size["pp"], data=size["dp"], micro_batch=size["mbs"], shard=shard,
        zero_stage=size["zero"] if zero_stage is None else require_int(zero_stage=zero_stage),
    ).for_gpus(size["gpus"])  # fmt: skip
    model = Transformer(
        layers=size["layers"], hidden=size["h"], heads=size["heads"], sequence=size["s"],
        vocabulary=vocabulary,
    )  # fmt: skip
    save = float(checkpoint_time(model.parameters, write_bandwidth))
    classes = (
        ComponentClass(name="node", level="node", rate=node_rate),
        ComponentClass(name="job", level="job", rate=job_rate),
    )
    failures = FailureModel(classes=classes, cluster=Cluster(nodes=-(-strategy.gpus // 8)))
    job = Job.of(
        Placement(strategy=strategy, order=order), failures,
        checkpoint=save, restart=restart + save, pause=pause,
    )  # fmt: skip
    name = f"tp{strategy.tensor} pp{strategy.pipeline} dp{strategy.data}"
    tokens = size["gbs"] * size["s"]
    return Candidate(name=name, throughput=tokens / _iteration_time(fact, model, size), job=job)


_NEEDED = ("h", "layers", "heads", "s", "tp", "pp", "dp", "mbs", "gbs", "zero", "gpus")


def _iteration_time(fact: Fact, model: Transformer, size: dict[str, int]) -> float:
    """Seconds of one iteration, measured or from the measured FLOP/s."""
    require_choice(("s", "TFLOP/s"), unit=fact.unit)
    value = float(fact.value_text)
    if fact.unit == "s":
        return value
    return model.flops_per_iteration(size["gbs"], recompute="full") / (value * TFLOP * size["gpus"])


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    """One strategy under one policy, with its best spares and its best checkpoint interval."""

    candidate: Candidate
    policy: str
    found: Goodput

    @property
    def spares(self) -> int:
        """Nodes held back."""
        return int(self.found.spares)

    @property
    def interval(self) -> float:
        """Work between two checkpoints [s]; infinite where none is needed."""
        return float(self.found.interval)

    @property
    def share(self) -> float:
        """Relative goodput."""
        return float(self.found.share)

    @property
    def goodput(self) -> float:
        """Tokens per second that become progress."""
        return self.candidate.throughput * self.share


@dataclass(frozen=True, kw_only=True, slots=True)
class JointOptimum:
    """All plans, one for each strategy and admissible policy, by falling goodput."""

    plans: tuple[Plan, ...]

    @property
    def best(self) -> Plan:
        """The plan with the largest goodput."""
        return self.plans[0]

    @property
    def fastest(self) -> Plan:
        """The best plan of the strategy with the largest failure-free throughput."""
        top = max(plan.candidate.throughput for plan in self.plans)
        return next(plan for plan in self.plans if plan.candidate.throughput == top)

    @property
    def price_of_speed(self) -> float:
        """Goodput lost, as a share of the best, by whoever chooses the strategy by its throughput."""
        return 1 - self.fastest.goodput / self.best.goodput if self.best.goodput else 0.0

    def to_frame(self) -> pd.DataFrame:
        """One row per plan, the best first: strategy, policy, spares, interval [s], goodput [tokens/s]."""
        import pandas as pd

        return pd.DataFrame(
            [
                {
                    "strategy": plan.candidate.name, "policy": plan.policy,
                    "blast radius": plan.candidate.job.nodes_per_replica, "spares": plan.spares,
                    "interval": plan.interval, "throughput": plan.candidate.throughput, "share": plan.share,
                    "goodput": plan.goodput, "left out": plan.found.ceiling,
                }
                for plan in self.plans
            ]
        )  # fmt: skip


def joint_optimum(
    candidates: Sequence[Candidate], repair: float, policies: Sequence[str] = POLICIES
) -> JointOptimum:
    """Best strategy, policy, spares and checkpoint interval for a mean repair time.

    Parameters
    ----------
    candidates : sequence of Candidate
        Strategies on the same number of nodes.
    repair : float
        Mean time until a failed node is back [s].
    policies : sequence of {"restart", "spares", "elastic"}
        Policies to choose from. A candidate whose state would not survive a dropped replica is not offered
        "elastic".

    Returns
    -------
    JointOptimum
        All plans, the best first; equal goodput in the order given.

    Notes
    -----
    Exact within the model of `relative_goodput`: the interval by Lambert's W, spares by enumeration with a
    bound. O(candidates x policies) evaluations. Under "restart" alone the share does not depend on the
    strategy, so that the fastest is the best; it need not be under the other two.

    References
    ----------
    See `relative_goodput`.

    Examples
    --------
    >>> common = dict(node_rate=4e-8, checkpoint=40.0, restart=300.0, pause=30.0, nodes=48)
    >>> wide = Candidate(name="12 nodes", throughput=1.01, job=Job(nodes_per_replica=12, **common))
    >>> narrow = Candidate(name="6 nodes", throughput=1.0, job=Job(nodes_per_replica=6, **common))
    >>> [joint_optimum([wide, narrow], repair=r * 3600.0).best.candidate.name for r in (1, 24)]
    ['12 nodes', '6 nodes']
    """
    if isinstance(candidates, str) or not isinstance(candidates, Sequence) or not candidates:
        raise TypeError(f"candidates must be a sequence of at least one Candidate, got {candidates!r}")
    for candidate in candidates:
        require_instance(Candidate, candidates=candidate)
    if len({candidate.job.nodes for candidate in candidates}) > 1:
        raise ValueError(
            f"candidates must have the same number of nodes, got {[c.job.nodes for c in candidates]}"
        )
    if isinstance(policies, str) or not isinstance(policies, Sequence) or not policies:
        raise TypeError(f"policies must be a sequence of at least one policy, got {policies!r}")
    for policy in policies:
        require_choice(POLICIES, policies=policy)
    require_instance(float, repair=require_real(repair=repair, at_least=0, at_most=1e18))
    pairs = [(c, p) for c, p in product(candidates, policies) if p != "elastic" or c.job.droppable]
    if not pairs:
        raise ValueError(f"policies must admit a candidate, got {policies!r}: {candidates[0].job.reason}")
    plans = (Plan(candidate=c, policy=p, found=relative_goodput(c.job, p, repair)) for c, p in pairs)
    return JointOptimum(plans=tuple(sorted(plans, key=lambda plan: -plan.goodput)))
