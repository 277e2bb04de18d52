"""Bounds where three or more terminals have several links each and forward nothing, such as dual-homed hosts.

Two of them may be joined in one part of the network, and two in another: connection is no relation of
classes then, and no programme keeps account of it. Each pair is a question of its own, and all terminals
would be joined at least as often if they forwarded.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import combinations
from typing import Final

import numpy as np
from numpy.typing import NDArray

from relparallel.reliability.frontier.blocks import Bracket
from relparallel.reliability.probability import series
from relparallel.reliability.problem import Problem

_MOST: Final = 64  # terminals whose pairs are asked for one by one
_ROUNDING: Final = 1e-12  # relative; more than that of the frontier DP


def bound_by_pairs(problem: Problem, ask: Callable[[Problem], Bracket]) -> Bracket:
    """Bracket the unreliability of a network whose terminals do not forward.

    Let E_i be that all links of terminal i are down, and U_ij the unreliability of a pair. Then U is at most
    P(some E_i) + sum over pairs of (U_ij - P(E_i or E_j)), and at least each U_ij, P(some E_i), and what it
    would be if terminals forwarded. The two are close where links at the terminals fail most.
    """
    terminals, node = problem.terminals.tolist(), problem.node.copy()
    works, fails = series(*map(tuple, node[terminals].tolist()))
    node[terminals] = 1.0, 0.0
    inside = replace(problem, node=node)
    alone = np.array([_alone(problem, v) for v in terminals])
    some = -float(np.expm1(np.log1p(-alone).sum())) if alone.max() < 1 else 1.0
    transit = problem.transit.copy()
    transit[terminals] = True
    lower, upper = max(some, ask(replace(inside, transit=transit))[0]), some
    if len(terminals) > _MOST:
        return fails + works * lower * (1 - _ROUNDING), 1.0
    for i, j in combinations(range(len(terminals)), 2):
        least, most = ask(_pair(inside, problem.terminals[[i, j]]))
        lower = max(lower, least)
        either = alone[i] + alone[j] - alone[i] * alone[j]
        upper += max(most - either, 0.0) + _ROUNDING * most
    return fails + works * lower * (1 - _ROUNDING), min(fails + works * upper * (1 + _ROUNDING), 1.0)


def _pair(problem: Problem, terminals: NDArray[np.int64]) -> Problem:
    """The question of two terminals, without links to the others, which do not forward."""
    useful = problem.transit.copy()
    useful[terminals] = True
    kept = useful[problem.edges].all(axis=1)
    return replace(problem, edges=problem.edges[kept], link=problem.link[kept], terminals=terminals)


def _alone(problem: Problem, terminal: int) -> float:
    """Chance that all links of a terminal are down; 0 if it has one to another terminal, which it shares."""
    ends: NDArray[np.bool_] = problem.edges == terminal
    rows = ends.any(axis=1)
    if np.isin(problem.edges[rows][~ends[rows]], problem.terminals).any():
        return 0.0
    return float(np.prod(problem.link[rows, 1]))
