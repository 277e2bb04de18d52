"""Who sends how much to whom, between nodes where hosts are counted: every host sends a unit."""

from dataclasses import dataclass
from typing import Final

import numpy as np

from relparallel.metrics._network import Network
from relparallel.metrics._paths import distances
from relparallel.topology import Topology
from relparallel.topology._arrays import FloatArray, IntArray
from relparallel.topology.symmetry import arc_orbits, orbits

MATCHED: Final = 4096  #: most senders of a longest matching: the assignment takes the cube of it


@dataclass(frozen=True, kw_only=True, slots=True)
class Problem:
    """A network and its traffic, up to symmetry.

    Row i of ``demand`` [roots, n] is what the i-th of ``roots`` sends to every node; ``scale``
    nodes send alike. ``node_class`` and ``arc_class`` number what proved symmetries of the network
    and of the traffic carry into each other, turning all flows round among them; without any,
    everything is alone.
    """

    net: Network
    roots: IntArray
    scale: FloatArray
    demand: FloatArray
    node_class: IntArray
    arc_class: IntArray

    @property
    def symmetric(self) -> bool:
        """Whether some root sends for others too."""
        return bool((self.scale > 1).any())


def all_to_all(t: Topology, net: Network) -> Problem:
    """The same from every host to every other, from one node of every orbit.

    Where each sender is alone, what it sends to later nodes counts twice: the way back is the way
    there.
    """
    hosts, arcs = net.weight.sum(), np.arange(net.head.size)
    whole = hosts == t.num_hosts  # a share of the hosts has no symmetry
    orbit = orbits(t)[net.origin] if whole else np.arange(net.weight.size)
    senders = np.flatnonzero(net.weight)
    _, first, count = np.unique(orbit[senders], return_index=True, return_counts=True)
    roots = senders[first]
    demand = np.outer(net.weight[roots], net.weight) / (hosts - 1)
    demand[np.arange(roots.size), roots] = 0.0
    arc_class = _arc_classes(t, net) if whole else arcs
    if count.max() == 1:
        demand = 2.0 * np.where(roots[:, None] < np.arange(net.weight.size), demand, 0.0)
        arc_class = _both_ways(net, arc_class)
    sends = demand.any(axis=1)
    return Problem(
        net=net,
        roots=roots[sends],
        scale=count[sends].astype(np.float64),
        demand=demand[sends],
        node_class=orbit,
        arc_class=arc_class,
    )


def permutation(net: Network, hosts: IntArray, rng: np.random.Generator) -> Problem:
    """From every host to one other, each receiving once: a random cyclic order."""
    ring = rng.permutation(hosts)
    return _single(net, net.member[ring], net.member[np.roll(ring, 1)])


def longest_matching(t: Topology, net: Network) -> Problem:
    """From every host to one other, each receiving once, such that the hops add up to the most."""
    from scipy.optimize import linear_sum_assignment

    senders = np.flatnonzero(net.weight)
    many = net.weight[senders].astype(np.int64)
    alike = many.min() == many.max()  # then whole nodes can be matched
    ends = senders if alike else np.repeat(senders, many)
    if ends.size > MATCHED:
        raise ValueError(
            f"traffic must not be 'longest_matching' above {MATCHED} senders, got {ends.size} in "
            f"{t!r}"
        )
    hops = distances(net.indptr, net.head, net.transit, np.ones(net.head.size), senders)[:, senders]
    row = np.searchsorted(senders, ends)
    found = np.where(np.isfinite(hops), hops, 0.0)[np.ix_(row, row)]
    _, partner = linear_sum_assignment(found, maximize=True)
    return _single(net, ends, ends[partner], float(many[0]) if alike else 1.0)


def _single(net: Network, source: IntArray, target: IntArray, amount: float = 1.0) -> Problem:
    """Traffic of listed pairs; what stays at its node needs no network."""
    n = net.weight.size
    apart = source != target
    roots = np.unique(source[apart])
    demand = np.zeros((roots.size, n))
    np.add.at(demand, (np.searchsorted(roots, source[apart]), target[apart]), amount)
    return Problem(
        net=net,
        roots=roots,
        scale=np.ones(roots.size),
        demand=demand,
        node_class=np.arange(n),
        arc_class=np.arange(net.head.size),
    )


def _arc_classes(t: Topology, net: Network) -> IntArray:
    """Orbit of every arc."""
    n = net.weight.size
    if not net.head.size:
        return np.empty(0, dtype=np.int64)
    ends = net.member[np.concatenate([t.edges, t.edges[:, ::-1]])]
    between = ends[:, 0] != ends[:, 1]
    place = np.searchsorted(net.tail * n + net.head, ends[between, 0] * n + ends[between, 1])
    found = np.empty(net.head.size, dtype=np.int64)
    found[place] = arc_orbits(t).T.ravel()[between]
    return np.unique(found, return_inverse=True)[1].astype(np.int64)


def _both_ways(net: Network, arc_class: IntArray) -> IntArray:
    """Classes in which an arc and the one back are alike."""
    joined = np.minimum(arc_class, arc_class[net.reverse])
    return np.unique(joined, return_inverse=True)[1].astype(np.int64)
