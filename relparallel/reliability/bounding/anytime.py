"""The frontier DP with a limit on its states: bounds at any time, exact when nothing was dropped.

A layer that grows beyond the limit keeps its likeliest states; the others are replaced. Two masses
go with every state.

* *Lifted* mass moves on from a state that is replaced to the best one, in which all live vertices
  are up and connected. From there the network fails no more often: what fails of it is a lower
  bound of U. It is a close one, for what is most likely to fail is what fails next.
* *Lowered* mass moves on to a worse state: the largest block that holds terminals stays, all else
  falls apart into single vertices, and so does what leaves soon after a vertex outside of it, so
  that few states come out of many. It is dropped where there is no place for that one either:
  failed + dropped is an upper bound of U.

States that are together less likely than what the bracket may be wide are dropped without need.
Work is counted, not timed: each layer may have as many states as an even share of the work that is
left affords, so that the bounds are the same on every machine.

A layer is an array of states, one byte per slot of a live vertex: 0 where the slot is empty or its
vertex dead, else the label 1 + the first slot of its block, plus 128 where the block holds a
terminal.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from relparallel.reliability.frontier.compiled_sweep import ANY, LinkSweep
from relparallel.reliability.frontier.decomposition import Bracket

FIRST: Final = 64  # states of the sweep that says how large U is at least
_MAX_WIDTH: Final = 126
_FEWEST: Final = 32  # states that every layer may have, whatever the work
_OVERHEAD: Final = 64  # work of a state beyond its words
_SPARE: Final = 0.1  # part of the bracket's width that may be dropped without need
# relative, per visited state: each takes at most eight products and sums
_ROUNDING: Final = 2.0**-49
_TURNS: Final = (8, 1)  # groups of vertices by when they leave, fewer the less room there is
_FLAG: Final = 128

States = NDArray[np.uint8]
FloatArray = NDArray[np.float64]


class Truncated(NamedTuple):
    """Lowered masses: failed, succeeded, dropped; lifted mass: failed; states, most and all."""

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
    """Bounds of the unreliability, known to be at least ``lower``, from at most so much work.

    A sweep with more than 126 live vertices leaves everything open.
    """
    if rows.width > _MAX_WIDTH:
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
    width, m, pending = -(-rows.width // 8) * 8, len(rows.steps), int(rows.steps[:, 2:4].sum())
    states, masses, sums = np.zeros((1, width), np.uint8), np.ones((1, 2)), np.zeros((3, 2))
    live, turn, work = Live.of(width), _turns(rows.steps.tolist()), width // 8 + _OVERHEAD
    peak, visited, begun = 1, 0, False
    for r, (step, chance) in enumerate(
        zip(rows.steps.tolist(), rows.chances.tolist(), strict=True)
    ):
        states, masses = _decided(states, masses, step, chance, sums)
        live.update(step, [turn.get((r, side), 0) for side in (0, 1)])
        begun |= step[8] < pending
        visited += len(states)
        max_work -= len(states) * work
        most = min(max_states, max(max_work // ((m - r) * work), _FEWEST))
        spare = negligible * (r + 1) / m - sums[2, 0]
        best = live.connected(begun) if step[8] else None
        states, masses = _truncated(states, masses, most, spare, live, best, sums)
        peak = max(peak, len(states))
    return Truncated(sums[0, 0], sums[1, 0], sums[2, 0], sums[0, 1], peak, visited)


def _turns(steps: list[list[int]]) -> dict[tuple[int, int], int]:
    """When each vertex leaves, counted in vertices, by the row and side with which it enters."""
    entered: dict[int, tuple[int, int]] = {}
    turns: dict[tuple[int, int], int] = {}
    for r, step in enumerate(steps):
        entered |= {step[side]: (r, side) for side in (0, 1) if step[side] >= 0}
        for slot in step[6:8]:
            if slot >= 0:
                turns[entered[slot]] = len(turns)
    return turns


class Live(NamedTuple):
    """Vertices in the slots: which are there, the terminals' flags, and when they leave."""

    here: NDArray[np.bool_]
    terminal: States
    turn: NDArray[np.int64]

    @classmethod
    def of(cls, width: int) -> Live:
        """Nobody."""
        return cls(np.zeros(width, np.bool_), np.zeros(width, np.uint8), np.zeros(width, np.int64))

    def update(self, step: list[int], turns: list[int]) -> None:
        """Let vertices enter and leave."""
        for slot, flag, turn in zip(step[:2], step[2:4], turns, strict=True):
            if slot >= 0:
                self.here[slot], self.terminal[slot], self.turn[slot] = True, _FLAG * flag, turn
        for slot in step[6:8]:
            if slot >= 0:
                self.here[slot], self.terminal[slot] = False, 0

    def connected(self, flagged: bool) -> States:
        """The state in which all are up and in one block."""
        label = int(self.here.argmax()) + 1 + _FLAG * flagged
        return np.where(self.here, label, 0).astype(np.uint8)[None]

    def worse(self, states: States, groups: int) -> States:
        """Worse states, of which there are few."""
        n, width = states.shape
        label, slots, row = (
            states & np.uint8(_FLAG - 1),
            np.arange(width, dtype=np.uint8),
            np.arange(n)[:, None],
        )
        leads = label == slots + 1
        size = np.bincount((label + (width + 1) * row).ravel(), minlength=n * (width + 1)).reshape(
            n, -1
        )
        # any block that holds a terminal is larger
        size[:, 1:] += 2 * width * (leads & (states >= _FLAG))
        size[:, 0] = 0
        largest = size.argmax(axis=1)[:, None]
        inside, held = label == largest, size[row, largest] > 2 * width
        group = np.where(self.here, self.turn * groups // width, -1)
        order = np.argsort(group, kind="stable")
        starts, place = (
            np.unique(group[order], return_index=True)[1],
            np.unique(group, return_inverse=True)[1],
        )
        hit = np.logical_or.reduceat(((label > 0) & ~inside)[:, order], starts, axis=1)
        stays = inside & ~hit[:, place]
        # terminals stay with their block
        leads &= (states >= _FLAG) & ~(inside & stays.any(axis=1)[:, None])
        single = np.where(label > 0, (slots + 1) | np.where(leads, _FLAG, self.terminal), 0)
        block = stays.argmax(axis=1)[:, None] + 1 + _FLAG * held
        return np.where(stays, block, single).astype(np.uint8)


def _decided(
    states: States, masses: FloatArray, step: list[int], chance: list[float], sums: FloatArray
) -> tuple[States, FloatArray]:
    """Decide one link in all states of a layer."""
    found, share = [], []
    for dead in range(4):
        weight = chance[2 + (dead & 1)] * chance[4 + (dead >> 1)]
        if weight == 0.0:
            continue
        now = states.copy()
        for side in (0, 1):
            if step[side] >= 0 and not dead >> side & 1:
                now[:, step[side]] = step[side] + 1 + _FLAG * step[2 + side]
        x, y = now[:, step[4], None], now[:, step[5], None]
        joins = (x > 0) & (y > 0) & (x != y)
        found.append(now)
        share.append(masses * np.where(joins, weight * chance[1], weight))
        label = np.minimum(x & (_FLAG - 1), y & (_FLAG - 1)) | ((x | y) & _FLAG)
        chosen = joins[:, 0]
        both = np.where((now == x) | (now == y), label, now)[chosen]
        mass = masses[chosen] * (weight * chance[0])
        if step[8] == 0:  # a block that holds all terminals is a success
            last = both.max(axis=1, initial=0)
            ended = (last >= _FLAG) & ((both == last[:, None]) | (both < _FLAG)).all(axis=1)
            sums[1] += mass[ended].sum(axis=0)
            both, mass = both[~ended], mass[~ended]
        found.append(both)
        share.append(mass)
    states, masses = np.concatenate(found), np.concatenate(share)
    for slot in step[6:8]:
        if slot >= 0:
            states, masses = _without(slot, states, masses, sums)
    alive = masses.any(axis=1)
    return _merged(states[alive], masses[alive])


def _without(
    slot: int, states: States, masses: FloatArray, sums: FloatArray
) -> tuple[States, FloatArray]:
    """Let a vertex leave; a block that closes with a terminal fails."""
    label = states[:, slot, None].copy()
    states[:, slot] = 0
    same = (states == label) & (label > 0)
    closed = ~same.any(axis=1) & (label[:, 0] >= _FLAG)
    sums[0] += masses[closed].sum(axis=0)
    first = same.argmax(axis=1)[:, None].astype(np.uint8) + np.uint8(1) | (label & _FLAG)
    return np.where(same, first, states)[~closed], masses[~closed]


def _merged(states: States, masses: FloatArray) -> tuple[States, FloatArray]:
    """Make one of equal states, which a sum of random words puts side by side."""
    if not len(states):
        return states, masses
    words = np.random.default_rng(0).integers(2**63, size=states.shape[1] // 8, dtype=np.uint64)
    order = np.argsort(
        np.ascontiguousarray(states).view(np.uint64) @ (2 * words + 1), kind="stable"
    )
    states = states[order]
    starts = np.flatnonzero(np.append(True, (states[1:] != states[:-1]).any(axis=1)))
    return states[starts], np.add.reduceat(masses[order], starts)


def _truncated(
    states: States,
    masses: FloatArray,
    most: int,
    spare: float,
    live: Live,
    best: States | None,
    sums: FloatArray,
) -> tuple[States, FloatArray]:
    """Keep the likeliest states, move the mass of the others; without a best state, it succeeds."""
    order = np.argsort(-masses.max(axis=1, initial=0.0), kind="stable")
    kept = len(order) if len(order) <= most else max(most - most // 4 - 1, 0)
    if spare > 0.0:
        kept = min(
            kept,
            len(order) - int(np.searchsorted(np.cumsum(masses[order[::-1], 0]), spare, "right")),
        )
    if kept == len(order):
        return states, masses
    lifted = 0.0
    for groups, room in zip(_TURNS, (most - 1 - most // 8, most - 1), strict=True):
        rest, own = states[order[kept:]], masses[order[kept:]]
        lifted += float(own[:, 1].sum())
        own[:, 1] = 0.0
        every = np.concatenate([states[order[:kept]], live.worse(rest, groups)])
        states, masses = _merged(every, np.concatenate([masses[order[:kept]], own]))
        order = np.argsort(-masses.max(axis=1), kind="stable")
        kept = max(min(room, len(order)), 0)
        if kept == len(order):
            break
    sums[2, 0] += masses[order[kept:], 0].sum()
    lifted += float(masses[order[kept:], 1].sum())
    states, masses = states[order[:kept]], masses[order[:kept]]
    if best is None:
        sums[1, 1] += lifted
        return states, masses
    return _merged(np.concatenate([states, best]), np.concatenate([masses, [[0.0, lifted]]]))
