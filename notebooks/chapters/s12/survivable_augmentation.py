"""The cheapest links that make a network survive any k - 1 failures of links, or of nodes.

G is what is there, E are candidate links with prices c_e, delta(S) links with one end in a set S of
nodes.
"""

from __future__ import annotations

from typing import Any, Final

import networkx as nx
import numpy as np
from numpy.typing import NDArray

from relparallel._checks import require_choice
from relparallel.optimize._milp import least
from relparallel.optimize.network_design import LinkCost, NetworkDesign, edge_numbers
from relparallel.topology import as_topology
from relparallel.topology.routing import maximum_flow

UNIT: Final = 2**20  # of a flow: fractions of links as integers
FORMULATIONS: Final = {
    "edge": """minimise    sum_e c_e x_e
subject to  sum_(e in delta(S)) x_e >= {k} - |delta_G(S)|   for every set S of nodes, neither empty nor all
            x_e in {{0, 1}}                                ({links} links); {rows} inequalities needed""",
    "node": """minimise    sum_e c_e x_e
subject to  sum_(e in delta(S) in G - Z) x_e >= {k} - |Z| - |delta_(G - Z)(S)|
                for every set Z of fewer than {k} nodes and every set S of the others, neither empty nor all
            x_e in {{0, 1}}                                ({links} links); {rows} inequalities needed""",
}


def survivable_augmentation(
    network: nx.Graph[Any],
    candidates: nx.Graph[Any],
    connectivity: int = 2,
    kind: str = "edge",
    *,
    cost: LinkCost = "cost",
) -> NetworkDesign:
    """Cheapest links so that no k - 1 link ("edge") or node ("node") failures part the network.

    What is in ``network`` costs nothing, and parallel edges count each; ``candidates`` can be
    added, parallel edges as one, at a ``cost`` by attribute, in their order, or by pair of labels.
    The nodes of either graph are connected.

    Cutting planes: maximum flows from one terminal (k of them for nodes) to every other find the
    cuts that the relaxation breaks, first over fractions of links, then over whole ones. By
    Menger's theorem the inequalities of all cuts are what k disjoint paths between every two nodes
    ask for; a node that is split in two with a link of capacity 1 between makes a cut of nodes a
    cut of links. Grötschel, Monma and Stoer, "Design of survivable networks", Handbooks in OR and
    MS 7, 1995. Menger 1927.

    >>> import networkx as nx
    >>> path, closing = nx.path_graph(4), nx.Graph()
    >>> closing.add_weighted_edges_from([(0, 3, 5.0), (0, 2, 2.0), (1, 3, 2.0)], weight="cost")
    >>> design = survivable_augmentation(path, closing)
    >>> design.links, design.cost
    (((0, 2), (3, 1)), 4.0)
    """
    wanted = connectivity
    require_choice(tuple(FORMULATIONS), kind=kind)
    given, offered = (
        as_topology(network, name="network"),
        as_topology(candidates, name="candidates"),
    )
    prices = edge_numbers("cost", cost, offered, candidates)
    index = {label: i for i, label in enumerate(dict.fromkeys([*given.labels, *offered.labels]))}
    if len(index) < 2 or (kind == "node" and len(index) <= wanted):  # parallel links may be many
        raise ValueError(
            f"connectivity must be below the number of nodes {len(index)}, got {wanted}"
        )
    there = np.repeat(given.edges, given.multiplicity, axis=0)
    pairs = [(given, pair) for pair in there.tolist()] + [
        (offered, pair) for pair in offered.edges.tolist()
    ]
    ends = [[index[t.labels[v]] for v in pair] for t, pair in pairs]
    edges = np.array(ends, dtype=np.int64).reshape(-1, 2)
    free = np.arange(len(edges)) >= len(there)
    x, rows = _cutting_planes(len(index), edges, free, prices, wanted, kind)
    labels = list(index)
    total = float(prices @ x)
    return NetworkDesign(
        links=tuple((labels[u], labels[v]) for u, v in edges[free][x > 0.5].tolist()),
        cost=total,
        bound=total,
        connectivity=wanted,
        rows=rows,
        formulation=FORMULATIONS[kind].format(k=wanted, links=prices.size, rows=rows),
    )


def _cutting_planes(
    count: int,
    edges: NDArray[np.int64],
    free: NDArray[np.bool_],
    prices: NDArray[np.float64],
    wanted: int,
    kind: str,
) -> tuple[NDArray[np.float64], int]:
    """Candidates that are bought, and the number of inequalities that it took."""
    if _broken(count, edges, np.ones(len(edges)), wanted, kind):
        raise ValueError(
            f"connectivity must be within reach of all candidates together, got {wanted}"
        )
    rows: dict[bytes, tuple[NDArray[np.float64], int]] = {}
    whole, x = False, np.zeros(prices.size)
    while True:
        amount = np.ones(len(edges))
        amount[free] = x
        found = _broken(count, edges, amount, wanted, kind)
        for crossing, need in found:
            row = np.where(crossing, 1.0, 0.0)
            rows[row.tobytes()] = (row[free], need - int(crossing[~free].sum()))
        if not found and (whole or not x.any()):
            return x, len(rows)
        whole = not found
        lower = np.array([need for _, need in rows.values()])
        solved, _ = least(prices, np.array([row for row, _ in rows.values()]), lower, whole=whole)
        if solved is None:
            raise RuntimeError(
                "the relaxation has no solution although all candidates together are one"
            )
        x = solved


def _broken(
    count: int, edges: NDArray[np.int64], amount: NDArray[np.float64], wanted: int, kind: str
) -> list[tuple[NDArray[np.bool_], int]]:
    """Links across cuts that hold too little, and how many have to cross them."""
    split = count if kind == "node" else 0
    inner = np.arange(split)  # node v enters at v and leaves at v + split
    tail = np.r_[edges[:, 0] + split, edges[:, 1] + split, inner]
    head = np.r_[edges[:, 1], edges[:, 0], inner + split]
    size = np.r_[amount, amount, np.ones(split)]
    found = {}
    for source in range(wanted if split else 1):
        for sink in range(count):
            if sink == source:
                continue
            flow = maximum_flow(
                tail, head, np.round(size * UNIT), count + split, source + split, sink
            )
            if flow.value < (wanted - 1e-4) * UNIT:
                reached = flow.near_side(source + split)
                crossing, need = _cut(edges, reached, split, wanted, source, sink)
                found[crossing.tobytes(), need] = (crossing, need)
    return list(found.values())


def _cut(
    edges: NDArray[np.int64],
    near: NDArray[np.bool_],
    split: int,
    wanted: int,
    source: int,
    sink: int,
) -> tuple[NDArray[np.bool_], int]:
    """Links from side to side that avoid the removed nodes; how many are wanted besides those."""
    if not split:
        return near[edges[:, 0]] != near[edges[:, 1]], wanted
    enters, leaves = near[:split].copy(), near[split:].copy()
    enters[source] = leaves[source] = True
    enters[sink] = leaves[sink] = False
    removed = enters & ~leaves
    across = enters[edges[:, 0]] != enters[edges[:, 1]]
    return across & ~removed[edges].any(axis=1), wanted - int(removed.sum())
