"""How much steps and runs of one job differ, from series of MLPerf Training, as a derived table."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from evidence.derive.plans import digest
from relparallel.published import read_inputs
from relparallel.training.order_statistics import LAWS, NORMAL, largest

STEP_INPUTS: Final = ["data/mlperf-training/steps.csv.gz", "facts/measured-runs.csv"]
_SLOW: Final = 2  # first steps of a run, which start it up

Series = NDArray[np.float64]


def step_table(paths: Sequence[Path]) -> pd.DataFrame:
    """A row for each submission and one for all: standard deviations over means.

    ``step_sd``: of a step within a run; of means of b steps in a row, times sqrt(b), b =
    sqrt(steps), so that steps in a row that are alike count. ``run_sd``: of the step time of a run,
    from the range of k of them, 2 e_k deviations on average. ``gpu_sd``: of GPUs of which the
    slowest of n sets the pace of a run, run_sd / w_n; e and w are mean and standard deviation of
    the largest of normal draws. ``inside``: share of runs that are in the 90 % range that the other
    rounds give around the others of the submission. For all: root mean squares, mean of ``inside``.
    """
    series = pd.read_csv(paths[0]).query("kind == 'step'")
    steps = {str(name): _runs(rows) for name, rows in series.groupby("id")}
    given = pd.read_csv(paths[1])
    given = given[given["id"].str.endswith("-SPREAD")]
    table = pd.DataFrame([_row(row, steps) for row in given.to_dict("records")])
    table["inside"] = [_inside(row, table, steps) for row in table.to_dict("records")]
    every: dict[str, Any] = {"id": "all", "gpus": table["gpus"].max(), "runs": table["runs"].sum()}
    every |= {name: _pooled(table[name]) for name in ("step_sd", "run_sd", "gpu_sd")}
    table.loc[len(table)] = every | {"inside": table["inside"].mean()}
    return table.assign(input_sha256=digest(*paths))


def _runs(rows: pd.DataFrame) -> list[Series]:
    """Seconds of the steps of every run, without those that start it up."""
    return [run.to_numpy()[_SLOW:] for _, run in rows.groupby("run")["seconds"]]


def _row(fact: dict[Any, Any], steps: dict[str, list[Series]]) -> dict[str, Any]:
    """One submission."""
    name, inputs = fact["id"].removesuffix("-SPREAD"), read_inputs(fact["inputs"])
    gpus, runs = int(inputs["gpus"]), int(inputs["runs"])
    apart = np.log1p(float(fact["value"])) / (2 * largest(runs, LAWS["normal"])[0])
    return {
        "id": name,
        "gpus": gpus,
        "runs": runs,
        "step_sd": _pooled([_noise(run) for run in steps.get(name, [])]),
        "run_sd": apart,
        "gpu_sd": apart / largest(gpus, LAWS["normal"])[1],
    }


def _noise(run: Series) -> float:
    """Standard deviation of a step over its mean, as means of many in a row show it."""
    size = int(np.sqrt(run.size))
    means = run[: run.size // size * size].reshape(-1, size).mean(axis=1)
    return float(np.sqrt(size) * means.std(ddof=1) / run.mean())


def _pooled(deviations: Any) -> float:
    """Root mean square of those that are known."""
    known = np.asarray(deviations, dtype=np.float64)
    known = known[np.isfinite(known)]
    return float(np.sqrt(np.mean(known**2))) if known.size else np.nan


def _inside(row: dict[Any, Any], table: pd.DataFrame, steps: dict[str, list[Series]]) -> float:
    """Share of the runs of a submission that lie where other rounds and its other runs say."""
    runs = steps.get(row["id"], [])
    if not runs:
        return np.nan
    apart = table[~table["id"].str.startswith(row["id"].rpartition("-")[0])]
    stays = _pooled(apart["gpu_sd"]) * largest(row["gpus"], LAWS["normal"])[1]
    passes = _pooled(apart["step_sd"]) / np.sqrt([run.size for run in runs])
    means = np.array([run.mean() for run in runs])
    others = (means.sum() - means) / (means.size - 1)
    wide = NORMAL * np.hypot(stays, passes) * np.sqrt(means.size / (means.size - 1))
    return float((np.abs(np.log(means / others)) < wide).mean())
