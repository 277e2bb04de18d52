"""Multi-rooted trees of switches besides the fat-tree: three-tier networks, VL2 and Aspen trees.

Letters of the papers: ``d_a`` and ``d_i`` ports of VL2's aggregation and intermediate switches; of
an Aspen tree, ``k`` ports per switch, ``f_i`` failures tolerated between levels i and i-1, ``c_i =
f_i + 1`` links of a level-i switch into each pod below, ``r_i`` pods below, ``m_i`` switches in a
pod of level i and ``S`` switches of each level but the last.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from relparallel._checks import require_instance, require_int
from relparallel.topology._arrays import IntArray
from relparallel.topology.description import Description, design, planned
from relparallel.topology.designs._shared import blocks, nested, rolled, rolls, tiered, tree_hops
from relparallel.topology.fabric import Topology
from relparallel.topology.parts import LINK_CAPACITY

SERVERS_PER_TOR: Final = 20  #: of VL2: servers of 1 Gbit/s on two uplinks of 10 Gbit/s


def _three_tier(cores: int, pods: int, access_per_pod: int, hosts_per_access: int) -> Description:
    require_int(cores=cores, pods=pods, at_least=1)
    require_int(access_per_pod=access_per_pod, hosts_per_access=hosts_per_access, at_least=1)
    access = pods * access_per_pod
    hosts = access * hosts_per_access
    diameter, mean = tree_hops(hosts_per_access, access_per_pod, pods)
    return Description(
        nodes={"host": hosts, "access": access, "aggregation": 2 * pods, "core": cores},
        degrees={
            "host": 1,
            "access": hosts_per_access + 2,
            "aggregation": access_per_pod + cores,
            "core": 2 * pods,
        },
        links=hosts + 2 * access + 2 * pods * cores,
        diameter=diameter,
        mean_hops=mean,
        host_connectivity=int(hosts > 1),
    )


def _three_tier_moves(
    cores: int, pods: int, access_per_pod: int, hosts_per_access: int
) -> list[IntArray]:
    layout = "pod access host, pod access, pod pair, core"
    return nested(
        layout, pod=pods, access=access_per_pod, host=hosts_per_access, pair=2, core=cores
    )


def _three_tier_sizes(hosts: int) -> list[dict[str, int]]:
    rack = min(48, hosts // 4)
    racks = round(hosts / rack)
    return [
        {
            "cores": 8,
            "pods": max(round(racks / a), 2),
            "access_per_pod": a,
            "hosts_per_access": rack,
        }
        for a in (8, 32)
    ]


@design(
    closed_form=_three_tier,
    symmetries=_three_tier_moves,
    sizes=_three_tier_sizes,
    paper="cisco2007multitier",
)
def three_tier(cores: int, pods: int, access_per_pod: int, hosts_per_access: int) -> Topology:
    """Traditional tree: access switches on redundant aggregation switch pairs, all on the core.

    Parameters
    ----------
    cores : int
        Core switches, at least 1; each meets every aggregation switch.
    pods : int
        Pairs of aggregation switches, at least 1.
    access_per_pod, hosts_per_access : int
        Access switches on each pair, and hosts on each of them, at least 1.

    Returns
    -------
    Topology
        Hosts, then access, aggregation and core switches, pod by pod. Only switches forward.
        ``pod`` is -1 for the core.

    Notes
    -----
    Where all cables are equal, oversubscription is hosts_per_access/2 at the access switches times
    access_per_pod/cores at the aggregation switches. 2 disjoint paths join two access switches.
    Source: Cisco, data center infrastructure 2.5 design guide, 2007, multi-tier model.

    Examples
    --------
    >>> t = three_tier(cores=2, pods=3, access_per_pod=4, hosts_per_access=10)
    >>> t.num_hosts, t.num_switches, t.num_links
    (120, 20, 156)
    """
    form = planned("three_tier", cores, pods, access_per_pod, hosts_per_access)
    return _pairs_under_cores(form, hosts_per_access, access_per_pod)


def _vl2(d_a: int, d_i: int) -> Description:
    for name, ports in {"d_a": d_a, "d_i": d_i}.items():
        if require_int(**{name: ports}, at_least=2) % 2:
            raise ValueError(f"{name} must be even, got {ports}: VL2 halves its switches' ports")
    tors = d_a * d_i // 4
    hosts = SERVERS_PER_TOR * tors
    diameter, mean = tree_hops(SERVERS_PER_TOR, d_a // 2, d_i // 2)
    return Description(
        nodes={"server": hosts, "tor": tors, "aggregation": d_i, "intermediate": d_a // 2},
        degrees={"server": 1, "tor": SERVERS_PER_TOR + 2, "aggregation": d_a, "intermediate": d_i},
        links=hosts + 4 * tors,
        diameter=diameter,
        mean_hops=mean,
        bisection=tors + tors % 2 * (SERVERS_PER_TOR // 2 - 1),
        host_connectivity=1,
    )


@design(
    closed_form=_vl2,
    symmetries=lambda d_a, d_i: _three_tier_moves(d_a // 2, d_i // 2, d_a // 2, SERVERS_PER_TOR),
    sizes=lambda hosts: [{"d_a": d, "d_i": d} for d in range(2, 500, 2)],
    paper="greenberg2009vl2",
)
def vl2(d_a: int, d_i: int) -> Topology:
    """VL2: racks of 20 servers on two aggregation switches, which meet every intermediate switch.

    Parameters
    ----------
    d_a : int
        Ports of an aggregation switch: even, at least 2. Half go down to racks, half up.
    d_i : int
        Ports of an intermediate switch: even, at least 2. One to every aggregation switch.

    Returns
    -------
    Topology
        5 d_a d_i servers, d_a d_i/4 top-of-rack switches (``tor``), d_i aggregation and d_a/2
        intermediate switches. Racks of one pair of aggregation switches follow each other and are a
        ``pod``; -1 for the intermediate switches. A server's cable has a tenth of the capacity of
        the others, as in the paper.

    Notes
    -----
    2 d_a shortest paths join racks of two pods; two cables separate any two racks; d_a d_i/4 cables
    cross any halving into whole racks, as fast together as the servers of a half. Source: Greenberg
    et al., SIGCOMM 2009, section 4.1.

    Examples
    --------
    >>> vl2(d_a=8, d_i=6)
    <Topology vl2(d_a=8, d_i=6): 240 hosts, 22 switches, 288 links>
    """
    t = _pairs_under_cores(planned("vl2", d_a, d_i), SERVERS_PER_TOR, d_a // 2)
    return replace(t, capacity=LINK_CAPACITY * np.where(t.endpoint[t.edges[:, 0]], 0.1, 1.0))


def _pairs_under_cores(form: Description, hosts: int, racks: int) -> Topology:
    """Racks of so many hosts, so many per pair of aggregation switches, which meet every core."""
    host, rack, above, core = (np.arange(count) for count in form.nodes.values())
    pods = [host // (racks * hosts), rack // racks, above // 2]
    pair = pods[1][:, None] * 2 + np.arange(2)
    return tiered(form, pods, [host // hosts, pair, np.tile(core, (above.size, 1))])


def _aspen(levels: int, k: int, fault_tolerance: Sequence[int]) -> Description:
    links, sizes = _aspen_pods(levels, k, fault_tolerance)
    switches, top = 2 * sizes[-1], sizes[-1]
    hosts, full = switches * k // 2, all(c == 1 for c in links)
    diameter, mean = tree_hops(k // 2, *_pods_below(k, links))
    kinds = [f"level {level}" for level in range(1, levels + 1)]
    return Description(
        parameters={
            "levels": levels,
            "k": k,
            "fault_tolerance": tuple(c - 1 for c in reversed(links)),
        },
        nodes={"host": hosts} | dict.fromkeys(kinds, switches) | {kinds[-1]: top},
        degrees={"host": 1} | dict.fromkeys(kinds, k),
        links=levels * hosts,
        diameter=diameter,
        mean_hops=mean,
        bisection=hosts // 2 if full else None,
        host_connectivity=1,
    )


def _aspen_moves(levels: int, k: int, fault_tolerance: Sequence[int]) -> list[IntArray]:
    """Next pod of each level below its parent, host of an edge switch, top switch of the same pods.

    Pods of one level below the same pod are wired alike. At the top the k/2 ports of a switch end
    in runs of consecutive switches that all begin at multiples of a common divisor.
    """
    links, half = [1 + f for f in fault_tolerance], k // 2  # from the top down
    below = [k // links[0], *(half // c for c in links[1:])]  # pods below a pod of levels n .. 2
    # m_1 .. m_n-1
    sizes = [math.prod(half // c for c in links[levels - i :]) for i in range(1, levels)]
    top = sizes[-1] * k // (2 * links[0])
    run = math.gcd(half, top)
    tiers = [
        (*below, half),
        *((*below[: levels - i], size) for i, size in enumerate(sizes, start=1)),
    ]
    parts = blocks(*tiers, (top // run, run))
    depth = [len(tier) - 1 for tier in tiers]
    pods = [[axis if axis < d else None for d in depth] for axis in range(levels - 1)]
    hosts = [levels - 1, *[None] * (levels - 1)]
    return [
        *rolls(parts, [[*axes, None] for axes in (*pods, hosts)]),
        rolled(parts, [*[None] * levels, 1]),
    ]


def _doubled(t: Topology) -> IntArray:
    """Stripes: cables of the level below which a pod can lose one."""
    tolerance = np.array([0, 0, *reversed(t.meta.parameters["fault_tolerance"])])
    return np.asarray(tolerance[t.tier[t.edges].max(axis=1)] > 0, dtype=np.int64)


@design(
    closed_form=_aspen,
    symmetries=_aspen_moves,
    stripes=_doubled,
    sizes=lambda hosts: [
        {"levels": 4, "k": k, "fault_tolerance": (0, 1, 0)} for k in range(2, 200, 2)
    ],
    paper="walraed2013aspen",
)
def aspen(levels: int, k: int, fault_tolerance: Sequence[int]) -> Topology:
    """Aspen tree: an n-level fat-tree giving up hosts for more than one link into each pod below.

    Parameters
    ----------
    levels : int
        Levels of switches n, at least 2.
    k : int
        Ports per switch: even, at least 2.
    fault_tolerance : sequence of int
        The paper's fault tolerance vector <f_n, .., f_2>, from the top down: failures of links
        between levels i and i-1 that leave every switch of level i its way down. Zeros give the
        fat-tree.

    Returns
    -------
    Topology
        S k/2 hosts, S switches of each level 1..n-1, S/2 of level n, with S = k^(n-1) / (2^(n-2)
        prod(f_i + 1)). ``pod`` is the pod of level n-1; -1 for the top.

    Notes
    -----
    A switch of level i has f_i + 1 cables into each pod below, to different switches where the pod
    has as many. Hosts whose lowest common pod is of level i are 2i links apart. Source:
    Walraed-Sullivan, Vahdat, Marzullo, CoNEXT 2013, section 3.

    Examples
    --------
    >>> aspen(levels=3, k=4, fault_tolerance=(1, 0))
    <Topology aspen(levels=3, k=4, fault_tolerance=(1, 0)): 8 hosts, 10 switches, 24 links>
    """
    form = planned("aspen", levels, k, fault_tolerance)
    links, sizes = _aspen_pods(levels, k, fault_tolerance)
    counts = list(form.nodes.values())
    pods_below = _pods_below(k, links)
    parents = [np.arange(counts[0]) // (k // 2)]
    for count, r, small, large in zip(counts[1:], pods_below, sizes, sizes[1:], strict=False):
        switch = np.arange(count)[:, None]
        # port y of a pod meets switch y mod m_i above
        port = switch % small * (k // 2) + np.arange(k // 2)
        parents.append(switch // (small * r) * large + port % large)
    per_pod = [count * sizes[-2] // counts[1] for count in (counts[0], *counts[1:-1])]
    pods = [np.arange(count) // size for count, size in zip(counts[:-1], per_pod, strict=True)]
    return tiered(form, pods, parents)


def _aspen_pods(levels: int, k: int, fault_tolerance: Sequence[int]) -> tuple[list[int], list[int]]:
    """Links into each pod below c_2 .. c_n, and switches in a pod m_1 .. m_n."""
    require_int(levels=levels, k=k, at_least=2)
    require_instance((Sequence, np.ndarray), fault_tolerance=fault_tolerance)
    if k % 2:
        raise ValueError(f"k must be even, got {k}: half of an Aspen switch's ports go up")
    if len(fault_tolerance) != levels - 1 or isinstance(fault_tolerance, str):
        raise ValueError(
            f"fault_tolerance must be {levels - 1} integers, from the top level down, got "
            f"{fault_tolerance!r}"
        )
    links = [1 + require_int(fault_tolerance=f, at_least=0) for f in reversed(fault_tolerance)]
    sizes = [1]
    for c, down in zip(links, [k // 2] * (levels - 2) + [k], strict=True):
        if down % c or sizes[-1] * k % (2 * c):
            raise ValueError(
                f"fault_tolerance + 1 must divide the ports that go down ({down}) and give whole "
                "pods, "
                f"got {fault_tolerance!r} with k={k}"
            )
        sizes.append(sizes[-1] * k // (2 * c))
    return links, sizes


def _pods_below(k: int, links: Sequence[int]) -> list[int]:
    """Pods below each switch, r_2 .. r_n."""
    return [k // (2 * c) for c in links[:-1]] + [k // links[-1]]
