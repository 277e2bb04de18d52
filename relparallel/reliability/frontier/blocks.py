"""A problem as a chance of its own and independent, reduced blocks: what bounds and estimates work on."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

import numpy as np

from relparallel.reliability.frontier.decomposition import compiled
from relparallel.reliability.frontier.programme import Programme
from relparallel.reliability.probability import CERTAIN, Chance, series
from relparallel.reliability.problem import Problem, require_relays

Bracket = tuple[float, float]  # lower and upper bound of an unreliability

_SLACK: Final = 1e-12  # relative; more than the rounding of the reductions


class Block(NamedTuple):
    """A part of the network that cannot be reduced, as a problem and as a sweep through its links.

    All its nodes forward, and no terminal fails.
    """

    problem: Problem
    programme: Programme


class Blocks(NamedTuple):
    """The network works when ``apart`` works and every block connects its terminals; all are independent."""

    apart: Chance
    blocks: list[Block]


def into_blocks(problem: Problem, ordered: bool = False) -> Blocks:
    """Split off what fails alone, reduce the rest and cut it at its cut nodes.

    Only with ``ordered`` do the programmes sweep in a good order, which takes time to find.
    """
    require_relays(problem)
    parts = compiled(problem, ordered=ordered)
    if not parts.connected:
        return Blocks((0.0, 1.0), [])
    chances = parts.chances(
        problem.link, problem.node
    )  # the blocks' own, which are required too, are certain
    apart = series(CERTAIN, *map(tuple, chances[parts.required].tolist()))
    programmes = parts.programmes(problem.link, problem.node)
    return Blocks(apart, [Block(_as_problem(programme), programme) for programme in programmes])


def combine(apart: Chance, brackets: Iterable[Bracket]) -> Bracket:
    """Bracket of the unreliability of the whole from those of the blocks."""
    lower, upper = apart, apart
    for low, high in brackets:
        lower, upper = series(lower, (1 - low, low)), series(upper, (1 - high, high))
    return min(float(lower[1]) * (1 - _SLACK), 1.0), min(float(upper[1]) * (1 + _SLACK), 1.0)


def _as_problem(programme: Programme) -> Problem:
    """The network that a programme sweeps through, its nodes in the order in which they enter."""
    at: dict[int, int] = {}
    node: list[list[float]] = []
    terminals, edges = [], []
    for step, chance in zip(programme.steps.tolist(), programme.chances.tolist(), strict=True):
        for side in (0, 1):
            if step[side] >= 0:
                at[step[side]] = len(node)
                if step[2 + side]:
                    terminals.append(len(node))
                node.append(chance[2 + 2 * side : 4 + 2 * side])
        edges.append((at[step[4]], at[step[5]]))
    return Problem(
        edges=np.array(edges, dtype=np.int64),
        link=np.ascontiguousarray(programme.chances[:, :2]),
        node=np.array(node),
        terminals=np.array(terminals, dtype=np.int64),
        transit=np.ones(len(node), dtype=np.bool_),
    )
