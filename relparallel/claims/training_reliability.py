"""Failures, checkpoints, recovery and goodput: rows of ``training-reliability``."""

from typing import Final

import numpy as np

from relparallel import hardware, optimize, parallel, training, units, workload
from relparallel.book import s42
from relparallel.claims.registry import reproduces, theorem
from relparallel.optimize.joint_plans import JointPlan
from relparallel.published import Fact, facts
from relparallel.training.checkpointing import availability_optimal_interval, expected_segment_time
from relparallel.training.factors import outside_pauses


@reproduces("L3-003")
def llama3_unexpected_interruptions() -> int:
    """Sum of the 18 causes of the table."""
    return hardware.llama3_interruptions().events


@reproduces("L3-030", "L3-031")
def llama3_time_between_interruptions(time: float, events: int) -> float:
    """Hours between interruptions, from a count."""
    return 1 / (hardware.observed_rate(events, 1, time) * units.HOUR)


@reproduces("L3-032")
def llama3_failures_per_thousand_node_days(nodes: int, time: float, events: int) -> float:
    """Interruptions per 1000 node-days, from a count."""
    return 1000 * units.DAY * hardware.observed_rate(events, nodes, time)


@reproduces("L3-033")
def llama3_share_of_a_cause(cause: str) -> float:
    """Share of one cause, from counts."""
    return hardware.llama3_interruptions().share(cause=cause)


@reproduces("L3-034")
def llama3_share_of_a_category(category: str) -> float:
    """Share of a category of causes, from counts."""
    return hardware.llama3_interruptions().share(category=category)


@reproduces("L3-036")
def llama3_largest_cost_of_an_interruption(share: float, time: float, events: int) -> float:
    """Minutes that an interruption may cost on average to keep a share effective."""
    return (1 - share) / hardware.observed_rate(events, 1, time) / units.MINUTE


@reproduces("L3-037", "L3-038", "L3-039")
def llama3_rate_per_gpu_year(cause: str, gpus: int) -> float:
    """Interruptions by one cause per GPU and year."""
    (row,) = (row for row in hardware.llama3_interruptions().causes if row.cause == cause)
    return units.YEAR * hardware.observed_rate(row.events, gpus, row.duration)


_ALL_CAUSES = (
    "The published time counts job failures of every kind, the rate r_f hardware only; from r_f alone it is "
    "28.8 h. The two agree if all causes together strike 3.6 times as often as hardware."
)


@reproduces("RSC-003", "RSC-004", "RSC-005", discrepancies={"RSC-005": _ALL_CAUSES})
def rsc_time_between_failures(nodes: int, node_rate: float) -> float:
    """Hours between failures of a job, from the hardware rate of a node."""
    node = training.ComponentClass(name="node", level="node", rate=node_rate)
    cluster = hardware.Cluster(nodes=nodes)
    return training.FailureModel(classes=(node,), cluster=cluster).mtbf / units.HOUR


_NO_RATE = (
    "The abstract states no failure rate. From 10 min and 44 %, stalls that every failure begins anew give "
    "78.2 %, stalls without failures 83.2 %: the printed 80 % lies between the two."
)


@reproduces("FTHSDP-004", discrepancies={"FTHSDP-004": _NO_RATE})
def share_with_replicas_as_units_of_failure(stall: float, whole_stall: float, whole_share: float) -> float:
    """Share outside stalls, at the failure rate that share and stall of the synchronous job imply."""
    rate = -np.log([whole_share]) / whole_stall
    return outside_pauses(rate, np.array([stall]))


@reproduces("ETTR-*")
def effective_time(
    nodes: int, node_rate: float, interval: float, checkpoint: float, restart: float, method: str
) -> float:
    """Effective training time ratio, exact or first order."""
    mtbf = 1 / (nodes * node_rate)
    ratio = training.effective_training_time_ratio(mtbf, interval, checkpoint, restart, method=method)
    return float(ratio.mean)


@reproduces("DALY-*")
def segment_time(mtbf: float, interval: float, checkpoint: float, restart: float, down: float) -> float:
    """Expected seconds of one segment."""
    return float(expected_segment_time(mtbf, interval, checkpoint, restart, down))


@reproduces("OPT-00*", "OPT-010", "OPT-011", "OPT-012")
def optimal_interval(checkpoint: float, mtbf: float, method: str) -> float:
    """Optimal checkpoint interval [s]."""
    return float(training.checkpoint_interval(checkpoint, mtbf, method))


@reproduces("OPT-020", "OPT-021")
def interval_of_most_availability(checkpoint: float, mtbf: float, restart: float) -> float:
    """Interval that maximises first-order availability [s]."""
    return float(availability_optimal_interval(checkpoint, mtbf, restart))


@reproduces("SD-*")
def spread_of_effective_time(
    fact: Fact,
    nodes: int,
    node_rate: float,
    interval: float,
    checkpoint: float,
    restart: float,
    horizon: float,
) -> float:
    """Mean or standard deviation of the ratio over a finite run."""
    ratio = training.effective_training_time_ratio(1 / (nodes * node_rate), interval, checkpoint, restart)
    return float(ratio.mean if fact.quantity.startswith("mean") else ratio.std(horizon))


@reproduces("BR-00*")
def replicas_hit(replicas: int, nodes_per_replica: int, failures: int) -> float:
    """Mean number of replicas that k failed nodes hit."""
    return s42.expected_replicas_hit(replicas, nodes_per_replica, failures)


@reproduces("EL-001", "EL-002", "EL-003")
def elastic_share(nodes: int, nodes_per_replica: int, node_rate: float, repair: float, pause: float) -> float:
    """Throughput share of elastic data parallelism."""
    return float(s42.elastic_throughput(nodes, nodes_per_replica, node_rate, repair, pause))


@reproduces("EL-004")
def all_or_nothing_and_elastic(node_up: float, nodes_per_replica: int, replicas: int) -> tuple[float, float]:
    """Share of time with all nodes up, and elastic share."""
    nodes, rate = nodes_per_replica * replicas, 1 / node_up - 1
    whole = s42.elastic_throughput(nodes, nodes, rate, 1.0, 0.0)
    return float(whole), float(s42.elastic_throughput(nodes, nodes_per_replica, rate, 1.0, 0.0))


@reproduces("POL-*")
def best_effective_time(nodes: int, node_rate: float, checkpoint: float, restart: float) -> float:
    """Effective training time ratio at the exact optimal interval."""
    return float(training.optimal_training_time_ratio(checkpoint, 1 / (nodes * node_rate), restart))


@reproduces("SP-001", "SP-002", "SP-003", "SP-004", "SP-010", "SP-011")
def shortage(fact: Fact, nodes: int, spares: int, node_rate: float, repair: float) -> float:
    """Share of time short of spares."""
    kind = fact.system.split()[0]
    return float(training.shortage_probability(nodes, spares, node_rate, repair, kind))


@reproduces("SP-020", "SP-021")
def spares_for_one_in_a_thousand(nodes: str, node_rate: float, repair: float) -> tuple[int, ...]:
    """Spares that keep the shortage below 1e-3."""
    clusters = [int(number) for number in nodes.split("/")]
    return tuple(training.spares_needed(size, node_rate, repair, shortage=1e-3) for size in clusters)


@theorem("THM-checkpoint-lost-share", system="Checkpointing (Young/Daly)")
def lost_share_is_the_interval() -> tuple[float, float]:
    """At the exact optimal interval W the time lost to checkpoints and rework is the share W/M."""
    # Both sides for C = 60 s and M = 3 h.
    interval = float(training.checkpoint_interval(60.0, 10800.0))
    ratio = training.effective_training_time_ratio(10800.0, interval, 60.0, restart=0.0)
    return 1 - float(ratio.mean), interval / 10800.0


@theorem("THM-restart-is-no-spares", system="Spare and maintenance planning")
def restart_is_no_spares() -> tuple[float, float]:
    """Waiting for repairs is the policy of no spares: Erlang's B gives Daly's down time."""
    # Both sides on 2,048 nodes with a repair of one day.
    job = _job(nodes_per_replica=16)
    policy = training.relative_goodput(job, "spares", units.DAY, spares=0)
    mtbf = 1 / (job.nodes * job.node_rate)
    daly = training.effective_training_time_ratio(
        mtbf, policy.interval, job.checkpoint, job.restart, units.DAY
    )
    return float(policy.share), float(daly.mean)


@theorem("THM-elastic-break-even", system="Elastic and redundant recovery")
def elastic_break_even() -> tuple[float, float]:
    """q a^gA = a^gB exactly at lam r = q^(1/(gA - gB)) - 1; Brent's root of the goodput agrees."""  # noqa: D403
    # Both sides for replicas of 32 and 16 nodes.
    wide, narrow = _job(nodes_per_replica=32), _job(nodes_per_replica=16)
    (root,) = training.crossovers(wide, "elastic", narrow, "elastic", speedup=1.062)
    return root, training.break_even_repair(1.062, 32, 16, wide.node_rate)


@theorem("THM-joint-fastest-under-restart", system="Joint reliability optimisation")
def fastest_is_best_under_restart() -> tuple[float, float]:
    """If every failure restarts the whole job, the fastest strategy is the best."""
    # Throughput of the best plan against the largest one.
    return _joint(("restart",)).throughput, max(_SPEEDS.values())


@theorem("THM-joint-brute-force", system="Joint reliability optimisation")
def joint_is_the_best_of_all() -> tuple[float, float]:
    """The bounded search over strategies, waiting policies and spares equals the search over everything."""
    # Best goodput of three strategies with a repair of seven days, found and enumerated with Erlang and Daly.
    job, every = _job(nodes_per_replica=8), []
    for strategy, throughput in _SPEEDS.items():
        for spares in range(0, _NODES, strategy.pipeline):
            active = _NODES - spares
            best = training.optimal_training_time_ratio(
                job.checkpoint, 1 / (active * job.node_rate), job.restart
            )
            short = training.shortage_probability(active, spares, job.node_rate, 7 * units.DAY)
            every.append(throughput * active / _NODES * (1 - short) * best)
    return _joint(("restart", "spares")).goodput, float(max(every))


_NODES: Final = 256
_SPEEDS: Final = {
    parallel.Strategy(tensor=8, pipeline=g, data=_NODES // g): 1e5 + 100 * g for g in (8, 16, 32)
}


def _joint(policies: tuple[str, ...]) -> JointPlan:
    """Best of three strategies whose replicas are 8, 16 and 32 nodes, with a repair of seven days."""
    job, model = _job(nodes_per_replica=8), workload.transformer("gpt3-175b")
    level = training.CheckpointLevel(name="storage", cost=job.checkpoint, restart=0.0)
    node = training.ComponentClass(name="node", level="node", rate=job.node_rate)
    return optimize.joint(
        model, hardware.Cluster(nodes=_NODES), (node,), policies=policies, repair=7 * units.DAY,
        restart=job.restart, pause=job.pause, measured=_SPEEDS,
        checkpoints=training.Checkpointing(levels=(level,)),
    )  # fmt: skip


def _job(nodes_per_replica: int) -> training.Job:
    """2,048 nodes that fail as often as those of Llama-3."""
    rate = float(facts("training-reliability")["L3-032"].value_text) / (1000 * units.DAY)
    return training.Job(
        nodes=2048, nodes_per_replica=nodes_per_replica, node_rate=rate,
        checkpoint=20.0, restart=300.0, pause=30.0,
    )  # fmt: skip
