"""Two routes that no shared risk can break together, or that share as little risk as possible."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

import networkx as nx
import numpy as np
from numpy.typing import NDArray
from scipy.sparse import block_array, csr_array, eye_array, hstack, kron, vstack

from relparallel._checks import require_number
from relparallel.optimize._milp import least, picking
from relparallel.optimize.network_design import LinkCost, edge_numbers
from relparallel.topology import Topology, as_topology

Groups = Mapping[Any, Sequence[tuple[Hashable, Hashable]]]
FORMULATION: Final = """first minimise  sum_g r_g w_g, then  sum_e c_e (x_e1 + x_e2) without raising it
subject to  x_j is one unit of flow from the source to the target, j = 1, 2
            z_gj >= x_ej            for every link e of risk group g, in either direction
            w_g >= z_g1 + z_g2 - 1  for every group; every link is a group of its own
            x, z, w in {{0, 1}}       ({groups} groups, {links} links)"""


class RoutePair(NamedTuple):
    """Two routes with the least shared risk, and among these the shortest."""

    routes: tuple[tuple[Any, ...], tuple[Any, ...]]  # labels of the nodes along each
    shared: tuple[Any, ...]  # what breaks both: names of groups, pairs of labels for single links
    risk: float  # sum of theirs
    cost: float  # of both routes
    formulation: str  # the programme that was solved

    @property
    def disjoint(self) -> bool:
        """Whether no group breaks both."""
        return not self.shared


def disjoint_routes(
    network: Topology | nx.Graph[Any],
    source: Hashable,
    target: Hashable,
    groups: Groups | None = None,
    *,
    cost: LinkCost = 1.0,
    risk: Mapping[Any, float] | None = None,
    link_risk: float = 1.0,
) -> RoutePair:
    """Two routes that one failure breaks as little of as possible, and of such routes the shortest.

    ``groups`` are links that one event (a cut duct, a lost feed) takes together, by name; ``risk``
    is the probability or weight of each, 1 where left out, and ``link_risk`` that of every single
    link; ``cost`` the length of every link (an attribute, numbers in the order of the links, or by
    pair). Parallel cables are one link.

    Two link-disjoint routes are a flow problem; with groups of links the question is NP-hard, and a
    mixed-integer programme answers it. A link that both routes use counts itself and all its
    groups. Hu, "Diverse routing in optical mesh networks", IEEE Transactions on Communications 51,
    2003.

    >>> import networkx as nx
    >>> ladder = nx.ladder_graph(3)  # 0-1-2 above 3-4-5
    >>> pair = disjoint_routes(ladder, 0, 5, {"duct": [(0, 1), (3, 4)]}, link_risk=2.0)
    >>> pair.shared, pair.risk
    (('duct',), 1.0)
    """
    topology = as_topology(network, name="network")
    ends = (topology.index_of(source), topology.index_of(target))
    lengths = edge_numbers("cost", cost, topology, network)
    names, member, weights = _groups(topology, groups, risk, link_risk)
    values = _solve(topology, ends, lengths, member, weights)
    m, g = len(topology.edges), len(names)
    flows = values[: 4 * m].reshape(2, 2 * m)
    both = values[4 * m : 4 * m + 2 * g].reshape(2, g).all(axis=0)
    routes = [_walk(topology, flow, *ends) for flow in flows]
    first, second = sorted(routes, key=lambda route: (len(route), repr(route)))
    return RoutePair(
        routes=(first, second),
        shared=tuple(names[i] for i in np.flatnonzero(both)),
        risk=float(weights[both].sum()),
        cost=float(flows.sum(axis=0) @ np.tile(lengths, 2)),
        formulation=FORMULATION.format(groups=g, links=m),
    )


def _groups(
    topology: Topology, groups: Any, risk: Any, link_risk: Any
) -> tuple[list[Any], csr_array, NDArray[np.float64]]:
    """Name, links [groups, m] and weight of every group, those of single links last."""
    given, known, single = groups or {}, risk or {}, require_number(link_risk=link_risk, at_least=0)
    if not set(known) <= set(given):
        raise ValueError(f"risk must name groups ({', '.join(map(str, given))}), got {list(known)}")
    row = {frozenset(pair): i for i, pair in enumerate(topology.edges.tolist())}
    links = [
        (number, row[frozenset(topology.index_of(end) for end in pair)])
        for number, pairs in enumerate(given.values())
        for pair in pairs
    ]
    m = len(row)
    pairs = np.array(links, dtype=np.int64).reshape(-1, 2)
    member = csr_array((np.ones(len(pairs)), (pairs[:, 0], pairs[:, 1])), shape=(len(given), m))
    weights = [require_number(risk=known.get(name, 1.0), at_least=0) for name in given]
    names = [
        *given,
        *((topology.labels[u], topology.labels[v]) for u, v in topology.edges.tolist()),
    ]
    return names, csr_array(vstack([member, eye_array(m)])), np.array([*weights, *[single] * m])


def _solve(
    topology: Topology,
    ends: tuple[int, int],
    lengths: NDArray[np.float64],
    member: csr_array,
    weights: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Flows of both routes by arc, groups of both, shared groups: least risk, then least cost."""
    m, g = len(topology.edges), len(weights)
    rows, lower, upper = _pairs_of_routes(topology, ends, member)
    before = np.zeros(4 * m + 2 * g)  # flows and groups of one route bear no risk
    # A trace of cost keeps groups that nothing uses at zero.
    trace = np.full(2 * g, 1e-6 * (lengths.max(initial=0.0) or 1.0) / max(g, 1))

    def cheapest(
        cost: NDArray[np.float64], risks: NDArray[np.float64], most: float, finer: float
    ) -> Any:
        """Least cost sharing only groups with their weight in ``risks``, ``most`` of it at most."""
        bars = csr_array(
            np.array([np.r_[before, weights > risks], np.r_[before, risks / (most or 1.0)]])
        )
        low, high = np.r_[lower, -np.inf, -np.inf], np.r_[upper, 0.0, 1 + 1e-9]
        return least(cost, vstack([rows, bars]), low, high, finer=finer)[0]

    risks = weights
    while True:  # risks far below the largest come out in a programme of their own
        first = cheapest(np.r_[before, risks], risks, np.inf, 1.0) if m else None
        if first is None:
            raise ValueError(
                f"target must be reachable from the source, got {topology.labels[ends[1]]!r}"
            )
        most, largest = float(weights @ first[-g:]), risks.max()
        risks = np.where(weights <= most, weights, 0.0)
        if not 0 < most < 1e-6 * largest:
            break
    best = cheapest(np.r_[np.tile(lengths, 4), trace, np.zeros(g)], risks, most, 1e3)
    return np.asarray(first if best is None else best)


def _pairs_of_routes(
    topology: Topology, ends: tuple[int, ...], member: csr_array
) -> tuple[Any, Any, Any]:
    """Rows and their bounds: two flows of one unit, the groups each touches, and those of both."""
    n, m, g = topology.num_nodes, len(topology.edges), member.shape[0]
    arcs = np.concatenate([topology.edges, topology.edges[:, ::-1]])
    turn = np.arange(2 * m)
    balance = csr_array(
        (np.r_[np.ones(2 * m), -np.ones(2 * m)], (arcs.T.ravel(), np.r_[turn, turn])),
        shape=(n, 2 * m),
    )
    supply = np.zeros(n)
    supply[list(ends)] = 1.0, -1.0
    touch = member.tocoo()
    used, link, eye = picking(touch.row, g), picking(touch.col, m), eye_array(g)
    twice = partial(kron, eye_array(2))  # for both routes
    blocks: list[list[Any]] = [
        [twice(balance), None, None],
        [-twice(hstack([link, link])), twice(used), None],
        [None, -hstack([eye, eye]), eye],
    ]
    lower = np.r_[supply, supply, np.zeros(2 * touch.nnz), -np.ones(g)]
    upper = np.r_[supply, supply, np.full(2 * touch.nnz + g, np.inf)]
    return block_array(blocks), lower, upper


def _walk(topology: Topology, flow: NDArray[np.float64], start: int, stop: int) -> tuple[Any, ...]:
    """Labels along the arcs that carry the flow."""
    arcs = np.concatenate([topology.edges, topology.edges[:, ::-1]])[flow > 0.5]
    path = nx.shortest_path(nx.DiGraph(arcs.tolist()), start, stop)
    return tuple(topology.labels[v] for v in path)
