"""Local search for a cheap halving of the hosts: single moves with a memory (Fiduccia and Mattheyses).

Hosts move so that the halves stay within two of each other, switches move freely. A pass moves every node
once, best gain first, and goes back to the cheapest halving that it met.
"""

import numba
import numpy as np


@numba.njit(cache=True)
def _link(bucket, following, before, v, slot):  # type: ignore[no-untyped-def]
    """Put v first in the list of a slot."""
    first = bucket[slot]
    following[v], before[v] = first, -1
    if first >= 0:
        before[first] = v
    bucket[slot] = v


@numba.njit(cache=True)
def _unlink(bucket, following, before, v, slot):  # type: ignore[no-untyped-def]
    """Take v out of the list of a slot."""
    if before[v] >= 0:
        following[before[v]] = following[v]
    else:
        bucket[slot] = following[v]
    if following[v] >= 0:
        before[following[v]] = before[v]


@numba.njit(cache=True)
def _best(bucket, top, width, excess, odd):  # type: ignore[no-untyped-def]
    """Node of the largest gain among those that may move, -1 if none: class 0 and 1 hosts, 2 switches."""
    chosen, best = -1, -1
    for c in range(3):
        while top[c] >= 0 and bucket[c * width + top[c]] < 0:
            top[c] -= 1
        allowed = c == 2 or (excess >= -odd if c == 0 else excess <= odd)
        if allowed and top[c] > best:
            chosen, best = bucket[c * width + top[c]], top[c]
    return chosen


@numba.njit(cache=True)
def _pass(indptr, indices, cables, endpoint, side, widest):  # type: ignore[no-untyped-def]
    """Improve ``side`` in place by one pass; returns how many cables fewer are cut."""
    n, width = side.size, 2 * widest + 1
    gain, kind = np.zeros(n, dtype=np.int64), np.full(n, 2, dtype=np.int64)
    bucket, top = np.full(3 * width, -1), np.full(3, width - 1)
    following, before = np.full(n, -1), np.full(n, -1)
    moved, order, excess, hosts = np.zeros(n, dtype=np.bool_), np.empty(n, dtype=np.int64), np.int64(0), 0
    for v in range(n):
        if endpoint[v]:
            kind[v] = 1 if side[v] else 0
            excess += -1 if side[v] else 1
            hosts += 1
        for arc in range(indptr[v], indptr[v + 1]):
            gain[v] += cables[arc] if side[indices[arc]] != side[v] else -cables[arc]
        _link(bucket, following, before, v, kind[v] * width + gain[v] + widest)
    odd, saved, best, kept, count = hosts % 2, 0, 0, 0, 0
    while True:
        v = _best(bucket, top, width, excess, odd)
        if v < 0:
            break
        _unlink(bucket, following, before, v, kind[v] * width + gain[v] + widest)
        moved[v], order[count], saved = True, v, saved + gain[v]
        side[v] = not side[v]
        if endpoint[v]:
            excess += -2 if side[v] else 2
        for arc in range(indptr[v], indptr[v + 1]):
            u = indices[arc]
            if not moved[u]:
                _unlink(bucket, following, before, u, kind[u] * width + gain[u] + widest)
                gain[u] += -2 * cables[arc] if side[u] == side[v] else 2 * cables[arc]
                _link(bucket, following, before, u, kind[u] * width + gain[u] + widest)
                top[kind[u]] = max(top[kind[u]], gain[u] + widest)
        count += 1
        if abs(excess) <= odd and saved > best:
            best, kept = saved, count
    for i in range(kept, count):
        side[order[i]] = not side[order[i]]
    return best


@numba.njit(cache=True)
def refine(indptr, indices, cables, endpoint, side, passes):  # type: ignore[no-untyped-def]
    """Improve ``side``, which halves the hosts, in place until a pass finds nothing; returns cables cut."""
    cut, widest = 0, 0
    for v in range(side.size):
        around = 0
        for arc in range(indptr[v], indptr[v + 1]):
            around += cables[arc]
            if side[indices[arc]] != side[v] and v < indices[arc]:
                cut += cables[arc]
        widest = max(widest, around)
    for _ in range(passes):
        # As it is, `_pass` would be compiled once more, for a width of 0.
        saved = _pass(indptr, indices, cables, endpoint, side, np.int64(widest))
        cut -= saved
        if saved == 0:
            break
    return cut
