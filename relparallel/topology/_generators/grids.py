"""Symmetries of grids: torus, HyperX, HammingMesh."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from itertools import pairwise

import numpy as np

from relparallel.topology._arrays import IntArray
from relparallel.topology._generators.blocks import blocks, exchange, flat, rolled, rolls

__all__ = ["hammingmesh", "hyperx", "torus", "tpu_v4"]


def torus(dims: Sequence[int], wrap: Sequence[bool] = ()) -> list[IntArray]:
    """Next node along wrapped dimensions; every dimension backwards; neighbours of one kind exchanged."""
    grid, around = blocks(tuple(dims)), wrap or (True,) * len(dims)
    shifts = [rolled(grid, (axis,)) for axis in range(len(dims)) if around[axis]]
    mirrors = [np.flip(grid[0], axis).ravel() for axis in range(len(dims))]
    swaps = [np.swapaxes(grid[0], a, b).ravel() for a, b in _alike(zip(dims, around, strict=True))]
    return [*shifts, *mirrors, *swaps]


def tpu_v4(dims: Sequence[int], cubes: Sequence[int] | None = None) -> list[IntArray]:
    """Those of a torus, whatever cubes it is made of."""
    return torus(dims)


def hyperx(dims: Sequence[int], t: int, k: int = 1) -> list[IntArray]:
    """Next server; next point along every dimension, its first two; dimensions of equal length exchanged."""
    parts = blocks((*dims, t), tuple(dims))
    orders = [(a, order) for a, n in enumerate(dims) for order in (np.roll(np.arange(n), -1), exchange(n))]
    points = [flat(np.take(part, order, axis=axis) for part in parts) for axis, order in orders]
    swaps = [flat(np.swapaxes(part, a, b) for part in parts) for a, b in _alike(dims)]
    return [*points, *swaps, *([rolled(parts, (len(dims), None))] if t else [])]


def hammingmesh(a: int, b: int, x: int, y: int) -> list[IntArray]:
    """Next row and column of boards, their first two exchanged; all boards mirrored either way."""
    parts = blocks((y, b, x, a), (y, b), (x, a))
    grid, row, column = parts
    moves = rolls(parts, [(0, 0, None), (2, None, 0)])
    swaps = [
        flat([grid[exchange(y)], row[exchange(y)], column]),
        flat([grid[:, :, exchange(x)], row, column[exchange(x)]]),
    ]
    mirrors = [flat([grid[:, ::-1], row[:, ::-1], column]), flat([grid[..., ::-1], row, column[:, ::-1]])]
    return [*moves, *swaps, *mirrors]


def _alike(kinds: Iterable[Hashable]) -> list[tuple[int, int]]:
    """Neighbouring dimensions of one kind."""
    return [(a, a + 1) for a, (one, other) in enumerate(pairwise(kinds)) if one == other]
