"""Pairs of servers that forward, in a BCube or DCell of two levels or in a ring, seen by the wiring.

The forms are those of `server_centric_forms`; the terminals' own failures are left to the caller.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from relparallel.reliability.chances import CERTAIN, Chance, parallel, part, series
from relparallel.reliability.closed_forms.server_centric_forms import bcube_pair, dcell_pair
from relparallel.reliability.problem import Problem
from relparallel.reliability.programme.frontier import NotExactError
from relparallel.reliability.result import Reliability, Routing
from relparallel.topology import Topology

__all__ = ["server_pair"]

_MOST_PORTS = 48
IntArray = NDArray[np.int64]


class _Wiring(NamedTuple):
    """Neighbours of every node, the two servers, and the chances that parts of one kind share."""

    near: dict[int, list[int]]
    pair: list[int]
    problem: Problem

    def alike(self, nodes: Any) -> float:
        """Up-probability of these nodes, those of the pair left out."""
        return _one(self.problem.node[np.setdiff1d(nodes, self.pair)], "nodes of a kind")

    def cable(self) -> float:
        """Up-probability of every cable."""
        return _one(self.problem.link, "cables")


def server_pair(topology: Topology, problem: Problem, routing: Routing) -> tuple[Chance, str]:
    """Chance that two servers that are up reach each other, and the name of the form.

    Parameters
    ----------
    topology : Topology
        Its tiers tell servers from switches.
    problem : Problem
        The same network with its chances and terminals.
    routing : {"any", "updown"}
        Forms are for any path.

    Returns
    -------
    (Chance, str)

    Raises
    ------
    NotExactError
        If no form applies.

    Examples
    --------
    >>> from relparallel.reliability.problem import read_problem
    >>> from relparallel.topology import bcube
    >>> chance, form = server_pair(bcube(4, 1), read_problem(bcube(4, 1), (0, 15), 0.9, 1.0), "any")
    >>> print(f"{chance[1]:.4e}, {form}")
    2.2628e-02, a pair of a BCube of 4-port switches
    """
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


def _ring(wiring: _Wiring) -> tuple[Chance, str]:
    """Two nodes of one ring."""
    near, (source, target) = wiring.near, wiring.pair
    before, at, hops, there = source, near[source][0], 1, 0
    while at != source:
        there = hops if at == target else there
        before, at = at, near[at][0] if near[at][0] != before else near[at][1]
        hops += 1
    if hops < len(near):
        raise NotExactError("it is more than one ring")
    up, cable = wiring.alike(np.arange(len(near))), wiring.cable()
    ways = [series(*[part(cable)] * d, *[part(up)] * (d - 1)) for d in (there, hops - there)]
    return parallel(*ways), f"a pair of a ring of {hops}"


def _bcube(wiring: _Wiring, servers: IntArray, switches: IntArray, joined: IntArray) -> tuple[Chance, str]:
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
    ends = [sorted(wiring.near[server], key=side.__getitem__) for server in wiring.pair]
    source, target = (ports * rows.index(row) + columns.index(column) for row, column in ends)
    server, switch = wiring.alike(servers), wiring.alike(switches)
    found = bcube_pair(ports, source, target, server, switch, wiring.cable(), end_up=1.0)
    return _chance(found), f"a pair of a BCube of {ports}-port switches"


def _dcell(
    wiring: _Wiring, servers: IntArray, switches: IntArray, above: dict[int, int]
) -> tuple[Chance, str]:
    """Cells of servers, every two of which share one cable."""
    ports = len(switches) - 1
    cell = {v: i for i, v in enumerate(switches.tolist())}
    ends = {}
    for own, top in above.items():
        (partner,) = (v for v in wiring.near[own] if v != top)
        ends[own] = cell[top], cell[above[partner]]
    whole = len(set(ends.values())) == len(servers) == ports * (ports + 1)
    if not whole or any(here == there for here, there in ends.values()) or not 2 <= ports <= _MOST_PORTS:
        raise NotExactError("its cells do not share one cable each two")
    seats = (ends[v] for v in wiring.pair)
    source, target = (here * ports + there - (there > here) for here, there in seats)
    server, switch = wiring.alike(servers), wiring.alike(switches)
    found = dcell_pair(ports, source, target, server, switch, wiring.cable(), end_up=1.0)
    return _chance(found), f"a pair of a DCell of {ports}-port switches"


def _one(chances: NDArray[np.float64], kind: str) -> float:
    """The one up-probability of parts of a kind."""
    distinct = set(map(tuple, chances.tolist())) or {CERTAIN}
    up, down = distinct.pop()
    if distinct or (up, down) != part(up):
        raise NotExactError(
            f"{kind} must have one chance for a closed form, at least the last digit of 1 - up"
        )
    return float(up)


def _chance(found: Reliability) -> Chance:
    """A form's result as a chance."""
    return float(found.reliability), float(found.unreliability)
