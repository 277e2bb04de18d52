"""Multisets of parts that a subsystem can be made of, and the choice of one for every subsystem.

A table has a cell for every amount of every resource. A cell holds the best value within these
amounts, so one table answers every question whose limits it covers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from itertools import combinations_with_replacement
from typing import Any, Final, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from relparallel.optimize._milp import least

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
MOST_CELLS: Final = 2**26  # of all stages: half a gigabyte
MOST_OPTIONS: Final = 5000  # multisets of one subsystem, compared pair by pair


class Options(NamedTuple):
    """What one subsystem can be: ``use[options, resources]`` and ``gain[options]``."""

    use: FloatArray
    gain: FloatArray


class ChoiceTable(NamedTuple):
    """Best value of the first i subsystems, ``stages[i]``, by what they may use over the least."""

    options: Sequence[Options]
    least: IntArray
    shape: tuple[int, ...]
    stages: FloatArray

    @staticmethod
    def of(options: Sequence[Options], limits: IntArray) -> ChoiceTable:
        """Fill the table up to the limits, each at least the sum of the least uses."""
        least = np.array([o.use.min(axis=0) for o in options]).astype(np.int64)
        most = np.array([o.use.max(axis=0) for o in options]).astype(np.int64)
        room = np.minimum(limits, most.sum(axis=0)) - least.sum(axis=0)
        shape = tuple((room + 1).tolist())
        if math.prod(shape) * (len(options) + 1) > MOST_CELLS:
            raise ValueError(
                f"limits must leave a table of at most {MOST_CELLS} cells, got {shape} for "
                f"{len(options)} subsystems; use method='milp'"
            )
        stages = np.zeros((len(options) + 1, math.prod(shape)))
        for i, o in enumerate(options):
            extra = o.use.astype(np.int64) - least[i]
            _extend(stages[i], stages[i + 1], np.array(shape), extra, o.gain)
        return ChoiceTable(options=options, least=least, shape=shape, stages=stages)

    def best(self, limits: IntArray) -> list[int] | None:
        """Option of every subsystem within the limits; None where nothing fits."""
        room = np.minimum(limits - self.least.sum(axis=0), np.array(self.shape) - 1)
        if (room < 0).any() or self.stages[-1][self._cell(room)] == -np.inf:
            return None
        chosen = []
        for i in range(len(self.options) - 1, -1, -1):
            o = self.options[i]
            left = room - (o.use.astype(np.int64) - self.least[i])
            fits = np.flatnonzero((left >= 0).all(axis=1))
            values = self.stages[i][self._cell(left[fits].T)] + o.gain[fits]
            pick = fits[int(values.argmax())]
            chosen.append(int(pick))
            room = left[pick]
        return chosen[::-1]

    def _cell(self, amounts: IntArray) -> IntArray:
        return np.asarray(np.ravel_multi_index(tuple(amounts), self.shape))


@njit(cache=True, fastmath={"nnan", "nsz"})
def _extend(before, after, shape, extra, gain):  # type: ignore[no-untyped-def]
    """Add a subsystem: ``after[c] = max over options of before[c - extra] + gain``, row by row."""
    last = shape[-1]
    outer = shape.size - 1
    amount = np.zeros(outer, dtype=np.int64)
    step = np.ones(outer, dtype=np.int64)  # rows between neighbours along each other resource
    for r in range(outer - 2, -1, -1):
        step[r] = step[r + 1] * shape[r + 1]
    for row in range(before.size // last):
        target = after[row * last : (row + 1) * last]
        target[:] = -np.inf
        for r in range(outer):
            amount[r] = row // step[r] % shape[r]
        for o in range(gain.size):
            shift, value, source, fits = extra[o, outer], gain[o], row, extra[o, outer] < last
            for r in range(outer):
                fits = fits and amount[r] >= extra[o, r]
                source -= extra[o, r] * step[r]
            if fits:
                given = before[source * last : (source + 1) * last - shift]
                taken = target[shift:]
                for w in range(taken.size):
                    found = given[w] + value
                    taken[w] = found if found > taken[w] else taken[w]


@lru_cache(maxsize=256)
def multisets(
    parts: tuple[tuple[float, ...], ...], needed: int, most: int
) -> tuple[Options, IntArray]:
    """Multisets that no other dominates, and how many of each part they hold."""
    number = sum(math.comb(len(parts) + size - 1, size) for size in range(needed, most + 1))
    if not 1 <= number <= MOST_OPTIONS:
        raise ValueError(
            f"most must allow from {needed} parts to {MOST_OPTIONS} multisets of {len(parts)}, got "
            f"{most}"
        )
    counts = np.array(
        [
            np.bincount(held, minlength=len(parts))
            for size in range(needed, most + 1)
            for held in map(list, combinations_with_replacement(range(len(parts)), size))
        ]
    )
    table = np.array(parts)
    failed = _fewer_than(needed, counts, table[:, 1])
    use = counts @ table[:, 2:]
    keep = _undominated(np.column_stack([use, failed]))
    with np.errstate(divide="ignore"):
        gain = np.log1p(-failed[keep])
    alive = gain > -np.inf
    return Options(use=use[keep][alive], gain=gain[alive]), counts[keep][alive]


def _fewer_than(needed: int, counts: IntArray, up: FloatArray) -> FloatArray:
    """Probability that fewer than k of the parts work, for every multiset."""
    working = np.zeros((len(counts), needed + 1))  # the last column gathers k and more
    working[:, 0] = 1.0
    for held, p in zip(counts.T, up, strict=True):
        for turn in range(int(held.max())):
            more = working * (1 - p)
            more[:, 1:] += working[:, :-1] * p
            more[:, -1] += working[:, -1] * p
            working = np.where((held > turn)[:, None], more, working)
    return np.asarray(working[:, :-1].sum(axis=1))


def _undominated(rows: FloatArray) -> IntArray:
    """Rows for which no other row is at most as large in every column; the first of equal ones."""
    unique, first = np.unique(rows, axis=0, return_index=True)
    below = np.ones((len(unique), len(unique)), dtype=np.bool_)
    for column in unique.T:
        below &= column[:, None] <= column[None, :]
    return np.sort(first[below.sum(axis=0) == 1])


def by_table(
    options: Sequence[Options], amounts: FloatArray, names: tuple[str, ...]
) -> list[list[int]]:
    """One option of every subsystem for every row of limits, from one table."""
    if any((o.use % 1).any() for o in options):
        raise ValueError(
            f"components must take whole amounts of {', '.join(names)}, or use method='milp'"
        )
    limits = np.floor(amounts + 1e-9).astype(np.int64)
    floor = sum(o.use.min(axis=0, initial=np.inf) for o in options)
    for row in amounts:
        if (row < floor).any():
            raise ValueError(_nothing_fits(names, row))
    table = ChoiceTable.of(options, limits.max(axis=0))
    picks = [table.best(row) for row in limits]
    for pick, row in zip(picks, amounts, strict=True):
        if pick is None:
            raise ValueError(_nothing_fits(names, row))
    return [pick for pick in picks if pick is not None]


def _nothing_fits(names: tuple[str, ...], row: FloatArray) -> str:
    shown = ", ".join(f"{name}_limit = {value:g}" for name, value in zip(names, row, strict=True))
    return f"limits must leave room for parts in every subsystem, got {shown}"


def by_programme(
    options: Sequence[Options], amounts: FloatArray, names: tuple[str, ...]
) -> list[list[int]]:
    """The same by one mixed-integer programme for every row of limits."""
    from scipy.sparse import block_diag, csr_array, vstack

    one: Any = block_diag([np.ones((1, o.gain.size)) for o in options])
    rows = vstack([one, csr_array(np.concatenate([o.use for o in options]).T)])
    start = np.cumsum([0, *(o.gain.size for o in options)])
    picks = []
    for limit in amounts:
        lower = np.r_[np.ones(len(options)), np.full(limit.size, -np.inf)]
        gains = np.concatenate([o.gain for o in options])
        x, _ = least(-gains, rows, lower, np.r_[np.ones(len(options)), limit])
        if x is None:
            raise ValueError(_nothing_fits(names, limit))
        picks.append((np.flatnonzero(x) - start[:-1]).tolist())
    return picks
