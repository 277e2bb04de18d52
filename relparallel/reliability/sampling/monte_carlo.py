"""Crude Monte Carlo: sample states of the network, count those in which the terminals are cut off.

Sixty-four samples share a machine word: bit b of a link's word says whether the link is up in
sample b.
"""

import numba
import numpy as np
from numpy.typing import NDArray

from relparallel.reliability.bounding.cut_families import rows_of
from relparallel.reliability.problem import Problem

_BLOCK = 8  # words handled together

Words = NDArray[np.uint64]
Chunk = tuple[int, np.random.Generator]


def count_failures(problem: Problem, chunk: Chunk) -> int:
    """Sample one chunk and count the samples in which some terminals cannot communicate."""
    size, rng = chunk
    links = sample(problem.link[:, 0], size, rng)
    nodes = sample(problem.node[:, 0], size, rng)
    works = np.bitwise_and.reduce(nodes[problem.terminals], axis=0)
    if problem.terminals.size > 1:
        order = np.arange(len(problem.node))
        rows = rows_of(order.size, problem.edges)
        ends = problem.terminals, np.array(_sources(problem))
        works = _all_joined(*rows, order, problem.transit, *ends, nodes, links)
    return size - int(np.bitwise_count(works).sum())


def _sources(problem: Problem) -> list[int]:
    """Terminals to start from so that reaching all others means that every pair communicates.

    One that forwards, or whose only link leads to everything it can reach, speaks for all. Else two
    terminals that forward nothing may each reach a third through different parts of the network.
    """
    terminals = problem.terminals.tolist()
    links = np.bincount(problem.edges.ravel(), minlength=len(problem.node))
    speakers = [v for v in terminals if problem.transit[v] or links[v] <= 1]
    return (speakers or terminals)[:1] if speakers or len(terminals) <= 2 else terminals[:-1]


def sample(up: NDArray[np.float64], size: int, rng: np.random.Generator) -> Words:
    """One row of packed samples per part; parts that are certain take no random numbers."""
    words = np.empty((len(up), -(-size // 64)), dtype=np.uint64)
    for row, chance in zip(words, up, strict=True):
        row[:] = pack(rng.random(size) < chance if 0 < chance < 1 else np.full(size, chance == 1))
    return words


def pack(samples: NDArray[np.bool_]) -> Words:
    """Sixty-four samples per word, the last word filled with zeros."""
    padded = np.zeros(-(-samples.size // 64) * 64, dtype=bool)
    padded[: samples.size] = samples
    return np.packbits(padded).view(np.uint64)


@numba.njit(cache=True)
def _all_joined(indptr, indices, pair, order, transit, hosts, sources, nodes, pairs):  # type: ignore[no-untyped-def]
    """Words of bits that are 1 where all hosts work and every node of ``sources`` reaches them.

    ``pair[arc]`` is the row of ``pairs``, ``order`` the nodes in the order of the sweeps.
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
            _flood(
                indptr, indices, pair, order, transit, source, nodes, pairs, first, width, reached
            )
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
    """Write where nodes are reached from the source, sweeping out and in until nothing grows."""
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
