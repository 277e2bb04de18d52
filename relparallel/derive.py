"""Results on data that are too large to ship, as tables that the project ships: ``data/derived/*.csv``.

``python -m relparallel derive`` reads the folder that ``RELPARALLEL_DATA`` names and writes every table anew.
Each row says from which input it was computed (sha256), so that a reader can tell whether it is still true.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import pandas as pd

from relparallel.parallel.fitting import calibrate, cross_validate, errors, family_of, prediction_scatter
from relparallel.parallel.measured_runs import Run, measured_runs
from relparallel.published import data_folder

__all__ = ["calibration_tables", "derive"]

_DIGITS: Final = 6
_WIDEST: Final = "a100"  # measured by most sources: its scatter stands for that of families with few


def derive(folder: Path | None = None) -> list[Path]:
    """Compute every derived table and write it.

    Parameters
    ----------
    folder : Path, optional
        Where to write; by default ``data/derived`` of the checkout.

    Returns
    -------
    list of Path
        The files written, each in one step.

    Raises
    ------
    ValueError
        If ``RELPARALLEL_DATA`` names no folder with ``facts/parallelism-cost.csv``.

    Examples
    --------
    >>> derive()  # doctest: +SKIP
    [PosixPath('data/derived/calibration.csv'), PosixPath('data/derived/calibration_errors.csv')]
    """
    target = data_folder() / "derived" if folder is None else folder
    source = _input("facts/parallelism-cost.csv")
    digest = hashlib.sha256(source.read_bytes()).hexdigest()
    written = []
    target.mkdir(parents=True, exist_ok=True)
    for name, table in calibration_tables(measured_runs()).items():
        table["input_sha256"] = digest
        written.append(_write(table, target / f"{name}.csv"))
    return written


def calibration_tables(runs: tuple[Run, ...]) -> Mapping[str, pd.DataFrame]:
    """Calibrations of all accelerators that were measured, and how far they are off.

    Parameters
    ----------
    runs : tuple of Run
        Measured steps.

    Returns
    -------
    mapping of str to pandas.DataFrame
        ``calibration``: family, kind (parameter, factor, scatter), name, value. ``calibration_errors``:
        family, source, way (joint, left_out, left_out_one_factor), rows, mean, median and largest absolute
        error.

    Notes
    -----
    The scatter is that of runs whose source was left out, one factor for the source given. A family whose
    sources are of few kinds takes that of the A100, which is the wider one.

    Examples
    --------
    >>> runs = [run for run in measured_runs() if run.source in ("PTD-P", "Korthikanti")]
    >>> list(calibration_tables(tuple(runs)))
    ['calibration', 'calibration_errors']
    """
    families = sorted({family_of(run) for run in runs})
    found, errors_of = [], []
    scatters: dict[str, dict[str, dict[float, float]]] = {}
    for family in families:
        own = [run for run in runs if family_of(run) == family]
        fitted = calibrate(own)
        ways = {"joint": errors(own, fitted)[["source", "error"]]}
        if len({run.source for run in own}) > 1:
            crossed = cross_validate(own)
            ways["left_out"] = crossed[["source", "raw"]].set_axis(["source", "error"], axis=1)
            ways["left_out_one_factor"] = crossed[["source", "one_factor"]].set_axis(
                ["source", "error"], axis=1
            )
            if family == _WIDEST:
                scatters[family] = prediction_scatter(crossed)
        rows = [("parameter", *item) for item in fitted.values.items()]
        rows += [("factor", *item) for item in fitted.factors.items()]
        found.append(pd.DataFrame(rows, columns=["kind", "name", "value"]).assign(family=family))
        errors_of += [_summary(table, family, way) for way, table in ways.items()]
    for family in families:
        rows = [
            (f"scatter {regime}", str(level), bound)
            for regime, bounds in scatters.get(family, scatters[_WIDEST]).items()
            for level, bound in bounds.items()
        ]
        found.append(pd.DataFrame(rows, columns=["kind", "name", "value"]).assign(family=family))
    table = pd.concat(found)[["family", "kind", "name", "value"]].sort_values(
        ["family", "kind"], kind="stable"
    )
    return {"calibration": table, "calibration_errors": pd.concat(errors_of)}


def _summary(table: pd.DataFrame, family: str, way: str) -> pd.DataFrame:
    """Errors of every source, and of all of them pooled."""
    pooled = pd.concat([table, table.assign(source="all")])
    size = pooled["error"].abs().groupby(pooled["source"], sort=False)
    counted = size.agg(rows="size", mean="mean", median="median", largest="max").reset_index()
    return counted.assign(family=family, way=way)[
        ["family", "source", "way", "rows", "mean", "median", "largest"]
    ]


def _input(name: str) -> Path:
    """A file of the folder with the large data."""
    given = os.environ.get("RELPARALLEL_DATA", "")
    path = Path(given) / name
    if not given or not path.is_file():
        raise ValueError(f"RELPARALLEL_DATA must name a folder that holds {name}, got {given!r}")
    return path


def _write(table: pd.DataFrame, path: Path) -> Path:
    """Write a table in one step."""
    partial = path.with_suffix(".partial")
    table.to_csv(partial, index=False, float_format=f"%.{_DIGITS}g", lineterminator="\n")
    partial.replace(path)
    return path
