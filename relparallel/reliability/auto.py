"""Which method answers a question: the first in a list that applies and fits its budget, and why."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

from relparallel.reliability.problem import Problem
from relparallel.reliability.programme.compiled import solved
from relparallel.reliability.programme.frontier import ANY, NotExactError, fitting, require_fit
from relparallel.reliability.result import Reliability, exactly, explained

__all__ = ["Attempt", "exact_within", "first_that_fits"]

STATE_SECONDS: Final = 5e-8  # of the frontier programme for one state


def _always(_: Reliability) -> bool:
    """Whether an exact result is good enough."""
    return True


class Attempt(NamedTuple):
    """One method to try.

    Attributes
    ----------
    name : str
        For the sentence that says what was chosen.
    run : callable
        Takes nothing and returns the result with its reason; or None where there is nothing of the kind; or
        raises `NotExactError` with why it does not apply or would exceed its budget.
    enough : callable
        Whether a result is good enough to stop at it; if not, the next method is tried.
    """

    name: str
    run: Callable[[], Reliability | None]
    enough: Callable[[Reliability], bool] = _always


def first_that_fits(attempts: Iterable[Attempt]) -> Reliability:
    """Try methods in order until one is good enough.

    Parameters
    ----------
    attempts : iterable of Attempt
        The most exact first; asked for the next one only if it is needed.

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
    for name, run, enough in attempts:
        try:
            result = run()
        except NotExactError as why:
            passed.append(f"{name}: {why}")
            continue
        passed.append(f"{name}: {'none' if result is None else result.reason}")
        if result is not None:
            found = explained(result, "; ".join(passed))
            if enough(found):
                return found
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
    A state takes 20 to 70 ns, so that the programme stops after max_seconds / 50 ns states, or at the
    first layer of more than ``max_states``. Predicting the states instead would need a bound that is close,
    and Bell's number of the width is not.
    """
    most, visits = fitting(max_states), max(int(min(max_seconds / STATE_SECONDS, ANY)), 1)
    found = solved(problem, reductions, most, visits)
    try:
        require_fit(found.width, found.peak, most, found.states, visits)
    except NotExactError as why:
        limits = f"{visits} states take up to {max_seconds:g} s, width {found.width}"
        raise NotExactError(f"{str(why).partition(';')[0]}; {limits}") from why
    work = f"{found.states} states in {found.layers} layers, {found.peak} at most in one"
    return exactly(*found[:2], "exact", width=found.width, states=found.states, reason=work)
