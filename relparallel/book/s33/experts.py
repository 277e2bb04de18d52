"""Tokens of experts under a capacity, and the rounds of their exchange."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike, NDArray

from relparallel._checks import (
    require_number,
    require_real,
)
from relparallel.parallel.collectives import Round, messages


def expert_tokens(chosen: ArrayLike, capacity: float | None = None) -> NDArray[np.int64]:
    """Tokens that every rank sends to every rank of an expert-parallel layer.

    Parameters
    ----------
    chosen : array_like of int [ranks, experts]
        Tokens of each rank that its router gives to each expert; rank r holds the r-th experts of a part.
    capacity : float, optional
        Capacity factor c: of the T tokens of a rank an expert takes at most floor(c T/experts), the rest are
        dropped. No limit where omitted.

    Returns
    -------
    numpy.ndarray of int [ranks, ranks]
        From the rank in the row to that in the column; the diagonal stays where it is. Lepikhin et al.,
        "GShard", ICLR 2021, section 2.2 (capacity of each group).

    Examples
    --------
    >>> expert_tokens([[3, 1, 0, 0], [2, 2, 0, 0]], capacity=1.0).tolist()
    [[2, 0], [2, 0]]
    """
    counts = np.asarray(require_real(chosen=chosen, at_least=0))
    if counts.ndim != 2 or 0 in counts.shape or counts.shape[1] % len(counts) or np.any(counts % 1):
        raise ValueError(
            f"chosen must be whole numbers [ranks, experts], so many of them on each rank, got {chosen!r:.80}"
        )
    if capacity is not None:
        require_number(capacity=capacity, above=0)
        counts = np.minimum(counts, np.floor(capacity * counts.sum(axis=1, keepdims=True) / counts.shape[1]))
    held = counts.reshape(len(counts), len(counts), -1)
    return np.asarray(held.sum(axis=2), dtype=np.int64)


def exchange_rounds(tokens: ArrayLike) -> Iterator[Round]:
    """Rounds of an all-to-all with unequal messages, to the rank k places on in round k.

    Parameters
    ----------
    tokens : array_like of int [ranks, ranks]
        Elements from the rank in the row to that in the column.

    Returns
    -------
    iterator of Round
        n - 1 rounds. In the vector of every rank stand all messages, row by row: after them rank j has what
        stands in column j.

    Examples
    --------
    >>> from relparallel.parallel import bytes_sent
    >>> bytes_sent(exchange_rounds([[1, 2, 3], [0, 0, 4], [5, 0, 0]]), 3, element_bytes=1).tolist()
    [5.0, 4.0, 5.0]
    """
    size = np.asarray(require_real(tokens=tokens, at_least=0))
    if size.ndim != 2 or size.shape[0] != size.shape[1] or np.any(size % 1):
        raise ValueError(f"tokens must be whole numbers [ranks, ranks], got {tokens!r:.80}")
    n, end = len(size), np.cumsum(size.astype(np.int64)).reshape(size.shape)
    rank = np.arange(n, dtype=np.int64)

    def step(away: int) -> Round:
        to = (rank + away) % n
        stop = end[rank, to]
        return messages(rank, to, stop - size[rank, to].astype(np.int64), stop, False)

    return (step(away) for away in range(1, n))
