"""Ways to answer one question, and the choice: the first that applies and fits, and why."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from math import inf
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from relparallel.reliability.bounding.certified import bound_by_pairs, bound_problem
from relparallel.reliability.closed_forms.alike_nodes import twins
from relparallel.reliability.closed_forms.form_recognition import read_form
from relparallel.reliability.extensions.srlg import ask_each_state, solve_groups
from relparallel.reliability.frontier.compiled_sweep import (
    ANY,
    NotExactError,
    fitting,
    require_fit,
)
from relparallel.reliability.frontier.decomposition import solved
from relparallel.reliability.problem import Problem, mute_terminals, require_relays
from relparallel.reliability.result import Reliability, bracketed, exactly, explained
from relparallel.reliability.sensitivity.gradient import importance
from relparallel.topology import Topology, as_topology

if TYPE_CHECKING:
    import networkx as nx

STATE_SECONDS: Final = 5e-8  # of the frontier DP for one state
_RTOL: Final = 1e-2  # width of a bracket over its value that bounds aim for
_SOON: Final = 10  # a tenth of the time goes to a first try: tight bounds beat a long sweep
_BOUND_STATES, _BOUND_STEPS = 2**16, 10**7  # per layer, and links to look at per second
_MOST_STEPS = 2**62


class Question(NamedTuple):
    """A problem, the graph it was read from, and how much an answer may cost."""

    graph: Topology | nx.Graph[Any]
    problem: Problem
    max_states: int
    max_seconds: float


Attempt = tuple[str, Callable[[Question], Reliability | None]]  #: the name of a method, and itself


def answer(question: Question, method: str) -> Reliability:
    """Answer by the method named, or by the first that fits."""
    if method == "auto":
        found = first_that_fits(question, _from_the_most_exact(question))
    else:
        found = ROUTES[method](question)

    def by(ask: Callable[[Question], Reliability]) -> Callable[[Problem], Reliability]:
        """The same question about other chances, in less time: there will be several."""
        return lambda problem: ask(_soon(question)._replace(problem=problem))

    asked = question.problem, question.graph, question.max_states
    object.__setattr__(found, "_parts", partial(importance, *asked, by(_closed_form), by(_bounds)))
    return found


def first_that_fits(question: Question, attempts: Iterable[Attempt]) -> Reliability:
    """Try methods in order until one is exact, or as good as that; else the narrowest bracket."""
    found: Reliability | None = None
    passed: list[str] = []
    for name, run in attempts:
        if name == "bounds" and found and found.upper - found.lower <= _RTOL * found.unreliability:
            break  # a first try has reached what bounds aim for
        try:
            result = run(question)
        except NotExactError as why:
            passed.append(f"{name}: {str(why).partition(';')[0]}")
            continue
        passed.append(f"{name}: {'none' if result is None else result.reason}")
        if result is None:
            continue
        if found is None or result.upper - result.lower <= found.upper - found.lower:
            found = explained(result, "; ".join(passed))
        if found.tight:
            return found
    if found is None:
        raise NotExactError("; ".join(passed))
    return found


def _from_the_most_exact(question: Question) -> Iterator[Attempt]:
    """Closed form, alike nodes, a short frontier DP, short bounds, then both in their full time."""
    soon = _soon(question)
    if not question.problem.groups:
        if isinstance(question.graph, Topology):
            yield "closed form", _closed_form
        else:  # seldom a fabric, and slow to read as one
            yield "alike nodes", lambda asked: twins(asked.problem)
        yield "exact", lambda _: _exact_in_time(soon)
        yield "bounds", lambda _: _bounds(soon)
    yield "exact", _exact_in_time
    yield "bounds", _bounds


def _soon(question: Question) -> Question:
    """The question with less time to answer it."""
    return question._replace(max_seconds=question.max_seconds / _SOON)


def _closed_form(question: Question) -> Reliability:
    """The closed form that applies, of alike nodes or of a fabric."""
    found = twins(question.problem)
    return found or read_form(as_topology(question.graph), question.problem)


def _exact(question: Question) -> Reliability:
    """The frontier DP, however long it takes."""
    return _exact_in_time(question._replace(max_seconds=inf))


def _exact_in_time(question: Question) -> Reliability:
    """The frontier DP if neither its memory nor its time, 50 ns a state, can exceed a limit."""
    problem, seconds = question.problem, question.max_seconds
    require_relays(problem)
    if problem.groups:
        shared = solve_groups(problem, question.max_states, seconds)
        reason = f"{len(problem.groups)} groups of shared risk, width {shared.width}"
        return explained(shared, reason)
    most, visits = fitting(question.max_states), max(int(min(seconds / STATE_SECONDS, ANY)), 1)
    found = solved(problem, most, visits)
    require_fit(found.width, found.peak, most, found.states, visits)
    work = f"{found.states} states in {found.layers} layers, {found.peak} at most in one"
    return exactly(*found[:2], "exact", width=found.width, states=found.states, reason=work)


def _bounds(question: Question) -> Reliability:
    """The middle of a certified bracket."""
    problem = question.problem
    if problem.groups:
        return ask_each_state(problem, lambda one: _bounds(question._replace(problem=one)), _RTOL)
    if mute_terminals(problem):
        return _bounds_by_pairs(question)
    steps = int(min(max(_BOUND_STEPS * question.max_seconds, 1), _MOST_STEPS))
    found = bound_problem(problem, "auto", _RTOL, _BOUND_STATES, steps)
    tried = ", ".join(found.tried)
    reason = f"a bracket with a relative width of {found.gap:.1e} from {tried}"
    return bracketed(found.lower, found.upper, reason)


def _bounds_by_pairs(question: Question) -> Reliability:
    """A bracket from all pairs of terminals, each exact where its share of the time allows."""
    share = 2 * question.max_seconds / len(question.problem.terminals) ** 2

    def ask(problem: Problem) -> tuple[float, float]:
        asked = question._replace(problem=problem, max_seconds=share)
        found = first_that_fits(asked, [("exact", _exact_in_time), ("bounds", _bounds)])
        return found.lower, found.upper

    lower, upper = bound_by_pairs(question.problem, ask)
    gap = (upper - lower) / upper if upper else 0.0
    reason = f"a bracket with a relative width of {gap:.1e} from pairs of terminals"
    return bracketed(lower, upper, reason)


#: Methods that a caller may name.
ROUTES: Final[dict[str, Callable[[Question], Reliability]]] = {
    "exact": _exact,
    "closed_form": _closed_form,
    "bounds": _bounds,
}
