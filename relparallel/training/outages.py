"""Outages of nodes, and how many nodes are down over time."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


class Outages(NamedTuple):
    """Outages of one log or of several, one a row; an end that is not known takes no time."""

    start: Floats  # [logs, failures], s since the window began
    end: Floats  # the same
    node: Integers
    nodes: int  # that were watched
    span: float  # length of the window [s]

    @property
    def timed(self) -> bool:
        """Whether any outage takes time."""
        return bool((self.end > self.start).any())

    @property
    def exposure(self) -> float:
        """Time in which nodes of one log could fail, of all together [s]: those that were up."""
        down = np.minimum(self.end[0], self.span) - self.start[0]
        return self.nodes * self.span - float(down.sum())

    def down(self) -> tuple[Floats, Integers]:
        """Lengths of time between changes of the number of nodes down, and that number."""
        many = self.start.shape[1]
        moments = np.minimum(np.concatenate([self.start, self.end], axis=1), self.span)
        order = np.argsort(moments, axis=1, kind="stable")  # of one moment starts come first
        number = np.pad(np.where(order < many, 1, -1).cumsum(axis=1), ((0, 0), (1, 0)))
        moments = np.take_along_axis(moments, order, axis=1)
        return np.diff(moments, axis=1, prepend=0.0, append=self.span), number

    def down_at(self, moments: Floats) -> Floats:
        """Nodes down at moments in order, [logs, moments]."""
        shape = len(self.start), len(moments) + 1
        first = np.arange(shape[0])[:, None] * shape[1]
        started, ended = (
            np.bincount((first + np.searchsorted(moments, each)).ravel(), minlength=np.prod(shape))
            for each in (self.start, self.end)
        )
        return (started - ended).reshape(shape).cumsum(axis=1)[:, :-1].astype(np.float64)

    def distribution(self) -> Floats:
        """Shares of the time of one log with 0 ... K nodes down."""
        time, number = self.down()
        share = np.bincount(number[0], weights=time[0]) / self.span
        return share[: int(np.flatnonzero(share)[-1]) + 1]
