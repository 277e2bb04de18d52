"""Sweep over the arcs of a directed network, and back for how much every part matters."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from fractions import Fraction
from math import inf
from typing import Any, Final, NamedTuple

from relparallel.reliability.directed.arc_states import WORKS, Plan, State, Step, outcomes, start
from relparallel.reliability.programme.frontier import NotExactError
from relparallel.reliability.programme.plain_sweep import keep_heaviest, too_many_states

__all__ = ["Swept", "slopes", "sweep"]

_DIGITS: Final = 400  # binary ones of what states come to, from the first one of the unreliability
_ROUNDING: Final = 64  # of them that may be rounding
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
    """Decide all arcs; keep the likeliest states of every layer.

    Parameters
    ----------
    plan : Plan
        See `planned`.
    chances : sequence of (up, down)
        By slot, of any kind of number.
    max_states : float
        Most states in a layer, about.
    visits : float, optional
        Most states in all layers, as far as can be told from those that are known.
    kept : float, optional
        States of a layer to go on with; the mass of the others is left out.

    Returns
    -------
    Swept

    Raises
    ------
    NotExactError
        If there are more states.
    """
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
    """Mass of failure, and by how much it grows as the part in a slot goes from up to down.

    Parameters
    ----------
    plan, max_states
        As for `sweep`.
    chances : sequence of (float, float)
        By slot.

    Returns
    -------
    (failure, dict of int to float)
        The slots are those of the plan's parts that can fail.

    Notes
    -----
    Layers are kept, and what each state will come to is found from the last one back. Of a part that a state
    decides, what it comes to if the part is down less what if it is up is the state's share of the slope:
    whole numbers hold that, with digits enough below the unreliability for a relative error of about 1e-15
    of slopes above 1e-80 U; slopes below 1e-100 U are 0.
    """
    layers, failure = [{start(plan): 1.0}], 0.0
    for step in plan.steps:
        after, _, fails_here = _after(plan, step, _of(step, chances), layers[-1], max_states)
        layers.append(after)
        failure += fails_here
    bits = _DIGITS + max(-math.frexp(failure)[1], 0)
    fails: dict[State | None, int] = dict.fromkeys(layers.pop(), 0)
    found: dict[int, float] = {}
    for step, layer in zip(plan.steps[::-1], layers[::-1], strict=True):
        here, now = _of(step, chances), dict[State | None, int]()
        whole = [_in_whole_numbers(chance, bits) for chance in here]
        fails |= {None: 1 << bits, WORKS: 0}
        for state, mass in layer.items():
            total, by_part = 0, dict[int, int]()
            for outcome, taken in outcomes(plan, step, here, state):
                if not (rest := fails[outcome]):
                    continue
                total += _product(whole, taken) * rest >> bits * len(taken)
                for i, way in taken:
                    share = _product(whole, [part for part in taken if part[0] != i]) * rest
                    share >>= bits * (len(taken) - 1)
                    by_part[i] = by_part.get(i, 0) + (share if way else -share)
            now[state] = total
            for i, share in by_part.items():
                found[step.parts[i]] = found.get(step.parts[i], 0.0) + mass * (share / 2**bits)
        fails = now
    least = 2.0 ** (_ROUNDING - bits)  # what matters less does not: whole numbers leave nothing but rounding
    return fails[start(plan)] / 2**bits, {slot: x if x > least else 0.0 for slot, x in found.items()}


def _in_whole_numbers(chance: tuple[Any, Any], bits: int) -> tuple[int, int]:
    """Up and down in units of 2^-bits, together 1: the smaller one counts."""
    up, down = (int(Fraction(x) * 2**bits) for x in chance)
    return ((1 << bits) - down, down) if down < up else (up, (1 << bits) - up)


def _after(
    plan: Plan, step: Step, here: Sequence[Any], layer: dict[State, Any], max_states: float
) -> tuple[dict[State, Any], Any, Any]:
    """The layer after a step, and the masses of success and failure that are decided in it."""
    after, up, down = dict[State, Any](), 0, 0
    for state, mass in layer.items():
        if len(after) > max_states:
            raise too_many_states(int(max_states))
        for outcome, taken in outcomes(plan, step, here, state):
            share = mass * _product(here, taken)
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


def _product(here: Sequence[Any], taken: Iterable[tuple[int, int]]) -> Any:
    """Chance that all these parts are as they are taken to be."""
    share = 1
    for i, way in taken:
        share = share * here[i][way]
    return share
