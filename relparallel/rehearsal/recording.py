"""The measurement as it is recorded: costs, predictions, then runs and their failures, as tables."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd

from relparallel._checks import require_int, require_real
from relparallel.rehearsal.job import Chaos, Log, together
from relparallel.rehearsal.node import Run
from relparallel.rehearsal.pipelines import compared, measure
from relparallel.rehearsal.predictions import Inputs, inputs, measured, predicted, replayed, spread
from relparallel.rehearsal.processes import apart, require
from relparallel.units import DAY

CELL: Final = ["policy", "nodes_per_replica", "spares", "copies", "repair"]
COSTS: Final = ["step", "checkpoint", "restart", "pause", "lag"]
_KINDS: Final = (  # all of a cell but the repair time
    ("elastic", 1, 0, 0),
    ("elastic", 4, 0, 0),
    ("elastic", 4, 4, 0),
    ("spares", 4, 4, 0),
    ("restart", 4, 0, 0),
    ("regroup", 4, 0, 0),
    ("elastic", 2, 0, 2),
    ("elastic", 2, 0, 1),
)
_REPAIRS: Final = (3.0, 40.0)  # s
_STEP: Final = {1: 0.40, 2: 0.34, 4: 0.285}  # s: larger replicas make the faster strategy
_REPEATS: Final = 10  # of the calibration, which is the weakest input
_DRAWN: Final = 1000  # seed of the first of them, away from those of the runs


def rehearse(folder: Path, seeds: int, seconds: float, backend: str) -> Iterator[str]:
    """Calibrate, predict, then run jobs as often as there are seeds; tell how it goes.

    What the folder holds is not done again.
    """
    require_int(seeds=seeds, at_least=1)
    require_real(seconds=seconds, at_least=120, at_most=DAY)  # else hardly a node fails
    require(backend)
    folder.mkdir(parents=True, exist_ok=True)
    jobs = runs_of(0, seconds, backend)
    if not (folder / "costs.csv").exists():
        costs = calibrated(runs_of(0, seconds / 2, backend, _REPAIRS[:1]), _REPEATS)
        write(costs, folder / "costs.csv", backend=backend)
    if not (folder / "predictions.csv").exists():
        known = known_of(stored(folder / "costs.csv"))
        filed = [{"date": now(), **cell(run), **forecast(run, known[kind(run)])} for run in jobs]
        write(filed, folder / "predictions.csv", backend=backend)
    filed = stored(folder / "predictions.csv")
    yield f"predicted, before any run:\n{pd.DataFrame(filed).round(3).to_string(index=False)}"
    rows, kills = (stored(folder / f"{name}.csv") for name in ("runs", "kills"))
    for seed in range(len(rows) // len(jobs) + 1, seeds + 1):
        runs, date = runs_of(seed, seconds, backend), now()
        for run, log, row in zip(runs, side_by_side(runs), filed, strict=True):
            own = {"seed": seed, **cell(run)}
            rows.append({"date": date, **own, **outcome(run, log, row)})
            kills += struck(own, log)
        write(rows, folder / "runs.csv", backend=backend)
        write(kills, folder / "kills.csv", backend=backend)
        shown = beside(folder).query("seed == @seed")
        yield f"seed {seed}:\n{shown.round(3).to_string(index=False)}"
        if not shown["steady"].all():
            yield "the machine was too busy to keep the steps of some runs: steady is False there"


def rehearse_pipelines(folder: Path) -> Iterator[str]:
    """Run the pipeline schedules of PyTorch, and tell how they stand to the predicted ones."""
    pipelines = measure().assign(date=now(), load=os.getloadavg()[1])
    folder.mkdir(parents=True, exist_ok=True)
    write(pipelines, folder / "pipelines.csv")
    yield compared(pipelines).drop(columns=["date", "load"]).round(4).to_string(index=False)


def beside(folder: Path) -> pd.DataFrame:
    """Recorded runs beside what was predicted, and what the package gives on their own failures."""
    names = ("predictions", "runs", "kills")
    expected, found, kills = (pd.read_csv(folder / f"{name}.csv") for name in names)
    costs = expected.set_index(CELL)[COSTS]
    filed = ["predicted", "expected", "low", "high", "predicted_rate"]
    shown = found.merge(expected[[*CELL, *filed]], on=CELL)
    own = kills.groupby(["seed", *CELL])
    shown["same_failures"] = [
        replayed(run, costs.loc[place].to_dict(), own.get_group((row["seed"], *place)))
        for row in shown.to_dict("records")
        for run in runs_of(row["seed"], row["seconds"])
        if (place := tuple(cell(run).values())) == tuple(row[name] for name in CELL)
    ]
    compared = ["measured", *filed, "same_failures", "rate"]
    return shown[["seed", *CELL, "kills", *compared, "load", "steady"]]


def runs_of(
    seed: int,
    seconds: float,
    backend: str = "sockets",
    repairs: Sequence[float] = _REPAIRS,
) -> list[Run]:
    """The jobs that run side by side under one seed; torchft has elastic ones with all of the state."""
    return [
        Run(
            policy=policy,
            nodes_per_replica=size,
            repair=repair,
            seed=seed,
            seconds=seconds,
            step=_STEP[size],
            spares=spares,
            copies=copies,
            backend=backend,
        )
        for repair in repairs
        for policy, size, spares, copies in _KINDS
        if backend != "torchft" or (policy, spares, copies) == ("elastic", 0, 0)
    ]


def side_by_side(runs: Sequence[Run], chaos: Sequence[Chaos] | None = None) -> list[Log]:
    """Rehearse jobs in processes that hold little else."""
    return list(apart(together, runs, chaos))


def calibrated(runs: Sequence[Run], repeats: int) -> list[dict[str, Any]]:
    """What each kind of job costs, run by run."""
    rows = []
    for repeat in range(repeats):
        again = [replace(run, seed=_DRAWN + repeat) for run in runs]
        for run, log in zip(again, side_by_side(again), strict=True):
            own = dict(zip(CELL[:-1], kind(run), strict=True))
            rows.append({"repeat": repeat, **own, **inputs([run], [log])})
    return rows


def known_of(rows: Sequence[dict[str, Any]]) -> dict[tuple[Any, ...], list[Inputs]]:
    """Costs of each kind of job, one for each repeat."""
    known: dict[tuple[Any, ...], list[Inputs]] = {}
    for row in rows:
        own = known.setdefault(tuple(row[name] for name in CELL[:-1]), [])
        own.append({name: row[name] for name in COSTS})
    return known


def mean_of(repeats: Sequence[Inputs]) -> Inputs:
    """Mean costs of repeats."""
    return {name: float(np.mean([known[name] for known in repeats])) for name in COSTS}


def forecast(run: Run, repeats: Sequence[Inputs]) -> dict[str, float]:
    """What is filed of a run before it begins."""
    known = mean_of(repeats)
    return {**known, **predicted(run, known), **spread(run, repeats)}


def outcome(run: Run, log: Log, known: Inputs) -> dict[str, Any]:
    """What is recorded of a run."""
    row = {"load": os.getloadavg()[1], "seconds": run.seconds, **measured(run, log)}
    row["steady"] = abs(row["step"] / known["step"] - 1) < 0.1 and row["late"] < 0.05
    return row


def struck(own: dict[str, Any], log: Log) -> list[dict[str, Any]]:
    """The failures of a run."""
    return [own | {"node": node, "start": at, "end": end} for node, at, end, _ in log.kills]


def kind(run: Run) -> tuple[Any, ...]:
    """All of a cell but the repair time."""
    return tuple(cell(run).values())[:-1]


def cell(run: Run) -> dict[str, Any]:
    """What tells the jobs of one seed apart."""
    return {name: getattr(run, name) for name in CELL}


def now() -> str:
    """Date and time."""
    return datetime.now(UTC).isoformat(timespec="minutes")


def stored(path: Path) -> list[dict[str, Any]]:
    """Rows of a table that was written, none where there is none."""
    rows = pd.read_csv(path).to_dict("records") if path.exists() else []
    return [{str(name): value for name, value in row.items()} for row in rows]


def write(rows: Any, path: Path, **columns: str) -> None:
    """Store a table, whole or not at all."""
    part = path.with_suffix(".part")
    pd.DataFrame(rows).assign(**columns).to_csv(part, index=False, float_format="%.5g")
    part.replace(path)
