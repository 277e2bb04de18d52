"""A sweep forth and back over any programme in plain Python: what its states come to, in whole numbers.

Of a part that a state decides, what the state comes to if the part is down less what if it is up is the
state's share of the part's slope. Whole numbers hold the difference however small it is.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Sequence
from fractions import Fraction
from typing import Any, Final

from relparallel.reliability.programme.plain_sweep import too_many_states

FAILS: Final = None  # outcome of a state that has parted the terminals

Taken = Sequence[tuple[int, int]]  # parts that are decided, by their place in the step: up (0) or down (1)
Moves = Callable[[Any], Iterable[tuple[Hashable, Taken]]]  # of a state: outcomes with what they take

_DIGITS: Final = 400  # binary ones of what states come to, from the first one of the unreliability
_ROUNDING: Final = 64  # of them that may be rounding


def sweep_back(
    start: Hashable,
    works: Hashable,
    moves: Sequence[Moves],
    chances: Sequence[Sequence[tuple[Any, Any]]],
    max_states: float,
) -> tuple[float, list[list[float]]]:
    """Mass of failure, and by how much it grows as a part goes from up to down.

    Notes
    -----
    Two to three times as long as the sweep forth. Relative errors are about 1e-15 of slopes above 1e-80 U;
    slopes below 1e-100 U are 0.
    """
    layers, failure = [{start: 1.0}], 0.0
    for move, here in zip(moves, chances, strict=True):
        after: dict[Hashable, float] = {}
        for state, mass in layers[-1].items():
            if len(after) > max_states:
                raise too_many_states(int(max_states))
            for outcome, taken in move(state):
                share = mass * taken_so(here, taken)
                if outcome is FAILS:
                    failure += share
                elif outcome is not works:
                    after[outcome] = after.get(outcome, 0.0) + share
        layers.append(after)
    bits = _DIGITS + max(-math.frexp(failure)[1], 0)
    fails: dict[Hashable, int] = dict.fromkeys(layers.pop(), 0)
    found = []
    for move, here, layer in zip(moves[::-1], chances[::-1], layers[::-1], strict=True):
        fails |= {FAILS: 1 << bits, works: 0}
        whole = [_in_whole_numbers(chance, bits) for chance in here]
        now: dict[Hashable, int] = {}
        slopes = [0.0] * len(here)
        for state, mass in layer.items():
            now[state], by_part = _comes_to(move(state), whole, fails, bits)
            for i, share in by_part.items():
                slopes[i] += mass * (share / 2**bits)
        fails = now
        found.append(slopes)
    least = 2.0 ** (_ROUNDING - bits)  # what matters less does not: whole numbers leave nothing but rounding
    return fails[start] / 2**bits, [[x if x > least else 0.0 for x in slopes] for slopes in found[::-1]]


def taken_so(here: Sequence[Any], taken: Taken) -> Any:
    """Chance that all these parts are as they are taken to be."""
    share = 1
    for i, way in taken:
        share = share * here[i][way]
    return share


def _comes_to(
    outcomes: Iterable[tuple[Hashable, Taken]],
    whole: Sequence[tuple[int, int]],
    fails: dict[Hashable, int],
    bits: int,
) -> tuple[int, dict[int, int]]:
    """Chance to fail, and by how much it grows with each of the parts that are decided."""
    total, by_part = 0, dict[int, int]()
    for outcome, taken in outcomes:
        if not (rest := fails[outcome]):
            continue
        total += taken_so(whole, taken) * rest >> bits * len(taken)
        for i, way in taken:
            share = taken_so(whole, [part for part in taken if part[0] != i]) * rest
            share >>= bits * (len(taken) - 1)
            by_part[i] = by_part.get(i, 0) + (share if way else -share)
    return total, by_part


def _in_whole_numbers(chance: tuple[Any, Any], bits: int) -> tuple[int, int]:
    """Up and down in units of 2^-bits, together 1: the smaller one counts."""
    up, down = (int(Fraction(x) * 2**bits) for x in chance)
    return ((1 << bits) - down, down) if down < up else (up, (1 << bits) - up)
