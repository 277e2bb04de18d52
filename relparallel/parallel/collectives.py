"""Collective communication as rounds of messages: executed, counted and priced from one generator.

========  ==========================================  ======================
letter    meaning                                     argument
========  ==========================================  ======================
n         ranks of the group                          ``ranks``
N         elements of each rank's vector              ``elements``
alpha     time before the first byte of a message     ``latency``
beta      seconds per byte                            1 / ``bandwidth``
========  ==========================================  ======================
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from relparallel._checks import require_flag, require_instance, require_int, require_real
from relparallel.parallel._arguments import MOST_BYTES, MOST_DEVICES, require_indices, require_number

_MOST_ELEMENTS: Final = 2**38  # times the ranks still an int64


@dataclass(frozen=True, kw_only=True, slots=True)
class Round:
    """Messages that travel at the same time; message i carries elements start[i] ... stop[i] - 1.

    Parameters
    ----------
    source, destination : numpy.ndarray
        Ranks, int64, shape (messages,).
    start, stop : numpy.ndarray
        First element and the one after the last, int64, shape (messages,).
    reduce : bool
        Whether the receiver adds the message to what it has, or replaces it.

    Examples
    --------
    >>> next(ring_all_reduce(ranks=3, elements=6)).destination.tolist()
    [1, 2, 0]
    """

    source: NDArray[np.int64]
    destination: NDArray[np.int64]
    start: NDArray[np.int64]
    stop: NDArray[np.int64]
    reduce: bool

    def __post_init__(self) -> None:
        require_flag(reduce=self.reduce)
        for name in ("source", "destination", "start", "stop"):
            if require_indices(name, getattr(self, name), _MOST_ELEMENTS + 1).size != np.size(self.source):
                raise ValueError(
                    f"{name} must have one entry per message, as source has, got {getattr(self, name)!r}"
                )
        if np.any(self.stop < self.start):
            raise ValueError(f"stop must not be before start, got {self.stop!r}")

    @property
    def elements(self) -> NDArray[np.int64]:
        """Elements in each message."""
        return self.stop - self.start


def ring_reduce_scatter(ranks: int, elements: int) -> Iterator[Round]:
    """Return the n - 1 rounds after which rank r holds the sum of chunk (r + 1) mod n.

    Parameters
    ----------
    ranks : int
        Ranks n of the ring, at least 1.
    elements : int
        Elements N of each vector, at least 1; chunk i is [i N // n, (i + 1) N // n).

    Returns
    -------
    iterator of Round
        n - 1 rounds of n messages.

    Examples
    --------
    >>> len(list(ring_reduce_scatter(ranks=4, elements=10)))
    3
    """
    require_int(ranks=ranks, at_least=1, at_most=MOST_DEVICES)
    require_int(elements=elements, at_least=1, at_most=_MOST_ELEMENTS)
    return _ring(ranks, elements, first=0, reduce=True)


def ring_all_gather(ranks: int, elements: int) -> Iterator[Round]:
    """Return the n - 1 rounds that spread chunk (r + 1) mod n of every rank r to all ranks.

    Parameters
    ----------
    ranks : int
        Ranks n of the ring, at least 1.
    elements : int
        Elements N of each vector, at least 1; chunk i is [i N // n, (i + 1) N // n).

    Returns
    -------
    iterator of Round
        n - 1 rounds of n messages.

    Examples
    --------
    >>> next(ring_all_gather(ranks=4, elements=8)).start.tolist()
    [2, 4, 6, 0]
    """
    require_int(ranks=ranks, at_least=1, at_most=MOST_DEVICES)
    require_int(elements=elements, at_least=1, at_most=_MOST_ELEMENTS)
    return _ring(ranks, elements, first=1, reduce=False)


def ring_all_reduce(ranks: int, elements: int) -> Iterator[Round]:
    """Return the 2 (n - 1) rounds after which every rank holds the sum of all vectors.

    Parameters
    ----------
    ranks : int
        Ranks n of the ring, at least 1.
    elements : int
        Elements N of each vector, at least 1; n need not divide it.

    Returns
    -------
    iterator of Round
        2 (n - 1) rounds of n messages.

    Notes
    -----
    A reduce-scatter, then an all-gather. Every rank sends 2 (n - 1)/n N elements where n divides N, and
    all together 2 (n - 1) N always.

    References
    ----------
    Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations", 2009.

    Examples
    --------
    >>> execute(ring_all_reduce(ranks=2, elements=3), [[1, 2, 3], [10, 20, 30]]).tolist()
    [[11.0, 22.0, 33.0], [11.0, 22.0, 33.0]]
    """
    return chain(ring_reduce_scatter(ranks, elements), ring_all_gather(ranks, elements))


def execute(rounds: Iterable[Round], vectors: ArrayLike) -> NDArray[np.float64]:
    """Carry out the rounds on real vectors.

    Parameters
    ----------
    rounds : iterable of Round
        Messages, round by round; all messages of a round leave before any arrives.
    vectors : array_like
        One vector per rank, shape (ranks, elements); left as it is.

    Returns
    -------
    numpy.ndarray
        float64, shape (ranks, elements): what every rank holds in the end.

    Examples
    --------
    >>> execute(ring_reduce_scatter(ranks=2, elements=2), [[1, 2], [10, 20]]).tolist()
    [[1.0, 22.0], [11.0, 20.0]]
    """
    held = np.array(require_real(vectors=vectors))
    if held.ndim != 2:
        raise ValueError(f"vectors must have two dimensions (ranks, elements), got shape {held.shape}")
    for step in _checked(rounds):
        messages = list(zip(step.source, step.destination, step.start, step.stop, strict=True))
        payloads = [held[source, start:stop].copy() for source, _, start, stop in messages]
        for (_, destination, start, stop), payload in zip(messages, payloads, strict=True):
            held[destination, start:stop] = payload + step.reduce * held[destination, start:stop]
    return held


def bytes_sent(rounds: Iterable[Round], ranks: int, element_bytes: float = 2) -> NDArray[np.float64]:
    """Count the bytes that every rank sends.

    Parameters
    ----------
    rounds : iterable of Round
        Messages, round by round.
    ranks : int
        Ranks n, at least 1.
    element_bytes : float
        Bytes of one element, above 0.

    Returns
    -------
    numpy.ndarray
        float64, shape (ranks,).

    Examples
    --------
    >>> bytes_sent(ring_all_reduce(ranks=4, elements=1000), ranks=4).tolist()
    [3000.0, 3000.0, 3000.0, 3000.0]
    """
    require_int(ranks=ranks, at_least=1, at_most=MOST_DEVICES)
    require_number(element_bytes=element_bytes, above=0, at_most=MOST_BYTES)
    total = np.zeros(ranks)
    for step in _checked(rounds):
        total += np.bincount(step.source, weights=step.elements, minlength=ranks)
    return total * element_bytes


def communication_time(
    rounds: Iterable[Round], *, latency: float, bandwidth: float, element_bytes: float = 2
) -> float:
    """Price the rounds by the alpha-beta model.

    Parameters
    ----------
    rounds : iterable of Round
        Messages, round by round.
    latency : float
        alpha, seconds before the first byte of a round, at least 0.
    bandwidth : float
        1/beta, bytes per second that a rank can send, above 0.
    element_bytes : float
        Bytes of one element, above 0.

    Returns
    -------
    float
        Seconds.

    Notes
    -----
    A round lasts alpha plus the time of the rank that sends most. For the ring all-reduce this is
    2 (n - 1)(alpha + beta N/n) where n divides N.

    Examples
    --------
    >>> communication_time(ring_all_reduce(ranks=4, elements=1000), latency=0.0, bandwidth=1000.0)
    3.0
    """
    require_number(latency=latency, at_least=0)
    require_number(bandwidth=bandwidth, above=0)
    require_number(element_bytes=element_bytes, above=0, at_most=MOST_BYTES)
    seconds = 0.0
    for step in _checked(rounds):
        busiest = np.bincount(step.source, weights=step.elements).max()
        seconds += latency + busiest * element_bytes / bandwidth
    return float(seconds)


def _ring(ranks: int, elements: int, first: int, reduce: bool) -> Iterator[Round]:
    """Rank r passes chunk r + first - k on to rank r + 1 in round k."""
    rank = np.arange(ranks, dtype=np.int64)
    bounds = np.arange(ranks + 1, dtype=np.int64) * elements // ranks
    for step in range(ranks - 1):
        chunk = (rank + first - step) % ranks
        yield Round(
            source=rank, destination=(rank + 1) % ranks,
            start=bounds[chunk], stop=bounds[chunk + 1], reduce=reduce,
        )  # fmt: skip


def _checked(rounds: Any) -> Iterator[Round]:
    """Yield the rounds, refusing anything else."""
    require_instance(Iterable, rounds=rounds)
    for step in rounds:
        yield require_instance(Round, rounds=step)
