"""Networks whose parts are interchangeable, recognised by their wiring and their chances, and lumped.

Besides the fabrics of `fabric` these are the complete graphs and complete bipartite ones of
`interchangeable_nodes`, and two-level BCubes: servers that join every row switch to every column switch.
"""

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from relparallel.reliability.lumped.arithmetic import Numbers, Scale, exact_up, to_power
from relparallel.reliability.lumped.fabric import Match, match_fabric
from relparallel.reliability.lumped.interchangeable_nodes import same, twins, with_terminals
from relparallel.reliability.lumped.lumping import terminals_connected
from relparallel.reliability.lumped.pod_partitions import count_layouts, layouts
from relparallel.reliability.lumped.pod_sums import signed_ways
from relparallel.reliability.probability import CERTAIN, Chance
from relparallel.reliability.problem import Problem
from relparallel.reliability.result import Reliability
from relparallel.topology import Topology

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

_MOST_SWITCHES: Final = 5  # aggregation switches of a pod: Bell(6) = 203 terms
_MOST_PROFILES: Final = 1000  # (cores + 1)^planes: counting the layouts takes the square of it
_MOST_LAYOUTS: Final = 300_000
_MOST_COLUMNS: Final = 30  # of a BCube: 28 629 integer partitions of at most so much


def lumped(topology: Topology, problem: Problem) -> Reliability | None:
    """The exact answer where the network has one of the known symmetries, else None."""
    match = match_small_fabric(topology, problem)
    if match is not None:
        return terminals_connected(match.fabric, match.outside(problem))
    found = twins(problem)
    levels = None if found else two_levels(topology, problem)
    if levels is None:
        return found
    return with_terminals(bcube_connected(len(levels.rows), len(levels.columns), *levels.chances), problem)


def match_small_fabric(topology: Topology, problem: Problem) -> Match | None:
    """A fabric with terminals in two pods or more, and few enough cores to go through their partitions."""
    match = match_fabric(topology, problem)
    if match is None or sum(pods.copies for pods in match.fabric.terminal_pods) < 2:
        return None
    planes, cores = match.fabric.planes, match.fabric.cores
    if planes * match.fabric.aggregations > _MOST_SWITCHES or (cores + 1) ** planes > _MOST_PROFILES:
        return None
    return match if count_layouts(planes, cores) <= _MOST_LAYOUTS * math.factorial(planes) else None


def bcube_connected(
    rows: int, columns: int, row: Chance, column: Chance, row_link: Chance, column_link: Chance
) -> tuple[Chance, int]:
    """Probability that all servers of a two-level BCube are joined, and the number of terms."""
    ups = [*map(exact_up, (row, column, row_link, column_link))]
    tree, cut = least(rows, columns, *ups)
    if tree == 0 or cut == 0:
        return (0.0, 1.0) if tree == 0 else CERTAIN, 0
    scale = Scale.of(columns, rows, min(tree, cut))
    terms = sum(len(group.ways) * (columns - group.sizes[0] + 1) for group in layouts(1, columns))
    return scale.chance(bcube_sum(rows, columns, ups, scale)), terms


def bcube_sum(rows: int, columns: int, ups: Sequence[Fraction], scale: Scale) -> int:
    """The same in units of the scale; ups of rows, columns and the links of both.

    The sum of `lumping` with the columns as cores and the rows as pods. A row agrees with a split of the
    columns if its switch is joined to one block and no server joins it to another one; or if its switch is
    down, or joined to nothing, and each server has its column in a block.
    """
    (r, c, l, m), total = ups, 0  # noqa: E741
    for group in layouts(1, columns):
        (inside,) = group.sizes
        missing = columns - inside
        one = _row_agrees(group.blocks[:, :, 0], columns, (r, l, m), scale)
        agree = to_power(one, rows, scale)
        seats = [
            math.comb(missing, s) * c ** (inside + s) * (1 - c) ** (missing - s) for s in range(missing + 1)
        ]
        total += int((signed_ways(group) @ agree @ scale.array(seats)) >> scale.bits)
    return total


def least(
    rows: int, columns: int, row: Fraction, column: Fraction, row_link: Fraction, column_link: Fraction
) -> tuple[Fraction, Fraction]:
    """Of one way for all servers to be joined, and of one for them not to be."""
    low, high = 1 - row * row_link, 1 - column * column_link
    tree = row * row_link**columns * (column * column_link**rows) ** columns
    # a server is cut off; where one level never lets go, all servers of a switch of it are
    return tree, low * high or low**rows or high**columns


def _row_agrees(blocks: IntArray, columns: int, ups: Sequence[Fraction], scale: Scale) -> Numbers:
    """Probability that a row agrees, [layouts, columns outside]; blocks: columns of each block.

    A product of the switch's links, a server's link to it and one to a column; ups of row and links.
    """
    row, link, far = ups
    inside = int(blocks[0].sum())
    joined, single = 1 - (1 - link) * (1 - far), link * (1 - far) + far * (1 - link)
    colour = [row * single ** (inside - j) * (joined**j - single**j) for j in range(inside + 1)]
    missing = range(columns - inside + 1)
    rest = [(link * (1 - far)) ** s * link ** (columns - inside - s) for s in missing]
    apart = (
        row * (far * (1 - link)) ** columns + (1 - row) * far**columns if inside == columns else Fraction(0)
    )
    coloured = scale.array(colour)[blocks].sum(axis=1)
    return np.asarray(scale.times(coloured[:, None], scale.array(rest)) + scale.integer(apart))


class TwoLevels(NamedTuple):
    """A two-level BCube whose parts are alike in each level: rows of its parts, and their chances."""

    rows: IntArray
    columns: IntArray
    row_links: IntArray
    column_links: IntArray
    chances: tuple[Chance, Chance, Chance, Chance]


def two_levels(topology: Topology, problem: Problem) -> TwoLevels | None:
    """The two levels where all servers of such a BCube are terminals; else None."""
    servers, edges = problem.terminals, problem.edges
    rows, columns = (np.flatnonzero(topology.tier == level) for level in (1, 2))
    size = len(rows) * len(columns)
    if not 4 <= size == len(servers) == topology.num_hosts or len(columns) > _MOST_COLUMNS:
        return None
    low, high = (np.flatnonzero(np.isin(edges[:, 1], level)) for level in (rows, columns))
    low, high = low[np.argsort(edges[low, 0])], high[np.argsort(edges[high, 0])]
    if len(low) + len(high) < len(edges) or not problem.transit.all():
        return None
    if not np.array_equal(edges[low, 0], servers) or not np.array_equal(edges[high, 0], servers):
        return None
    if len(set(zip(edges[low, 1].tolist(), edges[high, 1].tolist(), strict=True))) < size:
        return None
    row, column = same(problem.node[rows]), same(problem.node[columns])
    row_link, column_link = same(problem.link[low]), same(problem.link[high])
    if row is None or column is None or row_link is None or column_link is None:
        return None
    return TwoLevels(rows, columns, low, high, (row, column, row_link, column_link))
