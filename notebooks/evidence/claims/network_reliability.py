"""Published network reliabilities: frontier DP, counts, closed forms, real networks, allocation."""

import re
from collections.abc import Callable
from typing import Any, Final

import networkx as nx
import numpy as np

from chapters import s12, s13
from evidence.claims._rows import derived
from evidence.claims.registry import Rows
from relparallel import reliability, topology
from relparallel.reliability.frontier.compiled_sweep import compile_sweep, run_sweep
from relparallel.reliability.frontier.link_orders import link_order

#: What a row calls its graph, ``name(sizes)``; nodes are numbered from 0, hosts first.
_BUILDERS: Final[dict[str, Callable[..., Any]]] = {
    "bcube": topology.bcube,
    "complete": nx.complete_graph,
    "complete_bipartite": nx.complete_bipartite_graph,
    "dcell": topology.dcell,
    "dodecahedral": nx.dodecahedral_graph,
    "fat_tree": topology.fat_tree,
    "grid": lambda *sides: nx.convert_node_labels_to_integers(nx.grid_graph(sides)),
    "hypercube": lambda n: nx.convert_node_labels_to_integers(nx.hypercube_graph(n)),
    "icosahedral": nx.icosahedral_graph,
    "petersen": nx.petersen_graph,
    "torus": lambda *sides: topology.torus(sides),
}
_TERMINALS: Final = {"all vertices": "nodes", "switches": "switches"}


def _graph(text: str) -> topology.Topology:
    """The graph that a row names."""
    name, sizes = text.removesuffix(")").split("(")
    return topology.as_topology(_BUILDERS[name](*map(int, re.findall(r"\d+", sizes))))


def _connected(
    graph: str, terminals: Any, link_up: float, **options: Any
) -> reliability.Reliability:
    return reliability.evaluate(
        _graph(graph), _TERMINALS.get(terminals, terminals), link_up, **options
    )


def apart(
    graph: str, link_up: float, terminals: str = "", source: int = 0, target: int = 0
) -> float:
    """Probability that some vertex is cut off, or that no path is left between two."""
    return _connected(graph, terminals or (source, target), link_up).unreliability


def _named(graph: str, edges: str, joined: str) -> tuple[Any, Any]:
    """The network of a row, ``graph`` or links such as ``a-b b-c``, and the nodes to be joined."""
    if edges:
        network: Any = nx.parse_edgelist(edges.split(), delimiter="-")
        return network, "nodes" if joined == "all" else tuple(joined.split())
    network = _graph(graph).to_networkx()
    if joined == "farthest":
        apart_by = dict(nx.single_source_shortest_path_length(network, 0))
        return network, (0, max(apart_by, key=lambda node: apart_by[node]))
    return network, "nodes" if joined == "all" else tuple(map(int, joined.split()))


def joined_reliability(
    joined: str, graph: str = "", edges: str = "", link_up: float = 1.0, link_up_each: str = ""
) -> float:
    """Probability that the nodes of a row are connected."""
    network, terminals = _named(graph, edges, joined)
    for *_, link in network.edges(data=True):
        link["up"] = link_up
    for name, up in zip(edges.split(), link_up_each.split(), strict=False):
        one, other = name.split("-")
        network.edges[one, other]["up"] = float(up)
    return reliability.evaluate(network, terminals, "up").reliability


def connecting_sets(joined: str, graph: str = "", edges: str = "") -> tuple[int, ...]:
    """Sets of links that connect the nodes of a row, by their number."""
    return s13.polynomial(*_named(graph, edges, joined))


def signature(edges: str, kinds: str, joined: str) -> tuple[int, ...]:
    """Connecting sets by the number of working links of each kind, the last kind first to change."""
    network, terminals = _named("", edges, joined)
    links = [tuple(link.split("-")) for link in edges.split()]
    classes = dict(zip(links, kinds.split(), strict=True))
    return tuple(s13.survival_signature(network, classes, terminals).counts.ravel().tolist())


def connecting_subsets(
    graph: str, m: int, terminals: str = "", source: int = 0, target: int = 0
) -> int:
    """Sum of the polynomial's coefficients, as integers; links that matter to none double it."""
    asked: Any = _TERMINALS.get(terminals, terminals) or (source, target)
    ways = s13.polynomial(_graph(graph), asked)
    return sum(ways) >> (len(ways) - 1 - m)


def connecting_subsets_by_size(graph: str, terminals: str) -> tuple[int, ...]:
    """Coefficients of the reliability polynomial; for a fabric's switches without host links."""
    network = _graph(graph).to_networkx()
    if terminals == "switches":
        network = network.subgraph(v for v, kind in network.nodes(data="endpoint") if not kind)
    return s13.polynomial(network, "nodes")


def real_network(network: str, n: int, m: int, link_up: float) -> float:
    """All-terminal reliability of a network of the Topology Zoo, derived from its file."""
    table = derived("topology_zoo").set_index("network")
    row = table.loc[network]
    if (row["nodes"], row["links"], row["link_up"]) != (n, m, link_up):
        raise ValueError(f"network must have {n} nodes and {m} links, got {row.to_dict()}")
    return float(str(row["reliability"]))


def pair_apart_any_path(
    k: int, core_up: float, aggregation_up: float, core_link_up: float, edge_link_up: float
) -> float:
    """Probability that two edge switches in different pods have no path at all, by frontier DP."""
    fabric = topology.fat_tree(k)
    first = int(np.flatnonzero(fabric.is_kind("edge"))[0])
    chances = _fat_tree_chances(fabric, core_up, aggregation_up, core_link_up, edge_link_up)
    return reliability.evaluate(
        fabric, (first, first + k // 2), method="exact", **chances
    ).unreliability


def _fat_tree_chances(
    fabric: topology.Topology,
    core_up: float,
    aggregation_up: float,
    core_link_up: float,
    edge_link_up: float,
) -> dict[str, Any]:
    """Arrays for `evaluate`; links of hosts are perfect."""
    core, aggregation = fabric.is_kind("core"), fabric.is_kind("aggregation")
    upper, lower = core[fabric.edges].any(axis=1), fabric.is_kind("edge")[fabric.edges].any(axis=1)
    lower &= aggregation[fabric.edges].any(axis=1)
    return {
        "link_up": np.where(upper, core_link_up, np.where(lower, edge_link_up, 1.0)),
        "node_up": np.where(core, core_up, np.where(aggregation, aggregation_up, 1.0)),
    }


def set_partitions(n: int) -> int:
    """Largest layer on a complete graph of n + 1 vertices, swept from its end: all partitions."""
    edges = np.array(nx.complete_graph(n + 1).edges, dtype=np.int64)
    edges = edges[link_order(np.arange(n + 1), edges)][::-1]
    half, certain = np.full((len(edges), 2), 0.5), np.tile([1.0, 0.0], (n + 1, 1))
    programme = compile_sweep(edges, half, certain, np.ones(n + 1, dtype=bool))
    return run_sweep(programme, max_states=10**6).peak


ROWS: Final[Rows] = {
    # What others print: papers through the code that quotes them, exhaustive searches, tables.
    "NRP-* | reliability*": joined_reliability,
    "NRP-shah-*": connecting_sets,
    "NRP-coolen-signature": signature,
    "NRP-oeis-*": lambda graph, joined: sum(connecting_sets(joined, graph)),
    "NR-*-two-poly": lambda graph, source, target: s13.polynomial(_graph(graph), (source, target)),
    "NR-U-*": lambda graph, terminals, link_down: (
        _connected(graph, terminals, 1.0, link_down=link_down).unreliability
    ),
    # Whole fabrics by closed forms: pods parted by switches, a pair of edge switches, leaves cut
    # off.
    "NR-ftsw-*": lambda k, core_up, aggregation_up: (
        reliability.fat_tree_pods_connected(k, core_up, aggregation_up).unreliability
    ),
    "NR-ftpair-* | *up-down*": lambda k, core_up, aggregation_up, core_link_up, edge_link_up: (
        reliability.fat_tree_pair(
            k, core_up, aggregation_up, 1.0, core_link_up, edge_link_up
        ).unreliability
    ),
    "NR-mob-*": lambda fact, k, core_up, aggregation_up, core_link_down: getattr(
        reliability.fat_tree_pods_connected(k, core_up, aggregation_up, 1.0 - core_link_down),
        "unreliability" if "not all" in fact.quantity else "reliability",
    ),
    "NR-ls-16x8": lambda leaves, spines, spine_up, link_down: (
        reliability.leaf_spine_leaves_connected(
            leaves, spines, spine_up, 1.0 - link_down
        ).unreliability
    ),
    "NR-rap-*": lambda components, cost_limit, weight_limit: (
        s12.redundancy_allocation(
            s12.component_table(components), cost_limit, weight_limit
        ).reliability
    ),
    "NR-*-all-p* NR-*-two-p* | *-terminal unreliability*": apart,
    "NR-*-all-count NR-*-two-count": connecting_subsets,
    "NR-*-all-poly": connecting_subsets_by_size,
    "NR-zoo-*": real_network,
    "NR-ftpair-anypath": pair_apart_any_path,
    "NR-bell9": set_partitions,
}
