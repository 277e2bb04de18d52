"""Layouts of networks whose nodes are points of a grid: torus, HammingMesh, HyperX."""

import math
from typing import Final

import numpy as np
from numpy.typing import NDArray

from relparallel.drawing.shapes import Points, circle, fans
from relparallel.topology import Topology

_SLANT: Final = (0.5, 0.34)  # of the second dimension of a torus of three, which is drawn as sheets
_PITCH: Final = 2.2  # between switches of a HyperX


def torus(t: Topology) -> Points:
    """A circle in one dimension, a grid in two, in three sheets above each other, seen from the side."""
    seen: Points = _places(t) @ _axes(t)
    return seen if seen[:, 1].any() else ring(t)


def sheets(t: Topology) -> NDArray[np.int64]:
    """Sheet of every node of a torus of three dimensions; -1 in others."""
    place = _places(t)
    return place[:, 2] if place.shape[1] > 2 else np.full(t.num_nodes, -1)


def _axes(t: Topology) -> Points:
    """Directions on paper of the dimensions of a torus."""
    lengths = _places(t).max(axis=0)
    if lengths.size < 3:
        return np.eye(2)[: lengths.size]
    return np.array([[1.0, 0.0], _SLANT, [0.0, _SLANT[1] * lengths[1] + 0.6]])


def ring(t: Topology) -> Points:
    """All nodes on one circle."""
    return circle(t.num_nodes, 0.5 / math.sin(math.pi / max(t.num_nodes, 2)))


def wraps(t: Topology) -> NDArray[np.bool_]:
    """Cables that run round the edge of a torus of two or three dimensions."""
    place = _places(t)
    apart = np.abs(np.diff(place[t.edges], axis=1)[:, 0])
    return np.asarray((apart > 1).any(axis=1) & (place.shape[1] > 1))


def outward(t: Topology, edges: NDArray[np.int64]) -> Points:
    """Direction, from the first end of each cable that runs round the edge of a torus; 0 for the others."""
    place = _places(t)
    steps = np.diff(place[edges], axis=1)[:, 0]
    around = np.where(np.abs(steps) > 1, -np.sign(steps), 0)
    directions: Points = around @ _axes(t)
    return directions


def combs(t: Topology, points: Points, edges: NDArray[np.int64]) -> list[Points]:
    """Cables of a HammingMesh: along a row or column beside its accelerators, then to one of them."""
    start, end = points[edges[:, 0]], points[edges[:, 1]]
    row = np.array([kind == "row" for kind in t.kinds])[t.node_kind][edges[:, 1]]
    corner = np.where(
        row[:, None], np.column_stack([start[:, 0], end[:, 1]]), np.column_stack([end[:, 0], start[:, 1]])
    )
    lines = np.stack([start, corner, end], axis=1)
    board = t.endpoint[edges[:, 1]]
    return [path[[0, 2]] if direct else path for path, direct in zip(lines, board, strict=True)]


def _places(t: Topology) -> NDArray[np.int64]:
    """Coordinates of the nodes of a torus in its dimensions longer than 1."""
    dims = [length for length in t.meta.parameters["dims"] if length > 1] or [1]
    if len(dims) > 3:
        raise ValueError(f"topology must have at most three dimensions to be drawn, got {t!r}")
    return np.column_stack(np.unravel_index(np.arange(t.num_nodes), dims)).astype(np.int64)


def boards(t: Topology) -> Points:
    """Boards of a HammingMesh on a grid, the switches of rows beside them and those of columns above."""
    a, b, x, y = (int(t.meta.parameters[name]) for name in "abxy")
    row, column = np.arange(b * y), np.arange(a * x)
    down, across = -(row + 0.8 * (row // b)), column + 0.8 * (column // a)
    grid = np.stack(np.meshgrid(across, down), axis=-1).reshape(-1, 2)
    heads = [
        np.column_stack([np.full(row.size, -1.6), down + 0.3]),
        np.column_stack([across + 0.3, np.full(column.size, 1.6)]),
    ]
    return np.concatenate([grid, *heads])


def hyperx(t: Topology) -> Points:
    """Switches on a grid, the last dimension to the right and all others downwards, each above its hosts."""
    switches = np.arange(t.num_switches or t.num_nodes)
    row, column = np.divmod(switches, t.meta.parameters["dims"][-1])
    centres = _PITCH * np.column_stack([column, -row])
    if not t.num_switches:
        return centres
    away = np.full(centres.shape, [math.sqrt(0.5), -math.sqrt(0.5)])
    home = np.repeat(switches, t.num_hosts // switches.size)
    return np.concatenate([fans(centres, away, home), centres])
