"""Fabrics of alike pods under alike cores, recognised by wiring and probabilities, not by name.

What is checked is what the exchange of pods, planes, cores and edge switches needs: switches of a
plane or a pod have the same neighbours, and all parts of a class fail with the same probability.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from relparallel.reliability.probability import CERTAIN, Chance, series
from relparallel.reliability.problem import Problem
from relparallel.topology import Topology
from relparallel.topology.symmetry import neighbour_classes

IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]
FloatArray = NDArray[np.float64]

# classes of parts of a pod
OF_PODS = ("aggregation", "core_link", "edge_link", "other_link", "edge")


class Pods(NamedTuple):
    """Alike pods: edge switches with terminals and others, links to both, and the latter."""

    copies: int
    terminals: int
    others: int
    aggregation: Chance
    core_link: Chance
    edge_link: Chance = CERTAIN
    other_link: Chance = CERTAIN
    edge: Chance = CERTAIN


class Fabric(NamedTuple):
    """Pods of edge and aggregation switches under planes of cores.

    Aggregation switches are counted per pod and plane.
    """

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

    In a fabric of two tiers every leaf is an aggregation switch below which a perfect edge switch
    is thought; rows are those of links, then of nodes.
    """

    fabric: Fabric
    core: IntArray
    pods: list[dict[str, IntArray]]
    needed: IntArray
    two_tiers: bool

    def outside(self, problem: Problem) -> Chance:
        """Probability that what must work in any case does."""
        return series(
            *map(tuple, np.concatenate([problem.link, problem.node])[self.needed].tolist())
        )


def match_fabric(topology: Topology, problem: Problem) -> Match | None:
    """The fabric that a question is about, of any size."""
    tiers = _tiers(topology, problem)
    found = None if tiers is None else _seats(problem, tiers.lowest)
    size = None if tiers is None else _size(tiers)
    if tiers is None or found is None or size is None:
        return None
    seat, needed = found
    m, chance = len(problem.edges), np.concatenate([problem.link, problem.node])
    cores, pods = m + np.flatnonzero(tiers.core), int(tiers.pod.max()) + 1
    if (chance[cores] != chance[cores[0]]).any():
        return None
    rows = _parts_of_pods(tiers, seat, m)
    shared = [_common(chance[part], pod, pods, CERTAIN) for part, pod in rows]
    own = [one for one in shared if one is not None]
    if len(own) < len(rows):
        return None
    counts = [np.bincount(tiers.pod[some], minlength=pods) for some in (seat, tiers.lowest & ~seat)]
    kinds, kind = np.unique(np.column_stack([*counts, *own]), axis=0, return_inverse=True)
    copies = np.bincount(kind.ravel()).tolist()
    of_pods = [
        Pods(copy, int(row[0]), int(row[1]), *map(tuple, np.reshape(row[2:], (-1, 2)).tolist()))
        for copy, row in zip(copies, kinds, strict=True)
    ]
    parts = [
        {
            name: part[kind.ravel()[pod] == k]
            for name, (part, pod) in zip(OF_PODS, rows, strict=True)
        }
        for k in range(len(kinds))
    ]
    fabric = Fabric(*size, tuple(chance[cores[0]].tolist()), tuple(of_pods))
    if not tiers.two:
        needed = np.concatenate([needed, m + np.flatnonzero(seat)])
    return Match(fabric, cores, parts, needed, tiers.two)


class _Tiers(NamedTuple):
    """Links by row, aggregation switch, other end; cores, lowest switches, planes, pods by node."""

    row: IntArray
    inner: IntArray
    outer: IntArray
    core: BoolArray
    lowest: BoolArray
    plane: IntArray
    pod: IntArray
    two: bool


def _tiers(topology: Topology, problem: Problem) -> _Tiers | None:
    """Switch tiers, where every aggregation switch has one plane above and one pod below it."""
    row, n = np.flatnonzero(problem.transit[problem.edges].all(axis=1)), len(problem.node)
    if not row.size:
        return None
    ends = problem.edges[row]
    linked = np.bincount(ends.ravel(), minlength=n) > 0
    core = linked & (topology.tier == topology.tier[linked].max())
    middle = np.zeros(n, dtype=np.bool_)
    middle[ends[:, ::-1][core[ends]]] = True
    if (middle[ends].sum(axis=1) != 1).any():
        return None
    inner = np.where(middle[ends[:, 0]], ends[:, 0], ends[:, 1])
    outer = ends.sum(axis=1) - inner
    up, two = core[outer], bool(core[outer].all())
    group = neighbour_classes(ends, core)
    above = _common(group[outer[up], None], inner[up], n, (-1,))
    below = _common(group[outer[~up], None], inner[~up], n, (-1,))
    if above is None or below is None or (not two and (below[middle] < 0).any()):
        return None
    edge = linked & ~middle & ~core
    plane = np.where(core, group, above[:, 0])
    pod = np.where(edge, group, np.arange(n) if two else below[:, 0])
    tiers = core, middle if two else edge, _ranks(plane, core | middle), _ranks(pod, edge | middle)
    return _Tiers(row, inner, outer, *tiers, two)


def _common(
    values: NDArray[Any], where: IntArray, size: int, none: tuple[float, ...]
) -> NDArray[Any] | None:
    """What all rows at a place have in common, ``none`` if there are none; None if they differ."""
    found = np.tile(np.array(none, dtype=values.dtype), (size, 1))
    found[where] = values
    return found if np.array_equal(found[where], values) else None


def _ranks(labels: IntArray, among: BoolArray) -> IntArray:
    """Labels of some nodes as 0, 1, ...; -1 for the others."""
    ranks = np.full(len(labels), -1)
    ranks[among] = np.unique(labels[among], return_inverse=True)[1]
    return ranks


def _size(tiers: _Tiers) -> tuple[int, int, int] | None:
    """Planes, cores of each, and aggregation switches per pod in each, if all are joined alike."""
    inner, lowest = np.unique(tiers.inner), tiers.lowest
    cores = np.bincount(tiers.plane[tiers.core])
    switches = np.zeros((len(cores), int(tiers.pod.max()) + 1), dtype=np.int64)
    np.add.at(switches, (tiers.plane[inner], tiers.pod[inner]), 1)
    if (cores != cores[0]).any() or (switches != switches[0, 0]).any():
        return None
    links = cores[0] * len(inner) + (0 if tiers.two else lowest.sum() * switches[:, 0].sum())
    return (len(cores), int(cores[0]), int(switches[0, 0])) if links == len(tiers.row) else None


def _parts_of_pods(tiers: _Tiers, seat: BoolArray, m: int) -> list[tuple[IntArray, IntArray]]:
    """Rows of the parts of the classes `OF_PODS`, and the pod of each."""
    row, inner, up, near = tiers.row, tiers.inner, tiers.core[tiers.outer], seat[tiers.outer]
    switches, idle = np.unique(inner), np.flatnonzero(tiers.lowest & ~seat & (not tiers.two))
    links = [(row[some], tiers.pod[inner[some]]) for some in (up, ~up & near, ~up & ~near)]
    return [(m + switches, tiers.pod[switches]), *links, (m + idle, tiers.pod[idle])]


def _seats(problem: Problem, lowest: BoolArray) -> tuple[BoolArray, IntArray] | None:
    """Lowest switches that must be joined, and the rows of hosts behind them and their cables."""
    edges, m, terminals = problem.edges, len(problem.edges), problem.terminals
    hosts = terminals[~problem.transit[terminals]]
    if (np.bincount(edges.ravel(), minlength=len(lowest))[hosts] != 1).any():
        return None
    cable = np.empty(len(lowest), np.int64)
    cable[edges] = np.arange(m)[:, None]
    seat = np.zeros(len(lowest), dtype=np.bool_)
    seat[terminals[problem.transit[terminals]]] = True
    seat[edges[cable[hosts]].sum(axis=1) - hosts] = True
    needed = np.column_stack([m + hosts, cable[hosts]]).ravel()
    return (seat, needed) if not (seat & ~lowest).any() else None
