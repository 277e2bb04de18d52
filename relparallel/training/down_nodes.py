"""How many nodes are down: distributions for a job that loses parts of several sizes, and their spread."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numba
import numpy as np
import scipy
from numpy.typing import NDArray

from relparallel.reliability.repair.stationary import stationary_distribution

Array = NDArray[np.float64]
Moves = Sequence[tuple[int, Array]]  # by how many nodes, and the rate of that in every state [1/s]

MOST_STATES: Final = 1000  # of cold spares with parts of several sizes; a few milliseconds
_SPREAD: Final = 12  # standard deviations that are kept
_LARGE: Final = 1e200
_RARE: Final = 1e-14


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
    """Probabilities of 0 ... K nodes down; ``loads`` holds, by nodes per part, the parts under repair.

    K q(K) = sum_n n rho_n able(K - n) q(K - n), O(K sizes). For parts of one size it is the birth-death
    distribution with any distribution of repairs, whatever `able` is (Erlang's B, the binomial); where all
    parts can always fail it is Panjer's recursion for a compound Poisson number, exact for any sizes. With
    several sizes and a state-dependent `able` it keeps the balance of every size on average.
    """
    sizes = [size for size, load in loads.items() if size > 0 and load != 0]
    rho = np.array([loads[size] for size in sizes], dtype=np.float64)
    weights = _recursion(np.array(sizes, dtype=np.int64), rho, np.asarray(able, dtype=np.float64))
    return np.asarray(weights / weights.sum())


@numba.njit(cache=True, error_model="numpy")  # type: ignore[misc]
def _recursion(sizes: Any, loads: Any, able: Any) -> Any:
    """Weights of 0 ... K nodes down."""
    weights = np.zeros(len(able))
    weights[0] = 1.0
    for down in range(1, len(able)):
        for place, size in enumerate(sizes):
            if size <= down:
                weights[down] += size * loads[place] * able[down - size] * weights[down - size]
        weights[down] /= down
        if weights[down] > _LARGE:
            weights[: down + 1] /= _LARGE
    return weights


def cold_distribution(loads: Mapping[int, float], repairs: Mapping[int, float], spares: int) -> Array | None:
    """Probabilities of 0 ... K nodes down of a job that waits, or None where there are too many states.

    A state counts the parts under repair by size. Nothing fails while more nodes are down than there are
    spares; a small part may come back before the large one that the job waits for, and that is what keeps
    the distribution from being a product. Each part comes back as a whole, after exponential times; sizes
    with several distributions of repair are taken at their mean.
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
        flows.append((fails, number[place[fails] + step], np.full(len(fails), loads[int(size)] / repair)))
        flows.append((back, number[place[back] - step], states[back, column] / repair))
    start, end, rate = (np.concatenate(column) for column in zip(*flows, strict=True))
    chain = scipy.sparse.csr_array((rate, (start, end)), shape=(len(states), len(states)))
    return np.asarray(np.bincount(down, stationary_distribution(chain)), dtype=np.float64)


def balanced_moves(probability: Array, loads: Mapping[int, float], able: Array, repair: float) -> Moves:
    """Moves of the reversible chain of whole parts that has the probabilities of `down_distribution`."""
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

    2 sum_K q (v - E v) h with Q h = E v - v, where Q holds the moves between numbers of nodes down and h is 0
    in the likeliest one. O(K n^2).
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
