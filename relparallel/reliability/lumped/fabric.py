"""Fabrics of alike pods under alike cores, recognised by wiring and probabilities and not by their name.

What is checked is what the exchange of pods, planes, cores and edge switches needs: the tiers are joined as
`Fabric` says, and all parts of a class fail with the same probability.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Set
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from relparallel.reliability.probability import CERTAIN, Chance, series
from relparallel.reliability.problem import Problem
from relparallel.topology import Topology

IntArray = NDArray[np.int64]
Links = dict[int, dict[int, int]]  # row of every link, by its ends
Groups = dict[frozenset[int], set[int]]  # nodes by the nodes that they are joined to

OF_PODS = ("aggregation", "core_link", "edge_link", "other_link", "edge")  # classes of parts of a pod


class Pods(NamedTuple):
    """Pods that are alike: edge switches with terminals and others, links to both, and the latter."""

    copies: int
    terminals: int
    others: int
    aggregation: Chance
    core_link: Chance
    edge_link: Chance = CERTAIN
    other_link: Chance = CERTAIN
    edge: Chance = CERTAIN


class Fabric(NamedTuple):
    """Pods of edge and aggregation switches under planes of cores; aggregation switches per pod and plane."""

    planes: int
    cores: int
    aggregations: int
    core: Chance
    pods: tuple[Pods, ...]

    @property
    def terminal_pods(self) -> tuple[Pods, ...]:
        """Those with terminals."""
        return tuple(pods for pods in self.pods if pods.terminals)


class Match(NamedTuple):
    """A fabric, the rows of the parts of each class, and the rows of what must work in any case.

    In a fabric of two tiers every leaf is an aggregation switch below which a perfect edge switch is thought;
    rows are those of links, then of nodes.
    """

    fabric: Fabric
    core: IntArray
    pods: list[dict[str, IntArray]]
    needed: IntArray
    two_tiers: bool

    def outside(self, problem: Problem) -> Chance:
        """Probability that what must work in any case does."""
        return series(*map(tuple, np.concatenate([problem.link, problem.node])[self.needed].tolist()))


def match_fabric(topology: Topology, problem: Problem) -> Match | None:
    """The fabric that a question is about, of any size."""
    links, m = _links(problem), len(problem.edges)
    top = max((topology.tier[v] for v in links), default=-1)
    cores = {v for v in links if topology.tier[v] == top}
    aggregations = {v for core in cores for v in links[core]}
    edges = links.keys() - cores - aggregations
    planes = _by_neighbours(links, cores)
    pods = _by_neighbours(links, edges) if edges else {frozenset([v]): {v} for v in aggregations}
    found = _seats(problem, edges or aggregations)
    size = _size(planes, pods)
    if found is None or size is None or not _in_tiers(links, aggregations, cores | edges):
        return None
    seats, needed = found
    chances = [*map(tuple, np.concatenate([problem.link, problem.node]).tolist())]
    kinds: dict[Pods, dict[str, list[int]]] = {}
    for above, below in pods.items():
        lower = (below & seats, below - seats) if edges else (set(), set())
        parts = _parts_of_pod(links, m, cores, above, *lower)
        own = [{chances[row] for row in rows} or {CERTAIN} for rows in parts]
        if max(map(len, own)) > 1:
            return None
        kind = Pods(1, len(below & seats), len(below - seats), *(chance.pop() for chance in own))
        known = kinds.setdefault(kind, {name: [] for name in OF_PODS})
        for name, rows in zip(OF_PODS, parts, strict=True):
            known[name] += rows
    core = [m + v for v in cores]
    if len({chances[row] for row in core}) > 1:
        return None
    ordered = sorted(kinds, key=lambda kind: kind[1:3])
    each = size[0] * size[2]
    fabric = Fabric(
        *size,
        chances[core[0]],
        tuple(kind._replace(copies=len(kinds[kind]["aggregation"]) // each) for kind in ordered),
    )
    of_pods = [{name: np.array(rows, int) for name, rows in kinds[kind].items()} for kind in ordered]
    needed += [m + v for v in seats & edges]
    return Match(fabric, np.array(core, int), of_pods, np.array(needed, int), not edges)


def _parts_of_pod(
    links: Links, m: int, cores: Set[int], above: Set[int], seats: Set[int], idle: Set[int]
) -> list[list[int]]:
    """Rows of the classes `OF_PODS` of a pod of these aggregation and edge switches."""
    return [
        [m + v for v in above],
        [row for v in above for core, row in links[v].items() if core in cores],
        [row for v in seats for row in links[v].values()],
        [row for v in idle for row in links[v].values()],
        [m + v for v in idle],
    ]


def _links(problem: Problem) -> Links:
    """Row of each link between forwarding nodes, from both ends."""
    links: Links = {}
    relays = problem.transit[problem.edges].all(axis=1)
    for row, (u, v) in zip(np.flatnonzero(relays).tolist(), problem.edges[relays].tolist(), strict=True):
        links.setdefault(u, {})[v] = links.setdefault(v, {})[u] = row
    return links


def _seats(problem: Problem, ends: Set[int]) -> tuple[set[int], list[int]] | None:
    """Edge switches that have to be joined, and the rows of the hosts behind them and of their cables."""
    seats, hosts, m = set(), [], len(problem.edges)
    cables = np.bincount(problem.edges.ravel(), minlength=len(problem.node))
    only = np.empty(len(problem.node), np.int64)  # a cable of every node that has one
    only[problem.edges] = np.arange(len(problem.edges))[:, None]
    for v in problem.terminals.tolist():
        if problem.transit[v]:
            seats.add(v)
            continue
        if cables[v] != 1:
            return None
        seats.add(int(problem.edges[only[v]].sum()) - v)
        hosts += [m + v, int(only[v])]
    return (seats, hosts) if seats <= ends else None


def _by_neighbours(links: Links, nodes: Set[int]) -> Groups:
    """Nodes that are joined to the same others."""
    groups: Groups = {}
    for v in nodes:
        groups.setdefault(frozenset(links[v]), set()).add(v)
    return groups


def _in_tiers(links: Links, middle: Set[int], outer: Set[int]) -> bool:
    """Whether every link joins the middle tier to one of the others."""
    return all(near.keys() <= (outer if v in middle else middle) for v, near in links.items())


def _size(planes: Groups, pods: Groups) -> tuple[int, int, int] | None:
    """Planes, cores of each, and aggregation switches of each pod in each, where all are alike."""
    own = Counter(v for above in planes for v in above)
    cores = {len(group) for group in planes.values()}
    covered = Counter(v for pod in pods for v in pod)
    if len(cores) != 1 or own != covered or max(own.values()) > 1:
        return None
    switches = {len(above & pod) for above in planes for pod in pods}
    if len(switches) != 1:
        return None
    return len(planes), cores.pop(), switches.pop()
