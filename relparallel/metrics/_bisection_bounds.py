"""Lower bounds of the bisection: by the spectrum of the Laplacian matrix, and by traffic up a tree.

*Spectrum.* With ``L`` split into hosts h and switches s, x'Lx is smallest over the switches where x_s solves
L_ss x_s = -L_sh x_h; what remains on the hosts is the Schur complement L_hh - L_hs L_ss^-1 L_sh.

*Up-down.* Every node splits what it has evenly over its cables towards the top. If each top switch gets the
same share from every host, the smaller half A of the hosts can send one unit each to the other half B by way
of the top: up as all hosts do, down the same way backwards. No cable then carries more than the busiest does
with all hosts sending, L, in either direction, so that at least |A| / L cables lie between A and B (Valiant,
"A scheme for fast parallel communication", SIAM J. Computing 1982). Hosts that meet at switches with no way
up, such as those of NVLink, first spread what they send over all hosts there, and what they receive comes the
same way: a host sends 2 units at most to these switches, and takes 2 at most.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from relparallel.topology import Topology
from relparallel.topology._arrays import BoolArray, FloatArray, IntArray, levels, parts

if TYPE_CHECKING:
    from scipy.sparse import csr_array

DENSE: Final = 1200  #: nodes up to which all eigenvalues are found
_BASIS: Final = 40  # vectors of the Lanczos method
_SPARSE: Final = 10**6  # joined pairs up to which the Lanczos method is tried


def second_eigenvalue(t: Topology) -> float:
    """Return a lower bound of it, close to it; 0 where it is too dear to find."""
    if t.num_nodes <= DENSE:
        return float(modes(t)[0][1])
    if len(t.edges) > _SPARSE:
        return 0.0
    laplacian = _laplacian(t)
    if t.endpoint[t.edges].any(axis=1).all():  # no cable joins two switches: L_ss is diagonal
        return _between_servers(t, laplacian)
    return _at_switches(t, laplacian)


def modes(t: Topology) -> tuple[FloatArray, FloatArray]:
    """Eigenvalues, ascending, and eigenvectors of the matrix on the hosts."""
    laplacian, part = _laplacian(t).toarray(), parts(t.edges, t.num_nodes)
    h, s = t.hosts, t.switches[np.isin(part[t.switches], part[t.hosts])]
    inner = laplacian[np.ix_(h, h)]
    if s.size:
        outer = laplacian[np.ix_(h, s)]
        inner = inner - outer @ np.linalg.solve(laplacian[np.ix_(s, s)], outer.T)
    values, vectors = np.linalg.eigh((inner + inner.T) / 2)
    return values, vectors


def _laplacian(t: Topology) -> csr_array[Any, Any]:
    from scipy.sparse import coo_array, csr_array, diags_array

    (u, v), cables = t.edges.T, t.multiplicity.astype(np.float64)
    ends = np.concatenate([u, v]), np.concatenate([v, u])
    joined = coo_array((np.tile(cables, 2), ends), shape=(t.num_nodes,) * 2)
    return csr_array(diags_array(t.degrees.astype(np.float64)) - joined)


def _between_servers(t: Topology, laplacian: csr_array[Any, Any]) -> float:
    """Where switches join servers only."""
    from scipy.sparse import csr_array

    rows = laplacian[t.hosts]
    inner, outer = csr_array(rows[:, t.hosts]), csr_array(rows[:, t.switches])
    share = 1.0 / np.maximum(t.degrees[t.switches], 1)
    back = csr_array(outer.T)
    return _lanczos(
        lambda x: inner @ x - outer @ (share * (back @ x)), t.num_hosts, 2.0 * t.degrees[t.hosts].max()
    )


def _at_switches(t: Topology, laplacian: csr_array[Any, Any]) -> float:
    """Where every switch has p hosts of its own: an eigenvalue a of the switches becomes a/(p + a)."""
    from scipy.sparse import csr_array, diags_array

    hosts, switches = t.hosts, t.switches
    at = np.bincount(t.indices[t.indptr[hosts]], minlength=t.num_nodes)[switches]
    if np.any(t.degrees[hosts] != 1) or np.any(at != at[0]) or at[0] == 0:
        return 0.0
    inner = csr_array(laplacian[switches][:, switches] - diags_array(at.astype(np.float64)))
    second = _lanczos(lambda x: inner @ x, switches.size, 2.0 * float(inner.diagonal().max()))
    return second / (float(at[0]) + second)


def _lanczos(apply: Callable[[FloatArray], FloatArray], size: int, largest: float) -> float:
    """Smallest eigenvalue beside that of the constant vector, less the residual of its vector."""
    from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh

    def lifted(x: FloatArray) -> FloatArray:
        flat = x.ravel()
        return np.asarray(apply(flat) + largest * flat.mean())

    if size <= _BASIS:
        return 0.0
    operator = LinearOperator((size, size), matvec=lifted, dtype=np.float64)
    start = np.random.default_rng(0).standard_normal(size)
    try:
        values, vectors = eigsh(operator, k=1, which="SA", tol=1e-4, ncv=_BASIS, maxiter=60, v0=start)
    except ArpackNoConvergence:
        return 0.0
    residual = float(np.linalg.norm(lifted(vectors[:, 0]) - values[0] * vectors[:, 0]))
    return max(float(values[0]) - residual, 0.0)


def up_down_bound(t: Topology) -> float:
    """Bound by traffic up to the top switches, 0 where hosts reach the top switches in different shares."""
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
    return t.num_hosts // 2 / max(inner, _busiest(t.endpoint.astype(np.float64), tail, head, cables, level))


def _groups(t: Topology, reaches: BoolArray) -> tuple[IntArray, float]:
    """First host of the group in which each host spreads its traffic, and the load of a cable there."""
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
    least = np.bincount(np.concatenate(ends), weights=np.tile(cables[inside], 2), minlength=t.num_nodes)[
        t.hosts
    ]
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
    """Class of every node: in one class all have cables to the same classes, at the top each is alone."""
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


def _busiest(sent: FloatArray, tail: IntArray, head: IntArray, cables: FloatArray, level: IntArray) -> float:
    """Load of the busiest cable when every host sends one unit up."""
    number = np.bincount(tail, weights=cables, minlength=sent.size)
    load = 0.0
    for depth in range(int(level.max())):
        arcs = np.flatnonzero(level[tail] == depth)
        each = sent[tail[arcs]] / number[tail[arcs]]
        load = max(load, float(each.max()))
        sent = sent + np.bincount(head[arcs], weights=each * cables[arcs], minlength=sent.size)
    return load
