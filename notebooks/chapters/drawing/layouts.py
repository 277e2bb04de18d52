"""What a layout is, which one a design has, and which of its nodes are shaded as one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

import networkx as nx
import numpy as np
from matplotlib.patches import Circle, FancyBboxPatch, Patch, Polygon
from numpy.typing import NDArray
from scipy.spatial import ConvexHull

from chapters.drawing import cables, grids, groups
from chapters.drawing.shapes import Points
from relparallel._checks import require_choice
from relparallel.topology import Topology, as_topology
from relparallel.topology.description import rules
from relparallel.topology.designs.finite_geometry import clusters

IntArray = NDArray[np.int64]


def _box(part: Points) -> Patch:
    (left, low), (right, high) = part.min(axis=0), part.max(axis=0)
    return FancyBboxPatch((left - 0.1, low), right - left + 0.2, high - low, "round,pad=0.32")


def _sheet(part: Points) -> Patch:
    hull = part[ConvexHull(part).vertices]
    return Polygon(hull + 0.42 * np.sign(hull - hull.mean(axis=0)) * [1.0, 0.5])


def _disc(part: Points) -> Patch:
    middle = (part.min(axis=0) + part.max(axis=0)) / 2
    return Circle(
        (float(middle[0]), float(middle[1])), float(np.hypot(*(part - middle).T).max()) + 0.45
    )


def _pods(t: Topology) -> IntArray:
    return t.pod


def _always(t: Topology) -> bool:
    return True


def _never(t: Topology) -> bool:
    return False


class Layout(NamedTuple):
    """Where nodes stand, which of them are shaded as one and how, and how cables run."""

    positions: Callable[[Topology], Points]
    parts: Callable[[Topology], IntArray] | None = None  # part of every node, -1 for none
    shade: Callable[[Points], Patch] = _disc
    lines: Callable[[Topology, Points, IntArray], cables.Lines] = cables.straight
    rows: Callable[[Topology], bool] = _never  # rows, which may be stretched to fill a panel
    marked: Callable[[Topology], NDArray[np.bool_]] | None = None  # switches that are vermilion


LAYOUTS: Final[Mapping[str, Layout]] = {
    "bcube": Layout(
        grids.bcube, lines=cables.arcs_of_a_table, rows=lambda t: bool(t.meta.parameters["k"] > 1)
    ),
    "boards": Layout(grids.boards, _pods, _box, grids.combs),
    "circles": Layout(groups.circles, _pods),
    "copies": Layout(grids.copies, grids.cells),
    "groups": Layout(groups.groups, _pods),
    "hyperx": Layout(grids.hyperx, lines=cables.arcs_between_switches),
    "mdcube": Layout(grids.mdcube, _pods, _box, cables.arcs_of_a_table),
    "planes": Layout(groups.planes, clusters, marked=groups.quadrics),
    "ring": Layout(grids.ring),
    "rings_of_subgroups": Layout(groups.rings_of_subgroups, _pods),
    "spokes": Layout(groups.spokes, _pods),
    "star": Layout(groups.groups),
    "tiers": Layout(grids.tier_layout, _pods, _box, cables.bent_between_equals, _always),
    "torus": Layout(grids.torus, grids.sheets, _sheet, cables.round_the_edge),
}
"""By name, which the ``@design`` of a network gives."""


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
    return layout(t).positions(t)


def layout(t: Topology) -> Layout:
    """Layout that the design names; rows if it names none and has tiers, else a ring or a star."""
    rule = rules().get(t.meta.name)
    named = "tiers" if rule is None else rule.layout
    if named == "tiers" and not (grids.is_tiered(t) and t.num_switches > 1):
        named = "ring" if t.endpoint.all() else "star"
    return LAYOUTS[require_choice(LAYOUTS, **{f"layout in the @design of {t.meta.name}": named})]


def shades(t: Topology, points: Points) -> list[Patch]:
    """Pods, boards and containers as boxes, groups as discs."""
    form = layout(t)
    if form.parts is None:
        return []
    part = form.parts(t)
    return [form.shade(points[part == value]) for value in np.unique(part[part >= 0])]
