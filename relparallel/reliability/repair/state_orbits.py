"""Which states of a network a symmetry carries into each other."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

IntArray = NDArray[np.int64]
_STEPS = 64  # images of the marks from which symmetries that keep them are composed


def symmetries_that_keep(generators: IntArray, marks: IntArray) -> IntArray:
    """Symmetries, one per row, that carry every node to one of the same mark.

    Where g carries the marks as u left them to where w leaves them, w^-1 g u keeps them (Schreier). A part of
    these is enough: fewer symmetries only mean smaller orbits.
    """
    carried = {marks.tobytes(): np.arange(marks.size)}
    queue = [marks.tobytes()]
    while queue and len(carried) < _STEPS:
        u = carried[queue.pop(0)]
        for g in generators:
            image = _moved(marks, g[u])
            if image not in carried:
                carried[image] = g[u]
                queue.append(image)
    back = {image: np.argsort(u) for image, u in carried.items()}
    kept = [
        back[there][g[u]]
        for u in carried.values()
        for g in generators
        if (there := _moved(marks, g[u])) in back
    ]
    rows = np.array(kept, dtype=np.int64).reshape(-1, marks.size)
    rows = np.unique(rows, axis=0)
    kept_rows: IntArray = rows[(rows != np.arange(marks.size)).any(axis=1)]
    return kept_rows


def _moved(marks: IntArray, image: IntArray) -> bytes:
    """Marks after the nodes have moved."""
    moved = np.empty_like(marks)
    moved[image] = marks
    return moved.tobytes()


def orbits_of_sets(sets: IntArray, permutations: Iterable[IntArray]) -> IntArray:
    """Label [N] of each set; sets of one label are images of each other by permutations of the parts.

    An image is looked up by a sum of hashed parts and then compared, so a clash of hashes can split an orbit
    and never joins two. O(N w log N) per permutation.
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    count = len(sets)
    key = _hashed(sets)
    order = np.argsort(key)
    rows = np.sort(sets, axis=1)
    here, there = [np.empty(0, dtype=np.int64)], [np.empty(0, dtype=np.int64)]
    for permutation in permutations:
        image = np.where(sets >= 0, permutation[np.maximum(sets, 0)], -1)
        place = order[np.minimum(np.searchsorted(key[order], _hashed(image)), count - 1)]
        same = np.flatnonzero((rows[place] == np.sort(image, axis=1)).all(axis=1))
        here.append(same)
        there.append(place[same])
    start, end = np.concatenate(here), np.concatenate(there)
    joined = coo_array((np.ones(start.size, dtype=np.int8), (start, end)), shape=(count, count))
    return np.asarray(connected_components(joined.tocsr(), directed=False)[1], dtype=np.int64)


def _hashed(sets: IntArray) -> NDArray[np.uint64]:
    """Sum over the parts of a set of a well-mixed word (the finaliser of splitmix64)."""
    word = (sets + 1).astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed: NDArray[np.uint64] = (word ^ (word >> np.uint64(31))).sum(axis=1, dtype=np.uint64)
    return mixed
