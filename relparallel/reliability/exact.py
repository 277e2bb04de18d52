"""Exact K-terminal reliability of a network whose links and nodes fail independently."""

from __future__ import annotations

from concurrent.futures import Executor
from dataclasses import replace
from operator import is_not
from typing import TYPE_CHECKING, Any, Final, Literal, get_args

import numpy as np

from relparallel._checks import (
    require_choice,
    require_flag,
    require_instance,
    require_int,
    require_real,
)
from relparallel.reliability.methods import Question, answer
from relparallel.reliability.problem import (
    LinkChance,
    NodeChance,
    Problem,
    Terminals,
    of_one_kind,
    read_problem,
)
from relparallel.reliability.result import Estimator, Reliability, Routing

if TYPE_CHECKING:
    import networkx as nx

    from relparallel.reliability.extensions.srlg import Groups
    from relparallel.topology import Topology

_EXACT: Final = ("auto", "exact")
_METHODS: Final = ("exact", "closed_form", "bounds", "monte_carlo", *get_args(Estimator))


def evaluate(
    graph: Topology | nx.Graph[Any],
    terminals: Terminals = "all",
    link_up: LinkChance | None = None,
    node_up: NodeChance | None = None,
    method: Literal["exact", "closed_form", "bounds", "monte_carlo"] | Estimator = "auto",
    routing: Routing = "any",
    *,
    groups: Groups | None = None,
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
        The network. Every node of a networkx graph is a host and forwards, every link is one cable,
        unless attributes ``endpoint``, ``transit`` (nodes), ``multiplicity`` (links) and so on say
        otherwise.
    terminals : {"all", "switches", "nodes"} or collection of labels
        Nodes that must be connected: all hosts, all switches, all nodes, or the nodes named.
    link_up : float, array [m], mapping or str
        Probability that a cable is up: one for all, one per link (rows of ``Topology.edges``, or
        the order of ``graph.edges``), by pair of labels (links not named never fail), or the name
        of an edge attribute. Of k parallel cables one has to be up. Links never fail where only
        nodes or groups are given.
    node_up : float, array [n], mapping or str
        Probability that a node is up, likewise. A terminal that is down is a failure of the system.
    method : {"auto", "exact", "closed_form", "bounds", "monte_carlo"} or an estimator of `estimate`
        "auto": a closed form or a symmetry where there is one, else the frontier DP where it fits
        ``max_states`` and ``max_seconds``, else bounds, and where they differ by more than ``rtol``
        and ``rng`` is given an estimate. "monte_carlo" is "crude" with an interval that never errs
        more often than stated.
    routing : {"any", "updown"}
        Any path counts; or only one that goes up from tier to tier and then down, between every two
        terminals ("auto", "exact", "closed_form" and "bounds"; the topology must say every
        ``tier``).
    groups : float, mapping of name to float, or sequence of (members, float), optional
        Groups of shared risk and the probability that each is *down*: all groups of
        ``Topology.shared_risk``, those named, or groups of labels of nodes and pairs of labels. Not
        with closed forms.
    link_down, node_down : as link_up and node_up, optional
        Failure probabilities instead, for parts so good that 1 - up has lost digits.
    reductions : bool, optional
        Whether to simplify the network first, and to look for symmetry; the answer is the same.
    max_states : int, optional
        Largest layer of the frontier DP, at up to 100 bytes a state.
    max_seconds : float, optional
        With "auto", the time that the frontier DP may be predicted to take, s.
    rtol : float, optional
        Relative width of the bracket, or half-width of the interval, to aim for.
    samples : int, optional
        Sampled states; by default 100 000 with "monte_carlo", and what ``rtol`` needs with an
        estimator.
    confidence : float, optional
        Probability with which the sampled interval holds the unreliability, inside (0, 1).
    rng : numpy.random.Generator, optional
        Needed to sample.
    executor : concurrent.futures.Executor, optional
        Where to sample; the answer does not depend on it.

    Returns
    -------
    Reliability
        With the unreliability as its own sum, of full relative accuracy; exact fractions where
        chances are `fractions.Fraction`.

    Notes
    -----
    A node without ``transit`` starts and ends paths but forwards nothing; three or more terminals
    of which one does so over several links are bracketed pair by pair. Series, parallel and degree
    rules and the split at cut nodes come first; then the frontier DP visits the links in an order
    found by beam search. Time: 20 to 70 ns for each of at most Bell(w + 1) states per link, w <= 15
    the live vertices.

    References
    ----------
    Hardy, Lucet and Limnios, IEEE Transactions on Reliability 56, 2007.

    Examples
    --------
    >>> import networkx as nx
    >>> result = evaluate(nx.complete_graph(5), terminals=(0, 1), link_up=0.9)
    >>> print(f"{result.unreliability:.6e}")
    2.051974e-04
    """
    asked = any(given is not None for given in (link_up, node_up, link_down, node_down, groups))
    link_up, node_up = 1.0 if link_up is None else link_up, 1.0 if node_up is None else node_up
    limits = reductions, max_states, max_seconds, rtol, samples, confidence, rng, executor
    if any(map(is_not, (method, routing, *limits), _DEFAULTS)):
        _require_settings(method, routing, *limits)
    problem = read_problem(graph, terminals, link_up, node_up, link_down, node_down)
    if groups is not None:
        from relparallel.reliability.extensions.srlg import read_groups

        problem = of_one_kind(replace(problem, groups=read_groups(graph, problem, groups)))
    _require_method(problem, method, routing)
    if not asked:
        raise TypeError(
            "link_up, node_up or groups must say how likely parts are to be up, got none of them"
        )
    return answer(Question(graph, problem, routing, *limits), method)


_DEFAULTS: Final = (
    "auto",
    "any",
    *map((evaluate.__kwdefaults__ or {}).__getitem__, Question._fields[3:]),
)


def _require_settings(method: Any, routing: Any, *limits: Any) -> None:
    """Check which kind of answer is asked for and how much it may cost."""
    reductions, max_states, max_seconds, rtol, samples, confidence, rng, executor = limits
    require_choice(_METHODS, method=method)
    require_choice(("any", "updown"), routing=routing)
    require_flag(reductions=reductions)
    require_int(max_states=max_states, at_least=1, at_most=2**28)
    require_real(max_seconds=max_seconds, above=0)
    require_real(rtol=rtol, above=0, below=1)
    if samples is not None:
        require_int(samples=samples, at_least=1, at_most=10**12)
    require_real(confidence=confidence, above=0, below=1)
    require_instance((np.random.Generator, type(None)), rng=rng)
    require_instance((Executor, type(None)), executor=executor)


def _require_method(problem: Problem, method: str, routing: str) -> None:
    """Refuse methods that know no fractions, groups, or up-down paths."""
    updown = routing == "updown"
    if problem.in_fractions:
        if updown:
            raise ValueError("routing='updown' must not be combined with fractions, got both")
        _require_one_of(_EXACT, method, "fractions")
    if updown and problem.groups:
        _require_one_of(_EXACT, method, "routing='updown' and groups")
    elif updown:
        _require_one_of((*_EXACT, "closed_form", "bounds"), method, "routing='updown'")
    elif problem.groups and method == "closed_form":
        raise ValueError("method 'closed_form' must not be combined with groups, got both")


def _require_one_of(allowed: tuple[str, ...], method: str, kind: str) -> None:
    """Say which methods answer this kind of question."""
    if method not in allowed:
        raise ValueError(
            f"method must be {' or '.join(map(repr, allowed))} with {kind}, got {method!r}"
        )
