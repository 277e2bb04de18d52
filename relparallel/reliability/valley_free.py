"""Up-down routing: a path climbs from tier to tier and then only descends, as data-centre networks forward.

Two terminals are joined if and only if some working node can be climbed to from both. Cables inside a tier
and valleys do not count. Two programmes answer: from below for two terminals
(`relparallel.reliability.climbing`), from above for more (`relparallel.reliability.descending`); each is the
other's check.
"""

from __future__ import annotations

from typing import Any, Final

import networkx as nx
import numpy as np
from numpy.typing import NDArray

from relparallel.reliability.chances import series
from relparallel.reliability.climbing import sweep_upwards
from relparallel.reliability.descending import sweep_downwards
from relparallel.reliability.problem import Problem
from relparallel.reliability.result import Reliability, exactly
from relparallel.reliability.tiers import roots, tiers_of
from relparallel.topology import Topology, as_topology

__all__ = ["climbs", "solve_updown"]

_STATES: Final = 2**16  # largest layer of the programmes in plain Python


def climbs(graph: Topology | nx.Graph[Any], problem: Problem) -> NDArray[np.int64]:
    """Links of a tiered network, each from its lower to its upper end.

    Parameters
    ----------
    graph : Topology or networkx.Graph
        With a ``tier`` for every node.
    problem : Problem
        The same as arrays.

    Returns
    -------
    int64[m, 2]
        Lower and upper end; -1 for links inside a tier, which up-down routing does not use.

    Raises
    ------
    ValueError
        If a node has no tier.
    """
    tier = as_topology(graph).tier
    if (tier < 0).any():
        raise ValueError(
            f"graph must give every node a tier for routing='updown', got none for node {np.argmin(tier)}"
        )
    ends = tier[problem.edges]
    turned = np.where(ends[:, :1] > ends[:, 1:], problem.edges[:, ::-1], problem.edges)
    return np.asarray(np.where(ends[:, :1] == ends[:, 1:], -1, turned))


def solve_updown(graph: Topology | nx.Graph[Any], problem: Problem, max_states: int = _STATES) -> Reliability:
    """Probability that every two terminals are joined by a path that climbs and then descends.

    Parameters
    ----------
    graph : Topology or networkx.Graph
        With a ``tier`` for every node.
    problem : Problem
        The same as arrays.
    max_states : int, optional
        Largest layer of the programme.

    Returns
    -------
    Reliability
        Exact, routing "updown".

    Raises
    ------
    NotExactError
        If a layer holds more states.
    ValueError
        If a node has no tier.

    Notes
    -----
    Time: a few microseconds for each state, cable and outcome.
    """
    arcs = climbs(graph, problem)
    always, terminals = roots(problem, arcs)
    if len(terminals) == 1:
        return exactly(*always, "exact", "updown")
    tiers = tiers_of(problem, arcs, terminals)
    from_below = len(terminals) == 2 or any(tiers.below[v] for v in tiers.mute)
    found = (sweep_upwards if from_below else sweep_downwards)(tiers, min(max_states, _STATES))
    chance, width, visited = found
    return exactly(*series(always, chance), "exact", "updown", width=width, states=visited)
