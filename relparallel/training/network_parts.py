"""The parts of a network that can be lost, those alike to a job, and who is cut off without them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from relparallel.parallel.group_links import GroupLinks
from relparallel.topology import Topology

__all__ = ["Part", "classes_of", "cut_off", "parts_of"]

Ints = NDArray[np.int64]
Words = NDArray[np.uint64]
_MOST = 256  # colours of nodes
_INSIDE = ("nvswitch", "nic")  # parts of a server; elsewhere the ports of a host are its card


class Part(NamedTuple):
    """Nodes, and pairs of joined nodes, that are lost together; one cable of each pair, or all of them."""

    name: str
    nodes: tuple[int, ...] = ()
    pairs: tuple[int, ...] = ()
    bundles: bool = True

    def left(self, t: Topology) -> tuple[NDArray[np.float64], Ints]:
        """Living hosts, and living cables of every pair."""
        nodes, cables = np.ones(t.num_nodes, dtype=np.bool_), t.multiplicity.copy()
        nodes[list(self.nodes)] = False
        pairs = list(self.pairs)
        cables[pairs] = 0 if self.bundles else cables[pairs] - 1
        return (t.endpoint & nodes).astype(np.float64), cables * nodes[t.edges].all(axis=1)


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


def classes_of(
    t: Topology, parts: Iterable[Part], links: Iterable[GroupLinks], apart: bool = False
) -> list[list[Part]]:
    """Parts of one kind that look alike to the groups, first part first; all apart if wanted."""
    node, pair = _colours(t, list(links))
    alike: dict[Any, list[Part]] = {}
    for number, part in enumerate(parts):
        key = (part.name, node[list(part.nodes)].sum(), pair[list(part.pairs)].sum())
        alike.setdefault(number if apart else key, []).append(part)
    return list(alike.values())


def _colours(t: Topology, links: list[GroupLinks]) -> tuple[Words, Words]:
    """Colours of nodes and pairs: equal where cables, loads and neighbours in groups are, however far away.

    Colour refinement (Weisfeiler, Leman 1968) of the network with an arc from every rank to the next of each
    of its groups: the colour of a node is mixed from its own and those of its neighbours until no more
    classes appear, or too many to look at. O(arcs) a round.
    """
    tail, head, label = _coloured_arcs(t, links)
    colour = _mixed(t.node_kind.astype(np.uint64) * np.uint64(4) + t.transit + 2 * t.endpoint)
    classes = 0
    while classes < (now := np.unique(colour).size) <= _MOST:
        classes, kept = now, colour
        gathered = np.zeros(t.num_nodes, dtype=np.uint64)
        np.add.at(gathered, head, _mixed(colour[tail] ^ label))
        colour = _mixed(colour + _mixed(gathered))
    colour = kept
    m = len(t.edges)
    seen = _mixed(colour[tail[: 2 * m]] ^ label[: 2 * m])
    return colour, seen[:m] + seen[m:]


def _coloured_arcs(t: Topology, links: list[GroupLinks]) -> tuple[Ints, Ints, Words]:
    """Tails, heads and labels: both directions of all pairs, then of all neighbours in groups."""
    tail, head = np.concatenate([t.edges, t.edges[:, ::-1]]).T
    label = _mixed(np.tile(np.round(t.capacity / t.capacity.max() * 1e6) * 1e6 + t.multiplicity, 2))
    for found in links:
        there = np.round(found.load * 1e6)
        back = np.roll(there, len(t.edges))
        label = _mixed(_mixed(label ^ _mixed(there)) ^ back.astype(np.uint64))
    tails, heads, labels = [tail], [head], [label]
    for degree, found in enumerate(links):
        ranks = t.hosts[found.groups]
        last = ranks.shape[1] if found.pattern == "ring" else ranks.shape[1] - 1
        this, following = ranks[:, :last].ravel(), np.roll(ranks, -1, axis=1)[:, :last].ravel()
        tails += [this, following]
        heads += [following, this]
        labels += [_mixed(np.full(this.size, 2 * degree + way + 1)) for way in (0, 1)]
    return np.concatenate(tails), np.concatenate(heads), np.concatenate(labels)


def _mixed(values: NDArray[Any]) -> Words:
    """Scatter words so that sums of them tell sets apart (the finaliser of splitmix64)."""
    x = values.astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def cut_off(t: Topology, living: NDArray[np.float64], cables: Ints, ranks: Ints) -> Ints:
    """GPUs of a job that are not at the part of the network which most of them are at.

    Parts are what forwarding nodes hold together; a host that does not forward is at all its neighbours'.
    """
    pairs = t.edges[cables > 0]
    inner = pairs[t.transit[pairs].all(axis=1)]
    shape = (t.num_nodes, t.num_nodes)
    graph = csr_array((np.ones(len(inner), dtype=np.int8), (inner[:, 0], inner[:, 1])), shape=shape)
    part = connected_components(graph, directed=False)[1]
    tail, head = np.concatenate([pairs, pairs[:, ::-1]]).T
    forwards = t.transit[head]
    node = np.concatenate([tail[forwards], np.flatnonzero(t.transit)])
    at = np.concatenate([part[head[forwards]], part[t.transit]])
    hosts = t.hosts[ranks]
    number = np.full(t.num_nodes, -1)
    number[hosts] = np.where(living[hosts] > 0, np.arange(hosts.size), -1)
    some = number[node] >= 0
    seen = np.unique(np.stack([at[some], number[node[some]]]), axis=1)
    most = np.argmax(np.bincount(seen[0], minlength=1))
    return np.delete(ranks, seen[1, seen[0] == most])
