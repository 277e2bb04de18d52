"""Failures, checkpoints, recovery and goodput: rows of ``training-reliability``."""

import numpy as np

from relparallel import hardware, training, units
from relparallel.claims.registry import reproduces
from relparallel.published import Fact
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
