"""Redundancy, replication, spares and break-even points: rows of ``training-reliability`` and theorems."""

from relparallel import training
from relparallel.claims.registry import reproduces
from relparallel.published import Fact
from relparallel.training import redundancy


@reproduces("BAM-00*")
def neighbours_survive(fact: Fact, P: int, k: int) -> float:
    """Probability that no two neighbours of a pipeline fail."""
    return redundancy.pipeline_survival(stages=P, failures=k, ring=fact.system.endswith("ring"))


@reproduces("BAM-010")
def pipelines_survive(P: int, D: int, q: float) -> float:
    """Probability that all pipelines survive independent failures."""
    return redundancy.independent_failures_survived(stages=P, pipelines=D, node_down=q)


@reproduces("REP-001")
def failures_of_pairs(b: int) -> float:
    """Failures until a pair is gone."""
    return redundancy.pair_failures(b)


@reproduces("REP-002")
def time_of_pairs(b: int) -> float:
    """Mean time to interruption over that of one process."""
    return redundancy.pair_failures(b) / (2 * b)


@reproduces("START-*")
def start_up(nodes: int) -> float:
    """Start-up of a job, from the law of the five other sizes."""
    known = training.start_ups().query("software == 'nemo-2023' and nodes != @nodes")
    return float(training.start_up_law(known["nodes"], known["seconds"])(nodes))
