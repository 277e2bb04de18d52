"""Lower bound of the bisection of a tree of switches, by traffic that goes up to all top switches alike.

Every node splits what it has evenly over its cables towards the top. If each top switch gets the same share
from every host, the smaller half A of the hosts can send one unit each to the other half B by way of the top:
up as all hosts do, down the same way backwards. No cable then carries more than the busiest does with all
hosts sending, L, in either direction, so that at least |A| / L cables lie between A and B (Valiant,
"A scheme for fast parallel communication", SIAM J. Computing 1982). Hosts that meet at switches with no way
up, such as those of NVLink, first spread what they send over all hosts there, and what they receive comes the
same way: a host sends 2 units at most to these switches, and takes 2 at most.
"""

from __future__ import annotations

import numpy as np

from relparallel.topology import Topology
from relparallel.topology._arrays import BoolArray, FloatArray, IntArray


def up_down(t: Topology) -> float:
    """Return the bound, 0 where hosts reach the top switches in different shares."""
    tail, head = np.concatenate([t.edges, t.edges[:, ::-1]]).T
    level = _levels(t, tail, head)
    reaches, up = _upwards(tail, head, level)
    if level.max() == 0 or not reaches[t.hosts].all():
        return 0.0
    group, inner = _groups(t, reaches)
    cables = np.tile(t.multiplicity, 2)[up].astype(np.float64)
    tail, head = tail[up], head[up]
    number = np.bincount(tail, weights=cables, minlength=t.num_nodes)
    alike = np.array_equal(number[t.hosts], number[group[t.hosts]])
    if not alike or np.unique(_shares(group[tail], head, cables, level)[group[t.hosts]]).size > 1:
        return 0.0
    return t.num_hosts // 2 / max(inner, _busiest(t.endpoint.astype(np.float64), tail, head, cables, level))


def _groups(t: Topology, reaches: BoolArray) -> tuple[IntArray, float]:
    """First host of the group in which each host spreads its traffic, and the load of a cable there."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    own, cables = np.arange(t.num_nodes), t.multiplicity.astype(np.float64)
    inside = t.endpoint[t.edges].any(axis=1) & ~reaches[t.edges].all(axis=1)
    if not inside.any():
        return own, 0.0
    ends = (t.edges[inside, 0], t.edges[inside, 1])
    graph = coo_array((cables[inside], ends), shape=(t.num_nodes,) * 2)
    part = connected_components(graph, directed=False)[1]
    hosts = np.bincount(part, weights=t.endpoint)
    switch = np.where(t.endpoint[ends[0]], ends[1], ends[0])
    met = np.bincount(switch, minlength=t.num_nodes)[switch]
    if np.unique(cables[inside]).size > 1 or not np.array_equal(met, hosts[part[switch]]):
        return own, 0.0  # not every host at every switch, by as many cables
    first = np.full(hosts.size, t.num_nodes)
    np.minimum.at(first, part[t.hosts], t.hosts)
    least = np.bincount(np.concatenate(ends), weights=np.tile(cables[inside], 2), minlength=t.num_nodes)[
        t.hosts
    ]
    return np.where(t.endpoint, first[part], own), 2.0 / float(least[least > 0].min())


def _levels(t: Topology, tail: IntArray, head: IntArray) -> IntArray:
    """Links from the nearest host; -1 where there is none."""
    level = np.where(t.endpoint, 0, -1)
    for depth in range(t.num_nodes):
        next_up = head[(level[tail] == depth) & (level[head] < 0)]
        if not next_up.size:
            break
        level[next_up] = depth + 1
    return level


def _upwards(tail: IntArray, head: IntArray, level: IntArray) -> tuple[BoolArray, IntArray]:
    """Nodes from which a way leads up to the top level, and the arcs of these ways."""
    top = int(level.max())
    rising = np.flatnonzero((level[head] == level[tail] + 1) & (level[tail] >= 0))
    reaches = level == top
    for depth in range(top - 1, -1, -1):
        below = rising[level[tail[rising]] == depth]
        reaches[tail[below[reaches[head[below]]]]] = True
    return reaches, rising[reaches[head[rising]]]


def _shares(tail: IntArray, head: IntArray, cables: FloatArray, level: IntArray) -> IntArray:
    """Class of every node: in one class all have cables to the same classes, at the top each is alone."""
    kind = np.where(level == level.max(), np.arange(level.size), -1)
    for depth in range(int(level.max()) - 1, -1, -1):
        arcs = np.flatnonzero(level[tail] == depth)
        arcs = arcs[np.lexsort((cables[arcs], kind[head[arcs]], tail[arcs]))]
        node, start = np.unique(tail[arcs], return_index=True)
        above = np.column_stack([kind[head[arcs]], cables[arcs].astype(np.int64)])
        known: dict[bytes, int] = {}
        for v, rows in zip(node.tolist(), np.split(above, start[1:]), strict=True):
            kind[v] = known.setdefault(rows.tobytes(), v)
    return kind


def _busiest(sent: FloatArray, tail: IntArray, head: IntArray, cables: FloatArray, level: IntArray) -> float:
    """Load of the busiest cable when every host sends one unit up."""
    number = np.bincount(tail, weights=cables, minlength=sent.size)
    load = 0.0
    for depth in range(int(level.max())):
        arcs = np.flatnonzero(level[tail] == depth)
        each = sent[tail[arcs]] / number[tail[arcs]]
        load = max(load, float(each.max()))
        sent = sent + np.bincount(head[arcs], weights=each * cables[arcs], minlength=sent.size)
    return load
