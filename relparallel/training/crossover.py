"""Where one choice overtakes another: cross-over repair times, by closed form and by root finding."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.optimize import brentq

from relparallel._checks import require_choice, require_instance, require_int, require_real
from relparallel.training._arguments import require_time
from relparallel.training.domains import POLICIES
from relparallel.training.goodput import Job, relative_goodput

__all__ = ["break_even_repair", "crossovers"]


def break_even_repair(
    speedup: float, nodes_per_replica: int, other_nodes_per_replica: int, node_rate: float
) -> float:
    """Repair time from which the faster elastic strategy with the larger replica loses.

    Parameters
    ----------
    speedup : float
        Failure-free throughput q of the first strategy over that of the second, at least 1.
    nodes_per_replica, other_nodes_per_replica : int
        Nodes g_A and g_B that stop together; g_A is the larger.
    node_rate : float
        Failures per node and second, above 0.

    Returns
    -------
    float
        Mean repair time [s]; infinite where it exceeds every float.

    Raises
    ------
    TypeError, ValueError
        If an argument has the wrong type or is out of range.

    Notes
    -----
    q a^{g_A} = a^{g_B} at r = (q^{1/(g_A - g_B)} - 1) / lam, to first order lam r > ln q / (g_A - g_B).
    Pauses and checkpoints cancel, since both strategies use the same nodes.

    References
    ----------
    `elastic_throughput` with ``batch="shrink"``.

    Examples
    --------
    >>> round(break_even_repair(1.062, 32, 16, 3.79e-3), 3)
    0.994
    """
    units = {"nodes_per_replica": nodes_per_replica, "other_nodes_per_replica": other_nodes_per_replica}
    require_int(at_least=1, at_most=10**6, **units)
    if nodes_per_replica <= other_nodes_per_replica:
        raise ValueError(
            f"nodes_per_replica must exceed other_nodes_per_replica = {other_nodes_per_replica}, "
            f"got {nodes_per_replica}"
        )
    require_real(speedup=speedup, at_least=1.0, at_most=1e30)
    require_real(node_rate=node_rate, at_least=1e-30, at_most=1e9)
    exponent = math.log(speedup) / (nodes_per_replica - other_nodes_per_replica)
    return math.expm1(exponent) / node_rate


def crossovers(
    job: Job,
    policy: str,
    other: Job,
    other_policy: str,
    speedup: float = 1.0,
    shortest: float = 60.0,
    longest: float = 2.6e6,
) -> tuple[float, ...]:
    """Repair times at which two choices of job and policy have the same goodput.

    Parameters
    ----------
    job, other : Job
        The two jobs, on the same number of nodes.
    policy, other_policy : {"restart", "spares", "elastic"}
        Their recovery policies.
    speedup : float
        Failure-free throughput of the first over that of the second.
    shortest, longest : float
        Where to look [s]; a minute to a month unless given.

    Returns
    -------
    tuple of float
        Repair times [s], ascending; empty where one choice is nowhere worse than the other.

    Raises
    ------
    TypeError, ValueError
        If an argument has the wrong type or is out of range, or the jobs have different numbers of nodes.

    Notes
    -----
    The difference is evaluated at 256 points, evenly spaced in log r, and every change of sign is bisected by
    Brent's method to a relative 1e-12. Two cross-overs closer than 4 % (default range) can be missed.

    References
    ----------
    Brent, "Algorithms for Minimization without Derivatives", 1973.

    Examples
    --------
    >>> job = Job(nodes=2048, nodes_per_replica=64, node_rate=3.79e-3 / 86400,
    ...           checkpoint=60, restart=900, pause=30)
    >>> [round(r / 3600, 1) for r in crossovers(job, "elastic", job, "spares")]
    [20.9]
    """
    require_instance(Job, job=job, other=other)
    require_choice(POLICIES, policy=policy, other_policy=other_policy)
    require_real(speedup=speedup, at_least=1e-6, at_most=1e6)
    require_time(shortest=shortest, longest=longest, positive=True)
    if longest <= shortest:
        raise ValueError(f"longest must exceed shortest = {shortest}, got {longest}")
    if job.nodes != other.nodes:
        raise ValueError(f"other must have the same number of nodes as job = {job.nodes}, got {other.nodes}")

    def lead(log_repair: Any) -> Any:
        repair = np.exp(log_repair)
        return (
            speedup * relative_goodput(job, policy, repair).share
            - relative_goodput(other, other_policy, repair).share
        )

    return tuple(float(np.exp(root)) for root in _roots(lead, np.log(shortest), np.log(longest)))


def _roots(function: Callable[[Any], Any], low: float, high: float) -> list[float]:
    """Changes of sign that a scan of 256 points sees; stretches of exact equality are none."""
    points = np.linspace(low, high, 256)
    values = function(points)
    points, signs = points[values != 0], np.sign(values[values != 0])
    changes = np.flatnonzero(signs[:-1] != signs[1:])
    return [brentq(function, points[i], points[i + 1], xtol=1e-12) for i in changes]
