"""Pictures of topologies: every design laid out so that its rule can be seen.

`positions` gives coordinates, `draw_topology` draws cables and nodes. Tiers of a Clos network are rows and
its pods are groups; the servers of a BCube_1 are the cells of a table, its switches the heads of rows and
columns, and the containers of an MDCube such tables on a grid; the copies of a DCell or FiConn stand on a
circle; a torus is unrolled, its cables round the edge cut open. Groups of any other design stand on a circle,
each with its switches inside and its hosts outside.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from itertools import pairwise
from typing import Any, Final

import networkx as nx
import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.patches import FancyBboxPatch
from numpy.typing import NDArray

from relparallel._checks import require_instance
from relparallel.plotting import PALETTE
from relparallel.topology import Topology, as_topology
from relparallel.topology.server_centric import dcell_servers, ficonn_servers

__all__ = ["draw_topology", "positions"]

Points = NDArray[np.float64]

_ROUTES: Final = ("vermilion", "blue", "green", "purple", "orange", "sky")
_DEPTH: Final = ((1.0, 0.0), (0.0, 1.0), (0.38, 0.27))  # directions on paper of the dimensions of a torus


def positions(topology: Topology | nx.Graph[Any]) -> Points:
    """Coordinates at which a topology shows its structure; the same on every machine.

    Parameters
    ----------
    topology : Topology or networkx.Graph
        A design, or any graph, which is laid out on a circle.

    Returns
    -------
    float array [n, 2]
        Distance 1 is that of neighbouring hosts.

    Raises
    ------
    TypeError, ValueError
        If it is no topology, or a torus of more than three dimensions longer than 1.

    Examples
    --------
    >>> from relparallel.topology import torus
    >>> positions(torus((2, 2))).tolist()
    [[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]]
    """
    t = as_topology(topology, name="topology")
    layout = _LAYOUTS.get(t.meta.name, _tiers if _is_tiered(t) else _ring if t.endpoint.all() else _groups)
    return layout(t)


def draw_topology(
    topology: Topology | nx.Graph[Any], ax: Axes, *, paths: Sequence[Sequence[Hashable]] = ()
) -> None:
    """Draw cables, hosts (circles) and switches (squares), and mark paths by colour.

    Parameters
    ----------
    topology : Topology or networkx.Graph
        What to draw; at some hundred nodes a picture stops being one.
    ax : Axes
        Where to draw; its frame and ticks are taken away.
    paths : sequence of sequences of labels, optional
        Each is a walk along cables, drawn thick in a colour of its own; its ends are filled.

    Raises
    ------
    TypeError, ValueError
        If an argument is not as stated, or a path uses a cable that is not there.

    Examples
    --------
    >>> from relparallel.plotting import figure
    >>> from relparallel.topology import bcube
    >>> fig, ax = figure()
    >>> draw_topology(bcube(n=4, k=1), ax, paths=[(0, 16, 3)])
    """
    t = as_topology(topology, name="topology")
    require_instance(Axes, ax=ax)
    walks = [_walk(t, path) for path in require_instance((tuple, list), paths=paths)]
    points = positions(t)
    area = float(np.clip(520 / t.num_nodes, 5, 34))  # of a node, in points^2
    _draw_pods(t, ax, points)
    lines = [(t.edges, "#B9B9B9", 0.13), *((walk, colour, 0.38) for walk, colour in _coloured(walks))]
    for level, (edges, colour, width) in enumerate(lines):
        drawn = LineCollection(_lines(t, points, edges), colors=colour, linewidths=width * area**0.5)
        ax.add_collection(drawn).set_zorder(1 + level / 10)
    _draw_nodes(t, ax, points, area, [node for walk in walks for node in (walk[0, 0], walk[-1, 1])])
    ax.set_aspect("auto" if _is_tiered(t) else "equal")
    ax.margins(0.06)
    ax.axis("off")


def _draw_nodes(t: Topology, ax: Axes, points: Points, area: float, ends: Sequence[int]) -> None:
    """Switches as squares, hosts as circles, the ends of paths filled."""
    filled = np.zeros(t.num_nodes, dtype=bool)
    filled[list(ends)] = True
    for chosen, marker, face in (
        (~t.endpoint & ~filled, "s", PALETTE["black"]),
        (~t.endpoint & filled, "s", PALETTE["yellow"]),
        (t.endpoint & ~filled, "o", "white"),
        (t.endpoint & filled, "o", PALETTE["yellow"]),
    ):
        x, y = points[chosen].T
        drawn = ax.scatter(x, y, s=area, marker=marker, c=face, edgecolors=PALETTE["black"], linewidths=0.6)
        drawn.set_zorder(3)


def _walk(t: Topology, path: Sequence[Hashable]) -> NDArray[np.int64]:
    """Pairs of nodes along a path."""
    require_instance((tuple, list), paths=path)
    nodes = [t.index_of(label) for label in path]
    known = {frozenset(pair) for pair in t.edges.tolist()}
    walk = list(pairwise(nodes))
    if not walk or any(frozenset(pair) not in known for pair in walk):
        raise ValueError(f"paths must follow cables of {t!r}, got {path!r}")
    return np.array(walk)


def _coloured(walks: Sequence[NDArray[np.int64]]) -> list[tuple[NDArray[np.int64], str]]:
    return [(walk, PALETTE[_ROUTES[i % len(_ROUTES)]]) for i, walk in enumerate(walks)]


def _lines(t: Topology, points: Points, edges: NDArray[np.int64]) -> list[Any]:
    """Points of every cable; one round the edge of a torus becomes a stub at each end."""
    edges = np.sort(edges, axis=1)
    start, end = points[edges[:, 0]], points[edges[:, 1]]
    if t.meta.name == "hammingmesh" or (t.meta.name in ("bcube", "mdcube") and t.meta.parameters["k"] < 2):
        return list(_arcs(start, end))
    if _is_tiered(t):
        level = t.tier[edges[:, 0]] == t.tier[edges[:, 1]]  # a circuit between two racks
        straight = np.stack([start[~level], end[~level]], axis=1)
        arcs = _arcs(end[level], start[level])  # bent upwards, at most to the next tier
        rise = arcs[..., 1] - start[level, None, 1]
        arcs[..., 1] -= rise * (1 - np.minimum(1, 1.6 / rise.max(axis=1, initial=1e-9, keepdims=True)))
        return [*straight, *arcs]
    outward = _outward(t, edges)
    around = outward.any(axis=1)
    stubs = [np.stack([p, p + s * outward], axis=1)[around] for p, s in ((start, 1.0), (end, -1.0))]
    return list(np.concatenate([np.stack([start, end], axis=1)[~around], *stubs]))


def _arcs(start: Points, end: Points) -> Points:
    """Flat arcs [lines, 15, 2], so that a cable is seen to pass the servers before its own."""
    along = end - start
    normal = np.column_stack([-along[:, 1], along[:, 0]])
    share = np.linspace(0, 1, 15)[:, None]
    rise = 0.4 * share * (1 - share)
    bent: Points = start[:, None] + share * along[:, None] - rise * normal[:, None]
    return bent


def _outward(t: Topology, edges: NDArray[np.int64]) -> Points:
    """Direction from the first end of each cable that runs round the edge of a torus, else 0."""
    if _LAYOUTS.get(t.meta.name) is not _torus or _grid(t).shape[1] == 1:
        return np.zeros((len(edges), 2))
    steps = np.diff(_grid(t)[edges], axis=1)[:, 0]
    around = np.where(np.abs(steps) > 1, -np.sign(steps), 0)
    return 0.42 * around @ _axes_of(t)


def _draw_pods(t: Topology, ax: Axes, points: Points) -> None:
    """Shade the pods of a Clos network."""
    for pod in range(int(t.pod.max()) + 1) if _is_tiered(t) else ():
        (left, low), (right, high) = points[t.pod == pod].min(axis=0), points[t.pod == pod].max(axis=0)
        box = FancyBboxPatch((left - 0.1, low), right - left + 0.2, high - low, "round,pad=0.32")
        box.set(facecolor="#EEF3F7", edgecolor="none", zorder=0)
        ax.add_patch(box)


def _is_tiered(t: Topology) -> bool:
    """Whether tiers are rows: hosts below, switches above, and no cables within the highest tier."""
    if t.meta.name in _LAYOUTS or t.endpoint.all() or t.tier[t.endpoint].any():
        return False
    return not (t.tier[t.edges] == t.tier.max()).all(axis=1).any()


def _tiers(t: Topology) -> Points:
    """Tiers as rows; a node stands above the middle of what hangs below it in its pod."""
    across, left = np.zeros(t.num_nodes), -0.5
    for pod in np.unique(t.pod[t.endpoint]):
        rows = [np.flatnonzero((t.pod == pod) & (t.tier == tier)) for tier in range(int(t.tier.max()) + 1)]
        width = max(len(rows[0]), *(len(row) / 2 for row in rows))
        for row in rows:
            across[row] = _spread(left, left + width, len(row))
        left += width + 0.8
    middle = (across[t.hosts[0]] + across[t.hosts[-1]]) / 2
    shared = t.pod < 0
    for tier in np.unique(t.tier[shared]):
        row = np.flatnonzero(shared & (t.tier == tier))
        half = max(across[t.hosts[-1]] - across[t.hosts[0]], len(row) / 2) / 2
        across[row] = _spread(middle - half, middle + half, len(row))
    return np.column_stack([across, 2.2 * t.tier])


def _groups(t: Topology) -> Points:
    """Groups on a circle; within a group a ring for every tier, the hosts outside."""
    points, radius = np.zeros((t.num_nodes, 2)), 0.0
    pods = np.unique(t.pod)
    for i, pod in enumerate(pods):
        inner = 0.0
        for tier in np.unique(t.tier[t.pod == pod])[::-1]:
            ring = np.flatnonzero((t.pod == pod) & (t.tier == tier))
            inner = max(inner + 1, 0.5 / math.sin(math.pi / max(len(ring), 2)))
            points[ring] = _turned(_circle(len(ring), inner), i / len(pods) + 0.5 / len(ring))
        radius = max(radius, inner)
    if len(pods) > 1:
        centres = _circle(len(pods), radius * 1.25 / math.sin(math.pi / len(pods)))
        points += centres[np.searchsorted(pods, t.pod)]
    return points


def _spread(low: float, high: float, count: int) -> Points:
    """Centres of equal parts of an interval."""
    return low + (high - low) * (np.arange(count) + 0.5) / count


def _bcube(t: Topology) -> Points:
    """BCube_0 and BCube_1 as a table of servers; higher levels as rows of switches above the servers."""
    n, k = (int(t.meta.parameters[name]) for name in ("n", "k"))
    servers = np.arange(n ** (k + 1))
    if k > 1:
        across = servers + 0.8 * (servers // n)
        rows = [np.column_stack([across, np.zeros(servers.size)])]
        per_level = n**k
        for level in range(k + 1):
            x = _spread(-0.5, across[-1] + 0.5, per_level)
            rows.append(np.column_stack([x, np.full(per_level, (level + 1) * across[-1] / 6)]))
        return np.concatenate(rows)
    column, row = servers % n, -(servers // n)
    ends = np.arange(n**k)
    heads = [np.column_stack([np.full(ends.size, -1.3), -ends])]
    heads += [np.column_stack([ends, np.full(ends.size, 1.3)])] * k
    return np.concatenate([np.column_stack([column, row]), *heads]).astype(np.float64)


def _mdcube(t: Topology) -> Points:
    """Containers on a grid: the last dimension to the right, all others downwards."""
    container, dims = _bcube(t), t.meta.parameters["dims"]
    pitch = 1.25 * np.ptp(container, axis=0) + 1
    parts = np.split(container, [t.num_hosts // math.prod(dims)])
    row, column = np.divmod(np.arange(math.prod(dims)), dims[-1])
    corner = np.column_stack([column * pitch[0], -row * pitch[1]])[:, None]
    return np.concatenate([(corner + part).reshape(-1, 2) for part in parts])


def _copies(t: Topology) -> Points:
    """Copies of a DCell or FiConn on circles within circles, each switch in the middle of its servers."""
    n, k = (int(t.meta.parameters[name]) for name in ("n", "k"))
    sizes = (dcell_servers if t.meta.name == "dcell" else ficonn_servers)(n, k)
    unit = _circle(n, 1.0)
    radius = 1.0
    for size, larger in pairwise(sizes):
        copies = larger // size
        ring = radius * 1.35 / math.sin(math.pi / copies)
        unit = np.concatenate([_turned(unit, i / copies) + p for i, p in enumerate(_circle(copies, ring))])
        radius += ring
    return np.concatenate([unit, unit.reshape(-1, n, 2).mean(axis=1)])


def _circle(count: int, radius: float) -> Points:
    """Points on a circle, clockwise from the top."""
    angle = math.pi / 2 - 2 * math.pi * np.arange(count) / count
    return radius * np.column_stack([np.cos(angle), np.sin(angle)])


def _turned(points: Points, turns: float) -> Points:
    """Points turned clockwise."""
    cos, sin = math.cos(2 * math.pi * turns), math.sin(2 * math.pi * turns)
    turned: Points = points @ np.array([[cos, -sin], [sin, cos]])
    return turned


def _grid(t: Topology) -> NDArray[np.int64]:
    """Coordinates of the nodes of a torus in its dimensions longer than 1."""
    dims = [length for length in t.meta.parameters["dims"] if length > 1] or [1]
    if len(dims) > len(_DEPTH):
        raise ValueError(f"topology must have at most three dimensions to be drawn, got {t!r}")
    return np.column_stack(np.unravel_index(np.arange(t.num_nodes), dims)).astype(np.int64)


def _axes_of(t: Topology) -> Points:
    return np.array(_DEPTH[: _grid(t).shape[1]])


def _torus(t: Topology) -> Points:
    """A circle in one dimension, the grid from the front in two and from the side in three."""
    seen: Points = _grid(t) @ _axes_of(t)
    return seen if seen[:, 1].any() else _ring(t)


def _boards(t: Topology) -> Points:
    """Boards of a HammingMesh on a grid, the switches of rows beside them and those of columns above."""
    a, b, x, y = (int(t.meta.parameters[name]) for name in "abxy")
    row, column = np.arange(b * y), np.arange(a * x)
    down, across = -(row + 0.8 * (row // b)), column + 0.8 * (column // a)
    grid = np.stack(np.meshgrid(across, down), axis=-1).reshape(-1, 2)
    heads = [
        np.column_stack([np.full(row.size, -1.6), down]),
        np.column_stack([across, np.full(column.size, 1.6)]),
    ]
    return np.concatenate([grid, *heads])


def _ring(t: Topology) -> Points:
    """All nodes on one circle."""
    return _circle(t.num_nodes, 0.5 / math.sin(math.pi / max(t.num_nodes, 2)))


_LAYOUTS: Final[Mapping[str, Callable[[Topology], Points]]] = {
    "bcube": _bcube,
    "dcell": _copies,
    "ficonn": _copies,
    "mdcube": _mdcube,
    "torus": _torus,
    "tpu_v4": _torus,
    "hammingmesh": _boards,
}
