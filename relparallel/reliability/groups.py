"""Groups of shared risk: nodes and links that fail together, by an event that all of them depend on.

A part works if it is up itself and none of its groups is down. Two exact routes. *Conditioning* fixes the
state of the groups, the likeliest first, and asks the compiled programme for the rest; a failed group that
parts the terminals for good decides all of its branch, and what the budget leaves open is a certified
remainder. The *programme* in plain Python keeps the state of a group like that of a vertex, from its first to
its last member: its work grows with the groups that are live at once, not with all of them.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Any, Final

import networkx as nx
import numpy as np
from numpy.typing import NDArray

from relparallel._checks import require_instance, require_probability
from relparallel.reliability.chances import Chance, series
from relparallel.reliability.compiled import Compiled, compiled
from relparallel.reliability.frontier import NotExactError
from relparallel.reliability.plain_sweep import MAX_SLOTS, Risks, factors_of, weigh_states
from relparallel.reliability.problem import Problem
from relparallel.reliability.result import Reliability, exactly
from relparallel.topology import SharedRisk, Topology, as_topology

__all__ = ["Group", "Groups", "conditioned", "read_groups", "solve_groups", "swept"]

Groups = float | Mapping[Hashable, float] | Sequence[tuple[Iterable[Any], float]]

_FEW: Final = 10  # groups whose 2^10 states are soon asked one by one
_STATES: Final = 2**20  # largest layer of the programme in plain Python
_EVALUATIONS: Final = 20_000  # of the compiled programme before what is left is a remainder

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Group:
    """Parts that fail together: indices of nodes, rows of ``Problem.edges``, and the chance of the event."""

    nodes: frozenset[int]
    links: frozenset[int]
    chance: Chance


def read_groups(graph: Topology | nx.Graph[Any], problem: Problem, groups: Groups) -> list[Group]:
    """Check the argument ``groups`` of `evaluate`.

    Parameters
    ----------
    graph : Topology or networkx.Graph
        The network, whose ``shared_risk`` gives names to groups.
    problem : Problem
        The same as arrays.
    groups : float, Mapping of name to float, or sequence of (members, float)
        Probability that a group is down: of every group of ``shared_risk``; of those that are named; or of
        groups given by their members, which are labels of nodes and pairs of labels.

    Returns
    -------
    list of Group
        Groups that can fail and have members that matter, no two with the same members.
    """
    topology = as_topology(graph)
    n = topology.num_nodes
    place = {code: i for i, code in enumerate((problem.edges @ np.array([n, 1])).tolist())}
    rows = [place.get(code, -1) for code in (topology.edges @ np.array([n, 1])).tolist()]
    found: dict[tuple[frozenset[int], frozenset[int]], Chance] = {}
    for risk, down in _risks(topology, groups):
        if np.ndim(down):
            raise TypeError(f"groups must give one probability each, got {down!r}")
        q = require_probability(groups=down)
        members = frozenset(risk.nodes), frozenset(rows[e] for e in risk.edges) - {-1}
        if q > 0 and any(members):
            found[members] = series(found.get(members, (1.0, 0.0)), (1.0 - q, q))
    return [Group(*members, chance) for members, chance in found.items()]


def _risks(topology: Topology, groups: Groups) -> list[tuple[SharedRisk, float]]:
    """Every group with its down-probability."""
    known = {risk.name: risk for risk in topology.shared_risk}
    if isinstance(groups, int | float | np.number):
        return [(risk, float(groups)) for risk in known.values()]
    if isinstance(groups, Mapping):
        if set(groups) - set(known):
            raise ValueError(
                f"groups must name groups of shared risk of the graph {sorted(known)!r}, got {list(groups)!r}"
            )
        return [(known[str(name)], down) for name, down in groups.items()]
    require_instance((tuple, list), groups=groups)
    label = {name: v for v, name in enumerate(topology.labels)}
    row = {pair: i for i, pair in enumerate(map(tuple, topology.edges.tolist()))}
    return [(_risk(topology, label, row, group), group[1]) for group in groups]


def _risk(
    topology: Topology, label: Mapping[Hashable, int], row: Mapping[Any, int], group: Any
) -> SharedRisk:
    """A group from the labels of its members."""
    if not isinstance(group, tuple) or len(group) != 2 or isinstance(group[0], str):
        raise TypeError(f"groups must hold pairs (members, probability), got {group!r}")
    nodes, edges = [], []
    for member in require_instance((tuple, list, set, frozenset), groups=group[0]):
        pair = member if isinstance(member, tuple) and len(member) == 2 else ()
        ends = tuple(sorted(label.get(end, -1) for end in pair))
        if member in label:
            nodes.append(label[member])
        elif ends in row:
            edges.append(row[ends])
        else:
            raise ValueError(f"groups must have nodes or links of {topology!r} as members, got {member!r}")
    if not nodes and not edges:
        raise ValueError(f"groups must have at least one member each, got {group!r}")
    return SharedRisk(name="", nodes=tuple(nodes), edges=tuple(edges))


def solve_groups(problem: Problem, groups: Sequence[Group], reductions: bool, max_states: int) -> Reliability:
    """Evaluate with groups: by conditioning where they are few, else by the programme that knows them.

    Parameters
    ----------
    problem : Problem
        The network with the chances of its parts.
    groups : sequence of Group
        See `read_groups`.
    reductions, max_states
        As for `evaluate`.

    Returns
    -------
    Reliability
        Exact, or with method "bounds" if neither route fits: then the bracket is certified.

    Raises
    ------
    NotExactError
        If the network is too wide without groups.
    """
    always, problem, shared = _simplified(problem, groups)
    structure = compiled(problem, reductions)
    if len(shared) > _FEW:
        try:
            return _times(always, *swept(problem, shared, min(max_states, _STATES)), 0.0, structure)
        except NotExactError:
            pass
    return _times(always, *conditioned(structure, problem, shared, max_states), structure)


def _times(always: Chance, up: float, down: float, rest: float, structure: Compiled) -> Reliability:
    """The result, given that what must always work does; ``rest`` is undecided."""
    works, fails = series(always, (up, down))
    width = structure.width
    if rest == 0.0:
        return exactly(works, fails, "exact", width=width)
    upper = min(fails + always[0] * rest, 1.0)
    middle = 0.5 * (fails + upper)
    return Reliability(
        reliability=min(works + 0.5 * always[0] * rest, 1.0), unreliability=middle, lower=fails, upper=upper,
        method="bounds", routing="any", width=width,
    )  # fmt: skip


def _simplified(problem: Problem, groups: Sequence[Group]) -> tuple[Chance, Problem, list[Group]]:
    """Chance of groups that hold a terminal; groups of one part become its own chance; the others."""
    link, node, always, shared = problem.link.copy(), problem.node.copy(), (1.0, 0.0), []
    for group in groups:
        if group.nodes & set(problem.terminals.tolist()):
            always = series(always, group.chance)
        elif len(group.nodes) + len(group.links) > 1:
            shared.append(group)
        else:
            for values, members in ((node, group.nodes), (link, group.links)):
                for i in members:
                    values[i] = series(tuple(values[i]), group.chance)
    return always, _with(problem, link, node), shared


def _with(problem: Problem, link: FloatArray, node: FloatArray) -> Problem:
    return Problem(
        edges=problem.edges, link=link, node=node, terminals=problem.terminals, transit=problem.transit
    )


def conditioned(
    structure: Compiled,
    problem: Problem,
    groups: Sequence[Group],
    max_states: int,
    evaluations: int = _EVALUATIONS,
) -> tuple[float, float, float]:
    """Fix the states of all groups, the likeliest first.

    Parameters
    ----------
    structure : Compiled
        Of the problem.
    problem : Problem
        The network with the chances of its parts.
    groups : sequence of Group
        See `read_groups`.
    max_states : int
        Largest layer of a programme.
    evaluations : int, optional
        Most calls of the compiled programme.

    Returns
    -------
    up, down, rest : float
        Mass of success and of failure; the mass of states of the groups that were not asked for.
    """

    def evaluated(failed: tuple[int, ...]) -> tuple[float, float]:
        link, node = problem.link.copy(), problem.node.copy()
        for i in failed:
            link[list(groups[i].links)] = node[list(groups[i].nodes)] = 0.0, 1.0
        return structure.evaluate(link, node, max_states)[:2]

    success, failure, asked = 0.0, 0.0, 1
    heap: list[Any] = [(-1.0, 0, (), evaluated(()))]  # mass, groups decided, those that failed, and R, U
    while heap:
        mass, decided, failed, (up, down) = heap[0]
        if up == 0.0 or decided == len(groups):  # more failures cannot help
            heappop(heap)
            success, failure = success - mass * up, failure - mass * down
            continue
        if asked == evaluations:
            break
        heappop(heap)
        asked += 1
        works, fails = groups[decided].chance
        more = (*failed, decided)
        heappush(heap, (mass * works, decided + 1, failed, (up, down)))
        heappush(heap, (mass * fails, decided + 1, more, evaluated(more)))
    return success, failure, -sum(entry[0] for entry in heap)


def swept(problem: Problem, groups: Sequence[Group], max_states: int) -> tuple[float, float]:
    """Sweep once with the groups in the state.

    Parameters
    ----------
    problem : Problem
        The network with the chances of its parts.
    groups : sequence of Group
        Without terminals: see `read_groups`.
    max_states : int
        Largest layer.

    Returns
    -------
    up, down : float
        Mass of success and of failure.

    Raises
    ------
    NotExactError
        If a layer holds more states.
    """
    structure = compiled(problem, reductions=False)
    if not structure.connected:
        return 0.0, 1.0
    slots = list(map(tuple, structure.chances(problem.link, problem.node).tolist()))
    required = series(*(slots[i] for i in structure.required.tolist()))
    if not len(structure.widths):
        return required[0], required[1]
    risks, width = _risks_by_row(structure, groups, len(problem.link))
    if width > MAX_SLOTS:
        raise NotExactError(f"graph must need at most {MAX_SLOTS} live parts in this programme, got {width}")
    factors = factors_of(structure.parts, slots)
    found = series(required, weigh_states(structure.steps, factors, width, max_states, risks))
    return found[0], found[1]


def _risks_by_row(structure: Compiled, groups: Sequence[Group], m: int) -> tuple[list[Risks], int]:
    """What every row has to do with the groups, and the slots that vertices and groups need in all."""
    parts = structure.parts.tolist()
    of_part: dict[int, list[int]] = {}
    for g, group in enumerate(groups):
        for slot in (*group.links, *(m + v for v in group.nodes)):
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
