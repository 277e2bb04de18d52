"""Pairs of servers that forward, in a BCube or DCell of two levels or in a ring, seen by the wiring.

The forms are those of `server_centric_forms`; the terminals' own failures are left to the caller.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from relparallel.reliability.chances import CERTAIN, Chance, parallel, series
from relparallel.reliability.closed_forms.crowds import NEVER, Crowd, between
from relparallel.reliability.closed_forms.form_slopes import ClassSlopes
from relparallel.reliability.closed_forms.server_centric_forms import bcube_crowd, dcell_crowd
from relparallel.reliability.closed_forms.server_slopes import ring_slopes, server_slopes
from relparallel.reliability.problem import Problem
from relparallel.reliability.programme.frontier import NotExactError
from relparallel.reliability.result import Routing
from relparallel.topology import Topology

_MOST_PORTS = 48
IntArray = NDArray[np.int64]


class _Wiring(NamedTuple):
    """Neighbours of every node, the two servers, and the chances that parts of one kind share."""

    near: dict[int, list[int]]
    pair: list[int]
    problem: Problem

    def alike(self, nodes: Any) -> Chance:
        """Chance of these nodes, those of the pair left out."""
        return _one(self.problem.node[np.setdiff1d(nodes, self.pair)], "nodes of a kind")

    def cable(self) -> Chance:
        """Chance of every cable."""
        return _one(self.problem.link, "cables")

    def numbered(self, switches: IntArray) -> IntArray:
        """Place of every switch in a list, twice, [n, 2]; -1 for servers."""
        number = np.full(len(self.near), -1)
        number[switches] = np.arange(len(switches))
        return np.column_stack([number, number])


class ServerPair(NamedTuple):
    """What joins two servers."""

    chance: Chance
    form: str
    slopes: Callable[[], ClassSlopes]


def server_pair(topology: Topology, problem: Problem, routing: Routing) -> ServerPair:
    """Chance that two servers that are up reach each other, the name of the form, and its slopes."""
    pair = problem.terminals.tolist()
    if len(pair) != 2 or routing != "any" or not problem.transit.all() or len(problem.edges) == 0:
        raise NotExactError("its parts form no fabric of tiers that are alike, nor is it a pair of servers")
    near: dict[int, list[int]] = {v: [] for v in range(len(problem.node))}
    for u, v in problem.edges.tolist():
        near[u].append(v)
        near[v].append(u)
    wiring = _Wiring(near, pair, problem)
    if all(len(neighbours) == 2 for neighbours in near.values()):
        return _ring(wiring)
    servers = np.flatnonzero(topology.tier == 0)
    if not set(pair) <= set(servers.tolist()) or any(len(near[v]) != 2 for v in servers.tolist()):
        raise NotExactError("its parts form no fabric of tiers that are alike, nor a BCube, DCell or ring")
    switches = np.flatnonzero(topology.tier > 0)
    joined = [[v for v in near[s] if topology.tier[v] > 0] for s in servers.tolist()]
    if all(len(above) == 2 for above in joined):
        return _bcube(wiring, servers, switches, np.array(joined))
    if all(len(above) == 1 for above in joined):
        return _dcell(wiring, servers, switches, {int(s): a[0] for s, a in zip(servers, joined, strict=True)})
    raise NotExactError("its servers are joined neither as a BCube's nor as a DCell's")


def _ring(wiring: _Wiring) -> ServerPair:
    """Two nodes of one ring."""
    near, (source, target) = wiring.near, wiring.pair
    around, before, at = [source], source, near[source][0]
    while at != source:
        around.append(at)
        before, at = at, near[at][0] if near[at][0] != before else near[at][1]
    hops = len(around)
    if hops < len(near):
        raise NotExactError("it is more than one ring")
    there = around.index(target)
    up, cable = wiring.alike(np.arange(hops)), wiring.cable()
    ways = [series(*[cable] * d, *[up] * (d - 1)) for d in (there, hops - there)]

    def slopes() -> ClassSlopes:
        return ClassSlopes(parts=ring_slopes(wiring.problem, np.array(around)))

    return ServerPair(parallel(*ways), f"a pair of a ring of {hops}", slopes)


def _bcube(wiring: _Wiring, servers: IntArray, switches: IntArray, joined: IntArray) -> ServerPair:
    """Servers that join every row switch to every column switch."""
    ports = len(switches) // 2
    side = {int(joined[0, 0]): 0}
    todo = list(side)
    while todo:
        at = todo.pop()
        for far in (int(v) for s in wiring.near[at] for v in wiring.near[s] if v != at):
            if far not in side:
                side[far] = 1 - side[at]
                todo.append(far)
    pairs = {tuple(sorted(row, key=lambda v: side.get(v, 2))) for row in joined.tolist()}
    rows = sorted(v for v, level in side.items() if level == 0)
    columns = sorted(v for v, level in side.items() if level == 1)
    whole = len(pairs) == len(servers) == ports**2 and len(rows) == len(columns) == ports
    if not whole or not all(side[u] < side[v] for u, v in pairs) or not 2 <= ports <= _MOST_PORTS:
        raise NotExactError("its servers do not join every row switch to every column switch once")
    ends = wiring.numbered(np.array([*rows, *columns]))
    ends[servers] = np.sort(ends[joined, 0], axis=1)
    source, target = (int(ports * row + column - ports) for row, column in ends[wiring.pair])
    chances = wiring.alike(servers), wiring.alike(switches), wiring.cable()
    crowd = bcube_crowd(ports, source, target, *chances)
    return _in_crowd(wiring, crowd, ends, NEVER, f"a pair of a BCube of {ports}-port switches")


def _dcell(wiring: _Wiring, servers: IntArray, switches: IntArray, above: dict[int, int]) -> ServerPair:
    """Cells of servers, every two of which share one cable."""
    ports = len(switches) - 1
    ends = wiring.numbered(switches)
    for own, top in above.items():
        (partner,) = (v for v in wiring.near[own] if v != top)
        ends[own] = ends[top, 0], ends[above[partner], 0]
    seats = ends[servers]
    whole = len(set(map(tuple, seats.tolist()))) == len(servers) == ports * (ports + 1)
    if not whole or (seats[:, 0] == seats[:, 1]).any() or not 2 <= ports <= _MOST_PORTS:
        raise NotExactError("its cells do not share one cable each two")
    source, target = (int(here * ports + there - (there > here)) for here, there in ends[wiring.pair])
    server, switch, cable = wiring.alike(servers), wiring.alike(switches), wiring.cable()
    crowd = dcell_crowd(ports, source, target, server, switch, cable, cable)
    direct = cable if wiring.pair[0] in wiring.near[wiring.pair[1]] else NEVER
    return _in_crowd(wiring, crowd, ends, direct, f"a pair of a DCell of {ports}-port switches")


def _in_crowd(wiring: _Wiring, crowd: Crowd, ends: IntArray, direct: Chance, form: str) -> ServerPair:
    """A pair in a crowd, and a cable of its own."""
    middle = between(crowd)

    def slopes() -> ClassSlopes:
        found = server_slopes(wiring.problem, crowd, ends, middle[1])
        return ClassSlopes(parts=found)

    return ServerPair(parallel(direct, middle), form, slopes)


def _one(chances: NDArray[np.float64], kind: str) -> Chance:
    """The one chance of parts of a kind."""
    distinct = set(map(tuple, chances.tolist())) or {CERTAIN}
    if len(distinct) > 1:
        raise NotExactError(f"{kind} must have one chance for a closed form")
    return distinct.pop()
