"""How much every part matters where parts fail in groups as well."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from relparallel.reliability.problem import Problem
from relparallel.reliability.programme.frontier import NotExactError
from relparallel.reliability.questions.groups import absorbed
from relparallel.reliability.questions.mixture import Group

__all__ = ["slopes_with_groups"]

Slopes = tuple[float, NDArray[np.float64]]

_MOST: Final = 12  # groups whose states are gone through


def slopes_with_groups(
    groups: Sequence[Group], slopes_of: Callable[[Any], Slopes], problem: Problem
) -> Slopes:
    """Unreliability, and by how much it grows when a part is down, over all states of the groups.

    Parameters
    ----------
    groups : sequence of Group
        They fail independently of one another and of the parts.
    slopes_of : callable
        The same for a problem whose parts fail independently.
    problem : Problem
        The network with the chances of its parts.

    Returns
    -------
    (float, float64[m + n])

    Raises
    ------
    NotExactError
        If more than twelve groups have several parts.

    Notes
    -----
    A part does not matter where one of its groups is down. A failed group that parts the terminals for good
    decides all of its branch. Time: that of ``slopes_of`` for each set of parts that groups take
    down, at most 2^G.
    """
    always, rest, shared = absorbed(problem, groups)
    if len(shared) > _MOST:
        raise NotExactError(f"groups must be at most {_MOST} for importance, got {len(shared)}")
    m, failed, total = len(problem.link), 0.0, np.zeros(len(problem.link) + len(problem.node))
    for mass, down in _states(rest, shared, slopes_of):
        failed += mass * down[0]
        total += mass * down[1]
    for group in groups:
        alone = len(group.nodes) + len(group.links) == 1
        if alone and not group.nodes & set(problem.terminals.tolist()):  # taken into the part's chance
            total[[*group.links, *(m + v for v in group.nodes)]] *= group.chance[0]
    return float(always[1] + always[0] * failed), float(always[0]) * total


def _states(
    problem: Problem, groups: Sequence[Group], slopes_of: Callable[[Any], Slopes]
) -> Iterator[tuple[float, Slopes]]:
    """Masses of the states of the groups that matter, with what they come to.

    States in which the same parts are down are asked for once.
    """
    known: dict[tuple[tuple[int, ...], tuple[int, ...]], Slopes] = {}
    todo: list[tuple[float, int, tuple[int, ...], Slopes]] = [(1.0, 0, (), slopes_of(problem))]
    while todo:
        mass, decided, failed, found = todo.pop()
        if decided == len(groups) or found[0] == 1.0:
            yield mass, found
            continue
        works, fails = groups[decided].chance
        more = (*failed, decided)
        todo.append((mass * works, decided + 1, failed, found))
        links = tuple(sorted(set().union(*(groups[i].links for i in more))))
        nodes = tuple(sorted(set().union(*(groups[i].nodes for i in more))))
        if (links, nodes) not in known:
            known[links, nodes] = _without(problem, list(links), list(nodes), slopes_of)
        todo.append((mass * fails, decided + 1, more, known[links, nodes]))


def _without(
    problem: Problem, links: list[int], nodes: list[int], slopes_of: Callable[[Any], Slopes]
) -> Slopes:
    """What the network comes to without some parts."""
    link, node = problem.link.copy(), problem.node.copy()
    link[links] = node[nodes] = 0.0, 1.0
    down, slopes = slopes_of(replace(problem, link=link, node=node))
    slopes = slopes.copy()
    slopes[links] = slopes[len(link) + np.array(nodes, dtype=np.int64)] = 0.0
    return down, slopes
