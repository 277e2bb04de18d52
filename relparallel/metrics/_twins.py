"""Twins: endpoints with the same neighbours and the same ``transit``, which are as far from everything else.

They are never neighbours of each other, so one search and one node stand for the whole class.
"""

from __future__ import annotations

from collections import Counter

import numba
import numpy as np

from relparallel.topology import Topology
from relparallel.topology._arrays import BoolArray, IntArray
from relparallel.topology.symmetry import neighbour_classes


def twins(t: Topology, chosen: BoolArray) -> IntArray:
    """First twin of every endpoint; other nodes are alone."""
    own = np.where(chosen, t.transit, 2 + np.arange(t.num_nodes))
    _, first, place = np.unique(neighbour_classes(t.edges, own), return_index=True, return_inverse=True)
    return np.asarray(first[place])


def pairs_of_twins(t: Topology, first: IntArray, chosen: BoolArray, relays: IntArray) -> Counter[int]:
    """Count the ordered pairs inside the classes by distance: through a common neighbour that forwards."""
    is_relay = np.zeros(t.num_nodes, dtype=bool)
    is_relay[relays] = True
    near, far = _pairs(t.indptr, t.indices, t.transit, is_relay, np.bincount(first[chosen]))
    return Counter({1: int(near), 2: int(far)})


def subgraph(t: Topology, keep: BoolArray) -> tuple[IntArray, IntArray]:
    """Neighbour lists of the kept nodes, renumbered."""
    if keep.all():
        return t.indptr, t.indices
    return _subgraph(t.indptr, t.indices, keep)  # type: ignore[no-any-return]


@numba.njit(cache=True)
def _pairs(indptr, indices, transit, is_relay, sizes):  # type: ignore[no-untyped-def]
    near = far = 0
    for v in np.flatnonzero(sizes > 1):
        nearest = 3
        for arc in range(indptr[v], indptr[v + 1]):
            u = indices[arc]
            if transit[u]:
                nearest = min(nearest, 1 if is_relay[u] else 2)
        near += (nearest == 1) * sizes[v] * (sizes[v] - 1)
        far += (nearest == 2) * sizes[v] * (sizes[v] - 1)
    return near, far


@numba.njit(cache=True)
def _subgraph(indptr, indices, keep):  # type: ignore[no-untyped-def]
    position = np.cumsum(keep) - 1
    starts = np.zeros(position[-1] + 2, dtype=np.int64)
    heads, arcs = np.empty_like(indices), 0
    for v in np.flatnonzero(keep):
        for arc in range(indptr[v], indptr[v + 1]):
            if keep[indices[arc]]:
                heads[arcs] = position[indices[arc]]
                arcs += 1
        starts[position[v] + 1] = arcs
    return starts, heads[:arcs]
