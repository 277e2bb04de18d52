"""Which links the groups of a placement use, how fast each is, how much slower than by default."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from relparallel._checks import (
    Result,
    require_choice,
    require_instance,
    require_real,
)
from relparallel.hardware import Cluster
from relparallel.parallel.strategy import DEGREES, Placement, Strategy
from relparallel.topology import Topology

if TYPE_CHECKING:
    from scipy.sparse import csr_array

KINDS: Final = (*DEGREES, "shard", "expert")
"""Kinds of groups of a placement."""
PATTERNS: Final = ("ring", "chain", "all_to_all")
"""Who sends to whom in a group: the next rank and the last to the first; the next; all to all."""

Floats = NDArray[np.float64]
Pairs = tuple[NDArray[np.int64], NDArray[np.int64], float]


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class GroupLinks(Result):
    """Bytes that every group sends over every link for each byte of a rank, in one direction each.

    Links of a cluster: one inside its node for every GPU, then the network of every node. Links of
    a topology: its pairs of joined nodes from the lower to the higher node, then all of them the
    other way. ``joined``: whether all ranks of a group still reach each other.
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
        """Send rate of a group's ranks while all groups send [bytes/s]; 0 if it is torn apart."""
        busy = (self.load / _positive(self.capacity))[self.flow.indices]
        row = np.repeat(np.arange(len(self.groups)), np.diff(self.flow.indptr))
        worst = np.zeros(len(self.groups))
        np.maximum.at(worst, row, busy)
        with np.errstate(divide="ignore"):
            return np.where(self.joined, 1 / worst, 0.0)


def group_links(
    placement: Placement,
    network: Cluster | Topology,
    degree: str,
    *,
    pattern: str = "ring",
    alive: ArrayLike | None = None,
) -> GroupLinks:
    """Map all groups of a degree, one of `KINDS`, to the links that they use by one of `PATTERNS`.

    ``alive``: what works. Of a topology, bool [n + m]: nodes, then rows of ``edges``. Of a cluster,
    the share of each link, [gpus + nodes]: links of GPUs, then networks of nodes. On a topology
    traffic takes all shortest paths of what lives equally (ECMP); what loses its path moves to
    others, and slows who is there. Narayanan et al., SC 2021, section 3.
    """
    require_instance(Placement, placement=placement)
    require_instance((Cluster, Topology), network=network)
    require_choice(KINDS, degree=degree)
    require_choice(PATTERNS, pattern=pattern)
    there = network.gpus if isinstance(network, Cluster) else network.num_hosts
    if placement.strategy.gpus > there:
        raise ValueError(
            f"placement must need at most the {there} GPUs of the network, got tensor * pipeline * "
            "data * "
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
    """GPUs of every group; experts spread over neighbours in data and context, or tensor first."""
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


def _on_cluster(
    groups: NDArray[np.int64], pairs: Pairs, network: Cluster, alive: Any
) -> dict[str, Any]:
    """Traffic on the links of GPUs, and on the networks of nodes."""
    if network.accelerator is None or network.network_bandwidth is None:
        raise ValueError(
            f"network must have an accelerator and a network_bandwidth, got {network!r}"
        )
    source, target, amount = pairs
    node = groups // network.gpus_per_node
    inside = node[:, source] == node[:, target]
    link = np.where(inside, groups[:, source], network.gpus + node[:, source])
    count = network.gpus + network.nodes
    share = (
        np.ones(count)
        if alive is None
        else np.asarray(require_real(alive=alive, at_least=0, at_most=1))
    )
    if share.shape != (count,):
        raise ValueError(
            f"alive must have one share for each of {count} links, got shape {share.shape}"
        )
    each = [network.accelerator.node_link, network.network_bandwidth]
    full = np.repeat(each, [network.gpus, network.nodes])
    starts = np.arange(len(groups) + 1) * source.size
    values = np.full(link.size, amount)
    flow = scipy.sparse.csr_array((values, link.ravel(), starts), shape=(len(groups), count))
    flow.sum_duplicates()
    return {"flow": flow, "capacity": full * share, "joined": (share[link] > 0).all(axis=1)}


def _on_topology(
    groups: NDArray[np.int64], pairs: Pairs, network: Topology, alive: Any
) -> dict[str, Any]:
    """Traffic over the living cables in both directions, from and to the living hosts."""
    from relparallel.metrics._network import arcs_of, require_alive  # load a compiler
    from relparallel.parallel.flows import Wiring

    living, cables = arcs_of(network, require_alive(network, alive))
    source, target, amount = pairs
    hosts = network.hosts[groups].astype(np.int64)
    ends = np.stack([hosts[:, source], hosts[:, target]], axis=-1).reshape(-1, 2)
    found = Wiring.of(network).flows(cables, ends)
    starts = np.arange(len(groups) + 1) * source.size
    values = np.full(len(ends), amount)
    sent = scipy.sparse.csr_array(
        (values, np.arange(len(ends)), starts), shape=(len(groups), len(ends))
    )
    reached = (np.diff(found.indptr) > 0).reshape(len(groups), -1)
    return {
        "flow": (sent @ found).sorted_indices(),
        "capacity": np.tile(network.capacity * cables, 2),
        "joined": reached.all(axis=1) & (living[hosts] > 0).all(axis=1),
    }


def _positive(values: Floats) -> Floats:
    """The values, and a very small number in place of 0."""
    return np.where(values > 0, values, 1e-200)


def communicating(strategy: Strategy) -> dict[str, str]:
    """Degrees whose groups have more than one rank, each with its pattern of messages."""
    return {
        name: "chain" if name == "pipeline" else "ring"
        for name in DEGREES
        if getattr(strategy, name) > 1
    }


def placement_slowdowns(
    strategy: Strategy,
    cluster: Cluster,
    placement: Placement | None,
    network: Topology | None,
    alive: ArrayLike | None,
) -> dict[str, float]:
    """Bandwidth of the groups of each degree in the default placement, over what they have."""
    usual = Placement(strategy=strategy)
    chosen = usual if placement is None else require_instance(Placement, placement=placement)
    if chosen.strategy != strategy:
        raise ValueError(
            f"placement must place the strategy {strategy}, got one of {chosen.strategy}"
        )
    wired = cluster if network is None else require_instance(Topology, network=network)
    if chosen == usual and network is None and alive is None:
        return {}
    return {
        degree: _slowdown(chosen, cluster, wired, degree, alive)
        for degree in communicating(strategy)
    }


def _slowdown(
    placement: Placement,
    cluster: Cluster,
    wired: Cluster | Topology,
    degree: str,
    alive: ArrayLike | None = None,
) -> float:
    """Least bandwidth of a degree's groups on a cluster, over that which they have, all at once."""
    usual, pattern = (
        Placement(strategy=placement.strategy),
        communicating(placement.strategy)[degree],
    )
    had = group_links(usual, cluster, degree, pattern=pattern).bandwidth.min()
    has = group_links(placement, wired, degree, pattern=pattern, alive=alive).bandwidth.min()
    if has == 0:
        name = "network" if alive is None else "alive"
        raise ValueError(
            f"{name} must leave the {degree} groups joined, got one that is torn apart"
        )
    return float(had / has)


def degrees_of(choices: NDArray[Any]) -> NDArray[np.int64]:
    """Tensor, pipeline, data and context degrees that occur, [k, 4] in lexicographic order."""
    columns = [choices[name].astype(np.int64) for name in ("tensor", "pipeline", "data", "context")]
    return np.unique(np.column_stack(columns), axis=0)


def slowdowns(
    degrees: NDArray[np.int64],
    cluster: Cluster,
    network: Cluster | Topology,
    order: tuple[str, ...] = DEGREES,
) -> list[dict[str, float]]:
    """Bandwidth of each degree's groups on a cluster over that on a network, per row of degrees.

    On the network ranks are dealt out in an order; the ranks of a group are equally far apart, so
    two degrees whose groups have as many ranks at the same distances have the same groups.
    O(distinct groups x GPUs x cables).
    """
    known: dict[tuple[int, int, int, str], float] = {}
    found: list[dict[str, float]] = []
    for tensor, pipeline, data, context in degrees.tolist():
        strategy = Strategy(tensor=tensor, pipeline=pipeline, data=data, context=context)
        usual, apart = _distances(strategy, DEGREES), _distances(strategy, order)
        found.append({})
        for degree, pattern in communicating(strategy).items():
            key = (usual[degree], apart[degree], getattr(strategy, degree), pattern)
            if key not in known:
                known[key] = _slowdown(
                    Placement(strategy=strategy, order=order), cluster, network, degree
                )
            found[-1][degree] = known[key]
    return found


def _distances(strategy: Strategy, order: tuple[str, ...]) -> dict[str, int]:
    """How far apart neighbours of a group of each degree are, with ranks dealt out in an order."""
    found, apart = {}, 1
    for degree in order:
        found[degree], apart = apart, apart * getattr(strategy, degree)
    return found
