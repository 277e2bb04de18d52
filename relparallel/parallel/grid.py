"""Many strategies at once: fields of `Strategy` as columns, and every way to fill so many GPUs."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Any, Final

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from relparallel._checks import MOST_DEVICES, require_choice, require_instance, require_int
from relparallel.parallel._kernel import CHOICE
from relparallel.parallel.schedules import ASYNCHRONOUS, SCHEDULES
from relparallel.parallel.strategy import ENDS, RECOMPUTE, Strategy
from relparallel.workload import Transformer

_DEFAULTS: Final = {field.name: field.default for field in fields(Strategy)}
AXES: Final = tuple(_DEFAULTS)
"""Names of the columns, those of the fields of `Strategy`."""

_DEGREES: Final = ("tensor", "pipeline", "data", "context")
_OUTER: Final = (*_DEGREES, "zero_stage", "shard")
_INNER: Final = tuple(name for name in AXES if name not in _OUTER)
_NAMES: Final[Mapping[str, tuple[Any, ...]]] = {
    "sequence_parallel": (False, True),
    "experts_over_tensor": (False, True),
    "recompute": RECOMPUTE,
    "schedule": SCHEDULES,
    "ends_as_layers": ENDS,
}
_CHUNK: Final = 2**14
SYNCHRONOUS: Final = tuple(name for name in SCHEDULES if name not in ASYNCHRONOUS)
"""Schedules in which a step uses its own weights: each is another way to the same result."""


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class StrategyGrid:
    """Strategies as the rows of one array, 44 bytes each; some may break rules.

    A number or a slice in brackets gives the strategy or the rows there, an array of numbers or of
    flags those rows. A row that is no valid `Strategy` raises the ValueError that says which rule
    is broken.

    Parameters
    ----------
    choices : structured array [n]
        Of the type of the cost kernels; `all` and `of` make it.

    Examples
    --------
    >>> gpt = Transformer(layers=8, hidden=1024, heads=16, vocabulary=51200, sequence=2048)
    >>> grid = StrategyGrid.all(gpus=8, model=gpt, global_batch=16)
    >>> len(grid), grid.axes["tensor"], len(grid.where(tensor=8, recompute=("none", "full")))
    (156750, (1, 2, 4, 8), 4400)
    >>> grid[0].data, grid[0].zero_stage
    (8, 0)
    """

    choices: NDArray[Any]

    def __post_init__(self) -> None:
        rows = require_instance(np.ndarray, choices=self.choices)
        if rows.dtype != CHOICE or rows.ndim != 1:
            raise TypeError(f"choices must be one row of {CHOICE.names} each, got {rows!r:.80}")
        # all columns of some rows, while these are in the cache
        for start in range(0, rows.size, _CHUNK):
            some = rows[start : start + _CHUNK]
            for name in AXES:
                least, most = _range(name)
                if some[name].min() < least or some[name].max() > most:
                    bad = some[name][(some[name] < least) | (some[name] > most)][0]
                    raise ValueError(
                        f"choices must have a {name} from {least} to {most}, got {bad}"
                    )

    @classmethod
    def all(cls, gpus: int, model: Transformer, global_batch: int, **limits: Any) -> StrategyGrid:
        """Every way to fill a number of GPUs, the full product of all axes.

        Rows that break rules are kept; `evaluate` marks them. Degrees are the ordered
        factorisations of the GPUs; micro-batches divide the global batch, expert degrees the
        experts. ``virtual_stages`` are 2, 4, 8 and the divisors of the layers, and of the layers
        and two, which count embedding and output layer; ``ends_as_layers`` is "auto" and
        ``experts_over_tensor`` False where nothing is given. ``shard`` is every divisor of ``data``
        where ``zero_stage`` is above 0, and ``data`` itself where nothing is sharded. With a
        pipeline ``zero_stage`` is 0 or 1 unless it is given: FSDP with a pipeline has to be asked
        for. Schedules are all in which a step uses its own weights. ``limits`` gives values of an
        axis, one or several, instead of all: ``schedule=("gpipe", "pipedream")``, say; rows with
        other degrees are left out. O(rows).
        """
        require_int(gpus=gpus, at_least=1, at_most=MOST_DEVICES)
        require_int(global_batch=global_batch, at_least=1, at_most=MOST_DEVICES)
        require_instance(Transformer, model=model)
        given = {name: np.unique(_codes(name, values)) for name, values in limits.items()}
        inner = _product(
            _inner_axes(gpus, model, global_batch, given)
            | {k: v for k, v in given.items() if k in _INNER}
        )
        outer = np.concatenate(
            [np.empty(0, CHOICE)]
            + [
                _outer(degrees, given)
                for degrees in _factorisations(gpus)
                if _within(degrees, given)
            ]
        )
        rows = np.empty((outer.size, inner.size), CHOICE)
        for some, one in zip(rows, outer, strict=True):  # these rows stay in the cache
            some[:] = inner
            for name in _OUTER:
                some[name] = one[name]
        return cls(choices=rows.ravel())

    @classmethod
    def of(cls, **columns: ArrayLike) -> StrategyGrid:
        """Rows from columns, one value or list per field of `Strategy`, broadcast to one length.

        >>> len(StrategyGrid.of(tensor=[1, 2, 4], data=8, recompute=["none", "full", "full"]))
        3
        """
        given: dict[str, Any] = _DEFAULTS | columns
        if given["shard"] is None:
            given["shard"] = given["data"]
        codes = {name: _codes(name, column) for name, column in given.items()}
        length = max(column.size for column in codes.values())
        rows = np.zeros(length, CHOICE)
        for name, column in codes.items():
            if column.size not in (1, length):
                raise ValueError(f"{name} must be one value or {length} of them, got {column.size}")
            rows[name] = column
        return cls(choices=rows)

    @property
    def axes(self) -> dict[str, tuple[Any, ...]]:
        """Values of every axis that occur, in ascending order."""
        return {name: tuple(_names(name, np.sort(pd.unique(self.choices[name])))) for name in AXES}

    def where(self, **values: Any) -> StrategyGrid:
        """Rows of given values: per axis one value, or several of which a row must have one."""
        keep = np.ones(len(self), dtype=np.bool_)
        for name, value in values.items():
            codes = _codes(name, value)
            keep &= np.isin(self.choices[name], codes)
        return StrategyGrid(choices=self.choices[keep])

    def to_frame(self) -> pd.DataFrame:
        """One column for each axis; of a large grid, take a slice first."""
        return pd.DataFrame({name: _names(name, self.choices[name]) for name in AXES})

    def __len__(self) -> int:
        return self.choices.size

    def __getitem__(self, rows: Any) -> Any:
        if isinstance(rows, slice) or np.ndim(rows) == 1:
            return StrategyGrid(choices=self.choices[rows])
        return _strategy(
            self.choices[require_int(row=rows, at_least=-len(self), at_most=len(self) - 1)]
        )

    def __iter__(self) -> Iterator[Strategy]:
        return (_strategy(row) for row in self.choices)

    def __repr__(self) -> str:
        return f"<StrategyGrid: {len(self):,} strategies>"


def _within(row: dict[str, int], limits: dict[str, NDArray[np.int64]]) -> bool:
    """Whether every value is one of those that its limit names."""
    return all(value in limits[name] for name, value in row.items() if name in limits)


def _range(name: str) -> tuple[int, int]:
    """Lowest and highest code of an axis."""
    if name in _NAMES:
        return 0, len(_NAMES[name]) - 1
    return (0, 3) if name == "zero_stage" else (1, MOST_DEVICES)


def _codes(name: str, values: Any) -> NDArray[np.int64]:
    """Numbers that stand for one or several values of an axis."""
    require_choice(AXES, axis=name)
    column = np.asarray(list(values) if isinstance(values, (set, frozenset, range)) else values)
    kinds = "biuU" if name in _NAMES else "iu"
    if column.ndim > 1 or column.size == 0 or column.dtype.kind not in kinds:
        raise TypeError(f"{name} must be one value or a list of them, got {values!r:.80}")
    listed = np.atleast_1d(column)
    if name in _NAMES:
        known = {value: code for code, value in enumerate(_NAMES[name])}
        found = {
            value: known[require_choice(_NAMES[name], **{name: value})]
            for value in set(listed.tolist())
        }
        return np.array([found[value] for value in listed.tolist()], dtype=np.int64)
    least, most = _range(name)
    for value in (listed.min(), listed.max()):
        require_int(**{name: value}, at_least=least, at_most=most)
    return listed.astype(np.int64)


def _names(name: str, codes: NDArray[Any]) -> list[Any]:
    """Values that numbers stand for."""
    plain: list[int] = codes.tolist()
    return [_NAMES[name][code] for code in plain] if name in _NAMES else plain


def _strategy(row: Any) -> Strategy:
    """Strategy of a row; a shard of all data-parallel ranks is the default."""
    values = {name: _names(name, row[name].reshape(1))[0] for name in AXES}
    if values["shard"] == values["data"]:
        values["shard"] = None
    return Strategy(**values)


def _divisors(number: int) -> list[int]:
    """In ascending order."""
    low = [k for k in range(1, math.isqrt(number) + 1) if number % k == 0]
    return low + [number // k for k in reversed(low) if k * k != number]


def _factorisations(number: int) -> Iterator[dict[str, int]]:
    """Four degrees in every order, the data-parallel one last."""
    for t in _divisors(number):
        for p in _divisors(number // t):
            for c in _divisors(number // (t * p)):
                yield dict(zip(_DEGREES, (t, p, number // (t * p * c), c), strict=True))


def _inner_axes(
    gpus: int, model: Transformer, global_batch: int, limits: Mapping[str, NDArray[np.int64]]
) -> dict[str, NDArray[np.int64]]:
    """Values of the axes that do not depend on the degrees."""
    one = np.isin(limits.get("ends_as_layers", 0), (1, 2)).any()  # embedding or loss alone
    even = {
        *_divisors(model.layers),
        *_divisors(model.layers + 2),
        *_divisors(model.layers + int(one)),
    }
    chunks = sorted(number for number in even | {2, 4, 8} if number <= model.layers)
    axes: dict[str, Any] = {
        "expert": [e for e in _divisors(model.experts) if e <= gpus],
        "micro_batch": _divisors(global_batch),
        "virtual_stages": chunks,
        "sequence_parallel": (False, True),
        "recompute": RECOMPUTE,
        "schedule": SYNCHRONOUS,
        "ends_as_layers": "auto",
        "experts_over_tensor": False,
    }
    return {name: _codes(name, values) for name, values in axes.items()}


def zero_stages(pipeline: int, limits: Mapping[str, NDArray[np.int64]]) -> list[int]:
    """ZeRO stages to ask about: those given, or all, with a pipeline the two of Megatron-LM."""
    found: list[int] = limits.get("zero_stage", np.arange(4 if pipeline == 1 else 2)).tolist()
    return found


def _outer(degrees: dict[str, int], limits: dict[str, NDArray[np.int64]]) -> NDArray[Any]:
    """Rows with the same degrees: pairs of ZeRO stage and ranks that share the state."""
    data = degrees["data"]
    pairs = [
        (z, k)
        for z in zero_stages(degrees["pipeline"], limits)
        for k in (_divisors(data) if z > 0 else [data])
    ]
    kept = [pair for pair in pairs if _within({"shard": pair[1]}, limits)]
    rows = np.zeros(len(kept), CHOICE)
    for name, degree in degrees.items():
        rows[name] = degree
    for place, name in enumerate(_OUTER[len(_DEGREES) :]):
        rows[name] = [pair[place] for pair in kept]
    return rows


def _product(axes: dict[str, NDArray[np.int64]]) -> NDArray[Any]:
    """Rows of the full product, the last axis fastest."""
    rows = np.zeros([axis.size for axis in axes.values()], CHOICE)
    for name, values in zip(axes, np.ix_(*axes.values()), strict=True):
        rows[name] = values
    return rows.ravel()
