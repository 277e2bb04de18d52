"""Index arithmetic of symmetries: consecutive nodes as blocks of a grid, moved along its axes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from relparallel.topology._arrays import IntArray

__all__ = ["blocks", "exchange", "flat", "on_switches", "rolled", "rolls"]


def blocks(*shapes: tuple[int, ...]) -> list[IntArray]:
    """Consecutive indices arranged in blocks of these shapes."""
    ends = np.cumsum([np.prod(shape, dtype=np.int64) for shape in shapes])
    parts = np.split(np.arange(ends[-1]), ends[:-1])
    return [part.reshape(shape) for part, shape in zip(parts, shapes, strict=True)]


def flat(parts: Iterable[IntArray]) -> IntArray:
    """The permutation that moved blocks make together."""
    return np.concatenate([part.ravel() for part in parts])


def rolled(parts: Sequence[IntArray], axes: Sequence[int | None]) -> IntArray:
    """Every node goes to the next one along an axis of its block, round the edge; None leaves a block."""
    return flat(b if axis is None else np.roll(b, -1, axis) for b, axis in zip(parts, axes, strict=True))


def rolls(parts: Sequence[IntArray], moves: Iterable[Sequence[int | None]]) -> list[IntArray]:
    """One permutation for each choice of axes."""
    return [rolled(parts, axes) for axes in moves]


def exchange(size: int) -> IntArray:
    """The first two of some exchanged."""
    order = np.arange(size)
    order[:2] = order[:2][::-1]
    return order


def on_switches(switch: IntArray, p: int) -> IntArray:
    """Servers, p to a switch and numbered before all switches, that move with them."""
    servers = switch[:, None] * p + np.arange(p)
    return np.concatenate([servers.ravel(), switch.size * p + switch])
