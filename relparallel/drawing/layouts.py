"""Which layout a design has, and which of its nodes are shaded as one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import networkx as nx
import numpy as np
from matplotlib.patches import Circle, FancyBboxPatch, Patch, Polygon
from numpy.typing import NDArray
from scipy.spatial import ConvexHull

from relparallel.drawing import grids, groups, recursive
from relparallel.drawing.shapes import Points
from relparallel.drawing.tiers import is_tiered, tiers
from relparallel.topology import Topology, as_topology

_LAYOUTS: Final[Mapping[str, Callable[[Topology], Points]]] = {
    "bcube": recursive.bcube,
    "dcell": recursive.copies,
    "dragonfly": groups.groups,
    "dragonfly_plus": groups.spokes,
    "ficonn": recursive.copies,
    "hammingmesh": grids.boards,
    "hyperx": grids.hyperx,
    "jellyfish": groups.circles,
    "mdcube": recursive.mdcube,
    "polarfly": groups.planes,
    "slim_fly": groups.rings_of_subgroups,
    "torus": grids.torus,
    "tpu_v4": grids.torus,
    "xpander": groups.circles,
}
_BOXES: Final = ("hammingmesh", "mdcube")
_DISCS: Final[Mapping[str, Callable[[Topology], NDArray[np.int64]]]] = {
    "dcell": recursive.cells,
    "dragonfly": lambda t: t.pod,
    "dragonfly_plus": lambda t: t.pod,
    "ficonn": recursive.cells,
    "polarfly": groups.clusters,
    "slim_fly": lambda t: t.pod,
    "xpander": lambda t: t.pod,
}


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

    Examples
    --------
    >>> from relparallel.topology import torus
    >>> positions(torus((2, 2))).tolist()
    [[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]]
    """
    t = as_topology(topology, name="topology")
    if has_rows(t):
        return tiers(t)
    return _LAYOUTS.get(t.meta.name, grids.ring if t.endpoint.all() else groups.groups)(t)


def has_rows(t: Topology) -> bool:
    """Whether the tiers of a topology are drawn as rows; a single NVLink domain is a star instead."""
    return (
        t.meta.name not in _LAYOUTS and is_tiered(t) and not (t.meta.name == "nvl72" and t.num_switches < 2)
    )


def shades(t: Topology, points: Points) -> list[Patch]:
    """Pods, boards and containers as boxes, groups as discs."""
    if t.meta.name in _DISCS:
        return [_disc(part) for part in _parts(_DISCS[t.meta.name](t), points)]
    if t.meta.name in ("torus", "tpu_v4"):
        return [_sheet(part) for part in _parts(grids.sheets(t), points)]
    boxed = has_rows(t) or t.meta.name in _BOXES
    return [_box(part) for part in _parts(t.pod, points)] if boxed else []


def _parts(label: NDArray[np.int64], points: Points) -> list[Points]:
    return [points[label == value] for value in np.unique(label[label >= 0])]


def _box(part: Points) -> Patch:
    (left, low), (right, high) = part.min(axis=0), part.max(axis=0)
    return FancyBboxPatch((left - 0.1, low), right - left + 0.2, high - low, "round,pad=0.32")


def _sheet(part: Points) -> Patch:
    hull = part[ConvexHull(part).vertices]
    return Polygon(hull + 0.42 * np.sign(hull - hull.mean(axis=0)) * [1.0, 0.5])


def _disc(part: Points) -> Patch:
    middle = (part.min(axis=0) + part.max(axis=0)) / 2
    return Circle((float(middle[0]), float(middle[1])), float(np.hypot(*(part - middle).T).max()) + 0.45)
