"""Collective communication as rounds of messages: executed, counted and priced from one generator.

n ranks each have a vector of N elements; a message takes alpha (``latency``) and beta (1 /
``bandwidth``) for every byte. A new algorithm is one generator of rounds under ``@algorithm(kind,
name)`` in ``algorithms.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Any, Final, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from relparallel._checks import (
    MOST_BYTES,
    MOST_DEVICES,
    reals,
    record,
    require_instance,
    require_int,
    require_number,
    require_real,
)

Whole = NDArray[np.int64]
Generator = TypeVar("Generator", bound=Callable[..., "Iterator[Round]"])
COLLECTIVES: Final[dict[str, dict[str, Callable[..., Iterator[Round]]]]] = {}
"""Generators of rounds, by kind of collective and by algorithm."""
_MOST_ELEMENTS: Final = 2**38  # times the ranks still an int64
_LATENCIES: Final = ("latency", "network_latency", "launch")
_BANDWIDTHS: Final = ("bandwidth", "network_bandwidth")


def algorithm(kind: str, name: str) -> Callable[[Generator], Generator]:
    """Enter a generator of rounds under a kind of collective and a name."""

    def enter(generator: Generator) -> Generator:
        COLLECTIVES.setdefault(kind, {})[name] = generator
        return generator

    return enter


@dataclass(frozen=True, kw_only=True, slots=True)
class Round:
    """Messages that travel at the same time; message i carries elements start[i] ... stop[i] - 1.

    The receiver adds what arrives to what it has where ``reduce`` is True, and replaces it
    otherwise.
    """

    source: Whole
    destination: Whole
    start: Whole
    stop: Whole
    reduce: bool

    @property
    def elements(self) -> Whole:
        """Elements in each message."""
        return self.stop - self.start


@algorithm("reduce_scatter", "ring")
def ring_reduce_scatter(ranks: int, elements: int) -> Iterator[Round]:
    """The n - 1 rounds after which rank r holds the sum of chunk (r + 1) mod n."""
    require_group(ranks, elements)
    return _ring(ranks, elements, first=0, reduce=True)


@algorithm("all_gather", "ring")
def ring_all_gather(ranks: int, elements: int) -> Iterator[Round]:
    """The n - 1 rounds that spread chunk (r + 1) mod n of every rank r to all ranks."""
    require_group(ranks, elements)
    return _ring(ranks, elements, first=1, reduce=False)


@algorithm("all_reduce", "ring")
def ring_all_reduce(ranks: int, elements: int) -> Iterator[Round]:
    """Return the 2 (n - 1) rounds after which every rank holds the sum of all vectors.

    Parameters
    ----------
    ranks, elements : int
        Ranks n of the ring, and elements N of each vector, each at least 1; n need not divide N.

    Returns
    -------
    iterator of Round
        A reduce-scatter, then an all-gather: every rank sends 2 (n - 1)/n N elements where n
        divides N. Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms", 2009.

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
    >>> execute(ring_all_reduce(ranks=2, elements=2), [[1, 2], [10, 20]]).tolist()
    [[11.0, 22.0], [11.0, 22.0]]
    """
    held = np.array(require_real(vectors=vectors))
    if held.ndim != 2:
        raise ValueError(
            f"vectors must have two dimensions (ranks, elements), got shape {held.shape}"
        )
    for step in checked(rounds):
        messages = list(zip(step.source, step.destination, step.start, step.stop, strict=True))
        payloads = [held[source, start:stop].copy() for source, _, start, stop in messages]
        for (_, destination, start, stop), payload in zip(messages, payloads, strict=True):
            held[destination, start:stop] = payload + step.reduce * held[destination, start:stop]
    return held


def bytes_sent(
    rounds: Iterable[Round], ranks: int, element_bytes: float = 2
) -> NDArray[np.float64]:
    """Count the bytes that every rank sends.

    Parameters
    ----------
    rounds, ranks, element_bytes : iterable of Round, int, float
        Messages, round by round; ranks n, at least 1; bytes of one element, above 0.

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
    for step in checked(rounds):
        total += np.bincount(step.source, weights=step.elements, minlength=ranks)
    return total * element_bytes


@record(eq=False)
class Links:
    """Latency and bandwidth inside a node and between nodes: numbers, or arrays of equal shape.

    Parameters
    ----------
    latency, bandwidth : array_like
        Of a rank to the ranks of its node: alpha [s] and 1/beta [bytes/s].
    network_latency, network_bandwidth : array_like
        Of a node to the others: alpha [s] and 1/beta [bytes/s], which the ranks of the node share.
        Where s rings leave a node at once, each has 1/s of it.
    launch : array_like
        Of a collective before its first round [s].
    """

    latency: Any = reals(at_least=0)
    bandwidth: Any = reals(above=0)
    network_latency: Any = reals(at_least=0)
    network_bandwidth: Any = reals(above=0)
    launch: Any = reals(default=0.0, at_least=0)

    def __post_init__(self) -> None:
        for name in (*_LATENCIES, *_BANDWIDTHS):
            object.__setattr__(self, name, require_real(**{name: getattr(self, name)}))


def rounds_time(
    rounds: Iterable[Round], ranks_per_node: int, links: Links, *, element_bytes: float = 2
) -> float:
    """Price rounds on two levels of links.

    Parameters
    ----------
    rounds, ranks_per_node : iterable of Round, int
        Messages, round by round; ranks are numbered node by node, so many in each.
    links, element_bytes : Links, float
        One set of numbers, and bytes of one element, above 0.

    Returns
    -------
    float
        Seconds. A round lasts until both levels are done: alpha and the bytes of the rank that
        sends most inside its node, and alpha and the bytes of the node that sends most to other
        nodes.

    Examples
    --------
    >>> links = Links(latency=0, bandwidth=4e9, network_latency=1, network_bandwidth=1e9)
    >>> rounds_time(ring_all_reduce(ranks=4, elements=10**9), 2, links, element_bytes=4)
    12.0
    """
    require_instance(Iterable, rounds=rounds)
    require_int(ranks_per_node=ranks_per_node, at_least=1, at_most=MOST_DEVICES)
    require_number(element_bytes=element_bytes, above=0, at_most=MOST_BYTES)
    require_instance(Links, links=links)
    if any(np.ndim(getattr(links, name)) for name in _LATENCIES + _BANDWIDTHS):
        raise ValueError(f"links must hold one number each, got {links!r}")
    inside, between = (
        (links.latency, links.bandwidth),
        (links.network_latency, links.network_bandwidth),
    )
    seconds = [
        max(_level(*inside, step.source, near, sent), _level(*between, node, ~near, sent))
        for step in rounds
        for sent in [require_instance(Round, rounds=step).elements * element_bytes]
        for node in [step.source // ranks_per_node]
        for near in [node == step.destination // ranks_per_node]
    ]
    return float(links.launch + sum(seconds)) if seconds else 0.0


def _level(
    latency: float,
    bandwidth: float,
    sender: NDArray[np.int64],
    here: NDArray[np.bool_],
    sent: NDArray[np.float64],
) -> float:
    """Seconds of the messages on one level: those of the sender with most; 0 if there is none."""
    if not here.any():
        return 0.0
    return float(latency + np.bincount(sender[here], weights=sent[here]).max() / bandwidth)


def _ring(ranks: int, elements: int, first: int, reduce: bool) -> Iterator[Round]:
    """Rank r passes chunk r + first - k on to rank r + 1 in round k."""
    rank = np.arange(ranks, dtype=np.int64)
    cut = bounds(ranks, elements)
    for step in range(ranks - 1):
        chunk = (rank + first - step) % ranks
        yield messages(rank, (rank + 1) % ranks, cut[chunk], cut[chunk + 1], reduce)


def checked(rounds: Any) -> Iterator[Round]:
    """Yield the rounds, refusing anything else."""
    require_instance(Iterable, rounds=rounds)
    for step in rounds:
        yield require_instance(Round, rounds=step)


def require_group(ranks: int, elements: int, ranks_per_node: int = 1) -> int:
    """Check the size of a collective; return the ranks per node."""
    require_int(ranks=ranks, at_least=1, at_most=MOST_DEVICES)
    require_int(elements=elements, at_least=1, at_most=_MOST_ELEMENTS)
    require_int(ranks_per_node=ranks_per_node, at_least=1, at_most=MOST_DEVICES)
    if ranks % ranks_per_node:
        raise ValueError(f"ranks_per_node must divide ranks = {ranks}, got {ranks_per_node}")
    return ranks_per_node


def bounds(parts: int, elements: int) -> Whole:
    """Where the parts of a vector start, and where the last ends."""
    return np.arange(parts + 1, dtype=np.int64) * elements // parts


def messages(
    source: Whole, destination: Whole, start: Whole | int, stop: Whole | int, reduce: bool
) -> Round:
    """Round of these messages; one start and stop may stand for all."""
    first, last = np.broadcast_to(start, source.shape), np.broadcast_to(stop, source.shape)
    return Round(source=source, destination=destination, start=first, stop=last, reduce=reduce)


def placed(rounds: Iterable[Round], ranks: Whole, first: int = 0) -> Iterator[Round]:
    """Let the given ranks do what ranks 0, 1, ... do, with elements that start at ``first``."""
    for step in rounds:
        ends = ranks[step.source], ranks[step.destination]
        yield messages(*ends, step.start + first, step.stop + first, step.reduce)


def together(groups: Iterable[Iterable[Round]]) -> Iterator[Round]:
    """Rounds of groups that work at the same time; all have equally many of the same kind."""
    for steps in zip(*groups, strict=True):
        columns = ("source", "destination", "start", "stop")
        joined = {name: np.concatenate([getattr(step, name) for step in steps]) for name in columns}
        yield Round(**joined, reduce=steps[0].reduce)
