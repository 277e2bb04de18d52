"""Ways to answer a question; the choice: the first that applies and fits its budget, and why."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor
from functools import partial
from math import inf
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from relparallel._checks import require_rng
from relparallel.reliability.frontier.compiled_sweep import ANY, NotExactError, fitting, require_fit
from relparallel.reliability.frontier.decomposition import solved
from relparallel.reliability.lumped.interchangeable_nodes import twins
from relparallel.reliability.problem import Problem, mute_terminals, require_relays
from relparallel.reliability.result import (
    Estimator,
    Reliability,
    Routing,
    bracketed,
    exactly,
    explained,
)
from relparallel.topology import Topology, as_topology

if TYPE_CHECKING:
    import networkx as nx

    from relparallel.reliability.sensitivity.importance import Importance

STATE_SECONDS: Final = 5e-8  # of the frontier DP for one state


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


# per layer, and links to look at per second that may be spent
_BOUND_STATES, _BOUND_STEPS = 2**16, 10**7
_MOST_STEPS = 2**62
_MOST_LINKS = 2**17  # of a plain graph in which to look for a fabric
_SOME_STATES = 64  # of groups of shared risk that are asked for bounds or samples
_MANY_STATES = 1024  # that are asked for an exact answer over up-down paths


class Question(NamedTuple):
    """A problem, its source graph, and how much an answer may cost; fields as for `evaluate`."""

    graph: Topology | nx.Graph[Any]
    problem: Problem
    routing: Routing
    reductions: bool
    max_states: int
    max_seconds: float
    rtol: float
    samples: int | None
    confidence: float
    rng: np.random.Generator | None
    executor: Executor | None


def answer(question: Question, method: str) -> Reliability:
    """Answer by the method named; the reason is given where the method was not."""
    problem = question.problem
    if question.routing == "updown":

        def ask(about: Problem) -> Reliability:
            return _up_and_down(question._replace(problem=about), method)

        return _by_states(question, ask, _MANY_STATES)
    if problem.in_fractions:
        from relparallel.reliability.extensions.counting import in_fractions

        return in_fractions(problem, question.reductions, question.max_states)
    if problem.groups:
        return _with_groups(question, method)
    if method == "auto":
        found = first_that_fits(_from_the_most_exact(question))
        return with_importance(found, question)
    if method == "exact":
        return with_importance(_exactly_solved(question), question)
    return (
        _by_form(question)
        if method == "closed_form"
        else explained(_by_method(question, method), "")
    )


def _by_method(question: Question, method: str) -> Reliability:
    """Bounds, or samples."""
    if method == "bounds":
        return _bounded(question)
    return _estimated(question, method)


def _from_the_most_exact(question: Question) -> Iterator[Attempt]:
    """Closed form, symmetry, frontier DP, bounds, estimate, for the first that is good enough."""
    # A Topology may have a symmetry that is worth more than the sweep; a plain graph seldom has.
    known = isinstance(question.graph, Topology)
    if known:
        yield Attempt("closed form", partial(_by_form, question))
        yield Attempt("symmetry", partial(_by_symmetry, question))
    elif question.reductions:
        yield Attempt("twins", partial(twins, question.problem))
    yield Attempt("exact", partial(_exactly_within_budget, question))
    if not known and len(question.problem.edges) <= _MOST_LINKS:
        yield Attempt("symmetry", partial(_by_symmetry, question))
    yield Attempt("bounds", partial(_bounded, question), partial(_tight, question))
    if question.rng is not None:
        yield Attempt("estimate", partial(_estimated, question, "auto"))


def _by_form(question: Question) -> Reliability:
    """The closed form that applies."""
    from relparallel.reliability.closed_forms.form_recognition import read_form

    form = read_form(as_topology(question.graph), question.problem, question.routing)
    return with_importance(form, question)


def _up_and_down(question: Question, method: str) -> Reliability:
    """Over paths that go up, then down: by a closed form, or by the sweep, whole or truncated."""
    from relparallel.reliability.closed_forms.form_recognition import bound_pairs
    from relparallel.reliability.extensions.updown import bound_updown, solve_updown

    asked = question.graph, question.problem
    form, exact = partial(_by_form, question), partial(solve_updown, *asked, question.max_states)
    if method == "closed_form":
        return form()  # which names its form
    if method == "exact":
        return explained(exact(), "")
    any_path = partial(_bounded, question)  # fewer paths cannot be more reliable
    bounds = [
        Attempt("bounds", partial(bound_updown, *asked)),
        Attempt("pairs", lambda: bound_pairs(as_topology(question.graph), question.problem)),
        Attempt(
            "any path",
            lambda: bracketed(any_path().lower, 1.0, "updown", "no better than over any path"),
        ),
    ]
    if method == "bounds":
        return explained(first_that_fits(bounds), "")
    return first_that_fits([Attempt("closed form", form), Attempt("exact", exact), *bounds])


def _exactly_solved(question: Question) -> Reliability:
    """Reduce the network, cut it into blocks, and run the sweep on every block."""
    require_relays(question.problem)
    most = fitting(question.max_states)
    found = solved(question.problem, question.reductions, most)
    require_fit(found.width, found.peak, most)
    return exactly(*found[:2], "exact", width=found.width, states=found.states)


def _bounded(question: Question) -> Reliability:
    """The middle of a certified bracket."""
    from relparallel.reliability.bounding.certified import bound_problem

    if mute_terminals(question.problem):
        return _bounded_by_pairs(question)
    steps = int(min(max(_BOUND_STEPS * question.max_seconds, 1), _MOST_STEPS))
    found = bound_problem(question.problem, "auto", question.rtol, _BOUND_STATES, steps)
    reason = f"a bracket with a relative width of {found.gap:.1e} from {', '.join(found.tried)}"
    return bracketed(found.lower, found.upper, "any", reason)


def _bounded_by_pairs(question: Question) -> Reliability:
    """A bracket from all pairs of terminals, each exact where its share of the time allows."""
    from relparallel.reliability.bounding.certified import bound_by_pairs

    share = 2 * question.max_seconds / len(question.problem.terminals) ** 2

    def ask(problem: Problem) -> tuple[float, float]:
        asked = question._replace(problem=problem, max_seconds=share)
        exact = Attempt("exact", partial(_exactly_within_budget, asked))
        found = first_that_fits([exact, Attempt("bounds", partial(_bounded, asked))])
        return found.lower, found.upper

    lower, upper = bound_by_pairs(question.problem, ask)
    gap = (upper - lower) / upper if upper else 0.0
    reason = f"a bracket with a relative width of {gap:.1e} from pairs of terminals"
    return bracketed(lower, upper, "any", reason)


def _estimated(question: Question, method: Estimator | str) -> Reliability:
    """An estimate with its interval, which never errs more often than stated with "monte_carlo"."""
    from relparallel.reliability.sampling.estimation import estimate_problem

    plain, samples = method == "monte_carlo", question.samples
    found = estimate_problem(
        question.problem,
        "crude" if plain else method,  # type: ignore[arg-type]
        require_rng(rng=question.rng),
        question.rtol,
        question.confidence,
        100_000 if plain and samples is None else samples,
        executor=question.executor,
        cautious=plain,
    )
    return Reliability(
        reliability=1 - found.value,
        unreliability=found.value,
        lower=found.lower,
        upper=found.upper,
        method=method if plain else found.method,  # type: ignore[arg-type]
        routing="any",
        samples=found.samples,
        reason=f"{found.method}, {found.samples} samples, relative error "
        f"{found.relative_error:.1e}",
    )


def _by_symmetry(question: Question) -> Reliability | None:
    """Exact where the network has a symmetry that is known."""
    from relparallel.reliability.lumped.lumping import lumped

    found = lumped(as_topology(question.graph), question.problem) if question.reductions else None
    return found and explained(found, f"{found.states} lumped states")


def _exactly_within_budget(question: Question) -> Reliability:
    """The frontier DP if neither its memory nor its time, 50 ns a state, can exceed a limit."""
    require_relays(question.problem)
    most, seconds = fitting(question.max_states), question.max_seconds
    visits = max(int(min(seconds / STATE_SECONDS, ANY)), 1)
    found = solved(question.problem, question.reductions, most, visits)
    try:
        require_fit(found.width, found.peak, most, found.states, visits)
    except NotExactError as why:
        limits = f"{visits} states take up to {seconds:g} s, width {found.width}"
        raise NotExactError(f"{str(why).partition(';')[0]}; {limits}") from why
    work = f"{found.states} states in {found.layers} layers, {found.peak} at most in one"
    return exactly(*found[:2], "exact", width=found.width, states=found.states, reason=work)


def _tight(question: Question, found: Reliability) -> bool:
    """Whether a bracket is narrow enough not to sample."""
    return found.upper - found.lower <= question.rtol * found.unreliability


def _with_groups(question: Question, method: str) -> Reliability:
    """Answer a question whose parts also fail in groups of shared risk."""

    def exact(max_seconds: float) -> Reliability:
        from relparallel.reliability.extensions.srlg import solve_groups

        require_relays(question.problem)
        limits = question.reductions, question.max_states, max_seconds
        found = solve_groups(question.problem, question.problem.groups, *limits)
        return explained(
            found, f"{len(question.problem.groups)} groups of shared risk, width {found.width}"
        )

    def sampled(name: str) -> Reliability:
        states = min(2 ** len(question.problem.groups), _SOME_STATES)
        confidence = 1 - (1 - question.confidence) / states  # so that all intervals hold at once

        def ask(problem: Problem) -> Reliability:
            return _by_method(question._replace(problem=problem, confidence=confidence), name)

        found = _by_states(question, ask, _SOME_STATES, question.rtol)
        about = f"at most {states} states of {len(question.problem.groups)} groups of shared risk"
        return explained(found, about)

    if method not in ("exact", "auto"):
        return explained(sampled(method), "")
    if method == "exact":
        found = exact(inf)
    else:
        tight = partial(_tight, question)
        attempts = [
            Attempt("exact", partial(exact, question.max_seconds), tight),
            Attempt("bounds", partial(sampled, "bounds"), tight),
        ]
        if question.rng is not None:
            attempts.append(Attempt("estimate", partial(sampled, "auto")))
        found = first_that_fits(attempts)
    return with_importance(found, question)


def _by_states(
    question: Question, ask: Callable[[Problem], Reliability], states: int, rtol: float = 0.0
) -> Reliability:
    """Ask a method that knows no groups for each of the likeliest states of the groups."""
    if not question.problem.groups:
        return ask(question.problem)
    from relparallel.reliability.extensions.srlg import absorbed, ask_each_state

    always, left, shared = absorbed(question.problem, question.problem.groups)
    return ask_each_state(always, left, shared, ask, states, rtol)


def with_importance(found: Reliability, question: Question) -> Reliability:
    """The result, which can tell how important every part is if it is exact over any path."""

    def parts(*, perfect: bool) -> Importance:
        from relparallel.reliability.sensitivity.gradient import importance

        asked = question.problem, question.graph, question.reductions, question.max_states
        return importance(*asked, perfect=perfect)

    if found.method in ("exact", "closed_form") and found.routing == "any" and found._parts is None:
        object.__setattr__(found, "_parts", parts)
    return found
