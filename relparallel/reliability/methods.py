"""Ways to answer one question about independent parts, and the choice among them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from relparallel._checks import require_rng
from relparallel.reliability.auto import Attempt, exact_within, first_that_fits
from relparallel.reliability.lumped.alike_nodes import twins
from relparallel.reliability.problem import Problem, mute_terminals, require_relays
from relparallel.reliability.programme.compiled import solved
from relparallel.reliability.programme.frontier import NotExactError, fitting, require_fit
from relparallel.reliability.result import Estimator, Reliability, Routing, bracketed, exactly, explained
from relparallel.topology import Topology, as_topology

if TYPE_CHECKING:
    import networkx as nx

    from relparallel.reliability.sampling.monte_carlo import Chunk
    from relparallel.reliability.sensitivity.importance import ByClass, Importance

_BOUND_STATES, _BOUND_STEPS = 2**16, 10**7  # per layer, and links to look at per second that may be spent
_MOST_STEPS = 2**62
_MOST_LINKS = 2**17  # of a plain graph in which to look for a fabric


class Question(NamedTuple):
    """A problem, the graph it was read from, and how much an answer may cost; fields as for `evaluate`."""

    graph: Topology | nx.Graph[Any]
    problem: Problem
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
    if method == "auto":
        found = first_that_fits(_from_the_most_exact(question))
        return with_importance(found, question, alike=found.width == 0 and found.states > 0)
    if method == "closed_form":
        return by_form(question)
    if method == "exact":
        return with_importance(exactly_solved(question), question)
    if method == "bounds":
        return explained(bounded(question), "")
    if method == "monte_carlo":
        return crudely_sampled(question)
    return explained(estimated(question, method), "")  # type: ignore[arg-type]


def _from_the_most_exact(question: Question) -> Iterator[Attempt]:
    """Closed form, symmetry, exact programme, bounds and estimate, for the first that is good enough."""
    # A Topology may have a symmetry that is worth more than the programme; a plain graph seldom has.
    known = isinstance(question.graph, Topology)
    if known:
        yield Attempt("closed form", partial(by_form, question))
        yield Attempt("symmetry", partial(_by_symmetry, question))
    elif question.reductions:
        yield Attempt("twins", partial(twins, question.problem))
    yield Attempt("exact", partial(_exactly_within_budget, question))
    if not known and len(question.problem.edges) <= _MOST_LINKS:
        yield Attempt("symmetry", partial(_by_symmetry, question))
    yield Attempt("bounds", partial(bounded, question), partial(tight, question))
    if question.rng is not None:
        yield Attempt("estimate", partial(estimated, question, "auto"))


def by_form(question: Question, routing: Routing = "any") -> Reliability:
    """The closed form that applies."""
    from relparallel.reliability.closed_forms.form_recognition import read_form

    topology = as_topology(question.graph)
    form = read_form(topology, question.problem, routing)

    def again(problem: Problem) -> tuple[float, NDArray[np.float64]] | None:
        from relparallel.reliability.sensitivity.class_slopes import slopes_by_form

        known = form if problem is question.problem else None
        found = slopes_by_form(topology, problem, routing, known)
        if found is None and routing == "updown":  # what else there is counts any path
            raise NotExactError("parts must stay alike in their classes for importance over up-down paths")
        return found

    return with_importance(form.answer(routing), question, again=again)


def up_and_down(question: Question, method: str) -> Reliability:
    """Over paths that climb and then descend: by a closed form, or by the programme, whole or truncated."""
    from relparallel.reliability.questions.valley_free import bound_updown, solve_updown

    asked = question.graph, question.problem
    form, exact = partial(by_form, question, "updown"), partial(solve_updown, *asked, question.max_states)
    if method == "closed_form":
        return form()  # which names its form
    if method == "exact":
        return explained(exact(), "")
    bounds = [
        Attempt("bounds", partial(bound_updown, *asked)),
        Attempt("any path", partial(_at_least_as_bad, question)),
    ]
    if method == "bounds":
        return explained(first_that_fits(bounds), "")
    return first_that_fits([Attempt("closed form", form), Attempt("exact", exact), *bounds])


def _at_least_as_bad(question: Question) -> Reliability:
    """Fewer paths cannot be more reliable: any path bounds up-down routing from one side."""
    return bracketed(bounded(question).lower, 1.0, "updown", "no better than over any path")


def exactly_solved(question: Question) -> Reliability:
    """Reduce the network, cut it into blocks, and run the programme on every block."""
    require_relays(question.problem)
    most = fitting(question.max_states)
    found = solved(question.problem, question.reductions, most)
    require_fit(found.width, found.peak, most)
    return exactly(*found[:2], "exact", width=found.width, states=found.states)


def bounded(question: Question) -> Reliability:
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
    from relparallel.reliability.bounding.mute_terminals import bound_by_pairs

    share = 2 * question.max_seconds / len(question.problem.terminals) ** 2

    def ask(problem: Problem) -> tuple[float, float]:
        asked = question._replace(problem=problem, max_seconds=share)
        found = first_that_fits(
            [
                Attempt("exact", partial(_exactly_within_budget, asked)),
                Attempt("bounds", partial(bounded, asked)),
            ]
        )
        return found.lower, found.upper

    lower, upper = bound_by_pairs(question.problem, ask)
    gap = (upper - lower) / upper if upper else 0.0
    return bracketed(
        lower, upper, "any", f"a bracket with a relative width of {gap:.1e} from pairs of terminals"
    )


def estimated(question: Question, method: Estimator) -> Reliability:
    """An estimate with its interval; what only crude sampling can treat is sampled crudely."""
    from relparallel.reliability.sampling.estimation import estimate_problem

    found = estimate_problem(
        question.problem, method, require_rng(rng=question.rng), question.rtol, question.confidence,
        question.samples, executor=question.executor,
    )  # fmt: skip
    return Reliability(
        reliability=1 - found.value, unreliability=found.value, lower=found.lower, upper=found.upper,
        method=found.method, routing="any", samples=found.samples,  # type: ignore[arg-type]
        reason=f"{found.method}, {found.samples} samples, relative error {found.relative_error:.1e}",
    )  # fmt: skip


def crudely_sampled(question: Question, count: Callable[[Any, Chunk], int] | None = None) -> Reliability:
    """Shares of sampled states, with an interval that never errs more often than stated."""
    from relparallel.reliability.sampling.monte_carlo import SamplingPlan, estimate

    samples = 100_000 if question.samples is None else question.samples
    plan = SamplingPlan(
        samples=samples, confidence=question.confidence, rng=question.rng, executor=question.executor
    )
    return estimate(question.problem, plan, count)


def _by_symmetry(question: Question) -> Reliability | None:
    """Exact where the network has a symmetry that is known."""
    from relparallel.reliability.lumped.symmetry import lumped

    found = lumped(as_topology(question.graph), question.problem) if question.reductions else None
    return found and explained(found, f"{found.states} lumped states")


def _exactly_within_budget(question: Question) -> Reliability:
    """The exact programme if it fits memory and time."""
    require_relays(question.problem)
    return exact_within(question.problem, question.reductions, question.max_states, question.max_seconds)


def with_importance(
    found: Reliability,
    question: Question,
    *,
    alike: bool = False,
    again: ByClass | None = None,
    alone: bool = False,
) -> Reliability:
    """The result, which can tell how important every part is if it is exact: by ``again``, perhaps alone."""

    def parts(*, perfect: bool) -> Importance:
        from relparallel.reliability.sensitivity.importance import importance

        if perfect and (alone or found.routing == "updown"):
            kinds = "over up-down paths, in directed networks or with groups"
            raise NotExactError(f"perfect must be False for importance {kinds}, got True")
        asked = question.problem, question.graph, question.reductions, question.max_states
        return importance(*asked, perfect=perfect, alike=alike, again=again)

    if found.method in ("exact", "closed_form") and found._parts is None:
        object.__setattr__(found, "_parts", parts)
    return found


def tight(question: Question, found: Reliability) -> bool:
    """Whether a bracket is narrow enough not to sample."""
    return found.upper - found.lower <= question.rtol * found.unreliability
