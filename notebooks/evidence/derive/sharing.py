"""Replays of a shared cluster, and goodput fitted to measured steps, as derived tables."""

import json
from collections.abc import Mapping
from dataclasses import fields
from itertools import product
from pathlib import Path
from typing import Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from chapters import s38
from chapters.s38.shared_jobs import (
    Application,
    read_application,
    read_shared_jobs,
    statistical_goodput_fit,
)
from evidence.derive.plans import digest
from relparallel.units import HOUR

_APPLICATIONS: Final[Mapping[str, dict[str, int]]] = {
    "bert": {"epochs": 2},
    "cifar10": {"epochs": 100},
    "deepspeech2": {"epochs": 80},
    "imagenet": {"epochs": 90},
    "ncf": {"epochs": 10, "most": 1},
    "yolov3": {"epochs": 50, "largest": 8},
}
_FOLDS: Final = 5
_SHARING: Final = ("tiresias", "optimus", "pollux", "elastic")


def sharing_tables(folder: Path) -> dict[str, pd.DataFrame]:
    """Replays of workloads of Pollux's artefact, and the goodput fitted to its measured steps."""
    applications = {
        name: read_application(folder / "traces" / name, **how)
        for name, how in _APPLICATIONS.items()
    }
    fits = pd.DataFrame([_fit_row(app) for app in applications.values()])
    inputs = [folder / "traces" / name / "placements.csv" for name in applications]
    paths = sorted(folder.glob("workloads/*.csv"))
    busy = folder / "workloads" / "workload-6.csv"
    rows = [
        _shared_row(path, policy, applications, folder) for path, policy in product(paths, _SHARING)
    ]
    hit = [_hit_row(busy, *chosen, applications) for chosen in product(_SHARING, (24, 6), range(3))]
    return {
        "goodput_fits": fits.assign(input_sha256=[digest(path) for path in inputs]),
        "shared_clusters": pd.DataFrame(rows).assign(
            input_sha256=[digest(path) for path in paths for _ in _SHARING]
        ),
        "shared_failures": pd.DataFrame(hit).assign(input_sha256=digest(busy)),
    }


def _hit_row(
    path: Path, policy: str, hours: int, seed: int, applications: Mapping[str, Application]
) -> dict[str, object]:
    """Mean completion time [s] if a node fails every so many hours and is away 1 h on average."""
    run = s38.share_cluster(
        read_shared_jobs(path),
        applications,
        policy,
        node_rate=1 / (hours * HOUR),
        repair=HOUR,
        rng=np.random.default_rng(seed),
    )
    return {
        "policy": policy,
        "node_mtbf_h": hours,
        "seed": seed,
        "mean": run.mean_time,
        "failures": int(run.jobs["failures"].sum()),
    }


def _shared_row(
    path: Path, policy: str, applications: Mapping[str, Application], folder: Path
) -> dict[str, object]:
    """Mean completion time [s] beside the published one; how many jobs end at the same second."""
    run = s38.share_cluster(read_shared_jobs(path), applications, policy)
    row: dict[str, object] = {"workload": path.stem, "policy": policy, "jobs": len(run.jobs)}
    row |= {"mean": str(run.mean_time), "restarts": int(run.jobs["restarts"].sum())}
    summary = folder / "results-jobload" / f"{policy}-1.0" / "summary.json"
    if summary.is_file():
        told = json.loads(summary.read_text())
        times = pd.Series(told["jcts"][path.stem])
        same = (run.jobs["time"] - times).abs() < 0.5
        row |= {"published": str(told["avgs"][path.stem]), "same": int(same.sum())}
    return row


def _fit_row(app: Application) -> dict[str, object]:
    """Step time parameters, errors [root mean square of the logarithm], and the job's length."""
    assert app.measured is not None
    model, rows = app.model, app.measured
    placed = rows.groupby(["num_nodes", "num_replicas"]).ngroup() % _FOLDS
    fold = placed.where(rows["num_replicas"] > 1)  # a single GPU is in every fit
    left = [
        _log_error(statistical_goodput_fit(rows[fold != i], noise=1.0, batch=1), rows[fold == i])
        for i in range(_FOLDS)
    ]
    errors = [np.sqrt(np.mean(part**2)) for part in (_log_error(model, rows), np.concatenate(left))]
    return {
        "application": app.name,
        **{f.name: getattr(model, f.name) for f in fields(model)},
        "in_sample": errors[0],
        "left_out": errors[1],
        "epochs": app.epochs,
        "steps": app.progress[-1] / app.epochs,
        "smallest": app.smallest,
        "largest": app.largest,
        "largest_batch": app.batches[-1],
    }


def _log_error(model: s38.StatisticalGoodput, rows: pd.DataFrame) -> NDArray[np.float64]:
    split = (rows[name].to_numpy() for name in ("num_nodes", "num_replicas", "local_bsz"))
    return np.asarray(np.log(model.step_time(*split) / rows["step_time"].to_numpy()))
