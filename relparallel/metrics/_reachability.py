"""Which hosts reach each other, in 64 scenarios of failures per machine word."""

from __future__ import annotations

import numba
import numpy as np

_BLOCK = 8  # words handled together


@numba.njit(cache=True)
def all_joined(indptr, indices, pair, order, transit, hosts, sources, nodes, pairs):  # type: ignore[no-untyped-def]
    """Words of bits that are 1 where every host works and reaches every other.

    ``pair[arc]`` is the row of ``pairs``, ``order`` the nodes from the inside outwards. Every node of
    ``sources`` must reach all hosts.
    """
    words = nodes.shape[1]
    joined = np.zeros(words, dtype=np.uint64)
    reached = np.zeros((order.size, _BLOCK), dtype=np.uint64)
    for first in range(0, words, _BLOCK):
        width = min(_BLOCK, words - first)
        good = _attached(indptr, pair, hosts, nodes, pairs, first, width)
        for source in sources:
            if not good.any():
                break
            _flood(indptr, indices, pair, order, transit, source, nodes, pairs, first, width, reached)
            for host in hosts:
                for w in range(width):
                    good[w] &= reached[host, w]
        joined[first : first + width] = good[:width]
    return joined


@numba.njit(cache=True)
def _attached(indptr, pair, hosts, nodes, pairs, first, width):  # type: ignore[no-untyped-def]
    """Where every host works and has a cable that works: what must hold before any search."""
    good = np.zeros(_BLOCK, dtype=np.uint64)
    good[:width] = ~np.uint64(0)
    for host in hosts:
        for w in range(width):
            some = np.uint64(0)
            for arc in range(indptr[host], indptr[host + 1]):
                some |= pairs[pair[arc], first + w]
            good[w] &= some & nodes[host, first + w]
    return good


@numba.njit(cache=True)
def _flood(indptr, indices, pair, order, transit, source, nodes, pairs, first, width, reached):  # type: ignore[no-untyped-def]
    """Write where each node is reached from the source, sweeping outwards and inwards until nothing grows."""
    reached[:] = 0
    for w in range(width):
        reached[source, w] = nodes[source, first + w]
    growing, inwards = True, False
    while growing:
        growing = False
        for i in range(order.size):
            v = order[order.size - 1 - i] if inwards else order[i]
            if v == source:
                continue
            for arc in range(indptr[v], indptr[v + 1]):
                u = indices[arc]
                if transit[u] or u == source:
                    for w in range(width):
                        new = reached[u, w] & pairs[pair[arc], first + w] & nodes[v, first + w]
                        growing |= (new & ~reached[v, w]) != 0
                        reached[v, w] |= new
        inwards = not inwards
