"""A reliability question ready for sampling: what must be up set apart, what cannot matter removed.

All estimators but the crude one draw on the same small network. Terminals never fail there (their
own chances are set apart), leaves are gone, perfect links between perfect nodes are contracted and
parallel links are one. What was set apart enters the answer exactly: U = failed + alive *
U(network).
"""

import math
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from relparallel.reliability.probability import Chance, series
from relparallel.reliability.problem import Problem, require_relays

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]


class Network(NamedTuple):
    """Arrays for the kernels; parts are the links 0..m-1 and then the nodes m..m+n-1."""

    ends: IntArray
    first: IntArray
    around: IntArray
    up: FloatArray
    down: FloatArray
    rate: FloatArray
    terminal: NDArray[np.bool_]


class Apart(NamedTuple):
    """What is certain, and the network that is left to sample: None where nothing is."""

    alive: float
    failed: float
    network: Network | None


@dataclass(slots=True)
class _Draft:
    """The network while it shrinks: chances of links by pair of nodes, and of nodes."""

    links: dict[int, dict[int, Chance]]
    nodes: dict[int, Chance]
    terminals: set[int]
    apart: Chance = field(default=(1.0, 0.0))

    def join(self, u: int, v: int, chance: Chance) -> None:
        """Add a link; beside another one it makes a pair of which one has to be up."""
        if v in self.links[u]:
            (up, down), (more, less) = self.links[u][v], chance
            chance = up + down * more, down * less
        self.links[u][v] = self.links[v][u] = chance

    def remove(self, v: int) -> dict[int, Chance]:
        """Take a node out; returns its links."""
        near = self.links.pop(v)
        for u in near:
            del self.links[u][v]
        return near

    def require(self, v: int) -> None:
        """Make a node a terminal: its own failure is set apart."""
        if v not in self.terminals:
            self.apart = series(self.apart, self.nodes[v])
            self.nodes[v] = (1.0, 0.0)
            self.terminals.add(v)

    def reached(self) -> set[int]:
        """Nodes that a path could join to the first terminal."""
        todo = [min(self.terminals)]
        found = set(todo)
        while todo:
            fresh = self.links[todo.pop()].keys() - found
            found |= fresh
            todo += fresh
        return found


def sampling_network(problem: Problem) -> Apart:
    """Set apart what must be up and reduce the rest, in time linear in the size of the network."""
    require_relays(problem)
    draft = _draft(problem)
    for v in problem.terminals.tolist():
        draft.require(v)
    found = draft.reached()
    if draft.apart[0] == 0.0 or not draft.terminals <= found:
        return Apart(0.0, 1.0, None)
    for v in draft.links.keys() - found:
        draft.remove(v)
    size = math.inf
    # a node that became a terminal no longer fails: its links may be perfect
    while len(draft.links) < size:
        size = len(draft.links)
        _contract(draft)
        _strip(draft)
    network = _arrays(draft) if len(draft.terminals) > 1 else None
    return Apart(float(draft.apart[0]), float(draft.apart[1]), network)


def _draft(problem: Problem) -> _Draft:
    """Links that can be up, between nodes that can."""
    nodes = {v: (up, down) for v, (up, down) in enumerate(problem.node.tolist())}
    wanted = set(problem.terminals.tolist())
    alive = [v for v, (up, _) in nodes.items() if up > 0 or v in wanted]
    draft = _Draft(links={v: {} for v in alive}, nodes=nodes, terminals=set())
    for (u, v), (up, down) in zip(problem.edges.tolist(), problem.link.tolist(), strict=True):
        if up > 0 and u in draft.links and v in draft.links:
            draft.join(u, v, (up, down))
    return draft


def _contract(draft: _Draft) -> None:
    """Make one node of two that can never be separated."""
    todo = [(u, v) for u, near in draft.links.items() for v in near if u < v]
    while todo:
        u, v = todo.pop()
        chance = draft.links.get(u, {}).get(v)
        if chance is None or chance[1] > 0 or draft.nodes[u][1] > 0 or draft.nodes[v][1] > 0:
            continue
        for w, link in draft.remove(v).items():
            if w != u:
                draft.join(u, w, link)
                todo.append((u, w))
        if v in draft.terminals:
            draft.terminals.remove(v)
            draft.terminals.add(u)


def _strip(draft: _Draft) -> None:
    """Remove leaves: a non-terminal leads nowhere, a terminal needs its link and its neighbour."""
    todo = list(draft.links)
    while todo:
        v = todo.pop()
        if v not in draft.links or len(draft.links[v]) > 1 or draft.terminals == {v}:
            continue
        for u, link in draft.remove(v).items():
            if v in draft.terminals:
                draft.apart = series(draft.apart, link)
                draft.require(u)
            todo.append(u)
        draft.terminals.discard(v)


def _arrays(draft: _Draft) -> Network:
    """The network with its nodes numbered from 0."""
    place = {v: i for i, v in enumerate(sorted(draft.links))}
    rows = sorted(
        (place[u], place[v], link)
        for u, near in draft.links.items()
        for v, link in near.items()
        if u < v
    )
    ends = np.array([(u, v) for u, v, _ in rows], dtype=np.int64)
    chances = np.array(
        [link for _, _, link in rows] + [draft.nodes[v] for v in place], dtype=np.float64
    )
    n, up, down = len(place), np.minimum(chances[:, 0], 1.0), chances[:, 1].copy()
    first = np.zeros(n + 1, dtype=np.int64)
    np.cumsum(np.bincount(ends.ravel(), minlength=n), out=first[1:])
    return Network(
        ends=ends,
        first=first,
        around=np.argsort(ends.ravel(), kind="stable") // 2,
        up=up,
        down=down,
        rate=_rates(up, down),
        terminal=np.array([v in draft.terminals for v in place]),
    )


def _rates(up: FloatArray, down: FloatArray) -> FloatArray:
    """-ln(down), taken from the smaller of the two chances."""
    rare = (down > 0.5) & (up < 0.5)
    seldom = -np.log1p(-np.where(rare, up, 0.0))
    return np.where(rare, seldom, -np.log(np.where(down > 0, down, 1.0)) + 0.0)
