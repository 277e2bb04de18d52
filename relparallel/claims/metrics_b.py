"""Published loads and throughputs of whole networks, by shortest paths and by linear programming."""

import numpy as np

from relparallel.claims.registry import reproduces, theorem
from relparallel.metrics import aggregate_bottleneck_throughput, concurrent_flow, ecmp_load
from relparallel.topology import (
    Topology,
    bcube,
    dcell,
    dragonfly,
    fat_tree,
    ficonn,
    hammingmesh,
    jellyfish,
    leaf_spine,
    slim_fly,
    torus,
)


@reproduces("TOPO-034", system="fat_tree")
def fat_tree_bottleneck_throughput(k: int) -> float:
    """Host links that all-to-all traffic fills over all shortest paths."""
    return float(aggregate_bottleneck_throughput(fat_tree(k)))


@reproduces("TOPO-035", system="fat_tree*")
def fat_tree_all_to_all(k: int) -> float:
    """Of all hosts at once, by the program over orbits."""
    return float(concurrent_flow(fat_tree(k)))


@reproduces("TOPO-036", system="fat_tree*")
def fat_tree_longest_matching(ports: str) -> float:
    """Mean over the port counts; none is above or below."""
    found = [float(concurrent_flow(fat_tree(int(k)), "longest_matching")) for k in ports.split()]
    return float(np.mean(found))


@reproduces("TOPO-075", system="bcube")
def bcube_bottleneck_throughput(n: int, k: int) -> float:
    """By the loads of all cables, not by the theorem."""
    return float(aggregate_bottleneck_throughput(bcube(n, k)))


@reproduces("TOPO-101", "TOPO-102", system="dcell")
def dcell_throughput_per_server(n: int, k: int) -> float:
    """Traffic split evenly over all shortest paths."""
    return _per_host(dcell(n, k))


@reproduces("TOPO-112", system="ficonn")
def ficonn_throughput_per_server(n: int, k: int) -> float:
    """Traffic split evenly over all shortest paths."""
    return _per_host(ficonn(n, k))


@reproduces("TOPO-124", system="torus")
def torus_throughput_per_node(dims: str) -> float:
    """Traffic split evenly over all shortest paths."""
    return _per_host(torus(tuple(int(length) for length in dims.split("x"))))


@reproduces("TOPO-152", system="dragonfly")
def dragonfly_longest_matching(p: int, a: int, h: int) -> float:
    """Every server sends as far as it can."""
    return float(concurrent_flow(dragonfly(p, a, h), "longest_matching"))


@reproduces("TOPO-160", system="slimfly")
def slim_fly_all_to_all(q: int, p: int) -> float:
    """Of all servers at once."""
    return float(concurrent_flow(slim_fly(q, p)))


@reproduces("TOPO-161", system="slimfly")
def slim_fly_longest_matching(q: int, p: int) -> float:
    """Every server sends as far as it can, by one of many matchings that are as long."""
    return float(concurrent_flow(slim_fly(q, p), "longest_matching"))


@reproduces("TOPO-168", "TOPO-169", system="hxmesh")
def hamming_mesh_throughput_per_port(a: int, b: int, x: int, y: int) -> float:
    """Traffic split evenly over all shortest paths, per each of the four ports."""
    return _per_host(hammingmesh(a, b, x, y)) / 4


@reproduces(
    "TOPO-173",
    "TOPO-174",
    "TOPO-175",
    "TOPO-176",
    system="jellyfish*",
    discrepancies={
        "TOPO-176": "Single random graphs lie 3.5 % to 7.3 % above; the graph of the file is not known."
    },
)
def jellyfish_longest_matching_of_some(n: int, r: int, fraction: float) -> float:
    """Mean over a few graphs, the more the fewer switches take part; one server at every switch."""
    rng, graphs = np.random.default_rng(1), max(1, round(0.8 / fraction))
    found = [
        concurrent_flow(jellyfish(n, r + 1, r, rng), "longest_matching", share=fraction, rng=rng)
        for _ in range(graphs)
    ]
    return float(np.mean([float(each) for each in found]))


@theorem("THM-TOPO-BCUBE-ABT", system="BCube")
def bcube_theorem() -> tuple[float, float]:
    """All-to-all traffic of a BCube gets n(N-1)/(n-1) host links, more than one per server."""
    # Measured at 4,096 servers.
    return float(aggregate_bottleneck_throughput(bcube(n=8, k=3))), 8 * 4095 / 7


@theorem("THM-TOPO-FAT-TREE-FLOW", system="Fat-Tree")
def fat_tree_flow() -> tuple[float, float]:
    """A fat-tree carries (N-1)/(N-k/2) of a host link per host, all to all."""
    # By the linear program of the 27,648 hosts of 48-port switches, reduced by proved symmetry.
    return float(f"{float(concurrent_flow(fat_tree(48))):.12g}"), float(f"{27647 / 27624:.12g}")


@theorem("THM-TOPO-LEAF-SPINE-LOAD", system="Leaf-Spine")
def leaf_spine_load() -> tuple[float, float]:
    """An uplink of a leaf with h of N hosts and s spines carries h(N-h)/s units each way."""
    # Largest load where uplinks are the bottleneck.
    return ecmp_load(leaf_spine(leaves=16, spines=4, hosts_per_leaf=16)).maximum, 16 * (256 - 16) / 4


def _per_host(t: Topology) -> float:
    """Aggregate bottleneck throughput over the number of hosts."""
    return float(aggregate_bottleneck_throughput(t)) / t.num_hosts
