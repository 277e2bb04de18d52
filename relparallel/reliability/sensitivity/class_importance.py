"""Importance where parts are interchangeable: all parts of a class matter alike.

Where a closed form answers, U is asked for with the chance of a class moved: with n parts of
down-probability q, dU/dq is n times Birnbaum's measure of each. Where none does, U is bounded with
one part of the class down, and up.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from relparallel.reliability.closed_forms.alike_nodes import recognised
from relparallel.reliability.closed_forms.alike_pods import match_fabric
from relparallel.reliability.frontier.compiled_sweep import NotExactError
from relparallel.reliability.probability import series
from relparallel.reliability.problem import Problem
from relparallel.reliability.result import Reliability
from relparallel.topology import Topology

_STEP: Final = 1e-2  # of the probability to be up or down, whichever is smaller
_NOISE: Final = 1e-13  # of U or R, below which a change of it has no digits
_WIDTH: Final = 0.05  # of a bracket over its upper end: two digits in its middle
_FAINT: Final = 1e-3  # of the largest measure, below which one may be too small to show

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
Ask = Callable[[Problem], Reliability]


class Classes(NamedTuple):
    """Rows of interchangeable parts, links first, and of what must work in any case."""

    rows: list[IntArray]
    needed: IntArray


def class_importance(
    topology: Topology, problem: Problem, form: Ask, bounds: Ask
) -> tuple[float, FloatArray]:
    """Unreliability, and by how much it grows when a link or a node is down, one after the other.

    Notes
    -----
    By closed forms six digits of what is at least 1e-5 of U without the parts that must work in any
    case, which are set apart; by bounds two digits. What does not show is 0.
    """
    chances = np.concatenate([problem.link, problem.node])
    classes = _classes(topology, problem)
    slopes, inside = np.zeros(len(chances)), chances.copy()
    inside[classes.needed] = 1.0, 0.0
    outside = series(*map(tuple, chances[classes.needed].tolist()))
    failed = _inside(_with(problem, inside), form, bounds)
    try:
        found = _moved(problem, inside, classes.rows, failed, form)
    except NotExactError:
        found = _conditioned(problem, inside, classes.rows, bounds)
    for rows, slope in zip(classes.rows, found, strict=True):
        slopes[rows] = outside[0] * slope
    own = chances[classes.needed, 0]
    before, after = (np.concatenate([[1.0], np.cumprod(some)])[:-1] for some in (own, own[::-1]))
    slopes[classes.needed] = (1 - failed) * before * after[::-1]
    whole = series((1 - failed, failed), outside)
    return float(whole[1]), np.where(chances[:, 1] > 0, slopes, 0.0)


def _inside(problem: Problem, form: Ask, bounds: Ask) -> float:
    """U without the failures of what must work in any case."""
    try:
        return form(problem).unreliability
    except NotExactError:
        found = bounds(problem)
    if found.upper - found.lower > _WIDTH * found.upper:
        raise NotExactError(
            f"bounds must leave two digits of U, got [{found.lower:.3g}, {found.upper:.3g}]"
        )
    return found.unreliability


def _moved(
    problem: Problem, chances: FloatArray, classes: list[IntArray], failed: float, form: Ask
) -> list[float]:
    """Birnbaum's measure of a part of each class, by (8 d(h) - d(2h)) / (12 h) of moved U."""
    found = []
    for rows in classes:
        up, down = chances[rows[0]].tolist()
        if up == 0:
            raise NotExactError("parts must be up now and then for a derivative")
        step, moved = _STEP * min(up, down), []
        for k in (-2, -1, 1, 2) if step else ():
            parts = chances.copy()
            fewer = up - k * step
            parts[rows] = fewer, 1 - fewer if down == 1 - up else down + k * step
            moved.append(form(_with(problem, parts)).unreliability)
        slope = 0.0
        if step and abs(moved[2] - moved[1]) > _NOISE * min(failed, 1 - failed):
            slope = (8 * (moved[2] - moved[1]) - (moved[3] - moved[0])) / (12 * step) / len(rows)
        found.append(slope)
    return found


def _conditioned(
    problem: Problem, chances: FloatArray, classes: list[IntArray], bounds: Ask
) -> list[float]:
    """The same from brackets of U with one part down, and up."""
    brackets = []
    for rows in classes:
        ends = []
        for state in ((0.0, 1.0), (1.0, 0.0)) if chances[rows[0], 1] else ():
            parts = chances.copy()
            parts[rows[0]] = state
            ends.append(bounds(_with(problem, parts)))
        low, high = (
            (ends[0].lower - ends[1].upper, ends[0].upper - ends[1].lower) if ends else (0.0, 0.0)
        )
        brackets.append((low, high))
    shows = _FAINT * max(low for low, _ in brackets)
    for low, high in brackets:
        if high > shows and high - low > _WIDTH * high:
            raise NotExactError(
                f"bounds of a part's importance must leave two digits, got [{low:.3g}, {high:.3g}]"
            )
    return [(low + high) / 2 if high > shows else 0.0 for low, high in brackets]


def _with(problem: Problem, parts: FloatArray) -> Problem:
    """The problem with other chances of its links and nodes."""
    link, node = np.split(parts, [len(problem.edges)])
    return replace(problem, link=link, node=node)


def _classes(topology: Topology, problem: Problem) -> Classes:
    """Those of a fabric of alike pods, or of a network of alike nodes."""
    if len(problem.terminals) == 1:
        return Classes([], len(problem.edges) + problem.terminals)
    match = match_fabric(topology, problem)
    if match is not None:
        alone = match.fabric.planes * match.fabric.aggregations == 1  # a pod's only way up
        rows, needed = [match.core], [match.needed]
        for own, pods in zip(match.pods, match.fabric.pods, strict=True):
            for name, some in own.items():
                kept = needed if alone and pods.terminals and name == "aggregation" else rows
                kept.append(some)
        return Classes([some for some in rows if len(some)], np.concatenate(needed))
    found = recognised(problem)
    if found is None:
        raise NotExactError("graph must have parts that are alike for importance by classes")
    m, kind = len(problem.edges), 2 * found.right + found.relay
    ends = np.sort(kind[problem.edges], axis=1)
    nodes = [m + np.flatnonzero(found.relay & (found.right == right)) for right in (False, True)]
    links = [
        np.flatnonzero((ends == pair).all(axis=1)) for pair in np.unique(ends, axis=0).tolist()
    ]
    return Classes([rows for rows in (*nodes, *links) if len(rows)], m + problem.terminals)
