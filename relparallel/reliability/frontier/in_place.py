"""Links that leave most states as they are: what becomes of a layer, but for the states that change.

A state that stays keeps its place and a share of its mass; the other share moves to another state. What moves
is listed here, and goes to its place when the whole layer is decided: see `layer_rows`.
"""

from __future__ import annotations

import numba
import numpy as np

from relparallel.reliability.frontier.compiling import njit_borrowing
from relparallel.reliability.frontier.labels import flagged, leave, merge, pack, together, unpack
from relparallel.reliability.frontier.layer_rows import HOLDS, KIND, SUCCEED

_NIBBLE = np.uint64(15)
_U0 = np.uint64(0)


@njit_borrowing
def decide_in_place(layer, row, chance, sums, moved, sources):  # type: ignore[no-untyped-def]
    """Decide one link in all states of a layer."""
    if row[KIND] == SUCCEED:
        return _succeed(layer, row, chance, sums, moved, sources)
    return _merge(layer, row, chance, sums, moved, sources)


@njit_borrowing
def _merge(layer, row, chance, sums, moved, sources):  # type: ignore[no-untyped-def]
    """Decide a link between vertices that stay: down, nothing changes; up, their blocks become one."""
    mass, share = layer.view(np.float64), moved.view(np.float64)
    up, down, last, holds, traced = chance[0], chance[1], row[8] == 0, row[HOLDS], len(sources) > 0
    a, b = np.uint64(4 * row[4]), np.uint64(4 * row[5])
    made, ends, success, rest = 0, 0, sums[0], sums[1]
    for i in range(0, len(layer), 2):
        labels, flags = unpack(layer[i], holds)
        x, y = (labels >> a) & _NIBBLE, (labels >> b) & _NIBBLE
        if x in (_U0, y) or y == _U0:
            continue
        part = mass[i + 1] * up
        mass[i + 1] *= down
        labels, flags = merge(labels, flags, x, y)
        if last and together(labels, flags, holds):
            success, rest = two_sum(success, rest, part)
            ends += 1
            moved[len(layer) - 2 * ends], share[len(layer) - 2 * ends + 1] = i >> 1, part
        else:
            moved[2 * made], share[2 * made + 1] = pack(labels, flags), part
            if traced:
                sources[made] = i >> 1
            made += 1
    sums[0], sums[1] = success, rest
    return made, ends


@njit_borrowing
def _succeed(layer, row, chance, sums, moved, sources):  # type: ignore[no-untyped-def]
    """Decide the last link of a vertex, whose slot the other end takes over: up, nothing changes."""
    mass, share = layer.view(np.float64), moved.view(np.float64)
    up, down, side, traced = chance[0], chance[1], 0 if row[0] >= 0 else 1, len(sources) > 0
    holds = row[HOLDS]
    at = np.uint64(4 * row[side])
    alone, flag = np.uint64(row[side] + 1) << at, np.uint64(row[2 + side]) << at
    made, ends, failure, rest = 0, 0, sums[2], sums[3]
    for i in range(0, len(layer), 2):
        labels, flags = unpack(layer[i], holds)
        labels, flags, closed = leave(labels, flags, at, holds)
        part = mass[i + 1] * down
        if closed:
            failure, rest = two_sum(failure, rest, part)
            ends += 1
            moved[len(layer) - 2 * ends], share[len(layer) - 2 * ends + 1] = i >> 1, part
        else:
            state = pack(labels | alone, flags | flag)
            if state == layer[i]:  # it was alone without a terminal, and so is its successor
                continue
            moved[2 * made], share[2 * made + 1] = state, part
            if traced:
                sources[made] = i >> 1
            made += 1
        mass[i + 1] *= up
    sums[2], sums[3] = failure, rest
    return made, ends


@njit_borrowing
def tell_apart(layer):  # type: ignore[no-untyped-def]
    """Write flags into states, all of whose blocks hold a terminal, in place."""
    for i in range(0, len(layer), 2):
        layer[i] = flagged(layer[i])


@numba.njit(cache=True)
def two_sum(total, rest, term):  # type: ignore[no-untyped-def]
    """Add a term to a running sum and what rounding lost to ``rest`` (Knuth's two-sum)."""
    new = total + term
    back = new - total
    return new, rest + ((total - (new - back)) + (term - back))
