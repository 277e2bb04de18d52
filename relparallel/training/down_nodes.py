"""How many nodes are down: distributions for a job losing parts of several sizes, and their spread.

Last the Markov chain of the nodes: limited repairmen, spares that fail, second failures in a pause.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
import scipy
from numpy.typing import NDArray

from relparallel._checks import (
    flag,
    instance,
    real,
    record,
    require_int,
    require_probability,
    whole,
)
from relparallel.reliability.repair.stationary import stationary_distribution
from relparallel.training._arguments import LONGEST, SHORTEST, Real, require_rate, require_time
from relparallel.training.failure_sources import alone

Array = NDArray[np.float64]
Moves = Sequence[tuple[int, Array]]  # by how many nodes, and the rate of that in every state [1/s]

MOST_STATES: Final = 1000  # of cold spares with parts of several sizes; a few milliseconds
_SPREAD: Final = 12  # standard deviations that are kept
_LARGE: Final = 1e200
_RARE: Final = 1e-14
_MOST_CHAIN: Final = 10**5  # states of the Markov chain


def reach(loads: Mapping[int, float], most: int) -> int:
    """Largest number of missing nodes that matters, at most ``most``."""
    mean = sum(size * load for size, load in loads.items())
    spread = sum(size**2 * load for size, load in loads.items()) ** 0.5
    return int(min(most, mean + _SPREAD * spread + 30 * max(loads, default=1))) if loads else 0


def able_to_fail(down: NDArray[np.int64], nodes: int, spares: int, hot: bool, waits: bool) -> Array:
    """Share of the nodes of the job that can fail while so many are down."""
    if hot:
        return np.maximum(nodes + spares - down, 0) / nodes
    if waits:
        return (down <= spares).astype(np.float64)
    return np.asarray(1 - np.clip(down - spares, 0, nodes) / nodes)


def speeds(down: NDArray[np.int64], spares: int, table: Array) -> Array:
    """Share of the throughput with so many nodes down; spares stand in first."""
    return table[np.clip(down - spares, 0, len(table) - 1)]


def down_distribution(loads: Mapping[int, float], able: Array) -> Array:
    """Probabilities of 0 ... K nodes down; ``loads`` holds, by nodes per part, parts under repair.

    K q(K) = sum_n n rho_n able(K - n) q(K - n), O(K sizes). For parts of one size it is the
    birth-death distribution with any distribution of repairs, whatever `able` is (Erlang's B, the
    binomial); where all parts can always fail it is Panjer's recursion for a compound Poisson
    number, exact for any sizes. With several sizes and a state-dependent `able` it keeps the
    balance of every size on average.
    """
    flows = [
        (size, (size * load * able).tolist())
        for size, load in loads.items()
        if size > 0 and load != 0
    ]
    weights = [1.0]
    for down in range(1, len(able)):
        weight = 0.0
        for size, flow in flows:
            if size <= down:
                weight += flow[down - size] * weights[down - size]
        weights.append(weight / down)
        if weights[down] > _LARGE:
            weights = [each / _LARGE for each in weights]
    found = np.array(weights)
    return np.asarray(found / found.sum())


def cold_distribution(
    loads: Mapping[int, float], repairs: Mapping[int, float], spares: int
) -> Array | None:
    """Probabilities of 0 ... K nodes down of a waiting job, or None if there are too many states.

    A state counts the parts under repair by size. Nothing fails while more nodes are down than
    there are spares; a small part may come back before the large one that the job waits for, and
    that is what keeps the distribution from being a product. Each part comes back as a whole, after
    exponential times; sizes with several distributions of repair are taken at their mean.
    """
    sizes = np.array(sorted(loads))
    counts = np.array([spares // size + 2 for size in sizes])
    if np.prod(counts.astype(np.float64)) > 100 * MOST_STATES:
        return None
    states = np.stack(np.unravel_index(np.arange(counts.prod()), counts), axis=1)
    inside = states @ sizes <= spares + sizes.max()
    if inside.sum() > MOST_STATES:
        return None
    number = np.cumsum(inside) - 1
    states = states[inside]
    down = states @ sizes
    place, flows = states @ (counts.prod() // np.cumprod(counts)), []
    for column, size in enumerate(sizes):
        step = int(counts[column + 1 :].prod())
        repair = repairs[int(size)]
        fails, back = np.flatnonzero(down <= spares), np.flatnonzero(states[:, column])
        flows.append(
            (fails, number[place[fails] + step], np.full(len(fails), loads[int(size)] / repair))
        )
        flows.append((back, number[place[back] - step], states[back, column] / repair))
    start, end, rate = (np.concatenate(column) for column in zip(*flows, strict=True))
    chain = scipy.sparse.csr_array((rate, (start, end)), shape=(len(states), len(states)))
    return np.asarray(np.bincount(down, stationary_distribution(chain)), dtype=np.float64)


def mixed_distribution(
    rates: Mapping[int, float],
    repairs: Mapping[int, float],
    able: Array,
    spares: int,
    *,
    cold: bool = False,
    apart: bool = False,
    phases: Sequence[tuple[float, float]] = ((1.0, 1.0),),
) -> Array:
    """Probabilities of 0 ... K nodes down, over phases of the time with other rates.

    ``rates`` and ``repairs`` hold by the nodes of a part how often one fails, with all nodes up
    [1/s], and the mean of its repair [s]. ``apart``: the nodes of a part come back each on its own.
    ``cold``: of a job that waits and whose spares do not fail, by the chain of `cold_distribution`
    or `NodeChain`; else `down_distribution`.
    """
    found = np.zeros(able.size)  # events may have no size that reaches the last states
    for share, factor in phases:
        chance = _distribution(
            {n: factor * rate for n, rate in rates.items()}, repairs, able, spares, cold, apart
        )
        longer = max(found.size, chance.size)
        found = np.pad(found, (0, longer - found.size)) + share * np.pad(
            chance, (0, longer - chance.size)
        )
    return found


def _distribution(
    rates: dict[int, float],
    repairs: Mapping[int, float],
    able: Array,
    spares: int,
    cold: bool,
    apart: bool,
) -> Array:
    """`mixed_distribution` of one phase."""
    loads = {n: rate * repairs[n] for n, rate in rates.items()}
    if cold and all(repairs.values()):
        if apart and max(rates, default=1) > 1:
            down = sum(n * load for n, load in loads.items())
            repair = down / sum(n * rate for n, rate in rates.items()) if down else SHORTEST
            most = max(rates)
            chain = NodeChain(
                nodes=max(most, spares + 1),
                spares=spares,
                rates=rates,
                repair=repair,
                speed=np.array([1.0, 0.0]),
                waits=True,
            )
            return np.asarray(chain.stationary().sum(axis=1))
        found = cold_distribution(loads, repairs, spares) if len(loads) > 1 else None
        if found is not None:
            return found
    return down_distribution(alone(loads) if apart else loads, able)


def balanced_moves(
    probability: Array, loads: Mapping[int, float], able: Array, repair: float
) -> Moves:
    """Moves of the reversible whole-part chain with the probabilities of `down_distribution`."""
    moves: list[tuple[int, Array]] = []
    for size, load in loads.items():
        if load > 0 and size < len(probability):
            fails = able * load / repair
            back = np.zeros(len(probability))
            into = probability[:-size] * fails[:-size]
            np.divide(into, probability[size:], out=back[size:], where=probability[size:] > 0)
            moves += [(size, fails), (-size, back)]
    return moves


def speed_variance(probability: Array, moves: Moves, speed: Array) -> float:
    """Asymptotic variance of the mean speed over a run, times its length [s].

    2 sum_K q (v - E v) h with Q h = E v - v, where Q holds the moves between numbers of nodes down
    and h is 0 in the likeliest one. O(K n^2).
    """
    known = np.flatnonzero(probability > _RARE * probability.max())
    window = slice(known[0], known[-1] + 1)
    probability, speed = probability[window] / probability[window].sum(), speed[window]
    last, wide = len(probability) - 1, max((abs(step) for step, _ in moves), default=0)
    if last == 0 or wide == 0:
        return 0.0
    states = np.arange(last + 1)
    band = np.zeros((2 * wide + 1, last + 1))  # row wide + i - j holds entry (i, j)
    for step, every in moves:
        rate, to = every[window], np.clip(states + step, 0, last)
        np.add.at(band, (wide + states - to, to), rate)
        band[wide] -= rate
    band[wide, band[wide] == 0] = -1.0  # numbers that never occur
    off, most = speed - probability @ speed, int(probability.argmax())
    row = np.arange(max(most - wide, 0), min(most + wide, last) + 1)
    band[wide + most - row, row] = row == most
    ahead = scipy.linalg.solve_banded((wide, wide), band, np.where(states == most, 0.0, -off))
    return max(float(2 * probability @ (off * ahead)), 0.0)


@record(eq=False)
class NodeChain:
    """Nodes that fail alone or several at once, are repaired, and stop or slow a job.

    A state is (k, s): k nodes are under repair, and the job stands in a pause (s = 1) or not. From
    it failures of size n come at rate L_n a(k), where a is the share of nodes that can fail, and
    repairs end at rate min(k, c)/r, node by node. In a state in which the job waits, its pause does
    not pass. Without a pause, with n = 1 and enough repairmen it is Erlang's B (cold), the binomial
    distribution (hot) and E[v] = a^g (elastic, shrinking batch). Barlow and Proschan, "Mathematical
    Theory of Reliability", 1965, chapter 5: the repairman's model.
    """

    nodes: int = whole(at_least=1, at_most=10**6)  # N of the job
    spares: int = whole(at_least=0, at_most=10**6, default=0)  # S besides
    # by the n nodes of a failure, L_n with all nodes up [1/s]
    rates: Mapping[int, float] = instance(Mapping)
    # mean r until a repairman has repaired a node
    repair: float = real(at_least=SHORTEST, at_most=LONGEST)
    speed: Array = instance(np.ndarray)  # share v with 0, 1, ... missing; the last for more
    # all N + S nodes can always fail; False: those that work for the job
    hot: bool = flag(default=False)
    waits: bool = flag(default=False)  # nothing fails while the job is short of nodes; cold spares
    # mean, begun anew by another failure [s]
    pause: float = real(at_least=0, at_most=LONGEST, default=0.0)
    # repairs c at once; None: any number
    crews: int | None = whole(at_least=1, at_most=10**6, default=None)

    def __post_init__(self) -> None:
        for size, rate in self.rates.items():
            require_int(rates=size, at_least=1, at_most=self.nodes)
            require_rate(rates=rate)
        require_probability(speed=self.speed)
        if self.speed.ndim != 1 or not self.speed.size:
            raise ValueError(
                f"speed must hold a share for each number of nodes, got shape {self.speed.shape}"
            )

    def _most(self) -> int:
        """Largest number of nodes under repair that is kept."""
        top, widest = self.nodes + self.spares, max(self.rates, default=1)
        if self.waits and not self.hot:
            return min(top, self.spares + widest)
        if self.crews is None:
            return reach({n: rate * self.repair for n, rate in self.rates.items()}, top)
        work = sum(n * rate for n, rate in self.rates.items()) * self.repair
        if work < 0.9 * self.crews:  # a queue with a geometric tail
            parts = 60 + np.log(1e-16) / np.log(work / self.crews + 1e-9)
            return int(min(top, self.crews + widest * parts))
        return top

    def generator(self) -> "scipy.sparse.csr_array":
        """Return rates [1/s] between the states (0, running), (0, pausing), (1, running), ..."""
        most = self._most()
        if 2 * most + 2 > _MOST_CHAIN:
            raise ValueError(f"nodes must leave at most {_MOST_CHAIN} states, got {2 * most + 2}")
        down = np.arange(most + 1)
        able = able_to_fail(down, self.nodes, self.spares, self.hot, self.waits)
        back = np.minimum(down[1:], self.crews or most) / self.repair
        moves: list[tuple[Any, Any, Any]] = []
        for state in (0, 1):
            moves.append((2 * down[1:] + state, 2 * down[:-1] + state, back))
            after = 1 if self.pause > 0 else state
            for size, rate in self.rates.items():
                fits = down[: most + 1 - size]
                moves.append((2 * fits + state, 2 * (fits + size) + after, rate * able[fits]))
        running = (speeds(down, self.spares, self.speed) > 0) | (down == 0)
        moves.append(
            (2 * down + 1, 2 * down, np.where(running, 1 / (self.pause or self.repair), 0.0))
        )
        start, end, every = (np.concatenate(parts) for parts in zip(*moves, strict=True))
        rates = scipy.sparse.csr_array((every, (start, end)), shape=(2 * most + 2, 2 * most + 2))
        return scipy.sparse.csr_array(rates - scipy.sparse.diags_array(rates.sum(axis=1)))

    def stationary(self) -> Array:
        """Return each state's time share, shape (nodes under repair, 2): running and pausing."""
        return stationary_distribution(self.generator()).reshape(-1, 2)

    def shares(self) -> tuple[float, float, float]:
        """Return shares of time the job waits (no speed left) and pauses, and its mean speed."""
        chance = self.stationary()
        speed = speeds(np.arange(len(chance)), self.spares, self.speed)
        return (
            float(chance[speed == 0].sum()),
            float(chance[speed > 0, 1].sum()),
            float(chance[:, 0] @ speed),
        )

    def transient(self, times: Real) -> Array:
        """Mean throughput at times [s] after a start with all nodes up, one share per time."""
        from scipy.sparse.linalg import expm_multiply

        when = np.atleast_1d(require_time(times=times))
        rates = self.generator()
        speed = np.zeros(rates.shape[0])
        speed[::2] = speeds(np.arange(rates.shape[0] // 2), self.spares, self.speed)
        return np.array([expm_multiply(rates * float(time), speed)[0] for time in when])
