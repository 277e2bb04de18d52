"""Birnbaum's measure of every part: by the sweep back, by classes of alike parts, or for states of groups."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from relparallel.reliability.problem import FIELDS, Problem
from relparallel.reliability.programme.compiled import compiled
from relparallel.reliability.programme.frontier import NotExactError
from relparallel.reliability.sensitivity.class_importance import class_importance
from relparallel.reliability.sensitivity.importance import Gradient, Importance
from relparallel.reliability.sensitivity.reverse_pass import gradient as swept
from relparallel.topology import Topology, as_topology

if TYPE_CHECKING:
    import networkx as nx

    from relparallel.reliability.questions.mixture import Group

FloatArray = NDArray[np.float64]

_NARROW: Final = 7  # live vertices up to which the sweep takes milliseconds
_FEW: Final = 512  # links up to which finding out how many takes less than a second
_MOST: Final = 12  # groups whose states are gone through


def importance(
    problem: Problem,
    graph: Topology | nx.Graph[Any],
    reductions: bool = True,
    max_states: int = 2**24,
    *,
    perfect: bool = False,
    again: Gradient | None = None,
) -> Importance:
    """Importance of every part that can fail, or with ``perfect`` of all parts."""
    wanted = np.concatenate([problem.link[:, 1], problem.node[:, 1]]) > 0
    wanted |= perfect

    def found(about: Problem) -> tuple[float, FloatArray]:
        narrow = len(problem.edges) <= _FEW and compiled(problem, reductions).width <= _NARROW
        if not narrow:
            try:
                return class_importance(as_topology(graph), about, perfect)
            except NotExactError as why:
                reason = str(why)
        try:
            return swept(about, wanted, reductions, max_states)
        except NotExactError as why:
            if narrow:
                raise
            raise NotExactError(f"{why} for the importance of every part; {reason}") from why

    use = again or found
    failed, slopes = use(problem)
    part = np.flatnonzero(wanted)
    return Importance(
        problem=problem,
        labels=_labels(graph),
        part=part,
        unreliability=min(failed, 1.0),  # rounding may have lifted them
        birnbaum=np.minimum(slopes[part], 1.0),
        gradient=use,
    )


def gradient_with_groups(
    groups: Sequence[Group], gradient: Gradient, problem: Problem
) -> tuple[float, FloatArray]:
    """The same where parts also fail in groups of shared risk, over all states of the groups.

    A part does not matter where one of its groups is down; states in which the same parts are down, and those
    in which a group parts the terminals for good, are asked for once.
    """
    from relparallel.reliability.questions.groups import absorbed

    always, rest, shared = absorbed(problem, groups)
    if len(shared) > _MOST:
        raise NotExactError(f"groups must be at most {_MOST} for importance, got {len(shared)}")
    m, failed, total = len(problem.link), 0.0, np.zeros(len(problem.link) + len(problem.node))
    for mass, down in _states(rest, shared, gradient):
        failed += mass * down[0]
        total += mass * down[1]
    for group in groups:
        alone = len(group.nodes) + len(group.links) == 1
        if alone and not group.nodes & set(problem.terminals.tolist()):  # taken into the part's probability
            total[[*group.links, *(m + v for v in group.nodes)]] *= group.chance[0]
    return float(always[1] + always[0] * failed), float(always[0]) * total


def _states(
    problem: Problem, groups: Sequence[Group], gradient: Gradient
) -> Iterator[tuple[float, tuple[float, FloatArray]]]:
    """Masses of the states of the groups that matter, with what they come to."""
    known: dict[tuple[frozenset[int], frozenset[int]], tuple[float, FloatArray]] = {}
    todo: list[tuple[float, int, tuple[int, ...], tuple[float, FloatArray]]] = [(1.0, 0, (), gradient(problem))]
    while todo:
        mass, decided, failed, found = todo.pop()
        if decided == len(groups) or found[0] == 1.0:
            yield mass, found
            continue
        works, fails = groups[decided].chance
        more = (*failed, decided)
        todo.append((mass * works, decided + 1, failed, found))
        links = frozenset().union(*(groups[i].links for i in more))
        nodes = frozenset().union(*(groups[i].nodes for i in more))
        if (links, nodes) not in known:
            known[links, nodes] = _without(problem, sorted(links), sorted(nodes), gradient)
        todo.append((mass * fails, decided + 1, more, known[links, nodes]))


def _without(
    problem: Problem, links: list[int], nodes: list[int], gradient: Gradient
) -> tuple[float, FloatArray]:
    """What the network comes to without some parts."""
    link, node = problem.link.copy(), problem.node.copy()
    link[links] = node[nodes] = 0.0, 1.0
    down, slopes = gradient(replace(problem, link=link, node=node))
    slopes = slopes.copy()
    slopes[links] = slopes[len(link) + np.array(nodes, dtype=np.int64)] = 0.0
    return down, slopes


def _labels(graph: Topology | nx.Graph[Any]) -> tuple[Hashable, ...]:
    """Labels of the nodes in the order of the problem, which is the graph's where no node has a role."""
    if not isinstance(graph, Topology):
        records = dict(graph.nodes(data=True)).values()
        if not any(records) or all(map(FIELDS.isdisjoint, records)):
            return tuple(graph)
    return tuple(as_topology(graph).labels)
