"""Where every node climbs to: the programme of up-down routing from above, for many terminals.

A node is added once everything above it has been, so that what it climbs to is known at once. Terminals are
joined pair by pair if the sets that they climb to all meet. Of a terminal that has been added a state keeps
its set, and of all these sets only the smallest: whoever meets a set meets all that contain it. Bits of nodes
that nothing climbs to any more are forgotten.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from relparallel.reliability.chances import Chance
from relparallel.reliability.programme.plain_sweep import keep_heaviest, too_many_states
from relparallel.reliability.questions.tiers import Swept, Tiers, order_of

State = tuple[frozenset[int], tuple[int, ...]]  #: smallest sets of terminals; set of every slot


@dataclass(frozen=True, slots=True)
class _Step:
    """Add one node: its slot (-1: nothing is below), whether two terminals can meet in it, and more.

    ``cables`` lead to slots above; ``leave`` are the slots whose bits nothing will ask for.
    """

    slot: int
    peak: bool
    terminal: bool
    node: Chance
    cables: tuple[tuple[int, Chance], ...]
    leave: tuple[int, ...]


def sweep_downwards(tiers: Tiers, max_states: int, truncate: bool = False) -> Swept:
    """Mass of success, of failure and of states that were dropped."""
    steps, width = _steps(tiers)
    layer: dict[State, float] = {(frozenset(), (0,) * width): 1.0}
    failure, dropped, visited, pending = 0.0, 0.0, 0, len(tiers.terminals)
    for step in steps:
        after: dict[State, float] = {}
        pending -= step.terminal
        for (sets, slots), mass in layer.items():
            if len(after) > max_states:
                if not truncate:
                    raise too_many_states(max_states)
                dropped += keep_heaviest(after, max_states // 2)
            for climbed, share in _climb(step, slots, mass):
                state = _added(step, sets, slots, climbed, pending)
                if state is None:
                    failure += share
                else:
                    after[state] = after.get(state, 0.0) + share
        layer = after
        visited += len(layer)
        if not pending:
            break
    return Swept((sum(layer.values()), failure), dropped, width, visited)


def _steps(tiers: Tiers) -> tuple[list[_Step], int]:
    """The nodes from above, with the slots that they and their cables use."""
    depth: dict[int, int] = {}
    order = order_of(tiers.above, tiers.below, {v: -height for v, height in _heights(tiers).items()})
    last = dict(zip(order, range(len(order)), strict=True))  # when the last node below has been added
    for v in reversed(order):
        last[v] = max([last[v], *(last[u] for u, _ in tiers.below[v])])
    ending: dict[int, list[int]] = {}
    for v in order:
        if tiers.below[v]:
            ending.setdefault(last[v], []).append(v)
    place, free, steps, width = depth, list[int](), list[_Step](), 0
    for i, v in enumerate(order):
        slot = -1
        if tiers.below[v]:
            slot = place[v] = free.pop() if free else width
            width = max(width, slot + 1)
        leave = tuple(place[u] for u in ending.get(i, []))
        cables = tuple((place[u], chance) for u, chance in tiers.above[v])
        terminal = v in tiers.terminals
        steps.append(_Step(slot, slot >= 0, terminal, tiers.node[v], cables, leave))
        free += leave
    return steps, width


def _heights(tiers: Tiers) -> dict[int, int]:
    """Longest way down from every node."""
    height: dict[int, int] = {}
    for v in order_of(tiers.below, tiers.above):
        height[v] = max((height[u] + 1 for u, _ in tiers.below[v]), default=0)
    return height


def _climb(step: _Step, slots: Sequence[int], mass: float) -> Iterator[tuple[int, float]]:
    """The set that the node climbs to, in every case; empty where it is down."""
    up, down = step.node
    cases = {1 << step.slot if step.peak else 0: mass * up}
    for slot, (works, fails) in step.cables:
        more: dict[int, float] = {}
        for climbed, share in cases.items():
            both = climbed | slots[slot]
            if both == climbed:
                more[both] = more.get(both, 0.0) + share
                continue
            more[both] = more.get(both, 0.0) + share * works
            if fails:
                more[climbed] = more.get(climbed, 0.0) + share * fails
        cases = more
    if down:
        yield 0, mass * down
    yield from cases.items()


def _added(
    step: _Step, sets: frozenset[int], slots: Sequence[int], climbed: int, pending: int
) -> State | None:
    """The state with the node in it; None where terminals cannot be joined any more."""
    if step.terminal:
        if any(not found & climbed for found in sets):
            return None
        sets = sets | {climbed}
    kept = list(slots)
    if step.slot >= 0:
        kept[step.slot] = climbed
    if step.leave:
        gone = ~sum(1 << slot for slot in step.leave)
        kept = [found & gone for found in kept]
        for slot in step.leave:
            kept[slot] = 0
        sets = frozenset(found & gone for found in sets)
    if pending and 0 in sets:
        return None
    return _smallest(sets), tuple(kept)


def _smallest(sets: Iterable[int]) -> frozenset[int]:
    """The sets that contain no other."""
    kept: list[int] = []
    for found in sorted(sets, key=int.bit_count):
        if not any(other & found == other for other in kept):
            kept.append(found)
    return frozenset(kept)
