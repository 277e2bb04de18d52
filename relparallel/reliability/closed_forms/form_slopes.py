"""By how much closed forms of fabrics grow with the chances of the classes of their parts.

Pods and planes, or leaves and spines, are the two sides of a random bipartite graph of alike nodes, whose
links and nodes may be made of several parts each. `bipartite_slopes` gives the derivative by a link or node
of the graph; the chain rule leads on to the parts.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from relparallel.reliability.chances import Chance
from relparallel.reliability.lumped.alike_slopes import bipartite_slopes
from relparallel.reliability.lumped.alike_sums import choices

FloatArray = NDArray[np.float64]


class ClassSlopes(NamedTuple):
    """Derivative of the chance that what lies between the terminals joins them, by one part of each class."""

    core: float = 0.0
    near: float = 0.0
    far: float = 0.0
    near_link: float = 0.0
    far_link: float = 0.0
    needed: bool = False
    seats: dict[int, tuple[float, float, float]] | None = None
    parts: FloatArray | None = None


class Sides(NamedTuple):
    """Rows that must be connected and do not fail, other rows, and columns that join them."""

    rows: int
    others: int
    columns: int
    other: Chance
    column: Chance
    link: Chance

    def link_slopes(self) -> ClassSlopes:
        """Where each link is a cable, and each row a switch."""
        links, nodes = self._slopes()
        (near_link, far_link), (far, core) = links[:, 1].tolist(), nodes.tolist()
        return ClassSlopes(core, 0.0, far, near_link, far_link, needed=True)

    def switch_slopes(self, switch: float, core: float) -> ClassSlopes:
        """Where each link is made of switches, and each column of cores; given that the others are down."""
        links, nodes = self._slopes()
        return ClassSlopes(float(core * nodes[1]), float(switch * links[0, 1]), float(switch * links[1, 1]))

    def _slopes(self) -> tuple[FloatArray, FloatArray]:
        """Of links by the kinds of row and column, [2, 2], and of other rows and columns."""
        size = np.array([[self.rows, self.others], [0, self.columns]])
        chances = np.array([self.link, self.other, self.column], dtype=np.float64)
        _, links, nodes = bipartite_slopes(choices(int(size.sum())), size, chances[0], chances[1:])
        return links, nodes
