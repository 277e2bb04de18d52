"""Which method answers a question: the first in a list that applies and fits its budget, and why."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

from relparallel.reliability.frontier.decomposition import solved
from relparallel.reliability.frontier.programme import ANY, NotExactError, fitting, require_fit
from relparallel.reliability.problem import Problem
from relparallel.reliability.result import Reliability, exactly, explained

STATE_SECONDS: Final = 5e-8  # of the frontier programme for one state


def _always(_: Reliability) -> bool:
    """Whether an exact result is good enough."""
    return True


class Attempt(NamedTuple):
    """One method to try."""

    name: str
    run: Callable[[], Reliability | None]
    enough: Callable[[Reliability], bool] = _always


def first_that_fits(attempts: Iterable[Attempt]) -> Reliability:
    """Try methods in order until one is good enough."""
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
