"""Collectives without sums, as rounds of messages: all-to-all, broadcast, all-gather.

In an all-to-all the vector of every rank has a row of N elements for each rank that sends: row i holds what
rank i sends, its chunk j goes to rank j. So a message keeps its place in the vector like any other.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from relparallel._checks import require_int
from relparallel.parallel._arguments import MOST_DEVICES
from relparallel.parallel._rounds import bounds, messages, placed, require_group, together
from relparallel.parallel.all_reduces import _tree_edges
from relparallel.parallel.collectives import Round, ring_all_gather


def direct_all_to_all(ranks: int, elements: int) -> Iterator[Round]:
    """Send every chunk straight to its rank, in round k to the rank k places further on.

    Parameters
    ----------
    ranks : int
        Ranks n, at least 1.
    elements : int
        Elements N that each rank has, one chunk for each rank, at least 1.

    Returns
    -------
    iterator of Round
        n - 1 rounds of n messages over vectors of n N elements.

    Notes
    -----
    (n - 1)(alpha + beta N/n) where n divides N: nothing is sent twice.

    Examples
    --------
    >>> from relparallel.parallel import bytes_sent
    >>> bytes_sent(direct_all_to_all(ranks=4, elements=1000), ranks=4, element_bytes=1).tolist()
    [750.0, 750.0, 750.0, 750.0]
    """
    require_group(ranks, elements)
    rank, cut = np.arange(ranks, dtype=np.int64), bounds(ranks, elements)

    def step(away: int) -> Round:
        to = (rank + away) % ranks
        return messages(rank, to, rank * elements + cut[to], rank * elements + cut[to + 1], False)

    return (step(away) for away in range(1, ranks))


def ring_all_to_all(ranks: int, elements: int) -> Iterator[Round]:
    """Pass all chunks round a ring; each leaves it where it belongs.

    Parameters
    ----------
    ranks : int
        Ranks n, at least 1.
    elements : int
        Elements N that each rank has, one chunk for each rank, at least 1.

    Returns
    -------
    iterator of Round
        n - 1 rounds over vectors of n N elements; round k carries n - k chunks from each rank.

    Notes
    -----
    (n - 1)(alpha + beta N/2) where n divides N: n/2 times the bytes of the direct exchange, but over n links.

    Examples
    --------
    >>> from relparallel.parallel import bytes_sent
    >>> bytes_sent(ring_all_to_all(ranks=4, elements=1000), ranks=4, element_bytes=1).tolist()
    [1500.0, 1500.0, 1500.0, 1500.0]
    """
    require_group(ranks, elements)
    rank, cut = np.arange(ranks, dtype=np.int64), bounds(ranks, elements)

    def step(hop: int) -> Round:
        origin = (rank - hop) % ranks
        start, stop, which = _runs((origin + hop + 1) % ranks, ranks - hop - 1, ranks)
        row = origin[which] * elements
        return messages(which, (which + 1) % ranks, row + cut[start], row + cut[stop], False)

    return (step(hop) for hop in range(ranks - 1))


def hierarchical_all_to_all(ranks: int, elements: int, ranks_per_node: int) -> Iterator[Round]:
    """Bring chunks first to the rank of the own node that has their receiver's place, then across.

    Parameters
    ----------
    ranks : int
        Ranks n, at least 1.
    elements : int
        Elements N that each rank has, one chunk for each rank, at least 1.
    ranks_per_node : int
        Ranks g of a node, a divisor of n.

    Returns
    -------
    iterator of Round
        g - 1 rounds inside, then n/g - 1 between, over vectors of n N elements.

    Notes
    -----
    The network carries what it carries in the direct exchange, in g times larger messages.

    References
    ----------
    Rajbhandari et al., "DeepSpeed-MoE", ICML 2022.

    Examples
    --------
    >>> sum(1 for _ in hierarchical_all_to_all(ranks=32, elements=64, ranks_per_node=8))
    10
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


def tree_broadcast(ranks: int, elements: int, ranks_per_node: int | None = None) -> Iterator[Round]:
    """Send the vector of rank 0 down a binomial tree.

    Parameters
    ----------
    ranks : int
        Ranks n, at least 1.
    elements : int
        Elements N of the vector, at least 1.
    ranks_per_node : int, optional
        Ranks g of a node, a divisor of n: the tree reaches first one rank of each.

    Returns
    -------
    iterator of Round
        ceil(log2 g) + ceil(log2 n/g) rounds of whole vectors.

    Examples
    --------
    >>> from relparallel.parallel import execute
    >>> execute(tree_broadcast(3, 1), [[7], [0], [0]]).tolist()
    [[7.0], [7.0], [7.0]]
    """
    node = require_group(ranks, elements, ranks if ranks_per_node is None else ranks_per_node)
    up = reversed(list(_tree_edges(ranks, node)))
    return (messages(parent, child, 0, elements, False) for child, parent in up)


def chain_broadcast(ranks: int, elements: int, pieces: int = 1) -> Iterator[Round]:
    """Pass the vector of rank 0 on from rank to rank, piece after piece.

    Parameters
    ----------
    ranks : int
        Ranks n, at least 1.
    elements : int
        Elements N of the vector, at least 1.
    pieces : int
        Pieces k, at least 1.

    Returns
    -------
    iterator of Round
        n + k - 2 rounds.

    Notes
    -----
    (n + k - 2)(alpha + beta N/k): with many pieces N beta whatever n, but the last rank waits for n - 1.

    Examples
    --------
    >>> from relparallel.parallel import execute
    >>> execute(chain_broadcast(3, 2, pieces=2), [[7, 8], [0, 0], [0, 0]])[2].tolist()
    [7.0, 8.0]
    """
    require_group(ranks, elements)
    cut = bounds(require_int(pieces=pieces, at_least=1, at_most=MOST_DEVICES), elements)

    def step(k: int) -> Round:
        rank = np.arange(max(0, k - pieces + 1), min(k, ranks - 2) + 1, dtype=np.int64)
        return messages(rank, rank + 1, cut[k - rank], cut[k - rank + 1], False)

    return (step(k) for k in range(ranks + pieces - 2 if ranks > 1 else 0))


def bruck_all_gather(ranks: int, elements: int) -> Iterator[Round]:
    """Give everything one has to the rank 1, 2, 4, ... places back.

    Parameters
    ----------
    ranks : int
        Ranks n, at least 1.
    elements : int
        Elements N of the whole vector, at least 1; rank r starts with [r N // n, (r + 1) N // n).

    Returns
    -------
    iterator of Round
        ceil(log2 n) rounds.

    Notes
    -----
    ceil(log2 n) alpha + (n - 1)/n N beta where n divides N, for every n.

    References
    ----------
    Bruck et al., "Efficient algorithms for all-to-all communications in multiport message-passing systems",
    IEEE TPDS 1997.

    Examples
    --------
    >>> from relparallel.parallel import execute
    >>> execute(bruck_all_gather(3, 3), [[5, 0, 0], [0, 6, 0], [0, 0, 7]])[0].tolist()
    [5.0, 6.0, 7.0]
    """
    require_group(ranks, elements)
    rank, cut = np.arange(ranks, dtype=np.int64), bounds(ranks, elements)

    def step(reach: int) -> Round:
        start, stop, which = _runs(rank, min(reach, ranks - reach), ranks)
        return messages(which, (which - reach) % ranks, cut[start], cut[stop], False)

    return (step(1 << k) for k in range((ranks - 1).bit_length()))


def hierarchical_all_gather(ranks: int, elements: int, ranks_per_node: int) -> Iterator[Round]:
    """Gather between the ranks with one place in all nodes, then inside the nodes.

    Parameters
    ----------
    ranks : int
        Ranks n, at least 1.
    elements : int
        Elements N of the whole vector, at least 1. Rank r of node j starts with part j of n/g of chunk
        (r + 1) mod g, as `hierarchical_all_reduce` leaves it.
    ranks_per_node : int
        Ranks g of a node, a divisor of n.

    Returns
    -------
    iterator of Round
        n/g - 1 rounds between, then g - 1 inside.

    Examples
    --------
    >>> sum(1 for _ in hierarchical_all_gather(ranks=32, elements=64, ranks_per_node=8))
    10
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


def _runs(
    first: NDArray[np.int64], count: int, parts: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """First part and the one after the last of ``count`` parts round a circle, cut at its seam; and whose."""
    last = first + count
    wraps = np.flatnonzero(last > parts)
    start = np.concatenate([first, np.zeros(wraps.size, dtype=np.int64)])
    stop = np.concatenate([np.minimum(last, parts), last[wraps] - parts])
    return start, stop, np.concatenate([np.arange(first.size), wraps])


def _chunks(
    source: NDArray[np.int64], to: NDArray[np.int64], row: NDArray[np.int64], chunk: NDArray[np.int64],
    cut: NDArray[np.int64], elements: int,
) -> Round:  # fmt: skip
    """Round in which every rank sends several chunks to one other."""
    many = row.shape[1]
    start, stop = (row * elements + cut[chunk]).ravel(), (row * elements + cut[chunk + 1]).ravel()
    return messages(np.repeat(source, many), np.repeat(to, many), start, stop, False)
