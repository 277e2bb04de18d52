"""Conditional permutation Monte Carlo with merging: the turnip of Elperin, Gertsbakh and Lomonosov.

Let every part be down at time 0 and come up after an exponential time of rate -ln(q), so that at
time 1 it is down with its own chance q. Only the order in which parts come up is drawn; given the
order, the time at which the terminals become connected is a sum of exponential times, one per step,
with the sum of the rates of the parts still waiting, and the chance that it exceeds 1 is computed.
Its mean is the unreliability: the estimator is unbiased, and its variance is below that of drawing
states (it is a conditional mean of the same indicator).

*Merging*: a link whose two ends are connected already is dropped, so that fewer steps are left and
more is computed instead of drawn. As all q fall to zero together, the relative error stays bounded.

References
----------
Elperin, Gertsbakh and Lomonosov, "Estimation of network reliability using graph evolution models",
IEEE Transactions on Reliability 40, 1991. L'Ecuyer, Saggadi and Tuffin, "Graph reductions to speed
up importance sampling-based static reliability estimation", Winter Simulation Conference 2011.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numba
import numpy as np

from relparallel.reliability.problem import Problem
from relparallel.reliability.sampling.moments import with_sample
from relparallel.reliability.sampling.monte_carlo import count_failures
from relparallel.reliability.sampling.sampling_network import Network, sampling_network

PILOT_SHARE: Final = 0.1  # of the work: more would leave too little for the answer
_TINY: Final = 1e-40  # mass that is dropped, as a share of what is left


@numba.njit(cache=True)
def sample_turnip(network, samples, rng):  # type: ignore[no-untyped-def]
    """Draw orders and average the conditional unreliability."""
    parts, n = len(network.down), len(network.terminal)
    rate, drawn = network.rate, np.flatnonzero(network.rate > 0.0)
    times, totals, room = np.empty(len(drawn)), np.empty(parts + 1), np.empty(parts + 1)
    waits, root = np.empty(parts, np.bool_), np.empty((4, n), np.int64)
    mean, square, cube, work = 0.0, 0.0, 0.0, 0
    for sample in range(samples):
        for k in range(len(drawn)):
            times[k] = rng.standard_exponential() / rate[drawn[k]]
        steps, looked = _come_up(network, rate, drawn[np.argsort(times)], waits, root, totals)
        value, summed = hypoexponential_tail(totals[:steps], room)
        work += looked + summed + len(drawn)
        mean, square, cube = with_sample(mean, square, cube, sample, value)
    return mean, square, cube, work


@numba.njit(cache=True)
def _come_up(network, rate, order, waits, sets, totals):  # type: ignore[no-untyped-def]
    """Let parts come up until the terminals connect; total rate before every step, steps, work."""
    root, ring, size, held = sets[0], sets[1], sets[2], sets[3]
    m, wanted, work = len(network.ends), 0, 0
    for v in range(len(root)):
        root[v], ring[v], size[v], held[v] = v, v, 1, network.terminal[v]
        wanted += held[v]
    waiting = 0.0
    for part in range(len(rate)):
        waits[part] = rate[part] > 0.0
        waiting += rate[part]
    gone, steps = network.down < 0.0, 0
    for part in order:
        work += 1
        if gone[part]:
            continue
        totals[steps] = max(waiting, rate[part])
        steps += 1
        waiting -= rate[part]
        waits[part] = False
        if part < m:
            first, last = part, part + 1
        else:
            first, last = network.first[part - m], network.first[part - m + 1]
        for k in range(first, last):
            link = k if part < m else network.around[k]
            u, v = network.ends[link, 0], network.ends[link, 1]
            if waits[link] or waits[m + u] or waits[m + v]:
                continue
            dropped, looked, together = _merge(network, rate, waits, gone, sets, u, v)
            waiting -= dropped
            work += looked
            if together == wanted:
                return steps, work
    return steps, work


@numba.njit(cache=True)
def _merge(network, rate, waits, gone, sets, u, v):  # type: ignore[no-untyped-def]
    """Make one component of two and drop the links between them that still wait.

    Returns the rate dropped, the work, and the terminals in the component.
    """
    root, ring, size, held = sets[0], sets[1], sets[2], sets[3]
    m, one, two = len(network.ends), root[u], root[v]
    if one == two:
        return 0.0, 1, held[one]
    if size[one] < size[two]:
        one, two = two, one
    dropped, work, x = 0.0, 1, two
    while True:  # around the ring of the smaller component
        for k in range(network.first[x], network.first[x + 1]):
            link = network.around[k]
            y = network.ends[link, 0] + network.ends[link, 1] - x
            if waits[link] and not gone[link] and root[y] == one and not waits[m + y]:
                gone[link] = True
                dropped += rate[link]
            work += 1
        x = ring[x]
        if x == two:
            break
    while root[x] != one:
        root[x] = one
        x = ring[x]
    ring[one], ring[two] = ring[two], ring[one]
    size[one] += size[two]
    held[one] += held[two]
    return dropped, work, held[one]


@numba.njit(cache=True)
def hypoexponential_tail(rates, room):  # type: ignore[no-untyped-def]
    """Chance that a sum of independent exponential times exceeds 1.

    Notes
    -----
    Uniformisation: with steps of a Poisson process of the largest rate L, of which one in L / rate
    is a jump, the chance is sum_k Poisson(k; L) P(fewer than b jumps in k steps). All terms are
    positive, so that a tail of 1e-30 keeps its digits; the usual sum over partial fractions
    alternates and loses them. Steps: about L + 8 sqrt(L), each as long as the states that still
    hold mass.
    """
    b, largest = len(rates), rates[0]
    if b == 1:
        return math.exp(-largest), 1
    room[:b] = 0.0
    room[0] = 1.0
    low, high, work = 0, 0, 0
    weight, tail, k = -largest, math.exp(-largest), 0
    while True:
        k += 1
        high = min(high + 1, b - 1)
        held = 0.0
        for j in range(high, low, -1):
            room[j] += (room[j - 1] * rates[j - 1] - room[j] * rates[j]) / largest
            held += room[j]
        room[low] *= 1.0 - rates[low] / largest
        held += room[low]
        work += high - low + 1
        while low < high and room[low] < _TINY * held:
            room[low] = 0.0
            low += 1
        weight += math.log(largest / k)
        term = math.exp(weight) * held
        tail += term
        if k > largest and term <= 1e-17 * tail * (1.0 - largest / k):
            return min(tail, 1.0), work


@dataclass(frozen=True, kw_only=True, slots=True)
class Sampler:
    """How to draw samples whose mean is U', where the unreliability is failed + alive * U'."""

    method: str
    kernel: Callable[..., Any]
    arguments: tuple[Any, ...]
    alive: float = 1.0
    failed: float = 0.0
    chunk: int = 2**15
    pilot: int = 2**12
    least: int = 2**9
    certain: bool = False
    spent: int = 0


#: From a network, a source of randomness and a limit of the work: fields of a `Sampler`.
Prepare = Callable[[Network, np.random.Generator, float], dict[str, Any]]


def make_sampler(
    problem: Problem,
    method: str,
    rng: np.random.Generator,
    max_work: float,
    prepare: Prepare | None = None,
) -> Sampler:
    """Prepare an estimator: crude sampling, permutations, or another one by its own `prepare`."""
    if method == "crude":
        return Sampler(method=method, kernel=_crude, arguments=(problem,))
    alive, failed, network = sampling_network(problem)
    if network is None:
        return Sampler(method=method, kernel=_crude, arguments=(), failed=failed, certain=True)
    fields = (prepare or _permutation)(network, rng, max_work)
    return Sampler(method=method, alive=alive, failed=failed, **fields)


def _crude(
    problem: Problem, samples: int, rng: np.random.Generator
) -> tuple[float, float, float, int]:
    """States of the network: the share that fails."""
    share = count_failures(problem, (samples, rng)) / samples
    square = samples * share * (1 - share)
    return (
        share,
        square,
        square * (1 - 2 * share),
        samples * (len(problem.link) + len(problem.node)),
    )


def _permutation(network: Network, _: np.random.Generator, max_work: float) -> dict[str, Any]:
    require_work("permutation", 2**10 * float(network.rate.sum()), max_work)
    return {"kernel": sample_turnip, "arguments": (network,), "chunk": 2**12, "pilot": 2**10}


def require_work(method: str, work: float, max_work: float) -> None:
    """Refuse what would never end."""
    least = work / PILOT_SHARE
    if least > max_work:
        raise ValueError(
            f"max_work must be {least:.1e} or more for method={method!r} on this network, got "
            f"{max_work:.1e}"
        )
