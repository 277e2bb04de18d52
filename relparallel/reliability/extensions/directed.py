"""Directed networks, whose arcs work one way: the frontier DP of what reaches what.

Exact answers only, by the generic sweep: no bounds, no samples and no importance of directed networks.
Arcs are decided one after the other. A state keeps, for every live node, which live nodes it reaches, and for
every terminal that has left, the live nodes that reach it: the source, which is live from the first to the
last arc, must reach one of them. Sets that contain another such set are implied by it. What the source
reaches already needs no relations of its own.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

import networkx as nx
import numpy as np

from relparallel._checks import require_instance
from relparallel.reliability.frontier.generic_sweep import WORKS, Move, sweep
from relparallel.reliability.frontier.ordering import link_order, vertex_order
from relparallel.reliability.probability import Chance, parallel, series
from relparallel.reliability.problem import (
    LinkChance,
    NodeChance,
    Parts,
    Problem,
    Terminals,
    of_one_kind,
    read_chances,
)
from relparallel.reliability.result import Reliability, exactly

_STATES: Final = 2**18  # largest layer of the sweep in plain Python
_SOURCE: Final = 0  # its slot


def read_arcs(
    graph: nx.DiGraph[Any],
    terminals: Terminals,
    link: tuple[LinkChance, LinkChance | None],
    node: tuple[NodeChance, NodeChance | None],
) -> Problem:
    """Check the arguments of `evaluate` for a directed graph; parallel arcs become one, loops none."""
    if not isinstance(graph, nx.Graph) or not graph.is_directed():
        raise TypeError(f"graph must be a directed networkx graph, got {graph!r}")
    if isinstance(terminals, str):
        raise ValueError(f"terminals must name the source, and then the others, got {terminals!r}")
    require_instance((tuple, list, range, np.ndarray), terminals=terminals)
    index = {label: v for v, label in enumerate(graph)}
    chosen = [index.get(label, -1) for label in terminals]
    if not chosen or min(chosen) < 0 or len(set(chosen)) < len(chosen):
        raise ValueError(f"terminals must be one or more distinct nodes of the graph, got {terminals!r}")
    arcs, records = list(graph.edges()), [data for *_, data in graph.edges(data=True)]
    links = read_chances(_parts("link", arcs, records), *link)
    nodes = read_chances(_parts("node", list(index), [data for _, data in graph.nodes(data=True)]), *node)
    merged: dict[tuple[int, int], Chance] = {}
    for (u, v), chance in zip(arcs, links.tolist(), strict=True):
        if u != v:
            merged[index[u], index[v]] = parallel(merged.get((index[u], index[v]), (0, 1)), chance)
    found = Problem(
        edges=np.array(list(merged), np.int64).reshape(-1, 2),
        link=np.array(list(merged.values()), dtype=links.dtype).reshape(-1, 2),
        node=nodes,
        terminals=np.array(chosen),
        transit=np.ones(len(index), dtype=np.bool_),
        directed=True,
    )
    return of_one_kind(found)


def _parts(name: str, labels: list[Any], records: Sequence[Mapping[str, Any]]) -> Parts:
    """Arcs or nodes of a directed graph, as arguments name them."""
    place = {label: i for i, label in enumerate(labels)}

    def row(argument: str, label: Any) -> int:
        if label not in place:
            what = "arcs (tail, head)" if name == "link" else "nodes"
            raise ValueError(f"{argument} must name {what} of the graph, got {label!r}")
        return place[label]

    def column(argument: str, attribute: str) -> list[Any]:
        if not all(attribute in record for record in records):
            raise ValueError(f"{argument} must name an attribute that every {name} has, got {attribute!r}")
        return [record[attribute] for record in records]

    return Parts(name, len(labels), row, column)


class State(NamedTuple):
    """Slots that each slot reaches (0: dead or empty); sets of which the source must reach one."""

    reach: tuple[int, ...]
    into: frozenset[int]


class _Step(NamedTuple):
    """Slots that nodes enter with their chances, arcs (from, to, chance), slots that leave.

    ``targets`` are the live terminals after the arcs, ``pending`` the number of those still to enter.
    """

    enter: tuple[tuple[int, Chance], ...]
    arcs: tuple[tuple[int, int, Chance], ...]
    leave: tuple[int, ...]
    targets: int
    pending: int


def solve_directed(problem: Problem, max_states: float = _STATES) -> Reliability:
    """Probability that all terminals are up and connected; at most 2^(w^2) states, w the live nodes."""
    always = series(*map(tuple, problem.node[problem.terminals].tolist()))
    if len(problem.terminals) == 1:
        return exactly(*always, "exact")
    chance = _useful_arcs(problem)
    if not chance:
        return exactly(*series(always, (0, 1)), "exact")
    steps, width = _steps(problem, chance)
    start = State((1 << _SOURCE, *[0] * (width - 1)), frozenset())
    found = sweep(start, (Move(partial(_outcomes, step)) for step in steps), min(max_states, _STATES))
    works, fails = series(always, (found.up, found.down))
    reason = f"{found.visited} states, width {width}"
    return exactly(works, fails, "exact", width=width, states=found.visited, reason=reason)


def _useful_arcs(problem: Problem) -> dict[tuple[int, int], Chance]:
    """Arcs on ways between terminals; none where these are not connected even if all parts work."""
    source, *targets = problem.terminals.tolist()
    usable = (problem.link[:, 0] > 0) & (problem.node[:, 0] > 0)[problem.edges].all(axis=1)
    graph: nx.DiGraph[int] = nx.DiGraph(problem.edges[usable].tolist())
    graph.add_nodes_from([source, *targets])
    after = {source, *nx.descendants(graph, source)}
    if not after.issuperset(targets):
        return {}
    before, end = set(targets).union(*(nx.ancestors(graph, v) for v in targets)), targets[-1]
    return {
        (u, v): tuple(chance)
        for (u, v), chance in zip(problem.edges[usable].tolist(), problem.link[usable].tolist(), strict=True)
        if u in after and v in before and v != source and (u != end or len(targets) > 1)
    }


def _steps(problem: Problem, chance: Mapping[tuple[int, int], Chance]) -> tuple[list[_Step], int]:
    """Arcs by pairs of nodes in an order that keeps few live, and the most that are."""
    source, targets = int(problem.terminals[0]), frozenset(problem.terminals[1:].tolist())
    nodes = sorted({v for arc in chance for v in arc})
    number = {v: i for i, v in enumerate(nodes)}
    pairs = sorted({(min(arc), max(arc)) for arc in chance})
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
                enter.append((place[v], (1, 0) if v in targets else tuple(problem.node[v].tolist())))
                pending.discard(v)
        leave = tuple(place[v] for v in pair if last[v] == i and v != source)
        step = _Step(
            enter=tuple(enter),
            arcs=tuple((place[a], place[b], chance[a, b]) for a, b in (pair, pair[::-1]) if (a, b) in chance),
            leave=leave,
            targets=sum(1 << place[v] for v in targets & set(place) if last[v] >= i),
            pending=len(pending),
        )
        steps.append(step)
        free += leave
    return steps, width


def _outcomes(step: _Step, state: State, mass: Any) -> Iterator[tuple[Hashable, Any]]:
    """Let nodes enter, arcs be up or down, and nodes leave."""
    cases = [(state, mass)]
    for slot, (up, down) in step.enter:
        alive = [(now._replace(reach=_put(now.reach, slot, 1 << slot)), share * up) for now, share in cases]
        cases = alive + [(now, share * down) for now, share in cases if down]
    for a, b, (up, down) in step.arcs:
        more = []
        for now, share in cases:
            tail, head = now.reach[a], now.reach[b]
            known = (tail | now.reach[_SOURCE]) >> b & 1
            if not tail or not head or known:
                more.append((now, share))
                continue
            more.append((_joined(now, a, head), share * up))
            if down:
                more.append((now, share * down))
        cases = more
    for now, share in cases:
        left = _leave(step, now)
        done = left is not None and not step.pending and _done(step, left)
        yield (WORKS if done else left), share


def _joined(state: State, a: int, head: int) -> State:
    """Let slot a, and all that reaches it, reach these slots."""
    reach = tuple(row | head if row >> a & 1 else row for row in state.reach)
    into = frozenset(sum(1 << i for i, row in enumerate(reach) if row & found) for found in state.into)
    return State(reach, into)


def _leave(step: _Step, state: State) -> State | None:
    """Let nodes leave; None if a terminal is cut off for good."""
    reach, into = state
    for slot in step.leave:
        bit = 1 << slot
        if step.targets & bit:
            into = into | {sum(1 << i for i, row in enumerate(reach) if row & bit)}
        reach = tuple(0 if i == slot else row & ~bit for i, row in enumerate(reach))
        into = frozenset(x & ~bit for x in into)
    if 0 in into:
        return None
    source = reach[_SOURCE]
    into = _smallest(x for x in into if not x & source)
    reach = tuple(
        row if i == _SOURCE or not row else 1 << i if source >> i & 1 else row & ~source
        for i, row in enumerate(reach)
    )
    return State(reach, into)


def _done(step: _Step, state: State) -> bool:
    """Whether the source reaches every terminal, whatever comes."""
    live = sum(1 << i for i, row in enumerate(state.reach) if row) & step.targets
    return not state.into and not live & ~state.reach[_SOURCE]


def _smallest(sets: Iterable[int]) -> frozenset[int]:
    """The sets that contain no other."""
    kept: list[int] = []
    for found in sorted(sets, key=int.bit_count):
        if not any(other & found == other for other in kept):
            kept.append(found)
    return frozenset(kept)


def _put(row: tuple[int, ...], slot: int, value: int) -> tuple[int, ...]:
    return (*row[:slot], value, *row[slot + 1 :])
