"""Where one choice overtakes another: cross-over repair times, by closed form and root finding."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from relparallel._checks import require_choice, require_instance, require_int, require_real
from relparallel.training._arguments import MOST_NODES, require_single, require_time
from relparallel.training.domains import POLICIES
from relparallel.training.job_forms import Job, relative_goodput


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

    Notes
    -----
    q a^{g_A} = a^{g_B} at r = (q^{1/(g_A - g_B)} - 1) / lam, to first order lam r > ln q / (g_A -
    g_B). Pauses and checkpoints cancel, since both strategies use the same nodes.

    Examples
    --------
    >>> round(break_even_repair(1.062, 32, 16, 3.79e-3), 3)
    0.994
    """
    check_larger(nodes_per_replica, other_nodes_per_replica, node_rate)
    require_single(speedup=speedup)
    require_real(speedup=speedup, at_least=1.0, at_most=1e30)
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

    Notes
    -----
    As for `break_even_rates`, with 256 points: two cross-overs closer than 4 % (default range) can
    be missed.

    Examples
    --------
    >>> job = Job(nodes=2048, nodes_per_replica=64, node_rate=3.79e-3 / 86400,
    ...           checkpoint=60, restart=900, pause=30)
    >>> [round(r / 3600, 1) for r in crossovers(job, "elastic", job, "spares")]
    [20.9]
    """
    require_instance(Job, job=job, other=other)
    require_choice(POLICIES, policy=policy, other_policy=other_policy)
    require_time(shortest=shortest, longest=longest, positive=True, single=True)
    check_scan(speedup, shortest=shortest, longest=longest)
    if job.nodes != other.nodes:
        raise ValueError(
            f"other must have the same number of nodes as job = {job.nodes}, got {other.nodes}"
        )

    def lead(log_repair: Any) -> Any:
        repair = np.exp(log_repair)
        return (
            speedup * relative_goodput(job, policy, repair).share
            - relative_goodput(other, other_policy, repair).share
        )

    return tuple(float(np.exp(root)) for root in roots_on(lead, np.log(shortest), np.log(longest)))


def check_larger(nodes_per_replica: int, other_nodes_per_replica: int, node_rate: float) -> None:
    """Refuse replicas of which the first is not the larger, and failures that never come."""
    units = {
        "nodes_per_replica": nodes_per_replica,
        "other_nodes_per_replica": other_nodes_per_replica,
    }
    require_int(at_least=1, at_most=MOST_NODES, **units)
    if nodes_per_replica <= other_nodes_per_replica:
        raise ValueError(
            f"nodes_per_replica must exceed other_nodes_per_replica = {other_nodes_per_replica}, "
            f"got {nodes_per_replica}"
        )
    require_single(node_rate=node_rate)
    require_real(node_rate=node_rate, at_least=1e-30, at_most=1e9)


def check_scan(speedup: float, **ends: float) -> None:
    """Refuse speeds that nobody compares, and a range to look in that ends before it begins."""
    require_single(speedup=speedup)
    require_real(speedup=speedup, at_least=1e-6, at_most=1e6)
    (first, low), (last, high) = ends.items()
    if high <= low:
        raise ValueError(f"{last} must exceed {first} = {low}, got {high}")


def roots_on(
    function: Callable[[Any], Any], low: float, high: float, points: int = 256
) -> list[float]:
    """Changes of sign that a scan of so many points sees; stretches of exact equality are none."""
    from scipy.optimize import brentq

    seen = np.linspace(low, high, points)
    values = function(seen)
    seen, signs = seen[values != 0], np.sign(values[values != 0])
    changes = np.flatnonzero(signs[:-1] != signs[1:])
    return [
        brentq(lambda x: np.asarray(function(x)).item(), seen[i], seen[i + 1], xtol=1e-12)
        for i in changes
    ]
