"""Fewest cables between two halves of the hosts, the switches being free to stand on either side.

Letters of the papers: ``N`` hosts, ``L`` Laplacian matrix, ``B`` bisection.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np

from relparallel._checks import require_choice
from relparallel.metrics._bisection_bounds import DENSE, modes, second_eigenvalue, up_down_bound
from relparallel.metrics._bisection_search import refine
from relparallel.metrics._network import require_hosts
from relparallel.metrics.estimate import Estimate, exactly
from relparallel.metrics.link_load import ecmp_load
from relparallel.topology import Topology, orbits
from relparallel.topology._arrays import BoolArray, IntArray, parts
from relparallel.topology.conformance import as_built

if TYPE_CHECKING:
    import networkx as nx

Method = Literal["auto", "exact", "bracket"]

_SMALL: Final = 48  # hosts and, times six, nodes and joined pairs: the integer program takes about a second
_BRANCHES: Final = 2000  # nodes of the search tree before "auto" gives up
_VISITS: Final = 3 * 10**8  # arcs that the routing may look at
_SLACK: Final = 1e-6  # relative rounding error that a bound may carry, far below the step of one cable


def bisection(topology: Topology | nx.Graph[Any], *, method: Method = "auto") -> Estimate:
    """Fewest cables between two halves of the hosts.

    Parameters
    ----------
    topology : Topology or networkx.Graph
        Of a graph every node is a host. Parallel cables count singly. Halves of an odd number of hosts
        differ by one; switches stand where it is cheapest.
    method : {"auto", "exact", "bracket"}, optional
        "auto" takes the closed form of the design where one is known, the network is still wired so and no
        halving beats it, then the integer program where the network is small, else the bracket. "exact"
        solves the integer program whatever its size, which may take very long; "bracket" never does.

    Returns
    -------
    Estimate
        In cables. Not exact: ``value`` and ``upper`` belong to a halving that was constructed, ``lower`` is
        proved.

    Notes
    -----
    Lower bounds: N/4 times the second smallest eigenvalue of L with the switches eliminated (Schur
    complement; in large networks by the Lanczos method, less the residual); ceil(N/2) floor(N/2) over the
    load of the busiest cable when every ordered pair of hosts sends one unit over its shortest paths; and, in
    trees, floor(N/2) over that load when every host sends one unit to all top switches alike. Upper bound:
    moves after Fiduccia and Mattheyses from several starts. Integer program: one variable per node and joined
    pair, hosts 0 or 1, at least the lower bound and less than the upper.

    References
    ----------
    Fiduccia, Mattheyses, "A linear-time heuristic for improving network partitions", DAC 1982; Mohar, "The
    Laplacian spectrum of graphs", 1991; Leighton, Rao, "Multicommodity max-flow min-cut theorems", 1999.

    Examples
    --------
    >>> from relparallel.topology import dcell, fat_tree
    >>> bisection(fat_tree(k=48)), bisection(dcell(n=4, k=1))
    (Estimate(13824, exact, closed form), Estimate(6, exact, integer program))
    """
    t = require_hosts(topology)
    require_choice(("auto", "exact", "bracket"), method=method)
    upper = _upper(t)
    lower = _lower(t, upper)
    form = as_built(t) if method == "auto" else None
    if form is not None and form.bisection is not None and lower <= form.bisection <= upper:
        return exactly(form.bisection, "closed form")
    if lower == upper:
        return exactly(upper, "bound met by a halving")
    small = t.num_hosts <= _SMALL and t.num_nodes + len(t.edges) <= 6 * _SMALL
    if method == "exact" or (method == "auto" and small):
        lower, upper = _solved(t, lower, upper, None if method == "exact" else _BRANCHES)
    if lower == upper:
        return exactly(upper, "integer program")
    return Estimate(value=upper, lower=lower, upper=upper, method="bounds and local search", exact=False)


def _lower(t: Topology, upper: int) -> int:
    """Largest of the proved bounds, rounded up to a whole cable."""
    routed = _routed(t)
    cheap = t.num_nodes <= DENSE or not t.transit[t.hosts].any()
    half, n = t.num_hosts // 2, t.num_hosts
    spectral = second_eigenvalue(t) * half * (n - half) / n if cheap or routed < upper / 2 else 0.0
    joined = np.unique(parts(t.edges, t.num_nodes)[t.hosts]).size == 1  # a cable lies between any two halves
    return math.ceil(max(float(joined), up_down_bound(t), routed, spectral) * (1 - _SLACK) - _SLACK)


def _routed(t: Topology) -> float:
    """Bound of a routing: all that one half sends to the other passes through the cables between them."""
    if _sources(t) * t.indices.size > _VISITS:
        return 0.0
    found = ecmp_load(t)
    if found.unreachable:
        return 0.0
    half = t.num_hosts // 2
    return half * (t.num_hosts - half) / float((found.flow / t.multiplicity[:, None]).max())


def _sources(t: Topology) -> int:
    """From how many hosts the load is found: one of every orbit, or of all that hang on one switch."""
    alike = np.unique(orbits(t)[t.hosts]).size
    if t.transit[t.hosts].any() or np.any(np.diff(t.indptr)[t.hosts] != 1):
        return alike
    return min(alike, np.unique(t.indices[t.indptr[t.hosts]]).size)


def _upper(t: Topology) -> int:
    """Cables between the halves of the best halving found."""
    n, (u, v) = t.num_nodes, t.edges.T
    cables = np.tile(t.multiplicity, 2)[np.argsort(np.concatenate([u * n + v, v * n + u]))]
    passes = 20 if len(t.edges) < 10**5 else 4
    halvings = (_placed(t, order) for order in _orders(t))
    return min(int(refine(t.indptr, t.indices, cables, t.endpoint, side, passes)) for side in halvings)


def _orders(t: Topology) -> Iterator[IntArray]:
    """Orders of the hosts whose first half is worth trying: numbered, boxes, spectral, by distance."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import breadth_first_order

    yield t.hosts
    yield from (t.hosts[order] for order in _boxes(_shape(t), t.num_hosts))
    if t.num_nodes <= DENSE:
        for mode in modes(t)[1].T[1:4]:
            yield t.hosts[np.argsort(mode, kind="stable")]
    if not len(t.edges):
        return
    graph = csr_array((np.ones(t.indices.size, dtype=np.int8), t.indices, t.indptr), shape=(t.num_nodes,) * 2)
    starts = int(np.clip(10**5 // len(t.edges), 1, 12))
    for start in t.hosts[np.linspace(0, t.num_hosts - 1, starts).astype(np.int64)]:
        found = breadth_first_order(graph, start, return_predecessors=False).astype(np.int64)
        near = found[t.endpoint[found]]
        yield np.concatenate([near, np.setdiff1d(t.hosts, near)])


def _boxes(shape: tuple[int, ...], hosts: int) -> Iterator[IntArray]:
    """Orders that fill a box of equal shares of all lengths, and one whose sides but the first are whole."""
    if math.prod(shape) == hosts and len(shape) > 1:
        place = np.array(np.unravel_index(np.arange(hosts), shape)) + 1
        sides = np.ceil(np.array(shape) * 0.5 ** (1 / len(shape)))
        sides[0] = hosts / 2 / sides[1:].prod()
        for box in (np.array(shape), sides):
            yield np.lexsort([*place, np.max(place / box[:, None], axis=0)])


def _shape(t: Topology) -> tuple[int, ...]:
    """Lengths of the array in which the hosts of a design are numbered, where its lines meet at switches."""
    own = t.meta.parameters
    if t.meta.name == "bcube":
        return (int(own["n"]),) * (int(own["k"]) + 1)
    rails = {"dgx_superpod": 8, "hpn7": 8, "nvl72": 72, "rail_only": int(own.get("gpus_per_domain", 8))}
    return (t.num_hosts // rails.get(t.meta.name, 1), rails.get(t.meta.name, 1))


def _placed(t: Topology, order: IntArray) -> BoolArray:
    """Sides of all nodes: the first half of the hosts on one, every switch with most of what it joins."""
    from scipy.sparse import csr_array

    position = np.zeros(t.num_nodes)
    position[order] = np.where(np.arange(order.size) < order.size // 2, 1.0, -1.0)
    degree = np.maximum(np.diff(t.indptr), 1)
    ones = np.ones(t.indices.size)
    joined = csr_array((ones, t.indices, t.indptr), shape=(t.num_nodes,) * 2)
    for _ in range(8):
        position = np.where(t.endpoint, position, (joined @ position) / degree)
    return position < 0


def _solved(t: Topology, lower: int, upper: int, branches: int | None) -> tuple[int, int]:
    """Better bounds by the integer program, which looks for a halving below the upper bound."""
    from scipy.optimize import Bounds, LinearConstraint, milp
    from scipy.sparse import coo_array

    n, m, (u, v) = t.num_nodes, len(t.edges), t.edges.T
    e, ones, half = np.arange(m), np.ones(m), t.num_hosts // 2
    host, cut = t.endpoint.astype(np.float64), np.concatenate([np.zeros(n), t.multiplicity])
    apart = [(e, n + e, ones), (e, u, -ones), (e, v, ones)]  # cut >= x_u - x_v
    others = [(m + e, n + e, ones), (m + e, u, ones), (m + e, v, -ones)]
    rows, columns, entries = (np.concatenate(part) for part in zip(*apart, *others, strict=True))
    matrix = coo_array((entries, (rows, columns)), shape=(2 * m, n + m)).tocsr()
    highest = np.ones(n + m)
    if t.num_hosts % 2 == 0:
        highest[t.hosts[0]] = 0.0  # the halves may be exchanged
    found = milp(
        cut,
        integrality=np.concatenate([host, np.zeros(m)]),
        bounds=Bounds(np.zeros(n + m), highest),
        constraints=[
            LinearConstraint(matrix, 0.0, np.inf),
            LinearConstraint(np.concatenate([host, np.zeros(m)])[None], half, half),
            LinearConstraint(cut[None], lower, upper - 1),
        ],
        options={} if branches is None else {"node_limit": branches},
    )
    if found.status == 2:  # no halving below the upper bound
        return upper, upper
    bound = found.mip_dual_bound
    proved = lower if bound is None or not np.isfinite(bound) else max(lower, math.ceil(bound - 1e-5))
    best = upper if found.x is None else round(found.fun)
    return min(proved, best), best
