"""Up-down routing: a path goes up tier by tier, then only down, as data-centre networks forward.

Two terminals are joined if and only if some working node can be climbed to from both. Cables inside
a tier and valleys do not count. The sweep adds a node once everything under it has been added. A
state keeps the set of terminals that climb to each live node, and which pairs of terminals are
joined. For two terminals that is next to nothing; many terminals have many pairs, and the sweep is
truncated to a certified bracket.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from relparallel.reliability.frontier.compiled_sweep import NotExactError
from relparallel.reliability.frontier.generic_sweep import FAILS, WORKS, Move, Swept, sweep
from relparallel.reliability.probability import CERTAIN, Chance, series
from relparallel.reliability.problem import Problem
from relparallel.reliability.result import Reliability, bracketed, exactly
from relparallel.topology import Topology, as_topology

if TYPE_CHECKING:
    import networkx as nx

_STATES: Final = 2**16  # largest layer of the sweep in plain Python
_OUTCOMES: Final = 2**18  # of nodes and their cables, in all states that a bracket visits
_FEWEST: Final = 8  # states of a layer that a bracket keeps

# : the other end and the chance of every cable of a node
Cables = dict[int, list[tuple[int, Chance]]]
# : whom each terminal is joined with; who climbs to each slot
State = tuple[tuple[int, ...], tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class Climb:
    """Terminals, nodes two of them climb to, everything between, with the cables from below."""

    terminals: tuple[int, ...]
    node: dict[int, Chance]
    below: Cables
    leaves: frozenset[int]


@dataclass(frozen=True, slots=True)
class _Step:
    """Add one node: its slot, own terminal bit, cables from below, and the slots that leave.

    ``leaf`` is a terminal that forwards nothing; ``pending`` are the terminals still to add.
    """

    slot: int
    bit: int
    leaf: bool
    node: Chance
    cables: tuple[tuple[int, Chance], ...]
    leave: tuple[int, ...]
    pending: int
    goal: tuple[int, ...]


def solve_updown(
    graph: Topology | nx.Graph[Any], problem: Problem, max_states: int = _STATES
) -> Reliability:
    """Probability that every two terminals are joined; a few microseconds per state and cable."""
    always, climb = climbing(graph, problem)
    found, width = climbed(climb, min(max_states, _STATES))
    up_down, reason = series(always, (found.up, found.down)), f"{found.visited} states"
    return exactly(*up_down, "exact", "updown", width=width, states=found.visited, reason=reason)


def bound_updown(graph: Topology | nx.Graph[Any], problem: Problem) -> Reliability:
    """Certified bracket of that probability: the sweep keeps the heaviest states of every layer."""
    always, climb = climbing(graph, problem)
    outcomes = sum(2.0 ** len(cables) for cables in climb.below.values())
    max_states = min(_STATES, int(_OUTCOMES / max(outcomes, 1.0)))
    if max_states < _FEWEST:
        raise NotExactError(f"cables of single nodes must have fewer outcomes, got {outcomes:.0f}")
    found, width = climbed(climb, max_states, truncate=True)
    lower = min(series(always, (found.up, found.down))[1], 1.0)  # rounding may have lifted it
    upper = min(lower + always[0] * found.dropped, 1.0)
    reason = f"all but a mass of {found.dropped:.1e} in {found.visited} states"
    return bracketed(lower, upper, "updown", reason, width=width, states=found.visited)


def climbing(graph: Topology | nx.Graph[Any], problem: Problem) -> tuple[Chance, Climb]:
    """Chance of what must work in any case, and the rest."""
    arcs = _upwards(graph, problem)
    always, terminals = _without_single_cables(problem, arcs)
    below: Cables = {}
    for (low, high), chance in zip(arcs.tolist(), problem.link.tolist(), strict=True):
        if low >= 0:
            below.setdefault(high, []).append((low, tuple(chance)))
    useful = _useful(below, terminals)
    below = {v: [cable for cable in below.get(v, []) if cable[0] in useful] for v in sorted(useful)}
    node = {v: CERTAIN if v in terminals else tuple(problem.node[v].tolist()) for v in useful}
    leaves = frozenset(v for v in terminals if not problem.transit[v])
    return always, Climb(terminals, node, below, leaves)


def _upwards(graph: Topology | nx.Graph[Any], problem: Problem) -> NDArray[np.int64]:
    """Links of a tiered network, each from its lower to its upper end; -1 inside a tier."""
    tier = as_topology(graph).tier
    if (tier < 0).any():
        raise ValueError(
            "graph must give every node a tier for routing='updown', got none for node "
            f"{np.argmin(tier)}"
        )
    ends = tier[problem.edges]
    upwards = np.where(ends[:, :1] > ends[:, 1:], problem.edges[:, ::-1], problem.edges)
    return np.asarray(np.where(ends[:, :1] == ends[:, 1:], -1, upwards))


def _without_single_cables(
    problem: Problem, arcs: NDArray[np.int64]
) -> tuple[Chance, tuple[int, ...]]:
    """Replace terminals whose only cable leads up by its upper end, as long as there are two."""
    cables: dict[int, list[int]] = {}
    for e, ends in enumerate(arcs.tolist()):
        for v in ends:
            cables.setdefault(v, []).append(e)
    terminals = dict.fromkeys(problem.terminals.tolist())
    always = series(*map(tuple, problem.node[problem.terminals].tolist()))
    todo = list(terminals)
    while todo and len(terminals) > 1:
        v = todo.pop()
        only = cables.get(v, [])
        if len(only) != 1 or arcs[only[0], 0] != v or not problem.transit[arcs[only[0], 1]]:
            continue
        parent = int(arcs[only[0], 1])
        del terminals[v]
        always = series(always, tuple(problem.link[only[0]].tolist()))
        if parent not in terminals:
            terminals[parent] = None
            always = series(always, tuple(problem.node[parent].tolist()))
            todo.append(parent)
    return always, tuple(terminals)


def _useful(below: Cables, terminals: tuple[int, ...]) -> set[int]:
    """Nodes between a terminal and a node that two terminals climb to; the terminals themselves."""
    climbers: dict[int, int] = {}

    def climb_to(v: int) -> int:
        if v not in climbers:
            climbers[v] = sum(1 << i for i, t in enumerate(terminals) if t == v)
            for u, _ in below.get(v, []):
                climbers[v] |= climb_to(u)
        return climbers[v]

    todo = [v for v in {*below, *terminals} if climb_to(v).bit_count() > 1]
    useful = {*todo, *terminals}
    while todo:
        for u, _ in below.get(todo.pop(), []):
            if u not in useful and climb_to(u):
                useful.add(u)
                todo.append(u)
    return useful


def climbed(climb: Climb, max_states: float, truncate: bool = False) -> tuple[Swept, int]:
    """Sweep from below, and the most live nodes."""
    count = len(climb.terminals)
    if count == 1:
        return Swept(1.0, 0.0, 0.0, 0), 0
    steps, width = _steps(climb)
    start = (0,) * count, (0,) * width
    moves = (Move(partial(_outcomes, step)) for step in steps)
    return sweep(start, moves, max_states, truncate), width


def _steps(climb: Climb) -> tuple[list[_Step], int]:
    """The nodes in an order that keeps few live, with the slots that they and their cables use."""
    above: dict[int, list[int]] = {v: [] for v in climb.below}
    for v, cables in climb.below.items():
        for u, _ in cables:
            above[u].append(v)
    waits = {v: len(cables) for v, cables in climb.below.items()}
    left = {v: len(nodes) for v, nodes in above.items()}
    place, free, steps, width = dict[int, int](), list[int](), list[_Step](), 0
    every = pending = (1 << len(climb.terminals)) - 1
    goal = tuple(every & ~(1 << i) for i in range(len(climb.terminals)))

    def price(v: int) -> tuple[int, int, int]:
        gone = sum(left[u] == 1 for u, _ in climb.below[v])
        return bool(above[v]) - gone, min((waits[u] for u in above[v]), default=0), v

    ready = {v for v, missing in waits.items() if not missing}
    while ready:
        v = min(ready, key=price)
        ready.remove(v)
        slot = place[v] = free.pop() if free else width
        width = max(width, slot + 1)
        leave = [] if above[v] else [slot]
        for u, _ in climb.below[v]:
            left[u] -= 1
            leave += [place[u]] * (left[u] == 0)
        for u in above[v]:
            waits[u] -= 1
            if not waits[u]:
                ready.add(u)
        bit = 1 << climb.terminals.index(v) if v in climb.terminals else 0
        pending &= ~bit
        lower = tuple((place[u], chance) for u, chance in climb.below[v])
        leaf, node = v in climb.leaves, climb.node[v]
        steps.append(_Step(slot, bit, leaf, node, lower, tuple(leave), pending, goal))
        free += leave
    return steps, width


def _outcomes(
    step: _Step, state: State, mass: float
) -> Iterator[tuple[State | bytes | None, float]]:
    """Which terminals climb to the new node, and which pairs are joined since."""
    joined, slots = state
    up, down = step.node
    cases: dict[tuple[int, tuple[int, ...]], float] = {(step.bit, joined): mass * up}
    for slot, (works, fails) in step.cables:
        arriving = slots[slot]
        if not arriving:
            continue
        more: dict[tuple[int, tuple[int, ...]], float] = {}
        for (climbers, pairs), share in cases.items():
            met = climbers & step.bit if step.leaf else climbers
            both = climbers | arriving, _join(pairs, met, arriving)
            if both == (climbers, pairs):
                more[both] = more.get(both, 0.0) + share
                continue
            more[both] = more.get(both, 0.0) + share * works
            if fails:
                more[climbers, pairs] = more.get((climbers, pairs), 0.0) + share * fails
        cases = more
    if down:
        yield _settled(step, joined, slots, 0), mass * down
    for (climbers, pairs), share in cases.items():
        yield _settled(step, pairs, slots, step.bit if step.leaf else climbers), share


def _join(pairs: tuple[int, ...], some: int, others: int) -> tuple[int, ...]:
    """Join every terminal of one set with every one of the other."""
    if not some or not others:
        return pairs
    return tuple(
        met
        | (others & ~(1 << i) if some >> i & 1 else 0)
        | (some & ~(1 << i) if others >> i & 1 else 0)
        for i, met in enumerate(pairs)
    )


def _settled(
    step: _Step, pairs: tuple[int, ...], slots: Sequence[int], climbers: int
) -> State | bytes | None:
    """The state with the node in it, without terminals that are joined with all others."""
    if pairs == step.goal:
        return WORKS
    left = list(slots)
    left[step.slot] = climbers
    for slot in step.leave:
        left[slot] = 0
    open_, live = 0, step.pending
    for i, met in enumerate(pairs):
        open_ |= (met != step.goal[i]) << i
    for some in left:
        live |= some
    if open_ & ~live:
        return FAILS
    return pairs, tuple(some & open_ for some in left)
