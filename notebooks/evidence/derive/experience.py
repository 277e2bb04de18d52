"""How far predictions of runs are off that a fit has not seen, and whether intervals of that hold."""

import zlib
from collections.abc import Sequence
from typing import Final

import numpy as np
import pandas as pd

from evidence.fitting import calibrate, errors
from relparallel.parallel.machine_parameters import Calibration, borrow, generation
from relparallel.parallel.past_runs import FEATURES, Experience, sizes
from relparallel.parallel.quantities import Split
from relparallel.parallel.run import Run

_FOLDS: Final = 10  # configurations are left out a tenth at a time
_LEVELS: Final = (0.5, 0.68, 0.8, 0.9, 0.95, 0.99)
_SHOWN: Final = (0.5, 0.8, 0.9, 0.95)


def publisher(run: Run) -> str:
    """Who measured a run."""
    named = run.source.partition(",")[0]
    for kind in (" MoE", " fp4", " GPT-OSS", " 6.0"):
        named = named.removesuffix(kind)
    return named


def experience_table(runs: Sequence[Run]) -> pd.DataFrame:
    """Every run with its place, its use of the peak, and log(measured / predicted) without its like.

    What is left out is a tenth of the configurations (``near``), a publisher (``far``), or all runs
    on a kind of accelerator (``lent``); where nobody else was on another, that is taken for far.
    """
    numbers = [
        sizes(run.model, run.precision, Split.of(run.strategy, run.global_batch))[0] for run in runs
    ]
    table = pd.DataFrame(numbers, columns=list(FEATURES), index=[run.id for run in runs])
    far = _left_out(runs, [publisher(run) for run in runs])
    table = table.assign(
        source=[run.source for run in runs],
        publisher=[publisher(run) for run in runs],
        family=[run.family for run in runs],
        software=[generation(run.software) for run in runs],
        kind=[run.model.kind for run in runs],
        precision=[run.precision for run in runs],
        fold=[_fold(run) for run in runs],
        mfu=[run.least_time / run.time for run in runs],
        near=_left_out(runs, [_fold(run) for run in runs]).fillna(far),
        far=far,
        lent=_left_out(runs, [run.family for run in runs]).fillna(far),
    )
    return table.round({"mfu": 4, "near": 4, "far": 4, "lent": 4}).rename_axis("run").reset_index()


def _fold(run: Run) -> int:
    """Which tenth of the configurations a run belongs to."""
    said = run.source, generation(run.software), run.model, run.precision, run.strategy.gpus
    return zlib.crc32(repr(said).encode()) % _FOLDS


def _left_out(runs: Sequence[Run], labels: Sequence[object]) -> pd.Series:
    """log(measured / predicted) of runs, by fits without the runs of their label."""
    error = pd.Series(np.nan, index=[run.id for run in runs])
    fits: dict[tuple[str, ...], Calibration] = {}
    for label in dict.fromkeys(labels):
        hidden: list[Run] = []
        others: dict[str, list[Run]] = {}
        for run, name in zip(runs, labels, strict=True):
            if name == label:
                hidden.append(run)
            else:
                others.setdefault(run.family, []).append(run)
        known = {}
        for family, own in others.items():
            named = tuple(run.id for run in own)
            known[family] = fits[named] = fits.get(named) or calibrate(own)
        for family in {run.family for run in hidden if known}:
            own = [run for run in hidden if run.family == family]
            device = own[0].cluster.accelerator
            assert device is not None
            found = errors(own, known.get(family) or borrow(device, known.values()))
            error[found.index] = -np.log1p(found["error"])
    return error


def quantiles(publishers: int) -> dict[float, float]:
    """Bounds of Student's t of as many publishers by level."""
    from scipy.stats import t

    return {level: float(t.ppf((1 + level) / 2, publishers)) for level in _LEVELS}


def bounds(
    known: pd.DataFrame, label: Sequence[object], error: pd.Series, lent: bool = False
) -> pd.DataFrame:
    """By run, bounds of its log(measured / predicted) that runs of other labels give, by level.

    ``known`` is an `experience_table`; a prediction too fast by its ``error`` promises so much more.
    """
    named, rows = np.array(label), {}
    kinds = known.set_index("run")[["family", "precision", "software"]]
    layers = known.set_index("run")["kind"]
    for one in pd.unique(named[known["run"].isin(error.index)]):
        others = known[named != one]
        left = Experience.of(others, quantiles(others["publisher"].nunique()))
        own = Experience.of(known[(named == one) & known["run"].isin(error.index)], {})
        for run, place, mfu in zip(own.runs.tolist(), own.places, own.mfu, strict=True):
            promised, kind = mfu * np.exp(error[run]), (*kinds.loc[run],)
            away = lent or kind[:1] not in left.rows
            size = left.deviation(place, promised, kind, lent=away, layers=layers[run])
            rows[run] = {level: size * wide for level, wide in left.quantiles.items()}
    return pd.DataFrame.from_dict(rows, orient="index").loc[error.index]


def interval_coverage(known: pd.DataFrame) -> pd.DataFrame:
    """By what was left out, source and level: runs inside their interval, and mean half width."""
    labels = {
        "publisher": (known["publisher"], "far", False),
        "configuration": (known["fold"], "near", False),
        "accelerator": (known["family"], "lent", True),
    }
    parts = []
    for way, (label, column, lent) in labels.items():
        if label.nunique() == 1:
            continue
        error = known.set_index("run")[column]
        wide = bounds(known, label.to_list(), error, lent)
        inside = wide.ge(error.abs(), axis=0)
        source = known.set_index("run")[["family", "source"]]
        for level in _SHOWN:
            table = source.assign(held=inside[level], half_width=wide[level])
            own = table.groupby(["family", "source"]).agg(
                rows=("held", "size"), held=("held", "mean"), half_width=("half_width", "mean")
            )
            parts.append(own.reset_index().assign(left_out=way, level=level))
    columns = ["left_out", "family", "source", "level", "rows", "held", "half_width"]
    return pd.concat(parts)[columns].sort_values(columns[:4])
