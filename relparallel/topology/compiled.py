"""Compiled loops over the neighbours of all nodes; importing them loads the compiler."""

import numba
import numpy as np


@numba.njit(cache=True)
def first_twins(indptr, arcs, kind, candidates):  # type: ignore[no-untyped-def]
    """First candidate of the same kind and rows of ``arcs``, for each candidate; else the node.

    A hash table of these rows, O(m): equal keys only say where to look, rows are compared in full.
    """
    size = 2  # at least twice the nodes: a half-empty table finds a free place in a step or two
    while size < 2 * kind.size:
        size *= 2
    table, first = np.full(size, -1, dtype=np.int64), np.arange(kind.size)
    for v in np.flatnonzero(candidates):
        key = np.uint64(0)
        for arc in range(indptr[v], indptr[v + 1]):
            for column in range(arcs.shape[1]):
                mixed = np.uint64(arcs[arc, column] + 1) * np.uint64(0x9E3779B97F4A7C15)
                # a sum of multiples alone could not tell 1 and 4 from 2 and 3
                key += mixed ^ (mixed >> np.uint64(29))
        slot = np.int64((key ^ (key >> np.uint64(32))) & np.uint64(size - 1))
        while table[slot] >= 0 and not _alike(v, table[slot], indptr, arcs, kind):
            slot = (slot + 1) % size
        if table[slot] < 0:
            table[slot] = v
        first[v] = table[slot]
    return first


@numba.njit(cache=True)
def _alike(v, w, indptr, arcs, kind):  # type: ignore[no-untyped-def]
    """Whether two nodes are of one kind and have the same rows."""
    ahead = indptr[w] - indptr[v]
    same = kind[v] == kind[w] and indptr[v + 1] + ahead == indptr[w + 1]
    for arc in range(indptr[v], indptr[v + 1]):
        for column in range(arcs.shape[1]):
            same = same and arcs[arc, column] == arcs[arc + ahead, column]
    return same


@numba.njit(cache=True)
def keeps_neighbours(indptr, indices, image):  # type: ignore[no-untyped-def]
    """Whether the image of every node has the images of its neighbours."""
    seen_by = np.full(image.size, -1)  # marked by node, so that nothing is cleared between nodes
    for v in range(image.size):
        w = image[v]
        if indptr[v + 1] - indptr[v] != indptr[w + 1] - indptr[w]:
            return False
        for arc in range(indptr[w], indptr[w + 1]):
            seen_by[indices[arc]] = v
        for arc in range(indptr[v], indptr[v + 1]):
            # as many neighbours, all different: it is enough that none is missing
            if seen_by[image[indices[arc]]] != v:
                return False
    return True
