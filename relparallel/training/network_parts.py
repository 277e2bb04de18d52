"""Network parts that can be lost, which are interchangeable to a job, and whom a loss cuts off."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from relparallel.topology import Topology

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    from relparallel.parallel.flows import PairFlows

Ints = NDArray[np.int64]
_MOST = 256  # colours of nodes
_INSIDE = ("nvswitch", "nic")  # parts of a server; elsewhere the ports of a host are its card


class Part(NamedTuple):
    """Nodes and pairs of joined nodes that are lost together; one or all cables of each pair."""

    name: str
    nodes: tuple[int, ...] = ()
    pairs: tuple[int, ...] = ()
    bundles: bool = True

    def left(self, t: Topology) -> tuple[NDArray[np.bool_], Ints]:
        """Living hosts, and living cables of every pair."""
        nodes, cables = np.ones(t.num_nodes, dtype=np.bool_), t.multiplicity.copy()
        nodes[list(self.nodes)] = False
        pairs = list(self.pairs)
        cables[pairs] = 0 if self.bundles else cables[pairs] - 1
        if self.nodes:
            cables *= nodes[t.edges[:, 0]] & nodes[t.edges[:, 1]]
        return t.endpoint & nodes, cables

    def number(self, t: Topology) -> int:
        """How many there are of it: all cables of its pair where one of them is lost."""
        return 1 if self.bundles else int(t.multiplicity[list(self.pairs)].sum())


@dataclass(frozen=True, kw_only=True, slots=True)
class NetworkPart:
    """Network parts of one kind whose loss does the same."""

    # "nic" (all ports of a GPU), "gpu-leaf cable", the kind of a switch, a group of shared risk
    name: str
    count: int
    stopped: tuple[int, ...] = ()  # GPUs of the job that one of them cuts off
    slowdown: float = 1.0  # step time without the part over the usual one; 1 where it stops ranks
    slowest: str = ""  # degree whose groups lose most bandwidth, if any does
    left: float = 1.0  # share of its bandwidth that this degree keeps

    @property
    def effect(self) -> str:
        """Whether its loss stops ranks ("stop"), slows the step ("degrade") or neither ("none")."""
        return "stop" if self.stopped else "degrade" if self.slowdown > 1 else "none"

    def level(self, gpus_per_node: int) -> str:
        """Return the level of a part that cuts off as much; it says which checkpoints survive."""
        wide = len({gpu // gpus_per_node for gpu in self.stopped})
        return "switch" if wide != 1 else "node" if len(self.stopped) > 1 else "gpu"


def parts_of(t: Topology) -> list[Part]:
    """Switches, cables, cards (all ports of a host), and groups of shared risk."""
    kind = np.array(t.kinds)[t.node_kind]
    ends = np.sort(t.node_kind[t.edges], axis=1)
    found = [Part(str(kind[node]), nodes=(node,)) for node in t.switches.tolist()]
    found += [
        Part(f"{t.kinds[low]}-{t.kinds[high]} cable", pairs=(pair,), bundles=False)
        for pair, (low, high) in enumerate(ends.tolist())
    ]
    outside = t.endpoint[t.edges].any(axis=1) & ~t.endpoint[t.edges].all(axis=1)
    ports = np.flatnonzero(outside & ~np.isin(kind[t.edges], _INSIDE).any(axis=1))
    host = np.where(t.endpoint[t.edges[ports, 0]], t.edges[ports, 0], t.edges[ports, 1])
    order = np.argsort(host, kind="stable")
    cards = np.split(ports[order], np.flatnonzero(np.diff(host[order])) + 1) if ports.size else []
    found += [Part("nic", pairs=tuple(card.tolist())) for card in cards]
    return found + [
        Part(re.sub(r"\s*\d+", "", risk.name) or risk.name, risk.nodes, risk.edges)
        for risk in t.shared_risk
    ]


def outside(t: Topology, name: str) -> bool:
    """Whether a kind of part is of the network, not of a server; network cards count as network."""
    if not name.endswith(" cable"):
        return name != "nvswitch"
    hosts = {t.kinds[kind] for kind in t.node_kind[t.hosts]}
    ends = set(name.removesuffix(" cable").split("-"))
    return "nvswitch" not in ends and not ("nic" in ends and ends & hosts)


def left_without(t: Topology, parts: Iterable[Part]) -> tuple[NDArray[np.bool_], Ints]:
    """Living hosts, and living cables of every pair, when several parts are lost at once."""
    living, cables = t.endpoint.copy(), t.multiplicity.copy()
    for part in parts:
        hosts, kept = part.left(t)
        living &= hosts
        cables -= t.multiplicity - kept
    return living, np.maximum(cables, 0)


def classes_of(
    t: Topology,
    parts: Iterable[Part],
    links: Iterable[PairFlows],
    apart: bool = False,
    lost: Part | None = None,
) -> list[list[Part]]:
    """Parts of one kind interchangeable to the groups, first part first; all apart if wanted.

    Once a part is lost, those are interchangeable that are also alike as seen from there.
    """
    node, pair = _colours(t, list(links), lost)
    same_kind: dict[Any, list[Part]] = {}
    for number, part in enumerate(parts):
        key = (
            part.name,
            *(tuple(sorted(c[list(p)])) for c, p in ((node, part.nodes), (pair, part.pairs))),
        )
        same_kind.setdefault(number if apart else key, []).append(part)
    return list(same_kind.values())


def _colours(t: Topology, links: list[PairFlows], lost: Part | None) -> tuple[Ints, Ints]:
    """Colours of nodes and pairs, refined with an edge from each rank to the next in its groups."""
    from relparallel.topology.symmetry import refine_colours  # loads a compiler

    m = len(t.edges)
    load = np.array([np.round(found.load * 1e6) for found in links]).reshape(-1, 2, m)
    cables = np.column_stack([np.round(t.capacity / t.capacity.max() * 1e6), t.multiplicity])
    groups = [_neighbours(found) for found in links]
    degree = np.repeat(np.arange(1.0, len(links) + 1), [len(pairs) for pairs in groups])
    members = np.tile(degree[:, None], cables.shape[1] + 2 * len(links))
    there = np.concatenate([np.column_stack([cables, *load[:, 0], *load[:, 1]]), members])
    back = np.concatenate([np.column_stack([cables, *load[:, 1], *load[:, 0]]), -members])
    own = np.column_stack([t.node_kind, t.transit, t.endpoint])
    most: int | None = _MOST
    if lost is not None:
        most = None  # as far apart as it goes: then no class of before is mixed
        own = np.column_stack([own, np.isin(np.arange(t.num_nodes), lost.nodes)])
        here = np.isin(np.arange(len(there)), lost.pairs)
        there, back = np.column_stack([there, here]), np.column_stack([back, here])
    node, pair = refine_colours(np.concatenate([t.edges, *groups]), own, there, back, most=most)
    return node, pair[:m]


def _neighbours(found: PairFlows) -> Ints:
    """Every rank and the next one of its group."""
    ranks = found.nodes
    last = ranks.shape[1] if found.pattern == "ring" else ranks.shape[1] - 1
    return np.column_stack([ranks[:, :last].ravel(), np.roll(ranks, -1, axis=1)[:, :last].ravel()])


def cut_off(t: Topology, living: NDArray[np.bool_], cables: Ints, hosts: Ints) -> Ints:
    """Hosts outside the part of the network, joined by forwarding nodes, where most hosts are."""
    from scipy.sparse.csgraph import connected_components

    one, other = t.edges[cables > 0].T
    inner = t.transit[one] & t.transit[other]
    part = connected_components(_graph(one[inner], other[inner], t.num_nodes), directed=False)[1]
    apart = np.zeros(t.num_nodes, dtype=np.bool_)
    apart[hosts] = True
    own = np.flatnonzero(apart & t.transit)
    node, via = np.concatenate([own, one, other]), np.concatenate([own, other, one])
    meets = (apart & living)[node] & t.transit[via]
    node, there = node[meets], part[via[meets]]
    # each pair once
    most = np.bincount(_graph(node, there, t.num_nodes).indices, minlength=1).argmax()
    apart[node[there == most]] = False
    return hosts[apart[hosts]]


def _graph(start: Ints, end: Ints, nodes: int) -> csr_array:
    """Matrix of pairs, each once."""
    from scipy.sparse import csr_array

    return csr_array((np.ones(start.size, dtype=np.bool_), (start, end)), shape=(nodes, nodes))
