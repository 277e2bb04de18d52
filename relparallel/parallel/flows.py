"""Traffic split equally over all shortest paths (ECMP), by pair of ranks, and what a loss moves.

A pair is searched from both ends at once. After a loss only pairs whose paths cross what is lost
are searched anew; the least bandwidth of all groups follows from the loads of the links.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numba
import numpy as np
import scipy
from numpy.typing import NDArray

from relparallel.topology import Topology

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
_NOISE = 1e-12  # of the bytes of a pair: the same share, added up in another order


class Wiring(NamedTuple):
    """A network as arcs of each node, each with its link number: its pair, or m more backwards."""

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
        return cls(
            indptr.astype(np.int64), head[order].astype(np.int64), order.astype(np.int64), t.transit
        )

    def flows(self, cables: Ints, ends: Ints) -> scipy.sparse.csr_array:
        """Share of each pair of ends on each link, [pairs, links], on all shortest paths (ECMP)."""
        starts, links, shares = self.shares(cables, ends)
        return scipy.sparse.csr_array((shares, links, starts), shape=(len(ends), 2 * cables.size))

    def shares(self, cables: Ints, ends: Ints) -> tuple[Ints, Ints, Floats]:
        """The same, as where each pair starts, and its links and shares."""
        found: tuple[Ints, Ints, Floats] = shortest_flows(
            *self[:3], cables.astype(np.float64), self.transit, ends
        )
        return found


@dataclass(frozen=True, kw_only=True, eq=False)
class PairFlows:
    """Every rank that sends to the next of its group, over a whole network.

    ``nodes`` are the network nodes of all ranks, [groups, ranks]; ``ends`` those of senders and
    receivers, in different nodes, [pairs, 2]; ``group`` is the group of a pair, ``flow`` its share
    on every link, ``capacity`` that of the links [bytes/s], and ``load`` the bytes on each for each
    that a rank sends.
    """

    nodes: Ints
    pattern: str
    ends: Ints
    group: Ints
    flow: scipy.sparse.csr_array
    crossing: scipy.sparse.csc_array
    capacity: Floats
    load: Floats

    @classmethod
    def of(cls, wiring: Wiring, network: Topology, nodes: Ints, pattern: str) -> PairFlows:
        """Search all pairs; ``pattern`` is a "ring" or a "chain"."""
        last = nodes.shape[1] if pattern == "ring" else nodes.shape[1] - 1
        ends = np.stack([nodes[:, :last], np.roll(nodes, -1, axis=1)[:, :last]], axis=-1).reshape(
            -1, 2
        )
        apart = np.flatnonzero(ends[:, 0] != ends[:, 1])
        flow = wiring.flows(network.multiplicity, ends[apart])
        return cls(
            nodes=nodes,
            pattern=pattern,
            ends=ends[apart],
            group=apart // max(last, 1),
            flow=flow,
            crossing=flow.tocsc(),
            capacity=np.tile(network.capacity * network.multiplicity, 2),
            load=np.asarray(flow.sum(axis=0)),
        )

    @property
    def bandwidth(self) -> float:
        """Least of any group while all of them send [bytes/s]; 0 where one is torn apart."""
        torn = (np.diff(self.flow.indptr) == 0).any()
        return 0.0 if torn else self._least(self.load, self.capacity)

    def without(self, wiring: Wiring, network: Topology, cables: Ints) -> tuple[float, Ints]:
        """Least bandwidth with living cables of every node pair, and the nodes of torn groups."""
        gone = np.flatnonzero(np.tile(cables < network.multiplicity, 2))
        ptr, of = self.crossing.indptr, self.crossing.indices
        hit = np.unique(np.concatenate([of[ptr[link] : ptr[link + 1]] for link in gone]))
        if not hit.size:
            return self._least(self.load, self.capacity), np.zeros(0, dtype=np.int64)
        starts, links, shares = wiring.shares(cables, self.ends[hit])
        torn = np.diff(starts) == 0
        if torn.any():
            return 0.0, np.unique(self.nodes[self.group[hit[torn]]])
        size = np.diff(self.flow.indptr)[hit]
        entry = np.repeat(self.flow.indptr[hit + 1] - np.cumsum(size), size) + np.arange(size.sum())
        moved = np.bincount(links, shares, self.load.size)
        moved -= np.bincount(self.flow.indices[entry], self.flow.data[entry], self.load.size)
        moved[np.abs(moved) < _NOISE * hit.size] = 0.0
        living = np.tile(cables > 0, 2)
        capacity = np.tile(network.capacity * cables, 2)
        return self._least(np.where(living, self.load + moved, 0.0), capacity), np.zeros(
            0, dtype=np.int64
        )

    @staticmethod
    def _least(load: Floats, capacity: Floats) -> float:
        """The link that takes longest for a byte of all ranks; infinite where nothing is sent."""
        busy = np.divide(load, capacity, out=np.zeros_like(load), where=capacity > 0).max(
            initial=0.0
        )
        return float(1 / busy) if busy > 0 else float("inf")


@numba.njit(cache=True)
def _grow(  # type: ignore[no-untyped-def]
    indptr, head, link, cables, transit, order, first, last, level, ways, weight, goal
):
    """Label nodes one cable beyond those in order[first:last]; returns the new end of ``order``."""
    m, end = cables.size, last
    for i in range(first, last):
        u = order[i]
        for a in range(indptr[u], indptr[u + 1]):
            v, wide = head[a], cables[link[a] % m]
            if wide == 0 or not (transit[v] or v == goal):
                continue
            if level[v] < 0:
                level[v], ways[v], weight[v], order[end] = level[u] + 1, 0.0, 0.0, v
                end += 1
            if level[v] == level[u] + 1:
                ways[v] += wide * ways[u]
    return end


@numba.njit(cache=True)
def _trace(  # type: ignore[no-untyped-def]
    indptr, head, link, cables, order, inner, level, ways, weight, paths, turn, links, values, used
):
    """Share of all paths over every cable between the nodes order[:inner] and those beyond them.

    ``weight`` holds the ways on to the other end; ``turn`` is m where traffic runs against the
    search.
    """
    m = cables.size
    for i in range(inner - 1, -1, -1):
        u = order[i]
        for a in range(indptr[u], indptr[u + 1]):
            v = head[a]
            if level[v] == level[u] + 1 and weight[v] > 0:
                wide = cables[link[a] % m]
                if wide > 0:
                    weight[u] += wide * weight[v]
                    links[used], values[used] = (
                        (link[a] + turn) % (2 * m),
                        ways[u] * wide * weight[v] / paths,
                    )
                    used += 1
    return used


@numba.njit(cache=True)
def _room(indptr, orders, inner, used, links, values):  # type: ignore[no-untyped-def]
    """The arrays of the result, longer where the next pair might not fit."""
    need = used
    for side in range(2):
        for i in range(inner[side]):
            need += indptr[orders[side, i] + 1] - indptr[orders[side, i]]
    if need <= links.size:
        return links, values
    more_links, more_values = np.empty(2 * need, dtype=np.int64), np.empty(2 * need)
    more_links[:used], more_values[:used] = links[:used], values[:used]
    return more_links, more_values


@numba.njit(cache=True)
def shortest_flows(indptr, head, link, cables, transit, ends):  # type: ignore[no-untyped-def]
    """Links that each pair of ends uses, and its share on each; none for a pair without a path.

    ``link`` is the number of an arc from the tail, ``link % m`` its row of ``cables``. The side
    with fewer nodes at its rim grows, until both meet: O(cables near the two ends) a pair, not
    O(all cables).
    """
    n = indptr.size - 1
    level, order = np.full((2, n), -1, dtype=np.int64), np.empty((2, n), dtype=np.int64)
    ways, weight = np.empty((2, n)), np.empty((2, n))
    links, values = np.empty(1024, dtype=np.int64), np.empty(1024)
    starts, used = np.zeros(len(ends) + 1, dtype=np.int64), 0
    inner, last = np.empty(2, dtype=np.int64), np.empty(2, dtype=np.int64)
    for pair in range(len(ends)):
        for side in range(2):
            u = ends[pair, side]
            level[side, u], ways[side, u], weight[side, u], order[side, 0] = 0, 1.0, 0.0, u
            inner[side], last[side] = 0, 1
        paths = 0.0
        while paths == 0 and ends[pair, 0] != ends[pair, 1]:
            side = 0 if last[0] - inner[0] <= last[1] - inner[1] else 1
            end = _grow(
                indptr,
                head,
                link,
                cables,
                transit,
                order[side],
                inner[side],
                last[side],
                level[side],
                ways[side],
                weight[side],
                ends[pair, 1 - side],
            )
            if end == last[side]:
                break
            inner[side], last[side] = last[side], end
            for i in range(inner[side], end):
                v = order[side, i]
                if level[1 - side, v] >= 0:
                    paths += ways[0, v] * ways[1, v]
                    weight[0, v], weight[1, v] = ways[1, v], ways[0, v]
        if paths > 0:
            links, values = _room(indptr, order, inner, used, links, values)
            for side in range(2):
                used = _trace(
                    indptr,
                    head,
                    link,
                    cables,
                    order[side],
                    inner[side],
                    level[side],
                    ways[side],
                    weight[side],
                    paths,
                    side * cables.size,
                    links,
                    values,
                    used,
                )
        for side in range(2):
            for i in range(last[side]):
                level[side, order[side, i]] = -1
        starts[pair + 1] = used
    return starts, links[:used].copy(), values[:used].copy()
