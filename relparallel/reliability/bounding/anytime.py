"""The frontier DP with a limit on its states: bounds at any time, exact when nothing was dropped.

The sweep of `frontier` stops where a layer holds too many states. Here a layer that grows beyond the
limit keeps its likeliest states; the others are replaced. Two masses go with every state.

* *Lifted* mass moves on from a state that is replaced to the best one, in which all live vertices are up and
  connected. From there the network fails no more often: what fails of it is a lower bound of U. It is a close
  one, for what is most likely to fail is what fails next.
* *Lowered* mass moves on to a worse state, of which there are few (see `wide_states`), and is dropped where
  there is no place for that one either: failed + dropped is an upper bound of U.

States that are together less likely than what the bracket may be wide are dropped without need. Work is
counted, not timed: each layer may have as many states as an even share of the work that is left affords, so
that the bounds are the same on every machine. `wide_states` says how a state is written.
"""

from typing import Final, NamedTuple

import numba
import numpy as np

from relparallel.reliability.bounding.wide_states import MAX_WIDTH, Live, decide, row_bits, truncate
from relparallel.reliability.frontier.compiled_sweep import ANY, LinkSweep
from relparallel.reliability.frontier.decomposition import Bracket

FIRST: Final = 64  # states of the sweep that says how large U is at least
_FEWEST: Final = 32  # states that every layer may have, whatever the work
_OVERHEAD: Final = 8  # work of a state beyond its words
_SPARE: Final = 0.1  # part of the bracket's width that may be dropped without need
_ROUNDING: Final = 2.0**-49  # relative, per visited state: each takes at most eight products and sums
_GROUPS: Final = (8, 1)  # small and large ones among the live vertices, about
_U1: Final = np.uint64(1)


class Truncated(NamedTuple):
    """Lowered mass that failed, succeeded, was dropped; lifted mass that failed; states, most and all."""

    failure: float
    success: float
    dropped: float
    lifted: float
    peak: int
    visited: int

    @property
    def bracket(self) -> Bracket:
        """Bounds of the unreliability."""
        slack = 1e-12 + _ROUNDING * self.visited
        return self.lifted * (1 - slack), min((self.failure + self.dropped) * (1 + slack), 1.0)


def anytime_bracket(
    rows: LinkSweep, rtol: float, max_states: int, max_work: int = ANY, lower: float = 0.0
) -> Bracket:
    """Bounds of the unreliability, which is known to be at least ``lower``, from at most so much work.

    A sweep with more than 126 live vertices leaves everything open.
    """
    if rows.width > MAX_WIDTH:
        return lower, 1.0
    low, high = lower, 1.0
    if lower <= 0.0:
        low, high = run_truncated(rows, min(FIRST, max_states), max_work).bracket
        if high - low <= rtol * low or max_states <= FIRST:
            return low, high
    found = run_truncated(rows, max_states, max_work, _SPARE * rtol * low).bracket
    return max(low, found[0]), min(high, found[1])


def run_truncated(
    rows: LinkSweep, max_states: int, max_work: int = ANY, negligible: float = 0.0
) -> Truncated:
    """Decide all links, with at most ``max_states`` states kept per layer."""
    limits = np.array([max_states, max_work]), negligible
    return Truncated(*_sweep(rows.steps[:, :9].copy(), rows.chances, rows.width, *limits))


@numba.njit(cache=True)
def _turns(steps):  # type: ignore[no-untyped-def]
    """When each vertex leaves, counted in vertices, where it enters: int64[rows, 2]."""
    turns, entered = np.full((len(steps), 2), -1, np.int64), np.empty((128, 2), np.int64)
    turn = 0
    for r in range(len(steps)):
        for side in range(2):
            if steps[r, side] >= 0:
                entered[steps[r, side]] = r, side
        for side in range(2):
            if steps[r, 6 + side] >= 0:
                row, at = entered[steps[r, 6 + side]]
                turns[row, at] = turn
                turn += 1
    return turns


@numba.njit(cache=True)
def _enter_and_leave(step, turns, live):  # type: ignore[no-untyped-def]
    """Bring up to date what is in the slots."""
    for side in range(2):
        if step[side] >= 0:
            slot = step[side]
            live.here[slot], live.terminal[slot] = True, 128 * step[2 + side]
            for level in range(2):
                group = turns[side] * _GROUPS[level] // len(live.here)
                live.group[level, slot] = _U1 << np.uint64(group & 63)
    for side in range(2):
        if step[6 + side] >= 0:
            slot = step[6 + side]
            live.here[slot], live.terminal[slot] = False, 0


@numba.njit(cache=True)
def _sweep(steps, chances, width, limits, negligible):  # type: ignore[no-untyped-def]
    """Decide all links."""
    words, (max_states, work), terminals = (width + 7) // 8, limits, steps[:, 2:4].sum()
    states, masses, count = np.zeros((1, words), np.uint64), np.ones((1, 2)), np.int64(1)
    into, share, table = np.empty((1, words), np.uint64), np.empty((1, 2)), np.empty(16, np.int32)
    live = Live(np.zeros(width, np.bool_), np.zeros(width, np.uint8), np.zeros((2, width), np.uint64))
    sums, peak, total, turns = np.zeros((3, 2)), 1, 0, _turns(steps)
    bits, weights = np.empty((4, words), np.uint64), np.empty(4)
    for r in range(len(steps)):
        step, chance = steps[r], chances[r]
        kinds = row_bits(step, chance, bits, weights)
        room, size = 2 * kinds * count + 1, 16
        if len(into) < room:
            into, share = np.empty((2 * room, words), np.uint64), np.empty((2 * room, 2))
        while size < 2 * room:
            size *= 2
        if len(table) < size:
            table = np.empty(size, np.int32)
        table[:size] = -1
        layer = into, share, table[:size]
        found = decide(states, masses, count, step, chance, (bits, weights, kinds), layer, sums)
        _enter_and_leave(step, turns[r], live)
        work -= found * (words + _OVERHEAD)
        most = max(work // ((len(steps) - r) * (words + _OVERHEAD)), _FEWEST)
        spare = negligible * (r + 1) / len(steps) - sums[2, 0]
        most, begun = min(max_states, most), step[8] < terminals
        count = truncate(layer, found, most, spare, live, step[8], begun, sums)
        states, masses, into, share = into, share, states, masses
        total += found
        peak = max(peak, count)
    return sums[0, 0], sums[1, 0], sums[2, 0], sums[0, 1], peak, total
