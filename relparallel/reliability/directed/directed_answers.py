"""Answers about directed networks: exact, bracketed or sampled, with and without groups of shared risk."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Final

from relparallel.reliability.auto import Attempt, first_that_fits
from relparallel.reliability.directed.arc_bounds import bound_arcs
from relparallel.reliability.directed.arc_programme import slopes_of_arcs, solve_arcs
from relparallel.reliability.directed.arc_samples import count_cut_off
from relparallel.reliability.directed.arcs import Arcs
from relparallel.reliability.methods import Question, crudely_sampled, tight, with_importance
from relparallel.reliability.problem import Problem
from relparallel.reliability.questions.grouped import by_states
from relparallel.reliability.questions.mixture import Group
from relparallel.reliability.result import Reliability, explained
from relparallel.reliability.sensitivity.group_slopes import slopes_with_groups

_VISITS: Final = 25_000  # states that the programme decides in a second, about
_BOUND_SHARE: Final = 4  # of the time for it may be spent on bounds
_GROUP_STATES: Final = 1024


def answer_directed(question: Question, groups: Sequence[Group], method: str) -> Reliability:
    """Answer a question about arcs."""
    if not groups:
        found = _answer(question, method)
    else:
        states = min(2 ** len(groups), _GROUP_STATES)  # they share the time, and the chance of an error
        limits = question.max_seconds / states, 1 - (1 - question.confidence) / states

        def ask(problem: Problem) -> Reliability:
            asked = question._replace(problem=problem, max_seconds=limits[0], confidence=limits[1])
            return _answer(asked, method)

        rtol = 0.0 if method in ("auto", "exact") else question.rtol
        found = by_states(question.problem, groups, ask, _GROUP_STATES, rtol)
        found = explained(found, f"at most {states} states of {len(groups)} groups of shared risk")
    if question.problem.link.dtype == object or question.problem.node.dtype == object:
        return found
    slopes = partial(slopes_of_arcs, max_states=question.max_states)
    return with_importance(found, question, again=partial(slopes_with_groups, groups, slopes), alone=True)


def _answer(question: Question, method: str) -> Reliability:
    """Without groups."""
    problem = question.problem
    assert isinstance(problem, Arcs)
    visits = max(int(min(_VISITS * question.max_seconds, 2**40)), 1)
    if method == "exact" or problem.link.dtype == object:
        return explained(solve_arcs(problem, question.max_states), "")
    if method == "bounds":
        return explained(bound_arcs(problem, visits // _BOUND_SHARE), "")
    if method == "monte_carlo":
        return crudely_sampled(question, count_cut_off)
    attempts = [
        Attempt("exact", partial(solve_arcs, problem, question.max_states, visits)),
        Attempt("bounds", partial(bound_arcs, problem, visits // _BOUND_SHARE), partial(tight, question)),
    ]
    if question.rng is not None:
        attempts.append(Attempt("estimate", partial(crudely_sampled, question, count_cut_off)))
    return first_that_fits(attempts)
