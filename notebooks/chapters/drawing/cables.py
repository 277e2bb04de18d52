"""How cables run in a layout: straight where they meet no third node, else bent."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from chapters.drawing.grids import outward
from chapters.drawing.shapes import Points, arcs, bows, unit
from relparallel.topology import Topology

IntArray = NDArray[np.int64]
Lines = list[Any]  # an array of points for every cable


def straight(t: Topology, points: Points, edges: IntArray) -> Lines:
    """From end to end."""
    return list(points[edges])


def arcs_between_switches(t: Topology, points: Points, edges: IntArray) -> Lines:
    """Arcs where rows and columns of switches are joined, straight to the hosts."""
    between = ~t.endpoint[edges].any(axis=1) | t.endpoint.all()
    start, end = points[edges[:, 0]], points[edges[:, 1]]
    return _mixed(between, start, end, arcs(start, end)[between])


def arcs_of_a_table(t: Topology, points: Points, edges: IntArray) -> Lines:
    """Arcs where the servers of a BCube are a table, straight where they are one row."""
    if t.meta.parameters["k"] > 1:
        return straight(t, points, edges)
    return list(arcs(points[edges[:, 0]], points[edges[:, 1]]))


def bent_between_equals(t: Topology, points: Points, edges: IntArray) -> Lines:
    """A circuit between two racks, bent upwards."""
    start, end = points[edges[:, 0]], points[edges[:, 1]]
    level = t.tier[edges[:, 0]] == t.tier[edges[:, 1]]
    height = np.minimum(0.1 * np.hypot(*(end - start)[level].T), 1.6)
    return _mixed(level, start, end, bows(end[level], start[level], height))


def round_the_edge(t: Topology, points: Points, edges: IntArray) -> Lines:
    """Torus cables; one round the edge is an arc in two dimensions, stubs at both ends in three."""
    start, end = points[edges[:, 0]], points[edges[:, 1]]
    direction = outward(t, edges)
    around = direction.any(axis=1)
    if len([length for length in t.meta.parameters["dims"] if length > 1]) < 3:
        return _mixed(around, start, end, bows(end[around], start[around], 0.4))
    out = 0.33 * unit(direction)
    stubs = np.stack([start, start + out, np.full_like(start, np.nan), end - out, end], axis=1)
    return _mixed(around, start, end, stubs[around])


def _mixed(curved: Any, start: Points, end: Points, curves: Any) -> Lines:
    """Straight lines, with curves in the place of some."""
    lines: Lines = list(np.stack([start, end], axis=1))
    for place, curve in zip(np.flatnonzero(curved), curves, strict=True):
        lines[place] = curve
    return lines
