"""Availability if parts share repair crews, stand by, or fail together: a Markov chain over counts.

A state is how many parts of each class are down. Lives and repairs are exponential, and crews serve
the classes in the order in which they are listed: a crew leaves a part for one of an earlier class.

========  ===============================================  =====================================
letter    meaning                                          here
========  ===============================================  =====================================
n, m      parts installed, parts that have to be up        ``count``, ``needed``
l, u      failures and repairs per second                  1/``mtbf``, 1/``mttr``
d         failure rate of a spare over that of a worker    ``dormancy``: 0 cold, 1 hot
b         share of a part's failures that take its class   ``common``: the beta factor
r         repairs at once                                  ``crews``
========  ===============================================  =====================================
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import block_array, csr_array

from relparallel._checks import instance, real, record, require_int, whole
from relparallel.reliability.repair.stationary import stationary_distribution

FloatArray = NDArray[np.float64]
_MOST_STATES: Final = 300_000


@record
class RepairedParts:
    """Equal parts of which ``needed``, the first to work, have to be up; those beyond are spares.

    ``mtbf`` is the mean life of a working part, ``mttr`` the mean repair by one crew [s];
    ``dormancy`` the failure rate of a spare over that of a working part, inside [0, 1]; ``common``
    the share of the failures of a part that take the whole class with it, inside [0, 1).

    >>> RepairedParts(name="spine", count=4, mtbf=8.6e6, mttr=8.6e4, needed=3).needed
    3
    """

    name: str = instance(str)
    count: int = whole(at_least=1, at_most=_MOST_STATES)
    mtbf: float = real(above=0)
    mttr: float = real(above=0)
    needed: int = whole(at_least=1, default=1)
    dormancy: float = real(at_least=0, at_most=1, default=1.0)
    common: float = real(at_least=0, below=1, default=0.0)

    def __post_init__(self) -> None:
        require_int(needed=self.needed, at_least=1, at_most=self.count)


def repair_chain(parts: Sequence[RepairedParts], crews: int | None = None) -> RepairChain:
    """Parts of several classes, repaired by crews that they share, as a Markov chain.

    The first class is the first to be repaired, and the system is up while every class has what it
    needs; where ``crews`` is omitted, all that is down is under repair. With k of n parts down,
    min(n - k, m) work and the rest stands by. One fails at rate l (1 - b) min(n - k, m) + l d max(n
    - k - m, 0), all together at rate l b, and min(k, crews left) are repaired at rate u each.
    States: the product of n + 1 over the classes. Trivedi, Bobbio, "Reliability and Availability
    Engineering", 2017, chapters 9 and 10; Fleming, "A reliability model for common mode failures",
    General Atomic GA-A13284, 1975 (beta factor).

    >>> pair = RepairedParts(name="spine", count=2, mtbf=100.0, mttr=1.0)
    >>> chain = repair_chain([pair], crews=1)
    >>> round(chain.unavailability, 9), round(chain.mttf, 6)  # (3 l + u) / (2 l^2)
    (0.00019604, 5150.0)
    """
    counts = np.array([part.count for part in parts])
    states = float(np.prod(counts + 1.0))
    if states > _MOST_STATES:
        raise ValueError(f"parts must make at most {_MOST_STATES} states, got {states:.3g}")
    # The largest class varies slowest: rates then run to near neighbours.
    order = np.argsort(-counts, kind="stable")
    down = np.empty((int(states), len(parts)), dtype=np.int64)
    down[:, order] = np.stack(np.unravel_index(np.arange(int(states)), counts[order] + 1), axis=1)
    stride = np.empty_like(counts)
    stride[order] = int(states) // np.cumprod(counts[order] + 1)
    moves = _moves(parts, down, stride, counts.sum() if crews is None else crews)
    return RepairChain(parts=tuple(parts), down=down, generator=_generator(moves, int(states)))


@dataclass(frozen=True, kw_only=True, eq=False)
class RepairChain:
    """What a system of repaired parts does over time, from the rates between its states [1/s].

    ``down`` [states, classes]: parts of each class that are down, none in the first state.

    >>> single = repair_chain([RepairedParts(name="leaf", count=1, mtbf=99.0, mttr=1.0)])
    >>> round(single.unavailability, 12), round(single.mtbf, 6), round(single.mttr, 6)
    (0.01, 100.0, 1.0)
    """

    parts: tuple[RepairedParts, ...]
    down: NDArray[np.int64]
    generator: csr_array

    @cached_property
    def up(self) -> NDArray[np.bool_]:
        """Whether each state has what every class needs, bool [states]."""
        spare = np.array([part.count - part.needed for part in self.parts])
        return np.asarray((self.down <= spare).all(axis=1), dtype=np.bool_)

    @cached_property
    def distribution(self) -> FloatArray:
        """Long-run share of time in each state, [states]."""
        return stationary_distribution(self.generator)

    @property
    def unavailability(self) -> float:
        """Long-run share of time down, a sum of positive terms."""
        return float(self.distribution[~self.up].sum())

    @property
    def availability(self) -> float:
        """Long-run share of time up."""
        return float(self.distribution[self.up].sum())

    @property
    def frequency(self) -> float:
        """Failures of the system per second in the long run."""
        return float(self.distribution[self.up] @ self._failing()[self.up])

    @property
    def mtbf(self) -> float:
        """Mean time from a failure of the system to the next one [s], 1 / frequency."""
        return 1.0 / self.frequency

    @property
    def mttr(self) -> float:
        """Mean time that the system stays down [s], unavailability / frequency."""
        return self.unavailability / self.frequency

    @property
    def mttf(self) -> float:
        """Mean time to the first failure of the system, all parts up at the start [s]."""
        # A failure in the place of all states that are down, after which a new start takes one
        # second.
        inside, failing = self.generator[self.up][:, self.up], self._failing()[self.up]
        blocks: Any = [
            [None, csr_array(np.eye(1, len(failing)))],
            [csr_array(failing[:, None]), inside],
        ]
        share = stationary_distribution(block_array(blocks, format="csr"))
        return float(share[1:].sum() / share[0])

    def _failing(self) -> FloatArray:
        """Rate at which each state leads to one that is down."""
        rates: FloatArray = self.generator @ (~self.up).astype(np.float64)
        return np.where(self.up, rates, 0.0)


def _moves(
    parts: Sequence[RepairedParts], down: NDArray[np.int64], stride: NDArray[np.int64], crews: int
) -> list[tuple[Any, Any, Any]]:
    """Rates as (from, to, rate), all above 0."""
    here = np.arange(len(down))
    moves: list[tuple[Any, Any, Any]] = []
    free: Any = np.full(len(down), crews)
    for i, part in enumerate(parts):
        k = down[:, i]
        alive = part.count - k
        working, waiting = np.minimum(alive, part.needed), np.maximum(alive - part.needed, 0)
        single = ((1 - part.common) * working + part.dormancy * waiting) / part.mtbf
        served = np.minimum(k, free)
        free = free - served
        moves.append((here, here + stride[i], single))
        moves.append((here, here + alive * stride[i], part.common * (alive > 0) / part.mtbf))
        moves.append((here, here - stride[i], served / part.mttr))
    return [(start[rate > 0], end[rate > 0], rate[rate > 0]) for start, end, rate in moves]


def _generator(moves: list[tuple[Any, Any, Any]], states: int) -> csr_array:
    """Sparse rates with the diagonal that makes rows sum to 0."""
    start, end, rate = (np.concatenate(column) for column in zip(*moves, strict=True))
    out, here = np.bincount(start, rate, states), np.arange(states)
    ends = (np.concatenate([start, here]), np.concatenate([end, here]))
    return csr_array((np.concatenate([rate, -out]), ends), shape=(states, states))
