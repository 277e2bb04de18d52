"""Second smallest eigenvalue of the Laplacian matrix on the hosts, the switches eliminated.

With ``L`` split into hosts h and switches s, x'Lx is smallest over the switches where x_s solves
L_ss x_s = -L_sh x_h; what remains on the hosts is the Schur complement L_hh - L_hs L_ss^-1 L_sh.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from relparallel.topology import Topology
from relparallel.topology._arrays import FloatArray

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
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    laplacian = _laplacian(t).toarray()
    part = connected_components(csr_array(laplacian), directed=False)[1]
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
