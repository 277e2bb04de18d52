"""Largest concurrent flow between two bounds, for networks beyond linear programming.

Any mixture of routings is a flow: its largest load bounds the throughput from below. Any prices of the arcs
bound it from above: the price of all capacity over the price of all demand on its cheapest paths (Shahrokhi
and Matula, JACM 1990). Rounds of routing and pricing close the gap, as in Garg and Koenemann, SIAM J.
Computing 2007, here accelerated: traffic takes softly the cheapest paths, prices follow the accumulated load
by Nesterov's method for smoothed problems (Math. Programming 2005), with a restart at the best prices
whenever the bound gets worse.
"""

from typing import Final

import numpy as np

from relparallel.metrics._demand import Problem
from relparallel.metrics._paths import route
from relparallel.topology._arrays import FloatArray

ROUNDS: Final = 1000  #: most rounds
VISITS: Final = 6e9  #: most visits of arcs, about a minute; the bounds hold whenever the rounds stop
SOFTNESS: Final = 0.03  #: at first, in mean prices; halved when a stage ends
STAGE: Final = 100  #: rounds of the first stage; half as many again in the next
WORSE: Final = 1.02  #: a bound so many times the best of the stage halves the step
FLOOR: Final = 1e-12  #: smallest price, in largest prices


def bracket(problem: Problem, gap: float) -> tuple[float, float]:
    """Throughput from below and from above, at most ``gap`` apart (relative) if the rounds suffice."""
    lower, upper = shortest(problem)
    best, left = np.full(problem.net.head.size, 1.0 / problem.net.head.size), _rounds(problem)
    softness, step, stage = SOFTNESS, 1.0, STAGE
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
    return int(min(ROUNDS, VISITS // (problem.roots.size * problem.net.head.size)))


def shortest(problem: Problem) -> tuple[float, float]:
    """Bounds of traffic on shortest paths where an arc is as long as it is thin."""
    load, upper = routed(problem, 1.0 / problem.net.capacity, FLOOR)
    return min(_carried(problem, load), upper), upper


def routed(problem: Problem, price: FloatArray, softness: float) -> tuple[FloatArray, float]:
    """Load of all traffic along prices, and the bound that the prices give; softness is in mean prices."""
    net, load = problem.net, np.zeros(problem.net.head.size)
    sent = problem.demand * problem.scale[:, None]
    price = np.maximum(price, FLOOR * price.max())
    worth = float((price * net.capacity).sum())
    static = (net.indptr, net.head, net.reverse, net.transit, price, net.capacity)
    travelled = route(*static, problem.roots, sent, softness * worth / float(net.capacity.sum()), load)
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
    """Bounds and the best prices (times capacity) of one stage, and its rounds: fewer if the bound rose."""
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
        if bound > WORSE * top or upper <= lower * (1.0 + gap):
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
