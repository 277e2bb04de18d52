"""Switch-centric (Clos) networks: only switches forward, hosts hang at the leaves.

Letters of the papers: ``k`` ports per switch of the fat-tree. Every cable has 400 Gbit/s and no modelled
latency (``dataclasses.replace`` sets others).
"""

from __future__ import annotations

import numpy as np

from relparallel._checks import require_int
from relparallel.topology._arrays import joined, require_size
from relparallel.topology.fabric import Topology
from relparallel.topology.parts import Design

__all__ = ["fat_tree", "leaf_spine", "require_even"]


def fat_tree(k: int) -> Topology:
    """Three-tier fat-tree of k-port switches: k pods, each with k/2 edge and k/2 aggregation switches.

    Aggregation switch j of every pod meets the core switches j k/2 .. j k/2 + k/2 - 1.

    Parameters
    ----------
    k : int
        Ports per switch: even, at least 2.

    Returns
    -------
    Topology
        k^3/4 hosts, k^2/2 edge, k^2/2 aggregation and k^2/4 core switches in this order, pod by pod; 3k^3/4
        cables. Only switches forward. ``pod`` is -1 for the core.

    Raises
    ------
    TypeError, ValueError
        If k is no even integer of at least 2, or the network is too large to build.

    Notes
    -----
    Hosts are at most 6 links apart, (k/2)^2 shortest paths join hosts of two pods, k/2 disjoint paths join
    edge switches of two pods, and k^3/8 cables cross any halving of the hosts: as many as a half has hosts.
    Array operations on the 3k^3/4 cables, no loop over nodes.

    References
    ----------
    Al-Fares, Loukissas, Vahdat, "A scalable, commodity data center network architecture", SIGCOMM 2008,
    section 3.

    Examples
    --------
    >>> fat_tree(k=4)
    <Topology fat_tree(k=4): 16 hosts, 20 switches, 48 links>
    """
    half = require_even(k=k) // 2
    hosts, edge, core = 2 * half**3, 2 * half**2, half**2  # edge switches; as many aggregation switches
    require_size("k", k, hosts + 2 * edge + core + 3 * hosts)
    host, switch, port = np.arange(hosts), np.arange(edge), np.arange(half)
    same_pod = switch[:, None] // half * half + port  # the pod's switches of the other tier
    group = switch[:, None] % half * half + port  # the core switches of an aggregation switch
    pod = np.concatenate([host // half**2, switch // half, switch // half, np.full(core, -1)])
    return Topology.of(
        edges=joined(
            (host, hosts + host // half),
            (hosts + switch[:, None], hosts + edge + same_pod),
            (hosts + edge + switch[:, None], hosts + 2 * edge + group),
        ),
        node_kind={"host": hosts, "edge": edge, "aggregation": edge, "core": core},
        transit=np.arange(pod.size) >= hosts,
        pod=pod,
        device_class={"host": "server", "edge": "switch", "aggregation": "switch", "core": "switch"},
        meta=Design(name="fat_tree", parameters={"k": k}, paper="alfares2008fattree"),
    )


def leaf_spine(leaves: int, spines: int, hosts_per_leaf: int) -> Topology:
    """Two-tier network: every leaf switch has a cable to every spine switch.

    Parameters
    ----------
    leaves, spines : int
        Number of switches of each tier, at least 1.
    hosts_per_leaf : int
        Hosts on every leaf switch, at least 1.

    Returns
    -------
    Topology
        leaves x hosts_per_leaf hosts, then leaves, then spines; leaves x (hosts_per_leaf + spines) cables.
        Only switches forward. ``pod`` is the leaf of a host, -1 for the spines.

    Raises
    ------
    TypeError, ValueError
        If a count is no integer of at least 1, or the network is too large to build.

    Notes
    -----
    Hosts are at most 4 links apart; ``spines`` disjoint paths join two leaves; hosts_per_leaf/spines is the
    oversubscription where all cables are equal.

    References
    ----------
    Cisco, "Cisco data center spine-and-leaf architecture: design overview", white paper.

    Examples
    --------
    >>> leaf_spine(leaves=4, spines=2, hosts_per_leaf=8)
    <Topology leaf_spine(leaves=4, spines=2, hosts_per_leaf=8): 32 hosts, 6 switches, 40 links>
    """
    require_int(leaves=leaves, spines=spines, hosts_per_leaf=hosts_per_leaf, at_least=1)
    hosts = leaves * hosts_per_leaf
    require_size("leaves", leaves, 2 * hosts + leaves + spines + leaves * spines)
    host, leaf = np.arange(hosts), np.arange(leaves)
    pod = np.concatenate([host // hosts_per_leaf, leaf, np.full(spines, -1)])
    return Topology.of(
        edges=joined(
            (host, hosts + host // hosts_per_leaf),
            (hosts + leaf[:, None], hosts + leaves + np.arange(spines)),
        ),
        node_kind={"host": hosts, "leaf": leaves, "spine": spines},
        transit=np.arange(pod.size) >= hosts,
        pod=pod,
        device_class={"host": "server", "leaf": "switch", "spine": "switch"},
        meta=Design(
            name="leaf_spine",
            parameters={"leaves": leaves, "spines": spines, "hosts_per_leaf": hosts_per_leaf},
            paper="cisco2013leafspine",
        ),
    )


def require_even(*, k: int) -> int:
    """Return k if it is an even integer of at least 2."""
    if require_int(k=k, at_least=2) % 2:
        raise ValueError(f"k must be even, got {k}")
    return int(k)
