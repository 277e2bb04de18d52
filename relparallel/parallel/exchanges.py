"""Collectives without sums, as rounds of messages: all-to-all, broadcast, all-gather.

In an all-to-all the vector of every rank has a row of N elements for each rank that sends: row i holds what
rank i sends, its chunk j goes to rank j. So a message keeps its place in the vector like any other.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

import numpy as np

from relparallel._checks import require_int
from relparallel.parallel._arguments import MOST_DEVICES
from relparallel.parallel.all_reduces import tree_edges
from relparallel.parallel.collectives import (
    Round,
    Whole,
    algorithm,
    bounds,
    messages,
    placed,
    require_group,
    ring_all_gather,
    together,
)


@algorithm("all_to_all", "direct")
def direct_all_to_all(ranks: int, elements: int) -> Iterator[Round]:
    """Send every chunk straight to its rank, in round k k ranks further on: (n - 1)(alpha + beta N/n)."""
    require_group(ranks, elements)
    rank, cut = np.arange(ranks, dtype=np.int64), bounds(ranks, elements)

    def step(away: int) -> Round:
        to = (rank + away) % ranks
        return messages(rank, to, rank * elements + cut[to], rank * elements + cut[to + 1], False)

    return (step(away) for away in range(1, ranks))


@algorithm("all_to_all", "ring")
def ring_all_to_all(ranks: int, elements: int) -> Iterator[Round]:
    """Pass all chunks round a ring, each leaves it where it belongs: (n - 1)(alpha + beta N/2)."""
    require_group(ranks, elements)
    rank, cut = np.arange(ranks, dtype=np.int64), bounds(ranks, elements)

    def step(hop: int) -> Round:
        origin = (rank - hop) % ranks
        start, stop, which = _runs((origin + hop + 1) % ranks, ranks - hop - 1, ranks)
        row = origin[which] * elements
        return messages(which, (which + 1) % ranks, row + cut[start], row + cut[stop], False)

    return (step(hop) for hop in range(ranks - 1))


@algorithm("all_to_all", "hierarchical")
def hierarchical_all_to_all(ranks: int, elements: int, ranks_per_node: int) -> Iterator[Round]:
    """Bring chunks first to the rank of the own node that has their receiver's place, then across.

    g - 1 rounds inside, then n/g - 1 between: the network carries what it carries in the direct exchange, in
    g times larger messages. Rajbhandari et al., "DeepSpeed-MoE", ICML 2022.
    """
    node = require_group(ranks, elements, ranks_per_node)
    nodes, cut = ranks // node, bounds(ranks, elements)
    rank = np.arange(ranks, dtype=np.int64)
    place, first = rank % node, rank - rank % node

    def inside(away: int) -> Round:
        to = (place + away) % node
        chunk = to[:, None] + node * np.arange(nodes)
        return _chunks(rank, first + to, np.repeat(rank[:, None], nodes, 1), chunk, cut, elements)

    def between(away: int) -> Round:
        to = (rank + away * node) % ranks
        origin = first[:, None] + np.arange(node)
        return _chunks(rank, to, origin, np.repeat(to[:, None], node, 1), cut, elements)

    return chain((inside(k) for k in range(1, node)), (between(k) for k in range(1, nodes)))


@algorithm("broadcast", "tree")
def tree_broadcast(ranks: int, elements: int, ranks_per_node: int | None = None) -> Iterator[Round]:
    """Send the vector of rank 0 down a binomial tree, first to one rank of each node of g ranks."""
    node = require_group(ranks, elements, ranks if ranks_per_node is None else ranks_per_node)
    up = reversed(list(tree_edges(ranks, node)))
    return (messages(parent, child, 0, elements, False) for child, parent in up)


@algorithm("broadcast", "chain")
def chain_broadcast(ranks: int, elements: int, pieces: int = 1) -> Iterator[Round]:
    """Pass the vector of rank 0 on from rank to rank in k pieces: (n + k - 2)(alpha + beta N/k)."""
    require_group(ranks, elements)
    cut = bounds(require_int(pieces=pieces, at_least=1, at_most=MOST_DEVICES), elements)

    def step(k: int) -> Round:
        rank = np.arange(max(0, k - pieces + 1), min(k, ranks - 2) + 1, dtype=np.int64)
        return messages(rank, rank + 1, cut[k - rank], cut[k - rank + 1], False)

    return (step(k) for k in range(ranks + pieces - 2 if ranks > 1 else 0))


@algorithm("all_gather", "bruck")
def bruck_all_gather(ranks: int, elements: int) -> Iterator[Round]:
    """Give everything one has to the rank 1, 2, 4, ... places back; rank r starts with its part of n.

    ceil(log2 n) alpha + (n - 1)/n N beta where n divides N. Bruck et al., "Efficient algorithms for
    all-to-all communications in multiport message-passing systems", IEEE TPDS 1997.
    """
    require_group(ranks, elements)
    rank, cut = np.arange(ranks, dtype=np.int64), bounds(ranks, elements)

    def step(reach: int) -> Round:
        start, stop, which = _runs(rank, min(reach, ranks - reach), ranks)
        return messages(which, (which - reach) % ranks, cut[start], cut[stop], False)

    return (step(1 << k) for k in range((ranks - 1).bit_length()))


@algorithm("all_gather", "hierarchical")
def hierarchical_all_gather(ranks: int, elements: int, ranks_per_node: int) -> Iterator[Round]:
    """Gather between the ranks with one place in all nodes, then inside the nodes.

    Rank r of node j starts with part j of n/g of chunk (r + 1) mod g, as the hierarchical all-reduce leaves
    it.
    """
    node = require_group(ranks, elements, ranks_per_node)
    cut = bounds(node, elements)
    chunks = [((rank + 1) % node, np.arange(rank, ranks, node)) for rank in range(node)]
    return chain(
        together(
            placed(
                ring_all_gather(ranks // node, int(cut[chunk + 1] - cut[chunk])),
                np.roll(ranks_, -1), int(cut[chunk]),
            )
            for chunk, ranks_ in chunks if cut[chunk + 1] > cut[chunk]
        ),
        together(
            placed(ring_all_gather(node, elements), first + np.arange(node))
            for first in range(0, ranks, node)
        ),
    )  # fmt: skip


def _runs(first: Whole, count: int, parts: int) -> tuple[Whole, Whole, Whole]:
    """First part and the one after the last of ``count`` parts round a circle, cut at its seam; and whose."""
    last = first + count
    wraps = np.flatnonzero(last > parts)
    start = np.concatenate([first, np.zeros(wraps.size, dtype=np.int64)])
    stop = np.concatenate([np.minimum(last, parts), last[wraps] - parts])
    return start, stop, np.concatenate([np.arange(first.size), wraps])


def _chunks(
    source: Whole, to: Whole, row: Whole, chunk: Whole,
    cut: Whole, elements: int,
) -> Round:  # fmt: skip
    """Round in which every rank sends several chunks to one other."""
    many = row.shape[1]
    start, stop = (row * elements + cut[chunk]).ravel(), (row * elements + cut[chunk + 1]).ravel()
    return messages(np.repeat(source, many), np.repeat(to, many), start, stop, False)
