"""Exact K-terminal reliability of a network whose links and nodes fail independently."""

from __future__ import annotations

from concurrent.futures import Executor
from typing import Any, Literal

import networkx as nx
import numpy as np

from relparallel._checks import require_choice, require_flag, require_int
from relparallel.reliability.chances import Chance
from relparallel.reliability.frontier import NotExactError, Programme, compile_programme, run_programme
from relparallel.reliability.monte_carlo import SamplingPlan, estimate
from relparallel.reliability.ordering import link_order, vertex_order
from relparallel.reliability.problem import LinkChance, NodeChance, Problem, Terminals, read_problem
from relparallel.reliability.reductions import Links, Network, reduce, split
from relparallel.reliability.result import Reliability, exactly
from relparallel.topology import Topology

__all__ = ["evaluate"]


def evaluate(
    graph: Topology | nx.Graph[Any],
    terminals: Terminals = "all",
    link_up: LinkChance = 1.0,
    node_up: NodeChance = 1.0,
    method: Literal["auto", "exact", "monte_carlo"] = "auto",
    routing: Literal["any"] = "any",
    *,
    link_down: LinkChance | None = None,
    node_down: NodeChance | None = None,
    reductions: bool = True,
    max_states: int = 2**24,
    samples: int = 100_000,
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
    method : {"auto", "exact", "monte_carlo"}
        "auto" is exact where the frontier fits; where it does not, it samples if ``rng`` is given.
    routing : {"any"}
        Any path counts.
    link_down, node_down : as link_up and node_up, optional
        Failure probabilities instead, for parts so good that 1 - up has lost digits.
    reductions : bool, optional
        Whether to simplify the network first; the answer is the same.
    max_states : int, optional
        Largest layer of the exact programme, at about 60 bytes a state.
    samples : int, optional
        Sampled states of the network.
    confidence : float, optional
        Probability with which the sampled interval holds the unreliability, inside (0, 1).
    rng : numpy.random.Generator, optional
        Needed to sample.
    executor : concurrent.futures.Executor, optional
        Where to sample; the answer does not depend on it.

    Returns
    -------
    Reliability
        With the unreliability as its own sum, of full relative accuracy for the given chances.

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
    require_choice(("auto", "exact", "monte_carlo"), method=method)
    require_choice(("any",), routing=routing)
    require_flag(reductions=reductions)
    require_int(max_states=max_states, at_least=1, at_most=2**28)
    plan = SamplingPlan(samples=samples, confidence=confidence, rng=rng, executor=executor)
    problem = read_problem(graph, terminals, link_up, node_up, link_down, node_down)
    if method == "monte_carlo":
        return estimate(problem, plan)
    try:
        return solve(problem, reductions, max_states)
    except NotExactError:
        if method == "exact" or rng is None:
            raise
        return estimate(problem, plan)


def solve(problem: Problem, reductions: bool, max_states: int) -> Reliability:
    """Reduce the network, cut it into blocks, and run the programme on every block."""
    _require_relays(problem)
    network = _network(problem)
    if not network.restrict():
        return exactly(0.0, 1.0, "exact")
    if reductions:
        reduce(network)
    width = states = 0
    for part in split(network) if reductions else [network.part(set(network.links))]:
        if reductions:
            reduce(part)
        if len(part.terminals) > 1:
            programme = _programme(part)
            sweep = run_programme(programme, max_states)
            part.require((sweep.success, sweep.failure))
            width, states = max(width, programme.width), states + sweep.visited
        network.require((part.alive, part.failed))
    return exactly(network.alive, network.failed, "exact", width=width, states=states)


def _require_relays(problem: Problem) -> None:
    """Refuse what plain connectivity does not answer: see Notes of `evaluate`."""
    links = np.bincount(problem.edges.ravel(), minlength=len(problem.node))
    mute = [v for v in problem.terminals if not problem.transit[v] and links[v] > 1]
    if mute and len(problem.terminals) > 2:
        raise NotExactError(
            "terminals must forward or have one link for the exact programme when there are three or more, "
            f"got node {mute[0]} with {links[mute[0]]} links; use method='monte_carlo' with an rng"
        )


def _network(problem: Problem) -> Network:
    """The network with its terminals' own failures split off."""
    links: Links = {v: {} for v in range(len(problem.node))}
    for (u, v), (up, down) in zip(problem.edges.tolist(), problem.link.tolist(), strict=True):
        links[u][v] = links[v][u] = (up, down)
    nodes: dict[int, Chance] = {v: (up, down) for v, (up, down) in enumerate(problem.node.tolist())}
    network = Network(links=links, nodes=nodes, alive=1.0, failed=0.0)
    for terminal in problem.terminals.tolist():
        network.make_terminal(terminal)
    return network


def _programme(part: Network) -> Programme:
    """The sweep through a connected network, in a good order."""
    place = {v: i for i, v in enumerate(part.links)}
    pairs = [(u, v) for u, near in part.links.items() for v in near if place[u] < place[v]]
    edges = np.array([(place[u], place[v]) for u, v in pairs], dtype=np.int64)
    sequence = link_order(vertex_order(len(place), edges), edges)
    return compile_programme(
        edges=edges[sequence],
        link=np.array([part.links[u][v] for u, v in pairs], dtype=np.float64)[sequence],
        node=np.array([part.nodes[v] for v in place], dtype=np.float64),
        terminal=np.array([v in part.terminals for v in place]),
    )
