"""Published counts and distances of VL2, FiConn, MDCube, F10 and Aspen; theorems on routes and circuits."""

import networkx as nx
import numpy as np

from relparallel.claims.registry import reproduces, theorem
from relparallel.metrics import hop_statistics
from relparallel.topology import (
    Topology,
    aspen,
    bcube,
    c_through,
    describe,
    f10,
    ficonn,
    helios,
    mdcube,
    schedule_circuits,
    vl2,
)
from relparallel.topology.parts import LINK_CAPACITY
from relparallel.topology.routing import bcube_paths, disjoint_paths, ecmp_paths, ficonn_route


@reproduces("TOPO-*", system="vl2", quantity="ToR switches")
def vl2_racks(d_a: int, d_i: int) -> int:
    """Top-of-rack switches of the built network."""
    return int(np.count_nonzero(vl2(d_a, d_i).is_kind("tor")))


@reproduces("TOPO-*", system="vl2", quantity="links server/ToR-Agg/Agg-Int")
def vl2_links(d_a: int, d_i: int) -> int:
    """Cables of all three kinds."""
    return vl2(d_a, d_i).num_links


@reproduces("TOPO-*", system="vl2", quantity="aggregation / intermediate switches")
def vl2_switches(d_a: int, d_i: int) -> tuple[int, ...]:
    """Switches of the two upper tiers."""
    t = vl2(d_a, d_i)
    return tuple(int(np.count_nonzero(t.is_kind(kind))) for kind in ("aggregation", "intermediate"))


@reproduces("TOPO-*", system="vl2", quantity="edge-disjoint paths ToR-ToR")
def vl2_disjoint_paths(d_a: int, d_i: int) -> int:
    """Fewest from the first rack to any other."""
    t = vl2(d_a, d_i)
    first, *others = np.flatnonzero(t.is_kind("tor")).tolist()
    return min(disjoint_paths(t, first, other) for other in others)


@reproduces("TOPO-*", system="vl2", quantity="servers per ToR; uplinks")
def vl2_rack(d_a: int, d_i: int) -> tuple[int, int]:
    """Servers on a rack of the built network, and its cables to aggregation switches: every rack alike."""
    t = vl2(d_a, d_i)
    rack, up = t.edges[t.is_kind("tor")[t.edges[:, 1]], 1], t.edges[t.is_kind("tor")[t.edges[:, 0]], 0]
    (servers,), (uplinks,) = (np.unique(np.unique(ends, return_counts=True)[1]) for ends in (rack, up))
    return int(servers), int(uplinks)


@reproduces("TOPO-*", system="ficonn", quantity="servers")
def ficonn_servers(n: int, k: int) -> int:
    """Servers of the built network."""
    return ficonn(n, k).num_hosts


@reproduces("TOPO-*", system="ficonn", quantity="links")
def ficonn_links(n: int, k: int) -> int:
    """Cables of the built network."""
    return ficonn(n, k).num_links


@reproduces("TOPO-*", system="ficonn", quantity="server diameter*")
def ficonn_server_diameter(ports: str, k: int) -> float:
    """Largest distance in server hops, the mean over the port counts (each has the bound at most)."""
    return float(np.mean([hop_statistics(ficonn(int(n), k), "servers").diameter for n in ports.split()]))


@reproduces("TOPO-*", system="ficonn", quantity="mean server hops")
def ficonn_mean_server_hops(n: int, k: int) -> float:
    """Mean distance of two servers, a switch counted as one hop."""
    return hop_statistics(ficonn(n, k), "servers").mean


@reproduces("TOPO-*", system="mdcube", quantity="servers ?-D")
def mdcube_servers(n: int, k: int, dims: int | str) -> int:
    """Servers of the largest grid that the uplinks of a container carry: one uplink more is refused."""
    lengths = _lengths(dims)
    uplinks = describe("bcube", n=n, k=k).switches
    if sum(lengths) - len(lengths) != uplinks:
        raise ValueError(f"dims must use all {uplinks} uplinks of a container, got {dims}")
    return describe("mdcube", n=n, k=k, dims=lengths).hosts


@reproduces("TOPO-*", system="mdcube", quantity="servers;links;diameter*")
def mdcube_counts(n: int, k: int, dims: str) -> tuple[int, int, int]:
    """Servers, cables and largest distance in links."""
    t = mdcube(n, k, _lengths(dims))
    return t.num_hosts, t.num_links, hop_statistics(t).diameter


@reproduces("TOPO-*", system="aspen", quantity="S;hosts;DCC")
def aspen_counts(n: int, k: int, ftv: str) -> tuple[int, int, int]:
    """Switches of a level, hosts, and ways down from a switch at the top to an edge switch."""
    t = aspen(n, k, [int(f) for f in ftv.split()])
    top, edge = (int(np.flatnonzero(t.is_kind(f"level {level}"))[0]) for level in (n, 1))
    return int(np.count_nonzero(t.is_kind("level 1"))), t.num_hosts, len(ecmp_paths(t, top, edge))


@reproduces("TOPO-*", system="aspen", quantity="hosts cut by one top-level link failure")
def aspen_hosts_cut(n: int, k: int) -> int:
    """Hosts below a switch at the top that it no longer reaches downwards, without fault tolerance."""
    t = aspen(n, k, [0] * (n - 1))
    lost = int(np.flatnonzero(t.edges[:, 1] == t.switches[-1])[0])
    return t.num_hosts - _hosts_below(t, t.switches[-1], np.delete(t.edges, lost, axis=0))


@reproduces("TOPO-*", system="F10 AB fat-tree", quantity="hosts;switches;links;mean hops")
def f10_counts(k: int) -> tuple[int, int, int, float]:
    """Counts of the built network and the mean distance of its hosts."""
    t = f10(k)
    return t.num_hosts, t.num_switches, t.num_links, hop_statistics(t).mean


@theorem("THM-TOPO-VL2-HOPS", system="VL2")
def vl2_mean_hops() -> tuple[float, float]:
    """Servers of VL2 are [2 19 + 4 20 (D_A/2-1) + 6 (N-10 D_A)]/(N-1) links apart on average."""
    # Measured against the closed form at 240 servers.
    return hop_statistics(vl2(8, 6)).mean, (2 * 19 + 4 * 20 * 3 + 6 * (240 - 80)) / 239


@theorem("THM-TOPO-VL2-PATHS", system="VL2")
def vl2_shortest_paths() -> tuple[float, float]:
    """2 D_A shortest paths join racks of two pods: valiant load balancing spreads over all of them."""
    # Counted between the first rack and the last.
    t = vl2(d_a=8, d_i=6)
    first, *_, last = np.flatnonzero(t.is_kind("tor")).tolist()
    return len(ecmp_paths(t, first, last)), 16


@theorem("THM-TOPO-BCUBE-BSR", system="BCube")
def bcube_source_routing() -> tuple[float, float]:
    """The k + 1 paths of BCube source routing share no server and no switch between their ends."""
    # Fewest of them that share no node, from the first server to any other of 64.
    t = bcube(n=4, k=2)
    return min(_parallel(bcube_paths(t, 0, other)) for other in t.hosts[1:].tolist()), 3


@theorem("THM-TOPO-FICONN-ROUTE", system="FiConn")
def ficonn_longest_route() -> tuple[float, float]:
    """Traffic-oblivious routes of FiConn have at most 2^(k+1) - 1 server hops, some as many."""
    # Longest route of a FiConn of 48 servers, over all pairs.
    t = ficonn(n=4, k=2)
    routes = [ficonn_route(t, s, d) for s in t.hosts.tolist() for d in t.hosts.tolist() if s != d]
    hosts = set(t.hosts.tolist())
    return max(sum(node in hosts for node in route) - 1 for route in routes), 7


@theorem("THM-TOPO-MDCUBE-PATHS", system="MDCube")
def mdcube_paths() -> tuple[float, float]:
    """min(k+1, uplinks in use) disjoint paths join any two servers of different containers."""
    # Fewest from the first server to any other of a 3 x 2 grid: 3 uplinks of each container in use.
    t = mdcube(n=2, k=2, dims=(3, 2))
    return min(disjoint_paths(t, 0, other) for other in t.hosts[1:].tolist()), 3


@theorem("THM-TOPO-F10-DETOUR", system="F10")
def f10_detour() -> tuple[float, float]:
    """A core of F10 comes round a lost aggregation switch in 4 links, where a fat-tree needs 6."""
    # Shortest way from a core to the edge switches below the first aggregation switch, once that is lost.
    t = f10(k=8)
    graph = t.to_networkx()
    graph.remove_nodes_from(t.hosts.tolist())
    lost = int(np.flatnonzero(t.is_kind("aggregation"))[0])
    core, edge = max(graph[lost]), min(graph[lost])
    graph.remove_node(lost)
    return nx.shortest_path_length(graph, core, edge), 4


@theorem("THM-TOPO-C-THROUGH-HOLD", system="c-Through")
def c_through_duty() -> tuple[float, float]:
    """Saturated circuits of R racks carry R C hold/(hold + reconfiguration)."""
    # Sixteen racks held for 100 ms, dark for 12 ms, over five epochs.
    demand = 1e15 * (1 - np.eye(16))
    found = schedule_circuits(c_through(4, 4, 16), demand, 0.1, 0.012, epochs=5)
    return found.throughput, 16 * LINK_CAPACITY * 0.1 / 0.112


@theorem("THM-TOPO-HELIOS-CIRCUITS", system="Helios")
def helios_circuits() -> tuple[float, float]:
    """With F fibres of w wavelengths a pod, saturated circuits of P pods carry P F w C."""
    # Eight pods of 32 hosts, half of their bandwidth optical: two fibres of eight wavelengths.
    demand = 1e15 * (1 - np.eye(8))
    found = schedule_circuits(helios(8, 32, 0.5, 0.5), demand, 1.0, 0.0)
    return found.throughput, 8 * 2 * 8 * LINK_CAPACITY


def _lengths(dims: int | str) -> tuple[int, ...]:
    """Lengths in ``49x49``; one number is one dimension."""
    return tuple(int(length) for length in str(dims).split("x"))


def _hosts_below(t: Topology, top: int, edges: np.ndarray) -> int:
    """Hosts that a switch reaches by going down only (lower tiers have lower indices)."""
    reached = np.zeros(t.num_nodes, dtype=bool)
    reached[top] = True
    for _ in range(int(t.tier[top])):
        reached[edges[reached[edges[:, 1]], 0]] = True
    return int(np.count_nonzero(reached & t.endpoint))


def _parallel(paths: tuple[tuple[object, ...], ...]) -> int:
    """Paths, if they share no node between their ends, else 0."""
    inner = [node for path in paths for node in path[1:-1]]
    return len(paths) * (len(set(inner)) == len(inner))
