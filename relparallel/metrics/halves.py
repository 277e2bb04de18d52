"""Fewest cables between two halves of the hosts, the switches being free to stand on either side.

Letters of the papers: ``N`` hosts.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np
import scipy

from relparallel._checks import require_choice
from relparallel._notices import told
from relparallel.metrics._bisection_search import cheapest_halving
from relparallel.metrics._network import require_hosts
from relparallel.metrics.estimate import Estimate, exactly
from relparallel.metrics.link_load import ecmp_load
from relparallel.topology import Topology, orbits
from relparallel.topology._arrays import BoolArray, FloatArray, IntArray, levels, parts
from relparallel.topology.conformance import as_built

if TYPE_CHECKING:
    import networkx as nx

Method = Literal["auto", "exact", "bracket"]

# hosts and, times six, nodes and joined pairs: the integer program takes about a second
_SMALL: Final = 48
_BRANCHES: Final = 2000  # nodes of the search tree before "auto" gives up
_VISITS: Final = 10**9  # arcs that the routing may look at
# relative rounding error that a bound may carry, far below the step of one cable
_SLACK: Final = 1e-6


@told
def bisection(topology: Topology | nx.Graph[Any], *, method: Method = "auto") -> Estimate:
    """Fewest cables between two halves of the hosts.

    Parameters
    ----------
    topology : Topology or networkx.Graph
        Of a graph every node is a host. Parallel cables count singly. Halves of an odd number of
        hosts differ by one; switches stand where it is cheapest.
    method : {"auto", "exact", "bracket"}, optional
        "auto" takes the closed form of the design where one is known, the network is still wired so
        and no halving beats it, then the integer program where the network is small, else the
        bracket. "exact" solves the integer program whatever its size, which may take very long;
        "bracket" never does.

    Returns
    -------
    Estimate
        In cables. Not exact: ``value`` and ``upper`` belong to a halving that was constructed,
        ``lower`` is proved.

    Notes
    -----
    Lower bounds: ceil(N/2) floor(N/2) over the load of the busiest cable when every ordered pair of
    hosts sends one unit over its shortest paths; and, in trees, floor(N/2) over that load when
    every host sends one unit to all top switches alike. Upper bound: moves after Fiduccia and
    Mattheyses from several starts. Integer program: one variable per node and joined pair, hosts 0
    or 1, at least the lower bound and less than the upper.

    The second bound: every node splits what it has evenly over its cables towards the top. If each
    top switch gets the same share from every host, the smaller half A of the hosts can send one
    unit each to the other half B by way of the top: up as all hosts do, down the same way
    backwards. No cable then carries more than the busiest does with all hosts sending, L, in either
    direction, so that at least A/L cables lie between the halves. Hosts that meet at switches with
    no way up, such as those of NVLink, first spread what they send over all hosts there, and what
    they receive comes the same way: a host sends 2 units at most to these switches, and takes 2 at
    most.

    References
    ----------
    Fiduccia, Mattheyses, "A linear-time heuristic for improving network partitions", DAC 1982;
    Leighton, Rao, "Multicommodity max-flow min-cut theorems", 1999; Valiant, "A scheme for fast
    parallel communication", SIAM J. Computing 1982.

    Examples
    --------
    >>> from relparallel.topology import dcell, fat_tree
    >>> bisection(fat_tree(k=48)), bisection(dcell(n=4, k=1))
    (Estimate(13824, exact, closed form), Estimate(6, exact, integer program))
    """
    t = require_hosts(topology)
    require_choice(("auto", "exact", "bracket"), method=method)
    upper = cheapest_halving(t)
    lower = _lower(t)
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
    return Estimate(
        value=upper, lower=lower, upper=upper, method="bounds and local search", exact=False
    )


def _lower(t: Topology) -> int:
    """Largest of the proved bounds, rounded up to a whole cable."""
    # a cable lies between any two halves
    joined = np.unique(parts(t.edges, t.num_nodes)[t.hosts]).size == 1
    return math.ceil(max(float(joined), _up_down(t), _routed(t)) * (1 - _SLACK) - _SLACK)


def _routed(t: Topology) -> float:
    """Bound of a routing: all one half sends to the other goes through the cables between them."""
    if _sources(t) * t.indices.size > _VISITS:
        return 0.0
    found = ecmp_load(t)
    if found.unreachable:
        return 0.0
    half = t.num_hosts // 2
    return half * (t.num_hosts - half) / float((found.flow / t.multiplicity[:, None]).max())


def _sources(t: Topology) -> int:
    """From how many hosts load is found: one of every orbit, or of all that hang on one switch."""
    alike = np.unique(orbits(t)[t.hosts]).size
    if t.transit[t.hosts].any() or np.any(np.diff(t.indptr)[t.hosts] != 1):
        return alike
    return min(alike, np.unique(t.indices[t.indptr[t.hosts]]).size)


def _up_down(t: Topology) -> float:
    """Bound by traffic up to the top switches, 0 where hosts reach these in different shares."""
    tail, head = np.concatenate([t.edges, t.edges[:, ::-1]]).T
    level = levels(t.edges, t.endpoint)
    reaches, up = _upwards(tail, head, level)
    if level.max() == 0 or not reaches[t.hosts].all():
        return 0.0
    group, inner = _groups(t, reaches)
    cables = np.tile(t.multiplicity, 2)[up].astype(np.float64)
    tail, head = tail[up], head[up]
    number = np.bincount(tail, weights=cables, minlength=t.num_nodes)
    alike = np.array_equal(number[t.hosts], number[group[t.hosts]])
    if not alike or np.unique(_shares(group[tail], head, cables, level)[group[t.hosts]]).size > 1:
        return 0.0
    return (
        t.num_hosts
        // 2
        / max(inner, _busiest(t.endpoint.astype(np.float64), tail, head, cables, level))
    )


def _groups(t: Topology, reaches: BoolArray) -> tuple[IntArray, float]:
    """First host of the group in which each host spreads its traffic, and load of a cable there."""
    own, cables = np.arange(t.num_nodes), t.multiplicity.astype(np.float64)
    inside = t.endpoint[t.edges].any(axis=1) & ~reaches[t.edges].all(axis=1)
    if not inside.any():
        return own, 0.0
    ends, part = t.edges[inside].T, parts(t.edges[inside], t.num_nodes)
    hosts = np.bincount(part, weights=t.endpoint)
    switch = np.where(t.endpoint[ends[0]], ends[1], ends[0])
    met = np.bincount(switch, minlength=t.num_nodes)[switch]
    if np.unique(cables[inside]).size > 1 or not np.array_equal(met, hosts[part[switch]]):
        return own, 0.0  # not every host at every switch, by as many cables
    first = np.full(hosts.size, t.num_nodes)
    np.minimum.at(first, part[t.hosts], t.hosts)
    least = np.bincount(
        np.concatenate(ends), weights=np.tile(cables[inside], 2), minlength=t.num_nodes
    )[t.hosts]
    return np.where(t.endpoint, first[part], own), 2.0 / float(least[least > 0].min())


def _upwards(tail: IntArray, head: IntArray, level: IntArray) -> tuple[BoolArray, IntArray]:
    """Nodes from which a way leads up to the top level, and the arcs of these ways."""
    top = int(level.max())
    rising = np.flatnonzero((level[head] == level[tail] + 1) & (level[tail] >= 0))
    reaches = level == top
    for depth in range(top - 1, -1, -1):
        below = rising[level[tail[rising]] == depth]
        reaches[tail[below[reaches[head[below]]]]] = True
    return reaches, rising[reaches[head[rising]]]


def _shares(tail: IntArray, head: IntArray, cables: FloatArray, level: IntArray) -> IntArray:
    """Class of every node: all in one have cables to the same classes; at the top each is alone."""
    kind = np.where(level == level.max(), np.arange(level.size), -1)
    for depth in range(int(level.max()) - 1, -1, -1):
        arcs = np.flatnonzero(level[tail] == depth)
        arcs = arcs[np.lexsort((cables[arcs], kind[head[arcs]], tail[arcs]))]
        node, start = np.unique(tail[arcs], return_index=True)
        above = np.column_stack([kind[head[arcs]], cables[arcs].astype(np.int64)])
        known: dict[bytes, int] = {}
        for v, rows in zip(node.tolist(), np.split(above, start[1:]), strict=True):
            kind[v] = known.setdefault(rows.tobytes(), v)
    return kind


def _busiest(
    sent: FloatArray, tail: IntArray, head: IntArray, cables: FloatArray, level: IntArray
) -> float:
    """Load of the busiest cable when every host sends one unit up."""
    number = np.bincount(tail, weights=cables, minlength=sent.size)
    load = 0.0
    for depth in range(int(level.max())):
        arcs = np.flatnonzero(level[tail] == depth)
        each = sent[tail[arcs]] / number[tail[arcs]]
        load = max(load, float(each.max()))
        sent = sent + np.bincount(head[arcs], weights=each * cables[arcs], minlength=sent.size)
    return load


def _solved(t: Topology, lower: int, upper: int, branches: int | None) -> tuple[int, int]:
    """Better bounds by the integer program, which looks for a halving below the upper bound."""
    n, m, (u, v) = t.num_nodes, len(t.edges), t.edges.T
    e, ones, half = np.arange(m), np.ones(m), t.num_hosts // 2
    host, cut = t.endpoint.astype(np.float64), np.concatenate([np.zeros(n), t.multiplicity])
    apart = [(e, n + e, ones), (e, u, -ones), (e, v, ones)]  # cut >= x_u - x_v
    others = [(m + e, n + e, ones), (m + e, u, ones), (m + e, v, -ones)]
    rows, columns, entries = (np.concatenate(part) for part in zip(*apart, *others, strict=True))
    matrix = scipy.sparse.coo_array((entries, (rows, columns)), shape=(2 * m, n + m)).tocsr()
    highest = np.ones(n + m)
    if t.num_hosts % 2 == 0:
        highest[t.hosts[0]] = 0.0  # the halves may be exchanged
    found = scipy.optimize.milp(
        cut,
        integrality=np.concatenate([host, np.zeros(m)]),
        bounds=scipy.optimize.Bounds(np.zeros(n + m), highest),
        constraints=[
            scipy.optimize.LinearConstraint(matrix, 0.0, np.inf),
            scipy.optimize.LinearConstraint(np.concatenate([host, np.zeros(m)])[None], half, half),
            scipy.optimize.LinearConstraint(cut[None], lower, upper - 1),
        ],
        options={} if branches is None else {"node_limit": branches},
    )
    if found.status == 2:  # no halving below the upper bound
        return upper, upper
    bound = found.mip_dual_bound
    proved = (
        lower if bound is None or not np.isfinite(bound) else max(lower, math.ceil(bound - 1e-5))
    )
    best = upper if found.x is None else round(found.fun)
    return min(proved, best), best
