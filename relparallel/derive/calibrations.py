"""Calibrations of step time, errors on left-out runs, what each parameter rests on, as tables."""

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
import pandas as pd

from relparallel.parallel.calibration import Calibration, borrow, untried
from relparallel.parallel.fitting import (
    calibrate,
    coverage,
    cross_validate,
    errors,
    parameter_evidence,
    prediction_scatter,
    strategy_order,
)
from relparallel.parallel.measured_runs import Run, measured_runs

# measured by most sources: its scatter stands for that of families with few
_WIDEST: Final = "a100"
_GROUPS: Final = ("source", "software")
_WAYS: Final = {
    "left_out": ("source", "raw"),
    "left_out_one_factor": ("source", "one_factor"),
    "left_out_software": ("software", "raw"),
    "left_out_software_one_factor": ("software", "one_factor"),
    "constant": ("source", "constant"),
    "nearest": ("source", "nearest"),
}
_CHECKED: Final = ["family", "check", "source", "way", "rows", "mean", "largest"]
_MANY: Final = 4096  # GPUs from which a run is asked about by itself
_COVERED: Final = tuple(_WAYS)[:4]


def calibration_tables(runs: tuple[Run, ...]) -> Mapping[str, pd.DataFrame]:
    """Calibrations of all accelerators that were measured, and how far they are off.

    The scatter is that of left-out runs, with a factor where their software is known. A family that
    was measured with a single software takes that of the A100.
    """
    found, errors_of, evidence, fits, checks = [], [], [], [], []
    scatters: dict[str, dict[str, dict[float, float]]] = {}
    for family in sorted({run.family for run in runs}, key=lambda name: (name != _WIDEST, name)):
        own = [run for run in runs if run.family == family]
        fitted = calibrate(own)
        fits.append((own, fitted))
        ways = {
            "joint": errors(own, fitted)[["source", "error"]].assign(inside=np.nan, distance=np.nan)
        }
        crossed = {
            by: cross_validate(own, by)
            for by in _GROUPS
            if len({getattr(run, by) for run in own}) > 1
        }
        for way, (by, column) in _WAYS.items():
            if by in crossed:
                table = crossed[by][["source", column]].set_axis(["source", "error"], axis=1)
                inside = coverage(crossed[by], column) if way in _COVERED else np.nan
                apart = crossed[by]["distance"] if way == "nearest" else np.nan
                ways[way] = table.assign(inside=inside, distance=apart)
        if len(crossed) == len(_GROUPS):
            scatters[family] = prediction_scatter(*crossed.values())
        errors_of += [_summary(table, family, way) for way, table in ways.items()]
        for way in ways.keys() & {"left_out", "nearest"}:
            checks.append(_checks(own, ways[way]).assign(family=family, way=way))
        evidence.append(parameter_evidence(own).reset_index().assign(family=family))
        found.append(_stored(fitted, family, scatters.get(family, scatters.get(_WIDEST, {}))))
    if len(fits) > 1:
        loans = _loans(fits)
        errors_of += [
            _summary(own, str(family), "borrowed") for family, own in loans.groupby("group")
        ]
        found.append(_stored(None, "borrowed", prediction_scatter(loans, loans)))
        unfitted, rare = _unfitted([fitted for _, fitted in fits], loans)
        errors_of += [
            _summary(own, str(family), "unfitted") for family, own in unfitted.groupby("family")
        ]
        found.append(_stored(None, "untried", prediction_scatter(rare, rare)))
    table = pd.concat(found)[["family", "kind", "name", "value"]]
    return {
        "calibration": table.sort_values(["family", "kind"], kind="stable"),
        "calibration_errors": pd.concat(errors_of).sort_values("family", kind="stable"),
        "parameter_evidence": pd.concat(evidence).sort_values("family", kind="stable"),
        "prediction_checks": pd.concat(checks)[_CHECKED].sort_values(_CHECKED),
    }


def _checks(runs: list[Run], table: pd.DataFrame) -> pd.DataFrame:
    """By source: strategies in their right order, and errors of runs on thousands of GPUs."""
    order = strategy_order(runs, table["error"])
    many = table.loc[[run.id for run in runs if run.strategy.gpus >= _MANY]]
    size = many["error"].abs().groupby(many["source"])
    large = pd.DataFrame({"rows": size.size(), "mean": size.mean(), "largest": size.max()})
    parts = {"strategies in order": order, f"errors from {_MANY} GPUs on": large}
    return pd.concat([part.reset_index().assign(check=check) for check, part in parts.items()])


def _stored(
    fitted: Calibration | None, family: str, scatter: Mapping[str, Mapping[float, float]]
) -> pd.DataFrame:
    """Rows of the table of calibrations."""
    rows = [("parameter", *item) for item in fitted.values.items()] if fitted else []
    rows += [("factor", *item) for item in fitted.factors.items()] if fitted else []
    rows += [
        (f"scatter {kind}", str(level), bound)
        for kind, bounds in scatter.items()
        for level, bound in bounds.items()
    ]
    return pd.DataFrame(rows, columns=["kind", "name", "value"]).assign(family=family)


def _loans(fits: Sequence[tuple[list[Run], Calibration]]) -> pd.DataFrame:
    """Errors of each family's runs by the next family's parameters; runs of a family err alike."""
    tables = []
    for own, fitted in fits:
        device = own[0].cluster.accelerator
        assert device is not None
        loan = borrow(device, (other for _, other in fits if other is not fitted))
        table = errors(own, loan).assign(group=fitted.family, distance=np.nan)
        tables.append(table.assign(raw=table["error"], one_factor=table["error"]))
    loans = pd.concat(tables)
    return loans.assign(inside=coverage(loans, "raw"))


def _unfitted(
    fits: Sequence[Calibration], loans: pd.DataFrame
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Errors of runs that are in no fit, and those of them of an `untried` kind; sources err alike.

    Inside is what keeps the width that other such sources give, or where an accelerator alone is
    new, loans.
    """
    runs = [run for run in measured_runs(unfitted=True) if not run.fitted]
    known, tables = {one.family: one for one in fits}, []
    for family in sorted({run.family for run in runs}):
        own = [run for run in runs if run.family == family]
        device = own[0].cluster.accelerator
        assert device is not None
        table = errors(own, known.get(family) or borrow(device, fits))
        kinds = [untried(run.model.experts, run.precision) for run in own]
        tables.append(
            table.assign(family=family, kind=kinds, group=table["source"], distance=np.nan)
        )
    table = pd.concat(tables)
    table = table.assign(raw=table["error"], one_factor=table["error"])
    rare = table[table["kind"] != ""]
    inside = coverage(rare, "raw"), coverage(pd.concat([loans, table[table["kind"] == ""]]), "raw")
    return table.assign(inside=pd.concat(inside).reindex(table.index)), rare


def _summary(table: pd.DataFrame, family: str, way: str) -> pd.DataFrame:
    """Errors of every source, and of all of them pooled."""
    pooled = pd.concat([table, table.assign(source="all")])
    pooled["size"] = pooled["error"].abs()
    counted = (
        pooled.groupby("source", sort=False)
        .agg(
            rows=("size", "size"),
            mean=("size", "mean"),
            median=("size", "median"),
            largest=("size", "max"),
            bias=("error", "median"),
            coverage=("inside", "mean"),
            distance=("distance", "median"),
        )
        .reset_index()
    )
    return counted.assign(family=family, way=way)[["family", "source", "way", *counted.columns[1:]]]
