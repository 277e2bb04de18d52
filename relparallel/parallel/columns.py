"""A strategy as numbers, or many as columns: what the formulas of time, memory and rules take.

A formula asks records for their fields and computes with what it finds: the numbers of one
strategy, columns of many, or columns along axes of their own. These broadcast, so that a term is
computed once for all strategies that share what it depends on.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from relparallel._checks import MOST_DEVICES
from relparallel.parallel.schedules import SCHEDULES, V_SHAPED
from relparallel.parallel.strategy import ENDS, RECOMPUTE, Strategy

Numbers = Any
"""A number, or an array of them."""

WORDS: Final[dict[str, tuple[Any, ...]]] = {
    "sequence_parallel": (False, True),
    "recompute": RECOMPUTE,
    "schedule": SCHEDULES,
    "ends_as_layers": ENDS,
    "experts_over_tensor": (False, True),
}
"""Fields of `Strategy` whose values stand in columns by their places."""


CHIMERA: Final = SCHEDULES.index("chimera")
_FOLDED: Final = min(SCHEDULES.index(name) for name in V_SHAPED)  # and those next to it


class Split(NamedTuple):
    """The fields of a `Strategy` as numbers, with the micro-batches of a replica."""

    tensor: Numbers
    pipeline: Numbers
    data: Numbers
    context: Numbers
    expert: Numbers
    shard: Numbers
    micro_batch: Numbers
    virtual_stages: Numbers
    sequence_parallel: Numbers
    recompute: Numbers
    zero_stage: Numbers
    schedule: Numbers
    ends_as_layers: Numbers
    experts_over_tensor: Numbers
    micro_batches: Numbers

    @classmethod
    def of(cls, strategy: Strategy, global_batch: int | None = None) -> Split:
        """One strategy; no micro-batches without a batch."""
        codes: dict[str, Any] = {name: getattr(strategy, name) for name in ROW.names or ()}
        codes["shard"] = strategy.shard_group
        for name, words in WORDS.items():
            codes[name] = words.index(codes[name])
        return cls(
            **codes,
            micro_batches=0 if global_batch is None else strategy.micro_batches(global_batch),
        )

    @classmethod
    def of_columns(
        cls, columns: Mapping[str, NDArray[Any]] | NDArray[Any], global_batch: int
    ) -> Split:
        """Rows of a grid, or its columns by name; no micro-batches where the batch is too small.

        A column that holds one number becomes that number: what depends on it alone is computed
        once.
        """
        fields: dict[str, Any] = {name: columns[name].astype(np.int64) for name in ROW.names or ()}
        fields["micro_batches"] = global_batch // (fields["data"] * fields["micro_batch"])
        for name in ROW.names or ():
            if fields[name].size and fields[name].min() == fields[name].max():
                fields[name] = fields[name].flat[0]
        return cls(**fields)

    @property
    def expert_tensor(self) -> Numbers:
        """Ranks that split one expert."""
        return where(self.experts_over_tensor == 1, 1, self.tensor)


ROW: Final = np.dtype(
    [
        (name, np.int8 if name in WORDS or name == "zero_stage" else np.int32)
        for name in Split._fields[:-1]
    ],
    align=True,
)
"""One strategy of a grid: the fields of `Strategy`."""


def bounds(name: str) -> tuple[int, int]:
    """Lowest and highest number of a field."""
    if name in WORDS:
        return 0, len(WORDS[name]) - 1
    return (0, 3) if name == "zero_stage" else (1, MOST_DEVICES)


def by_kind(recompute: Numbers, *kinds: Numbers) -> Numbers:
    """The value for a kind of recomputation, given one for each in the order of `RECOMPUTE`."""
    found = kinds[0]
    for code, value in enumerate(kinds[1:], start=1):
        if some(recompute == code):
            found = where(recompute == code, value, found)
    return found


def where(condition: Numbers, yes: Numbers, no: Numbers) -> Numbers:
    """One of two values, in a column by a column of conditions."""
    if isinstance(condition, np.ndarray):
        return np.where(condition, yes, no)
    return yes if condition else no


def some(condition: Numbers) -> bool:
    """Whether a condition holds anywhere: what holds nowhere need not be computed."""
    return bool(condition.any() if isinstance(condition, np.ndarray) else condition)


def folded(schedule: Numbers) -> Numbers:
    """Whether the path of a schedule goes down the stages and up again."""
    return (schedule >= _FOLDED) & (schedule < _FOLDED + len(V_SHAPED))


def part(condition: NDArray[np.bool_]) -> tuple[NDArray[np.int64], ...]:
    """Places along every axis at which a condition holds for something."""
    axes = range(condition.ndim)
    return np.ix_(
        *(condition.any(axis=tuple(other for other in axes if other != axis)) for axis in axes)
    )


def taken(s: Split, rows: tuple[NDArray[np.int64], ...]) -> Split:
    """The strategies at some places; columns along other axes stay as they are."""
    return Split(*(_taken(column, rows) for column in s))


def _taken(column: Numbers, rows: tuple[NDArray[np.int64], ...]) -> Numbers:
    if np.ndim(column) == 0:
        return column
    sizes = zip(column.shape, rows, strict=True)
    return column[tuple(row if size > 1 else row.ravel()[:1] * 0 for size, row in sizes)]


def rows_of(strategies: Iterable[Strategy]) -> NDArray[Any]:
    """Strategies as rows of a grid."""
    return np.array([Split.of(strategy)[:-1] for strategy in strategies], ROW)
