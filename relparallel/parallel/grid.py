"""Many strategies at once: fields of `Strategy` as columns, and every way to fill so many GPUs."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Any, Final, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from relparallel._checks import MOST_DEVICES, require_choice, require_instance, require_int
from relparallel.parallel.feasibility import WIDTH, broken_rules
from relparallel.parallel.quantities import ROW, WORDS, Split, bounds
from relparallel.parallel.schedules import ASYNCHRONOUS, SCHEDULES
from relparallel.parallel.strategy import RECOMPUTE, Strategy
from relparallel.workload import Transformer

_DEFAULTS: Final = {field.name: field.default for field in fields(Strategy)}
AXES: Final = tuple(_DEFAULTS)
"""Names of the columns, those of the fields of `Strategy`."""

_DEGREES: Final = ("tensor", "pipeline", "data", "context")
_OUTER: Final = (*_DEGREES, "zero_stage", "shard")
_INNER: Final = tuple(name for name in AXES if name not in _OUTER)
_SHAPED: Final = tuple(name for name in _INNER if name != "recompute")
_CHUNK: Final = 2**14
_PLAIN: Final[dict[str, Any]] = Split.of(Strategy())._asdict()
"""Columns so plain that no rule about them is broken."""
SYNCHRONOUS: Final = tuple(name for name in SCHEDULES if name not in ASYNCHRONOUS)
"""Schedules in which a step uses its own weights: each is another way to the same result."""


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class StrategyGrid:
    """Strategies as the rows of one array, 40 bytes each; some may break rules.

    A number or a slice in brackets gives the strategy or the rows there, an array of numbers or of
    flags those rows. A row that is no valid `Strategy` raises the ValueError that says which rule
    is broken.

    Parameters
    ----------
    choices : structured array [n]
        One of `columns.ROW` each; `all` and `of` make it.

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
        if rows.dtype != ROW or rows.ndim != 1:
            raise TypeError(f"choices must be one row of {ROW.names} each, got {rows!r:.80}")
        # all columns of some rows, while these are in the cache
        for start in range(0, rows.size, _CHUNK):
            some = rows[start : start + _CHUNK]
            for name in AXES:
                least, most = bounds(name)
                if some[name].min() < least or some[name].max() > most:
                    bad = some[name][(some[name] < least) | (some[name] > most)][0]
                    raise ValueError(
                        f"choices must have a {name} from {least} to {most}, got {bad}"
                    )

    @classmethod
    def all(cls, gpus: int, model: Transformer, global_batch: int, **limits: Any) -> StrategyGrid:
        """Every way to fill a number of GPUs, the full product of all axes.

        Rows that break rules are kept; `price_strategies` marks them. Degrees are the ordered
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
            [np.empty(0, ROW)]
            + [_outer(degrees, given) for degrees in _factorisations(gpus, given).T.tolist()]
        )
        rows = np.empty((outer.size, inner.size), ROW)
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
        rows = np.zeros(length, ROW)
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


def _codes(name: str, values: Any) -> NDArray[np.int64]:
    """Numbers that stand for one or several values of an axis."""
    require_choice(AXES, axis=name)
    column = np.asarray(list(values) if isinstance(values, (set, frozenset, range)) else values)
    kinds = "biuU" if name in WORDS else "iu"
    if column.ndim > 1 or column.size == 0 or column.dtype.kind not in kinds:
        raise TypeError(f"{name} must be one value or a list of them, got {values!r:.80}")
    listed = np.atleast_1d(column)
    if name in WORDS:
        known = {value: code for code, value in enumerate(WORDS[name])}
        found = {
            value: known[require_choice(WORDS[name], **{name: value})]
            for value in set(listed.tolist())
        }
        return np.array([found[value] for value in listed.tolist()], dtype=np.int64)
    least, most = bounds(name)
    for value in (listed.min(), listed.max()):
        require_int(**{name: value}, at_least=least, at_most=most)
    return listed.astype(np.int64)


def _names(name: str, codes: NDArray[Any]) -> list[Any]:
    """Values that numbers stand for."""
    plain: list[int] = codes.tolist()
    return [WORDS[name][code] for code in plain] if name in WORDS else plain


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


def _factorisations(gpus: int, limits: Mapping[str, NDArray[np.int64]]) -> NDArray[np.int64]:
    """Tensor, pipeline, data and context degrees in every order that is asked for, [4, n]."""
    divisors, split = np.array(_divisors(gpus), dtype=np.int64), np.ones(1, dtype=np.int64)
    degrees: list[NDArray[np.int64]] = []
    for name in ("tensor", "pipeline", "context"):
        some = divisors[np.isin(divisors, limits.get(name, divisors))]
        place, number = np.nonzero(gpus % (split[:, None] * some) == 0)
        degrees = [*(one[place] for one in degrees), some[number]]
        split = split[place] * some[number]
    tensor, pipeline, context = degrees
    found = np.stack([tensor, pipeline, gpus // split, context])
    return found[:, np.isin(found[2], limits.get("data", found[2]))]


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
        "recompute": RECOMPUTE[:3],
        "schedule": SYNCHRONOUS,
        "ends_as_layers": "auto",
        "experts_over_tensor": False,
    }
    return {name: _codes(name, values) for name, values in axes.items()}


def _zero_stages(pipeline: int, limits: Mapping[str, NDArray[np.int64]]) -> list[int]:
    """ZeRO stages to ask about: those given, or all, with a pipeline the two of Megatron-LM."""
    found: list[int] = limits.get("zero_stage", np.arange(4 if pipeline == 1 else 2)).tolist()
    return found


def _shardings(
    data: int, pipeline: int, limits: Mapping[str, NDArray[np.int64]]
) -> NDArray[np.int64]:
    """ZeRO stages, and ranks that share the state, of all pairs; [2, n]."""
    pairs = [
        (z, k)
        for z in _zero_stages(pipeline, limits)
        for k in (_divisors(data) if z > 0 else [data])
        if k in limits.get("shard", [k])
    ]
    return np.array(pairs, dtype=np.int64).reshape(-1, 2).T


def _outer(degrees: list[int], limits: Mapping[str, NDArray[np.int64]]) -> NDArray[Any]:
    """Rows with the same degrees: pairs of ZeRO stage and ranks that share the state."""
    _, pipeline, data, _ = degrees
    stages, shards = _shardings(data, pipeline, limits)
    rows = np.zeros(stages.size, ROW)
    for name, values in zip(_OUTER, (*degrees, stages, shards), strict=True):
        rows[name] = values
    return rows


def _product(axes: dict[str, NDArray[np.int64]]) -> NDArray[Any]:
    """Rows of the full product, the last axis fastest."""
    rows = np.zeros([axis.size for axis in axes.values()], ROW)
    for name, values in zip(axes, np.ix_(*axes.values()), strict=True):
        rows[name] = values
    return rows.ravel()


class Mesh(NamedTuple):
    """Strategies on as many replicas: each shape with each sharding and each recomputation.

    ``shapes``, ``shardings`` and ``recompute`` are columns by name, of [k], [l] and [r]; a formula
    computes what depends on one of them once for all values of the others. ``number`` [k] counts
    the degrees.
    """

    number: NDArray[np.int64]
    shapes: dict[str, NDArray[np.int64]]
    shardings: dict[str, NDArray[np.int64]]
    recompute: NDArray[np.int64]

    @property
    def shape(self) -> tuple[int, int, int]:
        """How many values there are along each axis."""
        return self.number.size, self.shardings["shard"].size, self.recompute.size

    @property
    def size(self) -> int:
        """How many strategies there are."""
        return math.prod(self.shape)

    def columns(self) -> dict[str, NDArray[np.int64]]:
        """Every field along its own axis."""
        return {
            **{name: column[:, None, None] for name, column in self.shapes.items()},
            **{name: column[None, :, None] for name, column in self.shardings.items()},
            "recompute": self.recompute[None, None],
        }

    def rows(self, chosen: NDArray[np.bool_]) -> NDArray[Any]:
        """Chosen strategies as rows of a grid."""
        rows = np.empty(np.count_nonzero(chosen), ROW)
        for name, column in self.columns().items():
            rows[name] = np.broadcast_to(column, self.shape)[chosen]
        return rows

    def pieces(self, most: int) -> Iterator[Mesh]:
        """The same in pieces of about so many strategies, which stay in the cache."""
        some = max(most * self.number.size // self.size, 1)
        for k in range(0, self.number.size, some):
            shapes = {name: column[k : k + some] for name, column in self.shapes.items()}
            yield self._replace(number=self.number[k : k + some], shapes=shapes)


def lawful_degrees(
    gpus: int, model: Transformer, global_batch: int, node: int, limits: Mapping[str, Any]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Degrees that multiply to a number of GPUs: those that keep the rules, and all; [4, n] each.

    Degrees that break a rule with the plainest other columns break it with all.
    """
    given = {name: np.unique(_codes(name, values)) for name, values in limits.items()}
    every = _factorisations(gpus, given)
    columns = dict(zip(_DEGREES, every, strict=True))
    plain = Split(**{**_PLAIN, **columns, "shard": columns["data"]})
    late = WIDTH if "experts_over_tensor" in given else 0  # what is not plain: asked later
    rules = broken_rules(model, plain, global_batch, gpus, node) & ~late
    return every[:, rules == 0], every


def lawful(
    gpus: int, model: Transformer, global_batch: int, node: int, limits: Mapping[str, Any]
) -> tuple[list[Mesh], int]:
    """Strategies of `StrategyGrid.all` that keep every rule, and how many there are in all.

    Every rule looks at the degrees and at the shape; shardings are made to keep theirs, and
    recomputation breaks none.
    """
    given = {name: np.unique(_codes(name, values)) for name, values in limits.items()}
    axes = {**_inner_axes(gpus, model, global_batch, given), **given}
    recompute, shaped = axes["recompute"], {name: axes[name] for name in _SHAPED}
    own = dict(zip(shaped, np.ix_(*shaped.values()), strict=True))
    kept, every = lawful_degrees(gpus, model, global_batch, node, limits)
    pairs, times = np.unique(every[[2, 1]], axis=1, return_counts=True)
    shardings = [_shardings(data, p, given)[0].size for data, p in pairs.T.tolist()]
    asked = int(times @ np.array(shardings, dtype=np.int64)) * recompute.size
    asked *= math.prod(values.size for values in shaped.values())
    found, alike = [], np.stack([kept[2], kept[1] == 1])  # these have the same shardings
    for data, alone in np.unique(alike, axis=1).T.tolist():
        number = np.flatnonzero((alike[0] == data) & (alike[1] == alone))
        degrees = dict(zip(_DEGREES, kept[:, number], strict=True))
        column = {name: one.reshape(-1, *[1] * len(own)) for name, one in degrees.items()}
        asking = Split(**{**_PLAIN, **column, **own, "data": data, "shard": data})
        place, *places = np.nonzero(broken_rules(model, asking, global_batch, gpus, node) == 0)
        shapes = {name: one[place] for name, one in degrees.items()}
        shapes |= {name: shaped[name][at] for name, at in zip(shaped, places, strict=True)}
        stages, shards = _shardings(data, 1 if alone else 2, given)
        mesh = Mesh(number[place], shapes, {"zero_stage": stages, "shard": shards}, recompute)
        found += [mesh] if mesh.size else []
    return found, asked
