"""How the unreliability answers to every part at once: one sweep forth, one sweep back.

The sweep forth is the frontier DP, which also writes down where every state goes
(`compiled_sweep.forth`). The sweep back gives every state g, the probability of the less likely
outcome. A link in which two states d (down) and u (up) differ has the derivative sum of f (g(d) -
g(u)), f the probability to get there. From there the chain rule leads back through the product of
required slots and through the tape of reductions.

The difference is where digits are lost: a derivative has six digits where a part changes the less
likely outcome by more than a billionth, and is 0 where rounding may be all of it.

References
----------
Birnbaum, "On the importance of different components in a multicomponent system", Multivariate
Analysis II, 1969.
"""

import numba
import numpy as np
from numpy.typing import NDArray

from relparallel.reliability.frontier.compiled_sweep import (
    ANY,
    ENDS,
    FAILURE,
    SUCCESS,
    fitting,
    forth,
    gather,
    require_fit,
)
from relparallel.reliability.frontier.decomposition import Compiled
from relparallel.reliability.frontier.reductions import PARALLEL, SERIES, play
from relparallel.reliability.frontier.states import njit_borrowing

_TINY = 1e-300  # masses below may be 0
_ROUNDING = 2.0**-48  # of what two states come to, what the sum of differences may be wrong by

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]


def gradient(
    structure: Compiled,
    link: FloatArray,
    node: FloatArray,
    wanted: BoolArray,
    max_states: int = 2**24,
) -> tuple[float, FloatArray]:
    """Unreliability, and U(part down) - U(part up) of each link and node that is wanted, else 0."""
    slope = np.zeros(structure.links + structure.nodes)
    if not structure.connected:
        return 1.0, slope
    require_fit(structure.width)
    most = fitting(max_states)
    failed, slope, peak = _gradient(
        structure.tape,
        structure.required,
        structure.steps,
        structure.parts,
        structure.starts,
        structure.slots,
        np.concatenate([link, node]),
        wanted,
        most,
    )
    require_fit(structure.width, peak, most)
    return failed, np.where(wanted, slope[: len(wanted)], 0.0)


@numba.njit(cache=True)
def _gradient(tape, required, steps, parts, starts, slots, given, asked, max_states):  # type: ignore[no-untyped-def]
    """Unreliability, derivative of every slot, and the largest layer."""
    chances, programmes = np.empty((slots, 2)), len(starts) - 1
    for i in range(len(given)):
        chances[i, 0], chances[i, 1] = given[i, 0], given[i, 1]
    play(tape, chances)
    wanted = _wanted(tape, asked, chances)
    gain, slope, peak = np.zeros((len(steps), 3)), np.zeros(slots), 0
    for k in range(programmes):
        rows, outcome = slice(starts[k], starts[k + 1]), slots - programmes + k
        free = np.zeros((starts[k + 1] - starts[k], 3), np.bool_)
        least = 1.0
        for row in range(len(free)):
            for i in range(3):
                part = parts[starts[k] + row, i]
                free[row, i] = part >= 0 and (wanted[part] or chances[part, 1] > 0.0)
                if part >= 0 and wanted[part]:
                    least = min(least, chances[part, 0], chances[part, 1])
        own = gather(parts[rows], chances), free, least >= _TINY
        up, down, most = there_and_back(steps[rows], *own, gain[rows], max_states)
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
    """Slots of a wanted part, or made of one that is not in series with what is always down."""
    wanted = np.zeros(len(chances), np.bool_)
    for i in range(len(given)):
        wanted[i] = given[i]
    for row in range(len(tape)):
        for i in range(2, 5):
            if tape[row, i] >= 0 and wanted[tape[row, i]]:
                alive = True
                for j in range(2, 5):
                    if tape[row, 0] == SERIES and j != i and tape[row, j] >= 0:
                        alive &= chances[tape[row, j], 0] > 0.0
                wanted[tape[row, 1]] |= alive
    return wanted


@numba.njit(cache=True)
def there_and_back(steps, chances, free, lean, gain, max_states):  # type: ignore[no-untyped-def]
    """Success and failure mass, largest layer; fills in the derivative by a row's three parts."""
    traced = free.ndim == 2  # a literal would compile the sweep once more
    sums, peak, _, targets, masses = forth(
        steps, chances, free, lean, traced, max_states, np.int64(ANY)
    )
    success, failure = sums[0] + sums[1], sums[2] + sums[3]
    if peak > max_states:
        return 0.0, 1.0, peak
    level, value = np.zeros(gain.shape), np.zeros(ENDS)
    sign = 1.0 if failure <= success else -1.0
    value[FAILURE if failure <= success else SUCCESS] = 1.0
    for row in range(len(steps) - 1, -1, -1):
        value = _back(
            chances[row], free[row], masses[row + 1], targets[row + 1], value, gain[row], level[row]
        )
        for i in range(3):
            gain[row, i] = (
                sign * gain[row, i] if abs(gain[row, i]) > _ROUNDING * level[row, i] else 0.0
            )
    return success, failure, peak


@numba.njit(cache=True)
def _back(chance, free, mass, target, after, gain, level):  # type: ignore[no-untyped-def]
    """What the states before a row come to, behind the two ends; adds to what its parts gain."""
    before, g, record = np.empty(ENDS + len(mass)), np.zeros(4), 0
    before[SUCCESS], before[FAILURE] = after[SUCCESS], after[FAILURE]
    for n in range(len(mass)):
        for dead in range(4):  # bits: which of the entering vertices are down
            if (dead & 1 and not free[1]) or (dead & 2 and not free[2]):
                continue
            weight = mass[n] * chance[2 + (dead & 1)] * chance[4 + (dead >> 1)]
            down, up = after[target[record, 0]], after[target[record, 1]]
            g[dead] = _mix(down, up, chance[1], chance[0], weight, gain, level, 0)
            record += 1
        for b in range(1 + free[2] if free[1] else 0):
            weight = mass[n] * chance[4 + b]
            g[2 * b] = _mix(g[2 * b + 1], g[2 * b], chance[3], chance[2], weight, gain, level, 1)
        if free[2]:
            g[0] = _mix(g[2], g[0], chance[5], chance[4], mass[n], gain, level, 2)
        before[ENDS + n] = g[0]
    return before


@njit_borrowing
def _mix(down, up, down_chance, up_chance, weight, gain, level, part):  # type: ignore[no-untyped-def]
    """What a part that is down or up comes to; adds the difference to what the part gains."""
    gain[part] += weight * (down - up)
    level[part] += weight * max(down, up)
    return down_chance * down + up_chance * up


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
        code, made, a, b, c = tape[row, 0], tape[row, 1], tape[row, 2], tape[row, 3], tape[row, 4]
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
