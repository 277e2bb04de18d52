"""Which links the groups of a placement use, how full these are, and how fast each group is.

All groups of one degree communicate at once, as they do in training: groups that leave a node together
share its network. Ranks take the GPUs of a `Cluster` in order, or the hosts of a `Topology` in order.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from relparallel._checks import Result, require_choice, require_instance, require_real
from relparallel.hardware import Cluster
from relparallel.metrics._network import arcs_of, require_alive
from relparallel.parallel._arguments import require_indices, require_number
from relparallel.parallel.collective_time import RINGS, one_ring
from relparallel.parallel.flows import Wiring, sparse_rows
from relparallel.parallel.strategy import Placement
from relparallel.topology import Topology

if TYPE_CHECKING:
    from scipy.sparse import csr_array

DEGREES: Final = ("tensor", "context", "data", "pipeline", "shard", "expert")
"""Kinds of groups of a placement."""
PATTERNS: Final = ("ring", "chain", "all_to_all")
"""Who sends to whom in a group: the next rank and the last to the first; the next; all to all others."""

Floats = NDArray[np.float64]
Pairs = tuple[NDArray[np.int64], NDArray[np.int64], float]


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class GroupLinks(Result):
    """Bytes that every group sends over every link for each byte of a rank, in one direction each.

    Links of a cluster: one inside its node for every GPU, then the network of every node. Links of a
    topology: its pairs of joined nodes from the lower to the higher node, then all of them the other way.
    ``joined``: whether all ranks of a group still reach each other.
    """

    groups: NDArray[np.int64]
    pattern: str
    flow: csr_array
    capacity: Floats
    joined: NDArray[np.bool_]

    @property
    def load(self) -> Floats:
        """Bytes over each link for each byte that every rank sends, [links]."""
        return np.asarray(self.flow.sum(axis=0), dtype=np.float64)

    @property
    def bandwidth(self) -> Floats:
        """At which the ranks of a group send while all groups do [bytes/s]; 0 where it is torn apart."""
        return self._slowest((self.load / _positive(self.capacity))[self.flow.indices])

    @property
    def alone(self) -> Floats:
        """At which the ranks of a group send while the others are silent [bytes/s]."""
        return self._slowest(self.flow.data / _positive(self.capacity[self.flow.indices]))

    @property
    def bottleneck(self) -> NDArray[np.int64]:
        """Slowest link of every group, [groups]; -1 for a group that sends nothing."""
        busy = self.load / _positive(self.capacity)
        found = np.full(len(self.groups), -1)
        for group in np.flatnonzero(np.diff(self.flow.indptr)):
            links = self.flow.indices[self.flow.indptr[group] : self.flow.indptr[group + 1]]
            found[group] = links[np.argmax(busy[links])]
        return found

    def crossing(self, links: ArrayLike) -> NDArray[np.bool_]:
        """Which groups send anything over any of these links, bool [groups]."""
        chosen = np.zeros(self.capacity.size)
        chosen[require_indices("links", links, self.capacity.size)] = 1.0
        return np.asarray(self.flow @ chosen > 0)

    def time(self, kind: str, size: float, *, latency: float = 0.0, launch: float = 0.0) -> Floats:
        """Seconds of one collective in every group, all at once; infinite for a group that is torn apart.

        A sum or gathering goes round a ring, "send" along a chain: launch + r (n - 1)(alpha + N/(n B)) at the
        bandwidth B of the group, r = 2 for an all-reduce.
        """
        fits = {"send": "chain", "all_to_all": "all_to_all"}
        require_choice((*RINGS, *fits), kind=kind)
        if self.pattern != fits.get(kind, "ring"):
            raise ValueError(
                f"kind must be one that a pattern {self.pattern!r} carries, got {kind!r}, "
                f"which needs {fits.get(kind, 'ring')!r}"
            )
        require_number(size=size, latency=latency, launch=launch, at_least=0)
        ranks = self.groups.shape[1]
        if ranks == 1:
            return np.zeros(len(self.groups))
        bandwidth = self.bandwidth
        whole = np.where(bandwidth > 0, size / _positive(bandwidth), np.inf)
        if kind == "send":
            return launch + latency + whole
        ring: Floats = one_ring(ranks, latency, whole, 0.0, 0.0)
        return launch + RINGS.get(kind, 1) * ring

    def _slowest(self, busy: Floats) -> Floats:
        """Bytes per second of every group from the seconds per byte of its links."""
        row = np.repeat(np.arange(len(self.groups)), np.diff(self.flow.indptr))
        worst = np.zeros(len(self.groups))
        np.maximum.at(worst, row, busy)
        with np.errstate(divide="ignore"):
            return np.where(self.joined, 1 / worst, 0.0)


def group_links(
    placement: Placement, network: Cluster | Topology, degree: str, *, pattern: str = "ring",
    alive: ArrayLike | None = None,
) -> GroupLinks:  # fmt: skip
    """Map all groups of a degree to the links that they use.

    Parameters
    ----------
    placement : Placement
        Which GPU runs which rank.
    network : Cluster or Topology
        With at least as many GPUs or hosts as the strategy needs.
    degree : {"tensor", "context", "data", "pipeline", "shard", "expert"}
        Which groups.
    pattern : {"ring", "chain", "all_to_all"}
        Who sends to whom.
    alive : array_like, optional
        What works. Of a topology, bool [n + m]: nodes, then rows of ``edges``. Of a cluster, the share of
        each link, [gpus + nodes]: links of GPUs, then networks of nodes.

    Returns
    -------
    GroupLinks
        What each group sends over each link. On a topology traffic takes all shortest paths of what lives
        equally (ECMP); what loses its path moves to others, and slows who is there. Narayanan et al., SC
        2021, section 3.

    Examples
    --------
    >>> from relparallel.hardware import cluster
    >>> from relparallel.parallel import Strategy
    >>> placement = Placement(strategy=Strategy(tensor=8, data=4))
    >>> found = group_links(placement, cluster("a100-80gb-selene", gpus=32), "data")
    >>> float(found.bandwidth[0])  # eight groups share the 200 GB/s of a node
    25000000000.0
    """
    require_instance(Placement, placement=placement)
    require_instance((Cluster, Topology), network=network)
    require_choice(DEGREES, degree=degree)
    require_choice(PATTERNS, pattern=pattern)
    there = network.gpus if isinstance(network, Cluster) else network.num_hosts
    if placement.strategy.gpus > there:
        raise ValueError(
            f"placement must need at most the {there} GPUs of the network, got tensor * pipeline * data * "
            f"context = {placement.strategy.gpus}"
        )
    groups = groups_of(placement, degree)
    pairs = _pairs(groups.shape[1], pattern)
    if isinstance(network, Cluster):
        used = _on_cluster(groups, pairs, network, alive)
    else:
        used = _on_topology(groups, pairs, network, alive)
    return GroupLinks(groups=groups, pattern=pattern, **used)


def groups_of(placement: Placement, degree: str) -> NDArray[np.int64]:
    """GPUs of every group; experts are spread over neighbours in data and context, or in tensor first."""
    if degree != "expert":
        return np.asarray(getattr(placement, f"{degree}_groups"))
    s = placement.strategy
    grid = placement.gpu.reshape(s.pipeline, -1, s.expert_tensor)
    return grid.transpose(0, 2, 1).reshape(-1, s.expert)


def _pairs(ranks: int, pattern: str) -> Pairs:
    """Senders, receivers, and the bytes from one to the other when every rank sends one byte."""
    if pattern == "all_to_all":
        source, target = np.nonzero(~np.eye(ranks, dtype=np.bool_))
        return source, target, 1 / max(ranks - 1, 1)
    source = np.arange(ranks if pattern == "ring" and ranks > 1 else ranks - 1)
    return source, (source + 1) % ranks, 1.0


def _on_cluster(groups: NDArray[np.int64], pairs: Pairs, network: Cluster, alive: Any) -> dict[str, Any]:
    """Traffic on the links of GPUs, and on the networks of nodes."""
    if network.accelerator is None or network.network_bandwidth is None:
        raise ValueError(f"network must have an accelerator and a network_bandwidth, got {network!r}")
    source, target, amount = pairs
    node = groups // network.gpus_per_node
    inside = node[:, source] == node[:, target]
    link = np.where(inside, groups[:, source], network.gpus + node[:, source])
    count = network.gpus + network.nodes
    share = np.ones(count) if alive is None else np.asarray(require_real(alive=alive, at_least=0, at_most=1))
    if share.shape != (count,):
        raise ValueError(f"alive must have one share for each of {count} links, got shape {share.shape}")
    each = [network.accelerator.node_link, network.network_bandwidth]
    full = np.repeat(each, [network.gpus, network.nodes])
    starts = np.arange(len(groups) + 1) * source.size
    flow = sparse_rows(starts, link.ravel(), np.full(link.size, amount), count)
    flow.sum_duplicates()
    return {"flow": flow, "capacity": full * share, "joined": (share[link] > 0).all(axis=1)}


def _on_topology(groups: NDArray[np.int64], pairs: Pairs, network: Topology, alive: Any) -> dict[str, Any]:
    """Traffic over the living cables in both directions, from and to the living hosts."""
    living, cables = arcs_of(network, require_alive(network, alive))
    source, target, amount = pairs
    hosts = network.hosts[groups].astype(np.int64)
    ends = np.stack([hosts[:, source], hosts[:, target]], axis=-1).reshape(-1, 2)
    found = Wiring.of(network).flows(cables, ends)
    starts = np.arange(len(groups) + 1) * source.size
    sent = sparse_rows(starts, np.arange(len(ends)), np.full(len(ends), amount), len(ends))
    reached = (np.diff(found.indptr) > 0).reshape(len(groups), -1)
    return {
        "flow": (sent @ found).sorted_indices(),
        "capacity": np.tile(network.capacity * cables, 2),
        "joined": reached.all(axis=1) & (living[hosts] > 0).all(axis=1),
    }


def _positive(values: Floats) -> Floats:
    """The values, and a very small number in place of 0."""
    return np.where(values > 0, values, 1e-200)
