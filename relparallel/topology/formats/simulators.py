"""Topologies for network simulators: ns-3 as ASTRA-sim uses it, htsim, BookSim.

ns-3 (ASTRA-sim, HPCC): a line ``nodes switches links``; a line with the ids of all switches; for
every cable a line ``source target rate delay error``, with rates as ``400Gbps`` and delays as
``0.0005ms``. The other ids are hosts.

htsim ``.topo``: ``Nodes``, ``Tiers`` (2 or 3) and ``Podsize``, then for each tier from the bottom
``Tier i`` with ``Downlink_speed_Gbps``, ``Radix_Down``, ``Radix_Up`` (not at the top),
``Downlink_Latency_ns``, ``Switch_Latency_ns``, ``Oversubscribed`` and ``Bundle`` (parallel cables
downwards), all whole numbers. Host i hangs at switch i // Radix_Down; the simulator wires the rest
by itself, so only networks that it wires so are written.

BookSim ``anynet``: for every router a line ``router i`` with ``node j cycles`` for its hosts and
``router j cycles`` for its neighbours. The cycles of a channel between routers hold for one
direction, so every channel is named in the lines of both; numbers run from 0 without gaps, and a
node has one router.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from relparallel._checks import require_real
from relparallel.topology._arrays import BoolArray, IntArray, parts
from relparallel.topology.fabric import Topology, as_topology
from relparallel.topology.formats import _text
from relparallel.units import GBIT

if TYPE_CHECKING:
    import networkx as nx

_NANOSECOND = 1e-9


def write_ns3(topology: Topology | nx.Graph[Any], path: str | os.PathLike[str]) -> None:
    """Write the topology file of ns-3 as ASTRA-sim and HPCC read it."""
    t = as_topology(topology, name="topology")
    number = hosts_first(t)
    head = [
        f"{t.num_nodes} {t.num_switches} {t.num_links}",
        " ".join(map(str, sorted(number[t.switches]))),
    ]
    _text.write(path, "\n".join([*head, *cable_lines(t, number)]) + "\n")


def hosts_first(t: Topology, *later: BoolArray) -> IntArray:
    """New number of every node: hosts, nodes of each later group, the rest; each in its order."""
    group = np.where(t.endpoint, 0, len(later) + 1)
    for rank, members in enumerate(later, start=1):
        group[members & ~t.endpoint] = rank
    number = np.empty(t.num_nodes, dtype=np.int64)
    number[np.argsort(group, kind="stable")] = np.arange(t.num_nodes)
    return number


def cable_lines(t: Topology, number: IntArray) -> Iterator[str]:
    """One line for every cable: both ends, rate, delay, error rate."""
    ends = np.sort(number[t.edges], axis=1).tolist()
    errors = t.edge_attributes.get("error_rate", np.zeros(len(ends)))
    table = zip(
        ends, t.multiplicity.tolist(), t.capacity.tolist(), t.latency.tolist(), errors, strict=True
    )
    for (u, v), cables, capacity, latency, error in table:
        line = f"{u} {v} {_text.rate(capacity)} {_text.delay(latency)} {float(error or 0):.17g}"
        yield from [line] * cables


def write_htsim(
    topology: Topology, path: str | os.PathLike[str], *, switch_latency: float = 0.0
) -> None:
    """Write the ``.topo`` file of htsim of a two- or three-tier Clos network."""
    t = as_topology(topology, name="topology")
    own_delay = _whole(require_real(switch_latency=switch_latency, at_least=0), "switch_latency", 0)
    tiers, pod = _tiers(t)
    lines = [f"Nodes {t.num_hosts}", f"Tiers {len(tiers)}", f"Podsize {pod}"]
    for rank, tier in enumerate(tiers):
        above = tiers[rank + 1] if rank + 1 < len(tiers) else None
        lines += [
            "",
            f"Tier {rank}",
            f"Downlink_speed_Gbps {tier.speed}",
            f"Radix_Down {tier.down}",
        ]
        lines += [f"Radix_Up {tier.up}"] if above else []
        lines += [f"Downlink_Latency_ns {tier.latency}", f"Switch_Latency_ns {own_delay}"]
        lines += [f"Oversubscribed {_oversubscription(tier, above)}"] if above else []
        lines += [f"Bundle {tier.bundle}"]
    _text.write(path, "\n".join(lines) + "\n")


@dataclass(frozen=True, kw_only=True, slots=True)
class _Tier:
    """Switches of one tier, all alike: ports down and up, and the cables downwards."""

    down: int
    up: int
    bundle: int
    speed: int
    latency: int


def _refuse(wrong: str, remedy: str = "write another format, such as write_ns3") -> ValueError:
    return ValueError(f"topology must be a network that htsim can wire: {wrong}; {remedy}")


def _tiers(t: Topology) -> tuple[list[_Tier], int]:
    """Tiers from the bottom, and hosts of a pod."""
    levels = np.unique(t.tier[t.switches])
    if not 2 <= levels.size <= 3:
        raise _refuse(f"it needs 2 or 3 tiers of switches, got {levels.size}")
    rank = np.where(t.endpoint, 0, np.searchsorted(levels, t.tier) + 1)
    lower, upper = np.sort(rank[t.edges], axis=1).T
    if np.any(upper != lower + 1):
        raise _refuse("every cable must join neighbouring tiers")
    ports = np.zeros((2, t.num_nodes), dtype=np.int64)  # downwards, upwards
    order = np.take_along_axis(t.edges, np.argsort(rank[t.edges], axis=1), axis=1)
    np.add.at(ports[1], order[:, 0], t.multiplicity)
    np.add.at(ports[0], order[:, 1], t.multiplicity)
    if np.any(ports[1][t.endpoint] != 1):
        raise _refuse("every host must have one cable")
    tiers = [
        _Tier(
            down=_alike(ports[0][rank == level], "ports downwards", level),
            up=_alike(ports[1][rank == level], "ports upwards", level),
            bundle=_alike(t.multiplicity[upper == level], "parallel cables", level),
            speed=_whole(
                _alike(t.capacity[upper == level], "capacity", level) / GBIT, "capacity", 1, 1.0
            ),
            latency=_whole(_alike(t.latency[upper == level], "latency", level), "latency", 1),
        )
        for level in range(1, levels.size + 1)
    ]
    return tiers, _pod(t, order, rank)


def _alike(values: Any, what: str, level: int) -> Any:
    """The one value of all switches or cables of a tier."""
    found = np.unique(values)
    if found.size != 1:
        raise _refuse(f"tier {level - 1} must have one number for {what}, got {found[:5].tolist()}")
    return found[0].item()


def _whole(value: float, name: str, at_least: int, unit: float = _NANOSECOND) -> int:
    """The value in units, which must be a whole number of them."""
    count = round(value / unit)
    if abs(value / unit - count) > 1e-6 * max(count, 1) or count < at_least:
        told = "Gbit/s" if unit == 1.0 else "ns"
        shown = f"{value / unit:.6g} {told}"
        raise ValueError(
            f"{name} must be a whole number of {told}, at least {at_least}, for htsim, got "
            f"{shown}; "
            f"set it, for cables by dataclasses.replace(topology, {name}=...)"
        )
    return count


def _oversubscription(tier: _Tier, above: _Tier) -> int:
    """Ratio of capacity downwards and upwards, from which htsim counts the switches above."""
    ratio, rest = divmod(tier.down * tier.speed, tier.up * above.speed)
    if rest or ratio < 1:
        shown = f"{tier.down} x {tier.speed} : {tier.up} x {above.speed}"
        raise _refuse(f"downwards to upwards capacity must be a whole ratio, got {shown}")
    return int(ratio)


def _pod(t: Topology, order: IntArray, rank: IntArray) -> int:
    """Hosts of a pod, after proof that htsim's wiring is this one up to the numbers of switches."""
    lower, upper = order.T
    top = int(rank.max())
    inner = rank[upper] == 2
    count, member = _components(
        t, lower[inner], upper[inner], np.flatnonzero((rank == 1) | (rank == 2))
    )
    size = {r: np.bincount(member[rank == r], minlength=count) for r in (1, 2)}
    if np.any(size[1] != size[1][0]) or np.any(size[2] != size[2][0]):
        raise _refuse("every pod must have as many switches as the others")
    if np.count_nonzero(inner) != count * size[1][0] * size[2][0] or (top == 2 and count > 1):
        raise _refuse("every switch of a pod must be joined to every switch of its other tier")
    if top == 3:
        _require_planes(lower[rank[upper] == 3], upper[rank[upper] == 3], member)
    leaf = lower[rank[upper] == 1], upper[rank[upper] == 1]
    switch = leaf[1][np.argsort(leaf[0])]
    for name, groups in (("rack", switch), ("pod", member[switch])):
        if np.count_nonzero(np.diff(groups)) != np.unique(groups).size - 1:
            raise _refuse(
                f"hosts must be numbered {name} by {name}", f"number the hosts {name} by {name}"
            )
    return t.num_hosts // count


def _components(t: Topology, u: IntArray, v: IntArray, among: IntArray) -> tuple[int, IntArray]:
    """Number of parts the cables make of the nodes, and the part of each node (-1 elsewhere)."""
    labels = parts(np.column_stack([u, v]), t.num_nodes)
    found, part = np.unique(labels[among], return_inverse=True)
    member = np.full(t.num_nodes, -1, dtype=np.int64)
    member[among] = part
    return found.size, member


def _require_planes(lower: IntArray, upper: IntArray, pod: IntArray) -> None:
    """Refuse unless all pods divide the core switches alike among their aggregation switches."""
    families: dict[int, set[frozenset[int]]] = {}
    for switch in np.unique(lower):
        families.setdefault(int(pod[switch]), set()).add(frozenset(upper[lower == switch].tolist()))
    first, *others = families.values()
    if any(family != first for family in others):
        raise _refuse("every pod must divide the core switches among its switches in the same way")
    if sum(map(len, first)) != len(frozenset().union(*first)):
        raise _refuse("no two switches of a pod may share a core switch")


def write_booksim(
    topology: Topology | nx.Graph[Any], path: str | os.PathLike[str], *, cycle: float = _NANOSECOND
) -> None:
    """Write the ``network_file`` of BookSim's anynet."""
    t = as_topology(topology, name="topology")
    step = require_real(cycle=cycle, above=0)
    own = _own_router(t)
    node = np.cumsum(t.endpoint) - 1
    router = np.full(t.num_nodes, -1)
    routers = [*t.switches.tolist(), *np.flatnonzero(own).tolist()]
    router[routers] = np.arange(len(routers))
    ends: dict[int, list[str]] = {v: [f"node {node[v]} 1"] if own[v] else [] for v in routers}
    cycles = np.maximum(np.rint(t.latency / step), 1).astype(np.int64)
    for (u, v), length in zip(t.edges.tolist(), cycles.tolist(), strict=True):
        for a, b in ((u, v), (v, u)):
            if router[a] >= 0:
                other = f"router {router[b]}" if router[b] >= 0 else f"node {node[b]}"
                ends[a].append(f"{other} {length}")
    lines = (" ".join([f"router {router[v]}", *ends[v]]) for v in routers)
    _text.write(path, "\n".join(lines) + "\n")


def _own_router(t: Topology) -> BoolArray:
    """Hosts that need a router of their own, after proof that BookSim can say the network."""
    if np.any(t.multiplicity > 1):
        u, v = t.edges[np.argmax(t.multiplicity > 1)].tolist()
        raise _unsaid(
            f"nodes {u} and {v} have parallel cables", "merge them into one of their capacity"
        )
    if np.unique(t.capacity).size > 1:
        raise _unsaid(
            "capacities differ",
            "give all cables one, by dataclasses.replace(topology, capacity=...)",
        )
    if _components(t, t.edges[:, 0], t.edges[:, 1], np.arange(t.num_nodes))[0] > 1:
        raise _unsaid("it is not connected", "write its parts one by one")
    hosts_near = np.bincount(t.edges[t.endpoint[t.edges[:, ::-1]]], minlength=t.num_nodes)
    own = t.endpoint & ((t.degrees != 1) | (hosts_near > 0))
    stuck = np.flatnonzero(own & ~t.transit & (t.degrees > 1))
    if stuck.size:
        raise _unsaid(
            f"host {stuck[0]} has {t.degrees[stuck[0]]} cables and forwards nothing, a BookSim "
            "node has one",
            "join each host to one switch",
        )
    return np.asarray(own)


def _unsaid(wrong: str, remedy: str) -> ValueError:
    return ValueError(
        f"topology must be a network that BookSim's anynet can say: {wrong}; {remedy}"
    )
