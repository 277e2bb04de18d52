"""Theorems on networks: closed forms, paths, cuts and loads, each measured on the built network."""

import networkx as nx
import numpy as np
from theorem_table import theorem

from chapters import s22, s23
from relparallel import metrics, reliability, topology
from relparallel.topology.disjoint import disjoint_path_set
from relparallel.topology.parts import LINK_CAPACITY
from relparallel.topology.routing import bcube_paths, disjoint_paths, ecmp_paths, ficonn_route


@theorem("THM-TOPO-LEAF-SPINE-HOPS", system="Leaf-Spine")
def test_leaf_spine_mean_hops():
    """Hosts of a leaf-spine network are [2(h-1) + 4(N-h)]/(N-1) links apart on average."""
    # Measured against the closed form at 1,024 hosts.
    form = topology.describe("leaf_spine", leaves=32, spines=16, hosts_per_leaf=32)
    return metrics.hop_statistics(
        topology.leaf_spine(leaves=32, spines=16, hosts_per_leaf=32)
    ).mean, float(form.mean_hops or 0)


@theorem("THM-TOPO-LEAF-SPINE-PATHS", system="Leaf-Spine")
def test_leaf_spine_paths():
    """As many cable-disjoint paths as there are spines join two leaves."""
    # Measured between the first leaf and the last.
    t = topology.leaf_spine(leaves=32, spines=16, hosts_per_leaf=32)
    first, *_, last = np.flatnonzero(t.is_kind("leaf"))
    return float(metrics.edge_connectivity(t, first, last)), 16


@theorem("THM-TOPO-DCELL-PATHS", system="DCell")
def test_dcell_paths():
    """k + 1 cable-disjoint paths join any two servers of a DCell_k."""
    # Fewest from the first server to any other: all pairs, for servers forward.
    t = topology.dcell(n=3, k=2)
    return min(disjoint_paths(t, 0, other) for other in t.hosts[1:]), 3


@theorem("THM-TOPO-TORUS-CUT", system="Torus (Blue Gene/L)")
def test_torus_connectivity():
    """A d-dimensional torus falls apart only when 2d cables fail, the cables of one node."""
    # Smallest cut of a torus of 64 nodes.
    return float(metrics.edge_connectivity(topology.torus((4, 4, 4)))), 6


@theorem("THM-TOPO-PARTITION-CUT", system="Torus (Blue Gene/L)")
def test_partition_bisection():
    """The least of N/k over open and 2N/k over wrapped sides k bisects partitions of even sides."""
    # Solved for a box of 4 x 4 x 2 nodes that is wrapped in its first dimension: N/4 across the
    # second.
    return float(
        metrics.bisection(topology.torus((4, 4, 2), wrap=(True, False, False)), method="exact")
    ), 32 / 4


@theorem("THM-TOPO-TORUS-BISECTION", system="Torus (Blue Gene/L)")
def test_torus_bisection():
    """2N/k cables cross the middle of a torus of even longest dimension k; the load proves it."""
    # Bound of the routing on Blue Gene/L against the closed form.
    form = topology.describe("torus", dims=(64, 32, 32))
    return metrics.bisection(topology.torus((64, 32, 32)), method="bracket").lower, float(
        form.bisection or 0
    )


@theorem("THM-TOPO-FAT-TREE-ORBITS", system="Fat-tree")
def test_fat_tree_by_orbits():
    """One search gives the distances of all hosts of a fat-tree, for they form one orbit."""
    # Mean by proved orbits against the closed form.
    form = topology.describe("fat_tree", k=48)
    return metrics.hop_statistics(topology.fat_tree(48), symmetry=True).mean, float(
        form.mean_hops or 0
    )


@theorem("THM-TOPO-BCUBE-NODES", system="BCube")
def test_bcube_node_disjoint_paths():
    """k + 1 paths without a common node join any two servers of a BCube_k."""
    # Fewest from the first server to any other: all pairs, for the servers are one orbit.
    t = topology.bcube(n=3, k=2)
    return min(len(disjoint_path_set(t, 0, other)) for other in t.hosts[1:]), 3


@theorem("THM-TOPO-TORUS-NODES", system="Torus (Blue Gene/L)")
def test_torus_vertex_connectivity():
    """A d-dimensional torus falls apart only when 2d nodes fail, the neighbours of one."""
    # Smallest separating set of a torus of 512 nodes.
    return float(s23.vertex_connectivity(topology.torus((8, 8, 8)))), 6


@theorem("THM-TOPO-ALL-HOSTS", system="Fat-tree")
def test_fat_tree_host_cables():
    """Without switch or fabric failures all fat-tree hosts are joined if all host cables work."""
    # Whether p^N for N host cables lies in the interval of 100,000 samples: 1 if so.
    t = topology.fat_tree(8)
    chance = np.where(t.endpoint[t.edges].any(axis=1), 1e-3, 0.0)
    found = reliability.estimate(
        t,
        link_down=chance,
        method="crude",
        samples=100_000,
        rng=np.random.default_rng(0),
        confidence=0.9999,
    )
    return float(found.lower < 1 - 0.999**t.num_hosts < found.upper), 1.0


@theorem("THM-TOPO-BCUBE-ABT", system="BCube")
def test_bcube_theorem():
    """All-to-all traffic of a BCube gets n(N-1)/(n-1) host links, more than one per server."""
    # Measured at 4,096 servers.
    return float(s23.aggregate_bottleneck_throughput(topology.bcube(n=8, k=3))), 8 * 4095 / 7


@theorem("THM-TOPO-FAT-TREE-FLOW", system="Fat-Tree")
def test_fat_tree_flow():
    """A fat-tree carries (N-1)/(N-k/2) of a host link per host, all to all."""
    # By the linear program of the 27,648 hosts of 48-port switches, reduced by proved symmetry.
    return float(f"{float(metrics.concurrent_flow(topology.fat_tree(48))):.12g}"), float(
        f"{27647 / 27624:.12g}"
    )


@theorem("THM-TOPO-LEAF-SPINE-LOAD", system="Leaf-Spine")
def test_leaf_spine_load():
    """An uplink of a leaf with h of N hosts and s spines carries h(N-h)/s units each way."""
    # Largest load where uplinks are the bottleneck.
    return metrics.ecmp_load(
        topology.leaf_spine(leaves=16, spines=4, hosts_per_leaf=16)
    ).maximum, 16 * (256 - 16) / 4


@theorem("THM-TOPO-VL2-HOPS", system="VL2")
def test_vl2_mean_hops():
    """Servers of VL2 are [2 19 + 4 20 (D_A/2-1) + 6 (N-10 D_A)]/(N-1) links apart on average."""
    # Measured against the closed form at 240 servers.
    return metrics.hop_statistics(topology.vl2(8, 6)).mean, (
        2 * 19 + 4 * 20 * 3 + 6 * (240 - 80)
    ) / 239


@theorem("THM-TOPO-VL2-PATHS", system="VL2")
def test_vl2_shortest_paths():
    """2 D_A shortest paths join racks of two pods: valiant load balancing spreads over all."""
    # Counted between the first rack and the last.
    t = topology.vl2(d_a=8, d_i=6)
    first, *_, last = np.flatnonzero(t.is_kind("tor")).tolist()
    return len(ecmp_paths(t, first, last)), 16


@theorem("THM-TOPO-BCUBE-BSR", system="BCube")
def test_bcube_source_routing():
    """The k + 1 paths of BCube source routing share no server and no switch between their ends."""
    # Fewest of them that share no node, from the first server to any other of 64.
    t = topology.bcube(n=4, k=2)
    return min(_parallel(bcube_paths(t, 0, other)) for other in t.hosts[1:].tolist()), 3


@theorem("THM-TOPO-FICONN-ROUTE", system="FiConn")
def test_ficonn_longest_route():
    """Traffic-oblivious routes of FiConn have at most 2^(k+1) - 1 server hops, some as many."""
    # Longest route of a FiConn of 48 servers, over all pairs.
    t = topology.ficonn(n=4, k=2)
    routes = [ficonn_route(t, s, d) for s in t.hosts.tolist() for d in t.hosts.tolist() if s != d]
    hosts = set(t.hosts.tolist())
    return max(sum(node in hosts for node in route) - 1 for route in routes), 7


@theorem("THM-TOPO-MDCUBE-PATHS", system="MDCube")
def test_mdcube_paths():
    """min(k+1, uplinks in use) disjoint paths join any two servers of different containers."""
    # Fewest from the first server to any other of a 3 x 2 grid: 3 uplinks of each container in use.
    t = topology.mdcube(n=2, k=2, dims=(3, 2))
    return min(disjoint_paths(t, 0, other) for other in t.hosts[1:].tolist()), 3


@theorem("THM-TOPO-F10-DETOUR", system="F10")
def test_f10_detour():
    """A core of F10 comes round a lost aggregation switch in 4 links, where a fat-tree needs 6."""
    # Shortest way from a core to the edge switches below the first aggregation switch, once that is
    # lost.
    t = topology.f10(k=8)
    graph = t.to_networkx()
    graph.remove_nodes_from(t.hosts.tolist())
    lost = int(np.flatnonzero(t.is_kind("aggregation"))[0])
    core, edge = max(graph[lost]), min(graph[lost])
    graph.remove_node(lost)
    return nx.shortest_path_length(graph, core, edge), 4


@theorem("THM-TOPO-C-THROUGH-HOLD", system="c-Through")
def test_c_through_duty():
    """Saturated circuits of R racks carry R C hold/(hold + reconfiguration)."""
    # Sixteen racks held for 100 ms, dark for 12 ms, over five epochs.
    demand = 1e15 * (1 - np.eye(16))
    found = s22.schedule_circuits(topology.c_through(4, 4, 16), demand, 0.1, 0.012, epochs=5)
    return found.throughput, 16 * LINK_CAPACITY * 0.1 / 0.112


@theorem("THM-TOPO-HELIOS-CIRCUITS", system="Helios")
def test_helios_circuits():
    """With F fibres of w wavelengths a pod, saturated circuits of P pods carry P F w C."""
    # Eight pods of 32 hosts, half of their bandwidth optical: two fibres of eight wavelengths.
    demand = 1e15 * (1 - np.eye(8))
    found = s22.schedule_circuits(topology.helios(8, 32, 0.5, 0.5), demand, 1.0, 0.0)
    return found.throughput, 8 * 2 * 8 * LINK_CAPACITY


@theorem("THM-TOPO-DRAGONFLY-PLUS-HOPS", system="Dragonfly+")
def test_dragonfly_plus_mean_hops():
    """Servers of two groups of a Dragonfly+ are 5 links apart, so the mean has a closed form."""
    # Measured against the closed form at 2,112 servers.
    form = topology.describe("dragonfly_plus", l=8, s=8, p=8, h=4)
    return metrics.hop_statistics(topology.dragonfly_plus(l=8, s=8, p=8, h=4)).mean, float(
        form.mean_hops or 0
    )


@theorem("THM-TOPO-POLARFLY-PATHS", system="PolarFly")
def test_polarfly_connectivity():
    """PolarFly falls apart only when q cables fail, those of one quadric."""
    # Smallest cut for a field that is no prime one.
    return float(metrics.edge_connectivity(topology.polarfly(q=9, p=0))), 9


@theorem("THM-TOPO-HPN-PATHS", system="Alibaba HPN 7.0")
def test_hpn_paths():
    """Three cable-disjoint paths join any two GPUs of HPN: over either plane, and over NVLink."""
    # Fewest from the first GPU to GPUs of its host, its segment and the next.
    t = topology.hpn7(segments=2)
    return min(disjoint_paths(t, 0, other) for other in (1, 8, 9, 1024, 2047)), 3


@theorem("THM-TOPO-RAIL-ONLY-HOPS", system="Rail-only")
def test_rail_only_mean_hops():
    """Without switches between rails two GPUs are at most 4 links apart if a rail is one switch."""
    # Measured against the closed form at 512 GPUs.
    form = topology.describe("rail_only", domains=64)
    return metrics.hop_statistics(topology.rail_only(domains=64)).mean, float(form.mean_hops or 0)


@theorem("THM-TOPO-TPU-SLICE", system="TPU v4")
def test_tpu_slice():
    """A TPU v4 slice is the torus of its dimensions, whichever cubes of the pod it is made of."""
    # Cables that the torus has too, from scattered cubes.
    slice_, whole = topology.tpu_v4((8, 8, 4), cubes=(63, 5, 0, 42)), topology.torus((8, 8, 4))
    return int((slice_.edges == whole.edges).all(axis=1).sum()), whole.num_links


@theorem("THM-TOPO-XPANDER-LIFT", system="Xpander")
def test_xpander_spectrum():
    """A lift keeps the eigenvalues of the complete graph, d once and -1 d times: a gap of d + 1."""
    # On vectors that are constant on each pod.
    d, k = 6, 20
    t = topology.xpander(d, k, 0, np.random.default_rng(0))
    pods = t.pod[t.edges]
    quotient = np.zeros((d + 1, d + 1))
    np.add.at(quotient, (pods[:, 0], pods[:, 1]), 1 / k)
    values = np.linalg.eigvalsh(quotient + quotient.T)
    return float(values[-1] - values[-2]), d + 1


@theorem("THM-TOPO-JELLYFISH-DEGREE", system="Jellyfish")
def test_jellyfish_degree():
    """Every switch of a Jellyfish has k cables: k - r servers and r others."""
    # Mean of the squared degrees: k^2 only where all are alike.
    t = topology.jellyfish(n=200, k=16, r=11, rng=np.random.default_rng(0))
    return float((t.degrees[t.switches] ** 2).mean()), 16**2


def _parallel(paths: tuple[tuple[object, ...], ...]) -> int:
    """Paths, if they share no node between their ends, else 0."""
    inner = [node for path in paths for node in path[1:-1]]
    return len(paths) * (len(set(inner)) == len(inner))
