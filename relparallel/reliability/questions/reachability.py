"""The frontier programme of directed networks: what reaches what among the live nodes.

Arcs are decided one after the other. A state keeps, for every live node, which live nodes it reaches, and for
every terminal that has left, the live nodes that reach it (and, where connection must be mutual, those that
it reaches): the source, which is live from the first to the last arc, must reach one of them. Sets that
contain another such set are implied by it. What the source reaches already needs no relations of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from relparallel.reliability.chances import CERTAIN, Chance
from relparallel.reliability.programme.ordering import link_order, vertex_order
from relparallel.reliability.programme.plain_sweep import too_many_states

__all__ = ["sweep_arcs"]

_SOURCE = 0  # its slot

Arcs = Mapping[tuple[int, int], Chance]


class _State(NamedTuple):
    """Slots that each slot reaches (0: dead or empty); sets that must meet the source, or reach it."""

    reach: tuple[int, ...]
    into: frozenset[int]
    back: frozenset[int]


@dataclass(frozen=True, slots=True)
class _Step:
    """Nodes that enter (slot, chance), arcs (from, to, chance), slots that leave, terminals to enter.

    ``targets`` are the slots of live terminals after the arcs.
    """

    enter: tuple[tuple[int, Chance], ...]
    arcs: tuple[tuple[int, int, Chance], ...]
    leave: tuple[int, ...]
    targets: int
    pending: int


def sweep_arcs(
    arcs: Arcs, node: Mapping[int, Chance], source: int, targets: Sequence[int], mutual: bool, max_states: int
) -> tuple[Chance, int, int]:
    """Mass of success and of failure, the most live nodes, and the states visited.

    Parameters
    ----------
    arcs : Mapping of (int, int) to (up, down)
        Every node is on a way between terminals.
    node : Mapping of int to (up, down)
        Chances of the nodes that are no terminals.
    source : int
        Must reach all targets.
    targets : sequence of int
        At least one, without the source.
    mutual : bool
        Whether the targets must reach the source as well.
    max_states : int
        Most states in a layer, about.

    Returns
    -------
    chance : (up, down)
        That the terminals are connected.
    width, visited : int
        Most nodes that are live at once; states of all layers.

    Raises
    ------
    NotExactError
        If a layer holds more states.
    """
    steps, width = _steps(arcs, node, source, frozenset(targets))
    single = len(targets) == 1 and not mutual
    start = _State((1 << _SOURCE, *[0] * (width - 1)), frozenset(), frozenset())
    layer, success, failure, visited = {start: 1.0}, 0.0, 0.0, 0
    for step in steps:
        after: dict[_State, float] = {}
        for state, mass in layer.items():
            if len(after) > max_states:
                raise too_many_states(max_states)
            for begun, share in _decide(step, state, mass, mutual):
                left = _leave(step, begun, mutual, single)
                if left is None:
                    failure += share
                elif not step.pending and _done(left, step.targets, mutual):
                    success += share
                else:
                    after[left] = after.get(left, 0.0) + share
        layer = after
        visited += len(layer)
    return (success + sum(layer.values()), failure), width, visited


def _steps(
    arcs: Arcs, node: Mapping[int, Chance], source: int, targets: frozenset[int]
) -> tuple[list[_Step], int]:
    """Arcs by pairs of nodes in an order that keeps few live, with the slots of the nodes."""
    nodes = sorted({v for arc in arcs for v in arc})
    number = {v: i for i, v in enumerate(nodes)}
    pairs = sorted({(min(arc), max(arc)) for arc in arcs})
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
                enter.append((place[v], CERTAIN if v in targets else node[v]))
                pending.discard(v)
        both = [(a, b) for a, b in (pair, pair[::-1]) if (a, b) in arcs]
        gone = [v for v in pair if last[v] == i and v != source]
        live = sum(1 << place[v] for v in targets & set(place) if last[v] >= i)
        steps.append(
            _Step(
                enter=tuple(enter),
                arcs=tuple((place[a], place[b], arcs[a, b]) for a, b in both),
                leave=tuple(place[v] for v in gone),
                targets=live,
                pending=len(pending),
            )
        )
        free += [place[v] for v in gone]
    return steps, width


def _decide(step: _Step, state: _State, mass: float, mutual: bool) -> Iterator[tuple[_State, float]]:
    """Let nodes enter and arcs be up or down."""
    cases = [(state, mass)]
    for slot, (up, down) in step.enter:
        alive = [(now._replace(reach=_put(now.reach, slot, 1 << slot)), share * up) for now, share in cases]
        cases = alive + [(now, share * down) for now, share in cases if down]
    for a, b, (up, down) in step.arcs:
        more = []
        for now, share in cases:
            tail, head = now.reach[a], now.reach[b]
            known = tail >> b & 1 or (not mutual and now.reach[_SOURCE] >> b & 1)
            if not tail or not head or known:
                more.append((now, share))
                continue
            if down:
                more.append((now, share * down))
            more.append((_joined(now, a, head), share * up))
        cases = more
    yield from cases


def _joined(state: _State, a: int, head: int) -> _State:
    """Let slot a, and all that reaches it, reach these slots."""
    reach = tuple(row | head if row >> a & 1 else row for row in state.reach)
    into = frozenset(sum(1 << i for i, row in enumerate(reach) if row & found) for found in state.into)
    back = frozenset(_union(reach, found) for found in state.back)
    return _State(reach, into, back)


def _union(reach: Sequence[int], slots: int) -> int:
    """All that these slots reach."""
    found = 0
    for i, row in enumerate(reach):
        if slots >> i & 1:
            found |= row
    return found


def _leave(step: _Step, state: _State, mutual: bool, single: bool) -> _State | None:
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
    into = _smallest(x for x in into if not x & source)
    back = _smallest(x for x in back if not x & 1 << _SOURCE)
    if not mutual:
        reach = tuple(
            row if i == _SOURCE or not row else 1 << i if source >> i & 1 else row & ~source
            for i, row in enumerate(reach)
        )
    if single:
        reach = _towards(reach, step.targets, into)
    return _State(reach, into, back)


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


def _done(state: _State, targets: int, mutual: bool) -> bool:
    """Whether every terminal is connected, whatever comes."""
    if state.into or state.back:
        return False
    live = sum(1 << i for i, row in enumerate(state.reach) if row) & targets
    if live & ~state.reach[_SOURCE]:
        return False
    return not mutual or all(row & 1 << _SOURCE for i, row in enumerate(state.reach) if live >> i & 1)


def _smallest(sets: Iterable[int]) -> frozenset[int]:
    """The sets that contain no other."""
    kept: list[int] = []
    for found in sorted(sets, key=int.bit_count):
        if not any(other & found == other for other in kept):
            kept.append(found)
    return frozenset(kept)


def _put(row: tuple[int, ...], slot: int, value: int) -> tuple[int, ...]:
    return (*row[:slot], value, *row[slot + 1 :])
