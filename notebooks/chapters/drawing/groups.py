"""Layouts of group networks: switch rings, discs on a circle, clusters of a projective plane."""

import math

import numpy as np
from numpy.typing import NDArray

from chapters.drawing.shapes import Points, circle, fans, spread, turned, unit
from relparallel.topology import Topology
from relparallel.topology.designs.finite_geometry import clusters

IntArray = NDArray[np.int64]


def groups(t: Topology) -> Points:
    """Groups on a circle; within a group a ring for every tier, the hosts outside."""
    points, radius = np.zeros((t.num_nodes, 2)), 0.0
    pods = np.unique(t.pod)
    for i, pod in enumerate(pods):
        inner = 0.0
        for depth, tier in enumerate(np.unique(t.tier[t.pod == pod])[::-1]):
            ring = np.flatnonzero((t.pod == pod) & (t.tier == tier))
            alone = depth == 0 and len(ring) == 1
            inner = 0.0 if alone else max(inner + 1, 0.5 / math.sin(math.pi / max(len(ring), 2)))
            points[ring] = turned(circle(len(ring), inner), i / len(pods) + 0.5 / len(ring))
        radius = max(radius, inner)
    return points + _on_a_circle(len(pods), max(radius, 0.5))[np.searchsorted(pods, t.pod)]


def spokes(t: Topology) -> Points:
    """Groups on a circle, tiers one behind the other: the switches with global cables inside."""
    pods, points, widest = np.unique(t.pod), np.zeros((t.num_nodes, 2)), 1
    for i, pod in enumerate(pods):
        for tier in np.unique(t.tier):
            row = np.flatnonzero((t.pod == pod) & (t.tier == tier))
            widest = max(widest, len(row))
            across = spread(-len(row) / 2, len(row) / 2, len(row)) * (2 if tier else 1)
            local = np.column_stack([across, np.full(len(row), 1.3 * (1 - float(tier)))])
            points[row] = turned(local, i / len(pods))
    return points + _on_a_circle(len(pods), max(widest / 2, 2) - 0.2)[np.searchsorted(pods, t.pod)]


def circles(t: Topology) -> Points:
    """All switches on one circle, pods apart from each other, every host outside its switch."""
    pod = t.pod[_switches(t)]
    number = np.searchsorted(np.unique(pod), pod)
    place = np.arange(pod.size) + 2 * number  # two free places after every pod
    count = place[-1] + (3 if number.any() else 1)
    centres = circle(count, 0.55 * max(count, 3) / math.pi)[place]
    return _with_hosts(t, centres, unit(centres))


def rings_of_subgroups(t: Topology) -> Points:
    """The subgroups of a Slim Fly: those of one half on an outer circle, of the other inside."""
    q = int(t.meta.parameters["q"])
    size = 0.6 / math.sin(math.pi / q)
    near = 1.25 * (size + 0.8) / math.sin(math.pi / q)
    middle = np.concatenate(
        [circle(q, near + 2.2 * (size + 0.8)), turned(circle(q, near), 0.5 / q)]
    )
    local = np.tile(circle(q, size), (2 * q, 1))
    return _with_hosts(t, np.repeat(middle, q, axis=0) + local, unit(local))


def planes(t: Topology) -> Points:
    """A PolarFly: its quadrics in the middle; round it a cluster per neighbour of the first one."""
    cluster = clusters(t)[_switches(t)]
    centres, away = np.zeros((cluster.size, 2)), np.zeros((cluster.size, 2))
    count, most = int(cluster.max()), int(np.bincount(cluster)[1:].max(initial=1))
    size = 0.6 / math.sin(math.pi / max(most - 1, 3))
    heart = 0.6 / math.sin(math.pi / max(int(np.count_nonzero(cluster == 0)), 2))
    radius = max(1.3 * (size + 0.8) / math.sin(math.pi / max(count, 2)), heart + size + 2.4)
    for number, middle in enumerate([np.zeros(2), *circle(max(count, 1), radius)]):
        inside = _from_hub(t, cluster, number)
        hub = number > 0 and len(inside) > 1  # the neighbour itself stands in the middle
        around = turned(circle(max(len(inside) - hub, 1), size if number else heart), number / 7)
        local = np.concatenate([np.zeros((int(hub), 2)), around])[: len(inside)]
        centres[inside] = middle + local
        away[inside] = local + 0.3 * middle / radius
    return _with_hosts(t, centres, unit(away))


def quadrics(t: Topology) -> NDArray[np.bool_]:
    """Switches of a PolarFly that its picture shows in the middle: they have a cable less."""
    return np.arange(t.num_nodes) > t.num_nodes - int(t.meta.parameters["q"]) - 2


def _from_hub(t: Topology, cluster: IntArray, number: int) -> IntArray:
    """Switches of a cluster, the neighbour of the first quadric first, then joined pairs."""
    switches = _switches(t)
    near = set(_neighbours(t, switches[-int(t.meta.parameters["q"]) - 1]))
    inside = [int(node) for node in switches[cluster == number]]
    hub = next((node for node in inside if node in near and number), None)

    def place(node: int) -> tuple[bool, int]:
        partners = [other for other in _neighbours(t, node) if other in inside and other != hub]
        return node != hub, min([node, *partners])

    return np.array(sorted(inside, key=place), dtype=np.int64) - int(switches[0])


def _neighbours(t: Topology, node: int) -> list[int]:
    return [int(other) for other in t.indices[t.indptr[node] : t.indptr[node + 1]]]


def _switches(t: Topology) -> IntArray:
    """Nodes that are joined to each other: the hosts themselves where there are no switches."""
    return t.switches if t.num_switches else np.arange(t.num_nodes)


def _with_hosts(t: Topology, centres: Points, away: Points) -> Points:
    """Switches at their places, and the hosts, which come first, around them."""
    if not t.num_switches:
        return centres
    home = np.repeat(np.arange(len(centres)), t.num_hosts // len(centres))
    return np.concatenate([fans(centres, away, home), centres])


def _on_a_circle(count: int, radius: float) -> Points:
    """Centres of discs of a radius on a circle, not touching; one alone stands in the middle."""
    return (
        circle(count, (1.05 * radius + 0.45) / math.sin(math.pi / count))
        if count > 1
        else np.zeros((1, 2))
    )
