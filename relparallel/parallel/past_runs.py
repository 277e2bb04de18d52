"""How near a step is to runs that were measured, and how wide its interval is for that.

``data/derived/experience.csv`` has every run with three errors of its prediction: ``near``, by the
parameters that other configurations give (the runs of one source and software with the same model,
number format and GPUs are a configuration), ``far``, by those that other publishers give, and
``lent``, by those of another accelerator. Runs count by exp(-d^2/(2 reach^2)), d being the distance
between logarithms of sizes and degrees. The mean square of ``far``, or of ``lent`` where nobody
measured on the accelerator, is the variance of a stranger's run; every publisher counts the same,
and all of them far from any run, where it grows with the distance. Near runs on the same
accelerator with the same software and number format it goes over to the mean square of ``near``,
and never the other way. Reach and growth have the largest likelihood of what was left out, rounded.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from relparallel.parallel.machine_parameters import Calibration, generation, quantiles
from relparallel.parallel.quantities import Numbers, Split, where
from relparallel.published import data_folder
from relparallel.workload import Transformer

if TYPE_CHECKING:
    import pandas as pd

REACH: Final = 2.0
"""Distance between logarithms of sizes over which errors stay alike."""
_GROWTH: Final = 0.02  # of the variance, far from all runs, for each unit of distance, squared
_DEGREES: Final = (
    "tensor",
    "pipeline",
    "data",
    "context",
    "expert",
    "virtual_stages",
    "micro_batch",
    "micro_batches",
)
_SIZES: Final = (*_DEGREES, "parameters", "sequence", "experts")
_KINDS: Final = ("recompute", "zero_stage", "sequence_parallel")
_LAYERS: Final = ("windows", "states", "compressed")
FEATURES: Final = (*_SIZES, *_KINDS, "format", *_LAYERS)
"""What tells strategies of models apart: sizes, of which logarithms count, then kinds."""
_FORMATS: Final = ("bf16", "fp8", "fp4")
# parameters go with the square of a width; other layers are another kind of model
_WEIGHTS: Final = (*(1,) * len(_DEGREES), 0.5, 1, 0.5, *(1,) * 4, *(2,) * len(_LAYERS))
_UNSEEN: Final = 0.25  # standard deviation that a kind of layers adds which nobody has measured

Vector = NDArray[np.float64]


def sizes(model: Transformer, precision: str, s: Split) -> Vector:
    """Numbers of `FEATURES`, a row for each strategy of a model."""
    return _rows(_columns(model, precision, s))


def features(model: Transformer, precision: str, s: Split) -> Vector:
    """Where strategies of a model lie among others, a row for each: distances are Euclidean."""
    return _rows(_placed(_columns(model, precision, s)))


def _columns(model: Transformer, precision: str, s: Split) -> list[Numbers]:
    s = s._replace(recompute=where(s.recompute >= 3, 1, s.recompute))  # a part, as selective is
    columns: list[Numbers] = [getattr(s, name) for name in _DEGREES]
    columns += [float(model.parameters), model.sequence, model.experts]
    columns += [getattr(s, name) for name in _KINDS]
    return [*columns, _FORMATS.index(precision), *(name in model.kind for name in _LAYERS)]


def _placed(columns: Sequence[Numbers]) -> list[Numbers]:
    """Logarithms of sizes, and kinds, on one scale."""
    count = len(_SIZES)
    # no micro-batches where a batch is too small: such strategies are refused elsewhere
    logs = [np.log(np.maximum(column, 1)) for column in columns[:count]]
    return [
        weight * np.asarray(one)
        for weight, one in zip(_WEIGHTS, [*logs, *columns[count:]], strict=True)
    ]


def _rows(columns: Sequence[Numbers]) -> Vector:
    flat = [np.ravel(one) for one in np.broadcast_arrays(*columns)]
    return np.column_stack(flat).astype(np.float64)


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Experience:
    """Measured runs, those of a publisher together, and what was wrong with their predictions."""

    runs: NDArray[np.str_]
    numbers: Vector  # of `FEATURES`
    places: Vector
    mfu: Vector
    near: Vector  # squares of the errors
    far: Vector
    lent: Vector
    first: NDArray[np.int64]  # run of each publisher
    rows: Mapping[tuple[str, ...], NDArray[np.int64]]  # of families, of formats, and of software
    kinds: frozenset[tuple[str, str]]  # families, each with a kind of layers measured on it
    quantiles: Mapping[float, float]  # levels to bounds in standard deviations

    @classmethod
    def of(cls, table: pd.DataFrame, quantiles: Mapping[float, float]) -> Experience:
        """Rows of ``experience.csv``."""
        table = table.sort_values("publisher", kind="stable").reset_index(drop=True)
        numbers = table[list(FEATURES)].to_numpy(dtype=np.float64)
        rows: dict[tuple[str, ...], list[int]] = {}
        kinds = table[["family", "precision", "software"]].itertuples(index=False, name=None)
        for place, kind in enumerate(kinds):
            for count in (1, 2, 3):
                rows.setdefault(kind[:count], []).append(place)
        near, far, lent = np.square(table[["near", "far", "lent"]].to_numpy()).T
        return cls(
            runs=table["run"].to_numpy(dtype=np.str_),
            numbers=numbers,
            places=_rows(_placed([*numbers.T])),
            mfu=table["mfu"].to_numpy(),
            near=near,
            far=far,
            lent=np.maximum(far, lent),  # never surer than on the own accelerator
            first=np.unique(table["publisher"], return_index=True)[1],
            rows={kind: np.array(places) for kind, places in rows.items()},
            kinds=frozenset(zip(table["family"], table["kind"].fillna(""), strict=True)),
            quantiles=quantiles,
        )

    def deviation(
        self,
        place: Vector,
        mfu: float,
        kind: tuple[str, str, str],
        known: bool = True,
        lent: bool = False,
        layers: str = "",
    ) -> float:
        """Standard deviation of log(measured / predicted) at a row of `features`.

        ``kind`` is family, number format and software, ``known`` whether that is in a fit,
        ``layers`` the kind of layers. Of a use of the peak above the highest measured, as much as
        it is above is in doubt.
        """
        apart = np.square(self.places - place).sum(axis=1)
        alike, square = np.exp(apart / (-2 * REACH**2)), self.lent if lent else self.far
        nearest = np.maximum.reduceat(alike, self.first)
        # 1e-300: so that publishers far from here have a mean as well, of no weight
        heard = np.add.reduceat(alike * square, self.first)
        heard /= np.add.reduceat(alike, self.first) + 1e-300
        each = np.add.reduceat(square, self.first) / np.diff(self.first, append=square.size)
        far = (each.mean() + nearest @ heard) / (1 + nearest.sum()) * (1 + _GROWTH * apart.min())
        above = math.log(max(mfu / self._highest(*kind[:2])[0], 1.0))
        if (kind[0], layers) not in self.kinds:
            above = math.hypot(above, _UNSEEN)
        own = self.rows.get(kind) if known else None
        if own is None:
            return math.hypot(math.sqrt(far), above)
        less = alike[own] @ (far - self.near[own]) / (1 + alike[own].sum())
        return math.hypot(math.sqrt(far - alike[own].max() * max(less, 0.0)), above)

    def log_errors(
        self,
        place: Vector,
        mfu: float,
        known: Calibration,
        precision: str,
        software: str,
        layers: str = "",
    ) -> tuple[tuple[float, float], ...]:
        """Levels, each with the bound of abs(log(predicted / measured)), at a row of `features`."""
        lent = bool(known.borrowed)
        kind = known.borrowed or known.family, precision, generation(software)
        measured = known.measured(software) and not lent
        size = max(self.deviation(place, mfu, kind, measured, lent, layers), known.scatter)
        return tuple((level, size * wide) for level, wide in self.quantiles.items())

    def of_kind(self, mixture: bool, adapters: bool = False) -> NDArray[np.bool_]:
        """Which runs are of mixtures, or of dense models, that train all weights, or adapters alone."""
        found = (self.numbers[:, FEATURES.index("experts")] > 1) == mixture
        for said, places in self.rows.items():
            if len(said) == 3:
                found[places] &= ("+adapters" in said[-1]) == adapters
        return np.asarray(found)

    def support(self, known: Calibration, mixture: bool, software: str) -> tuple[int, int]:
        """Runs `of_kind` on a family, and their publishers: none where others' are borrowed."""
        if known.borrowed:
            return 0, 0
        places = np.flatnonzero(self.of_kind(mixture, "+adapters" in software))
        own = np.intersect1d(places, self.rows.get((known.family,), []))
        return own.size, np.unique(np.searchsorted(self.first, own, side="right")).size

    def nearest(self, place: Vector, family: str) -> tuple[str, float]:
        """Run on a family of accelerators, or on any if it has none, next to a row of `features`."""
        own = self.rows.get((family,), np.arange(self.runs.size))
        apart = np.square(self.places[own] - place).sum(axis=1)
        run = int(apart.argmin())
        return str(self.runs[own[run]]), math.sqrt(apart[run])

    def tried(self, name: str) -> list[int]:
        """Values of a size of `FEATURES` that somebody has run."""
        return [int(value) for value in np.unique(self.numbers[:, FEATURES.index(name)])]

    def beyond(self, numbers: Vector, mfu: float, family: str, precision: str) -> list[str]:
        """In which sizes, and in what use of the peak, a step is above all runs on a family."""
        own = self.rows.get((family,))
        if own is None:
            return []
        largest, (highest, run) = self.numbers[own].max(axis=0), self._highest(family, precision)
        said = [
            f"{name} {numbers[k]:,.4g} (the largest is {largest[k]:,.4g})"
            for k, name in enumerate(_SIZES)
            if numbers[k] > 1.001 * largest[k]
        ]
        notes = [f"above all runs measured on {family}: {', '.join(said)}"] if said else []
        if f"{mfu:.1%}" != f"{highest:.1%}" and mfu > highest:
            notes.append(
                f"MFU {mfu:.1%} is above the highest measured on {family} in {precision}, "
                f"{highest:.1%} ({run})"
            )
        return notes

    def _highest(self, family: str, precision: str) -> tuple[float, str]:
        """Highest use of the peak on a family in a number format, and its run."""
        own = self.rows.get((family, precision))
        if own is None:
            return math.inf, ""
        run = int(own[self.mfu[own].argmax()])
        return float(self.mfu[run]), str(self.runs[run])


@cache
def experience() -> Experience:
    """The runs that ship with the project."""
    import pandas as pd

    table = pd.read_csv(data_folder() / "derived" / "experience.csv")
    return Experience.of(table, quantiles())
