"""Rates of failures and repairs at which policies change places."""

import math
from typing import Any

import numpy as np

from relparallel._checks import require_instance, require_int, require_real
from relparallel.training._arguments import MOST_NODES, require_single
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
    """Repair time from which the faster strategy with larger replicas loses if nodes are regrouped.

    Parameters
    ----------
    speedup : float
        Failure-free throughput q of the first strategy over that of the second, above 1.
    nodes : int
        Nodes N, a multiple of both replicas.
    nodes_per_replica, other_nodes_per_replica : int
        Nodes g_A and g_B of a replica; g_A is the larger.
    node_rate : float
        Failures per node and second, above 0.

    Returns
    -------
    float
        Mean repair time [s]; infinite where the faster one wins whatever the repair time.

    Notes
    -----
    Of the nodes left (g - 1)/2 idle on average, if every remainder is as likely: E = a - (g -
    1)/(2N). So q E_A = E_B at a = (q (g_A - 1) - (g_B - 1)) / (2 N (q - 1)). Remainders are alike
    once the standard deviation of the nodes down exceeds about g_A / 2; before that the lead
    changes sides several times, and this is the last time. `break_even_rates` finds all of them.

    Examples
    --------
    >>> round(break_even_regroup(1.006, 2048, 32, 16, node_rate=3.79e-3 / 86400) / 86400, 1)
    136.8
    """
    check_larger(nodes_per_replica, other_nodes_per_replica, node_rate)
    require_int(nodes=nodes, at_least=1, at_most=MOST_NODES)
    if nodes % nodes_per_replica or nodes % other_nodes_per_replica:
        raise ValueError(f"nodes must be a multiple of both replicas, got {nodes}")
    require_single(speedup=speedup)
    speedup = require_real(speedup=speedup, above=1.0, at_most=1e30)
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
    """Failure rates at which two choices of strategy and policy have the same throughput.

    Parameters
    ----------
    shape, other_shape : JobShape
        How the two jobs lie on the same number of nodes.
    recovery, other : Recovery
        Their policies.
    speedup : float
        Failure-free throughput of the first over that of the second.
    lowest, highest : float
        Failures per node and second between which to look.

    Returns
    -------
    tuple of float
        Rates [1/s], ascending; empty where one choice is nowhere worse than the other.

    Notes
    -----
    `Recovery.throughput` at 64 rates, evenly spaced in log, and Brent's method at every change of
    sign. Two crossings between neighbouring rates can be missed.

    Examples
    --------
    >>> from relparallel.training import break_even_repair
    >>> wide = JobShape(nodes=2048, replicas=64, stages=32, tensor=8, nodes_per_replica=32)
    >>> narrow = JobShape(nodes=2048, replicas=128, stages=16, tensor=8, nodes_per_replica=16)
    >>> policy = Recovery("elastic", 86400.0)
    >>> [rate] = break_even_rates(wide, policy, narrow, policy, speedup=1.062)
    >>> round(rate * 1000 * 86400, 3), round(break_even_repair(1.062, 32, 16, rate) / 86400, 6)
    (3.767, 1.0)
    """
    require_instance(JobShape, shape=shape, other_shape=other_shape)
    require_instance(Recovery, recovery=recovery, other=other)
    require_single(lowest=lowest, highest=highest)
    require_real(lowest=lowest, highest=highest, at_least=1e-30, at_most=1e-3)
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
