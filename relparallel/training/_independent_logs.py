"""Logs of independent failures that have the failures and repairs of a given one.

The null needs no parameter. Where all nodes that are up fail at one constant rate, and repairs do
not depend on each other, all ways to lay the outages of a log out are equally likely, as long as
no two of one node overlap: each start uniform in the window, at a random node, with a random one of
the repairs. Starts are told to the same unit of time as those of the log. Where the window of a log
begins with its first failure or ends with its last one, one of the starts stands there.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np
from numpy.typing import NDArray

from relparallel.training.outages import Outages

Floats = NDArray[np.float64]

BLOCKS: Final = 12  # parts of the window, each with its own failures where drift is kept
_TRIES: Final = 100  # to lay out an outage where its node is up
_MOST: Final = 10**6  # outages that are laid out at once


def independent(
    log: Outages, rng: np.random.Generator, count: int, *, drift: bool
) -> Iterator[Outages]:
    """So many logs of independent failures, a part of them at a time.

    With ``drift`` every start stays in its own twelfth of the window.
    """
    start, repair = log.start[0], log.end[0] - log.start[0]
    low, width = np.zeros(len(start)), np.full(len(start), log.span)
    if drift:
        width /= BLOCKS
        low = np.minimum(start // width, BLOCKS - 1) * width
    pinned = (start == 0) & (np.arange(len(start)) == 0)
    pinned |= (start == log.span) & (np.arange(len(start)) == len(start) - 1)
    low, width = np.where(pinned, start, low), np.where(pinned, 0.0, width)
    step = _unit(start)
    chunk = max(_MOST // len(start), 1)
    for first in range(0, count, chunk):
        shape = min(chunk, count - first), len(start)
        repairs = rng.permuted(np.broadcast_to(repair, shape), axis=1)
        begin, node = np.empty(shape), np.empty(shape, dtype=np.int64)
        row, place = (each.ravel() for each in np.indices(shape))
        left = np.arange(shape[0])
        for _ in range(_TRIES):
            drawn = low[place] + width[place] * rng.random(place.size)
            if step:
                drawn = np.maximum(start[0] + np.floor((drawn - start[0]) / step) * step, 0.0)
            begin[row, place], node[row, place] = drawn, rng.integers(log.nodes, size=place.size)
            order = np.argsort(node[left] * (2 * log.span) + begin[left], axis=1)
            at, on, long = (
                np.take_along_axis(each[left], order, axis=1) for each in (begin, node, repairs)
            )
            again = (on[:, 1:] == on[:, :-1]) & (at[:, 1:] < at[:, :-1] + long[:, :-1])
            if not again.any():
                break
            which, after = np.nonzero(again)
            row, place = left[which], order[which, after + 1]  # the later one is laid out again
            left = left[again.any(axis=1)]
        yield Outages(begin, begin + repairs, node, log.nodes, log.span)


def _unit(start: Floats) -> float:
    """The time between starts that all others are whole numbers of; 0 where there is none."""
    gaps = np.diff(np.unique(start))
    if len(gaps) < 9:  # too few to tell
        return 0.0
    whole = (start - start[0]) / gaps.min()
    return float(gaps.min()) if (np.abs(whole - whole.round()) < 0.01).all() else 0.0
