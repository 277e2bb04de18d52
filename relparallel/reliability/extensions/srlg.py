"""Groups of shared risk (SRLG): nodes and links that fail together, by an event that all depend on.

A part works if it is up itself and none of its groups is down. Two exact routes. *Conditioning*
fixes the state of the groups, the likeliest first, and asks the compiled sweep for the rest; a
failed group that parts the terminals for good decides all of its branch, and what the budget leaves
open is a certified remainder. The *sweep* in plain Python keeps the state of a group like that of a
vertex, from its first to its last member: its work grows with the groups that are live at once, not
with all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from heapq import heappop, heappush
from math import inf, prod
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from relparallel._checks import require_instance, require_number
from relparallel.reliability.frontier.compiled_sweep import NotExactError
from relparallel.reliability.frontier.decomposition import Compiled, compiled
from relparallel.reliability.frontier.generic_sweep import MAX_SLOTS, Risks, moves, sweep
from relparallel.reliability.probability import CERTAIN, Chance, series
from relparallel.reliability.problem import Group, Problem
from relparallel.reliability.result import Reliability, bracketed, exactly, explained
from relparallel.topology import Topology, as_topology

if TYPE_CHECKING:
    import networkx as nx

_SLACK: Final = 1e-12  # relative; more than the rounding of the sums over states of the groups


class Known(NamedTuple):
    """Known masses that surely work, surely fail, are open; and the likeliest unreliability."""

    up: float
    down: float
    open: float
    value: float


def mixed(
    groups: Sequence[Group],
    answer: Callable[[tuple[int, ...]], Known],
    evaluations: int,
    rtol: float = 0.0,
) -> Known:
    """Mix the answers for the states of the groups."""
    alive = [prod(float(group.chance[0]) for group in groups[i:]) for i in range(len(groups) + 1)]
    up = down = open_ = value = 0.0
    # mass, groups decided, those that failed, what is known
    heap: list[Any] = [(-1, 0, (), answer(()))]
    asked = 1
    while heap:
        mass, decided, failed, known = heappop(heap)
        certain = known.up == known.open == 0.0  # more failures cannot help
        few = rtol > 0.0 and -sum(entry[0] for entry in heap) - mass <= rtol * value
        stop = asked >= evaluations or few
        if certain or decided == len(groups) or stop:
            works = 1 if certain else alive[decided]  # of the groups that are not decided
            up, down = up - mass * works * known.up, down - mass * known.down
            rest = (1 - works) * known.up
            open_, value = (
                open_ - mass * (known.open + rest),
                value - mass * (known.value + rest / 2),
            )
            continue
        asked += 1
        works, fails = groups[decided].chance
        more = (*failed, decided)
        heappush(heap, (mass * works, decided + 1, failed, known))
        heappush(heap, (mass * fails, decided + 1, more, answer(more)))
    return Known(up, down, open_, value)


def ask_each_state(
    problem: Problem, ask: Callable[[Problem], Reliability], rtol: float
) -> Reliability:
    """Ask a method that knows no groups for each of the likeliest states of the groups."""
    always, problem, groups = absorbed(problem, problem.groups)
    widths = [0]

    def answer(failed: tuple[int, ...]) -> Known:
        found = ask(without(problem, [groups[i] for i in failed]))
        widths.append(found.width)
        gap = found.upper - found.lower
        works = found.reliability if found.exact else 1.0 - found.upper
        return Known(works, found.lower, gap, found.unreliability)

    known = mixed(groups, answer, _SOME, rtol / 4)
    reason = f"the likeliest of the states of {len(groups)} groups of shared risk"
    return explained(summed_up(always, known, max(widths)), reason)


def without(problem: Problem, failed: Sequence[Group]) -> Problem:
    """The network without the parts of failed groups."""
    nodes = sorted({v for group in failed for v in group.nodes})
    kept = np.ones(len(problem.edges), dtype=bool)
    kept[sorted({e for group in failed for e in group.links})] = False
    kept &= ~np.isin(problem.edges, nodes).any(axis=1)
    return replace(problem, edges=problem.edges[kept], link=problem.link[kept])


def summed_up(always: Chance, known: Known, width: int) -> Reliability:
    """The result, given that what must always work does."""
    works, fails = series(always, (known.up, known.down))
    if known.open <= 0.0:
        return exactly(works, fails, "exact", width=width)
    lower, upper = fails * (1 - _SLACK), min((fails + always[0] * known.open) * (1 + _SLACK), 1.0)
    value = min(max(always[1] + always[0] * known.value, lower), upper)
    return bracketed(lower, upper, value=value, width=width)


Groups = float | Mapping[Hashable, float] | Sequence[tuple[Iterable[Any], float]]

_SOME: Final = 64  # states of the groups that are asked for bounds
FEW: Final = 10  # groups whose 2^10 states are soon asked one by one
_STATES: Final = 2**20  # largest layer of the sweep in plain Python
_EVALUATIONS: Final = 20_000  # of the compiled sweep before what is left is a remainder
# of the compiled sweep for one state, at most; plain Python: 200 times it
_STATE_SECONDS: Final = 1e-7


def read_groups(
    graph: Topology | nx.Graph[Any], problem: Problem, groups: Groups
) -> tuple[Group, ...]:
    """Check the argument ``groups`` of `evaluate`."""
    place = {pair: i for i, pair in enumerate(map(tuple, problem.edges.tolist()))}
    topology = as_topology(graph)
    label = {name: v for v, name in enumerate(topology.labels)}
    pairs = list(map(tuple, topology.edges.tolist()))
    rows = {ends: place.get(pair, -1) for pair in pairs for ends in (pair, pair[::-1])}
    risks = {r.name: (r.nodes, [rows[pairs[e]] for e in r.edges]) for r in topology.shared_risk}
    found: dict[tuple[frozenset[int], frozenset[int]], Chance] = {}
    for nodes, links, down in _members(groups, risks, label, rows):
        q = require_number(groups=down, at_least=0, at_most=1)
        members = frozenset(nodes), frozenset(links) - {-1}
        if q > 0 and any(members):
            found[members] = series(found.get(members, CERTAIN), (1 - q, q))
    return tuple(Group(*members, chance) for members, chance in found.items())


def _members(
    groups: Any, risks: Mapping[str, Any], label: Mapping[Hashable, int], rows: Mapping[Any, int]
) -> Iterator[tuple[Iterable[int], Iterable[int], Any]]:
    """Nodes, links and down-probability of every group."""
    if isinstance(groups, int | float | np.number):
        groups = dict.fromkeys(risks, require_number(groups=groups, at_least=0, at_most=1))
    if isinstance(groups, Mapping):
        if set(groups) - set(risks):
            raise ValueError(
                f"groups must name groups of shared risk of the graph {sorted(risks)!r}, or be a "
                "list of "
                f"(members, probability), got {list(groups)!r}"
            )
        yield from ((*risks[str(name)], down) for name, down in groups.items())
        return
    for group in require_instance((tuple, list), groups=groups):
        if not isinstance(group, tuple) or len(group) != 2 or isinstance(group[0], str):
            raise TypeError(f"groups must hold pairs (members, probability), got {group!r}")
        yield *_parts_of(group, label, rows), group[1]


def _parts_of(
    group: Any, label: Mapping[Hashable, int], rows: Mapping[Any, int]
) -> tuple[list[int], list[int]]:
    """Nodes and link rows of a group (members, probability); members are labels and label pairs."""
    nodes, links = [], []
    for member in require_instance((tuple, list, set, frozenset), groups=group[0]):
        try:
            node = label.get(member, -1)
        except TypeError:
            raise TypeError(
                f"groups must have labels or pairs of them as members, got {member!r}"
            ) from None
        pair = member if isinstance(member, tuple) and len(member) == 2 else ()
        ends = tuple(label.get(end, -1) for end in pair)
        if node >= 0:
            nodes.append(node)
        elif ends in rows:
            links.append(rows[ends])
        else:
            raise ValueError(
                f"groups must have nodes or links of the graph as members, got {member!r}"
            )
    if not nodes and not links:
        raise ValueError(f"groups must have at least one member each, got {group!r}")
    return nodes, links


def solve_groups(problem: Problem, max_states: int, max_seconds: float = inf) -> Reliability:
    """Evaluate with groups: by conditioning if they are few, else by the sweep that knows them."""
    always, problem, shared = absorbed(problem, problem.groups)
    structure = compiled(problem)
    budget = max_seconds / (max(len(structure.steps), 1) * _STATE_SECONDS)
    if len(shared) > FEW:
        try:
            plain = compiled(problem, reductions=False)
            most = min(max_states, _STATES, max(int(min(budget / 200, _STATES)), 1))
            up, down = swept(plain, problem, shared, most)
            return summed_up(always, Known(up, down, 0.0, down), structure.width)
        except NotExactError:
            pass
    fits = max(int(min(max_states, budget)), 1)
    states = structure.evaluate(problem.link, problem.node, fits).states
    visits = max(states, 1) * _STATE_SECONDS
    evaluations = max(int(min(_EVALUATIONS, max_seconds / visits)), 1)
    known = conditioned(structure, problem, shared, fits, evaluations)
    return summed_up(always, known, structure.width)


def absorbed(problem: Problem, groups: Sequence[Group]) -> tuple[Chance, Problem, list[Group]]:
    """Take groups into the chances of parts where that is possible."""
    link, node, always, shared = problem.link.copy(), problem.node.copy(), CERTAIN, []
    for group in groups:
        if group.nodes & set(problem.terminals.tolist()):
            always = series(always, group.chance)
        elif len(group.nodes) + len(group.links) > 1:
            shared.append(group)
        else:
            for values, members in ((node, group.nodes), (link, group.links)):
                for i in members:
                    values[i] = series(tuple(values[i]), group.chance)
    return always, replace(problem, link=link, node=node, groups=()), shared


def conditioned(
    structure: Compiled,
    problem: Problem,
    groups: Sequence[Group],
    max_states: int,
    evaluations: int = _EVALUATIONS,
) -> Known:
    """Fix the states of all groups, the likeliest first, and run the compiled sweep for each."""

    def answer(failed: tuple[int, ...]) -> Known:
        link, node = problem.link.copy(), problem.node.copy()
        for i in failed:
            link[list(groups[i].links)] = node[list(groups[i].nodes)] = 0.0, 1.0
        up, down = structure.evaluate(link, node, max_states)[:2]
        return Known(up, down, 0.0, down)

    return mixed(groups, answer, evaluations)


def swept(
    structure: Compiled, problem: Problem, groups: Sequence[Group], max_states: int
) -> tuple[Any, Any]:
    """Sweep once with the groups in the state, through a network without reductions."""
    if not structure.connected:
        return 0, 1
    slots = [*map(tuple, problem.link.tolist()), *map(tuple, problem.node.tolist())]
    slots += [CERTAIN] * (structure.slots - len(slots))
    required = series(*(slots[i] for i in structure.required.tolist()))
    if not len(structure.widths):
        return required
    risks, width = risks_by_row(structure, groups)
    if width > MAX_SLOTS:
        raise NotExactError(
            f"graph must need at most {MAX_SLOTS} live parts in this sweep, got {width}"
        )
    found = sweep(bytes(width), moves(structure.steps, structure.parts, slots, risks), max_states)
    return series(required, (found.up, found.down))


def risks_by_row(structure: Compiled, groups: Sequence[Group]) -> tuple[list[Risks], int]:
    """What each row has to do with the groups, and slots that vertices and groups need in all."""
    parts = structure.parts.tolist()
    of_part: dict[int, list[int]] = {}
    for g, group in enumerate(groups):
        for slot in (*group.links, *(structure.links + v for v in group.nodes)):
            of_part.setdefault(slot, []).append(g)
    touched = [[of_part.get(slot, []) for slot in row] for row in parts]
    last = {g: i for i, row in enumerate(touched) for members in row for g in members}
    place: dict[int, int] = {}
    free: list[int] = []
    top = int(structure.widths[0])
    found = []
    for i, row in enumerate(touched):
        new = [g for g in dict.fromkeys(g for members in row for g in members) if g not in place]
        for g in new:
            place[g] = free.pop() if free else top
            top = max(top, place[g] + 1)
        gone = [g for g in dict.fromkeys(g for members in row for g in members) if last[g] == i]
        link, a, b = (tuple(place[g] for g in members) for members in row)
        found.append(
            Risks(
                enter=tuple((place[g], *groups[g].chance) for g in new),
                needs=(link, a, b),
                leave=tuple(place[g] for g in gone),
            )
        )
        free += [place[g] for g in gone]
    return found, top
