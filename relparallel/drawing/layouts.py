"""Which layout a design has, and which of its nodes are shaded as one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import networkx as nx
import numpy as np
from matplotlib.patches import Circle, FancyBboxPatch, Patch, Polygon
from numpy.typing import NDArray
from scipy.spatial import ConvexHull

from relparallel._checks import require_choice
from relparallel.drawing import grids, groups
from relparallel.drawing.shapes import Points
from relparallel.topology import Topology, as_topology
from relparallel.topology.description import rules

_LAYOUTS: Final[Mapping[str, Callable[[Topology], Points]]] = {
    "bcube": grids.bcube,
    "boards": grids.boards,
    "circles": groups.circles,
    "copies": grids.copies,
    "groups": groups.groups,
    "hyperx": grids.hyperx,
    "mdcube": grids.mdcube,
    "planes": groups.planes,
    "ring": grids.ring,
    "rings_of_subgroups": groups.rings_of_subgroups,
    "spokes": groups.spokes,
    "star": groups.groups,
    "tiers": grids.tier_layout,
    "torus": grids.torus,
}
_BOXES: Final = ("boards", "mdcube", "tiers")
_DISCS: Final[Mapping[str, Callable[[Topology], NDArray[np.int64]]]] = {
    "circles": lambda t: t.pod,
    "copies": grids.cells,
    "groups": lambda t: t.pod,
    "planes": groups.clusters,
    "rings_of_subgroups": lambda t: t.pod,
    "spokes": lambda t: t.pod,
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
    return _LAYOUTS[require_choice(_LAYOUTS, **{f"layout in the @design of {t.meta.name}": layout(t)})](t)


def layout(t: Topology) -> str:
    """Layout that the design names; rows where it names none and has tiers, else a ring or a star."""
    rule = rules().get(t.meta.name)
    named = "tiers" if rule is None else rule.layout
    if named != "tiers" or (grids.is_tiered(t) and not (t.meta.name == "nvl72" and t.num_switches < 2)):
        return named
    return "ring" if t.endpoint.all() else "star"


def shades(t: Topology, points: Points) -> list[Patch]:
    """Pods, boards and containers as boxes, groups as discs."""
    form = layout(t)
    if form in _DISCS:
        return [_disc(part) for part in _parts(_DISCS[form](t), points)]
    if form == "torus":
        return [_sheet(part) for part in _parts(grids.sheets(t), points)]
    return [_box(part) for part in _parts(t.pod, points)] if form in _BOXES else []


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
