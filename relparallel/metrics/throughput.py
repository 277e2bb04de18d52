"""The most all hosts can send at once, routed at will: by linear programming or between two bounds.

The unit is a host link: the slowest cable of a host. Letters of the papers: ``N`` hosts.

Any mixture of routings is a flow: its largest load bounds the throughput from below. Any prices of
the arcs bound it from above: the price of all capacity over the price of all demand on its cheapest
paths (Shahrokhi and Matula, JACM 1990). Rounds of routing and pricing close the gap, as in Garg and
Koenemann, SIAM J. Computing 2007, here accelerated: traffic takes softly the cheapest paths, prices
follow the accumulated load by Nesterov's method for smoothed problems (Math. Programming 2005),
with a restart at the best prices whenever the bound gets worse.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np

from relparallel._checks import require_choice, require_real, require_rng
from relparallel._notices import told
from relparallel.metrics._demand import Problem, all_to_all, longest_matching, permutation
from relparallel.metrics._linear import commodities, solve
from relparallel.metrics._network import require_hosts, switch_level
from relparallel.metrics._paths import route
from relparallel.metrics.estimate import Estimate, exactly
from relparallel.topology import Topology
from relparallel.topology._arrays import FloatArray

if TYPE_CHECKING:
    import networkx as nx

Traffic = Literal["all_to_all", "permutation", "longest_matching"]
FLOWS: Final = 80_000  #: most variables of a linear program: a few seconds
CLOSE: Final = 1e-6  #: relative distance of the dual bound at which a value counts as exact
# most rounds, which small networks reach (in 1,000 some stay 2.5 % apart), and most visits of arcs,
# about a minute; the bounds hold whenever the rounds stop
_ROUNDS: Final = 20_000
_VISITS: Final = 6e9
_SOFTNESS: Final = 0.03  # at first, in mean prices; halved when a stage ends
_STAGE: Final = 100  # rounds of the first stage; half as many again in the next
_WORSE: Final = 1.02  # a bound so many times the best of the stage halves the step
_FLOOR: Final = 1e-12  # smallest price, in largest prices


@told
def concurrent_flow(
    topology: Topology | nx.Graph[Any],
    traffic: Traffic = "all_to_all",
    *,
    share: float = 1.0,
    rng: np.random.Generator | None = None,
    gap: float = 0.01,
) -> Estimate:
    """Most that every host can send at once in a traffic pattern, routed at will, in host links.

    Parameters
    ----------
    topology : Topology or networkx.Graph
        Of a graph every node is a host. A node without ``transit`` is passed through by no path.
    traffic : {"all_to_all", "permutation", "longest_matching"}, optional
        Every host sends 1/(N-1) to each of the others; or all to a single one, in a random cyclic
        order; or to a single one such that the hops between them add up to the most.
    share : float, optional
        Share of the hosts that take part, at least two of them; the others stay silent.
    rng : numpy.random.Generator, optional
        Required for a permutation and for a share below 1.
    gap : float, optional
        Relative distance of the bounds at which the approximation of a large network stops; a wide
        one gives quick bounds.

    Returns
    -------
    Estimate
        Exact where the dual bound is met, otherwise the proved bounds with the lower one, which a
        routing attains, as the value. 0 where a path is missing, infinite where no traffic leaves a
        switch.

    Notes
    -----
    A host that hangs on a single switch counts there and its own cable does not limit it, as in
    topobench; so the value can pass 1. Linear program with one variable for each sender and arc,
    reduced by proved symmetry; above 80,000 variables rounds of routing and pricing. Whatever was
    computed is checked against the bound of the prices: capacity x price / (demand x cheapest
    path).

    References
    ----------
    Jyothi et al., "Measuring and understanding throughput of network topologies", SC 2016.

    Examples
    --------
    >>> from relparallel.topology import fat_tree
    >>> concurrent_flow(fat_tree(k=4)).exact, round(float(concurrent_flow(fat_tree(k=4))) * 14, 9)
    (True, 15.0)
    """
    t = require_hosts(topology)
    require_choice(("all_to_all", "permutation", "longest_matching"), traffic=traffic)
    require_real(gap=gap, above=0.0, below=1.0)
    if np.ndim(require_real(share=share, above=0.0, at_most=1.0)):
        raise TypeError(f"share must be one number, got {share!r}")
    if rng is not None or traffic == "permutation" or share < 1.0:
        require_rng(rng=rng)
    problem = _problem(t, traffic, float(share), rng or np.random.default_rng())
    if problem.roots.size == 0:
        return exactly(math.inf, "no traffic leaves a switch")
    if problem.net.head.size == 0:
        return exactly(0.0, "no cable")
    return _solved(problem, float(gap))


def _problem(t: Topology, traffic: Traffic, share: float, rng: np.random.Generator) -> Problem:
    """The hosts that take part, and what they send."""
    net, hosts = switch_level(t), t.hosts
    if share < 1.0:
        hosts = rng.choice(hosts, size=max(2, round(share * hosts.size)), replace=False)
        taking_part = np.bincount(net.member[hosts], minlength=net.weight.size).astype(np.float64)
        net = replace(net, weight=taking_part)
    if traffic == "permutation":
        return permutation(net, hosts, rng)
    return all_to_all(t, net) if traffic == "all_to_all" else longest_matching(t, net)


def _solved(problem: Problem, gap: float) -> Estimate:
    """By shortest paths where these meet their bound, by linear programming where small enough."""
    lower, upper = shortest(problem)
    if upper == 0.0:
        return exactly(0.0, "a path is missing")
    if upper <= lower * (1.0 + CLOSE / 1000):
        return exactly(upper, "shortest paths, dual bound met")
    blocks = commodities(problem, FLOWS)
    if not blocks:
        lower, upper = bracket(problem, gap)
        return Estimate(
            value=lower, lower=lower, upper=upper, method="routing and pricing", exact=False
        )
    flows = sum(block.tail.size for block in blocks)
    value, price = solve(problem, blocks)
    upper = routed(problem, price, CLOSE)[1]
    over = " over proved orbits" if problem.symmetric else ""
    method = f"linear program{over}, {flows} flows"
    if abs(upper - value) <= CLOSE * value:
        return exactly(value, f"{method}, dual bound met")
    return Estimate(
        value=value, lower=min(value, upper), upper=max(value, upper), method=method, exact=False
    )


def bracket(problem: Problem, gap: float) -> tuple[float, float]:
    """Throughput from below and above, at most ``gap`` apart (relative) if the rounds suffice."""
    lower, upper = shortest(problem)
    best, left = np.full(problem.net.head.size, 1.0 / problem.net.head.size), _rounds(problem)
    softness, step, stage = _SOFTNESS, 1.0, _STAGE
    while left > 0 and upper > lower * (1.0 + gap):
        length = min(left, stage)
        low, high, best, done = _stage(problem, best, softness, step, length, gap, (lower, upper))
        lower, upper, left = max(lower, low), min(upper, high), left - done
        if done < length:
            step /= 2.0
        else:
            softness, stage = softness / 2.0, stage * 3 // 2
    return min(lower, upper), upper


def _rounds(problem: Problem) -> int:
    """Most rounds that the visits allow."""
    return int(min(_ROUNDS, _VISITS // (problem.roots.size * problem.net.head.size)))


def shortest(problem: Problem) -> tuple[float, float]:
    """Bounds of traffic on shortest paths where an arc is as long as it is thin."""
    load, upper = routed(problem, 1.0 / problem.net.capacity, _FLOOR)
    return min(_carried(problem, load), upper), upper


def routed(problem: Problem, price: FloatArray, softness: float) -> tuple[FloatArray, float]:
    """Load of all traffic along prices, and the bound they give; softness is in mean prices."""
    net, load = problem.net, np.zeros(problem.net.head.size)
    sent = problem.demand * problem.scale[:, None]
    price = np.maximum(price, _FLOOR * price.max())
    worth = float((price * net.capacity).sum())
    static = (net.indptr, net.head, net.reverse, net.transit, price, net.capacity)
    travelled = route(
        *static, problem.roots, sent, softness * worth / float(net.capacity.sum()), load
    )
    mean = np.bincount(problem.arc_class, weights=load) / np.bincount(problem.arc_class)
    return mean[problem.arc_class], worth / travelled


def _stage(
    problem: Problem,
    start: FloatArray,
    softness: float,
    step: float,
    rounds: int,
    gap: float,
    known: tuple[float, float],
) -> tuple[float, float, FloatArray, int]:
    """Bounds and best prices (times capacity) of a stage, its rounds: fewer if the bound rose."""
    capacity, (lower, upper) = problem.net.capacity, known
    slow, fast, best, top = start, start, start, np.inf
    gone, mean = np.zeros(start.size), np.zeros(start.size)
    for k in range(rounds):
        part = 2.0 / (k + 2.0)
        price = (1.0 - part) * slow + part * fast
        load, bound = routed(problem, price / capacity, softness)
        mean = (1.0 - part) * mean + part * load
        lower, top = max(lower, _carried(problem, mean)), min(top, bound)
        if bound < upper:
            upper, best = bound, price
        if bound > _WORSE * top or upper <= lower * (1.0 + gap):
            return lower, upper, best, k + 1 if k + 1 < rounds else k
        gone += load / capacity * upper / part
        fast = _prices(start, softness * step * gone)
        slow = (1.0 - part) * slow + part * fast
    return lower, upper, best, rounds


def _prices(start: FloatArray, gone: FloatArray) -> FloatArray:
    """Prices that grow exponentially with the load gone by, adding up to one."""
    exponent = np.log(np.maximum(start, 1e-200)) + gone
    grown = np.exp(exponent - exponent.max())
    return np.asarray(grown / grown.sum())


def _carried(problem: Problem, load: FloatArray) -> float:
    """Throughput at which the busiest arc is full."""
    return 1.0 / float((load / problem.net.capacity).max())
