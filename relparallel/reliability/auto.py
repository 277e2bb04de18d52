"""Which method answers a question: the first in a list that applies and fits its budget, and why."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Final

from relparallel.reliability.problem import Problem
from relparallel.reliability.programme.compiled import compiled
from relparallel.reliability.programme.frontier import NotExactError
from relparallel.reliability.result import Reliability, exactly

__all__ = ["Attempt", "exact_within", "first_that_fits"]

STATE_SECONDS: Final = 1e-7  # of the frontier programme, at most, for one state


@dataclass(frozen=True, kw_only=True, slots=True)
class Attempt:
    """One method to try.

    Attributes
    ----------
    name : str
        For the sentence that says what was chosen.
    run : callable
        Takes nothing and returns the result with its reason, or raises `NotExactError` with why it does not
        apply or would exceed its budget.
    enough : callable
        Whether a result is good enough to stop at it; if not, the next method is tried.
    """

    name: str
    run: Callable[[], Reliability]
    enough: Callable[[Reliability], bool] = lambda _: True


def first_that_fits(attempts: Iterable[Attempt]) -> Reliability:
    """Try methods in order until one is good enough.

    Parameters
    ----------
    attempts : iterable of Attempt
        The most exact first.

    Returns
    -------
    Reliability
        The first that is good enough, or the last that ran. Its ``reason`` says why the ones before it were
        passed over, and why it was taken.

    Raises
    ------
    NotExactError
        If none ran; the message holds all reasons.
    """
    found: Reliability | None = None
    passed: list[str] = []
    for attempt in attempts:
        try:
            result = attempt.run()
        except NotExactError as why:
            passed.append(f"{attempt.name}: {why}")
            continue
        if attempt.enough(result):
            return replace(result, reason="; ".join([*passed, f"{attempt.name}: {result.reason}"]))
        passed.append(f"{attempt.name}: {result.reason}")
        found = replace(result, reason="; ".join(passed))
    if found is None:
        raise NotExactError("; ".join(passed))
    return found


def exact_within(problem: Problem, reductions: bool, max_states: int, max_seconds: float) -> Reliability:
    """Run the exact programme if neither its memory nor its time can exceed a limit.

    Parameters
    ----------
    problem : Problem
        The question.
    reductions : bool
        Whether to simplify the network first.
    max_states : int
        Largest layer.
    max_seconds : float
        Predicted time, s, above which it does not go on.

    Returns
    -------
    Reliability
        Exact, with its work as the reason.

    Raises
    ------
    NotExactError
        If it would take more.

    Notes
    -----
    A state takes less than 100 ns, so that the programme stops after max_seconds / 100 ns states, or at the
    first layer of more than ``max_states``. Predicting the states instead would need a bound that is close,
    and Bell's number of the width is not.
    """
    structure = compiled(problem, reductions)
    visits = max(int(max_seconds / STATE_SECONDS), 1)
    try:
        outcome = structure.evaluate(problem.link, problem.node, max_states, visits)
    except NotExactError as why:
        limits = f"{visits} states take up to {max_seconds:g} s, width {structure.width}"
        raise NotExactError(f"{str(why).partition(';')[0]}; {limits}") from why
    layers = len(structure.steps)
    work = f"{outcome.states} states in {layers} layers, {outcome.peak} at most in one"
    return exactly(*outcome[:2], "exact", width=structure.width, states=outcome.states, reason=work)
