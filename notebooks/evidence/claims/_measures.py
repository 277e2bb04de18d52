"""What claims measure on a built network: counts, distances, cuts, loads and throughputs."""

import math
from typing import Any

import networkx as nx
import numpy as np

from chapters import s23
from relparallel import metrics, topology, units
from relparallel.topology.routing import disjoint_paths, ecmp_paths


def mean(t: topology.Topology, **options: Any) -> float:
    return metrics.hop_statistics(t, **options).mean


def diameter(t: topology.Topology, **options: Any) -> int:
    return metrics.hop_statistics(t, **options).diameter


def mean_and_spread(t: topology.Topology, **options: Any) -> tuple[float, float]:
    found = metrics.hop_statistics(t, hops="servers", **options)
    return found.mean, found.std


def some(t: topology.Topology) -> Any:
    """Distances from some nodes, for all nodes of a torus are alike."""
    return metrics.hop_statistics(t, sources=8, rng=np.random.default_rng(0))


def count(t: topology.Topology, kind: str) -> int:
    """Nodes of a kind; 0 where there are none."""
    return int(np.count_nonzero(t.is_kind(kind))) if kind in t.kinds else 0


def ends(t: topology.Topology) -> tuple[int, int]:
    """First and last host: they differ in every digit, pod or copy."""
    return int(t.hosts[0]), int(t.hosts[-1])


def shortest_paths(t: topology.Topology) -> int:
    """Shortest paths between the first host and the last."""
    return sum(1 for _ in nx.all_shortest_paths(t.to_networkx(), *ends(t)))


def node_disjoint_paths(t: topology.Topology) -> int:
    """Paths between the first server and the last that share no node, hence no cable."""
    return int(nx.node_connectivity(t.to_networkx(), *ends(t)))


def cut_of_edge_switches(t: topology.Topology) -> float:
    """Cables to cut between the first edge switch and the last."""
    first, *_, last = np.flatnonzero(t.is_kind("edge"))
    return float(metrics.edge_connectivity(t, first, last))


def fewest_rack_paths(t: topology.Topology) -> int:
    """Fewest cable-disjoint paths from the first rack to any other."""
    first, *others = np.flatnonzero(t.is_kind("tor")).tolist()
    return min(disjoint_paths(t, first, other) for other in others)


def rack(t: topology.Topology) -> tuple[int, int]:
    """Servers on a rack, and its cables to aggregation switches: every rack alike."""
    rack, up = (
        t.edges[t.is_kind("tor")[t.edges[:, 1]], 1],
        t.edges[t.is_kind("tor")[t.edges[:, 0]], 0],
    )
    (servers,), (uplinks,) = (
        np.unique(np.unique(ends, return_counts=True)[1]) for ends in (rack, up)
    )
    return int(servers), int(uplinks)


def exact_bisection(t: topology.Topology) -> float:
    """Cables between the halves, where lower and upper bound of the integer program meet."""
    found = metrics.bisection(t, method="exact")
    return float(found) if found.exact else float("nan")


def bottleneck(t: topology.Topology) -> float:
    """Links of a host that all-to-all traffic fills over all shortest paths."""
    return float(s23.aggregate_bottleneck_throughput(t))


def bottleneck_per_host(t: topology.Topology) -> float:
    return bottleneck(t) / t.num_hosts


def all_to_all(t: topology.Topology) -> float:
    return float(metrics.concurrent_flow(t))


def longest_matching(t: topology.Topology) -> float:
    return float(metrics.concurrent_flow(t, "longest_matching"))


def aspen_counts(t: topology.Topology) -> tuple[int, int, int]:
    """Switches of a level, hosts, and ways down from a switch at the top to an edge switch."""
    top, edge = (int(np.flatnonzero(t.is_kind(f"level {level}"))[0]) for level in (t.tier.max(), 1))
    return count(t, "level 1"), t.num_hosts, len(ecmp_paths(t, top, edge))


def aspen_hosts_cut(t: topology.Topology) -> int:
    """Hosts below a switch at the top that it no longer reaches downwards once a cable is lost."""
    top = t.switches[-1]
    edges = np.delete(t.edges, int(np.flatnonzero(t.edges[:, 1] == top)[0]), axis=0)
    reached = np.zeros(t.num_nodes, dtype=bool)
    reached[top] = True
    for _ in range(int(t.tier[top])):  # lower tiers have lower indices
        reached[edges[reached[edges[:, 1]], 0]] = True
    return t.num_hosts - int(np.count_nonzero(reached & t.endpoint))


def superpod(t: topology.Topology) -> tuple[int | None, ...]:
    """Servers, GPUs, switches of each tier and cables of each stage; blank if there is no core."""
    stages = (("gpu", "leaf"), ("leaf", "spine"), ("spine", "core"))
    counts = [count(t, kind) for kind in ("nvswitch", "gpu", "leaf", "spine", "core")]
    return tuple(number or None for number in [*counts, *(cables(t, *ends) for ends in stages)])


def hpn_card(t: topology.Topology) -> tuple[float, int]:
    """Rate of a cable of a GPU to a leaf [Gbit/s], and how many it has."""
    card = between(t, "gpu", "leaf")
    return float(t.capacity[card].max()) / units.GBIT, int(
        t.multiplicity[card].sum()
    ) // t.num_hosts


def meta(t: topology.Topology) -> tuple[int, ...]:
    """GPUs, pods, racks, and how many of each are in a pod and a rack."""
    gpus, racks = t.num_hosts, count(t, "rack")
    groups = len(np.unique(t.pod[t.pod >= 0]))
    rack = int(t.degrees[t.is_kind("rack")].max()) - cables(t, "rack", "cluster") // racks
    return gpus, groups, racks, gpus // groups, racks // groups, rack


def meta_oversubscription(t: topology.Topology) -> tuple[float, int]:
    """Capacity of all cluster switches towards racks, over that towards aggregation switches."""
    ratio = capacity(t, "rack", "cluster") / capacity(t, "cluster", "aggregation")
    return round(ratio, 12), 1  # 192/7 ports have no exact binary form


def spectrum(t: topology.Topology) -> tuple[float, float]:
    """Second eigenvalue of the Laplacian, and n/4 times it."""
    laplacian = np.diag(t.degrees.astype(np.float64))
    laplacian[t.edges[:, 0], t.edges[:, 1]] = laplacian[t.edges[:, 1], t.edges[:, 0]] = -1
    second = float(np.linalg.eigvalsh(laplacian)[1])
    return second, t.num_nodes * second / 4


def between(
    t: topology.Topology, one: str, other: str
) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Pairs of nodes that join two kinds, named from the lower tier up."""
    if other not in t.kinds:
        return np.zeros(len(t.edges), dtype=bool)
    return np.asarray(t.is_kind(one)[t.edges[:, 0]] & t.is_kind(other)[t.edges[:, 1]])


def cables(t: topology.Topology, one: str, other: str) -> int:
    return int(t.multiplicity[between(t, one, other)].sum())


def capacity(t: topology.Topology, one: str, other: str) -> float:
    """Capacity of all cables between two kinds, in one direction, without rounding of the sum."""
    return math.fsum((t.capacity * t.multiplicity)[between(t, one, other)].tolist())
