"""Points and curves that layouts are made of."""

import math

import numpy as np
from numpy.typing import NDArray

Points = NDArray[np.float64]


def spread(low: float, high: float, count: int) -> Points:
    """Centres of equal parts of an interval."""
    return low + (high - low) * (np.arange(count) + 0.5) / count


def circle(count: int, radius: float) -> Points:
    """Points on a circle, clockwise from the top."""
    angle = math.pi / 2 - 2 * math.pi * np.arange(count) / count
    return radius * np.column_stack([np.cos(angle), np.sin(angle)])


def turned(points: Points, turns: float) -> Points:
    """Points turned clockwise."""
    cos, sin = math.cos(2 * math.pi * turns), math.sin(2 * math.pi * turns)
    found: Points = points @ np.array([[cos, -sin], [sin, cos]])
    return found


def unit(vectors: Points) -> Points:
    """Vectors of length 1; upwards where there is no direction."""
    length = np.hypot(*vectors.T)[:, None]
    found: Points = np.where(length > 1e-9, vectors / np.maximum(length, 1e-9), [0.0, 1.0])
    return found


def fans(centres: Points, away: Points, home: NDArray[np.int64], distance: float = 0.7) -> Points:
    """Hosts around the switch that is their home, fanned out in a direction of unit length."""
    each = np.bincount(home, minlength=len(centres))
    # hosts of a switch follow each other
    number = np.arange(home.size) - (np.cumsum(each) - each)[home]
    step = np.minimum(0.62, 2.2 / np.maximum(each, 1))[home]
    angle = (number - (each[home] - 1) / 2) * step
    cos, sin = np.cos(angle), np.sin(angle)
    x, y = away[home].T
    found: Points = centres[home] + distance * np.column_stack(
        [x * cos - y * sin, x * sin + y * cos]
    )
    return found


def arcs(start: Points, end: Points, rise: float = 0.1) -> Points:
    """Flat arcs [lines, 15, 2] rising relative to their length: past nodes between their ends."""
    return _bent(start, end, rise * np.hypot(*(end - start).T))


def bows(start: Points, end: Points, height: float | Points) -> Points:
    """Arcs [lines, 15, 2] of a height of their own, whatever their length."""
    return _bent(start, end, np.broadcast_to(height, (len(start),)))


def _bent(start: Points, end: Points, height: Points) -> Points:
    along = end - start
    normal = unit(np.column_stack([-along[:, 1], along[:, 0]]))
    share = np.linspace(0, 1, 15)[:, None]
    rise = 4 * share * (1 - share) * height[:, None, None]
    bent: Points = start[:, None] + share * along[:, None] - rise * normal[:, None]
    return bent
