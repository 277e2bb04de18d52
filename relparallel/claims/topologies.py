"""Published counts, distances and cuts of data-centre networks, measured on the built graphs."""

from functools import cache

import networkx as nx
import numpy as np

from relparallel.claims.registry import reproduces, theorem
from relparallel.metrics import bisection, edge_connectivity, hop_statistics
from relparallel.topology import Topology, bcube, dcell, describe, fat_tree, leaf_spine, torus
from relparallel.topology.routing import disjoint_paths
from relparallel.units import GB

_SOURCES = 512  # one pass of the search


@reproduces("TOPO-*", system="fat_tree", quantity="hosts")
def fat_tree_hosts(k: int) -> int:
    """Hosts of the built network."""
    return fat_tree(k).num_hosts


@reproduces("TOPO-*", system="fat_tree", quantity="switches")
def fat_tree_switches(k: int) -> int:
    """Switches of all three tiers."""
    return fat_tree(k).num_switches


@reproduces("TOPO-*", system="fat_tree", quantity="links")
def fat_tree_links(k: int) -> int:
    """Cables, those of the hosts included."""
    return fat_tree(k).num_links


@reproduces("TOPO-*", system="fat_tree", quantity="host-host mean graph hops")
def fat_tree_mean_hops(k: int) -> float:
    """Mean over all pairs of hosts."""
    return hop_statistics(fat_tree(k)).mean


@reproduces("TOPO-*", system="fat_tree", quantity="all-node mean hops")
def fat_tree_mean_hops_of_nodes(k: int) -> float:
    """Mean over all pairs of nodes, switches included."""
    return hop_statistics(fat_tree(k), endpoints="nodes").mean


@reproduces("TOPO-*", system="fat_tree", quantity="host diameter")
def fat_tree_diameter(k: int) -> int:
    """Largest distance of two hosts."""
    return hop_statistics(fat_tree(k)).diameter


@reproduces("TOPO-*", system="fat_tree", quantity="host-host hop histogram*")
def fat_tree_histogram(k: int) -> tuple[int, ...]:
    """Each distance followed by its ordered pairs."""
    return tuple(number for row in hop_statistics(fat_tree(k)).histogram.items() for number in row)


@reproduces("TOPO-*", system="fat_tree", quantity="edge-disjoint paths between edge switches*")
def fat_tree_edge_switch_paths(k: int) -> float:
    """Cables to cut between the first edge switch and the last."""
    t = fat_tree(k)
    first, *_, last = np.flatnonzero(t.is_kind("edge"))
    return float(edge_connectivity(t, first, last))


@reproduces("TOPO-*", system="fat_tree", quantity="equal-cost shortest paths between pods")
def fat_tree_shortest_paths(k: int) -> int:
    """Shortest paths between the first host and the last."""
    return _shortest_paths(fat_tree(k))


@reproduces("TOPO-*", system="bcube", quantity="servers")
def bcube_servers(n: int, k: int) -> int:
    """Servers of the built network."""
    return bcube(n, k).num_hosts


@reproduces("TOPO-*", system="bcube", quantity="switches")
def bcube_switches(n: int, k: int) -> int:
    """Switches of all levels."""
    return bcube(n, k).num_switches


@reproduces("TOPO-*", system="bcube", quantity="links")
def bcube_links(n: int, k: int) -> int:
    """Cables."""
    return bcube(n, k).num_links


@reproduces("TOPO-*", system="bcube", quantity="server diameter in graph hops")
def bcube_diameter(n: int, k: int) -> int:
    """Largest distance of two servers in links."""
    return hop_statistics(bcube(n, k)).diameter


@reproduces("TOPO-*", system="bcube", quantity="mean graph hops")
def bcube_mean_hops(n: int, k: int) -> float:
    """Mean distance of two servers in links."""
    return hop_statistics(bcube(n, k)).mean


@reproduces("TOPO-*", system="bcube", quantity="mean server hops")
def bcube_mean_server_hops(n: int, k: int) -> float:
    """Mean number of differing digits."""
    return hop_statistics(bcube(n, k), hops="servers").mean


@reproduces("TOPO-*", system="bcube", quantity="vertex/edge-disjoint paths between servers")
def bcube_disjoint_paths(n: int, k: int) -> int:
    """Paths between the first server and the last that share no node, hence no cable."""
    return _node_disjoint_paths(bcube(n, k))


@reproduces("TOPO-*", system="bcube", quantity="equal-cost paths between servers differing in all digits")
def bcube_shortest_paths(n: int, k: int) -> int:
    """Shortest paths between the first server and the last."""
    return _shortest_paths(bcube(n, k))


@reproduces("TOPO-*", system="bcube", quantity="global edge connectivity")
def bcube_connectivity(n: int, k: int) -> float:
    """Cables to cut to separate any two nodes, switches included."""
    return float(edge_connectivity(bcube(n, k)))


@reproduces("TOPO-*", system="dcell", quantity="servers")
def dcell_servers(n: int, k: int) -> int:
    """Servers: of the built network, or by the recursion where it has millions."""
    planned = describe("dcell", n=n, k=k).hosts
    return planned if planned > 10**6 else dcell(n, k).num_hosts


@reproduces("TOPO-*", system="dcell", quantity="links")
def dcell_links(n: int, k: int) -> int:
    """Cables, those of the switches included."""
    return dcell(n, k).num_links


@reproduces("TOPO-*", system="dcell", quantity="vertex-disjoint paths between servers")
def dcell_disjoint_paths(n: int, k: int) -> int:
    """Paths between the first server and the last that share no node, hence no cable."""
    return _node_disjoint_paths(dcell(n, k))


@reproduces("TOPO-*", system="dcell", quantity="shortest-path mean, std*intra-switch*")
def dcell_server_hops(n: int, k: int) -> tuple[float, float]:
    """Mean and standard deviation over all pairs of servers."""
    found = hop_statistics(dcell(n, k), hops="servers")
    return found.mean, found.std


@reproduces("TOPO-094", "TOPO-095", "TOPO-096", system="dcell")
@cache  # the search from 512 of 3,263,442 servers takes seconds
def dcell_sampled_server_hops(n: int, k: int) -> tuple[float, float]:
    """Mean and standard deviation from sampled servers to all; the mean's standard error is below 0.01."""
    found = hop_statistics(dcell(n, k), "servers", sources=_SOURCES, rng=np.random.default_rng(0))
    return found.mean, found.std


@reproduces("TOPO-*", system="dcell", quantity="server diameter*")
def dcell_server_diameter(ports: str, k: int) -> float:
    """Largest distance in server hops, the mean over the port counts (each has the bound at most)."""
    return float(np.mean([hop_statistics(dcell(int(n), k), "servers").diameter for n in ports.split()]))


@reproduces("TOPO-*", system="torus*", quantity="nodes;links;diameter")
def torus_counts(dims: str) -> tuple[int, int, int]:
    """Nodes, cables and diameter; from some nodes, for all nodes of a torus are alike."""
    t = _torus(dims)
    found = hop_statistics(t, sources=8, rng=np.random.default_rng(0))
    return t.num_hosts, t.num_links, found.diameter


@reproduces("TOPO-*", system="torus*", quantity="mean hops")
def torus_mean_hops(dims: str) -> float:
    """Mean distance; from some nodes, for all nodes of a torus are alike."""
    return hop_statistics(_torus(dims), sources=8, rng=np.random.default_rng(0)).mean


@reproduces("TOPO-*", system="torus*", quantity="mean hops; diameter")
def torus_distances(dims: str) -> tuple[float, int]:
    """Mean distance and diameter over all pairs."""
    found = hop_statistics(_torus(dims))
    return found.mean, found.diameter


@reproduces("TOPO-*", system="torus*", quantity="link rate; bisection per direction")
def torus_bisection_bandwidth(dims: str, link_rate: float) -> float:
    """GB/s through the cables that join the two halves of the first, longest, dimension."""
    t = _torus(dims)
    half = t.pod[t.edges] < (t.pod.max() + 1) // 2
    return int(t.multiplicity[half[:, 0] != half[:, 1]].sum()) * link_rate / GB


@theorem("THM-TOPO-LEAF-SPINE-HOPS", system="Leaf-Spine")
def leaf_spine_mean_hops() -> tuple[float, float]:
    """Hosts of a leaf-spine network are [2(h-1) + 4(N-h)]/(N-1) links apart on average."""
    # Measured against the closed form at 1,024 hosts.
    form = describe("leaf_spine", leaves=32, spines=16, hosts_per_leaf=32)
    return hop_statistics(leaf_spine(leaves=32, spines=16, hosts_per_leaf=32)).mean, float(
        form.mean_hops or 0
    )


@theorem("THM-TOPO-LEAF-SPINE-PATHS", system="Leaf-Spine")
def leaf_spine_paths() -> tuple[float, float]:
    """As many cable-disjoint paths as there are spines join two leaves."""
    # Measured between the first leaf and the last.
    t = leaf_spine(leaves=32, spines=16, hosts_per_leaf=32)
    first, *_, last = np.flatnonzero(t.is_kind("leaf"))
    return float(edge_connectivity(t, first, last)), 16


@theorem("THM-TOPO-DCELL-PATHS", system="DCell")
def dcell_paths() -> tuple[float, float]:
    """k + 1 cable-disjoint paths join any two servers of a DCell_k."""  # noqa: D403
    # Fewest from the first server to any other: all pairs, for servers forward.
    t = dcell(n=3, k=2)
    return min(disjoint_paths(t, 0, other) for other in t.hosts[1:]), 3


@theorem("THM-TOPO-TORUS-CUT", system="Torus (Blue Gene/L)")
def torus_connectivity() -> tuple[float, float]:
    """A d-dimensional torus falls apart only when 2d cables fail, the cables of one node."""
    # Smallest cut of a torus of 64 nodes.
    return float(edge_connectivity(torus((4, 4, 4)))), 6


@theorem("THM-TOPO-PARTITION-CUT", system="Torus (Blue Gene/L)")
def partition_bisection() -> tuple[float, float]:
    """The least of N/k over open and 2N/k over wrapped sides k bisects a partition of even sides."""
    # Solved for a box of 4 x 4 x 2 nodes that is wrapped in its first dimension: N/4 across the second.
    return float(bisection(torus((4, 4, 2), wrap=(True, False, False)), method="exact")), 32 / 4


def _torus(dims: str) -> Topology:
    """Torus of the lengths in ``64x32x32``."""
    return torus(tuple(int(length) for length in dims.split("x")))


def _ends(t: Topology) -> tuple[int, int]:
    """First and last host: they differ in every digit, pod or copy."""
    return int(t.hosts[0]), int(t.hosts[-1])


def _shortest_paths(t: Topology) -> int:
    return sum(1 for _ in nx.all_shortest_paths(t.to_networkx(), *_ends(t)))


def _node_disjoint_paths(t: Topology) -> int:
    return int(nx.node_connectivity(t.to_networkx(), *_ends(t)))
