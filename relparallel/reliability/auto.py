"""Which method answers a question: the first in a list that applies and fits its budget, and why."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Final

from relparallel.reliability.compiled import Compiled, compiled
from relparallel.reliability.frontier import NotExactError
from relparallel.reliability.problem import Problem
from relparallel.reliability.result import Reliability, exactly

__all__ = ["Attempt", "exact_within", "first_that_fits"]

STATE_SECONDS: Final = 1e-7  # of the frontier programme, at most, for one state
STATE_BYTES: Final = 64


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
    A layer of s states takes less than s * 100 ns, so that layers of at most max_seconds / (layers * 100 ns)
    states keep the time below the limit whatever the network; the programme stops at the first larger one.
    Predicting the states instead would need a bound that is close, and Bell's number of the width is not.
    """
    structure = compiled(problem, reductions)
    layers = max(len(structure.steps), 1)
    fits = max(min(max_states, int(max_seconds / (layers * STATE_SECONDS))), 1)
    try:
        outcome = structure.evaluate(problem.link, problem.node, fits)
    except NotExactError as why:
        raise NotExactError(f"{str(why).partition(';')[0]}; {_limits(structure, fits, max_seconds)}") from why
    result = exactly(*outcome[:2], "exact", width=structure.width, states=outcome.states)
    return replace(
        result, reason=f"{outcome.states} states in {layers} layers, {outcome.peak} at most in one"
    )


def _limits(structure: Compiled, states: int, seconds: float) -> str:
    """The limits in numbers."""
    memory = states * STATE_BYTES / 2**20
    return (
        f"layers of {states} states would keep {len(structure.steps)} layers below {seconds:g} s and "
        f"{memory:.0f} MiB, width {structure.width}"
    )
