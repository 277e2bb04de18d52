"""Draws a topology: shaded groups, cables by their kind, hosts and switches, and paths on top."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from itertools import pairwise
from typing import Any, Final

import networkx as nx
import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from numpy.typing import NDArray

from chapters.drawing.layouts import layout, positions, shades
from chapters.drawing.paint import PLAIN, cable_colours, switch_colours
from chapters.drawing.shapes import Points
from relparallel._checks import require_instance
from relparallel.plotting import PALETTE
from relparallel.topology import Topology, as_topology

_ROUTES: Final = ("vermilion", "blue", "green", "purple", "orange", "sky")
_SHADE: Final = "#EEF3F7"
_DENSITY: Final = 118.0  # points^2 that all nodes cover of a square inch
_CROWDED: Final = 60  # cables for a square inch, above which they are drawn thinner
_BADGE: Final = 82.0  # points^2 of a circle with a number in it


def draw_topology(
    topology: Topology | nx.Graph[Any], ax: Axes, *, paths: Sequence[Sequence[Hashable]] = ()
) -> None:
    """Draw cables, hosts (circles) and switches (squares), and mark paths by colour.

    Parameters
    ----------
    topology : Topology or networkx.Graph
        What to draw; at some hundred nodes a picture stops being one: `abridge` it.
    ax : Axes
        Where to draw; its frame and ticks are taken away.
    paths : sequence of sequences of labels, optional
        Each is a walk along cables, drawn thick in a colour of its own; its ends are filled.

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
    area = float(np.clip(_DENSITY * _room(ax) / t.num_nodes, 3, 20))  # of a node, in points^2
    for patch in shades(t, points):
        patch.set(facecolor=_SHADE, edgecolor="none", zorder=0)
        ax.add_patch(patch)
    _draw_cables(t, ax, points, walks, np.sqrt(area))
    _draw_nodes(t, ax, points, area, [node for walk in walks for node in (walk[0, 0], walk[-1, 1])])
    _draw_counts(t, ax, points)
    ax.set_aspect("auto" if layout(t).rows(t) else "equal", adjustable="datalim")
    ax.margins(0.06)
    ax.axis("off")


def _room(ax: Axes) -> float:
    """Area of a panel [inch^2]."""
    return float(ax.bbox.width * ax.bbox.height / ax.figure.dpi**2)


def _draw_cables(
    t: Topology, ax: Axes, points: Points, walks: Sequence[NDArray[np.int64]], size: float
) -> None:
    """All cables, plain ones below coloured ones; under paths all are plain. Then the paths."""
    colours = cable_colours(t) if not walks else np.full(len(t.edges), PLAIN)
    order = np.argsort(colours != PLAIN, kind="stable")
    thin = np.where(colours == PLAIN, 0.3, 0.45)[order]
    width = np.clip(0.13 * size, 0.4, 0.75) if len(t.edges) < _CROWDED * _room(ax) else thin
    lines: list[tuple[NDArray[np.int64], Any, Any]] = [(t.edges[order], colours[order], width)]
    lines += [
        (walk, PALETTE[_ROUTES[i % len(_ROUTES)]], 0.38 * size) for i, walk in enumerate(walks)
    ]
    for level, (edges, colour, width) in enumerate(lines):
        drawn = LineCollection(
            layout(t).lines(t, points, np.sort(edges)), colors=colour, linewidths=width
        )
        ax.add_collection(drawn).set_zorder(1 + level / 10)


def _draw_nodes(t: Topology, ax: Axes, points: Points, area: float, ends: Sequence[int]) -> None:
    """Switches as squares, hosts as circles, the ends of paths filled."""
    filled = np.zeros(t.num_nodes, dtype=bool)
    filled[list(ends)] = True
    colours = np.where(t.endpoint, "white", switch_colours(t))
    colours[filled] = PALETTE["yellow"]
    square = max(area, 16.0 if t.num_switches < 5 else 5.0)  # a switch is seen among many hosts
    areas = np.where(_counts(t) > 1, _BADGE, np.where(t.endpoint, area, square))
    for chosen, marker in (
        (~t.endpoint, "s"),
        (t.endpoint & ~filled, "o"),
        (t.endpoint & filled, "o"),
    ):
        x, y = points[chosen].T
        drawn = ax.scatter(
            x,
            y,
            s=areas[chosen],
            marker=marker,
            c=colours[chosen],
            edgecolors=PALETTE["black"],
            linewidths=0.6 if area > 8 else 0.45,
        )
        drawn.set_zorder(3)


def _counts(t: Topology) -> NDArray[np.int64]:
    """Hosts that a node stands for."""
    return np.asarray(t.node_attributes.get("count", np.ones(t.num_nodes, dtype=np.int64)))


def _draw_counts(t: Topology, ax: Axes, points: Points) -> None:
    """Number of hosts in circles that stand for several; dots where most of a row is left out."""
    for node in np.flatnonzero(_counts(t) > 1):
        x, y = points[node]
        ax.text(
            x, y, str(_counts(t)[node]), fontsize=6, ha="center", va="center_baseline", zorder=4
        )
    of = t.node_attributes.get("of", np.zeros(t.num_nodes, dtype=np.int64))
    for kind, pod in np.unique(np.column_stack([t.node_kind, t.pod]), axis=0):
        row = np.flatnonzero((t.node_kind == kind) & (t.pod == pod))
        if len(row) < of[row[0]]:
            x, y = points[row][max(len(row) // 2 - 1, 0) : len(row) // 2 + 1].mean(axis=0)
            ax.text(x, y, "···", fontsize=6, fontweight="bold", ha="center", va="center", zorder=4)


def _walk(t: Topology, path: Sequence[Hashable]) -> NDArray[np.int64]:
    """Pairs of nodes along a path."""
    require_instance((tuple, list), paths=path)
    nodes = [t.index_of(label) for label in path]
    known = {frozenset(pair) for pair in t.edges.tolist()}
    walk = list(pairwise(nodes))
    if not walk or any(frozenset(pair) not in known for pair in walk):
        raise ValueError(f"paths must follow cables of {t!r}, got {path!r}")
    return np.array(walk)
