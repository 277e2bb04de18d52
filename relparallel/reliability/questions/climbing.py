"""Which terminals climb to which node: the programme of up-down routing from below.

A node is added once everything under it has been. A state keeps the set of terminals that climb to each live
node, and which pairs of terminals are joined. For two terminals that is next to nothing; for many the pairs
are too many, and `relparallel.reliability.questions.descending` takes their place.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from relparallel.reliability.chances import Chance
from relparallel.reliability.programme.plain_sweep import keep_heaviest, too_many_states
from relparallel.reliability.questions.tiers import Swept, Tiers, order_of

Layer = dict[tuple[Any, ...], float]
Pairs = tuple[int, ...]  #: for each terminal the set of those that it is joined with


@dataclass(frozen=True, slots=True)
class _Step:
    """Add one node: its slot, its own terminal bit, its cables from below, and the slots that leave.

    ``mute`` is a terminal that forwards nothing.
    """

    slot: int
    bit: int
    mute: bool
    node: Chance
    cables: tuple[tuple[int, Chance], ...]
    leave: tuple[int, ...]


def sweep_upwards(tiers: Tiers, max_states: int, truncate: bool = False) -> Swept:
    """Mass of success, of failure and of states that were dropped."""
    steps, width = _steps(tiers)
    count = len(tiers.terminals)
    every = pending = (1 << count) - 1
    goal = tuple(every & ~(1 << i) for i in range(count))
    layer: Layer = {((0,) * count, (0,) * width): 1.0}
    success, failure, dropped, visited = 0.0, 0.0, 0.0, 0
    for step in steps:
        after: Layer = {}
        pending &= ~step.bit
        for (joined, slots), mass in layer.items():
            if len(after) > max_states:
                if not truncate:
                    raise too_many_states(max_states)
                dropped += keep_heaviest(after, max_states // 2)
            for climbers, pairs, share in _climb(step, joined, slots, mass):
                if pairs == goal:
                    success += share
                    continue
                left = list(slots)
                left[step.slot] = step.bit if step.mute else climbers
                for slot in step.leave:
                    left[slot] = 0
                state = _settled(pairs, left, goal, pending)
                if state is None:
                    failure += share
                else:
                    after[state] = after.get(state, 0.0) + share
        layer = after
        visited += len(layer)
    return Swept((success, failure + sum(layer.values())), dropped, width, visited)


def _steps(tiers: Tiers) -> tuple[list[_Step], int]:
    """The nodes from below, with the slots that they and their cables use."""
    left = {v: len(cables) for v, cables in tiers.above.items()}
    place, free, steps, width = dict[int, int](), list[int](), list[_Step](), 0
    for v in order_of(tiers.below, tiers.above):
        slot = place[v] = free.pop() if free else width
        width = max(width, slot + 1)
        leave = [] if left[v] else [slot]
        for u, _ in tiers.below[v]:
            left[u] -= 1
            leave += [place[u]] * (left[u] == 0)
        cables = tuple((place[u], chance) for u, chance in tiers.below[v])
        bit = 1 << tiers.terminals.index(v) if v in tiers.terminals else 0
        steps.append(_Step(slot, bit, v in tiers.mute, tiers.node[v], cables, tuple(leave)))
        free += leave
    return steps, width


def _climb(
    step: _Step, joined: tuple[int, ...], slots: Sequence[int], mass: float
) -> Iterator[tuple[int, tuple[int, ...], float]]:
    """Which terminals climb to the new node, the pairs joined since, and the mass, in every case."""
    up, down = step.node
    cases = {(step.bit, joined): mass * up}
    for slot, (works, fails) in step.cables:
        arriving = slots[slot]
        if not arriving:
            continue
        more: dict[tuple[int, tuple[int, ...]], float] = {}
        for (climbers, pairs), share in cases.items():
            met = climbers & step.bit if step.mute else climbers
            both = climbers | arriving, _join(pairs, met, arriving)
            if both == (climbers, pairs):
                more[both] = more.get(both, 0.0) + share
                continue
            more[both] = more.get(both, 0.0) + share * works
            if fails:
                more[climbers, pairs] = more.get((climbers, pairs), 0.0) + share * fails
        cases = more
    if down:
        yield 0, joined, mass * down
    for (climbers, pairs), share in cases.items():
        yield climbers, pairs, share


def _join(pairs: tuple[int, ...], some: int, others: int) -> tuple[int, ...]:
    """Join every terminal of one set with every one of the other."""
    if not some or not others:
        return pairs
    return tuple(
        met | (others & ~(1 << i) if some >> i & 1 else 0) | (some & ~(1 << i) if others >> i & 1 else 0)
        for i, met in enumerate(pairs)
    )


def _settled(
    pairs: tuple[int, ...], slots: list[int], goal: tuple[int, ...], pending: int
) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
    """Forget terminals that are joined with all others; None if some pair cannot be joined any more."""
    open_, live = 0, pending
    for i, met in enumerate(pairs):
        open_ |= (met != goal[i]) << i
    for climbers in slots:
        live |= climbers
    if open_ & ~live:
        return None
    return pairs, tuple(climbers & open_ for climbers in slots)
