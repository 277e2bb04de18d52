"""From which failure rate on the fastest strategy is not the best one."""

import math
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

from relparallel.optimize.joint_plans import JointPlan
from relparallel.optimize.joint_search import JointSearch
from relparallel.optimize.joint_sites import Site
from relparallel.parallel import Strategy
from relparallel.training import JobShape

LEAST: Final = 1e-6  # of the given rates, where the numeric root is looked for
MOST: Final = 1e4


class BreakEven(NamedTuple):
    """Where the fastest strategy loses its lead.

    The fastest strategy that keeps its state through a failure and the one that overtakes it first;
    failures per node and second at which it does, as the root of the goodputs and in closed form
    (infinite where nobody overtakes); nodes of a replica of the two; throughput of the fastest over
    that of the other.
    """

    fastest: Strategy
    other: Strategy
    rate: float
    closed_rate: float
    nodes: int
    other_nodes: int
    speedup: float


def break_even_rate(plan: JointPlan) -> BreakEven:
    """Failure rate of a node from which the fastest elastic strategy is not the best one.

    root and closed form.

    ``plan`` is of `joint`, with a policy that drops replicas, a shrinking batch and failures of
    single nodes only. Strategies that fill the cluster are compared, those whose state survives the
    loss of a replica.

    Closed: q a^{g_A} = a^{g_B} with a = 1/(1 + lam r) at lam = (q^{1/(g_A - g_B)} - 1)/r, r the
    repair as it counts outside pauses, see `goodput`; the fastest A is overtaken first by the B
    with the smallest lam. The time of pauses and checkpoints cancels. Numeric: the factor of all
    rates at which the score of A is the best score of all others, by Brent's method on
    `JointSearch`.

    >>> from relparallel.hardware import cluster
    >>> from relparallel.optimize import joint
    >>> from relparallel.workload import transformer
    >>> dgx = cluster("h100-80gb-dgx", gpus=512)
    >>> plan = joint(transformer("gpt3-175b"), dgx, global_batch=512, limits={"schedule": "1f1b"}, spares=0)
    >>> found = break_even_rate(plan)
    >>> found.nodes, found.other_nodes, abs(found.rate / found.closed_rate - 1) < 0.01
    (2, 1, True)
    """
    search: JointSearch = plan.search
    policy = next((name for name, recovery in search.recoveries.items() if recovery.drops), None)
    if policy is None:
        raise ValueError(
            f"plan must have a policy that drops replicas, got {', '.join(search.recoveries)}"
        )
    site = min(search.sites, key=lambda one: one.spares)
    units = _units(site)
    if np.isinf(units).all():
        raise ValueError(
            f"plan must have a strategy whose state survives a failure, got {plan!r:.80}"
        )
    first = int(np.flatnonzero(np.isfinite(units))[0])
    recovery = search.recoveries[policy]
    left = recovery.repair * math.exp(-recovery.pause / max(recovery.repair, 1.0))  # outside pauses
    closed = _closed(site, units, first, left)
    other, place = int(np.argmin(closed)), search.sites.index(site)

    def lead(log_scale: float) -> float:
        """Score of the fastest over the best of all others, minus 1, at a multiple of all rates."""
        asked = search.rescaled(math.exp(log_scale))
        mine = asked.choice(place, first, policy, plan.checkpoint)

        def rival(one: Site, row: int) -> bool:
            return one is asked.sites[place] and row != first and bool(np.isfinite(units[row]))

        best = asked.best(rival, (policy,), (plan.checkpoint,))
        return 1.0 if best is None or mine is None else mine.score / best.score - 1

    if math.isfinite(closed[other]):
        root = brentq(lead, math.log(LEAST), math.log(MOST), xtol=1e-14)
        rate = site.failures.node_rate * math.exp(root)
    else:
        other, rate = first, math.inf
    grid, speedup = site.fastest.grid, float(site.fastest.time[other] / site.fastest.time[first])
    closed_rate, replicas = float(closed[other]), (int(units[first]), int(units[other]))
    return BreakEven(grid[first], grid[other], rate, closed_rate, *replicas, speedup)


def _units(site: Site) -> NDArray[np.float64]:
    """Nodes of a replica of each strategy; infinite where its state does not survive."""
    kinds = site.fastest.kinds
    found = np.full(len(kinds), np.inf)
    known: dict[tuple[int, ...], float] = {}
    for row in np.flatnonzero(kinds[:, 4] == 0).tolist():
        degrees = tuple(kinds[row].tolist())
        if degrees not in known:
            try:
                shape = JobShape.of(site.fastest.placement(row), site.failures.cluster)
                known[degrees] = float(shape.nodes_per_replica)
            except ValueError:
                known[degrees] = math.inf
        found[row] = known[degrees]
    return found


def _closed(
    site: Site, units: NDArray[np.float64], first: int, repair: float
) -> NDArray[np.float64]:
    """Rate at which each strategy overtakes the fastest one; infinite where it never does."""
    less = units[first] - units
    later = np.log(site.fastest.time / site.fastest.time[first])
    able = np.isfinite(units) & (less > 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.where(able, np.expm1(later / less) / repair, math.inf))
