"""Count instead of weigh: the mass of success in whole numbers, by additions and multiplications only.

Every independent part has two weights, for up and for down, that need not add up to one: numerators over a
common denominator give exact fractions, powers of a variable packed into an integer give counts
by the number of working parts (`signature`). The tape of reductions is played without its one division: a
terminal between two terminals leaves a link whose two weights omit the case that both its links are down,
in which the system fails anyway, so that nothing has to be required before.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import prod
from typing import Final

import numpy as np
from numpy.typing import NDArray

from relparallel.reliability.extensions.srlg import absorbed, swept
from relparallel.reliability.frontier.decomposition import Compiled, compiled
from relparallel.reliability.frontier.generic_sweep import MAX_SLOTS, moves, sweep
from relparallel.reliability.frontier.programme import NotExactError
from relparallel.reliability.frontier.tape import BOTH, SERIES
from relparallel.reliability.probability import series
from relparallel.reliability.problem import Problem, require_relays
from relparallel.reliability.result import Reliability, exactly

Weights = tuple[int, int]  #: of a part that is up, and down

_STATES: Final = 2**20  # largest layer of the programme in plain Python
_ROOM: Final = 2**31  # bytes for the masses of two layers
_STATE: Final = 300  # bytes of a state without its mass


def weigh(problem: Problem, given: Sequence[Weights], max_states: int, reductions: bool = True) -> int:
    """Total weight of the states of all parts in which the terminals are up and connected."""
    structure = compiled(problem, reductions)
    if not structure.connected:
        return 0
    if structure.width > MAX_SLOTS:
        raise NotExactError(
            f"graph must need at most {MAX_SLOTS} live vertices where whole numbers are counted, got "
            f"{structure.width}; `evaluate` with floats falls back to certified bounds"
        )
    slots = _play(structure.tape, given, structure.slots - len(structure.widths))
    total: int = prod(up + down for up, down in _unused(structure, slots))
    required = structure.required[structure.required < len(slots)]
    total *= prod(slots[i][0] for i in required.tolist())
    for i, j in zip(structure.starts[:-1].tolist(), structure.starts[1:].tolist(), strict=True):
        rows = moves(structure.steps[i:j], structure.parts[i:j], slots)
        total *= sweep(bytes(structure.width), rows, max_states).up
    return total


def in_fractions(problem: Problem, reductions: bool, max_states: int) -> Reliability:
    """Evaluate in whole numbers over the common denominator of all parts; with groups, in fractions."""
    require_relays(problem)
    down = [*problem.link[:, 1].tolist(), *problem.node[:, 1].tolist()]
    every = prod(q.denominator for q in down)
    mass = every.bit_length() // 8 + 1
    max_states = min(max_states, _STATES, max(_ROOM // (2 * mass + _STATE), 1))
    if problem.groups:
        always, left, shared = absorbed(problem, problem.groups)
        chances = [*map(tuple, left.link.tolist()), *map(tuple, left.node.tolist())]
        found = swept(compiled(left, reductions=False), chances, shared, max_states)
        works, fails = map(Fraction, series(always, found))
        return exactly(works, fails, "exact")
    given = [(q.denominator - q.numerator, q.numerator) for q in down]
    works = Fraction(weigh(problem, given, max_states, reductions), every)
    return exactly(works, 1 - works, "exact")


def _play(tape: NDArray[np.int64], given: Sequence[Weights], slots: int) -> list[Weights]:
    """Weights of links, nodes, and what the tape makes of them."""
    weights = [*given, *[(1, 0)] * (slots - len(given))]
    for code, made, a, b, c in tape.tolist():
        (up_a, down_a), (up_b, down_b) = weights[a], weights[b]
        if code == BOTH:  # made - 1 is required: the same two in parallel
            weights[made] = up_a * up_b, up_a * down_b + down_a * up_b
            weights[made - 1] = 1, 0
            continue
        up_c, down_c = weights[c] if c >= 0 else (1, 0)
        all_ways = (up_a + down_a) * (up_b + down_b) * (up_c + down_c)
        up = up_a * up_b * up_c if code == SERIES else all_ways - down_a * down_b
        weights[made] = up, all_ways - up
    return weights


def _unused(structure: Compiled, slots: Sequence[Weights]) -> list[Weights]:
    """Parts that do not matter: they can be up or down."""
    free = np.ones(structure.slots + 1, dtype=bool)
    for used in (structure.tape[:, 2:], structure.parts, structure.required):
        free[used] = False  # -1, a part that never fails, is the spare one at the end
    return [slots[i] for i in np.flatnonzero(free[: len(slots)]).tolist()]
