"""How the unreliability answers to every part at once: one sweep forth, one sweep back.

The unreliability is a sum of products, and its derivative by the chance of a part being down is U(part down)
- U(part up). `sensitivity_sweep` finds it for every link and entering vertex of a
programme; from there the chain rule leads back through the product of required slots and through the tape.
Every term of it is a product of chances: nothing is subtracted.

References
----------
Birnbaum, "On the importance of different components in a multicomponent system", Multivariate Analysis II,
1969.
"""

from __future__ import annotations

from typing import NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from relparallel.reliability.problem import Problem
from relparallel.reliability.programme.compiled import Compiled, decompose
from relparallel.reliability.programme.frontier import fitting, gather, require_fit
from relparallel.reliability.programme.tape import PARALLEL, SERIES, play
from relparallel.reliability.sensitivity.sensitivity_sweep import slopes as swept

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]


class Derivatives(NamedTuple):
    """Unreliability, and by how much it grows when a link (float64[m]) or a node (float64[n]) is down."""

    unreliability: float
    links: FloatArray
    nodes: FloatArray


def differentiate(
    structure: Compiled,
    link: FloatArray,
    node: FloatArray,
    perfect: bool | BoolArray = False,
    max_states: int = 2**24,
    room: int = 2**26,
    without: BoolArray | None = None,
) -> Derivatives:
    """Derivative of the unreliability by the down-probability of every link and node.

    Notes
    -----
    The derivative is U(part down) - U(part up). Its relative error is about 1e-15, to which programmes of
    many states add 1e-72 / derivative at most for every row; where that leaves no digit, it is 0.
    Time: two to three sweeps for all parts together.
    """
    m, n = structure.links, structure.nodes
    if not structure.connected:
        return Derivatives(1.0, np.zeros(m), np.zeros(n))
    require_fit(structure.width)
    most = fitting(max_states)
    wanted = np.asarray(perfect) | (np.concatenate([link[:, 1], node[:, 1]]) > 0.0)
    if without is not None:
        wanted &= ~without
    failed, slope, peak = _differentiate(
        structure.tape, structure.required, structure.steps, structure.parts, structure.starts,
        structure.slots, link, node, wanted, most, room,
    )  # fmt: skip
    require_fit(structure.width, peak, most)
    slope = np.where(wanted, slope[: m + n], 0.0)
    return Derivatives(failed, slope[:m], slope[m:])


def swept_slopes(
    problem: Problem, wanted: BoolArray, reductions: bool, max_states: int, room: int = 2**26
) -> tuple[float, FloatArray]:
    """The same for a network whose structure is not asked for again."""
    connected, slots, tape, required, steps, parts, starts, widths = decompose(problem, reductions)
    if not connected:
        return 1.0, np.zeros(len(wanted))
    require_fit(max(widths, default=0))
    most, structure = fitting(max_states), (tape, required, steps, parts, starts, slots)
    failed, slope, peak = _differentiate(*structure, problem.link, problem.node, wanted, most, room)
    require_fit(max(widths, default=0), peak, most)
    return failed, np.where(wanted, slope[: len(wanted)], 0.0)


@numba.njit(cache=True)
def _differentiate(tape, required, steps, parts, starts, slots, link, node, given, max_states, room):  # type: ignore[no-untyped-def]
    """Unreliability, slope of every slot, and the largest layer."""
    chances, programmes = np.empty((slots, 2)), len(starts) - 1
    chances[: len(link)], chances[len(link) : len(link) + len(node)] = link, node
    play(tape, chances)
    wanted = _wanted(tape, given, chances)
    gain, slope, peak = np.zeros((len(steps), 3)), np.zeros(slots), 0
    for k in range(programmes):
        rows, outcome = slice(starts[k], starts[k + 1]), slots - programmes + k
        asked = np.zeros((starts[k + 1] - starts[k], 3), np.bool_)
        free = asked.copy()
        for row in range(len(free)):
            for i in range(3):
                part = parts[starts[k] + row, i]
                asked[row, i] = part >= 0 and wanted[part]
                free[row, i] = asked[row, i] or (part >= 0 and chances[part, 1] > 0.0)
        own = gather(parts[rows], chances), free, asked
        up, down, most = swept(steps[rows], *own, gain[rows], max_states, room)
        chances[outcome, 0], chances[outcome, 1] = up, down
        peak = max(peak, most)
        if peak > max_states:
            return 1.0, slope, peak
    failed = require_all(required, chances, slope)
    for k in range(programmes):
        for row in range(starts[k], starts[k + 1]):
            for i in range(3):
                if parts[row, i] >= 0:
                    slope[parts[row, i]] += slope[slots - programmes + k] * gain[row, i]
    rewind(tape, chances, slope)
    return failed, slope, peak


@numba.njit(cache=True)
def _wanted(tape, given, chances):  # type: ignore[no-untyped-def]
    """Slots that hold a wanted part, or are made of one that is not in series with what is always down."""
    wanted = np.zeros(len(chances), np.bool_)
    wanted[: len(given)] = given
    for row in range(len(tape)):
        code, made, a, b, c = tape[row]
        up_a, up_b, up_c = chances[a, 0], chances[b, 0], chances[c, 0] if c >= 0 else 1.0
        wanted[made] = wanted[a] or wanted[b] or (c >= 0 and wanted[c])
        if code == SERIES and min(up_a, up_b, up_c) == 0.0:
            some = (wanted[a] and up_b * up_c > 0.0) or (wanted[b] and up_a * up_c > 0.0)
            wanted[made] = some or (c >= 0 and wanted[c] and up_a * up_b > 0.0)
    return wanted


@numba.njit(cache=True)
def require_all(required, chances, slope):  # type: ignore[no-untyped-def]
    """Unreliability; add the chance that all others are up to the slope of each required slot."""
    up, failed = np.ones(len(required) + 1), 0.0
    for i in range(len(required)):
        failed += up[i] * chances[required[i], 1]
        up[i + 1] = up[i] * chances[required[i], 0]
    later = 1.0
    for i in range(len(required) - 1, -1, -1):
        slope[required[i]] += up[i] * later
        later *= chances[required[i], 0]
    return failed


@numba.njit(cache=True)
def rewind(tape, chances, slope):  # type: ignore[no-untyped-def]
    """Take slopes back through the tape, last row first."""
    for row in range(len(tape) - 1, -1, -1):
        code, made, a, b, c = tape[row]
        up_a, down_a = chances[a, 0], chances[a, 1]
        up_b, down_b = chances[b, 0], chances[b, 1]
        if code == SERIES:
            up_c = chances[c, 0] if c >= 0 else 1.0
            slope[a] += slope[made] * up_b * up_c
            slope[b] += slope[made] * up_a * up_c
            if c >= 0:
                slope[c] += slope[made] * up_a * up_b
        elif code == PARALLEL:
            slope[a] += slope[made] * down_b
            slope[b] += slope[made] * down_a
        else:  # both, given one: down = (up_a down_b + down_a up_b) / some
            some = up_a + down_a * up_b
            if some > 0.0:
                slope[a] += slope[made] * (up_b / some) ** 2
                slope[b] += slope[made] * (up_a / some) ** 2
