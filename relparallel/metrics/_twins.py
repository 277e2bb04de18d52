"""Twins: endpoints with the same neighbours and the same ``transit``, which are as far from everything else.

They are never neighbours of each other, so one search and one node stand for the whole class.
"""

from __future__ import annotations

from collections import Counter

import numba
import numpy as np

from relparallel.topology import Topology
from relparallel.topology._arrays import BoolArray, IntArray


def twins(t: Topology, chosen: BoolArray) -> IntArray:
    """Find the first twin of every endpoint.

    Notes
    -----
    A hash table of neighbour lists, O(m). Equal keys only say where to look: lists are compared in full.
    """
    keys = _keys(t.indptr, t.indices)
    return _first_twins(t.indptr, t.indices, t.transit, chosen, keys)  # type: ignore[no-any-return]


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
def _keys(indptr, indices):  # type: ignore[no-untyped-def]
    """Sums of scrambled neighbours: one number per list, rarely the same for different ones."""
    keys = np.zeros(indptr.size - 1, dtype=np.uint64)
    for v in range(keys.size):
        for arc in range(indptr[v], indptr[v + 1]):
            mixed = np.uint64(indices[arc] + 1) * np.uint64(0x9E3779B97F4A7C15)
            keys[v] += mixed ^ (mixed >> np.uint64(29))
        keys[v] ^= keys[v] >> np.uint64(32)
    return keys


@numba.njit(cache=True)
def _are_twins(v, w, indptr, indices, transit):  # type: ignore[no-untyped-def]
    ahead = indptr[w] - indptr[v]
    same = transit[v] == transit[w] and indptr[v + 1] + ahead == indptr[w + 1]
    for arc in range(indptr[v], indptr[v + 1]):
        same = same and indices[arc] == indices[arc + ahead]
    return same


@numba.njit(cache=True)
def _first_twins(indptr, indices, transit, chosen, keys):  # type: ignore[no-untyped-def]
    size = 2
    while size < 2 * keys.size:
        size *= 2
    table = np.full(size, -1, dtype=np.int64)
    first = np.arange(keys.size)
    for v in np.flatnonzero(chosen):
        slot = np.int64(keys[v] & np.uint64(size - 1))
        while table[slot] >= 0 and not _are_twins(v, table[slot], indptr, indices, transit):
            slot = (slot + 1) % size
        if table[slot] < 0:
            table[slot] = v
        first[v] = table[slot]
    return first


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
