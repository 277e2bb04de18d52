"""Connectivity of random graphs whose nodes are alike: complete ones and complete bipartite ones.

The nodes split into the component of one terminal and the rest, and only the numbers on both sides
count. To have a component of some size: take one node out, and let a second one be in a component
without it; the first node must then reach this component, and be joined to all that is left. Every
term is a product of probabilities, and nothing is subtracted from one but for ``1 - down ** x``
itself, so that a probability of 1e-95 keeps its digits.

References
----------
Gilbert, "Random graphs", Annals of Mathematical Statistics 30, 1959.
"""

import math
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from relparallel.reliability.probability import CERTAIN, Chance

FloatArray = NDArray[np.float64]

MOST_LINKS: Final = 2**15  # of two sides: two seconds


def complete_connected(terminals: int, others: int, link: Chance, other: Chance) -> Chance:
    """Chance that the terminals of a complete graph are connected; only the other nodes fail.

    The component of one terminal has t terminals, h others, and all of k = t + h, with probability
    C(T - 1, t - 1) C(O, h) joined[k] up^h link_down^(k (T - t)) (down + up link_down^k)^(O - h).
    O(n^2) operations.
    """
    n = terminals + others
    hit, joined = _hits(n, link), np.zeros(n + 1)
    miss = float(link[1]) ** np.arange(max(n * n // 4, n) + 1.0)
    joined[1] = 1.0
    for k in range(2, n + 1):
        i = np.arange(1, k)
        mass = _choices(k - 2) * joined[1:k] * hit[1:k] * joined[k - i]
        joined[k] = mass @ miss[i * (k - 1 - i)]
    t, h = np.ogrid[1 : terminals + 1, : others + 1]
    mass = _choices(terminals - 1)[:, None] * _shares(others, other[0]) * joined[t + h]
    mass = mass * (other[1] + other[0] * miss[t + h]) ** (others - h)
    return _sum((mass * miss[(t + h) * (terminals - t)]).sum(axis=1))


def sides_connected(
    rows: tuple[int, int],
    columns: tuple[int, int],
    link: Chance,
    row: Chance = CERTAIN,
    column: Chance = CERTAIN,
) -> Chance:
    """Chance that the terminals of a complete bipartite graph are connected; only others fail.

    ``rows`` and ``columns`` are the terminals and the others of a side, with a terminal among the
    rows; ``row`` and ``column`` are the chances of the others. The sum over the component of one
    terminal. O(rows^2 columns^2) operations.
    """
    (a, more), (b, rest) = rows, columns
    r, c = a + more, b + rest
    miss = float(link[1]) ** np.arange(r * c + 1.0)
    joined = _joined_sides(r, c, _hits(c, link), miss)
    s, h, t, g = np.ogrid[1 : a + 1, : more + 1, : b + 1, : rest + 1]
    i, j = s + h, t + g
    mass = _choices(a - 1)[:, None, None, None] * _shares(more, row[0])[:, None, None]
    mass = mass * _choices(b)[:, None] * _shares(rest, column[0]) * joined[i, j]
    mass = mass * (row[1] + row[0] * miss[j]) ** (more - h)
    mass = mass * (column[1] + column[0] * miss[i]) ** (rest - g)
    return _sum((mass * miss[i * (b - t) + j * (a - s)]).sum(axis=(1, 3)))


def _joined_sides(rows: int, columns: int, hit: FloatArray, miss: FloatArray) -> FloatArray:
    """Chance that a complete bipartite graph is connected, by rows and columns; 0 if both are 0."""
    joined = np.zeros((rows + 1, columns + 1))
    joined[0, 1:2] = joined[1, 0] = 1.0
    for r in range(1, rows + 1):
        i = np.arange(r)[:, None]
        # one row apart: a second vertex, a column, has i rows and j columns
        for c in range(1, columns + 1):
            j = np.arange(1, c + 1)
            mass = joined[:r, 1 : c + 1] * joined[r - i, c - j]
            mass *= miss[i * (c - j) + j * (r - 1 - i)]
            joined[r, c] = _choices(r - 1) @ mass @ (_choices(c - 1) * hit[1 : c + 1])
    return joined


def _sum(mass: FloatArray) -> Chance:
    """All terminals in the component of the first: the last entry; the others are failures."""
    up, down = float(mass.flat[-1]), float(mass.ravel()[:-1].sum())
    return (1.0 - down, down) if down < up else (up, 1.0 - up)


@lru_cache(maxsize=2048)
def _choices(n: int) -> FloatArray:
    """Binomial coefficients of n, each correctly rounded."""
    found = np.array([float(math.comb(n, k)) for k in range(n + 1)])
    found.flags.writeable = False
    return found


def _shares(n: int, up: float) -> FloatArray:
    """Chance that j = 0, 1, ... of n nodes are up, whatever the others are."""
    return _choices(n) * up ** np.arange(n + 1)


def _hits(most: int, link: Chance) -> FloatArray:
    """Chance that one of k = 0..most links is up."""
    up, down = map(float, link)
    with np.errstate(divide="ignore", invalid="ignore"):  # log(0) where a hit is certain
        logarithm = np.log1p(-up) if up < 0.5 else np.log(down)
        return np.where(np.arange(most + 1) > 0, -np.expm1(np.arange(most + 1) * logarithm), 0.0)
