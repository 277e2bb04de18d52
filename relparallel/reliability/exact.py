"""Exact K-terminal reliability of a network whose links and nodes fail independently."""

from __future__ import annotations

from concurrent.futures import Executor
from dataclasses import replace
from functools import partial
from typing import Any, Literal, get_args

import networkx as nx
import numpy as np

from relparallel._checks import require_choice, require_flag, require_int, require_real, require_rng
from relparallel.reliability.auto import Attempt, exact_within, first_that_fits
from relparallel.reliability.certified import bound_problem
from relparallel.reliability.compiled import compiled
from relparallel.reliability.directed import Directed, solve_directed
from relparallel.reliability.estimation import estimate_problem
from relparallel.reliability.fractions import has_fractions, in_fractions
from relparallel.reliability.groups import Groups, read_groups, solve_groups
from relparallel.reliability.importance import Importance, importance
from relparallel.reliability.moments import Estimator
from relparallel.reliability.monte_carlo import SamplingPlan, estimate
from relparallel.reliability.problem import (
    LinkChance,
    NodeChance,
    Problem,
    Terminals,
    read_problem,
    require_relays,
)
from relparallel.reliability.result import Reliability, Routing, exactly
from relparallel.reliability.symmetry import lumped
from relparallel.reliability.valley_free import solve_updown
from relparallel.topology import Topology

__all__ = ["evaluate"]


def evaluate(
    graph: Topology | nx.Graph[Any],
    terminals: Terminals = "all",
    link_up: LinkChance = 1.0,
    node_up: NodeChance = 1.0,
    method: Literal["exact", "bounds", "monte_carlo"] | Estimator = "auto",
    routing: Routing = "any",
    *,
    groups: Groups | None = None,
    directed: bool | Literal["mutual"] = False,
    link_down: LinkChance | None = None,
    node_down: NodeChance | None = None,
    reductions: bool = True,
    max_states: int = 2**24,
    max_seconds: float = 10.0,
    rtol: float = 1e-2,
    samples: int | None = None,
    confidence: float = 0.95,
    rng: np.random.Generator | None = None,
    executor: Executor | None = None,
) -> Reliability:
    """Probability that all terminals are up and can communicate.

    Parameters
    ----------
    graph : Topology or networkx.Graph or networkx.MultiGraph
        The network. Every node of a networkx graph is a host and forwards.
    terminals : {"all", "switches", "nodes"} or collection of labels
        Nodes that must be connected: all hosts, all switches, all nodes, or the nodes named.
    link_up : float, array [m], mapping or str
        Probability that a cable is up: one for all, one per link (rows of ``Topology.edges``, or the order of
        ``graph.edges``), by pair of labels (links not named never fail), or the name of an edge attribute.
        Of k parallel cables one has to be up.
    node_up : float, array [n], mapping or str
        Probability that a node is up, likewise. A terminal that is down is a failure of the system.
    method : {"auto", "exact", "bounds", "monte_carlo"} or an estimator of `relparallel.reliability.estimate`
        "auto" is exact where the frontier programme fits ``max_states`` and ``max_seconds``; where it does
        not, it bounds; where the bounds differ by more than ``rtol`` and ``rng`` is given, it estimates. The
        result says which, and why. "monte_carlo" is "crude" with an interval that never errs more often than
        stated. With "auto", a `Topology` of interchangeable parts is lumped by symmetry: fat-trees,
        leaf-spine and three-tier networks (see `fat_tree_connected`), complete graphs, two-level BCubes.
    routing : {"any", "updown"}
        Any path counts; or only one that climbs from tier to tier and then descends, between every two
        terminals. The topology must say the ``tier`` of every node.
    groups : float, mapping of name to float, or sequence of (members, float), optional
        Groups of shared risk and the probability that each is *down*: all groups of ``Topology.shared_risk``,
        those named, or groups of labels of nodes and pairs of labels. Members of a group that is down are.
    directed : bool or "mutual"
        Read a directed networkx graph: the first terminal must reach the others (True), or every terminal
        every other ("mutual").
    link_down, node_down : as link_up and node_up, optional
        Failure probabilities instead, for parts so good that 1 - up has lost digits.
    reductions : bool, optional
        Whether to simplify the network first, and to look for symmetry; the answer is the same.
    max_states : int, optional
        Largest layer of the exact programme, at up to 100 bytes a state.
    max_seconds : float, optional
        With "auto", the time that the exact programme may be predicted to take, s.
    rtol : float, optional
        Relative width of the bracket, or half-width of the interval, to aim for.
    samples : int, optional
        Sampled states of the network; by default 100 000 with "monte_carlo", and as many as ``rtol`` needs
        with an estimator.
    confidence : float, optional
        Probability with which the sampled interval holds the unreliability, inside (0, 1).
    rng : numpy.random.Generator, optional
        Needed to sample.
    executor : concurrent.futures.Executor, optional
        Where to sample; the answer does not depend on it.

    Returns
    -------
    Reliability
        With the unreliability as its own sum, of full relative accuracy for the given chances. Chances that
        are `fractions.Fraction` give exact fractions.

    Raises
    ------
    TypeError, ValueError
        If an argument is not as stated, if the frontier is too wide, or if three or more terminals include
        one that does not forward and has several links, which the exact programme does not treat.

    Notes
    -----
    A node without ``transit`` starts and ends paths but forwards nothing. Series, parallel and degree rules
    and the split at cut nodes come first; then a dynamic programme visits the links in an order found by
    beam search. Time: 15 to 150 ns for each of at most Bell(w + 1) states per link, w the number of live
    vertices (at most 15); for planar graphs Catalan numbers take the place of Bell's.

    References
    ----------
    Hardy, Lucet and Limnios, IEEE Transactions on Reliability 56, 2007.

    Examples
    --------
    >>> result = evaluate(nx.complete_graph(5), terminals=(0, 1), link_up=0.9)
    >>> print(f"{result.unreliability:.6e}")
    2.051974e-04
    """
    require_choice(("exact", "bounds", "monte_carlo", *get_args(Estimator)), method=method)
    require_choice(("any", "updown"), routing=routing)
    require_choice((False, True, "mutual"), directed=directed)
    require_flag(reductions=reductions)
    require_int(max_states=max_states, at_least=1, at_most=2**28)
    require_real(max_seconds=max_seconds, above=0)
    require_real(rtol=rtol, above=0, below=1)
    plan = SamplingPlan(
        samples=100_000 if samples is None else samples, confidence=confidence, rng=rng, executor=executor
    )
    fractions = has_fractions(link_up, node_up, link_down, node_down)
    _require_one_kind(
        method, fractions=fractions, groups=groups is not None, directed=directed, updown=routing == "updown"
    )
    chances = {"link_up": link_up, "node_up": node_up, "link_down": link_down, "node_down": node_down}
    if directed:
        kind: Directed = "mutual" if directed == "mutual" else "reach"
        return solve_directed(graph, terminals, **chances, connection=kind, max_states=max_states)  # type: ignore[arg-type]
    if fractions:
        return in_fractions(graph, terminals, **chances, reductions=reductions, max_states=max_states)
    problem = read_problem(graph, terminals, link_up, node_up, link_down, node_down)
    if routing == "updown":
        return solve_updown(graph, problem, max_states)
    if groups is not None:
        require_relays(problem)
        return solve_groups(problem, read_groups(graph, problem, groups), reductions, max_states)
    if method == "exact":
        return with_parts(solve(problem, reductions, max_states), problem, graph, reductions, max_states)
    if method == "bounds":
        return replace(_bounded(problem, rtol), reason="")
    if method == "monte_carlo":
        return estimate(problem, plan)
    sampled = partial(_estimated, problem, rng=rng, rtol=rtol, samples=samples, plan=plan)
    if method != "auto":
        return replace(sampled(method), reason="")
    if reductions and isinstance(graph, Topology):
        known = lumped(graph, problem)
        if known is not None:
            return known
    tight = partial(_tight, rtol)
    attempts = [
        Attempt(name="exact", run=partial(_exact, problem, reductions, max_states, max_seconds)),
        Attempt(name="bounds", run=partial(_bounded, problem, rtol), enough=tight),
        *([Attempt(name="estimate", run=partial(sampled, "auto"))] if rng is not None else []),
    ]
    return with_parts(first_that_fits(attempts), problem, graph, reductions, max_states)


def with_parts(
    result: Reliability, problem: Problem, graph: Topology | nx.Graph[Any], reductions: bool, max_states: int
) -> Reliability:
    """The result, which can tell how important every part is if the exact programme gave it."""

    def parts(**options: bool) -> Importance:
        return importance(compiled(problem, reductions), problem, graph, max_states, **options)

    if result.method == "exact":
        object.__setattr__(result, "_parts", parts)
    return result


def _exact(problem: Problem, reductions: bool, max_states: int, max_seconds: float) -> Reliability:
    """The exact programme within a budget."""
    require_relays(problem)
    return exact_within(problem, reductions, max_states, max_seconds)


def _bounded(problem: Problem, rtol: float) -> Reliability:
    """The middle of a certified bracket."""
    require_relays(problem)
    found = bound_problem(problem, "auto", rtol, 2**13, 2**29)
    middle = (found.lower + found.upper) / 2
    return Reliability(
        reliability=1 - middle, unreliability=middle, lower=found.lower, upper=found.upper,
        method="bounds", routing="any",
        reason=f"a bracket with a relative width of {found.gap:.1e} from {', '.join(found.tried)}",
    )  # fmt: skip


def _tight(rtol: float, found: Reliability) -> bool:
    """Whether a bracket is narrow enough not to sample."""
    return found.upper - found.lower <= rtol * found.unreliability


def _estimated(
    problem: Problem, method: Estimator, *, rng: Any, rtol: float, samples: int | None, plan: SamplingPlan
) -> Reliability:
    """An estimate with its interval; what only crude sampling can treat is sampled crudely."""
    found = estimate_problem(
        problem, method, require_rng(rng=rng), rtol, plan.confidence, samples, executor=plan.executor
    )
    return Reliability(
        reliability=1 - found.value, unreliability=found.value, lower=found.lower, upper=found.upper,
        method=found.method, routing="any", samples=found.samples,
        reason=f"{found.method}, {found.samples} samples, relative error {found.relative_error:.1e}",
    )  # fmt: skip


def _require_one_kind(method: str, **kinds: object) -> None:
    """Refuse questions that go beyond the plain one in two ways, or that only a programme answers."""
    asked = [name for name, value in kinds.items() if value]
    if len(asked) > 1:
        raise ValueError(f"{asked[0]} must not be combined with {asked[1]}, got both")
    if asked and method not in ("auto", "exact"):
        raise ValueError(f"method must be 'auto' or 'exact' with {asked[0]}, got {method!r}")


def solve(problem: Problem, reductions: bool, max_states: int) -> Reliability:
    """Reduce the network, cut it into blocks, and run the programme on every block."""
    require_relays(problem)
    structure = compiled(problem, reductions)
    outcome = structure.evaluate(problem.link, problem.node, max_states)
    return exactly(*outcome[:2], "exact", width=structure.width, states=outcome.states)
