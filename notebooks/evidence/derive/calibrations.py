"""Calibrations of step time, errors on left-out runs, what each parameter rests on, as tables."""

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
import pandas as pd

from evidence.derive.experience import bounds, experience_table, interval_coverage, quantiles
from evidence.fitting import (
    calibrate,
    cross_validate,
    errors,
    parameter_evidence,
    strategy_order,
)
from relparallel.parallel.machine_parameters import Calibration, borrow, generation
from relparallel.parallel.run import Run

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


def calibration_tables(runs: tuple[Run, ...]) -> Mapping[str, pd.DataFrame]:
    """Calibrations of all accelerators that were measured, and how far they are off."""
    found, errors_of, evidence, fits, checks = [], [], [], [], []
    known = experience_table(runs)
    for family in sorted({run.family for run in runs}):
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
                inside = _inside(table["error"], known, by) if column == "raw" else np.nan
                apart = crossed[by]["distance"] if way == "nearest" else np.nan
                ways[way] = table.assign(inside=inside, distance=apart)
        errors_of += [_summary(table, family, way) for way, table in ways.items()]
        for way in ways.keys() & {"left_out", "nearest"}:
            checks.append(_checks(own, ways[way]).assign(family=family, way=way))
        evidence.append(parameter_evidence(own).reset_index().assign(family=family))
        found.append(_stored(fitted))
    if len(fits) > 1:
        errors_of += [_lent(own, fitted, fits, known) for own, fitted in fits]
    levels = quantiles(known["publisher"].nunique()).items()
    found.append(
        pd.DataFrame(levels, columns=["name", "value"]).assign(family="every", kind="level")
    )
    table = pd.concat(found)[["family", "kind", "name", "value"]]
    return {
        "calibration": table.sort_values(["family", "kind"], kind="stable"),
        "calibration_errors": pd.concat(errors_of).sort_values("family", kind="stable"),
        "parameter_evidence": pd.concat(evidence).sort_values("family", kind="stable"),
        "usual_options": _usual_options(runs),
        "prediction_checks": pd.concat(checks)[_CHECKED].sort_values(_CHECKED),
        "experience": known.drop(columns=["source", "fold"]),
        "interval_coverage": interval_coverage(known),
    }


def _usual_options(runs: Sequence[Run]) -> pd.DataFrame:
    """With which options most runs of a software were done, by accelerator and kind of layers."""
    rows = [
        (device.name.rpartition("-")[0], generation(run.software), run.model.kind, run.software)
        for run in runs
        if (device := run.cluster.accelerator) and "+" not in generation(run.software)
    ]
    table = pd.DataFrame(rows, columns=["chip", "software", "kind", "usual"])
    most = table.groupby(["chip", "software", "kind"])["usual"].agg(lambda own: own.mode().max())
    found = most.reset_index()
    return found[found["usual"] != found["software"]]


def _inside(error: pd.Series, known: pd.DataFrame, by: str) -> pd.Series:
    """Whether errors (predicted over measured - 1) are in the 90 % interval that others give.

    Others are all runs but those of a source, of a software, or on a family of accelerators.
    """
    off = -np.log1p(error)
    return bounds(known, known[by].to_list(), off, lent=by == "family")[0.9].ge(off.abs())


def _checks(runs: list[Run], table: pd.DataFrame) -> pd.DataFrame:
    """By source: strategies in their right order, and errors of runs on thousands of GPUs."""
    order = strategy_order(runs, table["error"])
    many = table.loc[[run.id for run in runs if run.strategy.gpus >= _MANY]]
    size = many["error"].abs().groupby(many["source"])
    large = pd.DataFrame({"rows": size.size(), "mean": size.mean(), "largest": size.max()})
    parts = {"strategies in order": order, f"errors from {_MANY} GPUs on": large}
    return pd.concat([part.reset_index().assign(check=check) for check, part in parts.items()])


def _stored(fitted: Calibration) -> pd.DataFrame:
    """Rows of the table of calibrations."""
    rows = [("parameter", *item) for item in fitted.values.items()]
    rows += [("factor", *item) for item in fitted.factors.items()]
    table = pd.DataFrame(rows, columns=["kind", "name", "value"])
    return table.assign(family=fitted.family)


def _lent(
    own: list[Run],
    fitted: Calibration,
    fits: Sequence[tuple[list[Run], Calibration]],
    known: pd.DataFrame,
) -> pd.DataFrame:
    """Errors of a family's runs by the next family's parameters."""
    device = own[0].cluster.accelerator
    assert device is not None
    loan = borrow(device, (other for _, other in fits if other is not fitted))
    table = errors(own, loan)
    table = table.assign(inside=_inside(table["error"], known, "family"), distance=np.nan)
    return _summary(table, fitted.family, "borrowed")


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
