"""Published counts and distances of training clusters, low-diameter and direct networks, as built."""

import math

import numpy as np

from relparallel.claims.registry import reproduces, theorem
from relparallel.metrics import edge_connectivity, hop_statistics
from relparallel.topology import (
    Topology,
    describe,
    dgx_superpod,
    dragonfly,
    dragonfly_plus,
    hammingmesh,
    hpn7,
    hyperx,
    jellyfish,
    meta_roce,
    nvl72,
    polarfly,
    rail_only,
    slim_fly,
    torus,
    tpu_v4,
    xpander,
)
from relparallel.topology.routing import disjoint_paths
from relparallel.units import GBIT, TB


@reproduces("TOPO-*", system="DGX SuperPOD B200", quantity="nodes;GPUs;*")
def superpod_counts(scalable_units: int) -> tuple[int | None, ...]:
    """Servers, GPUs, switches of each tier and cables of each stage; a blank where there is no core."""
    t = dgx_superpod(scalable_units)
    stages = (("gpu", "leaf"), ("leaf", "spine"), ("spine", "core"))
    counts = [_count(t, kind) for kind in ("nvswitch", "gpu", "leaf", "spine", "core")]
    return tuple(number or None for number in [*counts, *(_cables(t, *ends) for ends in stages)])


@reproduces("TOPO-*", system="Alibaba HPN7", quantity="GPUs per pod")
def hpn_gpus(segments: int) -> int:
    """GPUs of the built network."""
    return hpn7(segments).num_hosts


@reproduces("TOPO-*", system="Alibaba HPN7", quantity="ToR (ASW) per pod")
def hpn_leaves(segments: int) -> int:
    """Leaves of both planes."""
    return _count(hpn7(segments), "leaf")


@reproduces("TOPO-*", system="Alibaba HPN7", quantity="Agg (PSW) per pod")
def hpn_aggregation_switches(segments: int) -> int:
    """Aggregation switches of both planes."""
    return _count(hpn7(segments), "aggregation")


@reproduces("TOPO-*", system="Alibaba HPN7", quantity="ToR per plane reached by each Agg")
def hpn_leaves_of_an_aggregation_switch(segments: int) -> int:
    """Cables of an aggregation switch."""
    t = hpn7(segments)
    return int(t.degrees[t.is_kind("aggregation")].min())


@reproduces("TOPO-*", system="Alibaba HPN7", quantity="GPU NIC port rate; ports")
def hpn_card(segments: int) -> tuple[float, int]:
    """Rate of a cable of a GPU to a leaf [Gbit/s], and how many it has."""
    t = hpn7(segments)
    card = _between(t, "gpu", "leaf")
    return float(t.capacity[card].max()) / GBIT, int(t.multiplicity[card].sum()) // t.num_hosts


@reproduces("TOPO-*", system="Alibaba HPN7", quantity="links*")
def hpn_links(segments: int) -> int:
    """Cables, NVLink bundles included."""
    return hpn7(segments).num_links


@reproduces("TOPO-*", system="Alibaba HPN7", quantity="GPU-GPU mean hops;diameter")
def hpn_hops(segments: int) -> tuple[float, int]:
    """Mean and largest distance of two GPUs."""
    found = hop_statistics(hpn7(segments))
    return found.mean, found.diameter


@reproduces("TOPO-139", system="Alibaba HPN7")
def hpn_leaf_capacity(segments: int, backup: int) -> tuple[float, float]:
    """Down and up [Tbit/s], with ports for the backup hosts; the sum fills a switch of 51.2 Tbit/s."""
    t = hpn7(segments)
    leaves = _count(t, "leaf")
    down, up = (_capacity(t, *ends) / leaves for ends in (("gpu", "leaf"), ("leaf", "aggregation")))
    card = float(t.capacity[_between(t, "gpu", "leaf")].max())
    return (down + backup * card) / (1000 * GBIT), up / (1000 * GBIT)


@reproduces("TOPO-140", system="Alibaba HPN7")
def hpn_core_oversubscription(segments: int, switch: float) -> tuple[float, int]:
    """Capacity of an aggregation switch towards leaves, over what is left of the chip towards cores."""
    t = hpn7(segments)
    down = _capacity(t, "leaf", "aggregation") / _count(t, "aggregation")
    return down / (switch - down), 1


@reproduces("TOPO-*", system="Meta 24k RoCE", quantity="GPUs;pods;racks;*")
def meta_counts(pods: int) -> tuple[int, ...]:
    """GPUs, pods, racks, and how many of each are in a pod and a rack."""
    t = meta_roce(pods)
    gpus, racks = t.num_hosts, _count(t, "rack")
    groups = len(np.unique(t.pod[t.pod >= 0]))
    rack = int(t.degrees[t.is_kind("rack")].max()) - _cables(t, "rack", "cluster") // racks
    return gpus, groups, racks, gpus // groups, racks // groups, rack


@reproduces("TOPO-*", system="Meta 24k RoCE", quantity="pod-to-aggregation oversubscription")
def meta_oversubscription(pods: int) -> tuple[float, int]:
    """Capacity of all cluster switches towards racks, over that towards aggregation switches."""
    t = meta_roce(pods)
    ratio = _capacity(t, "rack", "cluster") / _capacity(t, "cluster", "aggregation")
    return round(ratio, 12), 1  # 192/7 ports have no exact binary form


@reproduces("TOPO-*", system="NVL72", quantity="switch trays; NVSwitch chips; NVLink5 links")
def nvl72_counts(racks: int) -> tuple[int, int, int]:
    """Groups of chips that share a tray, chips, and links."""
    t = nvl72(racks, nvswitch_detail=True)
    return len(t.shared_risk), _count(t, "nvswitch"), t.num_links


@reproduces("TOPO-*", system="NVL72", quantity="aggregate NVLink bandwidth")
def nvl72_bandwidth(racks: int) -> float:
    """All links, both directions [TB/s]."""
    return 2 * _capacity(nvl72(racks, nvswitch_detail=True), "gpu", "nvswitch") / TB


@reproduces("TOPO-*", system="dragonfly", quantity="terminals;routers;links")
def dragonfly_counts(p: int, a: int, h: int) -> tuple[int, int, int]:
    """Of the built network."""
    t = dragonfly(p, a, h)
    return t.num_hosts, t.num_switches, t.num_links


@reproduces("TOPO-*", system="dragonfly", quantity="terminal diameter; mean hops")
def dragonfly_hops(p: int, a: int, h: int) -> tuple[int, float]:
    """Over all pairs of servers."""
    found = hop_statistics(dragonfly(p, a, h))
    return found.diameter, found.mean


@reproduces("TOPO-*", system="slimfly", quantity="routers;network degree;links")
def slim_fly_switches(q: int) -> tuple[int, int, int]:
    """The graph of the switches alone."""
    t = slim_fly(q, p=0)
    return t.num_nodes, int(t.degrees.max()), t.num_links


@reproduces("TOPO-*", system="slimfly", quantity="routers;terminals")
def slim_fly_counts(q: int, p: int) -> tuple[int, int]:
    """Of the built network."""
    t = slim_fly(q, p)
    return t.num_switches, t.num_hosts


@reproduces("TOPO-*", system="slimfly", quantity="router diameter")
def slim_fly_diameter(sizes: str) -> float:
    """The mean over the sizes; no graph that is not complete has less than 2."""
    return float(np.mean([hop_statistics(slim_fly(int(q), p=0)).diameter for q in sizes.split()]))


@reproduces("TOPO-*", system="slimfly", quantity="endpoint mean hops")
def slim_fly_mean_hops(q: int, p: int) -> float:
    """Over all pairs of servers."""
    return hop_statistics(slim_fly(q, p)).mean


@reproduces("TOPO-*", system="slimfly", quantity="algebraic connectivity; spectral bisection lower bound")
def slim_fly_spectrum(q: int) -> tuple[float, float]:
    """Second eigenvalue of the Laplacian, and n/4 times it."""
    t = slim_fly(q, p=0)
    laplacian = np.diag(t.degrees.astype(np.float64))
    laplacian[t.edges[:, 0], t.edges[:, 1]] = laplacian[t.edges[:, 1], t.edges[:, 0]] = -1
    second = float(np.linalg.eigvalsh(laplacian)[1])
    return second, t.num_nodes * second / 4


@reproduces("TOPO-*", system="polarfly", quantity="routers")
def polarfly_switches(q: int) -> int:
    """Of the built network."""
    return polarfly(q, p=0).num_nodes


@reproduces("TOPO-*", system="hyperx", quantity="terminals;links;diameter;mean")
def hyperx_counts(dims: str, t: int) -> tuple[int, int, int, float]:
    """Counts of the built network and its distances."""
    built = hyperx([int(length) for length in dims.split("x")], t)
    found = hop_statistics(built)
    return built.num_hosts, built.num_links, found.diameter, found.mean


@reproduces("TOPO-*", system="hxmesh", quantity="accelerators;diameter")
def hammingmesh_diameter(a: int, b: int, x: int, y: int) -> tuple[int, int]:
    """Of the built network."""
    t = hammingmesh(a, b, x, y)
    return t.num_hosts, hop_statistics(t).diameter


@theorem("THM-TOPO-DRAGONFLY-PLUS-HOPS", system="Dragonfly+")
def dragonfly_plus_mean_hops() -> tuple[float, float]:
    """Servers of two groups of a Dragonfly+ are 5 links apart, which gives the mean in closed form."""
    # Measured against the closed form at 2,112 servers.
    form = describe("dragonfly_plus", l=8, s=8, p=8, h=4)
    return hop_statistics(dragonfly_plus(l=8, s=8, p=8, h=4)).mean, float(form.mean_hops or 0)


@theorem("THM-TOPO-POLARFLY-PATHS", system="PolarFly")
def polarfly_connectivity() -> tuple[float, float]:
    """PolarFly falls apart only when q cables fail, those of one quadric."""
    # Smallest cut for a field that is no prime one.
    return float(edge_connectivity(polarfly(q=9, p=0))), 9


@theorem("THM-TOPO-HPN-PATHS", system="Alibaba HPN 7.0")
def hpn_paths() -> tuple[float, float]:
    """Three cable-disjoint paths join any two GPUs of HPN: over either plane, and over NVLink."""
    # Fewest from the first GPU to GPUs of its host, its segment and the next.
    t = hpn7(segments=2)
    return min(disjoint_paths(t, 0, other) for other in (1, 8, 9, 1024, 2047)), 3


@theorem("THM-TOPO-RAIL-ONLY-HOPS", system="Rail-only")
def rail_only_mean_hops() -> tuple[float, float]:
    """Without switches between rails two GPUs are at most 4 links apart where a rail is one switch."""
    # Measured against the closed form at 512 GPUs.
    form = describe("rail_only", domains=64)
    return hop_statistics(rail_only(domains=64)).mean, float(form.mean_hops or 0)


@theorem("THM-TOPO-TPU-SLICE", system="TPU v4")
def tpu_slice() -> tuple[float, float]:
    """A slice of TPU v4 is the torus of its dimensions, whichever cubes of the pod it is made of."""
    # Cables that the torus has too, from scattered cubes.
    slice_, whole = tpu_v4((8, 8, 4), cubes=(63, 5, 0, 42)), torus((8, 8, 4))
    return int((slice_.edges == whole.edges).all(axis=1).sum()), whole.num_links


@theorem("THM-TOPO-XPANDER-LIFT", system="Xpander")
def xpander_spectrum() -> tuple[float, float]:
    """A lift keeps the eigenvalues of the complete graph, d once and -1 d times: a gap of d + 1."""
    # On vectors that are constant on each pod.
    d, k = 6, 20
    t = xpander(d, k, 0, np.random.default_rng(0))
    pods = t.pod[t.edges]
    quotient = np.zeros((d + 1, d + 1))
    np.add.at(quotient, (pods[:, 0], pods[:, 1]), 1 / k)
    values = np.linalg.eigvalsh(quotient + quotient.T)
    return float(values[-1] - values[-2]), d + 1


@theorem("THM-TOPO-JELLYFISH-DEGREE", system="Jellyfish")
def jellyfish_degree() -> tuple[float, float]:
    """Every switch of a Jellyfish has k cables: k - r servers and r others."""
    # Mean of the squared degrees: k^2 only where all are alike.
    t = jellyfish(n=200, k=16, r=11, rng=np.random.default_rng(0))
    return float((t.degrees[t.switches] ** 2).mean()), 16**2


def _count(t: Topology, kind: str) -> int:
    """Nodes of a kind; 0 where there are none."""
    return int(np.count_nonzero(t.is_kind(kind))) if kind in t.kinds else 0


def _between(t: Topology, one: str, other: str) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Pairs of nodes that join two kinds, named from the lower tier up."""
    if other not in t.kinds:
        return np.zeros(len(t.edges), dtype=bool)
    return np.asarray(t.is_kind(one)[t.edges[:, 0]] & t.is_kind(other)[t.edges[:, 1]])


def _cables(t: Topology, one: str, other: str) -> int:
    return int(t.multiplicity[_between(t, one, other)].sum())


def _capacity(t: Topology, one: str, other: str) -> float:
    """Capacity of all cables between two kinds, in one direction, without rounding of the sum."""
    return math.fsum((t.capacity * t.multiplicity)[_between(t, one, other)].tolist())
