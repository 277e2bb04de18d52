"""Local search for a cheap halving of hosts: single moves with a memory (Fiduccia and Mattheyses).

Hosts move so that the halves stay within two of each other, switches move freely. A pass moves
every node once, best gain first, and goes back to the cheapest halving that it met.
"""

import math
from collections.abc import Iterator
from typing import Final

import numba
import numpy as np
import scipy

from relparallel.topology import Topology
from relparallel.topology._arrays import BoolArray, FloatArray, IntArray, parts
from relparallel.topology.description import rules

_DENSE: Final = 1200  # nodes up to which eigenvectors are found


def cheapest_halving(t: Topology) -> int:
    """Cables between the halves of the best halving found."""
    n, (u, v) = t.num_nodes, t.edges.T
    cables = np.tile(t.multiplicity, 2)[np.argsort(np.concatenate([u * n + v, v * n + u]))]
    passes = 20 if len(t.edges) < 10**5 else 4
    halvings = (_placed(t, order) for order in _orders(t))
    return min(
        int(_refine(t.indptr, t.indices, cables, t.endpoint, side, passes)) for side in halvings
    )


def _orders(t: Topology) -> Iterator[IntArray]:
    """Orders of hosts whose first half is worth trying: numbered, boxes, spectral, by distance."""
    yield t.hosts
    yield from (t.hosts[order] for order in _boxes(_shape(t), t.num_hosts))
    if t.num_nodes <= _DENSE:
        for mode in _modes(t).T[1:4]:
            yield t.hosts[np.argsort(mode, kind="stable")]
    if not len(t.edges):
        return
    graph = scipy.sparse.csr_array(
        (np.ones(t.indices.size, dtype=np.int8), t.indices, t.indptr), shape=(t.num_nodes,) * 2
    )
    starts = int(np.clip(10**5 // len(t.edges), 1, 12))
    for start in t.hosts[np.linspace(0, t.num_hosts - 1, starts).astype(np.int64)]:
        found = scipy.sparse.csgraph.breadth_first_order(
            graph, start, return_predecessors=False
        ).astype(np.int64)
        near = found[t.endpoint[found]]
        yield np.concatenate([near, np.setdiff1d(t.hosts, near)])


def _boxes(shape: tuple[int, ...], hosts: int) -> Iterator[IntArray]:
    """Orders filling a box of equal shares of all lengths, and one of whole sides but the first."""
    if math.prod(shape) == hosts and len(shape) > 1:
        place = np.array(np.unravel_index(np.arange(hosts), shape)) + 1
        sides = np.ceil(np.array(shape) * 0.5 ** (1 / len(shape)))
        sides[0] = hosts / 2 / sides[1:].prod()
        for box in (np.array(shape), sides):
            yield np.lexsort([*place, np.max(place / box[:, None], axis=0)])


def _shape(t: Topology) -> tuple[int, ...]:
    """Lengths of the array that numbers a design's hosts, where its lines meet at switches."""
    rule = rules().get(t.meta.name)
    lengths = rule.grid(**t.meta.parameters) if rule is not None and rule.grid is not None else ()
    return (t.num_hosts // math.prod(lengths), *lengths)


def _placed(t: Topology, order: IntArray) -> BoolArray:
    """Sides of all nodes: first half of hosts on one, each switch with most of what it joins."""
    position = np.zeros(t.num_nodes)
    position[order] = np.where(np.arange(order.size) < order.size // 2, 1.0, -1.0)
    degree = np.maximum(np.diff(t.indptr), 1)
    ones = np.ones(t.indices.size)
    joined = scipy.sparse.csr_array((ones, t.indices, t.indptr), shape=(t.num_nodes,) * 2)
    for _ in range(8):
        position = np.where(t.endpoint, position, (joined @ position) / degree)
    return position < 0


def _modes(t: Topology) -> FloatArray:
    """Eigenvectors of the Laplacian matrix on hosts, the switches eliminated; slow ones first."""
    (u, v), part = t.edges.T, parts(t.edges, t.num_nodes)
    laplacian = np.diag(t.degrees.astype(np.float64))
    np.subtract.at(
        laplacian, (np.concatenate([u, v]), np.concatenate([v, u])), np.tile(t.multiplicity, 2)
    )
    h, s = t.hosts, t.switches[np.isin(part[t.switches], part[t.hosts])]
    inner = laplacian[np.ix_(h, h)]
    if s.size:
        outer = laplacian[np.ix_(h, s)]
        inner = inner - outer @ np.linalg.solve(laplacian[np.ix_(s, s)], outer.T)
    return np.asarray(np.linalg.eigh((inner + inner.T) / 2)[1])


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
    """Movable node of the largest gain, -1 if none: class 0 and 1 hosts, 2 switches."""
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
    moved, order, excess, hosts = (
        np.zeros(n, dtype=np.bool_),
        np.empty(n, dtype=np.int64),
        np.int64(0),
        0,
    )
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
def _refine(indptr, indices, cables, endpoint, side, passes):  # type: ignore[no-untyped-def]
    """Improve ``side``, halving hosts, in place until a pass finds nothing; returns cables cut."""
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
