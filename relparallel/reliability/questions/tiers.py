"""A tiered network as up-down routing sees it: the nodes that can help, and their cables upwards."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from relparallel.reliability.chances import CERTAIN, Chance, series
from relparallel.reliability.problem import Problem

Cables = dict[int, list[tuple[int, Chance]]]  #: the other end and the chance of every cable of a node


@dataclass(frozen=True, slots=True)
class Tiers:
    """Terminals, the nodes that two of them climb to, and everything between."""

    terminals: tuple[int, ...]
    node: dict[int, Chance]
    below: Cables
    above: Cables
    mute: frozenset[int]


class Swept(NamedTuple):
    """What a sweep found: all terminals joined, or not, and the mass that it does not know of."""

    chance: Chance
    dropped: float
    width: int
    visited: int


def roots(problem: Problem, arcs: NDArray[np.int64]) -> tuple[Chance, tuple[int, ...]]:
    """Replace terminals whose only cable leads upwards by its upper end, as long as there are two."""
    cables: dict[int, list[int]] = {}
    for e, ends in enumerate(arcs.tolist()):
        for v in ends:
            cables.setdefault(v, []).append(e)
    terminals = dict.fromkeys(problem.terminals.tolist())
    always = series(*(_pair(problem.node[v]) for v in terminals))
    todo = list(terminals)
    while todo and len(terminals) > 1:
        v = todo.pop()
        only = cables.get(v, [])
        if len(only) != 1 or arcs[only[0], 0] != v or not problem.transit[arcs[only[0], 1]]:
            continue
        parent = int(arcs[only[0], 1])
        del terminals[v]
        always = series(always, _pair(problem.link[only[0]]))
        if parent not in terminals:
            terminals[parent] = None
            always = series(always, _pair(problem.node[parent]))
            todo.append(parent)
    return always, tuple(terminals)


def tiers_of(problem: Problem, arcs: NDArray[np.int64], terminals: tuple[int, ...]) -> Tiers:
    """Keep what lies between a terminal and a node that two terminals climb to."""
    below: Cables = {}
    for (low, high), chance in zip(arcs.tolist(), problem.link, strict=True):
        if low >= 0:
            below.setdefault(high, []).append((low, _pair(chance)))
    useful = _useful(below, terminals)
    below = {v: [cable for cable in below.get(v, []) if cable[0] in useful] for v in useful}
    above: Cables = {v: [] for v in useful}
    for v, cables in below.items():
        for u, chance in cables:
            above[u].append((v, chance))
    node = {v: CERTAIN if v in terminals else _pair(problem.node[v]) for v in useful}
    mute = frozenset(v for v in terminals if not problem.transit[v])
    return Tiers(terminals=terminals, node=node, below=below, above=above, mute=mute)


def _useful(below: Cables, terminals: tuple[int, ...]) -> set[int]:
    """Nodes between a terminal and a node that two terminals climb to; the terminals themselves."""
    climbers: dict[int, int] = {}

    def seen(v: int) -> int:
        if v not in climbers:
            climbers[v] = sum(1 << i for i, t in enumerate(terminals) if t == v)
            for u, _ in below.get(v, []):
                climbers[v] |= seen(u)
        return climbers[v]

    todo = [v for v in {*below, *terminals} if seen(v).bit_count() > 1]
    useful = {*todo, *terminals}
    while todo:
        for u, _ in below.get(todo.pop(), []):
            if u not in useful and seen(u):
                useful.add(u)
                todo.append(u)
    return useful


def order_of(before: Cables, after: Cables, rank: Mapping[int, int] | None = None) -> list[int]:
    """Order nodes so that each comes behind those before it, and few are live."""
    waits = {v: len(cables) for v, cables in before.items()}
    left = {v: len(cables) for v, cables in after.items()}
    ready, order = {v for v in before if not waits[v]}, list[int]()

    def price(v: int) -> tuple[int, int, int, int]:
        gone = sum(left[u] == 1 for u, _ in before[v])
        soon = min((waits[u] for u, _ in after[v]), default=0)
        return bool(after[v]) - gone, soon, rank[v] if rank else 0, v

    while ready:
        v = min(ready, key=price)
        ready.remove(v)
        order.append(v)
        for u, _ in before[v]:
            left[u] -= 1
        for u, _ in after[v]:
            waits[u] -= 1
            if not waits[u]:
                ready.add(u)
    return order


def _pair(values: NDArray[np.float64]) -> Chance:
    up, down = values.tolist()
    return up, down
