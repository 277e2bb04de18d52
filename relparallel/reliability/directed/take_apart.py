"""Simplify a directed network: arcs off every way between terminals go, nodes on a single way become arcs."""

from __future__ import annotations

from collections.abc import Set
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from relparallel.reliability.directed.arcs import Arcs
from relparallel.reliability.programme.tape import PARALLEL, SERIES

Pair = tuple[int, int]


class Simplified(NamedTuple):
    """What is left."""

    slot: dict[Pair, int]
    tape: NDArray[np.int64]
    slots: int
    connected: bool


def simplified(problem: Arcs) -> Simplified:
    """Drop and replace arcs until nothing changes.

    Notes
    -----
    Arcs lead to the source or on from a sole target only where connection is mutual. A node that is no
    terminal and has one way in and one way out is an arc; so is one with a way in and back to the same node.
    """
    slots = _Slots(problem)
    source, targets, mutual = problem.source, frozenset(problem.targets), problem.mutual
    if not mutual:
        slots.drop({(u, v) for u, v in slots.arcs if v == source or targets == {u}})
    terminals, changed = targets | {source}, True
    while changed:
        turned = {(v, u) for u, v in slots.arcs}
        after, before = _reached(slots.arcs, {source}), _reached(turned, terminals if mutual else targets)
        if not targets <= after or (mutual and not targets <= _reached(turned, {source})):
            return Simplified({}, slots.rows(), slots.count, False)
        slots.drop({(u, v) for u, v in slots.arcs if u not in after or v not in before})
        inner = sorted({v for arc in slots.arcs for v in arc} - terminals)
        changed = sum(slots.shortcut(v) for v in inner) > 0
    return Simplified(slots.arcs, slots.rows(), slots.count, True)


class _Slots:
    """The arcs that are left, the slots of their chances, and the tape that fills these."""

    def __init__(self, problem: Arcs) -> None:
        self.links, self.count = len(problem.edges), len(problem.edges) + len(problem.node)
        self.tape: list[tuple[int, int, int, int, int]] = []
        self.arcs: dict[Pair, int] = {}
        self.heads: dict[int, set[int]] = {}
        self.tails: dict[int, set[int]] = {}
        usable = (problem.link[:, 0] > 0) & (problem.node[:, 0] > 0)[problem.edges].all(axis=1)
        for row in np.flatnonzero(usable).tolist():
            self.put((int(problem.edges[row, 0]), int(problem.edges[row, 1])), row)

    def rows(self) -> NDArray[np.int64]:
        """The tape as an array."""
        return np.array(self.tape, dtype=np.int64).reshape(-1, 5)

    def fill(self, code: int, a: int, b: int, c: int = -1) -> int:
        """Write a row of the tape; return its slot."""
        self.tape.append((code, self.count, a, b, c))
        self.count += 1
        return self.count - 1

    def put(self, arc: Pair, slot: int) -> None:
        """Add an arc, beside the one that is there."""
        self.arcs[arc] = self.fill(PARALLEL, self.arcs[arc], slot) if arc in self.arcs else slot
        self.heads.setdefault(arc[0], set()).add(arc[1])
        self.tails.setdefault(arc[1], set()).add(arc[0])

    def take(self, arc: Pair) -> int:
        """Remove an arc; return its slot."""
        self.heads[arc[0]].discard(arc[1])
        self.tails[arc[1]].discard(arc[0])
        return self.arcs.pop(arc)

    def drop(self, arcs: Set[Pair]) -> None:
        """Remove arcs."""
        for arc in arcs:
            self.take(arc)

    def shortcut(self, v: int) -> bool:
        """Simplify at a node with a single way in or out; return whether anything changed."""
        tails, heads = self.tails.get(v, set()), self.heads.get(v, set())
        useless = {(v, a) for a in tails if len(tails) == 1} | {(b, v) for b in heads if len(heads) == 1}
        useless &= self.arcs.keys()
        if useless:
            self.drop(useless)
            return True
        if len(tails) != 1 or len(heads) != 1:
            return False
        (a,), (b,) = tails, heads
        first, last = self.take((a, v)), self.take((v, b))
        self.put((a, b), self.fill(SERIES, first, self.links + v, last))
        return True


def _reached(arcs: Set[Pair] | dict[Pair, int], start: Set[int]) -> set[int]:
    """All nodes that these reach."""
    heads: dict[int, list[int]] = {}
    for u, v in arcs:
        heads.setdefault(u, []).append(v)
    found, todo = set(start), list(start)
    while todo:
        for v in heads.get(todo.pop(), []):
            if v not in found:
                found.add(v)
                todo.append(v)
    return found
