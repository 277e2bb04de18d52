"""Simplify a directed network, plan the programme, run it; and the same for how much every part matters."""

from __future__ import annotations

from math import inf
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from relparallel.reliability.chances import Chance, series
from relparallel.reliability.directed.arc_states import planned
from relparallel.reliability.directed.arc_sweep import slopes, sweep
from relparallel.reliability.directed.arcs import Arcs
from relparallel.reliability.directed.take_apart import simplified
from relparallel.reliability.programme.tape import play_any
from relparallel.reliability.questions.mixture import Known, summed_up
from relparallel.reliability.result import Reliability, exactly
from relparallel.reliability.sensitivity.adjoint import require_all, rewind

_STATES: Final = 2**18  # largest layer of the programme in plain Python


def solve_arcs(
    problem: Arcs, max_states: float = _STATES, visits: float = inf, share: bool = False
) -> Reliability:
    """Probability that all terminals are up and connected.

    Notes
    -----
    At most 2^(w^2) states in a layer, w the number of live nodes.
    """
    always = series(*map(tuple, problem.node[problem.terminals].tolist()))
    if len(problem.terminals) == 1:
        return exactly(*always, "exact")
    left = simplified(problem)
    if not left.connected:
        return exactly(*series(always, (0, 1)), "exact")
    plan = planned(problem, left.slot)
    chances = play_any(left.tape, _given(problem), left.slots)
    most = min(max_states, _STATES, visits)
    kept = max(visits // len(plan.steps), 1) if share else inf
    found = sweep(plan, chances, inf if share else most, inf if share else visits, kept)
    if found.open:
        known = Known(found.up, found.down, found.open, found.down + found.open / 2)
        return summed_up(always, known, "any", plan.width)
    works, fails = series(always, (found.up, found.down))
    reason = f"{found.visited} states, width {plan.width}"
    return exactly(works, fails, "exact", width=plan.width, states=found.visited, reason=reason)


def slopes_of_arcs(problem: Arcs, max_states: float = _STATES) -> tuple[float, NDArray[np.float64]]:
    """Unreliability, and by how much it grows when an arc or a node is down.

    Notes
    -----
    Two to three times as long as `solve_arcs`, for all parts together.
    """
    m, n = len(problem.edges), len(problem.node)
    left, failure, found = simplified(problem), 1.0, dict[int, Any]()
    chances = np.empty((left.slots + 1, 2))
    chances[:-1] = play_any(left.tape, _given(problem), left.slots)
    if len(problem.terminals) == 1:
        failure = 0.0
    elif left.connected:
        plan = planned(problem, left.slot)
        failure, found = slopes(plan, chances.tolist(), min(max_states, _STATES))
    chances[-1] = 1.0 - failure, failure
    slope = np.zeros(left.slots + 1)
    failed = require_all(np.append(m + problem.terminals, left.slots), chances, slope)
    for slot, value in found.items():
        slope[slot] += slope[-1] * value
    rewind(left.tape, chances, slope)
    fallible = np.concatenate([problem.link[:, 1], problem.node[:, 1]]) > 0
    return failed, np.where(fallible, slope[: m + n], 0.0)


def _given(problem: Arcs) -> list[Chance]:
    """Chances of arcs and nodes, in the order of their slots."""
    return [*map(tuple, problem.link.tolist()), *map(tuple, problem.node.tolist())]
