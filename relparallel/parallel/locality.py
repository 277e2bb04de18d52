"""Which machines of a cloud are close to each other, found by probes."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from relparallel._checks import require_int, require_real


def discover_groups(probes: ArrayLike, groups: int | None = None) -> NDArray[np.int64]:
    """Find groups of machines, such as racks, by the latencies between them.

    Parameters
    ----------
    probes : array_like [machines, machines]
        Measured latencies [s]; the diagonal is not read, both directions of a pair count.
    groups : int, optional
        How many groups; where omitted, as many as stand before the largest ratio of two merging distances.

    Returns
    -------
    numpy.ndarray of int [machines]
        Number of each machine's group, in the order of first members.

    Notes
    -----
    Average linkage merges the closest groups first, O(machines^2 log machines). Noise below half of the step
    between two levels of distance cannot part a rack or join two. Luo et al., "PLink: discovering and
    exploiting datacenter network locality", MLSys 2020, section 3.

    Examples
    --------
    >>> discover_groups([[0, 1, 5, 5], [1, 0, 5, 5], [5, 5, 0, 1.2], [5, 5, 1, 0]]).tolist()
    [0, 0, 1, 1]
    """
    from scipy.cluster.hierarchy import average, fcluster
    from scipy.spatial.distance import squareform

    measured = np.asarray(require_real(probes=probes, at_least=0))
    n = len(measured) if measured.ndim == 2 else 0
    if n < 2 or measured.shape != (n, n):
        raise ValueError(f"probes must be [machines, machines], at least two, got shape {measured.shape}")
    both = (measured + measured.T) / 2
    np.fill_diagonal(both, 0.0)
    tree = average(squareform(both, checks=False))
    if groups is None:
        height = np.maximum(tree[:, 2], np.finfo(float).tiny)
        groups = n - 1 - int(np.argmax(height[1:] / height[:-1])) if n > 2 else 2
    label = fcluster(tree, require_int(groups=groups, at_least=1, at_most=n), criterion="maxclust")
    _, first, number = np.unique(label, return_index=True, return_inverse=True)
    return np.asarray(np.argsort(np.argsort(first))[number], dtype=np.int64)
