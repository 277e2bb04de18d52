"""Layouts in rows and on grids: tiers, tori, HammingMesh, HyperX, BCube; circles within circles."""

import math
from itertools import pairwise
from typing import Final

import numpy as np
from numpy.typing import NDArray

from chapters.drawing.shapes import Points, circle, fans, spread, turned
from relparallel.topology import Topology, describe

_STEP: Final = 2.2  # between two rows of tiers, in distances of hosts
_BELOW: Final = -1.1  # the row of NVSwitches, below the GPUs that they join
_SLANT: Final = (0.5, 0.34)  # of the second dimension of a torus of three, which is drawn as sheets
_PITCH: Final = 2.2  # between switches of a HyperX


def torus(t: Topology) -> Points:
    """A circle in one dimension, a grid in two, stacked sheets in three, seen from the side."""
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


def outward(t: Topology, edges: NDArray[np.int64]) -> Points:
    """Direction from the first end of each cable round the edge of a torus; 0 for the others."""
    place = _places(t)
    steps = np.diff(place[edges], axis=1)[:, 0]
    around = np.where(np.abs(steps) > 1, -np.sign(steps), 0)
    directions: Points = around @ _axes(t)
    return directions


def combs(t: Topology, points: Points, edges: NDArray[np.int64]) -> list[Points]:
    """Cables of a HammingMesh: along a row or column by its accelerators, then to one of them."""
    start, end = points[edges[:, 0]], points[edges[:, 1]]
    row = np.array([kind == "row" for kind in t.kinds])[t.node_kind][edges[:, 1]]
    corner = np.where(
        row[:, None],
        np.column_stack([start[:, 0], end[:, 1]]),
        np.column_stack([end[:, 0], start[:, 1]]),
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
    """Boards of a HammingMesh on a grid, switches of rows beside them, those of columns above."""
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
    """Switches on a grid, last dimension to the right, all others down, each above its hosts."""
    switches = np.arange(t.num_switches or t.num_nodes)
    row, column = np.divmod(switches, t.meta.parameters["dims"][-1])
    centres = _PITCH * np.column_stack([column, -row])
    if not t.num_switches:
        return centres
    away = np.full(centres.shape, [math.sqrt(0.5), -math.sqrt(0.5)])
    home = np.repeat(switches, t.num_hosts // switches.size)
    return np.concatenate([fans(centres, away, home), centres])


def bcube(t: Topology) -> Points:
    """BCube_0 and BCube_1 as a table of servers; higher levels as rows of switches above them."""
    n, k = (int(t.meta.parameters[name]) for name in ("n", "k"))
    servers = np.arange(n ** (k + 1))
    if k > 1:
        across = servers + 0.8 * (servers // n)
        rows = [np.column_stack([across, np.zeros(servers.size)])]
        per_level = n**k
        for level in range(k + 1):
            x = spread(-0.5, across[-1] + 0.5, per_level)
            rows.append(
                np.column_stack([x, np.full(per_level, (level + 1) * across[-1] / (2 * k + 1))])
            )
        return np.concatenate(rows)
    column, row = servers % n, -(servers // n)
    ends = np.arange(n**k)
    heads = [np.column_stack([np.full(ends.size, -1.3), -ends])]
    heads += [np.column_stack([ends, np.full(ends.size, 1.3)])] * k
    return np.concatenate([np.column_stack([column, row]), *heads]).astype(np.float64)


def mdcube(t: Topology) -> Points:
    """Containers on a grid: the last dimension to the right, all others downwards."""
    container, dims = bcube(t), t.meta.parameters["dims"]
    pitch = 1.25 * np.ptp(container, axis=0) + 1
    parts = np.split(container, [t.num_hosts // math.prod(dims)])
    row, column = np.divmod(np.arange(math.prod(dims)), dims[-1])
    corner = np.column_stack([column * pitch[0], -row * pitch[1]])[:, None]
    return np.concatenate([(corner + part).reshape(-1, 2) for part in parts])


def copies(t: Topology) -> Points:
    """Copies of a DCell or FiConn on nested circles, each switch in the middle of its servers."""
    n = int(t.meta.parameters["n"])
    points, radius = circle(n, 1.0), 1.0
    for size, larger in pairwise(sizes(t)):
        parts = larger // size
        ring = radius * 1.5 / math.sin(math.pi / parts)
        points = np.concatenate(
            [turned(points, i / parts) + p for i, p in enumerate(circle(parts, ring))]
        )
        radius += ring
    return np.concatenate([points, points.reshape(-1, n, 2).mean(axis=1)])


def sizes(t: Topology) -> list[int]:
    """Servers of a copy of each level of a DCell or FiConn: as of the design with fewer levels."""
    n, k = (int(t.meta.parameters[name]) for name in ("n", "k"))
    return [describe(t.meta.name, n=n, k=level).hosts for level in range(k + 1)]


def cells(t: Topology) -> NDArray[np.int64]:
    """Cell of the lowest level in which a node of a DCell or FiConn stands."""
    node = np.arange(t.num_nodes)
    return np.where(t.endpoint, node // int(t.meta.parameters["n"]), node - t.num_hosts)


def is_nvswitch(t: Topology) -> NDArray[np.bool_]:
    """NVSwitches: they join the GPUs of a domain from below, as rails do from above."""
    return np.array([kind == "nvswitch" for kind in t.kinds])[t.node_kind]


def is_tiered(t: Topology) -> bool:
    """Whether tiers are rows: hosts below, switches above, no cables within the highest tier."""
    if t.endpoint.all() or t.tier[t.endpoint].any():
        return False
    return not (t.tier[t.edges] == t.tier.max()).all(axis=1).any()


def tier_layout(t: Topology) -> Points:
    """Tiers as rows; a node stands above the middle of what hangs below it in its pod."""
    row = _rows(t)
    across, left = np.zeros(t.num_nodes), -0.5
    for pod in np.unique(t.pod[t.endpoint]):
        inside = [np.flatnonzero((t.pod == pod) & (row == level)) for level in np.unique(row)]
        hosts = int(np.count_nonzero(t.endpoint & (t.pod == pod)))
        width = max([float(hosts), *(len(nodes) / 2 for nodes in inside)])
        for nodes in inside:
            across[nodes] = spread(left, left + width, len(nodes))
        left += width + 0.8
    first, last = t.hosts[0], t.hosts[-1]
    middle, shared = (across[first] + across[last]) / 2, t.pod < 0
    for level in np.unique(row[shared]):
        nodes = np.flatnonzero(shared & (row == level))
        half = max(across[last] - across[first], len(nodes) / 2) / 2
        across[nodes] = spread(middle - half, middle + half, len(nodes))
    return np.column_stack([across, row])


def _rows(t: Topology) -> Points:
    """Height of every node."""
    below = is_nvswitch(t) & (t.tier < t.tier.max())
    row: Points = np.full(t.num_nodes, _BELOW)
    row[~below] = _STEP * np.unique(t.tier[~below], return_inverse=True)[1]
    return row
