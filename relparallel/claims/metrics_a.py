"""Published bisections, orbits and connectivities, measured on the built graphs."""

import numpy as np

from relparallel.claims.registry import reproduces, theorem
from relparallel.metrics import bisection, disjoint_path_set, hop_statistics, vertex_connectivity
from relparallel.reliability import evaluate
from relparallel.topology import Topology, bcube, dcell, describe, fat_tree, ficonn, orbits, torus


@reproduces("TOPO-030", system="fat_tree")
def fat_tree_bisection(k: int) -> float:
    """Cables between the halves, by the integer program."""
    return _solved(fat_tree(k))


@reproduces("TOPO-081", "TOPO-082", "TOPO-083", system="bcube")
def bcube_bisection(n: int, k: int) -> float:
    """Cables between the halves, by the integer program."""
    return _solved(bcube(n, k))


@reproduces("TOPO-100", system="dcell")
def dcell_bisection(n: int, k: int) -> float:
    """Cables between the halves, by the integer program."""
    return _solved(dcell(n, k))


@reproduces("TOPO-111", system="ficonn")
def ficonn_bisection(n: int, k: int) -> float:
    """Cables between the halves, by the integer program."""
    return _solved(ficonn(n, k))


@reproduces("TOPO-188", system="fat_tree")
def fat_tree_orbits(ports: str) -> float:
    """Orbits of the proved symmetries, the mean over the port counts."""
    return float(np.mean([orbits(fat_tree(int(k))).max() + 1 for k in ports.split()]))


@theorem("THM-TOPO-TORUS-BISECTION", system="Torus (Blue Gene/L)")
def torus_bisection() -> tuple[float, float]:
    """2N/k cables cross the middle of a torus of even longest dimension k; the load proves it."""
    # Bound of the routing on Blue Gene/L against the closed form.
    form = describe("torus", dims=(64, 32, 32))
    return bisection(torus((64, 32, 32)), method="bracket").lower, float(form.bisection or 0)


@theorem("THM-TOPO-FAT-TREE-ORBITS", system="Fat-tree")
def fat_tree_by_orbits() -> tuple[float, float]:
    """One search gives the distances of all hosts of a fat-tree, for they form one orbit."""
    # Mean by proved orbits against the closed form.
    form = describe("fat_tree", k=48)
    return hop_statistics(fat_tree(48), symmetry=True).mean, float(form.mean_hops or 0)


@theorem("THM-TOPO-BCUBE-NODES", system="BCube")
def bcube_node_disjoint_paths() -> tuple[float, float]:
    """k + 1 paths without a common node join any two servers of a BCube_k."""  # noqa: D403
    # Fewest from the first server to any other: all pairs, for the servers are one orbit.
    t = bcube(n=3, k=2)
    return min(len(disjoint_path_set(t, 0, other)) for other in t.hosts[1:]), 3


@theorem("THM-TOPO-TORUS-NODES", system="Torus (Blue Gene/L)")
def torus_vertex_connectivity() -> tuple[float, float]:
    """A d-dimensional torus falls apart only when 2d nodes fail, the neighbours of one."""
    # Smallest separating set of a torus of 512 nodes.
    return float(vertex_connectivity(torus((8, 8, 8)))), 6


@theorem("THM-TOPO-ALL-HOSTS", system="Fat-tree")
def fat_tree_host_cables() -> tuple[float, float]:
    """Without switch or fabric failures all hosts of a fat-tree are joined if all host cables work."""
    # Whether p^N for N host cables lies in the interval of 100,000 samples: 1 if so.
    t = fat_tree(8)
    chance = np.where(t.endpoint[t.edges].any(axis=1), 1e-3, 0.0)
    found = evaluate(
        t,
        link_down=chance,
        method="monte_carlo",
        samples=100_000,
        rng=np.random.default_rng(0),
        confidence=0.9999,
    )
    return float(found.lower < 1 - 0.999**t.num_hosts < found.upper), 1.0


def _solved(t: Topology) -> float:
    """Value of the bisection where lower and upper bound meet."""
    found = bisection(t, method="exact")
    return float(found) if found.exact else float("nan")
