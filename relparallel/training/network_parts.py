"""The parts of a network that can be lost, which are interchangeable to a job, and whom a loss cuts off."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from relparallel.parallel.pair_flows import PairFlows, Wiring
from relparallel.topology import Topology
from relparallel.topology.symmetry import refine_colours

Ints = NDArray[np.int64]
_MOST = 256  # colours of nodes
_INSIDE = ("nvswitch", "nic")  # parts of a server; elsewhere the ports of a host are its card


class Part(NamedTuple):
    """Nodes, and pairs of joined nodes, that are lost together; one cable of each pair, or all of them."""

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


@dataclass(frozen=True, kw_only=True, slots=True)
class NetworkPart:
    """Network parts of one kind whose loss does the same."""

    name: str  # "nic" (all ports of a GPU), "gpu-leaf cable", the kind of a switch, a group of shared risk
    count: int
    stopped: tuple[int, ...] = ()  # GPUs of the job that one of them cuts off
    slowdown: float = 1.0  # step time without the part over the usual one; 1 where it stops ranks
    slowest: str = ""  # degree whose groups lose most bandwidth, if any does
    left: float = 1.0  # share of its bandwidth that this degree keeps

    @property
    def effect(self) -> str:
        """Whether its loss stops ranks ("stop"), slows the step ("degrade") or does nothing ("none")."""
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
        Part(re.sub(r"\s*\d+", "", risk.name) or risk.name, risk.nodes, risk.edges) for risk in t.shared_risk
    ]


def outside(t: Topology, name: str) -> bool:
    """Whether a kind of part is of the network, not of a server: beyond its cards, which count as network."""
    if not name.endswith(" cable"):
        return name != "nvswitch"
    hosts = {t.kinds[kind] for kind in t.node_kind[t.hosts]}
    ends = set(name.removesuffix(" cable").split("-"))
    return "nvswitch" not in ends and not ("nic" in ends and ends & hosts)


def classes_of(
    t: Topology, parts: Iterable[Part], links: Iterable[PairFlows], apart: bool = False
) -> list[list[Part]]:
    """Parts of one kind that are interchangeable to the groups, first part first; all apart if wanted."""
    node, pair = _colours(t, list(links))
    same_kind: dict[Any, list[Part]] = {}
    for number, part in enumerate(parts):
        key = part.name, *(tuple(sorted(c[list(p)])) for c, p in ((node, part.nodes), (pair, part.pairs)))
        same_kind.setdefault(number if apart else key, []).append(part)
    return list(same_kind.values())


def _colours(t: Topology, links: list[PairFlows]) -> tuple[Ints, Ints]:
    """Colours of nodes and pairs, refined with an edge from every rank to the next of each of its groups."""
    m = len(t.edges)
    load = np.array([np.round(found.load * 1e6) for found in links]).reshape(-1, 2, m)
    cables = np.column_stack([np.round(t.capacity / t.capacity.max() * 1e6), t.multiplicity])
    groups = [_neighbours(found) for found in links]
    degree = np.repeat(np.arange(1.0, len(links) + 1), [len(pairs) for pairs in groups])
    members = np.tile(degree[:, None], cables.shape[1] + 2 * len(links))
    there = np.concatenate([np.column_stack([cables, *load[:, 0], *load[:, 1]]), members])
    back = np.concatenate([np.column_stack([cables, *load[:, 1], *load[:, 0]]), -members])
    own = np.column_stack([t.node_kind, t.transit, t.endpoint])
    node, pair = refine_colours(np.concatenate([t.edges, *groups]), own, there, back, most=_MOST)
    return node, pair[:m]


def _neighbours(found: PairFlows) -> Ints:
    """Every rank and the next one of its group."""
    ranks = found.nodes
    last = ranks.shape[1] if found.pattern == "ring" else ranks.shape[1] - 1
    return np.column_stack([ranks[:, :last].ravel(), np.roll(ranks, -1, axis=1)[:, :last].ravel()])


def cut_off(wiring: Wiring, living: NDArray[np.bool_], cables: Ints, hosts: Ints) -> Ints:
    """Hosts apart from the part of the network, held together by forwarding nodes, where most are."""
    indptr, head, link, transit = wiring
    return np.asarray(hosts[_apart_from_most(indptr, head, link, cables, transit, living, hosts)])


@numba.njit(cache=True)
def _root(above, node):  # type: ignore[no-untyped-def]
    """First node of the part that a node is in; shortens the way there."""
    while above[node] != node:
        above[node] = above[above[node]]
        node = above[node]
    return node


@numba.njit(cache=True)
def _apart_from_most(indptr, head, link, cables, transit, living, hosts):  # type: ignore[no-untyped-def]
    """Whether each host is not at the part of the network where most are; union-find over living cables."""
    n, m = indptr.size - 1, cables.size
    above = np.arange(n)
    for u in range(n):
        if not transit[u]:
            continue
        for a in range(indptr[u], indptr[u + 1]):
            v = head[a]
            if v > u and transit[v] and cables[link[a] % m] > 0:
                one, other = _root(above, u), _root(above, v)
                above[max(one, other)] = min(one, other)
    number, seen = np.zeros(n, dtype=np.int64), np.full(n, -1, dtype=np.int64)
    at = np.zeros(hosts.size, dtype=np.bool_)
    most = -1
    for counting in (True, False):  # first how many are where, then who is not there
        seen[:] = -1
        for i in range(hosts.size):
            u = hosts[i]
            if not living[u]:
                continue
            for a in range(indptr[u] - 1, indptr[u + 1]):
                v = head[a] if a >= indptr[u] else u
                if not transit[v] or (v != u and cables[link[a] % m] == 0):
                    continue
                part = _root(above, v)
                if counting and seen[part] != i:
                    seen[part] = i
                    number[part] += 1
                elif not counting and part == most:
                    at[i] = True
        most = int(np.argmax(number))
    return ~at
