"""How often a fabric fails its hosts, between certified bounds, whatever its design.

The hosts in question are up themselves; switches, cables and other hosts fail. A host with one
cable stands in series with it and with its switch. What is left is bounded by its likely cuts
(`near_minimum_cuts`), which are few because good parts seldom fail together.

A host that does not forward and has several cables needs more care: three such hosts may be joined
only over each other. If what forwards falls into planes, the hosts are joined if one plane joins
all of them. With two planes this is necessary too: unless plane A joins all hosts, "in one part of
A" is a disconnected graph on them; its complement is then connected, and must lie in the disjoint
cliques of plane B: B joins all. Hence U = U_A U_B.
"""

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from relparallel.reliability.bounding.cut_bounds import near_minimum_cuts, rest_bound, union_bracket
from relparallel.reliability.frontier.decomposition import Bracket, combine
from relparallel.reliability.problem import Problem
from relparallel.topology import Topology
from relparallel.topology.symmetry import automorphisms, is_automorphism, neighbour_classes

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]

REQUIREMENTS: Final = {
    "pair": "two hosts, the worst pair, cannot communicate",
    "job": "the first {hosts} hosts cannot all communicate",
    "all": "its hosts cannot all communicate",
    "share": "a host cannot reach another one, mean over all pairs",
}
MOST_PAIRS: Final = 600  # classes of pairs that are bounded; a network without symmetry has more
MOST_RACKS: Final = 128  # whose exchange is tried as a symmetry
STEPS: Final = 2**24  # links that one search for cuts looks at
RTOL: Final = 1e-2


def index_bracket(t: Topology, requirement: str, hosts: int) -> Bracket:
    """Lower and upper bound of the probability that an equipped topology fails a requirement."""
    if requirement in ("job", "all"):
        return connection_bracket(t, t.hosts[:hosts] if requirement == "job" else t.hosts)
    counts, pairs = pair_classes(t)
    found = np.array([connection_bracket(t, pair) for pair in pairs[:MOST_PAIRS]])
    if len(pairs) > MOST_PAIRS:  # those that were not looked at: anything
        found = np.concatenate([found, np.tile([0.0, 1.0], (len(pairs) - MOST_PAIRS, 1))])
    lower, upper = found.max(axis=0) if requirement == "pair" else counts @ found / counts.sum()
    return float(lower), float(upper)


def pair_classes(t: Topology) -> tuple[IntArray, IntArray]:
    """Pairs of hosts that proved symmetries map to each other: number and one of each class [c, 2].

    Hosts on the same switches are interchangeable; so are racks that can be proved to be.
    """
    twin, first = _twins(t)
    size = np.bincount(twin)
    racks = len(first)
    images = [twin[np.searchsorted(t.hosts, g[t.hosts[first]])] for g in _symmetries(t, twin)]
    pair = np.arange(racks * racks)
    a, b = np.divmod(pair, racks)
    ends = [g[a] * racks + g[b] for g in images] + [b * racks + a]
    tail, head = np.tile(pair, len(ends)), np.concatenate(ends)
    graph = coo_array((np.ones(tail.size), (tail, head)), shape=(pair.size, pair.size))
    _, name = connected_components(graph, directed=False)
    ways = np.where(a == b, size[a] * (size[a] - 1), size[a] * size[b])
    counts = np.bincount(name, ways).astype(np.int64)
    _, one = np.unique(name, return_index=True)
    second = np.array([np.flatnonzero(twin == rack)[-1] for rack in range(racks)])
    pairs = t.hosts[np.column_stack([first[a[one]], np.where(a == b, second[a], first[b])[one]])]
    return counts[counts > 0] // 2, pairs[counts > 0]


def _twins(t: Topology) -> tuple[IntArray, IntArray]:
    """Class of every host by its hardware and cables, and first host of each class, by position."""
    own = np.column_stack([t.node_kind, t.device_class, t.transit])
    classes = neighbour_classes(
        t.edges, own, np.column_stack([t.multiplicity, t.capacity, t.latency])
    )
    _, first, number = np.unique(classes[t.hosts], return_index=True, return_inverse=True)
    return number, first


def _symmetries(t: Topology, twin: IntArray) -> list[IntArray]:
    """Declared symmetries, and exchanges of a rack with the next one, all proved."""
    racks = int(twin.max()) + 1
    found = list(automorphisms(t))
    if racks > MOST_RACKS:
        return found
    members = [t.hosts[twin == rack] for rack in range(racks)]
    above = [np.setdiff1d(np.unique(_neighbours(t, hosts[:1])), t.hosts) for hosts in members]
    for one, other in zip(range(racks), range(1, racks), strict=False):
        swap = np.arange(t.num_nodes)
        here, there = (np.concatenate([members[r], above[r]]) for r in (one, other))
        if here.size == there.size and not np.intersect1d(here, there).size:
            swap[here], swap[there] = there, here
            if is_automorphism(t, swap):
                found.append(swap)
    return found


def _neighbours(t: Topology, nodes: IntArray) -> IntArray:
    """Nodes next to some."""
    return np.concatenate([t.indices[t.indptr[v] : t.indptr[v + 1]] for v in nodes.tolist()])


def connection_bracket(t: Topology, terminals: IntArray) -> Bracket:
    """Bounds of the probability that hosts which are up cannot all communicate, by any path."""
    node = 1 - np.asarray(t.node_attributes["availability"], dtype=np.float64)
    node[terminals] = 0.0
    link = (1 - np.asarray(t.edge_attributes["availability"], dtype=np.float64)) ** t.multiplicity
    useful = t.transit.copy()
    useful[terminals] = True
    rows = useful[t.edges].all(axis=1)
    mute = np.zeros(t.num_nodes, dtype=np.bool_)
    mute[terminals] = ~t.transit[terminals]
    network = _Network(t.edges[rows], link[rows], node, mute)
    return _by_planes(network, terminals) if terminals.size > 2 else _joined(network, terminals)


class _Network(NamedTuple):
    """Links that can help, chances that they and all nodes are down, hosts that do not forward."""

    edges: IntArray
    link: FloatArray
    node: FloatArray
    mute: NDArray[np.bool_]


def _by_planes(network: _Network, terminals: IntArray) -> Bracket:
    """The same for three hosts or more, some of which have several cables and do not forward.

    They forward in the lower bound. In one plane the upper one adds the probability that no switch
    above all their leaves has all its cables: where one has, nobody needs a host on the way.
    """
    edges, link, node, mute = network
    if not (mute & (np.bincount(edges.ravel(), minlength=node.size) > 1)).any():
        return _joined(network, terminals)
    # hosts of two kinds, or side by side
    if not mute[terminals].all() or mute[edges].all(axis=1).any():
        return _joined(network, terminals)[0], 1.0
    inner = ~mute[edges].any(axis=1)
    graph = coo_array((np.ones(inner.sum()), tuple(edges[inner].T)), shape=(node.size, node.size))
    _, part = connected_components(graph, directed=False)
    plane = np.where(mute[edges[:, 0]], part[edges[:, 1]], part[edges[:, 0]])
    names = np.unique(plane)
    if names.size == 1:
        lower, upper = _joined(network, terminals)
        return lower, min(upper + _no_common_top(network), 1.0)
    each = np.array(
        [
            _by_planes(_Network(edges[plane == p], link[plane == p], node, mute), terminals)
            for p in names
        ]
    )
    lower, upper = each.prod(axis=0)
    return (float(lower) if names.size == 2 else _joined(network, terminals)[0]), float(upper)


def _joined(network: _Network, terminals: IntArray) -> Bracket:
    """Bounds of the probability that hosts are not joined, if all of them forward."""
    edges, link, node, mute = network
    degree = np.bincount(edges.ravel(), minlength=node.size)
    if (degree[terminals] == 0).any():
        return 1.0, 1.0
    (edges, link), ends, alone = _without_leaves(edges, link, mute & (degree == 1), terminals)
    apart = -np.expm1(np.log1p(-np.concatenate([alone, node[np.setdiff1d(ends, terminals)]])).sum())
    bracket = _by_cuts(edges, link, node, ends) if ends.size > 1 else (0.0, 0.0)
    return combine((1 - float(apart), float(apart)), [bracket])


def _without_leaves(
    edges: IntArray, link: FloatArray, leaf: NDArray[np.bool_], terminals: IntArray
) -> tuple[tuple[IntArray, FloatArray], IntArray, FloatArray]:
    """The network without one-cable terminals, what replaces them, and chances of their cables."""
    own = leaf[edges]
    single = own.any(axis=1)
    if own.all(axis=1).any():  # two hosts on one cable
        return (edges, link), terminals, np.zeros(0)
    switch = np.where(own[:, 0], edges[:, 1], edges[:, 0])[single]
    ends = np.unique(np.concatenate([terminals[~leaf[terminals]], switch]))
    return (edges[~single], link[~single]), ends, link[single]


def _by_cuts(edges: IntArray, link: FloatArray, node: FloatArray, ends: IntArray) -> Bracket:
    """Bounds of the probability that nodes which are up are not connected."""
    kept, place = np.unique(np.concatenate([edges.ravel(), ends]), return_inverse=True)
    chance = node[kept].copy()
    terminals = place[2 * len(edges) :]
    chance[terminals] = 0.0
    problem = Problem(
        edges=np.sort(place[: 2 * len(edges)].reshape(-1, 2), axis=1),
        link=np.column_stack([1 - link, link]),
        node=np.column_stack([1 - chance, chance]),
        terminals=np.sort(terminals),
        transit=np.ones(kept.size, dtype=np.bool_),
    )
    cuts = near_minimum_cuts(problem, RTOL / 4, STEPS, share=0.1)
    low, high = union_bracket(problem, cuts)
    return low, min(high + rest_bound(problem, cuts), 1.0)


def _no_common_top(network: _Network) -> float:
    """Probability that no switch is up with a cable to every switch next to the hosts."""
    edges, link, node, mute = network
    ends, down = np.concatenate([edges, edges[:, ::-1]]), np.concatenate([link, link])
    leaves = np.unique(ends[mute[ends[:, 0]], 1])
    above = np.isin(ends[:, 1], leaves) & ~mute[ends[:, 0]]
    count = np.bincount(ends[above, 0], minlength=node.size)
    log_up = np.bincount(ends[above, 0], np.log1p(-down[above]), minlength=node.size) + np.log1p(
        -node
    )
    return float(np.prod(-np.expm1(log_up[count == leaves.size])))
