"""Sampled states of a directed network, sixty-four in a machine word."""

from __future__ import annotations

import numpy as np

from relparallel.reliability.directed.arcs import Arcs
from relparallel.reliability.sampling.monte_carlo import pack, sample, spread


def count_cut_off(problem: Arcs, chunk: tuple[int, np.random.Generator]) -> int:
    """Sample one chunk and count the samples in which the source does not reach all it must.

    Where connection is mutual the arcs are gone through backwards as well: all others must reach the source.
    """
    size, rng = chunk
    links, nodes = sample(problem.link[:, 0], size, rng), sample(problem.node[:, 0], size, rng)
    works = pack(np.ones(size, dtype=bool))
    for turned in (False, True)[: 1 + problem.mutual]:
        tails, heads = problem.edges.T[::-1] if turned else problem.edges.T
        arcs = list(zip(tails.tolist(), heads.tolist(), links, strict=True))
        reached = spread(arcs, nodes, problem.source)
        works &= np.bitwise_and.reduce(reached[problem.terminals], axis=0)
    return size - int(np.bitwise_count(works).sum())
