"""Tokens of experts under a capacity, and the rounds of their exchange."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike, NDArray

from relparallel.parallel.collectives import Round, messages


def expert_tokens(chosen: ArrayLike, capacity: float | None = None) -> NDArray[np.int64]:
    """Tokens that every rank (row) sends to every rank (column) of an expert-parallel layer.

    ``chosen`` [ranks, experts] are the tokens of each rank that its router gives to each expert;
    rank r holds the r-th experts of a part. Of the T tokens of a rank an expert takes at most
    floor(c T/experts) under a ``capacity`` factor c, the rest are dropped. Lepikhin et al.,
    "GShard", ICLR 2021, section 2.2 (capacity of each group).

    >>> expert_tokens([[3, 1, 0, 0], [2, 2, 0, 0]], capacity=1.0).tolist()
    [[2, 0], [2, 0]]
    """
    counts = np.asarray(chosen, dtype=float)
    if capacity is not None:
        counts = np.minimum(
            counts, np.floor(capacity * counts.sum(axis=1, keepdims=True) / counts.shape[1])
        )
    held = counts.reshape(len(counts), len(counts), -1)
    return np.asarray(held.sum(axis=2), dtype=np.int64)


def exchange_rounds(tokens: ArrayLike) -> Iterator[Round]:
    """Rounds of an all-to-all with unequal messages, to the rank k places on in round k of n - 1.

    ``tokens`` are the elements from the rank in the row to that in the column. In the vector of
    every rank stand all messages, row by row: after the rounds rank j has what stands in column j.

    >>> from relparallel.parallel import bytes_sent
    >>> bytes_sent(exchange_rounds([[1, 2, 3], [0, 0, 4], [5, 0, 0]]), 3, element_bytes=1).tolist()
    [5.0, 4.0, 5.0]
    """
    size = np.asarray(tokens, dtype=np.int64)
    n, end = len(size), np.cumsum(size).reshape(size.shape)
    rank = np.arange(n, dtype=np.int64)

    def step(away: int) -> Round:
        to = (rank + away) % n
        stop = end[rank, to]
        return messages(rank, to, stop - size[rank, to], stop, False)

    return (step(away) for away in range(1, n))
