"""How much every part matters where parts fail in groups as well."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from relparallel.reliability.problem import Group, Problem
from relparallel.reliability.programme.compiled import compiled
from relparallel.reliability.programme.frontier import NotExactError
from relparallel.reliability.programme.plain_sweep import MAX_SLOTS, WORKS, Risks, factors_of, ways_on
from relparallel.reliability.programme.tape import play_any
from relparallel.reliability.questions.groups import FEW, absorbed, risks_by_row
from relparallel.reliability.sensitivity.adjoint import require_all, rewind
from relparallel.reliability.sensitivity.whole_sweep import Moves, sweep_back

Slopes = tuple[float, NDArray[np.float64]]

_MOST: Final = 12  # groups whose states are gone through
_STATES: Final = 2**16  # of a layer: all layers are kept


class _Way(tuple[tuple[int, int], ...]):
    """What is taken on a way through a row, in the place of its mass; either of both ways is no choice."""

    def __mul__(self, other: _Way) -> _Way:  # type: ignore[override]
        return _Way((*self, *other))

    def __add__(self, other: object) -> _Way:  # type: ignore[override]
        return _Way()


def slopes_with_groups(
    groups: Sequence[Group],
    slopes_of: Callable[[Any], Slopes],
    problem: Problem,
    at_once: Callable[[Problem, Sequence[Group]], Slopes] | None = None,
) -> Slopes:
    """Unreliability, and by how much it grows when a part is down, over all states of the groups.

    Notes
    -----
    A part does not matter where one of its groups is down. Ten groups and fewer are gone through by their
    states: a failed group that parts the terminals for good decides all of its branch, and the time is that
    of ``slopes_of`` for each set of parts that groups take down.
    """
    always, rest, shared = absorbed(problem, groups)
    m, failed, total = len(problem.link), 0.0, np.zeros(len(problem.link) + len(problem.node))
    try:
        if at_once is None or len(shared) <= FEW:
            raise NotExactError(f"groups must be at most {_MOST} for importance, got {len(shared)}")
        failed, total = at_once(rest, shared)
    except NotExactError:
        if len(shared) > _MOST:
            raise
        for mass, down in _states(rest, shared, slopes_of):
            failed += mass * down[0]
            total += mass * down[1]
    for group in groups:
        alone = len(group.nodes) + len(group.links) == 1
        if alone and not group.nodes & set(problem.terminals.tolist()):  # taken into the part's chance
            total[[*group.links, *(m + v for v in group.nodes)]] *= group.chance[0]
    return float(always[1] + always[0] * failed), float(always[0]) * total


def slopes_at_once(problem: Problem, groups: Sequence[Group], max_states: int) -> Slopes:
    """The same of groups of several parts without terminals, kept in the states of one sweep."""
    structure = compiled(problem, reductions=False)
    slots, slope = structure.slots, np.zeros(structure.slots + 1)
    given = [*map(tuple, problem.link.tolist()), *map(tuple, problem.node.tolist())]
    chances, failure = np.empty((slots + 1, 2)), 0.0 if structure.connected else 1.0
    chances[:-1] = play_any(structure.tape, given, slots)
    shares = np.zeros(slots + 1)
    if structure.connected and len(structure.widths):
        risks, width = risks_by_row(structure, groups)
        if width > MAX_SLOTS:
            raise NotExactError(
                f"graph must need at most {MAX_SLOTS} live parts in this programme, got {width}"
            )
        rows = zip(factors_of(structure.parts, chances[:-1].tolist()), risks, strict=True)
        here = [[*row, *((up, down) for _, up, down in risk.enter)] for row, risk in rows]
        steps = zip(structure.steps.tolist(), here, risks, strict=True)
        moves = [_moves(step, own, risk) for step, own, risk in steps]
        failure, found = sweep_back(bytes(width), WORKS, moves, here, min(max_states, _STATES))
        for parts, own in zip(structure.parts.tolist(), found, strict=True):
            for slot, share in zip(parts, own[:3], strict=True):
                shares[slot] += share  # behind all slots what never fails
    shares[-1], chances[-1] = 0.0, (1.0 - failure, failure)
    failed = require_all(np.append(structure.required, slots), chances, slope)
    slope += slope[-1] * shares
    rewind(structure.tape, chances, slope)
    return failed, slope[: len(given)]


def _moves(step: list[int], here: Sequence[tuple[Any, Any]], risk: Risks) -> Moves:
    """What becomes of a state in a row, and what each way takes."""
    signs = [(_Way(((i, 0),)), _Way(((i, 1),)) if down else _Way()) for i, (_, down) in enumerate(here)]
    enter = tuple((slot, *signs[3 + i]) for i, (slot, _, _) in enumerate(risk.enter))
    named = replace(risk, enter=enter)
    return lambda state: ways_on(state, _Way(), step, signs[:3], named)


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
