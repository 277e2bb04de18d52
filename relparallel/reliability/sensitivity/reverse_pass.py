"""How the unreliability answers to every part at once: one sweep forth, one sweep back.

The sweep forth is the frontier DP, which also writes down where every state goes (`forward_record`).
The sweep back gives every state g, the probability that the terminals end up apart. A link in which two
states d (down) and u (up) differ has the derivative sum of f (g(d) - g(u)), f the probability to get there.
From there the chain rule leads back through the product of required slots and through the tape of reductions.

The difference is where digits are lost, so that g is a pair of floats: a derivative has nine digits down to
about 1e-22 of the less likely outcome, and is 0 where rounding may be all of it.

References
----------
Birnbaum, "On the importance of different components in a multicomponent system", Multivariate Analysis II,
1969.
"""

import numba
import numpy as np
from numpy.typing import NDArray

from relparallel.reliability.frontier.compiled_sweep import fitting, gather, require_fit
from relparallel.reliability.frontier.decomposition import Compiled
from relparallel.reliability.frontier.labels import njit_borrowing
from relparallel.reliability.frontier.layers import KIND, MERGE, SUCCEED, planned_rows, two_sum
from relparallel.reliability.frontier.reductions import PARALLEL, SERIES, play
from relparallel.reliability.sensitivity.forward_record import ENDS, FAILURE, SUCCESS, Trace, forth, no_space

_TINY = 1e-300  # masses below may be 0
_FEW_RECORDS = 2**12  # for which to make room at first
_MOST_RECORDS = 2**27  # 2 GiB
_ROUNDING = 2.0**-96  # of a state's g, what a difference may be wrong by
_SPLIT = 2.0**27 + 1.0  # splits a float in halves whose products are floats (Dekker)

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]


def gradient(
    structure: Compiled, link: FloatArray, node: FloatArray, wanted: BoolArray, max_states: int = 2**24
) -> tuple[float, FloatArray]:
    """Unreliability, and U(part down) - U(part up) of every link and node that is wanted, else 0."""
    slope = np.zeros(structure.links + structure.nodes)
    if not structure.connected:
        return 1.0, slope
    require_fit(structure.width)
    most = fitting(max_states)
    failed, slope, peak = _gradient(
        structure.tape, structure.required, structure.steps, structure.parts, structure.starts,
        structure.slots, np.concatenate([link, node]), wanted, most,
    )  # fmt: skip
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
    """Slots that hold a wanted part, or are made of one that is not in series with what is always down."""
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
    """Sweep forth in segments, each with room for as many records as all before it, and back."""
    rows, layer = planned_rows(steps, free), np.zeros(2, np.uint64)
    layer.view(np.float64)[1] = 1.0
    begins, records, peak, sums, none = [0], 0, 1, np.zeros(4), np.zeros(0, np.int64)
    traces, space = [Trace(np.zeros((0, 2), np.int32), np.zeros(0), none, none)], no_space()
    while begins[-1] < len(rows) and peak <= max_states:
        room = max(_FEW_RECORDS, records)
        row, layer, trace, most, space = forth(
            rows, chances, free, lean, begins[-1], layer, max_states, room, sums, space
        )
        peak, records = max(peak, most), records + trace.records[-1]
        begins.append(row)
        traces.append(trace)
        if records > _MOST_RECORDS:
            peak = max_states + 1
    success, failure = sums[0] + sums[1], sums[2] + sums[3]
    if peak > max_states:
        return 0.0, 1.0, peak
    level = np.zeros(gain.shape)
    value, other = np.zeros((ENDS + peak, 2)), np.zeros((ENDS + peak, 2))
    sign = 1.0 if failure <= success else -1.0
    value[FAILURE if failure <= success else SUCCESS, 0] = 1.0
    for k in range(len(traces) - 1, 0, -1):
        value, other = _back(rows, chances, free, gain, level, sign, begins[k - 1], traces[k], value, other)
    for row in range(len(gain)):
        for i in range(3):
            if gain[row, i] <= _ROUNDING * level[row, i]:
                gain[row, i] = 0.0
    return success, failure, peak


@numba.njit(cache=True)
def _back(rows, chances, free, gain, level, sign, begin, trace, after, before):  # type: ignore[no-untyped-def]
    """Probability of the less likely outcome from the states of layer ``begin``, behind those of the ends.

    It comes in one of the two arrays, of room for the largest layer, and the other one is returned as well.
    """
    g = np.zeros((4, 2))
    for i in range(len(trace.first) - 2, -1, -1):
        row = begin + i
        mass = trace.mass[trace.first[i] : trace.first[i + 1]]
        target = trace.target[trace.records[i] : trace.records[i + 1]]
        if rows[row, KIND] >= MERGE:
            down = 1 if rows[row, KIND] == SUCCEED else 0
            _recall_shares(after, chances[row], sign, down, mass, target, gain[row], level[row])
            continue
        for end in range(ENDS):
            before[end, 0], before[end, 1] = after[end, 0], after[end, 1]
        _recall_states(chances[row], free[row], sign, mass, target, before, after, gain[row], level[row], g)
        after, before = before, after
    return after, before


@njit_borrowing
def _recall_shares(value, chance, sign, side, mass, target, gain, level):  # type: ignore[no-untyped-def]
    """One row in place, whose states keep their places.

    What a state reads is not yet overwritten: nothing moves on from where a share of another moves to, but
    for what fails, and that comes last.
    """
    for n in range(len(mass)):
        down, up = value[target[n, side]], value[target[n, 1 - side]]
        change, more, high, low = _mix(down[0], down[1], up[0], up[1], chance[1], chance[0])
        gain[0] += sign * mass[n] * (change + more)
        level[0] += mass[n] * max(down[0], up[0])
        place = value[target[n, 0]]
        place[0], place[1] = high, low


@njit_borrowing
def _recall_states(chance, free, sign, mass, target, before, after, gain, level, g):  # type: ignore[no-untyped-def]
    """Another row, in which vertices a and b may enter that may be down: bits 1 and 2 of the way they are."""
    ways = (1 + free[1]) * (1 + free[2])
    for n in range(len(mass)):
        for way in range(ways):
            dead = way if free[1] else 2 * way
            weight = mass[n] * chance[2 + (dead & 1)] * chance[4 + (dead >> 1)]
            down, up = after[target[ways * n + way, 0]], after[target[ways * n + way, 1]]
            g[dead, 0], g[dead, 1] = down[0], down[1]
            _decide(g[dead], up[0], up[1], chance[1], chance[0], sign * weight, gain, level, 0)
        if free[1]:
            for b in range(1 + free[2]):
                alive = g[2 * b]
                up, rest = alive[0], alive[1]
                alive[0], alive[1] = g[2 * b + 1, 0], g[2 * b + 1, 1]
                _decide(alive, up, rest, chance[3], chance[2], sign * mass[n] * chance[4 + b], gain, level, 1)
        if free[2]:
            up, rest = g[0, 0], g[0, 1]
            g[0, 0], g[0, 1] = g[2, 0], g[2, 1]
            _decide(g[0], up, rest, chance[5], chance[4], sign * mass[n], gain, level, 2)
        before[ENDS + n, 0], before[ENDS + n, 1] = g[0, 0], g[0, 1]


@njit_borrowing
def _decide(down, up, rest, down_chance, up_chance, weight, gain, level, part):  # type: ignore[no-untyped-def]
    """Mix what a part comes to if it is down, in place, with what if it is up; add to what the part gains."""
    change, more, high, low = _mix(down[0], down[1], up, rest, down_chance, up_chance)
    gain[part] += weight * (change + more)
    level[part] += abs(weight) * max(down[0], up)
    down[0], down[1] = high, low


@njit_borrowing
def _mix(down, down_rest, up, up_rest, down_chance, up_chance):  # type: ignore[no-untyped-def]
    """Difference of two pairs of floats, and their mixture from the side of the smaller probability."""
    change, more = two_sum(down, down_rest - up_rest, -up)
    if down_chance <= up_chance:
        product, lost = _product(down_chance, change)
        high, low = two_sum(up, up_rest + (lost + down_chance * more), product)
    else:
        product, lost = _product(up_chance, -change)
        high, low = two_sum(down, down_rest + (lost - up_chance * more), product)
    total = high + low
    return change, more, total, low - (total - high)


@njit_borrowing
def _product(x, y):  # type: ignore[no-untyped-def]
    """Product of two floats, and what rounding lost (Dekker)."""
    a, b = _SPLIT * x, _SPLIT * y
    x_high, y_high = a - (a - x), b - (b - y)
    x_low, y_low = x - x_high, y - y_high
    product = x * y
    return product, ((x_high * y_high - product) + x_high * y_low + x_low * y_high) + x_low * y_low


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
