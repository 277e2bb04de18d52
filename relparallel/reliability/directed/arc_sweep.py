"""Sweep over the arcs of a directed network, and back for how much every part matters."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from math import inf
from typing import Any, Final, NamedTuple

from relparallel.reliability.directed.arc_states import WORKS, Plan, State, Step, outcomes, start
from relparallel.reliability.programme.frontier import NotExactError
from relparallel.reliability.programme.plain_sweep import keep_heaviest, too_many_states
from relparallel.reliability.sensitivity.whole_sweep import sweep_back, taken_so

_FALL: Final = 6  # times fewer states than in a layer are seldom in the ones after it, on average


class Swept(NamedTuple):
    """Masses of success, of failure and of what was left out; states of all layers."""

    up: Any
    down: Any
    open: Any
    visited: int


def sweep(
    plan: Plan, chances: Sequence[Any], max_states: float, visits: float = inf, kept: float = inf
) -> Swept:
    """Decide all arcs; keep the likeliest states of every layer."""
    layer: dict[State, Any] = {start(plan): 1}
    up, down, left_out, visited = 0, 0, 0.0, 0
    for later, step in zip(range(len(plan.steps))[::-1], plan.steps, strict=True):
        layer, works, fails = _after(plan, step, _of(step, chances), layer, max_states)
        up, down = up + works, down + fails
        if len(layer) > kept:
            left_out += keep_heaviest(layer, int(kept))
        visited += len(layer)
        if later * len(layer) > _FALL * (visits - visited):
            raise NotExactError(f"graph must need at most {int(visits)} states in all layers")
    return Swept(up + sum(layer.values()), down, left_out, visited)


def slopes(plan: Plan, chances: Sequence[Any], max_states: float) -> tuple[float, dict[int, float]]:
    """Mass of failure, and by how much it grows as the part in a slot goes from up to down."""
    here = [_of(step, chances) for step in plan.steps]
    moves = [partial(outcomes, plan, step, own) for step, own in zip(plan.steps, here, strict=True)]
    failure, shares = sweep_back(start(plan), WORKS, moves, here, max_states)
    found: dict[int, float] = {}
    for step, own in zip(plan.steps, shares, strict=True):
        for slot, share in zip(step.parts, own, strict=True):
            found[slot] = found.get(slot, 0.0) + share
    return failure, {slot: share for slot, share in found.items() if slot >= 0}


def _after(
    plan: Plan, step: Step, here: Sequence[Any], layer: dict[State, Any], max_states: float
) -> tuple[dict[State, Any], Any, Any]:
    """The layer after a step, and the masses of success and failure that are decided in it."""
    after, up, down = dict[State, Any](), 0, 0
    for state, mass in layer.items():
        if len(after) > max_states:
            raise too_many_states(int(max_states))
        for outcome, taken in outcomes(plan, step, here, state):
            share = mass * taken_so(here, taken)
            if outcome is None:
                down += share
            elif outcome is WORKS:
                up += share
            else:
                after[outcome] = after.get(outcome, 0) + share
    return after, up, down


def _of(step: Step, chances: Sequence[Any]) -> list[Any]:
    """Chances of the parts of a step."""
    return [(1, 0) if slot < 0 else chances[slot] for slot in step.parts]
