"""Condition on the states of groups of shared risk (SRLG), the likeliest first; ask any method for the rest.

With the states of all groups fixed, parts fail independently, and every method applies. The answers are mixed
by the masses of the states. A failed group that parts the terminals for good decides all of its branch; what
the budget leaves open is bracketed, for more failures cannot help.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from heapq import heappop, heappush
from math import prod
from typing import Any, Final, NamedTuple

import numpy as np

from relparallel.reliability.probability import Chance, series
from relparallel.reliability.problem import Group, Problem
from relparallel.reliability.result import Reliability, exactly

_SLACK: Final = 1e-12  # relative; more than the rounding of the sums over states of the groups


class Known(NamedTuple):
    """What is known: masses that surely work, surely fail, and are open; and the likeliest unreliability."""

    up: float
    down: float
    open: float
    value: float


def mixed(
    groups: Sequence[Group], answer: Callable[[tuple[int, ...]], Known], evaluations: int, rtol: float = 0.0
) -> Known:
    """Mix the answers for the states of the groups."""
    alive = [prod(float(group.chance[0]) for group in groups[i:]) for i in range(len(groups) + 1)]
    up = down = open_ = value = 0  # not 0.0: sums of fractions stay fractions
    heap: list[Any] = [(-1, 0, (), answer(()))]  # mass, groups decided, those that failed, what is known
    asked = 1
    while heap:
        mass, decided, failed, known = heappop(heap)
        certain = known.up == known.open == 0.0  # more failures cannot help
        few = rtol > 0.0 and -sum(entry[0] for entry in heap) - mass <= rtol * value
        stop = asked >= evaluations or few
        if certain or decided == len(groups) or stop:
            works = 1 if certain else alive[decided]  # of the groups that are not decided
            up, down = up - mass * works * known.up, down - mass * known.down
            rest = (1 - works) * known.up
            open_, value = open_ - mass * (known.open + rest), value - mass * (known.value + rest / 2)
            continue
        asked += 1
        works, fails = groups[decided].chance
        more = (*failed, decided)
        heappush(heap, (mass * works, decided + 1, failed, known))
        heappush(heap, (mass * fails, decided + 1, more, answer(more)))
    return Known(up, down, open_, value)


def ask_each_state(
    always: Chance,
    problem: Problem,
    groups: Sequence[Group],
    ask: Callable[[Problem], Reliability],
    evaluations: int,
    rtol: float,
) -> Reliability:
    """Ask a method that knows no groups for every state of the groups that matters."""
    answers: list[Reliability] = []

    def answer(failed: tuple[int, ...]) -> Known:
        found = ask(without(problem, [groups[i] for i in failed]))
        answers.append(found)
        if found.exact and not found.samples:
            return Known(found.reliability, found.unreliability, 0.0, found.unreliability)
        return Known(1.0 - found.upper, found.lower, found.upper - found.lower, found.unreliability)

    known = mixed(groups, answer, evaluations, rtol / 4)
    found = summed_up(always, known, answers[0].routing, max(answer.width for answer in answers))
    sampled = [answer for answer in answers if answer.samples]
    if not sampled:
        return found
    samples = sum(answer.samples for answer in sampled)
    return replace(found, method=sampled[0].method, samples=samples)


def without(problem: Problem, failed: Sequence[Group]) -> Problem:
    """The network without the parts of failed groups."""
    nodes = sorted({v for group in failed for v in group.nodes})
    kept = np.ones(len(problem.edges), dtype=bool)
    kept[sorted({e for group in failed for e in group.links})] = False
    kept &= ~np.isin(problem.edges, nodes).any(axis=1)
    return replace(problem, edges=problem.edges[kept], link=problem.link[kept])


def summed_up(always: Chance, known: Known, routing: Any, width: int) -> Reliability:
    """The result, given that what must always work does."""
    works, fails = series(always, (known.up, known.down))
    if known.open <= 0.0:
        return exactly(works, fails, "exact", routing, width=width)
    lower, upper = fails * (1 - _SLACK), min((fails + always[0] * known.open) * (1 + _SLACK), 1.0)
    value = min(max(always[1] + always[0] * known.value, lower), upper)
    return Reliability(
        reliability=1.0 - value, unreliability=value, lower=lower, upper=upper, method="bounds",
        routing=routing, width=width,
    )  # fmt: skip
