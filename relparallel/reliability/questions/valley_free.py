"""Up-down routing: a path climbs from tier to tier and then only descends, as data-centre networks forward.

Two terminals are joined if and only if some working node can be climbed to from both. Cables inside a tier
and valleys do not count. Two programmes answer: from below for two terminals
(`climbing`), from above for more (`descending`); each is the
other's check.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from relparallel.reliability.chances import CERTAIN, Chance, series
from relparallel.reliability.problem import Problem
from relparallel.reliability.programme.frontier import NotExactError
from relparallel.reliability.questions.climbing import sweep_upwards
from relparallel.reliability.questions.descending import sweep_downwards
from relparallel.reliability.questions.tiers import Swept, roots, tiers_of
from relparallel.reliability.result import Reliability, bracketed, exactly
from relparallel.topology import Topology, as_topology

if TYPE_CHECKING:
    import networkx as nx

_STATES: Final = 2**16  # largest layer of the programmes in plain Python
_OUTCOMES: Final = 2**18  # of nodes and their cables, in all states that a bracket visits
_FEWEST: Final = 8  # states of a layer that a bracket keeps


def climbs(graph: Topology | nx.Graph[Any], problem: Problem) -> NDArray[np.int64]:
    """Links of a tiered network, each from its lower to its upper end."""
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

    Notes
    -----
    Time: a few microseconds for each state, cable and outcome.
    """
    always, found = _swept(graph, problem, min(max_states, _STATES), truncate=False)
    return exactly(
        *series(always, found.chance), "exact", "updown",
        width=found.width, states=found.visited, reason=f"{found.visited} states",
    )  # fmt: skip


def bound_updown(graph: Topology | nx.Graph[Any], problem: Problem) -> Reliability:
    """Certified bracket of the same probability: the sweep keeps the heaviest states of every layer."""
    always, found = _swept(graph, problem, _STATES, truncate=True)
    lower = min(series(always, found.chance)[1], 1.0)  # rounding may have lifted it
    upper = min(lower + always[0] * found.dropped, 1.0)
    reason = f"all but a mass of {found.dropped:.1e} in {found.visited} states"
    return bracketed(lower, upper, "updown", reason, width=found.width, states=found.visited)


def _swept(
    graph: Topology | nx.Graph[Any], problem: Problem, max_states: int, truncate: bool
) -> tuple[Chance, Swept]:
    """Chance of what must work in any case, and the sweep through the rest."""
    arcs = climbs(graph, problem)
    always, terminals = roots(problem, arcs)
    if len(terminals) == 1:
        return always, Swept(CERTAIN, 0.0, 0, 0)
    tiers = tiers_of(problem, arcs, terminals)
    from_below = len(terminals) == 2 or any(tiers.below[v] for v in tiers.mute)
    if truncate:
        cables = (tiers.below if from_below else tiers.above).values()
        outcomes = sum(2.0 ** len(ends) for ends in cables)
        max_states = min(max_states, int(_OUTCOMES / outcomes))
        if max_states < _FEWEST:
            raise NotExactError(f"cables of single nodes must have fewer outcomes, got {outcomes:.0f}")
    return always, (sweep_upwards if from_below else sweep_downwards)(tiers, max_states, truncate)
