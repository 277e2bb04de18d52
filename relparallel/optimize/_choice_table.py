"""One option for every subsystem, several limits: the table of best values over all limits at once.

A table has a cell for every amount of every resource. A cell holds the best value within these amounts, so
one table answers every question whose limits it covers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
from numba import njit
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
MOST_CELLS = 2**26  # of all stages: half a gigabyte


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Options:
    """What one subsystem can be: ``use[options, resources]`` and ``gain[options]``."""

    use: FloatArray
    gain: FloatArray


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class ChoiceTable:
    """Best value of the first i subsystems, ``stages[i]``, by what they may use beyond the least."""

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
        if prod(shape) * (len(options) + 1) > MOST_CELLS:
            raise ValueError(
                f"limits must leave a table of at most {MOST_CELLS} cells, got {shape} for "
                f"{len(options)} subsystems; use method='milp'"
            )
        stages = np.zeros((len(options) + 1, prod(shape)))
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
    """One more subsystem: ``after[c] = max over options of before[c - extra] + gain``, row by row."""
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
