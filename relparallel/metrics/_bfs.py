"""Breadth-first search from 512 sources at once: one bit per source, eight 64-bit words per node.

Then et al., "The more the merrier: efficient multi-source graph traversal", VLDB 2015, with bottom-up levels:
a node gathers what its neighbours sent in the last level and keeps what it has not seen.
"""

from __future__ import annotations

import numba
import numpy as np

from relparallel.topology._arrays import BoolArray, IntArray

__all__ = ["SOURCES", "WORDS", "count_levels"]

WORDS = 8
SOURCES = 64 * WORDS  #: of one pass


def count_levels(
    indptr: IntArray,
    indices: IntArray,
    transit: BoolArray,
    relays: IntArray,
    weight: IntArray,
    sources: IntArray,
) -> IntArray:
    """Weight of the nodes first reached in each level, from up to 512 sources.

    Parameters
    ----------
    indptr, indices : int array [n + 1], [arcs]
        Neighbour lists.
    transit : bool array [n]
        Nodes that pass on what they receive; a source always sends.
    relays : int array
        Nodes that pass on within the level, so that they add no hop; no two of them are neighbours.
    weight : int array [n]
        How much a reached node counts.
    sources : int array [at most 512]
        Start nodes; source i is bit i // 8 of word i % 8.

    Returns
    -------
    int array [levels, 8]
        Row d: sum of weights at distance d, over the sources of each word; row 0 is zero.
    """
    return _search(indptr, indices, transit, relays, weight, sources)  # type: ignore[no-any-return]


@numba.njit(cache=True)
def _popcount(x):  # type: ignore[no-untyped-def]
    """Number of ones among 64 bits; compiled to one instruction."""
    x -= (x >> np.uint64(1)) & np.uint64(0x5555555555555555)
    x = (x & np.uint64(0x3333333333333333)) + ((x >> np.uint64(2)) & np.uint64(0x3333333333333333))
    x = (x + (x >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return np.int64((x * np.uint64(0x0101010101010101)) >> np.uint64(56))


@numba.njit(cache=True)
def _gather(v, indptr, indices, sends, sent, seen, fresh):  # type: ignore[no-untyped-def]
    """Write to ``fresh`` what the neighbours of v sent and v has not seen; whether there is any."""
    fresh[:] = 0
    for arc in range(indptr[v], indptr[v + 1]):
        u = indices[arc]
        if sends[u]:
            for w in range(WORDS):
                fresh[w] |= sent[u, w]
    anything = np.uint64(0)
    for w in range(WORDS):
        fresh[w] &= ~seen[v, w]
        seen[v, w] |= fresh[w]
        anything |= fresh[w]
    return anything != 0


@numba.njit(cache=True)
def _search(indptr, indices, transit, relays, weight, sources):  # type: ignore[no-untyped-def]
    n = indptr.size - 1
    seen = np.zeros((n, WORDS), dtype=np.uint64)
    sent, arriving = np.zeros_like(seen), np.zeros_like(seen)
    sends, done = np.zeros(n, dtype=np.bool_), np.zeros(n, dtype=np.bool_)
    everything, fresh = np.zeros(WORDS, dtype=np.uint64), np.zeros(WORDS, dtype=np.uint64)
    is_relay = np.zeros(n, dtype=np.bool_)
    is_relay[relays] = True
    for i, s in enumerate(sources):
        bit = np.uint64(1) << np.uint64(i // WORDS)
        everything[i % WORDS] |= bit
        seen[s, i % WORDS] |= bit
        sent[s] = seen[s]
        sends[s] = True
    levels = np.zeros((16, WORDS), dtype=np.int64)
    depth, growing = 0, True
    while growing:
        depth += 1
        growing = False
        if depth == len(levels):
            levels = np.concatenate((levels, np.zeros_like(levels)))
        for r in relays:
            sends[r] = False
            sends[r] = _gather(r, indptr, indices, sends, sent, seen, fresh) and transit[r]
            sent[r] = fresh
        arrived = np.zeros(n, dtype=np.bool_)
        for v in range(n):
            if done[v] or is_relay[v] or not _gather(v, indptr, indices, sends, sent, seen, fresh):
                continue
            growing = arrived[v] = True
            complete = True
            for w in range(WORDS):
                arriving[v, w] = fresh[w]
                levels[depth, w] += weight[v] * _popcount(fresh[w])
                complete &= seen[v, w] == everything[w]
            done[v] = complete
        sends = arrived & transit
        sent, arriving = arriving, sent
    return levels[:depth]
