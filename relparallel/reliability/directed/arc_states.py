"""The frontier programme of directed networks: what reaches what among the live nodes.

Arcs are decided one after the other. A state keeps, for every live node, which live nodes it reaches, and for
every terminal that has left, the live nodes that reach it (and, where connection must be mutual, those that
it reaches): the source, which is live from the first to the last arc, must reach one of them. Sets that
contain another such set are implied by it. What the source reaches already needs no relations of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np

from relparallel.reliability.directed.arcs import Arcs
from relparallel.reliability.programme.ordering import link_order, vertex_order

_SOURCE: Final = 0  # its slot


class State(NamedTuple):
    """Slots that each slot reaches (0: dead or empty); sets that must meet the source, or reach it."""

    reach: tuple[int, ...]
    into: frozenset[int]
    back: frozenset[int]


WORKS: Final = State((), frozenset(), frozenset())  # whatever comes

Taken = tuple[tuple[int, int], ...]  # parts that were decided, by their place in the step: up (0) or down (1)


@dataclass(frozen=True, slots=True)
class Step:
    """Slots that nodes enter, arcs (from, to), slots that leave, terminals to enter.

    ``parts`` are the slots of the chances of what enters (-1: never fails) and of the arcs; ``targets`` are
    the live terminals after the arcs.
    """

    enter: tuple[int, ...]
    arcs: tuple[tuple[int, int], ...]
    parts: tuple[int, ...]
    leave: tuple[int, ...]
    targets: int
    pending: int


class Plan(NamedTuple):
    """Steps of the programme, the most live nodes, and what connection means."""

    steps: list[Step]
    width: int
    mutual: bool
    single: bool


def planned(problem: Arcs, slot: Mapping[tuple[int, int], int]) -> Plan:
    """Arcs by pairs of nodes in an order that keeps few live."""
    source, targets, links = problem.source, frozenset(problem.targets), len(problem.edges)
    nodes = sorted({v for arc in slot for v in arc})
    number = {v: i for i, v in enumerate(nodes)}
    pairs = sorted({(min(arc), max(arc)) for arc in slot})
    edges = np.array([[number[u], number[v]] for u, v in pairs], dtype=np.int64)
    order = link_order(vertex_order(edges, np.isin(nodes, list(targets)), 1.0), edges).tolist()
    last = {v: i for i, row in enumerate(order) for v in pairs[row]}
    place, free, width, pending = {source: _SOURCE}, list[int](), 1, set(targets)
    steps = []
    for i, row in enumerate(order):
        pair, enter = pairs[row], []
        for v in pair:
            if v not in place:
                place[v] = free.pop() if free else width
                width = max(width, place[v] + 1)
                enter.append(v)
                pending.discard(v)
        both = [arc for arc in (pair, pair[::-1]) if arc in slot]
        gone = [v for v in pair if last[v] == i and v != source]
        chances = [-1 if v in targets else links + v for v in enter]
        steps.append(
            Step(
                enter=tuple(place[v] for v in enter),
                arcs=tuple((place[a], place[b]) for a, b in both),
                parts=(*chances, *(slot[arc] for arc in both)),
                leave=tuple(place[v] for v in gone),
                targets=sum(1 << place[v] for v in targets & set(place) if last[v] >= i),
                pending=len(pending),
            )
        )
        free += [place[v] for v in gone]
    return Plan(steps, width, problem.mutual, len(targets) == 1 and not problem.mutual)


def start(plan: Plan) -> State:
    """The source alone."""
    return State((1 << _SOURCE, *[0] * (plan.width - 1)), frozenset(), frozenset())


def outcomes(
    plan: Plan, step: Step, here: Sequence[Any], state: State
) -> Iterator[tuple[State | None, Taken]]:
    """States after a step, `WORKS`, or None for failure, each with the parts that it decides."""
    for begun, taken in _decide(step, here, state, plan.mutual):
        left = _leave(step, begun, plan.mutual, plan.single)
        done = left is not None and not step.pending and _done(left, step.targets, plan.mutual)
        yield WORKS if done else left, taken


def _decide(step: Step, here: Sequence[Any], state: State, mutual: bool) -> Iterable[tuple[State, Taken]]:
    """Let nodes enter and arcs be up or down."""
    cases: list[tuple[State, Taken]] = [(state, ())]
    for i, slot in enumerate(step.enter):
        alive = [(now._replace(reach=_put(now.reach, slot, 1 << slot)), taken) for now, taken in cases]
        if here[i][1]:
            cases = [(now, (*taken, (i, 1))) for now, taken in cases]
            cases = [(now, (*taken, (i, 0))) for now, taken in alive] + cases
        else:
            cases = alive
    for i, (a, b) in enumerate(step.arcs, len(step.enter)):
        more, fails = [], here[i][1]
        for now, taken in cases:
            tail, head = now.reach[a], now.reach[b]
            known = tail >> b & 1 or (not mutual and now.reach[_SOURCE] >> b & 1)
            if not tail or not head or known:
                more.append((now, taken))
                continue
            if fails:
                more += [(now, (*taken, (i, 1))), (_joined(now, a, head), (*taken, (i, 0)))]
            else:
                more.append((_joined(now, a, head), taken))
        cases = more
    return cases


def _joined(state: State, a: int, head: int) -> State:
    """Let slot a, and all that reaches it, reach these slots."""
    reach = tuple(row | head if row >> a & 1 else row for row in state.reach)
    into, back = state.into, state.back
    if into:
        into = frozenset(sum(1 << i for i, row in enumerate(reach) if row & found) for found in into)
    if back:
        back = frozenset(_union(reach, found) for found in back)
    return State(reach, into, back)


def _union(reach: Sequence[int], slots: int) -> int:
    """All that these slots reach."""
    found = 0
    for i, row in enumerate(reach):
        if slots >> i & 1:
            found |= row
    return found


def _leave(step: Step, state: State, mutual: bool, single: bool) -> State | None:
    """Let nodes leave; None if a terminal is cut off for good."""
    reach, into, back = state
    for slot in step.leave:
        bit = 1 << slot
        if step.targets & bit:
            into = into | {sum(1 << i for i, row in enumerate(reach) if row & bit)}
            back = back | {reach[slot]} if mutual else back
        reach = tuple(0 if i == slot else row & ~bit for i, row in enumerate(reach))
        into, back = frozenset(x & ~bit for x in into), frozenset(x & ~bit for x in back)
    if 0 in into or 0 in back:
        return None
    source = reach[_SOURCE]
    into = _smallest([x for x in into if not x & source])
    back = _smallest([x for x in back if not x & 1 << _SOURCE])
    if not mutual:
        reach = tuple(
            row if i == _SOURCE or not row else 1 << i if source >> i & 1 else row & ~source
            for i, row in enumerate(reach)
        )
    if single:
        reach = _towards(reach, step.targets, into)
    return State(reach, into, back)


def _towards(reach: tuple[int, ...], targets: int, into: frozenset[int]) -> tuple[int, ...]:
    """Forget what else is reached from where the only target is."""
    there = next(iter(into), 0)
    found = []
    for i, row in enumerate(reach):
        own = 1 << i
        if i != _SOURCE and row & targets and not own & targets:
            row = own | row & targets
        elif i != _SOURCE and own & there:
            row = own
        found.append(row)
    return tuple(found)


def _done(state: State, targets: int, mutual: bool) -> bool:
    """Whether every terminal is connected, whatever comes."""
    if state.into or state.back:
        return False
    live = sum(1 << i for i, row in enumerate(state.reach) if row) & targets
    if live & ~state.reach[_SOURCE]:
        return False
    return not mutual or all(row & 1 << _SOURCE for i, row in enumerate(state.reach) if live >> i & 1)


def _smallest(sets: list[int]) -> frozenset[int]:
    """The sets that contain no other."""
    if len(sets) < 2:
        return frozenset(sets)
    kept: list[int] = []
    for found in sorted(sets, key=int.bit_count):
        if not any(other & found == other for other in kept):
            kept.append(found)
    return frozenset(kept)


def _put(row: tuple[int, ...], slot: int, value: int) -> tuple[int, ...]:
    return (*row[:slot], value, *row[slot + 1 :])
