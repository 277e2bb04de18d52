"""Questions with groups of shared risk, answered exactly or by any method for one state of them at a time.

Whatever knows no groups is asked for each state of them, the likeliest first, and the answers are mixed
(`relparallel.reliability.questions.mixture`). Sampled intervals are widened so that all of them hold at once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from math import inf
from typing import Final

import numpy as np
from numpy.typing import NDArray

from relparallel.reliability.auto import Attempt, first_that_fits
from relparallel.reliability.methods import Question, answer, estimated, up_and_down, with_importance
from relparallel.reliability.problem import Problem, require_relays
from relparallel.reliability.programme.compiled import compiled
from relparallel.reliability.questions.groups import absorbed, solve_groups
from relparallel.reliability.questions.mixture import Group, ask_each_state
from relparallel.reliability.result import Reliability, Routing

FloatArray = NDArray[np.float64]

_STATES: Final = 64  # of the groups that are asked for bounds or samples
_UPDOWN_STATES: Final = 1024  # that are asked for the up-down programme


def answer_with_groups(
    question: Question, groups: Sequence[Group], method: str, routing: Routing
) -> Reliability:
    """Answer a question whose parts also fail in groups."""
    if routing == "updown":

        def ask(problem: Problem) -> Reliability:
            return up_and_down(question._replace(problem=problem), method)

        return by_states(question.problem, groups, ask, _UPDOWN_STATES, 0.0)
    if method in ("exact", "auto"):
        found = _exact(question, groups, inf) if method == "exact" else _first(question, groups)
        return with_importance(found, question, again=partial(_slopes, question, groups), alone=True)
    return replace(_by_method(question, groups, method), reason="")


def _first(question: Question, groups: Sequence[Group]) -> Reliability:
    """The first of exact programme, bounds and estimate that fits its budget and is good enough."""

    def tight(found: Reliability) -> bool:
        return found.upper - found.lower <= question.rtol * found.unreliability

    attempts = [
        Attempt(name="exact", run=partial(_exact, question, groups, question.max_seconds), enough=tight),
        Attempt(name="bounds", run=partial(_by_method, question, groups, "bounds"), enough=tight),
    ]
    if question.rng is not None:
        attempts.append(Attempt(name="estimate", run=partial(_by_method, question, groups, "estimate")))
    return first_that_fits(attempts)


def _exact(question: Question, groups: Sequence[Group], max_seconds: float) -> Reliability:
    """The programmes that know groups."""
    require_relays(question.problem)
    found = solve_groups(question.problem, groups, question.reductions, question.max_states, max_seconds)
    return replace(found, reason=f"{len(groups)} groups of shared risk, width {found.width}")


def _slopes(question: Question, groups: Sequence[Group], problem: Problem) -> tuple[float, FloatArray]:
    """Unreliability and slopes of all parts, by the programme for each state of the groups."""
    from relparallel.reliability.sensitivity.adjoint import differentiate
    from relparallel.reliability.sensitivity.group_slopes import slopes_at_once, slopes_with_groups

    structure = compiled(problem, question.reductions)  # of all states alike
    may = np.concatenate([problem.link[:, 0], problem.node[:, 0]]) > 0

    def slopes_of(about: Problem) -> tuple[float, FloatArray]:
        failed = may & (np.concatenate([about.link[:, 0], about.node[:, 0]]) == 0)  # with a group
        given = about.link, about.node
        found = differentiate(structure, *given, max_states=question.max_states, without=failed)
        return found.unreliability, np.concatenate([found.links, found.nodes])

    return slopes_with_groups(
        groups, slopes_of, problem, partial(slopes_at_once, max_states=question.max_states)
    )


def _by_method(question: Question, groups: Sequence[Group], method: str) -> Reliability:
    """Bounds or samples for each state of the groups."""
    states = min(2 ** len(groups), _STATES)
    asked = question._replace(confidence=1 - (1 - question.confidence) / states)

    def ask(problem: Problem) -> Reliability:
        about = asked._replace(problem=problem)
        return estimated(about, "auto") if method == "estimate" else answer(about, method)

    found = by_states(question.problem, groups, ask, _STATES, question.rtol)
    return replace(found, reason=f"at most {states} states of {len(groups)} groups of shared risk")


def by_states(
    problem: Problem,
    groups: Sequence[Group],
    ask: Callable[[Problem], Reliability],
    states: int,
    rtol: float,
) -> Reliability:
    """Ask for the likeliest states of the groups, without those that are part of something else."""
    always, left, shared = absorbed(problem, groups)
    return ask_each_state(always, left, shared, ask, states, rtol)
