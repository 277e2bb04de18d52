"""Collectives beside the ring, as message rounds: trees, halving and doubling, nodes, exchanges.

Ranks are numbered node by node. A reduction between nodes happens chunk by chunk: the ranks of a
node first scatter what they have, the ranks with the same number in all nodes reduce their chunk,
and the node gathers. In an all-to-all the vector of every rank has a row of N elements for each
rank that sends: row i holds what rank i sends, its chunk j goes to rank j. So a message keeps its
place in the vector like any other.
"""

from collections.abc import Callable, Iterator
from functools import partial
from itertools import chain
from typing import Any

import numpy as np

from relparallel._checks import MOST_DEVICES, require_int
from relparallel.parallel.collectives import (
    Round,
    Whole,
    algorithm,
    bounds,
    messages,
    placed,
    require_group,
    ring_all_gather,
    ring_all_reduce,
    ring_reduce_scatter,
    together,
)


@algorithm("all_reduce", "tree")
def tree_all_reduce(
    ranks: int, elements: int, ranks_per_node: int | None = None
) -> Iterator[Round]:
    """Reduce over a binomial tree to rank 0, broadcast back the same way, whole vectors each time.

    With nodes of g ranks the tree joins first these, then the first ranks of the nodes:
    2 (ceil(log2 g) + ceil(log2 n/g)) rounds, for short vectors.
    """
    node = require_group(ranks, elements, ranks if ranks_per_node is None else ranks_per_node)
    up = list(tree_edges(ranks, node))
    towards_root = (messages(child, parent, 0, elements, True) for child, parent in up)
    back = (messages(parent, child, 0, elements, False) for child, parent in reversed(up))
    return chain(towards_root, back)


@algorithm("all_reduce", "double_tree")
def double_tree_all_reduce(ranks: int, elements: int, pieces: int = 1) -> Iterator[Round]:
    """Reduce and broadcast each half of the vector over a binary tree of its own, in k pieces.

    2 (D + k - 1) rounds for trees of depth D = ceil(log2 n). Leaves of one tree are inner ranks of
    the other, so no rank ever sends more than two pieces of N/(2 k): at most 2 (D + k - 1)(alpha +
    beta N/k). Sanders, Speck and Traff, "Two-tree algorithms for full bandwidth broadcast,
    reduction and scan", 2009.
    """
    require_group(ranks, elements)
    require_int(pieces=pieces, at_least=1, at_most=MOST_DEVICES)
    depth, parent = _binary_tree(ranks)
    rank = np.arange(ranks)
    other = ranks - 1 - rank if ranks % 2 == 0 else (rank + 1) % ranks
    halves = bounds(2, elements)
    trees = []
    for number, half in ((rank, 0), (other, 1)):
        cut = halves[half] + bounds(pieces, int(halves[half + 1] - halves[half]))
        trees.append((number, cut))
    deepest = int(depth.max())

    def waves(reduce: bool) -> Iterator[Round]:
        wait = deepest - depth if reduce else depth - 1
        for step in range(deepest + pieces - 1 if ranks > 1 else 0):
            piece = step - wait
            child = np.flatnonzero((rank > 0) & (piece >= 0) & (piece < pieces))
            yield from together(
                [
                    [messages(*(ends if reduce else ends[::-1]), cut[k], cut[k + 1], reduce)]
                    for k in [piece[child]]
                    for number, cut in trees
                    for ends in [(number[child], number[parent[child]])]
                ]
            )

    return chain(waves(True), waves(False))


@algorithm("all_reduce", "halving_doubling")
def halving_doubling_all_reduce(
    ranks: int, elements: int, ranks_per_node: int | None = None
) -> Iterator[Round]:
    """Swap halves, quarters, ... with ever farther ranks, then double what one has on the way back.

    2 (log2 g + log2 n/g) rounds with the bytes of the ring, the large halves inside nodes of g
    ranks; 2 more for each of g and n/g that is no power of two, as the surplus ranks hand their
    vector to a neighbour. Thakur, Rabenseifner and Gropp, "Optimization of collective communication
    operations in MPICH", 2005.
    """
    node = require_group(ranks, elements, ranks if ranks_per_node is None else ranks_per_node)
    core = _power_below(node)
    cut = bounds(core, elements)
    between = [
        (np.arange(rank, ranks, node), int(cut[chunk]), int(cut[chunk + 1] - cut[chunk]))
        for rank, chunk in zip(_core_ranks(node), _chunk_of(core), strict=True)
    ]
    return chain(
        in_nodes(ranks, node, _fold, elements, True),
        in_nodes(ranks, node, _halving, elements),
        together(
            placed(_all_halving_doubling(len(ranks_), size), ranks_, first)
            for ranks_, first, size in between
            if size
        ),
        in_nodes(ranks, node, _doubling, elements),
        in_nodes(ranks, node, _fold, elements, False),
    )


@algorithm("all_reduce", "hierarchical")
def hierarchical_all_reduce(
    ranks: int, elements: int, ranks_per_node: int, pieces: int | None = None
) -> Iterator[Round]:
    """Reduce-scatter inside every node, all-reduce each chunk between the nodes, all-gather inside.

    Between nodes goes a ring, or a double binary tree of so many pieces. Inside 2 (g - 1)/g N bytes
    a rank; between, 2 (n/g - 1)/(n/g) N bytes a node. Jia et al., "Highly scalable deep learning
    training system with mixed-precision", 2018.
    """
    node = require_group(ranks, elements, ranks_per_node)
    reduce: Callable[[int, int], Iterator[Round]] = ring_all_reduce
    if pieces is not None:
        require_int(pieces=pieces, at_least=1, at_most=MOST_DEVICES)
        reduce = partial(double_tree_all_reduce, pieces=pieces)
    return chain(
        in_nodes(ranks, node, ring_reduce_scatter, elements),
        between_nodes(ranks, node, reduce, elements),
        in_nodes(ranks, node, ring_all_gather, elements),
    )


@algorithm("all_reduce", "recursive_doubling")
def recursive_doubling_all_reduce(
    ranks: int, elements: int, ranks_per_node: int | None = None
) -> Iterator[Round]:
    """Swap whole vectors with ranks 1, 2, 4, ... places off, first in nodes of g: for the shortest.

    log2 g (alpha + beta N) inside, log2 n/g (A + g N/C) between; 2 rounds more for each of g and
    n/g that is no power of two. Thakur, Rabenseifner and Gropp 2005, section 4.5.
    """
    node = require_group(ranks, elements, ranks if ranks_per_node is None else ranks_per_node)
    between = together(
        placed(_exchange(ranks // node, elements), np.arange(rank, ranks, node))
        for rank in range(node)
    )
    return chain(in_nodes(ranks, node, _exchange, elements), between)


def in_nodes(
    ranks: int, node: int, rounds: Callable[..., Iterator[Round]], *given: Any
) -> Iterator[Round]:
    """The same rounds of g ranks in every node."""
    return together(
        placed(rounds(node, *given), first + np.arange(node)) for first in range(0, ranks, node)
    )


def between_nodes(
    ranks: int, node: int, rounds: Callable[..., Iterator[Round]], elements: int, roll: int = 0
) -> Iterator[Round]:
    """Rounds of ranks with the same number in all nodes, on the chunk that a ring inside leaves."""
    cut = bounds(node, elements)
    chunks = [((rank + 1) % node, np.arange(rank, ranks, node)) for rank in range(node)]
    return together(
        placed(
            rounds(ranks // node, int(cut[chunk + 1] - cut[chunk])),
            np.roll(same, roll),
            int(cut[chunk]),
        )
        for chunk, same in chunks
        if cut[chunk + 1] > cut[chunk]
    )


def tree_edges(ranks: int, node: int) -> Iterator[tuple[Whole, Whole]]:
    """Children and parents of each level of a binomial tree, the lowest level first."""
    whole_nodes, root = np.arange(0, ranks, node, dtype=np.int64), np.zeros(1, dtype=np.int64)
    for first, size, stride in ((whole_nodes, node, 1), (root, ranks // node, node)):
        reach = 1
        while reach < size:
            child = np.arange(reach, size, 2 * reach) * stride
            every = (first[:, None] + child).ravel()
            yield every, every - reach * stride
            reach *= 2


def _binary_tree(ranks: int) -> tuple[Whole, Whole]:
    """Depth and parent of every rank; odd ranks are leaves, rank 0 is the root."""
    rank = np.arange(ranks, dtype=np.int64)
    bit = rank & -rank
    above = (rank ^ bit) | (bit << 1)
    parent = np.where(above < ranks, above, rank ^ bit)
    depth, at = np.zeros(ranks, dtype=np.int64), rank
    while at.any():
        depth += at > 0
        at = parent[at]
    return depth, parent


def _power_below(ranks: int) -> int:
    """Largest power of two that is not above."""
    return 1 << (ranks.bit_length() - 1)


def _core_ranks(ranks: int) -> Whole:
    """A power of two of ranks: of the first ones every other, then all."""
    surplus = ranks - _power_below(ranks)
    return np.concatenate([np.arange(0, 2 * surplus, 2), np.arange(2 * surplus, ranks)])


def _fold(ranks: int, elements: int, reduce: bool) -> Iterator[Round]:
    """Surplus ranks hand their vectors to a neighbour, or get the sum from it."""
    keeps = np.arange(0, 2 * (ranks - _power_below(ranks)), 2)
    if keeps.size:
        ends = (keeps + 1, keeps) if reduce else (keeps, keeps + 1)
        yield messages(*ends, 0, elements, reduce)


def _chunk_of(core: int) -> Whole:
    """The chunk that each of 2**k ranks has after halving: its number with bits reversed."""
    chunk = np.zeros(core, dtype=np.int64)
    for bit in range(core.bit_length() - 1):
        chunk = 2 * chunk + (np.arange(core) >> bit & 1)
    return chunk


def _spans(core: int, level: int) -> Whole:
    """First of the core / 2**level neighbouring chunks that each rank still works on."""
    width = core >> level
    return _chunk_of(core) // width * width


def _halving(ranks: int, elements: int) -> Iterator[Round]:
    """Swap the half that the partner keeps, with partners 1, 2, 4, ... places off."""
    number = _core_ranks(ranks)
    core, cut = number.size, bounds(number.size, elements)
    for level in range(core.bit_length() - 1):
        partner = np.arange(core) ^ (1 << level)
        theirs = _spans(core, level + 1)[partner]
        yield messages(
            number, number[partner], cut[theirs], cut[theirs + (core >> (level + 1))], True
        )


def _doubling(ranks: int, elements: int) -> Iterator[Round]:
    """Give the partner all that one has, the farthest first."""
    number = _core_ranks(ranks)
    core, cut = number.size, bounds(number.size, elements)
    for level in reversed(range(core.bit_length() - 1)):
        mine = _spans(core, level + 1)
        partner = number[np.arange(core) ^ (1 << level)]
        yield messages(number, partner, cut[mine], cut[mine + (core >> (level + 1))], False)


def _all_halving_doubling(ranks: int, elements: int) -> Iterator[Round]:
    """The whole all-reduce among equal ranks."""
    return chain(
        _fold(ranks, elements, True),
        _halving(ranks, elements),
        _doubling(ranks, elements),
        _fold(ranks, elements, False),
    )


def _exchange(ranks: int, elements: int) -> Iterator[Round]:
    """Whole vectors, with partners 1, 2, 4, ... places off."""
    number = _core_ranks(ranks)
    core = np.arange(number.size)
    swaps = (
        messages(number, number[core ^ (1 << level)], 0, elements, True)
        for level in range(number.size.bit_length() - 1)
    )
    return chain(_fold(ranks, elements, True), swaps, _fold(ranks, elements, False))


@algorithm("all_to_all", "direct")
def direct_all_to_all(ranks: int, elements: int) -> Iterator[Round]:
    """Send every chunk straight to its rank, k ranks on in round k: (n - 1)(alpha + beta N/n)."""
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

    def step(away: int) -> Round:
        origin = (rank - away) % ranks
        start, stop, which = _runs((origin + away + 1) % ranks, ranks - away - 1, ranks)
        row = origin[which] * elements
        return messages(which, (which + 1) % ranks, row + cut[start], row + cut[stop], False)

    return (step(away) for away in range(ranks - 1))


@algorithm("all_to_all", "hierarchical")
def hierarchical_all_to_all(ranks: int, elements: int, ranks_per_node: int) -> Iterator[Round]:
    """Bring chunks first to the rank of the own node that has their receiver's place, then across.

    g - 1 rounds inside, then n/g - 1 between: the network carries what it carries in the direct
    exchange, in g times larger messages. Rajbhandari et al., "DeepSpeed-MoE", ICML 2022.
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
    """Give all one has to the rank 1, 2, 4, ... places back; rank r starts with its part of n.

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

    Rank r of node j starts with part j of n/g of chunk (r + 1) mod g, as the hierarchical
    all-reduce leaves it.
    """
    node = require_group(ranks, elements, ranks_per_node)
    between = between_nodes(ranks, node, ring_all_gather, elements, roll=-1)
    return chain(between, in_nodes(ranks, node, ring_all_gather, elements))


def _runs(first: Whole, count: int, parts: int) -> tuple[Whole, Whole, Whole]:
    """First part and one after the last of ``count`` parts on a circle, cut at its seam; whose."""
    last = first + count
    wraps = np.flatnonzero(last > parts)
    start = np.concatenate([first, np.zeros(wraps.size, dtype=np.int64)])
    stop = np.concatenate([np.minimum(last, parts), last[wraps] - parts])
    return start, stop, np.concatenate([np.arange(first.size), wraps])


def _chunks(
    source: Whole,
    to: Whole,
    row: Whole,
    chunk: Whole,
    cut: Whole,
    elements: int,
) -> Round:
    """Round in which every rank sends several chunks to one other."""
    many = row.shape[1]
    start, stop = (row * elements + cut[chunk]).ravel(), (row * elements + cut[chunk + 1]).ravel()
    return messages(np.repeat(source, many), np.repeat(to, many), start, stop, False)
