"""Birnbaum's measure of parts: by the sweep back, classes of alike parts, or for group states."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace
from itertools import product
from math import prod
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from relparallel.reliability.extensions.srlg import absorbed
from relparallel.reliability.frontier.compiled_sweep import NotExactError
from relparallel.reliability.frontier.decomposition import compiled
from relparallel.reliability.problem import FIELDS, Problem
from relparallel.reliability.sensitivity.class_importance import Ask, class_importance
from relparallel.reliability.sensitivity.importance import Gradient, Importance
from relparallel.reliability.sensitivity.reverse_pass import gradient as swept
from relparallel.topology import Topology, as_topology

if TYPE_CHECKING:
    import networkx as nx

FloatArray = NDArray[np.float64]

_NARROW: Final = 7  # live vertices up to which the sweep takes milliseconds
_FEW: Final = 512  # links up to which finding out how many takes less than a second
_MOST: Final = 12  # groups whose states are gone through


def importance(
    problem: Problem,
    graph: Topology | nx.Graph[Any],
    max_states: int,
    form: Ask,
    bounds: Ask,
    *,
    perfect: bool = False,
) -> Importance:
    """Importance of every part that can fail, or with ``perfect`` of all parts.

    ``form`` and ``bounds`` answer for fabrics that are too wide for the sweep.
    """
    if perfect and problem.groups:
        raise NotExactError("perfect must be False for importance with groups, got True")
    wanted = np.concatenate([problem.link[:, 1], problem.node[:, 1]]) > 0
    wanted |= perfect

    def gradient(about: Problem) -> tuple[float, FloatArray]:
        if problem.groups:
            return _with_groups(about, max_states)
        structure = compiled(about) if len(about.edges) <= _FEW else None
        reason = ""
        if not perfect and (structure is None or structure.width > _NARROW):
            try:
                return class_importance(as_topology(graph), about, form, bounds)
            except NotExactError as why:
                reason = f"; {why}"
        structure = structure or compiled(about)
        try:
            return swept(structure, about.link, about.node, wanted, max_states)
        except NotExactError as why:
            raise NotExactError(f"{why} for the importance of every part{reason}") from why

    failed, slopes = gradient(problem)
    part = np.flatnonzero(wanted)
    return Importance(
        problem=problem,
        labels=_labels(graph),
        part=part,
        unreliability=min(failed, 1.0),  # rounding may have lifted them
        birnbaum=np.minimum(slopes[part], 1.0),
        gradient=gradient,
    )


def _with_groups(problem: Problem, max_states: int) -> tuple[float, FloatArray]:
    """The same where parts also fail in groups of shared risk, over all states of the groups.

    A part does not matter where one of its groups is down; states in which the same parts are down
    are asked for once.
    """
    always, rest, shared = absorbed(problem, problem.groups)
    if len(shared) > _MOST:
        raise NotExactError(f"groups must be at most {_MOST} for importance, got {len(shared)}")
    structure = compiled(problem)  # of all states alike
    may = np.concatenate([rest.link[:, 0], rest.node[:, 0]]) > 0

    def gradient(about: Problem) -> tuple[float, FloatArray]:
        up, down = np.concatenate([about.link, about.node]).T
        wanted = (down > 0) & ~(may & (up == 0))  # these are down with a group
        return swept(structure, about.link, about.node, wanted, max_states)

    m, failed, total = len(problem.link), 0.0, np.zeros(len(problem.link) + len(problem.node))
    known: dict[tuple[frozenset[int], frozenset[int]], tuple[float, FloatArray]] = {}
    for state in product((False, True), repeat=len(shared)):
        mass = prod(group.chance[fails] for group, fails in zip(shared, state, strict=True))
        gone = [group for group, fails in zip(shared, state, strict=True) if fails]
        links = frozenset[int]().union(*(group.links for group in gone))
        nodes = frozenset[int]().union(*(group.nodes for group in gone))
        if (links, nodes) not in known:
            known[links, nodes] = _without(rest, sorted(links), sorted(nodes), gradient)
        failed += mass * known[links, nodes][0]
        total += mass * known[links, nodes][1]
    for group in problem.groups:
        alone = len(group.nodes) + len(group.links) == 1
        # taken into the part's probability
        if alone and not group.nodes & set(problem.terminals.tolist()):
            total[[*group.links, *(m + v for v in group.nodes)]] *= group.chance[0]
    return float(always[1] + always[0] * failed), float(always[0]) * total


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
    """Node labels in the problem's order, which is the graph's where no node has a role."""
    if not isinstance(graph, Topology):
        records = dict(graph.nodes(data=True)).values()
        if not any(records) or all(map(FIELDS.isdisjoint, records)):
            return tuple(graph)
    return tuple(as_topology(graph).labels)
