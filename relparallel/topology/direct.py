"""Direct networks: the nodes themselves are the switches.

``dims`` are the lengths k_1..k_d of the dimensions. Every cable has 400 Gbit/s and no modelled latency
(``dataclasses.replace`` sets others).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from relparallel._checks import require_instance, require_int
from relparallel.topology._arrays import IntArray, joined, require_size
from relparallel.topology.fabric import Topology
from relparallel.topology.parts import Design

__all__ = ["require_dims", "torus"]


def torus(dims: Sequence[int]) -> Topology:
    """Torus: nodes are points of a grid, joined to the next point in every dimension, round the edge.

    Parameters
    ----------
    dims : sequence of int
        Length of every dimension, at least 1. A dimension of length 2 has one cable per pair, not two; a
        dimension of length 1 has none.

    Returns
    -------
    Topology
        prod(dims) nodes in row-major order, all endpoints, all forwarding; d cables per node where every
        dimension is at least 3. ``pod`` is the coordinate in the first dimension.

    Raises
    ------
    TypeError, ValueError
        If a length is no integer of at least 1, or the network is too large to build.

    Notes
    -----
    Nodes are at most sum(floor(k_i/2)) apart, and as many disjoint paths as a node has cables join any two.
    With an even longest dimension k, 2N/k cables cross a halving. Array operations on the cables.

    References
    ----------
    Adiga et al., "Blue Gene/L torus interconnection network", IBM Journal of Research and Development 49,
    2005.

    Examples
    --------
    >>> torus(dims=(4, 4, 4))
    <Topology torus(dims=(4, 4, 4)): 64 hosts, 0 switches, 192 links>
    """
    lengths = require_dims(dims=dims)
    nodes = math.prod(lengths)
    require_size("dims", lengths, nodes * (1 + len(lengths)))
    grid = np.arange(nodes).reshape(lengths)
    rings = [_ring(grid, axis) for axis, length in enumerate(lengths) if length > 1]
    return Topology.of(
        edges=joined(*rings),
        node_kind={"node": nodes},
        pod=grid.ravel() // (nodes // lengths[0]),
        meta=Design(name="torus", parameters={"dims": lengths}, paper="adiga2005torus"),
    )


def require_dims(*, dims: Sequence[int]) -> tuple[int, ...]:
    """Return the lengths as a tuple of one or more integers of at least 1."""
    require_instance((Sequence, np.ndarray), dims=dims)
    if len(dims) == 0 or isinstance(dims, str):
        raise ValueError(f"dims must be one or more integers >= 1, got {dims!r}")
    return tuple(require_int(dims=length, at_least=1) for length in dims)


def _ring(grid: IntArray, axis: int) -> tuple[IntArray, IntArray]:
    """Every node and its next one along an axis; the cable round the edge only from length 3."""
    following = np.roll(grid, -1, axis=axis)
    if grid.shape[axis] == 2:
        grid, following = np.take(grid, 0, axis=axis), np.take(following, 0, axis=axis)
    return grid, following
