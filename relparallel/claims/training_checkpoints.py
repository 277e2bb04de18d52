"""Checkpoints in memory, on several levels and against silent errors: rows of ``training-reliability``."""

from math import sqrt

from relparallel import training, units
from relparallel.claims.registry import reproduces
from relparallel.published import Fact
from relparallel.training.checkpointing import verified_pattern_time
from relparallel.training.redundancy import domain_loss_probability, replica_holders


@reproduces("GEM-00*", "GEM-010", "GEM-011", "GEM-012", "GEM-013")
def recovery_from_memory(nodes: int, replicas: int, failures: int, placement: str) -> float:
    """Probability that every shard survives k failed nodes."""
    return float(s41.checkpoint_recovery_probability(nodes, replicas, failures, placement))


@reproduces("GEM-014", "GEM-015")
def time_to_loss_of_a_pair(fact: Fact, nodes: int, node_rate: float, window: float) -> float:
    """Mean time until both nodes of a pair are down, in hours or years."""
    unit = units.HOUR if fact.unit == "h" else units.YEAR
    return float(s41.time_to_pair_loss(nodes, node_rate, window)) / unit


@reproduces("GEM-016")
def loss_by_a_rack(nodes: int, nodes_per_rack: int, replicas: int) -> tuple[float, float]:
    """Probability that a rack takes a shard with it: neighbours, and nodes far apart."""
    maps = (replica_holders(nodes, replicas, stride=s) for s in (1, nodes // replicas))
    near, far = (domain_loss_probability(holders, nodes_per_rack) for holders in maps)
    return near, far


@reproduces("SDC-001")
def verified_pattern(
    mtbf: float, interval: float, verification: float, checkpoint: float, restart: float
) -> float:
    """Expected seconds of a verified pattern."""
    return float(verified_pattern_time(mtbf, interval, verification, checkpoint, restart))


@reproduces("ML2-001")
def overhead_of_two_levels(
    rate: float, higher_rate: float, checkpoint: float, higher_checkpoint: float
) -> float:
    """First order of the lost share: each level at Young's interval, and the restarts."""
    levels = ((rate, checkpoint), (higher_rate, higher_checkpoint))
    return sum(sqrt(2 * lam * cost) + lam * cost for lam, cost in levels)
