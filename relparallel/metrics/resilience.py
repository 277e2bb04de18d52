"""What failures leave of a network: whether all hosts, and how many pairs of hosts, still reach each other.

Two hosts are *joined* where a path of working cables and working, forwarding nodes connects them; a host that
fails is joined to none. All shares are of the hosts, or pairs of hosts, of the intact network.
"""

from __future__ import annotations

from concurrent.futures import Executor
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import ArrayLike

from relparallel._checks import (
    require_instance,
    require_int,
    require_real,
    require_rng,
)
from relparallel.metrics._network import require_hosts
from relparallel.metrics._reachability import all_joined
from relparallel.metrics.estimate import Estimate, binomial_estimate
from relparallel.sweep import chunk_sizes, map_chunks, spawn_streams
from relparallel.topology import Topology, sample_failures
from relparallel.topology._arrays import BoolArray, IntArray, flags

if TYPE_CHECKING:
    import networkx as nx
    from scipy.sparse import csr_array

_CHUNK: Final = (
    2**12
)  # scenarios per stream of random numbers: a constant, so answers do not depend on workers


@dataclass(frozen=True, kw_only=True, slots=True)
class Survival:
    """What one set of failures leaves.

    Parameters
    ----------
    pairs : float
        Share of the pairs of hosts that are joined.
    accessible : float
        Share of the hosts in the largest set that one connected part of the network joins.

    Examples
    --------
    >>> import networkx as nx
    >>> survival(nx.path_graph(4), np.array([True, False, True, True] + [True] * 3)).accessible
    0.5
    """

    pairs: float
    accessible: float


def survival(topology: Topology | nx.Graph[Any], alive: BoolArray) -> Survival:
    """Share of the pairs of hosts that failures leave joined, and of the hosts that stay accessible.

    Parameters
    ----------
    topology : Topology or networkx.Graph
        The intact network, with at least two hosts.
    alive : bool array [n + m]
        Which nodes, then which rows of ``edges``, work.

    Returns
    -------
    Survival
        Exact.

    Notes
    -----
    Connected parts of the forwarding nodes, then the parts that each host touches; hosts that touch the same
    parts are counted together. O(n + m) but for networks of many parts and hosts that touch several.

    Examples
    --------
    >>> import networkx as nx
    >>> survival(nx.path_graph(4), np.array([True] * 5 + [False, True])).pairs  # two pairs of six
    0.3333333333333333
    """
    t = require_hosts(topology)
    nodes, pairs = np.split(
        flags("alive", alive, t.num_nodes + len(t.edges), "nodes, then edges"), [t.num_nodes]
    )
    edges = t.edges[pairs & nodes[t.edges].all(axis=1)]
    host, part = _touched(t, nodes, edges)
    joined = _joined_pairs(t, edges, host, part)
    largest = int(np.bincount(part).max()) if part.size else int(nodes[t.hosts].any())
    return Survival(pairs=joined / (t.num_hosts * (t.num_hosts - 1)), accessible=largest / t.num_hosts)


def hosts_connected(
    topology: Topology | nx.Graph[Any],
    samples: int,
    rng: np.random.Generator,
    *,
    link_down: ArrayLike = 0.0,
    node_down: ArrayLike = 0.0,
    shared_risk_down: ArrayLike = 0.0,
    confidence: float = 0.95,
    executor: Executor | None = None,
) -> Estimate:
    """Probability that every host works and reaches every other.

    Parameters
    ----------
    topology : Topology or networkx.Graph
        With at least two hosts.
    samples : int
        Scenarios drawn, at least 1.
    rng : numpy.random.Generator
        Source of the random numbers.
    link_down, node_down, shared_risk_down : float or float array, optional
        Probabilities of failure as in `sample_failures`.
    confidence : float, optional
        Of the interval, between 0 and 1.
    executor : concurrent.futures.Executor, optional
        Runs chunks of samples at the same time; the answer does not depend on it.

    Returns
    -------
    Estimate
        Share of the samples; lower and upper are the interval of Clopper and Pearson.

    Notes
    -----
    Reachability of 512 scenarios spreads along the cables at once with `and` and `or`. One host speaks for
    all if it forwards or has one neighbour; else the search is repeated from every host but one.

    Examples
    --------
    >>> import networkx as nx
    >>> rng = np.random.default_rng(1)
    >>> found = hosts_connected(nx.cycle_graph(5), 10_000, rng, link_down=0.1)
    >>> found.lower < 0.9**5 + 5 * 0.1 * 0.9**4 < found.upper  # at most one cable of the ring is down
    True
    """
    t = require_hosts(topology)
    require_int(samples=samples, at_least=1, at_most=10**12)
    require_real(confidence=confidence, above=0, below=1)
    require_instance((Executor, type(None)), executor=executor)
    sizes = chunk_sizes(samples, _CHUNK)
    chunks = zip(sizes, spawn_streams(require_rng(rng=rng), len(sizes)), strict=True)
    chances = {"link_down": link_down, "node_down": node_down, "shared_risk_down": shared_risk_down}
    joined = sum(map_chunks(partial(_count_joined, t, chances), chunks, executor))
    return binomial_estimate(joined, samples, confidence)


def _touched(t: Topology, nodes: BoolArray, edges: IntArray) -> tuple[IntArray, IntArray]:
    """Working hosts and the connected parts of forwarding nodes that they touch, each couple once."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    n, forwards = t.num_nodes, t.transit & nodes
    both = edges[forwards[edges].all(axis=1)]
    graph = coo_array((np.ones(len(both), dtype=np.int8), (both[:, 0], both[:, 1])), shape=(n, n))
    part = connected_components(graph.tocsr(), directed=False)[1].astype(np.int64)
    inside = np.flatnonzero(forwards & t.endpoint)
    a, b = np.concatenate([edges, edges[:, ::-1]]).T
    reach = t.endpoint[a] & ~forwards[a] & forwards[b]
    couples = np.unique(np.concatenate([inside * n + part[inside], a[reach] * n + part[b[reach]]]))
    return np.divmod(couples, n)


def _joined_pairs(t: Topology, edges: IntArray, host: IntArray, part: IntArray) -> int:
    """Ordered pairs of different hosts that share a part, or a cable between two that do not forward."""
    from scipy.sparse import csr_array

    n = t.num_nodes
    incidence = csr_array((np.ones(host.size, dtype=np.int64), (host, part)), shape=(n, n))
    per_host = np.bincount(host, minlength=n)
    single = np.bincount(part[per_host[host] == 1], minlength=n)  # hosts that touch this part only
    several = np.flatnonzero(per_host > 1)
    total = int((single * (single - 1)).sum()) + _around(incidence[several], single)
    ends = edges[(t.endpoint & ~t.transit)[edges].all(axis=1)]
    apart = incidence[ends[:, 0]].multiply(incidence[ends[:, 1]]).sum(axis=1) == 0
    return total + 2 * int(np.count_nonzero(apart))


def _around(incidence: csr_array[Any, Any], single: IntArray) -> int:
    """Ordered pairs with a host that touches several parts; such hosts with equal parts count together."""
    from scipy.sparse import csr_array

    if incidence.shape[0] == 0:
        return 0
    kinds: dict[tuple[int, ...], int] = {}
    for row in np.split(incidence.indices, incidence.indptr[1:-1]):
        kind = tuple(np.sort(row).tolist())
        kinds[kind] = kinds.get(kind, 0) + 1
    sizes = np.array(list(kinds.values()), dtype=np.int64)
    rows = np.repeat(np.arange(sizes.size), [len(kind) for kind in kinds])
    columns = np.concatenate([np.array(kind, dtype=np.int64) for kind in kinds])
    touch = csr_array((np.ones(rows.size, dtype=np.int64), (rows, columns)), shape=(sizes.size, single.size))
    meet = (touch @ touch.T).astype(bool).astype(np.int64)
    return int(sizes @ (meet @ sizes) - sizes.sum() + 2 * (sizes @ (touch @ single)))


def _count_joined(t: Topology, chances: dict[str, ArrayLike], chunk: tuple[int, np.random.Generator]) -> int:
    """Sample one chunk and count the scenarios in which all hosts are joined."""
    size, rng = chunk
    drawn = sample_failures(t, size, rng, **chances)
    sources = _speakers(t)
    pair, order = _arc_pairs(t), _outwards(t, int(sources[0]))
    joined = all_joined(
        t.indptr, t.indices, pair, order, t.transit, t.hosts, sources, drawn.nodes, drawn.pairs
    )
    spare = np.uint64(2**64 - 1) >> np.uint64(-size % 64)
    joined[-1] &= spare
    return int(np.bitwise_count(joined).sum())


def _speakers(t: Topology) -> IntArray:
    """Hosts that together reach all hosts exactly when all hosts are joined: one if it can speak for all."""
    alone = t.transit[t.hosts] | (np.diff(t.indptr)[t.hosts] <= 1)
    if alone.any():
        return t.hosts[[int(np.argmax(alone))]]
    return t.hosts[:1] if t.num_hosts == 2 else t.hosts[:-1]


def _arc_pairs(t: Topology) -> IntArray:
    """Row of ``edges`` of every entry of ``indices``."""
    tail = np.repeat(np.arange(t.num_nodes), np.diff(t.indptr))
    low, high = np.minimum(tail, t.indices), np.maximum(tail, t.indices)
    return np.searchsorted(t.edges[:, 0] * t.num_nodes + t.edges[:, 1], low * t.num_nodes + high)


def _outwards(t: Topology, start: int) -> IntArray:
    """All nodes, the nearest to the start first."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import breadth_first_order

    ones = np.ones(t.indices.size, dtype=np.int8)
    graph = csr_array((ones, t.indices, t.indptr), shape=(t.num_nodes,) * 2)
    near = breadth_first_order(graph, start, return_predecessors=False).astype(np.int64)
    return np.concatenate([near, np.setdiff1d(np.arange(t.num_nodes), near)])
