"""Published counts, distances, cuts and throughputs of networks, measured on networks as built."""

from collections.abc import Callable
from functools import partial
from operator import attrgetter
from typing import Any, Final

import numpy as np

from evidence.claims import _measures as of
from evidence.claims.registry import Rows
from relparallel import metrics, topology, units
from relparallel.published import Fact

Measure = Callable[[topology.Topology], Any]
_HOSTS, _SWITCHES, _LINKS = map(attrgetter, ("num_hosts", "num_switches", "num_links"))


def _aspen(n: int, k: int, ftv: str | int) -> topology.Topology:
    """The row lists the fault tolerance of its levels, or none has any."""
    return topology.aspen(
        n, k, [int(f) for f in ftv.split()] if isinstance(ftv, str) else [0] * (n - 1)
    )


#: Constructor of a row's system, and the inputs it takes; those that a row does not give are 0.
_BUILDERS: Final[dict[str, tuple[Callable[..., topology.Topology], str]]] = {
    "fat_tree": (topology.fat_tree, "k"),
    "fat_tree (topobench LP)": (topology.fat_tree, "k"),
    "F10 AB fat-tree": (topology.f10, "k"),
    "aspen": (_aspen, "n k ftv"),
    "vl2": (topology.vl2, "d_a d_i"),
    "bcube": (topology.bcube, "n k"),
    "dcell": (topology.dcell, "n k"),
    "ficonn": (topology.ficonn, "n k"),
    "mdcube": (topology.mdcube, "n k dims"),
    "torus": (topology.torus, "dims"),
    "torus BG/L": (topology.torus, "dims"),
    "DGX SuperPOD B200": (topology.dgx_superpod, "scalable_units"),
    "Alibaba HPN7": (topology.hpn7, "segments"),
    "Meta 24k RoCE": (topology.meta_roce, "pods"),
    "NVL72": (partial(topology.nvl72, nvswitch_detail=True), "racks"),
    "dragonfly": (topology.dragonfly, "p a h"),
    "slimfly": (topology.slim_fly, "q p"),
    "polarfly": (topology.polarfly, "q p"),
    "hyperx": (topology.hyperx, "dims t"),
    "hxmesh": (topology.hammingmesh, "a b x y"),
}


def _lengths(dims: object) -> tuple[int, ...]:
    """Lengths in ``49x49``; one number is one dimension."""
    return tuple(int(length) for length in str(dims).split("x"))


def _networks(fact: Fact) -> list[topology.Topology]:
    """The network of a row, or one for each of the port counts or sizes that it lists."""
    build, text = _BUILDERS[fact.system]
    first, *others = text.split()
    given: dict[str, Any] = {**fact.inputs}
    listed = given.get("ports", given.get("sizes"))
    firsts = [int(size) for size in listed.split()] if listed else [given[first]]
    rest = [_lengths(given[name]) if name == "dims" else given.get(name, 0) for name in others]
    return [build(_lengths(size) if first == "dims" else size, *rest) for size in firsts]


def _claim(measure: Measure) -> Callable[[Fact], Any]:
    """A claim: the measure of a row's network, or its mean over several."""

    def measured(fact: Fact) -> Any:
        found = [measure(t) for t in _networks(fact)]
        return found[0] if len(found) == 1 else float(np.mean(found))

    return measured


#: What each quantity of a system measures.
_MEASURES: Final[dict[str, dict[str, Measure]]] = {
    "fat_tree": {
        "hosts": _HOSTS,
        "switches": _SWITCHES,
        "links": _LINKS,
        "host-host mean graph hops": of.mean,
        "all-node mean hops": partial(of.mean, endpoints="nodes"),
        "host diameter": of.diameter,
        "host-host hop histogram*": lambda t: sum(metrics.hop_statistics(t).histogram.items(), ()),
        "edge-disjoint paths between edge switches*": of.cut_of_edge_switches,
        "equal-cost shortest paths between pods": of.shortest_paths,
        "host bisection*": of.exact_bisection,
        "vertex orbits*": lambda t: float(topology.orbits(t).max() + 1),
        "ABT under ECMP*": of.bottleneck,
    },
    "fat_tree (topobench LP)": {
        "max concurrent flow all-to-all*": of.all_to_all,
        "max concurrent flow longest matching*": of.longest_matching,
    },
    "F10 AB fat-tree": {
        "hosts;switches;links;mean hops": lambda t: (
            t.num_hosts,
            t.num_switches,
            t.num_links,
            of.mean(t),
        )
    },
    "aspen": {
        "S;hosts;DCC": of.aspen_counts,
        "hosts cut by one top-level link failure": of.aspen_hosts_cut,
    },
    "vl2": {
        "ToR switches": lambda t: of.count(t, "tor"),
        "links*": _LINKS,
        "aggregation*": lambda t: tuple(
            of.count(t, kind) for kind in ("aggregation", "intermediate")
        ),
        "edge-disjoint paths*": of.fewest_rack_paths,
        "servers per ToR; uplinks": of.rack,
    },
    "bcube": {
        "servers": _HOSTS,
        "switches": _SWITCHES,
        "links": _LINKS,
        "server diameter*": of.diameter,
        "mean graph hops": of.mean,
        "mean server hops": partial(of.mean, hops="servers"),
        "vertex/edge-disjoint paths*": of.node_disjoint_paths,
        "equal-cost paths*": of.shortest_paths,
        "global edge connectivity": lambda t: float(metrics.edge_connectivity(t)),
        "server bisection*": of.exact_bisection,
        "ABT all-to-all*": of.bottleneck,
    },
    "dcell": {
        "links": _LINKS,
        "vertex-disjoint paths*": of.node_disjoint_paths,
        "shortest-path mean, std (server hops; intra-switch*": of.mean_and_spread,
        # Some sources: the mean's standard error is below 0.01.
        "shortest-path mean, std (server hops)": lambda t: of.mean_and_spread(
            t, sources=512, rng=np.random.default_rng(0)
        ),
        "server diameter*": partial(of.diameter, hops="servers"),
        "server bisection*": of.exact_bisection,
        "ABT/N*": of.bottleneck_per_host,
    },
    "ficonn": {
        "servers": _HOSTS,
        "links": _LINKS,
        "server diameter*": partial(of.diameter, hops="servers"),
        "mean server hops": partial(of.mean, hops="servers"),
        "server bisection*": of.exact_bisection,
        "ABT/N*": of.bottleneck_per_host,
    },
    "mdcube": {"servers;links;diameter*": lambda t: (t.num_hosts, t.num_links, of.diameter(t))},
    "torus*": {
        "nodes;links;diameter": lambda t: (t.num_hosts, t.num_links, of.some(t).diameter),
        "mean hops": lambda t: of.some(t).mean,
        "mean hops; diameter": lambda t: (of.mean(t), of.diameter(t)),
        "ABT/N*": of.bottleneck_per_host,
    },
    "DGX SuperPOD B200": {"nodes;GPUs;*": of.superpod},
    "Alibaba HPN7": {
        "GPUs per pod": _HOSTS,
        "ToR (ASW) per pod": lambda t: of.count(t, "leaf"),
        "Agg (PSW) per pod": lambda t: of.count(t, "aggregation"),
        "ToR per plane*": lambda t: int(t.degrees[t.is_kind("aggregation")].min()),
        "GPU NIC port rate; ports": of.hpn_card,
        "links*": _LINKS,
        "GPU-GPU mean hops;diameter": lambda t: (of.mean(t), of.diameter(t)),
    },
    "Meta 24k RoCE": {
        "GPUs;pods;racks;*": of.meta,
        "pod-to-aggregation oversubscription": of.meta_oversubscription,
    },
    "NVL72": {
        "switch trays;*": lambda t: (len(t.shared_risk), of.count(t, "nvswitch"), t.num_links),
        "aggregate NVLink bandwidth": lambda t: 2 * of.capacity(t, "gpu", "nvswitch") / units.TB,
    },
    "dragonfly": {
        "terminals;routers;links": attrgetter("num_hosts", "num_switches", "num_links"),
        "terminal diameter; mean hops": lambda t: (of.diameter(t), of.mean(t)),
        "LP throughput longest matching*": of.longest_matching,
    },
    "slimfly": {
        "routers;network degree;links": lambda t: (t.num_nodes, int(t.degrees.max()), t.num_links),
        "routers;terminals": lambda t: (t.num_switches, t.num_hosts),
        "router diameter": of.diameter,
        "endpoint mean hops": of.mean,
        "algebraic connectivity;*": of.spectrum,
        "all-to-all LP throughput*": of.all_to_all,
        "longest-matching LP throughput*": of.longest_matching,
    },
    "polarfly": {"routers": lambda t: t.num_nodes},
    "hyperx": {
        "terminals;links;diameter;mean": lambda t: (
            t.num_hosts,
            t.num_links,
            of.diameter(t),
            of.mean(t),
        )
    },
    "hxmesh": {
        "accelerators;diameter": lambda t: (t.num_hosts, of.diameter(t)),
        "ABT/N per injection link": lambda t: of.bottleneck_per_host(t) / 4,  # a server has four
    },
}


def dcell_servers(n: int, k: int) -> int:
    """Servers: of the built network, or by the recursion where it has millions."""
    planned = topology.describe("dcell", n=n, k=k).hosts
    return planned if planned > 10**6 else topology.dcell(n, k).num_hosts


def mdcube_servers(n: int, k: int, dims: int | str) -> int:
    """Servers of the largest grid that a container's uplinks carry: one uplink more is refused."""
    lengths = _lengths(dims)
    uplinks = topology.describe("bcube", n=n, k=k).switches
    if sum(lengths) - len(lengths) != uplinks:
        raise ValueError(f"dims must use all {uplinks} uplinks of a container, got {dims}")
    return topology.describe("mdcube", n=n, k=k, dims=lengths).hosts


def torus_bisection_bandwidth(dims: str, link_rate: float) -> float:
    """GB/s through the cables that join the two halves of the first, longest, dimension."""
    t = topology.torus(_lengths(dims))
    half = t.pod[t.edges] < (t.pod.max() + 1) // 2
    return int(t.multiplicity[half[:, 0] != half[:, 1]].sum()) * link_rate / units.GB


def hpn_leaf_capacity(segments: int, backup: int) -> tuple[float, float]:
    """Down and up [Tbit/s], with ports for backup hosts; the sum fills a switch of 51.2 Tbit/s."""
    t = topology.hpn7(segments)
    leaves = of.count(t, "leaf")
    down, up = (
        of.capacity(t, *ends) / leaves for ends in (("gpu", "leaf"), ("leaf", "aggregation"))
    )
    card = float(t.capacity[of.between(t, "gpu", "leaf")].max())
    return (down + backup * card) / (1000 * units.GBIT), up / (1000 * units.GBIT)


def hpn_core_oversubscription(segments: int, switch: float) -> tuple[float, int]:
    """Capacity of an aggregation switch towards leaves, over what the chip has left for cores."""
    t = topology.hpn7(segments)
    down = of.capacity(t, "leaf", "aggregation") / of.count(t, "aggregation")
    return down / (switch - down), 1


def jellyfish_longest_matching_of_some(n: int, r: int, fraction: float) -> float:
    """Mean over a few graphs, the more the fewer switches take part; one server at every switch."""
    rng, graphs = np.random.default_rng(1), max(1, round(0.8 / fraction))
    found = [
        metrics.concurrent_flow(
            topology.jellyfish(n, r + 1, r, rng), "longest_matching", share=fraction, rng=rng
        )
        for _ in range(graphs)
    ]
    return float(np.mean([float(each) for each in found]))


def helios_bill(
    fact: Fact, pods: int, hosts_per_pod: int, electrical: float, optical: float
) -> float:
    """Cost [USD], power [kW] or cables of the core, at the study's unit prices."""
    bill = topology.bill_of_materials(
        "helios", pods=pods, hosts_per_pod=hosts_per_pod, electrical=electrical, optical=optical
    )
    kind = fact.quantity.partition(",")[0].split()[0]
    return {"cost": bill.cost, "power": bill.power / 1e3, "cables": bill.cables}[kind]


ROWS: Final[Rows] = {
    **{
        f"TOPO-* | {quantity} | {system}": _claim(measure)
        for system, quantities in _MEASURES.items()
        for quantity, measure in quantities.items()
    },
    "TOPO-* | servers | dcell": dcell_servers,
    "TOPO-* | servers ?-D | mdcube": mdcube_servers,
    "TOPO-* | link rate; bisection per direction | torus*": torus_bisection_bandwidth,
    "TOPO-139 | * | Alibaba HPN7": hpn_leaf_capacity,
    "TOPO-140 | * | Alibaba HPN7": hpn_core_oversubscription,
    "TOPO-17? | throughput* | jellyfish*": (
        jellyfish_longest_matching_of_some,
        {
            "TOPO-176": "Single random graphs lie 3.5 % to 7.3 % above; the graph of the file is "
            "not known."
        },
    ),
    "TOPO-* | *electrical* | helios": helios_bill,
}
