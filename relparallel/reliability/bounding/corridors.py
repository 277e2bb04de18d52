"""Upper bounds of the unreliability from a part of the network that is narrow enough for the exact programme.

What fails less often in the whole network than in a part of it is every connection: links and nodes that are
left out could only help. The part is what lies around a tree that joins the terminals, as far around as the
work allows: for terminals that are far apart, what matters is what is next to them, and some way from one to
the other that is wider than the cuts around them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from relparallel.reliability.bounding.connections import likeliest_tree
from relparallel.reliability.bounding.cut_search import distances
from relparallel.reliability.bounding.cuts import rows_of
from relparallel.reliability.problem import Problem
from relparallel.reliability.programme.compiled import solved
from relparallel.reliability.programme.labels import MAX_LIVE

Network = TypeVar("Network", bound=Problem)

_ROUNDING: Final = 1 + 1e-10  # relative; more than that of the exact programme
_MOST_NODES: Final = 2**13  # of a part, which is too wide long before


def corridor_bound(problem: Problem, max_visits: int) -> float:
    """Upper bound of the unreliability of a block, from at most so many states."""
    rows = rows_of(len(problem.node), problem.edges)
    far, queue = np.empty((2, len(problem.node)), np.int64)
    distances(rows, np.flatnonzero(likeliest_tree(problem, rows)), far, queue)
    if far[problem.terminals].any():
        return 1.0  # they are apart for good
    best = 1.0
    for radius in range(int(far.max(initial=0)) + 1):
        inside = far <= radius
        if inside.sum() > _MOST_NODES:
            break
        found = solved(part_of(problem, inside), True, max_visits, max_visits)
        if found.width > MAX_LIVE or found.peak > max_visits or found.states > max_visits:
            break
        best = min(best, found.unreliability * _ROUNDING)
        max_visits -= found.states
    return best


def part_of(problem: Network, inside: NDArray[np.bool_]) -> Network:
    """The problem on some of the nodes, the terminals among them."""
    number, kept = np.cumsum(inside) - 1, inside[problem.edges].all(axis=1)
    return replace(
        problem,
        edges=number[problem.edges[kept]],
        link=problem.link[kept],
        node=problem.node[inside],
        terminals=number[problem.terminals],
        transit=problem.transit[inside],
    )
