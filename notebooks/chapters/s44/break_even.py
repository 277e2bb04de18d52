"""Rates of failures and repairs at which policies change places."""

import math
from typing import Any

import numpy as np

from relparallel._checks import require_real
from relparallel.training.crossover import check_larger, check_scan, roots_on
from relparallel.training.job_shape import JobShape
from relparallel.training.recovery_policies import Recovery


def break_even_regroup(
    speedup: float,
    nodes: int,
    nodes_per_replica: int,
    other_nodes_per_replica: int,
    node_rate: float,
) -> float:
    """Repair time [s] from which the faster strategy with the larger replica loses, regrouped.

    ``speedup`` is the failure-free throughput q of the first strategy over that of the second,
    above 1; a replica of the first has g_A of the N nodes, more than the g_B of the second.
    Infinite where the faster one wins whatever the repair time.

    Of the nodes left (g - 1)/2 idle on average, if every remainder is as likely: E = a - (g -
    1)/(2N). So q E_A = E_B at a = (q (g_A - 1) - (g_B - 1)) / (2 N (q - 1)). Remainders are alike
    once the standard deviation of the nodes down exceeds about g_A / 2; before that the lead
    changes sides several times, and this is the last time. `break_even_rates` finds all of them.

    >>> round(break_even_regroup(1.006, 2048, 32, 16, node_rate=3.79e-3 / 86400) / 86400, 1)
    136.8
    """
    check_larger(nodes_per_replica, other_nodes_per_replica, node_rate)
    if nodes % nodes_per_replica or nodes % other_nodes_per_replica:
        raise ValueError(f"nodes must be a multiple of both replicas, got {nodes}")
    require_real(speedup=speedup, above=1.0)
    idle = speedup * (nodes_per_replica - 1) - (other_nodes_per_replica - 1)
    up = idle / (2 * nodes * (speedup - 1))
    return max(0.0, (1 / up - 1) / node_rate)


def break_even_rates(
    shape: JobShape,
    recovery: Recovery,
    other_shape: JobShape,
    other: Recovery,
    speedup: float = 1.0,
    lowest: float = 1e-10,
    highest: float = 1e-5,
) -> tuple[float, ...]:
    """Failure rates [1/s] at which two choices of strategy and policy have the same throughput.

    Two jobs on the same number of nodes; ``speedup`` is the failure-free throughput of the first
    over that of the second. Empty where one choice is nowhere worse than the other.
    `Recovery.throughput` at 64 rates between ``lowest`` and ``highest``, evenly spaced in log, and
    Brent's method at every change of sign: two crossings between neighbouring rates can be missed.

    >>> from relparallel.training import break_even_repair
    >>> wide = JobShape(nodes=2048, replicas=64, stages=32, tensor=8, nodes_per_replica=32)
    >>> narrow = JobShape(nodes=2048, replicas=128, stages=16, tensor=8, nodes_per_replica=16)
    >>> policy = Recovery("elastic", 86400.0)
    >>> [rate] = break_even_rates(wide, policy, narrow, policy, speedup=1.062)
    >>> round(rate * 1000 * 86400, 3), round(break_even_repair(1.062, 32, 16, rate) / 86400, 6)
    (3.767, 1.0)
    """
    check_scan(speedup, lowest=lowest, highest=highest)
    if shape.nodes != other_shape.nodes:
        raise ValueError(
            f"other_shape must have the nodes of shape = {shape.nodes}, got {other_shape.nodes}"
        )

    def lead(log_rate: Any) -> Any:
        return np.array(
            [
                speedup * recovery.throughput(shape, rate) - other.throughput(other_shape, rate)
                for rate in np.exp(np.atleast_1d(log_rate)).tolist()
            ]
        )

    roots = roots_on(lead, math.log(lowest), math.log(highest), points=64)
    return tuple(float(np.exp(root)) for root in roots)
