"""Ways to answer one question about independent parts, and the choice among them."""

from __future__ import annotations

from concurrent.futures import Executor
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import networkx as nx
import numpy as np

from relparallel._checks import require_rng
from relparallel.reliability.auto import Attempt, exact_within, first_that_fits
from relparallel.reliability.bounding.certified import bound_problem
from relparallel.reliability.closed_forms.form_recognition import closed_form
from relparallel.reliability.lumped.symmetry import lumped, twins
from relparallel.reliability.problem import Problem, require_relays
from relparallel.reliability.programme.compiled import compiled
from relparallel.reliability.programme.frontier import NotExactError
from relparallel.reliability.questions.valley_free import bound_updown, solve_updown
from relparallel.reliability.result import Reliability, Routing, bracketed, exactly
from relparallel.reliability.sampling.estimation import estimate_problem
from relparallel.reliability.sampling.moments import Estimator
from relparallel.reliability.sampling.monte_carlo import SamplingPlan, estimate
from relparallel.reliability.sensitivity.importance import Importance, importance
from relparallel.topology import Topology, as_topology

__all__ = ["Question", "answer", "up_and_down"]

_BOUND_STATES, _BOUND_STEPS = 2**13, 2**29
_MANY_TWINS = 10  # below, the programme is faster


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Question:
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
        return _with_importance(automatically(question), question)
    if method == "closed_form":
        return _with_importance(by_form(question), question)
    if method == "exact":
        return _with_importance(exactly_solved(question), question)
    if method == "bounds":
        return replace(bounded(question), reason="")
    if method == "monte_carlo":
        return crudely_sampled(question)
    return replace(estimated(question, method), reason="")  # type: ignore[arg-type]


def automatically(question: Question) -> Reliability:
    """The first of closed form, symmetry, exact programme, bounds and estimate that is good enough."""
    exact = Attempt(name="exact", run=partial(_exactly_within_budget, question))
    symmetric = Attempt(name="symmetry", run=partial(_by_symmetry, question))
    # A Topology may have a symmetry that is worth more than the programme; a plain graph seldom has.
    form = Attempt(name="closed form", run=partial(by_form, question))
    twin = Attempt(name="twins", run=partial(_by_twins, question))
    first = [form, symmetric, exact] if isinstance(question.graph, Topology) else [twin, exact, symmetric]
    attempts = [
        *first,
        Attempt(name="bounds", run=partial(bounded, question), enough=partial(_tight, question)),
    ]
    if question.rng is not None:
        attempts.append(Attempt(name="estimate", run=partial(estimated, question, "auto")))
    return first_that_fits(attempts)


def by_form(question: Question, routing: Routing = "any") -> Reliability:
    """The closed form that applies."""
    return closed_form(as_topology(question.graph), question.problem, routing)


def up_and_down(question: Question, method: str) -> Reliability:
    """Over paths that climb and then descend: by a closed form, or by the programme, whole or truncated."""
    asked = question.graph, question.problem
    ways = [
        Attempt(name="closed form", run=partial(by_form, question, "updown")),
        Attempt(name="exact", run=partial(solve_updown, *asked, question.max_states)),
        Attempt(name="bounds", run=partial(bound_updown, *asked)),
        Attempt(name="any path", run=partial(_at_least_as_bad, question)),
    ]
    if method == "auto":
        return first_that_fits(ways)
    if method == "bounds":
        return replace(first_that_fits(ways[2:]), reason="")
    return replace(ways[1].run(), reason="") if method == "exact" else ways[0].run()  # which names its form


def _at_least_as_bad(question: Question) -> Reliability:
    """Fewer paths cannot be more reliable: any path bounds up-down routing from one side."""
    return bracketed(bounded(question).lower, 1.0, "updown", "no better than over any path")


def exactly_solved(question: Question) -> Reliability:
    """Reduce the network, cut it into blocks, and run the programme on every block."""
    problem = question.problem
    require_relays(problem)
    structure = compiled(problem, question.reductions)
    outcome = structure.evaluate(problem.link, problem.node, question.max_states)
    return exactly(*outcome[:2], "exact", width=structure.width, states=outcome.states)


def bounded(question: Question) -> Reliability:
    """The middle of a certified bracket."""
    require_relays(question.problem)
    found = bound_problem(question.problem, "auto", question.rtol, _BOUND_STATES, _BOUND_STEPS)
    reason = f"a bracket with a relative width of {found.gap:.1e} from {', '.join(found.tried)}"
    return bracketed(found.lower, found.upper, "any", reason)


def estimated(question: Question, method: Estimator) -> Reliability:
    """An estimate with its interval; what only crude sampling can treat is sampled crudely."""
    found = estimate_problem(
        question.problem, method, require_rng(rng=question.rng), question.rtol, question.confidence,
        question.samples, executor=question.executor,
    )  # fmt: skip
    return Reliability(
        reliability=1 - found.value, unreliability=found.value, lower=found.lower, upper=found.upper,
        method=found.method, routing="any", samples=found.samples,  # type: ignore[arg-type]
        reason=f"{found.method}, {found.samples} samples, relative error {found.relative_error:.1e}",
    )  # fmt: skip


def crudely_sampled(question: Question) -> Reliability:
    """Shares of sampled states, with an interval that never errs more often than stated."""
    samples = 100_000 if question.samples is None else question.samples
    plan = SamplingPlan(
        samples=samples, confidence=question.confidence, rng=question.rng, executor=question.executor
    )
    return estimate(question.problem, plan)


def _by_twins(question: Question) -> Reliability:
    """Exact where the nodes have no other relation than being alike."""
    large = question.reductions and len(question.problem.node) >= _MANY_TWINS
    found = twins(question.problem) if large else None
    if found is None:
        raise NotExactError("none")
    return replace(found, reason=f"{found.states} lumped states")


def _by_symmetry(question: Question) -> Reliability:
    """Exact where the network has a symmetry that is known."""
    found = lumped(as_topology(question.graph), question.problem) if question.reductions else None
    if found is None:
        raise NotExactError("none that is known")
    return replace(found, reason=f"{found.states} lumped states")


def _exactly_within_budget(question: Question) -> Reliability:
    """The exact programme if it fits memory and time."""
    require_relays(question.problem)
    return exact_within(question.problem, question.reductions, question.max_states, question.max_seconds)


def _with_importance(found: Reliability, question: Question) -> Reliability:
    """The result, which can tell how important every part is if it is exact."""

    def parts(**options: bool) -> Importance:
        structure = compiled(question.problem, question.reductions)
        return importance(structure, question.problem, question.graph, question.max_states, **options)

    if found.method in ("exact", "closed_form"):
        object.__setattr__(found, "_parts", parts)
    return found


def _tight(question: Question, found: Reliability) -> bool:
    """Whether a bracket is narrow enough not to sample."""
    return found.upper - found.lower <= question.rtol * found.unreliability
