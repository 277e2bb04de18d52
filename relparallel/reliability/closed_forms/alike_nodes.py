"""Networks of alike nodes, complete or complete between two sides, recognised by their wiring.

Terminals may fail each in its own way; links and other nodes of a side are alike.
"""

import math
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from relparallel.reliability.closed_forms.random_graph_connectivity import (
    MOST_LINKS,
    complete_connected,
    sides_connected,
)
from relparallel.reliability.probability import CERTAIN, Chance, series
from relparallel.reliability.problem import Problem
from relparallel.reliability.result import Reliability, exactly
from relparallel.topology.symmetry import neighbour_classes

FloatArray = NDArray[np.float64]

_MOST_NODES: Final = 1000  # binomial coefficients of more are no floats


class Twins(NamedTuple):
    """A network of alike nodes: sides and terminals, chances of links and of other nodes by side.

    ``size[side]`` are the terminals and the others of a side; a complete graph has only the first.
    """

    complete: bool
    right: NDArray[np.bool_]
    relay: NDArray[np.bool_]
    size: NDArray[np.int64]
    link: Chance
    other: list[Chance]


def twins(problem: Problem) -> Reliability | None:
    """Exact answer where the network is complete, or complete between two sides of alike nodes."""
    found = recognised(problem)
    if found is None:
        return None
    (some, more), second = found.size.tolist()
    if found.complete:
        inner = complete_connected(some, more, found.link, found.other[0])
    else:
        inner = sides_connected((some, more), tuple(second), found.link, *found.other)
    own = map(tuple, problem.node[problem.terminals].tolist())
    kind = "complete graph" if found.complete else "complete bipartite graph"
    return exactly(*series(inner, *own), "exact", reason=f"a {kind} of alike nodes")


def recognised(problem: Problem) -> Twins | None:
    """What is alike in the network; None if it is of another kind, or a tree, or too large."""
    n, m = len(problem.node), len(problem.edges)
    if m < n or n < 3 or n > _MOST_NODES:  # a tree, which reductions undo, or in parts
        return None
    complete, apart = 2 * m == n * (n - 1), n * n - 4 * m  # the squared difference of the two sides
    if not complete and (apart < 0 or math.isqrt(apart) ** 2 < apart or m > MOST_LINKS):
        return None
    right = np.zeros(n, dtype=np.bool_)
    if not complete:
        side = neighbour_classes(problem.edges, right)
        right = side != side[problem.terminals[0]]
    relay = np.ones(n, dtype=np.bool_)
    relay[problem.terminals] = False
    size = np.bincount(2 * right + relay, minlength=4).reshape(2, 2)
    joined = complete or (
        size.sum(axis=1).prod() == m and (right[problem.edges].sum(axis=1) == 1).all()
    )
    link, *other = (
        same(own)
        for own in (problem.link, problem.node[relay & ~right], problem.node[relay & right])
    )
    if not (joined and problem.transit.all()) or link is None:
        return None
    alike = [one for one in other if one is not None]
    return Twins(complete, right, relay, size, link, alike) if len(alike) == 2 else None


def same(chances: FloatArray) -> Chance | None:
    """The chance that all rows of ``chances`` have; certain if there is none."""
    if (chances != chances[:1]).any():
        return None
    return tuple(chances[0].tolist()) if len(chances) else CERTAIN
