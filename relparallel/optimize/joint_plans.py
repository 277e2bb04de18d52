"""The joint optimum: strategy, recovery, checkpoints and spares, chosen together.

A planner that looks at speed alone takes the strategy with the largest throughput T. What becomes
progress is T times the share that failures leave, and that share depends on the strategy as well:
on the nodes that stop together, on the copies of the training state, on the nodes that are left for
spares.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field
from typing import Any, Final

import pandas as pd

from relparallel._checks import Result, require_choice, require_instance, require_int, require_real
from relparallel._notices import told
from relparallel.hardware import Cluster, ComponentRates
from relparallel.optimize.joint_question import (
    Question,
    apart_of,
    checkpoints_of,
    clusters_of,
    machines_of,
    measured_of,
    orders_of,
    recoveries_of,
    with_unseen,
)
from relparallel.optimize.joint_report import alternatives, as_row, on_each_fabric, report
from relparallel.optimize.joint_search import Choice, JointSearch
from relparallel.optimize.joint_sites import Site, sites_of
from relparallel.parallel import Placement, Strategy, notation
from relparallel.parallel.step import StepTime
from relparallel.parallel.strategy import DEGREES
from relparallel.topology import Topology
from relparallel.training import Checkpointing, FailureLog, Recovery
from relparallel.training._arguments import require_time
from relparallel.training.failure_sources import SharedEvents, events_only
from relparallel.units import DAY
from relparallel.workload import Transformer

JOINT_OBJECTIVES: Final = ("goodput", "cost", "p10")
"""Tokens per second that become progress; money per token; tokens/s with probability 0.9."""

POLICIES: Final = ("restart", "spares", "elastic")


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class JointPlan(Result):
    """The best joint choice, the proof that it is, and what speaks against the others."""

    strategy: Strategy
    cluster: Cluster  # all nodes that are paid for
    spares: int  # those of them that the strategy leaves free
    policy: str
    checkpoint: str
    interval: float  # work between two checkpoints of the first level [s]
    every: tuple[int, ...]  # checkpoints of a level per one of the next
    throughput: float  # without failures [tokens/s]
    share: float  # of the throughput that becomes progress
    tenth: float  # tenth percentile of that share over the horizon
    counts: pd.Series  # strategies by fate; they sum to all that there are
    # the question that was asked, and what has been evaluated
    search: JointSearch = field(repr=False)
    choice: Choice = field(repr=False)  # the best in it

    @property
    def fabric(self) -> str:
        """Name of the network; empty where none was given."""
        return self.search.sites[self.choice.site].fabric

    @property
    def network(self) -> Topology | None:
        """The network that was chosen; None for the two levels of links of a cluster."""
        wiring = self.search.sites[self.choice.site].wiring
        return None if wiring is None else wiring.network

    @property
    def placement(self) -> Placement:
        """Which GPU runs which rank."""
        return self.search.sites[self.choice.site].fastest.placement(self.choice.row)

    @property
    def step(self) -> StepTime | None:
        """Time of a step with its interval; None where the speed was measured."""
        return self.search.step(self.choice)

    @property
    def goodput(self) -> float:
        """Tokens per second that become progress."""
        return self.throughput * self.share

    @property
    def cost_per_token(self) -> float:
        """Price of all cluster GPUs over the goodput; money per token, in units of the prices."""
        return self.search.sites[self.choice.site].price / self.goodput

    @property
    def fastest(self) -> JointPlan:
        """What is best for a planner who takes the strategy with the largest throughput."""
        return self.fastest_with(copies=1)

    def fastest_with(self, copies: int) -> JointPlan:
        """Return what is best for a planner who takes the fastest strategy with copies of state."""
        require_int(copies=copies, at_least=1)
        every = [site.fastest for site in self.search.sites]
        fits = [fast.time[fast.copies >= copies] for fast in every]
        if not any(times.size for times in fits):
            raise ValueError(f"copies must be at most those of some strategy, got {copies}")
        least = min(times[0] for times in fits if times.size)
        runs = {int(run) for fast in every for run in fast.measured[fast.time == least]} - {-1}

        def chosen(site: Site, row: int) -> bool:
            fast = site.fastest
            # with fewer replicas, too
            same = fast.time[row] == least or int(fast.measured[row]) in runs
            return bool(same and fast.copies[row] >= copies)

        found = self.search.best(chosen)
        return self if found is None else plan_of(self.search, found, self.counts)

    def at(self, scale: float = 1.0, repair: float | None = None) -> JointPlan:
        """Answer the same question for other failure rates and another repair time.

        Strategies beyond what stands ``apart`` are asked only where this one is one of them.
        """
        search = self.search.rescaled(require_real(scale=scale, at_least=0, at_most=1e9), repair)
        own = self.search.sites[self.choice.site].fastest.beyond[self.choice.row]
        found = search.best(lambda site, row: bool(own or not site.fastest.beyond[row]))
        assert found is not None  # there are the same strategies
        return plan_of(search, found, self.counts)

    @property
    def price_of_speed(self) -> float:
        """Share of the score that is lost by taking the strategy with the largest throughput."""
        return 1 - self.fastest.choice.score / self.choice.score if self.choice.score else 0.0

    def alternatives(self) -> pd.DataFrame:
        """Best choice with another value of each axis."""
        return alternatives(self.search, self.choice)

    def fabrics(self) -> pd.DataFrame:
        """Return the best choice on each fabric."""
        return on_each_fabric(self.search)

    def to_frame(self) -> pd.DataFrame:
        """Return every choice that was evaluated, the best first."""
        ranked = sorted(self.search.evaluated.values(), key=lambda choice: -choice.score)
        return pd.DataFrame([as_row(self.search, choice) for choice in ranked])

    def _said(self) -> str:
        share = f"relative goodput {self.share:.2%}, nine runs of ten above {self.tenth:.2%}"
        gained = f"{self.spares} spare nodes: {self.goodput:.4g} tokens/s"
        return f"{notation(self.strategy, short=True)}, {self.policy}, {gained}, {share}"

    def explain(self) -> str:
        """Say what is best, why nothing better was left out, and what the others lose."""
        return "\n".join(report(self.search, self.choice, self.fastest.choice, self.counts))


def plan_of(search: JointSearch, choice: Choice, counts: pd.Series) -> JointPlan:
    """Plan of a choice."""
    site = search.sites[choice.site]
    return JointPlan(
        strategy=site.fastest.grid[choice.row],
        cluster=site.cluster,
        spares=site.spares,
        policy=choice.policy,
        checkpoint=choice.checkpoint,
        interval=choice.state.interval,
        every=choice.state.every,
        throughput=choice.throughput,
        share=choice.state.share,
        tenth=choice.tenth,
        counts=counts,
        search=search,
        choice=choice,
    )


@told
def joint(
    workload: Transformer,
    cluster: Cluster | Sequence[Cluster],
    rates: str | ComponentRates | FailureLog | tuple[Any, ...] = "llama3",
    objective: str = "goodput",
    *,
    global_batch: int | None = None,
    policies: Sequence[str | Recovery] = POLICIES,
    checkpoints: Checkpointing | Mapping[str, Checkpointing] | None = None,
    storage_bandwidth: float | None = None,
    spares: int | Sequence[int] | None = None,
    repair: float | None = None,
    restart: float | None = None,
    pause: float | None = None,
    price: float | Sequence[float] | None = None,
    horizon: float = 30 * DAY,
    limits: Mapping[str, Any] | None = None,
    network: Topology | Mapping[str, Topology | None] | Sequence[Topology | None] | None = None,
    network_rates: Mapping[str, float] | None = None,
    write_off: float | None = None,
    measured: Mapping[Strategy, float] | Mapping[Placement, float] | None = None,
    orders: tuple[tuple[str, ...], ...] = (DEGREES,),
    source: SharedEvents | None = None,
    apart: Mapping[str, int] | None = None,
    executor: Executor | None = None,
    **options: Any,
) -> JointPlan:
    """Choose strategy, recovery, checkpoints, their interval and spares together.

    Parameters
    ----------
    workload : Transformer
        What is trained.
    cluster : Cluster or sequence of Cluster
        The budget of nodes with its network, or several to choose from: which fabric, which size.
    rates : str, ComponentRates, FailureLog or tuple of ComponentClass
        What fails, as in `failure_model`.
    objective : {"goodput", "cost", "p10"}
        Large goodput, small price of a token, or a large tenth percentile of the goodput over
        ``horizon``.
    global_batch : int, optional
        Sequences of a step; one for each GPU of the largest cluster where omitted.
    policies : sequence of str or Recovery
        Recovery policies to choose from, by name or in full.
    checkpoints : Checkpointing or Mapping of str to Checkpointing, optional
        Levels to choose from, by name. Where omitted, storage.
    storage_bandwidth : float, optional
        Rate at which the storage is written and read [bytes/s], without ``checkpoints``. Where
        omitted, in proportion to the GPUs of the largest cluster what Llama 3's run had: 2e12 for
        16,384.
    spares : int or sequence of int, optional
        Nodes to hold back; strategies fill the others. Where omitted, every number up to 5 % of the
        nodes for which the rules leave a strategy; with ``measured``, every number of whole
        replicas.
    repair, restart, pause : float, optional
        Of policies by name: mean time until a failed node is back, fixed part of a restart besides
        reading the checkpoint, and standstill of a job that goes on without going back [s]; a day,
        300 and 30 where omitted. A repair that is given takes the place of those that a log has
        seen.
    price : float or sequence of float, optional
        Of a GPU and second, network included; one for each cluster. For the objective "cost".
    horizon : float
        Length of the run of which the tenth percentile is taken [s].
    limits : Mapping, optional
        Values of axes of `StrategyGrid`, such as the schedules that a framework has.
    network : Topology, or Mapping or sequence of them, optional
        How the GPUs are wired, its hosts in their order; one for each cluster, or several for one
        cluster. None among several: the two levels of links of the cluster, failing as ``rates``
        say.
    network_rates : Mapping of str to float, optional
        Failures per part and second, by name as in `network_impact`, or of every "cable" outside
        servers and every packet "switch"; `published_network_rates` where omitted. In a failure
        table they replace the causes of category "network"; classes that are given in full are all
        kept.
    write_off : float, optional
        Time over which the network is paid [s]. Then the cables, transceivers and ports outside
        servers, at list prices of 2024 in USD, come on top of ``price``.
    measured : Mapping of Strategy or Placement to float, optional
        Strategies to choose from in place of all, with their throughput on the whole cluster
        [tokens/s]; where nodes are held back, it is taken in proportion to the replicas.
    orders : tuple of tuple of str, optional
        Rank orders to choose from, as of `Placement`: which ranks share a node, and what one
        failure stops.
    source : SharedEvents, optional
        Events that nodes share, and rates that drift, as `FailureLog.shared_events` fits them;
        nodes fail independently where omitted. Other sources have no formula.
    apart : Mapping of str to int, optional
        Largest values of axes of `StrategyGrid` that count as usual: strategies beyond them are
        kinds of their own, so that the best of both are found (`JointSearch.ranked`).
    executor : concurrent.futures.Executor, optional
        Asks for the strategies of several clusters, spares and orders at a time; the plan does not
        depend on it. Worth it where networks are wired or many schedules allowed.
    **options
        Of `evaluate`: software, precision, storage, reserve and so on; learned, what `learn` gave.

    Returns
    -------
    JointPlan
        The best choice with its proof.

    Notes
    -----
    Exact within the closed form of `goodput`: rank orders, strategies, spares, policies and levels
    are enumerated, the interval is its closed optimum. Every row of the grid is asked, its fate is
    counted. Of strategies that failures cannot tell apart the fastest is kept (dominance, see
    `fastest_of_each_kind`); kinds are evaluated by falling upper bound until the bound is below the
    best score (`JointSearch.best`). A network changes the time of every strategy (`step_time`)
    before any is left out. What its parts do when they fail depends on the strategy, only takes
    time, and is asked of those alone that could be the best if none failed (`network_impact`).

    All nodes that a strategy leaves free are spares: more spares never cost anything on a given
    budget. O(rows that keep the rules), then O(classes + k) for a kind.

    References
    ----------
    Daly 2006; Erlang 1917; Narayanan et al. 2021 (the strategies); Moody et al. 2010 (the levels).

    Examples
    --------
    >>> from relparallel.hardware import cluster
    >>> from relparallel.workload import transformer
    >>> plan = joint(transformer("gpt3-6.7b"), cluster("a100-80gb-selene", gpus=64), global_batch=64,
    ...              limits={"schedule": "1f1b"})
    >>> plan.policy, plan.goodput >= plan.fastest.goodput, int(plan.counts.sum()) > 10_000
    ('elastic', True, True)

    Which fabric, and the strategy that goes with it:

    >>> from relparallel.training import redundant_fabric
    >>> fabrics = {f"{planes} planes": redundant_fabric(servers=8, planes=planes) for planes in (1, 2)}
    >>> plan = joint(transformer("gpt3-6.7b"), cluster("a100-80gb-selene", gpus=64), global_batch=64,
    ...              limits={"schedule": "1f1b"}, network=fabrics)
    >>> plan.fabric
    '1 planes'

    Strategies of measured speed:

    >>> speeds = {Strategy(tensor=8, pipeline=4, data=2): 6.41e4, Strategy(tensor=8, data=8): 6.4e4}
    >>> plan = joint(transformer("gpt3-6.7b"), cluster("a100-80gb-selene", gpus=64), measured=speeds)
    >>> plan.strategy.pipeline, plan.fastest.strategy.pipeline
    (1, 4)
    """
    require_instance(Transformer, workload=workload)
    require_choice(JOINT_OBJECTIVES, objective=objective)
    require_instance((Mapping, type(None)), limits=limits)
    require_time(horizon=horizon, positive=True)
    if write_off is not None:
        require_time(write_off=write_off, positive=True)
    idle = {"network_rates": network_rates, "write_off": write_off} if network is None else {}
    idle |= {"write_off": write_off} if price is None else {}
    for name, value in idle.items():
        if value is not None:
            needed = "a network and a price" if name == "write_off" else "a network"
            raise ValueError(f"{name} must be left out without {needed}, got {value!r:.80}")
    clusters, ranked = clusters_of(cluster), orders_of(orders)
    machines = machines_of(clusters, network, network_rates, price, objective)
    gpus = max(one.gpus for one in clusters)
    computed: dict[str, Any] = {"network": network, "limits": limits, "options": options}
    computed["apart"] = apart
    computed["orders"] = () if ranked == (DEGREES,) else ranked
    question = Question(
        workload=workload,
        batch=require_int(global_batch=gpus if global_batch is None else global_batch, at_least=1),
        rates=rates,
        source=events_only(source),
        objective=objective,
        limits=limits or {},
        options=options,
        measured=measured_of(measured, clusters, **computed),
        orders=ranked,
        write_off=write_off,
        recoveries=recoveries_of(policies, repair=repair, restart=restart, pause=pause),
        checkpoints=with_unseen(
            checkpoints_of(checkpoints, storage_bandwidth, workload, gpus),
            rates,
            max(one.nodes for one in clusters),
        ),
        repaired=repair is not None,
        horizon=horizon,
        apart=apart_of(apart),
    )
    return answer(question, sites_of(question, machines, spares, executor))


def answer(question: Question, sites: tuple[Site, ...]) -> JointPlan:
    """The best choice on the sites; refused where no strategy fits any of them."""
    search = JointSearch(question=question, sites=sites)
    counts = sum((site.fastest.counts for site in sites[1:]), sites[0].fastest.counts)
    best = search.best()
    if best is None:
        fates = ", ".join(f"{number:,} {fate}" for fate, number in counts.items() if number)
        sizes = dict.fromkeys(f"{site.cluster.gpus:,} GPUs" for site in sites)
        raise ValueError(
            f"cluster must allow a strategy for {question.workload.layers} layers of "
            f"{question.workload.hidden}, got {' or '.join(sizes)}: of all strategies {fates}"
        )
    return plan_of(search, best, counts)
