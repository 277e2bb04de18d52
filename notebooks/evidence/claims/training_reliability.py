"""Failures, checkpoints, recovery, spares and goodput: rows of ``training-reliability``."""

from math import sqrt
from typing import Final

import numpy as np

from chapters import s41, s42, s43, s48
from chapters.s41.fleet import Fleet
from evidence.claims.registry import Rows
from relparallel import hardware, training, units
from relparallel.published import Fact
from relparallel.training import checkpointing, redundancy
from relparallel.training.factors import outside_pauses
from relparallel.training.lifetimes import fleet_failures
from relparallel.training.order_statistics import expected_maximum


def llama3_rate_per_gpu_year(cause: str, gpus: int) -> float:
    """Interruptions by one cause per GPU and year."""
    (row,) = (row for row in hardware.llama3_interruptions().causes if row.cause == cause)
    return units.YEAR * row.events / (gpus * row.duration)


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
    ratio = training.effective_training_time_ratio(
        1 / (nodes * node_rate), interval, checkpoint, restart
    )
    return float(ratio.mean if fact.quantity.startswith("mean") else ratio.std(horizon))


def all_or_nothing_and_elastic(
    node_up: float, nodes_per_replica: int, replicas: int
) -> tuple[float, float]:
    """Share of time with all nodes up, and elastic share."""
    nodes, rate = nodes_per_replica * replicas, 1 / node_up - 1
    whole = s43.elastic_throughput(nodes, nodes, rate, 1.0, 0.0)
    return float(whole), float(s43.elastic_throughput(nodes, nodes_per_replica, rate, 1.0, 0.0))


def start_up(nodes: int) -> float:
    """Start-up of a job, from the law of the five other sizes."""
    known = training.start_ups().query("software == 'nemo-2023' and nodes != @nodes")
    return float(s42.start_up_law(known["nodes"], known["seconds"])(nodes))


ROWS: Final[Rows] = {
    # Interruptions of Llama 3, from its table of causes and from counts.
    "L3-003": lambda: hardware.llama3_interruptions().events,
    "L3-030 L3-031": lambda time, events: 1 / (events / time * units.HOUR),
    "L3-032": lambda nodes, time, events: 1000 * units.DAY * (events / (nodes * time)),
    "L3-033": lambda cause: hardware.llama3_interruptions().share(cause=cause),
    "L3-034": lambda category: hardware.llama3_interruptions().share(category=category),
    "L3-036": lambda share, time, events: (1 - share) / (events / time) / units.MINUTE,
    "RSC-003 RSC-004 RSC-005": (
        lambda nodes, node_rate: (
            training.FailureModel(
                classes=(training.ComponentClass(name="node", level="node", rate=node_rate),),
                cluster=hardware.Cluster(nodes=nodes),
            ).mtbf
            / units.HOUR
        ),
        {
            "RSC-005": "The published time counts job failures of every kind, the rate r_f "
            "hardware only; "
            "from r_f alone it is 28.8 h. The two agree if all causes together strike 3.6 times as "
            "often "
            "as hardware."
        },
    ),
    # At the failure rate that share and stall of the synchronous job imply.
    "FTHSDP-004": (
        lambda stall, whole_stall, whole_share: outside_pauses(
            -np.log([whole_share]) / whole_stall, np.array([stall])
        ),
        {
            "FTHSDP-004": "The abstract states no failure rate. From 10 min and 44 %, stalls that "
            "every "
            "failure begins anew give 78.2 %, stalls without failures 83.2 %: the printed 80 % "
            "lies between "
            "the two."
        },
    ),
    # Checkpoints.
    "ETTR-*": lambda nodes, node_rate, interval, checkpoint, restart, method: (
        training.effective_training_time_ratio(
            1 / (nodes * node_rate), interval, checkpoint, restart, method=method
        ).mean
    ),
    "DALY-*": lambda mtbf, interval, checkpoint, restart, down: checkpointing.expected_segment_time(
        mtbf, interval, checkpoint, restart, down
    ),
    "OPT-00* OPT-010 OPT-011 OPT-012": lambda checkpoint, mtbf, method: (
        training.checkpoint_interval(checkpoint, mtbf, method)
    ),
    "OPT-020 OPT-021": lambda checkpoint, mtbf, restart: (
        checkpointing.availability_optimal_interval(checkpoint, mtbf, restart)
    ),
    "POL-*": lambda nodes, node_rate, checkpoint, restart: training.optimal_training_time_ratio(
        checkpoint, 1 / (nodes * node_rate), restart
    ),
    "GEM-00* GEM-010 GEM-011 GEM-012 GEM-013": lambda nodes, replicas, failures, placement: (
        s41.checkpoint_recovery_probability(nodes, replicas, failures, placement)
    ),
    "GEM-014 GEM-015": lambda fact, nodes, node_rate, window: (
        s41.time_to_pair_loss(nodes, node_rate, window)
        / (units.HOUR if fact.unit == "h" else units.YEAR)
    ),
    # A rack takes a shard with it: of neighbours, and of nodes far apart.
    "GEM-016": lambda nodes, nodes_per_rack, replicas: tuple(
        redundancy.domain_loss_probability(
            redundancy.replica_holders(nodes, replicas, stride=stride), nodes_per_rack
        )
        for stride in (1, nodes // replicas)
    ),
    "SDC-001": lambda mtbf, interval, verification, checkpoint, restart: (
        checkpointing.verified_pattern_time(mtbf, interval, verification, checkpoint, restart)
    ),
    # First order of the lost share: each level at Young's interval, and the restarts.
    "ML2-001": lambda rate, higher_rate, checkpoint, higher_checkpoint: sum(
        sqrt(2 * lam * cost) + lam * cost
        for lam, cost in ((rate, checkpoint), (higher_rate, higher_checkpoint))
    ),
    # Recovery and redundancy.
    "BR-00*": lambda replicas, nodes_per_replica, failures: s43.expected_replicas_hit(
        replicas, nodes_per_replica, failures
    ),
    "EL-001 EL-002 EL-003": lambda nodes, nodes_per_replica, node_rate, repair, pause: (
        s43.elastic_throughput(nodes, nodes_per_replica, node_rate, repair, pause)
    ),
    "SP-001 SP-002 SP-003 SP-004 SP-010 SP-011": lambda fact, nodes, spares, node_rate, repair: (
        training.shortage_probability(nodes, spares, node_rate, repair, fact.system.split()[0])
    ),
    "SP-020 SP-021": lambda nodes, node_rate, repair: tuple(
        training.spares_needed(int(size), node_rate, repair, shortage=1e-3)
        for size in nodes.split("/")
    ),
    "BAM-00*": lambda fact, P, k: redundancy.pipeline_survival(
        stages=P, failures=k, ring=fact.system.endswith("ring")
    ),
    "BAM-010": lambda P, D, q: redundancy.independent_failures_survived(
        stages=P, pipelines=D, node_down=q
    ),
    "REP-001": lambda b: redundancy.pair_failures(b),
    "REP-002": lambda b: redundancy.pair_failures(b) / (2 * b),  # over the life of one process
    # Stragglers and optical switching.
    "STR-* | * | straggler, *": lambda fact, n: expected_maximum(
        n, "exponential" if "exponential" in fact.system else "normal"
    ),
    "OCS-001 OCS-002": lambda n, h: s48.usable_fraction(n, h),
    # Fleets and laws of life.
    "AIR-001": lambda: (
        Fleet(failure_rate=0.0, selection=0.0)
        .simulate(replications=2, rng=np.random.default_rng(0))
        .mean_total_time.value
        / units.HOUR
    ),
    "AIR-003": lambda: Fleet().expected_failures,
    # Mean failures of 256 servers in 60 days if each failure makes all of them new.
    "AIR-004 AIR-005": (
        lambda k: (
            60 * units.DAY / training.Lifetime.weibull(mean=100 * units.DAY, shape=k).first_of(256)
        ),
        {
            "AIR-004": "Published is the mean of two runs, 1598 and 1552. New lives for all 256 "
            "servers at "
            "every failure give 1654 on average, as the row says, with a standard deviation of 60: "
            "the mean "
            "of two runs lies 1.9 standard errors below. A stationary fleet has 153.6."
        },
    ),
    "WB-001": lambda k, n: training.Lifetime.weibull(mean=1.0, shape=k).first_of(n),
    "WB-002": lambda k, n: fleet_failures(
        training.Lifetime.weibull(mean=1.0, shape=k),
        n,
        0.05,
        np.random.default_rng(0),
        ages="new",
        replications=200,
    ).mean(),
    "L3-037 L3-038 L3-039": llama3_rate_per_gpu_year,
    "SD-*": spread_of_effective_time,
    "EL-004": all_or_nothing_and_elastic,
    "START-*": start_up,
}
