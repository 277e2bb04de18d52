"""Rounds of several groups at once: renumbered, moved along the vector, and put side by side."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

import numpy as np
from numpy.typing import NDArray

from relparallel._checks import require_int
from relparallel.parallel._arguments import MOST_DEVICES
from relparallel.parallel.collectives import Round

_MOST_ELEMENTS: Final = 2**38  # times the ranks still an int64


def require_group(ranks: int, elements: int, ranks_per_node: int = 1) -> int:
    """Check the size of a collective; return the ranks per node."""
    require_int(ranks=ranks, at_least=1, at_most=MOST_DEVICES)
    require_int(elements=elements, at_least=1, at_most=_MOST_ELEMENTS)
    require_int(ranks_per_node=ranks_per_node, at_least=1, at_most=MOST_DEVICES)
    if ranks % ranks_per_node:
        raise ValueError(f"ranks_per_node must divide ranks = {ranks}, got {ranks_per_node}")
    return ranks_per_node


def bounds(parts: int, elements: int) -> NDArray[np.int64]:
    """Where the parts of a vector start, and where the last ends."""
    return np.arange(parts + 1, dtype=np.int64) * elements // parts


def messages(
    source: NDArray[np.int64],
    destination: NDArray[np.int64],
    start: NDArray[np.int64] | int,
    stop: NDArray[np.int64] | int,
    reduce: bool,
) -> Round:
    """Round of these messages; one start and stop may stand for all."""
    first, last = np.broadcast_to(start, source.shape), np.broadcast_to(stop, source.shape)
    return Round(source=source, destination=destination, start=first, stop=last, reduce=reduce)


def placed(rounds: Iterable[Round], ranks: NDArray[np.int64], first: int = 0) -> Iterator[Round]:
    """Let the given ranks do what ranks 0, 1, ... do, with elements that start at ``first``."""
    for step in rounds:
        yield Round(
            source=ranks[step.source], destination=ranks[step.destination],
            start=step.start + first, stop=step.stop + first, reduce=step.reduce,
        )  # fmt: skip


def together(groups: Iterable[Iterable[Round]]) -> Iterator[Round]:
    """Rounds of groups that work at the same time; all have equally many of the same kind."""
    for steps in zip(*groups, strict=True):
        columns = ("source", "destination", "start", "stop")
        joined = {name: np.concatenate([getattr(step, name) for step in steps]) for name in columns}
        yield Round(**joined, reduce=steps[0].reduce)
