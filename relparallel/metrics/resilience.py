"""What failures leave of a network: how many hosts, and how many pairs, still reach each other.

Two hosts are *joined* where a path of working cables and working, forwarding nodes connects them; a
host that fails is joined to none. All shares are of the hosts, or pairs of hosts, of the intact
network.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from relparallel.metrics._network import require_hosts
from relparallel.topology import Topology
from relparallel.topology._arrays import BoolArray, IntArray, flags, parts
from relparallel.topology.compiled import first_twins

if TYPE_CHECKING:
    import networkx as nx


class Survival(NamedTuple):
    """What one set of failures leaves."""

    pairs: float  #: share of the pairs of hosts that are joined
    # : share of the hosts in the largest set that one connected part of the network joins
    accessible: float


def survival(topology: Topology | nx.Graph[Any], alive: BoolArray) -> Survival:
    """Share of pairs of hosts that failures leave joined, and of the hosts that stay accessible.

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
    Connected parts of the forwarding nodes, then the parts that each host touches; hosts that touch
    the same parts are counted together. O(n + m) but for networks of many parts and hosts that
    touch several.

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
    return Survival(
        pairs=joined / (t.num_hosts * (t.num_hosts - 1)), accessible=largest / t.num_hosts
    )


def _touched(t: Topology, nodes: BoolArray, edges: IntArray) -> tuple[IntArray, IntArray]:
    """Working hosts and the connected parts of forwarding nodes they touch, each couple once."""
    n, forwards = t.num_nodes, t.transit & nodes
    part = parts(edges[forwards[edges].all(axis=1)], n)
    inside = np.flatnonzero(forwards & t.endpoint)
    a, b = np.concatenate([edges, edges[:, ::-1]]).T
    reach = t.endpoint[a] & ~forwards[a] & forwards[b]
    couples = np.unique(np.concatenate([inside * n + part[inside], a[reach] * n + part[b[reach]]]))
    return np.divmod(couples, n)


def _joined_pairs(t: Topology, edges: IntArray, host: IntArray, part: IntArray) -> int:
    """Ordered pairs of distinct hosts that share a part, or a cable if neither forwards."""
    from scipy.sparse import csr_array

    n = t.num_nodes
    touch = csr_array((np.ones(host.size, dtype=np.int64), (host, part)), shape=(n, n))
    starts, touched = touch.indptr.astype(np.int64), touch.indices.astype(np.int64)[:, None]
    some = np.diff(starts) > 0
    size = np.bincount(first_twins(starts, touched, t.transit, some)[some], minlength=n)
    each = touch[size > 0]
    size = size[size > 0]
    meet = (each @ each.T).astype(bool)
    total = np.dot(size, np.asarray(meet @ size)) - size.sum()
    ends = edges[(t.endpoint & ~t.transit)[edges].all(axis=1)]
    apart = touch[ends[:, 0]].multiply(touch[ends[:, 1]]).sum(axis=1) == 0
    return int(total) + 2 * int(np.count_nonzero(apart))
