"""Workers that wait for each other, or not: waiting recursion, delay of every update, exact rates.

A worker does clock after clock. Under a staleness bound s it may start clock c once every worker
has finished clock c - s - 1: s = 0 is bulk synchronous (BSP), s = infinity asynchronous (ASP,
Hogwild!). An update is delayed by the updates that were applied between the time its worker read
the weights and its own.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array

from chapters.s40.staleness import Taps
from relparallel._checks import require_int, require_real
from relparallel.reliability import stationary_distribution

_MOST_WORKERS: Final = 400  # some seconds: the time grows with their cube
_MOST_STATES: Final = 5_000  # of the Markov chain: some seconds
# clocks ahead of the last worker, and whether it is up, of every worker
State = tuple[tuple[int, bool], ...]


class AsynchronousRun(NamedTuple):
    """When each worker read the weights for each clock and finished it [s], (clocks, workers)."""

    read: NDArray[np.float64]
    finish: NDArray[np.float64]

    @property
    def throughput(self) -> float:
        """Clocks per worker and second, until the first worker is done."""
        end = self.finish[-1].min()
        return float(np.sum(self.finish <= end) / (end * self.finish.shape[1]))

    @property
    def order(self) -> NDArray[np.int64]:
        """Updates as they are applied: clock * workers + worker."""
        return np.argsort(self.finish, axis=None, kind="stable")

    @property
    def delays(self) -> NDArray[np.int64]:
        """Updates that each one's weights lack, in that order."""
        seen = np.searchsorted(
            self.finish.ravel()[self.order], self.read.ravel()[self.order], side="right"
        )
        return np.arange(self.order.size) - seen


def asynchronous_run(
    durations: ArrayLike, staleness: int | None = None, fetch: int | None = 1
) -> AsynchronousRun:
    """Workers that run clock by clock, waiting where the staleness bound s makes them.

    ``durations`` [s] are those of every clock of every worker, repairs included, shape (clocks,
    workers). Weights are read before every clock (``fetch=1``: Hogwild!, Petuum's eager SSP), every
    so many (DistBelief's Downpour), or, None, when the copy is older than the bound allows (SSP's
    cache). F(c, p) = max(F(c-1, p), max over q of F(c-s-1, q)) + duration. Ho et al., NeurIPS 2013;
    Dean et al., NeurIPS 2012, section 4.

    >>> run = asynchronous_run([[1.0, 2.0]] * 6, staleness=1)
    >>> run.read[:, 0].tolist()  # the first worker waits from clock 3 on
    [0.0, 1.0, 2.0, 4.0, 6.0, 8.0]
    """
    times = np.asarray(require_real(durations=durations, above=0))
    s = len(times) if staleness is None else require_int(staleness=staleness, at_least=0)
    start, finish, slowest = np.zeros_like(times), np.zeros_like(times), np.zeros(len(times))
    for c, spent in enumerate(times):
        if c:
            start[c] = np.maximum(finish[c - 1], slowest[c - s - 1] if c > s else 0.0)
        finish[c] = start[c] + spent
        slowest[c] = finish[c].max()
    return AsynchronousRun(_read(start, slowest, s, fetch), finish)


def _read(
    start: NDArray[np.float64], slowest: NDArray[np.float64], s: int, fetch: int | None
) -> NDArray[np.float64]:
    """When the weights of every clock were read: at its start, or before an earlier one."""
    whole = np.searchsorted(slowest, start, side="right")  # clocks that all workers have finished
    read = np.zeros_like(start)
    copy = np.zeros(start.shape[1], dtype=np.int64)
    for c in range(1, len(start)):
        fresh = copy < c - s if fetch is None else np.full(copy.shape, c % fetch == 0)
        read[c] = np.where(fresh, start[c], read[c - 1])
        copy = np.where(fresh, whole[c], copy)
    return read


def ssp_throughput(
    workers: int,
    staleness: int | None,
    rates: ArrayLike = 1.0,
    failure_rate: float = 0.0,
    repair_rate: float = 1.0,
) -> float:
    """Clocks per worker and second under a staleness bound, exact for exponential clock times.

    ``rates`` are those of a worker that does not wait, one for all or one for each; a worker that
    failed begins its clock again after the repair. From the stationary distribution of a Markov
    chain of how far every worker is ahead, of at most 5,000 states; equal workers are
    interchangeable. With rates of 1, two workers have (2 s + 2)/(2 s + 3), and s = 0 is 1/(1 + 1/2
    + ... + 1/P).

    >>> round(ssp_throughput(workers=2, staleness=3), 12)  # 8/9
    0.888888888889
    """
    most = 10**6 if staleness is None else _MOST_WORKERS
    count = require_int(workers=workers, at_least=1, at_most=most)
    speed = np.broadcast_to(require_real(rates=rates, above=0), (count,))
    if staleness is None:
        return float(speed.mean() * repair_rate / (repair_rate + failure_rate))
    bound = require_int(staleness=staleness, at_least=0)
    chance, states = _stationary(speed, bound, failure_rate, repair_rate)
    moving = [
        sum(rate for rate, (ahead, up) in zip(speed, state, strict=True) if up and ahead <= bound)
        for state in states
    ]
    return float(chance @ moving / count)


def _stationary(
    speed: NDArray[np.float64], bound: int, fail: float, repair: float
) -> tuple[NDArray[np.float64], list[State]]:
    """Stationary distribution of the chain, and its states in the order in which they are found."""
    alike = bool(np.all(speed == speed[0]))
    states: list[State] = [((0, True),) * speed.size]
    number, entries = {states[0]: 0}, [(0.0, 0, 0)]
    for i, state in enumerate(states):  # grows meanwhile
        for rate, after in _moves(state, speed, bound, fail, repair):
            target = tuple(sorted(after)) if alike else after
            if target not in number:
                number[target] = len(states)
                states.append(target)
            entries.append((rate, i, number[target]))
        if len(states) > _MOST_STATES:
            most = f"at most {_MOST_STATES} states with {speed.size} workers"
            raise ValueError(f"staleness must give {most}, got {bound}")
    rates, here, there = zip(*entries, strict=True)
    table = csr_array((rates, (here, there)), shape=(len(states), len(states)))
    return stationary_distribution(table), states


def _moves(
    state: State, speed: NDArray[np.float64], bound: int, fail: float, repair: float
) -> Iterator[tuple[float, State]]:
    """Rate and next state of everything that can happen."""
    for p, (ahead, up) in enumerate(state):
        if up and ahead <= bound:
            yield speed[p], _behind((*state[:p], (ahead + 1, True), *state[p + 1 :]))
        if fail and up:
            yield fail, (*state[:p], (ahead, False), *state[p + 1 :])
        if not up:
            yield repair, (*state[:p], (ahead, True), *state[p + 1 :])


def _behind(state: State) -> State:
    """Clocks counted from the last worker."""
    last = min(ahead for ahead, _ in state)
    return tuple((ahead - last, up) for ahead, up in state)


def asynchronous_taps(rate: float, workers: int, curvature: float = 1.0) -> Taps:
    """The mean of asynchronous descent on a quadratic as taps, when clocks last exponential times.

    P ``workers`` neither wait nor differ (ASP, Hogwild!), so every update is that of any worker
    with the same probability, a delay is d with probability (1 - 1/P)**d / P, and the mean weights
    obey w(t+1) - w(t) = (1 - 1/P)(w(t) - w(t-1)) - a c w(t)/P with the step a and the second
    derivative c: asynchrony acts as momentum. Stable below 2 (2 P - 1)/c; single runs diverge
    earlier. Mitliagkas et al., "Asynchrony begets Momentum", 2016.

    >>> asynchronous_taps(0.5, workers=4)
    {0: 1.625, 1: -0.75}
    """
    momentum = 1 - 1 / workers
    return {0: 1 + momentum - rate * curvature / workers, 1: -momentum}
