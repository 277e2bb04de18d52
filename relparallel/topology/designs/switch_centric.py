"""Switch-centric (Clos) networks: only switches forward, hosts hang at the leaves.

Letters of the papers: ``k`` ports per switch of the fat-tree and of F10's AB fat-tree.
"""

from dataclasses import replace

import numpy as np

from relparallel._checks import require_int
from relparallel.topology._arrays import IntArray
from relparallel.topology.description import Description, design, planned
from relparallel.topology.designs._shared import blocks, flat, nested, rolls, tiered
from relparallel.topology.fabric import Topology

_HALVES = ("edge", "host", "above", "core")  # of which there are k/2


def _fat_tree(k: int) -> Description:
    half = require_even(k=k) // 2
    hosts = 2 * half**3
    distances = 2 * (half - 1) + 4 * half * (half - 1) + 6 * (hosts - half**2)
    return Description(
        nodes={"host": hosts, "edge": 2 * half**2, "aggregation": 2 * half**2, "core": half**2},
        degrees={"host": 1, "edge": k, "aggregation": k, "core": k},
        links=3 * hosts,
        diameter=6,
        mean_hops=distances / (hosts - 1),
        bisection=half**3,
        host_connectivity=1,
    )


def _tree_sizes(hosts: int) -> list[dict[str, int]]:
    return [{"k": k} for k in range(2, 200, 2)]


@design(
    closed_form=_fat_tree,
    symmetries=lambda k: nested(
        "pod edge host, pod edge, pod above, above core", pod=k, **dict.fromkeys(_HALVES, k // 2)
    ),
    sizes=_tree_sizes,
    paper="alfares2008fattree",
)
def fat_tree(k: int) -> Topology:
    """Three-tier fat-tree of k-port switches: k pods of k/2 edge and k/2 aggregation switches each.

    Aggregation switch j of every pod meets the core switches j k/2 .. j k/2 + k/2 - 1.

    Parameters
    ----------
    k : int
        Ports per switch: even, at least 2.

    Returns
    -------
    Topology
        k^3/4 hosts, k^2/2 edge, k^2/2 aggregation and k^2/4 core switches in this order, pod by
        pod; 3k^3/4 cables. Only switches forward. ``pod`` is -1 for the core.

    Notes
    -----
    Hosts are at most 6 links apart, (k/2)^2 shortest paths join hosts of two pods, k/2 disjoint
    paths join edge switches of two pods, and k^3/8 cables cross any halving of the hosts: as many
    as a half has hosts. Source: Al-Fares, Loukissas, Vahdat, SIGCOMM 2008, section 3.

    Examples
    --------
    >>> fat_tree(k=4)
    <Topology fat_tree(k=4): 16 hosts, 20 switches, 48 links>
    """
    form, half = planned("fat_tree", k), k // 2
    j = np.arange(k * half)[:, None] % half
    return _pods_under_cores(form, j * half + np.arange(half))


def _f10_moves(k: int) -> list[IntArray]:
    """Next pod, with core rows and columns exchanged; edge switch; host; a row of the core."""
    half = k // 2
    host, edge, above, core = blocks((k, half, half), (k, half), (k, half), (half, half))
    turned = [np.roll(tier, -1, axis=0) for tier in (host, edge, above)]
    rows = above.copy()
    rows[::2] = np.roll(above[::2], -1, axis=1)  # even pods meet rows of the core, odd ones columns
    inside = rolls((host, edge, above, core), [(1, 1, None, None), (2, None, None, None)])
    return [flat([*turned, core.T]), *inside, flat([host, edge, rows, np.roll(core, -1, axis=0)])]


def _ab(t: Topology) -> IntArray:
    """Stripes: cables to the core from pods of type A and of type B."""
    core = t.tier[t.edges[:, 1]] == t.tier.max()
    return np.where(core, 1 + t.pod[t.edges[:, 0]] % 2, 0)


@design(
    closed_form=_fat_tree, symmetries=_f10_moves, stripes=_ab, sizes=_tree_sizes, paper="liu2013f10"
)
def f10(k: int) -> Topology:
    """AB fat-tree of F10: a fat-tree whose odd pods meet the core switches in a second order.

    Aggregation switch j meets cores j k/2 .. j k/2 + k/2 - 1 in even pods (type A) and cores j, j +
    k/2, .. in odd pods (type B).

    Parameters
    ----------
    k : int
        Ports per switch: even, at least 2.

    Returns
    -------
    Topology
        Nodes in the order of `fat_tree`; as many of each kind, and as many cables.

    Notes
    -----
    All counts and distances of hosts are those of the fat-tree. What differs is the way round a
    failure: a core switch that lost its aggregation switch in a pod of type A reaches every edge
    switch of the pod over a pod of type B in 4 links, where the fat-tree needs 6. Source: Liu et
    al., NSDI 2013, section 3.

    Examples
    --------
    >>> f10(k=4)
    <Topology f10(k=4): 16 hosts, 20 switches, 48 links>
    """
    form, half = planned("f10", k), k // 2
    switch, port = np.arange(k * half)[:, None], np.arange(half)
    j, odd = switch % half, switch // half % 2 == 1
    return _pods_under_cores(form, np.where(odd, port * half + j, j * half + port))


def _pods_under_cores(form: Description, group: IntArray) -> Topology:
    """Pods of a fat-tree; group: the k/2 core switches of each aggregation switch."""
    half = group.shape[1]
    host, switch = np.arange(form.hosts), np.arange(len(group))
    pod = switch // half
    same_pod = pod[:, None] * half + np.arange(half)  # the pod's switches of the other tier
    return tiered(form, [host // half**2, pod, pod], [host // half, same_pod, group])


def leaf_spine_form(leaves: int, spines: int, hosts_per_leaf: int, cables: int = 1) -> Description:
    """Closed forms of leaves and spines."""
    require_int(
        leaves=leaves, spines=spines, hosts_per_leaf=hosts_per_leaf, cables=cables, at_least=1
    )
    h, hosts, up = hosts_per_leaf, leaves * hosts_per_leaf, spines * cables
    return Description(
        nodes={"host": hosts, "leaf": leaves, "spine": spines},
        degrees={"host": 1, "leaf": h + up, "spine": leaves * cables},
        links=leaves * (h + up),
        diameter=4 if leaves > 1 else 2 * (hosts > 1),
        mean_hops=(2 * (h - 1) + 4 * (hosts - h)) / (hosts - 1) if hosts > 1 else None,
        bisection=_halves_of_leaves(leaves, up, h),
        host_connectivity=int(hosts > 1),
    )


def _leaf_spine(leaves: int, spines: int, hosts_per_leaf: int, cables: int = 1) -> Description:
    """The same, with cables among the parameters where there are several of a pair."""
    given = {"leaves": leaves, "spines": spines, "hosts_per_leaf": hosts_per_leaf}
    form = leaf_spine_form(leaves, spines, hosts_per_leaf, cables)
    return replace(form, parameters=given | ({"cables": cables} if cables > 1 else {}))


def leaf_spine_moves(
    leaves: int, spines: int, hosts_per_leaf: int, cables: int = 1
) -> list[IntArray]:
    """Next leaf, host of the leaf, spine."""
    return nested("leaf host, leaf, spine", leaf=leaves, host=hosts_per_leaf, spine=spines)


def _leaf_spine_sizes(hosts: int) -> list[dict[str, int]]:
    rack = min(48, hosts // 4)
    return [{"leaves": round(hosts / rack), "spines": rack // 2, "hosts_per_leaf": rack}]


@design(
    closed_form=_leaf_spine,
    symmetries=leaf_spine_moves,
    sizes=_leaf_spine_sizes,
    paper="cisco2016leafspine",
)
def leaf_spine(leaves: int, spines: int, hosts_per_leaf: int, cables: int = 1) -> Topology:
    """Two-tier network: every leaf switch has a cable, or several, to every spine switch.

    Parameters
    ----------
    leaves, spines : int
        Number of switches of each tier, at least 1.
    hosts_per_leaf : int
        Hosts on every leaf switch, at least 1.
    cables : int, optional
        Of a leaf to each spine, at least 1: few spines and several cables are a tapered tree.

    Returns
    -------
    Topology
        Hosts leaf by leaf, then leaves, then spines; leaves x (hosts_per_leaf + spines x cables)
        cables. Only switches forward. ``pod`` is the leaf of a host, -1 for the spines.

    Notes
    -----
    Hosts are at most 4 links apart; ``spines`` disjoint paths join two leaves; of equal cables, the
    oversubscription is hosts_per_leaf/(spines x cables). Source: Cisco, white paper on
    spine-and-leaf architecture.

    Examples
    --------
    >>> leaf_spine(leaves=4, spines=2, hosts_per_leaf=8)
    <Topology leaf_spine(leaves=4, spines=2, hosts_per_leaf=8): 32 hosts, 6 switches, 40 links>
    """
    form, leaf = planned("leaf_spine", leaves, spines, hosts_per_leaf, cables), np.arange(leaves)
    rack, above = np.arange(form.hosts) // hosts_per_leaf, np.repeat(np.arange(spines), cables)
    return tiered(form, [rack, leaf], [rack, np.tile(above, (leaves, 1))])


def _halves_of_leaves(leaves: int, spines: int, h: int) -> int:
    """Cables cut between two halves of the hosts.

    A leaf with a of its h hosts in the first half cuts min(h - a + other spines, a + spines there).
    This is concave in a and in the spines there: the cheapest halving takes whole leaves, and part
    of one at most, and all spines or none.
    """
    whole, part = divmod(leaves * h // 2, h)
    near = min(h, spines)
    none = whole * near + min(h - part + spines, part)
    every = (leaves - whole - 1) * near + min(h - part, part + spines)
    return min(none, every)


def require_even(*, k: int) -> int:
    """Return k if it is an even integer of at least 2."""
    if require_int(k=k, at_least=2) % 2:
        raise ValueError(
            f"k must be even, got {k}: a pod has k/2 edge and k/2 aggregation switches"
        )
    return int(k)
