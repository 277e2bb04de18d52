"""Traffic of one degree, pair of ranks by pair: what a loss on the network moves elsewhere.

Only pairs whose paths cross what is lost are searched anew; the least bandwidth of all groups follows from
the loads of the links.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from relparallel.parallel._flows import shortest_flows
from relparallel.topology import Topology

if TYPE_CHECKING:
    from scipy.sparse import csc_array, csr_array

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
_NOISE = 1e-12  # of the bytes of a pair: the same share, added up in another order


class Wiring(NamedTuple):
    """A network as arcs of every node, each with the number of its link: its pair, or m more backwards."""

    indptr: Ints
    head: Ints
    link: Ints
    transit: NDArray[np.bool_]

    @classmethod
    def of(cls, t: Topology) -> Wiring:
        """Both directions of every pair, dead or alive."""
        tail, head = np.concatenate([t.edges, t.edges[:, ::-1]]).T
        order = np.lexsort((head, tail))
        indptr = np.searchsorted(tail[order], np.arange(t.num_nodes + 1))
        return cls(indptr.astype(np.int64), head[order].astype(np.int64), order.astype(np.int64), t.transit)

    def flows(self, cables: Ints, ends: Ints) -> csr_array:
        """Share of each pair of ends on every link, [pairs, links]: all shortest paths alike (ECMP)."""
        from scipy.sparse import csr_array

        starts, links, shares = shortest_flows(*self[:3], cables.astype(np.float64), self.transit, ends)
        return csr_array((shares, links, starts), shape=(len(ends), 2 * cables.size))


@dataclass(frozen=True, kw_only=True, eq=False)
class PairFlows:
    """Every rank that sends to the next of its group, over a whole network.

    ``nodes`` are the network nodes of all ranks, [groups, ranks]; ``ends`` those of senders and receivers,
    in different nodes, [pairs, 2]; ``group`` is the group of a pair, ``flow`` its share on every link,
    ``capacity`` that of the links [bytes/s], and ``load`` the bytes on each for each that a rank sends.
    """

    nodes: Ints
    pattern: str
    ends: Ints
    group: Ints
    flow: csr_array
    crossing: csc_array
    capacity: Floats
    load: Floats

    @classmethod
    def of(cls, wiring: Wiring, network: Topology, nodes: Ints, pattern: str) -> PairFlows:
        """Search all pairs; ``pattern`` is a "ring" or a "chain"."""
        last = nodes.shape[1] if pattern == "ring" else nodes.shape[1] - 1
        ends = np.stack([nodes[:, :last], np.roll(nodes, -1, axis=1)[:, :last]], axis=-1).reshape(-1, 2)
        apart = np.flatnonzero(ends[:, 0] != ends[:, 1])
        flow = wiring.flows(network.multiplicity, ends[apart])
        return cls(
            nodes=nodes, pattern=pattern, ends=ends[apart], group=apart // max(last, 1), flow=flow,
            crossing=flow.tocsc(), capacity=np.tile(network.capacity * network.multiplicity, 2),
            load=np.asarray(flow.sum(axis=0)),
        )  # fmt: skip

    @property
    def bandwidth(self) -> float:
        """Least of any group while all of them send [bytes/s]; 0 where one is torn apart."""
        torn = (np.diff(self.flow.indptr) == 0).any()
        return 0.0 if torn else self._least(self.load, self.capacity)

    def without(self, wiring: Wiring, network: Topology, cables: Ints) -> tuple[float, Ints]:
        """Least bandwidth with the living cables of every pair of nodes, and the nodes of torn groups."""
        gone = np.flatnonzero(np.tile(cables < network.multiplicity, 2))
        ptr, of = self.crossing.indptr, self.crossing.indices
        hit = np.unique(np.concatenate([of[ptr[link] : ptr[link + 1]] for link in gone]))
        if not hit.size:
            return self._least(self.load, self.capacity), np.zeros(0, dtype=np.int64)
        now, before = wiring.flows(cables, self.ends[hit]), self.flow[hit]
        torn = np.diff(now.indptr) == 0
        if torn.any():
            return 0.0, np.unique(self.nodes[self.group[hit[torn]]])
        moved = np.asarray(now.sum(axis=0) - before.sum(axis=0))
        moved[np.abs(moved) < _NOISE * hit.size] = 0.0
        living = np.tile(cables > 0, 2)
        capacity = np.tile(network.capacity * cables, 2)
        return self._least(np.where(living, self.load + moved, 0.0), capacity), np.zeros(0, dtype=np.int64)

    @staticmethod
    def _least(load: Floats, capacity: Floats) -> float:
        """The link that takes longest for a byte of all ranks; infinite where nothing is sent."""
        busy = np.divide(load, capacity, out=np.zeros_like(load), where=capacity > 0).max(initial=0.0)
        return float(1 / busy) if busy > 0 else float("inf")
