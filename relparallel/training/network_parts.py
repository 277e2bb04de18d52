"""The parts of a network that can be lost, those alike to a job, and who is cut off without them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from relparallel._checks import require_instance, require_int, require_real
from relparallel.parallel.pair_flows import PairFlows, Wiring
from relparallel.topology import Topology
from relparallel.training._cut_kernel import apart_from_most

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
    """Network parts of one kind whose loss does the same.

    Parameters
    ----------
    name : str
        Kind of part: "nic" (all ports of a GPU), "gpu-leaf cable", the kind of a switch, a group of shared
        risk.
    count : int
        How many there are.
    stopped : tuple of int
        GPUs of the job that one of them cuts off; none where the job goes on.
    slowdown : float
        Time of a step without the part over the usual one, at least 1; 1 where it stops ranks.
    slowest : str
        Degree whose groups lose most bandwidth; empty where none loses any.
    left : float
        Share of its bandwidth that this degree keeps.

    Examples
    --------
    >>> NetworkPart(name="leaf", count=16, slowdown=1.5, slowest="data", left=0.5).effect
    'degrade'
    """

    name: str
    count: int
    stopped: tuple[int, ...] = ()
    slowdown: float = 1.0
    slowest: str = ""
    left: float = 1.0

    def __post_init__(self) -> None:
        require_instance(str, name=self.name, slowest=self.slowest)
        require_int(count=self.count, at_least=1, at_most=10**9)
        for gpu in require_instance(tuple, stopped=self.stopped):
            require_int(stopped=gpu, at_least=0)
        require_instance(float, slowdown=require_real(slowdown=self.slowdown, at_least=1, at_most=1e9))
        require_instance(float, left=require_real(left=self.left, at_least=0, at_most=1 + 1e-9))

    @property
    def effect(self) -> str:
        """Whether its loss stops ranks ("stop"), slows the step ("degrade") or does nothing ("none")."""
        return "stop" if self.stopped else "degrade" if self.slowdown > 1 else "none"


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
    """Parts of one kind that look alike to the groups, first part first; all apart if wanted."""
    node, pair = _colours(t, list(links))
    alike: dict[Any, list[Part]] = {}
    for number, part in enumerate(parts):
        key = (part.name, node[list(part.nodes)].sum(), pair[list(part.pairs)].sum())
        alike.setdefault(number if apart else key, []).append(part)
    return list(alike.values())


def _colours(t: Topology, links: list[PairFlows]) -> tuple[Words, Words]:
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


def _coloured_arcs(t: Topology, links: list[PairFlows]) -> tuple[Ints, Ints, Words]:
    """Tails, heads and labels: both directions of all pairs, then of all neighbours in groups."""
    tail, head = np.concatenate([t.edges, t.edges[:, ::-1]]).T
    label = _mixed(np.tile(np.round(t.capacity / t.capacity.max() * 1e6) * 1e6 + t.multiplicity, 2))
    for found in links:
        there = np.round(found.load * 1e6)
        back = np.roll(there, len(t.edges))
        label = _mixed(_mixed(label ^ _mixed(there)) ^ back.astype(np.uint64))
    tails, heads, labels = [tail], [head], [label]
    for degree, found in enumerate(links):
        ranks = found.nodes
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


def cut_off(wiring: Wiring, living: NDArray[np.bool_], cables: Ints, hosts: Ints) -> Ints:
    """Hosts of a job that are not at the part of the network which most of them are at.

    Parts are what forwarding nodes hold together; a host that does not forward is at all its neighbours'.
    O(cables).
    """
    indptr, head, link, transit = wiring
    return np.asarray(hosts[apart_from_most(indptr, head, link, cables, transit, living, hosts)])
