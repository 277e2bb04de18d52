"""Outbreaks in random graphs whose vertices are alike: who is connected, by sums of positive terms only.

An infected vertex infects each neighbour across a link that is up; the outbreak that starts in one vertex
ends when it holds the component of that vertex. All that matters on the way is how many vertices are still
healthy and how many fell ill last: of n healthy ones, each escapes x infected ones with probability
``down ** x``. Nothing is ever subtracted from one, so a probability of 1e-95 keeps its digits.

References
----------
Gilbert, "Random graphs", Annals of Mathematical Statistics 30, 1959: the probability of connectedness.
Lefevre and Picard, "A non-standard family of polynomials and the final size distribution of Reed-Frost
epidemic processes", Advances in Applied Probability 22, 1990.
"""

import math

import numpy as np
from numpy.typing import NDArray

from relparallel.reliability.probability import Chance

FloatArray = NDArray[np.float64]


def binomial_weights(n: int, chance: Chance) -> FloatArray:
    """Probability that j = 0..n of n independent parts are up, [n + 1]."""
    up, down = chance
    return np.array([math.comb(n, j) * up**j * down ** (n - j) for j in range(n + 1)], dtype=np.float64)


def hit_table(n: int, most: int, chance: Chance) -> FloatArray:
    """Row x = 0..most: how many of n vertices at least one of x infected ones hits, [most + 1, n + 1]."""
    up, down = map(float, chance)
    x, count = np.arange(most + 1)[:, None], np.arange(n + 1)
    with np.errstate(divide="ignore", invalid="ignore"):  # log(0) where a hit is certain
        logarithm = np.log1p(-up) if up < 0.5 else np.log(down)
        hit = np.where(x > 0, -np.expm1(x * logarithm), 0.0)
    ways = np.array([float(math.comb(n, i)) for i in count])
    return np.asarray(ways * hit**count * (down**x) ** (n - count))


def terminals_missed(rows: int, terminals: int) -> FloatArray:
    """Chance that all (and that not all) of ``terminals`` rows fell ill, by healthy rows s, [rows, 2].

    One terminal started the outbreak, the others are any of the ``rows - 1`` remaining rows.
    """
    total = math.comb(rows - 1, terminals - 1)
    caught = [math.comb(rows - 1 - s, terminals - 1) for s in range(rows)]
    return np.array([(ways / total, (total - ways) / total) for ways in caught])


def rows_together(
    rows: int, columns: int, link: Chance, worth: FloatArray, caught: FloatArray | None = None
) -> FloatArray:
    """Expected worth of an outbreak in a random bipartite graph, from one row with s and t healthy others.

    Notes
    -----
    ``below[s, t, y]`` and ``above[s, x]`` (of the current t) are the expected worth with y columns or x rows
    infected last; with nobody infected last the outbreak is over. O(rows^2 columns^2) times B.
    """
    start = np.empty((rows, columns + 1, worth.shape[-1]))
    below = np.zeros((rows, columns + 1, columns + 1, worth.shape[-1]))
    below[:, :, 0] = worth if worth.ndim == 3 else worth[:, None]
    hit_rows = np.zeros((rows, columns + 1, rows))
    for s in range(rows):
        hit_rows[s, :, : s + 1] = hit_table(s, columns, link)
    aim, z = hit_table(1, columns, link), np.arange(rows)
    rest = np.maximum(z[:, None] - z, 0)
    for t in range(columns + 1):
        y = np.arange(t + 1)
        above = np.tensordot(below[:, t - y, y], hit_table(t, rows, link), axes=(1, 1)).transpose(0, 2, 1)
        below[:, t, 1:] = hit_rows[:, 1:] @ above[rest, z]
        if caught is not None:
            below[:, t, 1:] = aim[1:, :1] * below[:, t, 1:] + aim[1:, 1:] * caught
        start[:, t] = above[:, 1]
    return start


def row_set_together(rows: int, columns: int, link: Chance, terminals: int) -> FloatArray:
    """Chance that ``terminals`` of all ``rows`` are connected by j = 0..columns columns, [columns + 1, 2]."""
    start = rows_together(rows, columns, link, terminals_missed(rows, terminals))
    return np.asarray(start[rows - 1])
