"""Recognise a fabric of alike pods under alike cores, from its wiring and its chances and not from its name.

What is checked is what the exchange of pods, planes, cores and edge switches needs: the tiers are joined as
`Fabric` says, and all parts of a class have the same chance.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Set
from typing import Final, NamedTuple

import numpy as np

from relparallel.reliability.chances import CERTAIN, Chance, series
from relparallel.reliability.lumped.lumping import Fabric
from relparallel.reliability.lumped.pod_partitions import count_layouts
from relparallel.reliability.problem import Problem
from relparallel.topology import Topology

_MOST_SWITCHES: Final = 5  # aggregation switches of a pod: Bell(6) = 203 terms
_MOST_PROFILES: Final = 1000  # (cores + 1)^planes: counting the layouts takes the square of it
_MOST_LAYOUTS: Final = 300_000

Links = dict[int, dict[int, Chance]]
Tops = dict[frozenset[int], set[int]]  # nodes by the nodes that they are joined to


class Seen(NamedTuple):
    """A fabric, the chance that what lies outside of it works, and whether its lower tier is the lowest.

    In a fabric of two tiers every leaf is an aggregation switch below which a perfect edge switch is thought;
    ``outside`` holds the terminals' own chances but not those of leaves.
    """

    fabric: Fabric
    outside: Chance
    two_tiers: bool


def recognise(topology: Topology, problem: Problem) -> tuple[Fabric, Chance] | None:
    """The fabric that a question is about, and the chance that what lies outside of it works."""
    seen = see(topology, problem)
    if seen is None or sum(count for count, terminals, _ in seen.fabric.pods if terminals) < 2:
        return None
    planes, cores = seen.fabric.planes, seen.fabric.cores
    if planes * seen.fabric.aggregations > _MOST_SWITCHES or (cores + 1) ** planes > _MOST_PROFILES:
        return None
    few = count_layouts(planes, cores) <= _MOST_LAYOUTS * math.factorial(planes)
    return (seen.fabric, seen.outside) if few else None


def see(topology: Topology, problem: Problem) -> Seen | None:
    """The fabric that a question is about, of any size, and what lies outside of it."""
    links = _links(problem)
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
    seats, hosts = found
    count = Counter((len(seats & below), len(below - seats)) for below in pods.values())
    node = dict(enumerate(map(tuple, problem.node.tolist())))
    alike = {
        "core": {node[v] for v in cores},
        "aggregation": {node[v] for v in aggregations},
        "edge": {node[v] for v in edges - seats},
        "core_link": {chance for v in cores for chance in links[v].values()},
        "edge_link": {chance for v in edges for chance in links[v].values()},
    }
    if max(map(len, alike.values())) > 1:
        return None
    fabric = Fabric(
        planes=size[0],
        cores=size[1],
        aggregations=size[2],
        pods=tuple((number, *ends) for ends, number in sorted(count.items())),
        **{part: next(iter(chances), CERTAIN) for part, chances in alike.items()},
    )
    return Seen(fabric, series(hosts, *(node[v] for v in seats & edges)), not edges)


def _links(problem: Problem) -> Links:
    """Chance of each link between forwarding nodes, from both ends."""
    links: Links = {}
    for (u, v), (up, down) in zip(problem.edges.tolist(), problem.link.tolist(), strict=True):
        if problem.transit[u] and problem.transit[v]:
            links.setdefault(u, {})[v] = links.setdefault(v, {})[u] = (up, down)
    return links


def _seats(problem: Problem, ends: Set[int]) -> tuple[set[int], Chance] | None:
    """Edge switches that have to be joined, and the chance of the hosts behind them."""
    seats, hosts = set(), CERTAIN
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
        hosts = series(hosts, tuple(problem.node[v].tolist()), tuple(problem.link[only[v]].tolist()))
    return (seats, hosts) if seats <= ends else None


def _by_neighbours(links: Links, nodes: Set[int]) -> Tops:
    """Nodes that are joined to the same others."""
    groups: Tops = {}
    for v in nodes:
        groups.setdefault(frozenset(links[v]), set()).add(v)
    return groups


def _in_tiers(links: Links, middle: Set[int], outer: Set[int]) -> bool:
    """Whether every link joins the middle tier to one of the others."""
    return all(near.keys() <= (outer if v in middle else middle) for v, near in links.items())


def _size(planes: Tops, pods: Tops) -> tuple[int, int, int] | None:
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
