"""Connectivity of random bipartite graphs whose vertices are alike, without the compiler.

The sums are those of `interchangeable_nodes`, as arrays: every term is a product of probabilities,
and a probability of 1e-95 keeps its digits.
"""

import math

import numpy as np
from numpy.typing import NDArray

from relparallel.reliability.probability import Chance


def sides_connected(
    rows: tuple[int, int], columns: int, link: Chance, column: Chance, row: Chance = (1.0, 0.0)
) -> Chance:
    """Chance that the terminals connect: the first of two row counts; other rows and columns fail.

    The sum over the component of one terminal. O(rows^2 columns^2) operations.
    """
    (terminals, others), n = rows, sum(rows)
    ways = [
        np.array([float(math.comb(m, i)) for i in range(m + 1)]) for m in range(max(n, columns) + 1)
    ]
    hit, joined = _hits(columns, link), np.zeros((n + 1, columns + 1))
    miss = link[1] ** np.arange(n * columns + 1.0)
    joined[0, 1:2] = joined[1, 0] = 1.0
    for r in range(1, n + 1):
        i = np.arange(r)[:, None]
        # one row apart: a second vertex, a column, has i rows and j columns
        for c in range(1, columns + 1):
            j = np.arange(1, c + 1)
            mass = (
                joined[:r, 1 : c + 1] * joined[r - i, c - j] * miss[i * (c - j) + j * (r - 1 - i)]
            )
            joined[r, c] = ways[r - 1] @ mass @ (ways[c - 1] * hit[1 : c + 1])
    s, h, g = np.ogrid[1 : terminals + 1, : others + 1, : columns + 1]
    mass = (
        ways[terminals - 1][:, None, None]
        * _shares(ways[others], row[0])[:, None]
        * joined[s + h, g]
    )
    mass = mass * (row[1] + row[0] * miss[g]) ** (others - h) * _shares(ways[columns], column[0])
    mass = mass * (column[1] + column[0] * miss[s + h]) ** (columns - g) * miss[g * (terminals - s)]
    up, down = float(mass[-1].sum()), float(mass[:-1].sum())
    return (1.0 - down, down) if down < up else (up, 1.0 - up)


def _shares(ways: NDArray[np.float64], up: float) -> NDArray[np.float64]:
    """Chance that j = 0, 1, ... vertices are up, whatever the others are."""
    return ways * up ** np.arange(len(ways))


def _hits(most: int, link: Chance) -> NDArray[np.float64]:
    """Chance that one of k = 0..most links is up."""
    up, down = map(float, link)
    with np.errstate(divide="ignore", invalid="ignore"):  # log(0) where a hit is certain
        logarithm = np.log1p(-up) if up < 0.5 else np.log(down)
        return np.where(np.arange(most + 1) > 0, -np.expm1(np.arange(most + 1) * logarithm), 0.0)
