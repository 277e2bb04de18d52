"""The measurement as it is recorded: predictions first, then runs and their failures, as tables."""

import os
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import pandas as pd

from relparallel._checks import require_int, require_real
from relparallel.rehearsal.job import together
from relparallel.rehearsal.node import Run
from relparallel.rehearsal.pipelines import compared, measure
from relparallel.rehearsal.predictions import Inputs, inputs, measured, predicted, replayed, spread
from relparallel.units import DAY

CELL: Final = ["policy", "nodes_per_replica", "spares", "repair"]
_CELLS: Final = (
    ("elastic", 1, 0, 3.0),
    ("elastic", 4, 0, 3.0),
    ("elastic", 4, 4, 3.0),
    ("spares", 4, 4, 3.0),
    ("restart", 4, 0, 3.0),
    ("elastic", 1, 0, 40.0),
    ("elastic", 4, 0, 40.0),
    ("elastic", 4, 4, 40.0),
    ("spares", 4, 4, 40.0),
)
_STEP: Final = {1: 0.40, 4: 0.285}  # s: larger replicas make the faster strategy
_COSTS: Final = ["step", "checkpoint", "restart", "pause", "lag"]


def rehearse(folder: Path, seeds: int, seconds: float, backend: str) -> Iterator[str]:
    """Run pipelines; calibrate, predict, then run jobs as often as there are seeds; tell how it goes."""
    require_int(seeds=seeds, at_least=1)
    require_real(seconds=seconds, at_least=120, at_most=DAY)  # else hardly a node fails
    folder.mkdir(parents=True, exist_ok=True)
    if backend == "processes":
        pipelines = measure().assign(date=_now(), load=os.getloadavg()[1])
        _write(pipelines, folder / "pipelines.csv")
        yield compared(pipelines).drop(columns=["date", "load"]).round(4).to_string(index=False)
    known = _calibrated(runs_of(0, seconds / 2, backend))
    expected = []
    for run in runs_of(0, seconds, backend):
        own = known[_kind(run)]
        expected.append(
            {"date": _now(), **_cell(run), **own, **predicted(run, own), **spread(run, own)}
        )
    _write(expected, folder / "predictions.csv", backend=backend)
    yield f"predicted, before any run:\n{pd.DataFrame(expected).round(3).to_string(index=False)}"
    rows: list[dict[str, Any]] = []
    kills: list[dict[str, Any]] = []
    for seed in range(1, seeds + 1):
        runs, date = runs_of(seed, seconds, backend), _now()
        for run, log in zip(runs, together(runs), strict=True):
            row = {"date": date, "load": os.getloadavg()[1], "seed": seed, "seconds": seconds}
            row |= _cell(run) | measured(run, log)
            row["steady"] = _steady(row, known[_kind(run)]["step"])
            own = {"seed": seed, **_cell(run)}
            kills += [
                own | {"node": node, "start": at, "end": end} for node, at, end, _ in log.kills
            ]
            rows.append(row)
        _write(rows, folder / "runs.csv", backend=backend)
        _write(kills, folder / "kills.csv", backend=backend)
        shown = beside(folder).query("seed == @seed")
        yield f"seed {seed}:\n{shown.round(3).to_string(index=False)}"
        if not shown["steady"].all():
            yield "the machine was too busy to keep the steps of some runs: steady is False there"


def beside(folder: Path, **waits: float) -> pd.DataFrame:
    """Recorded runs beside what was predicted, and what the package gives on their own failures.

    ``waits`` as in `replayed`.
    """
    names = ("predictions", "runs", "kills")
    expected, found, kills = (pd.read_csv(folder / f"{name}.csv") for name in names)
    costs = expected.set_index(CELL)[_COSTS]
    shown = found.merge(expected[[*CELL, "predicted", "low", "high", "predicted_rate"]], on=CELL)
    struck = kills.groupby(["seed", *CELL])
    shown["same_failures"] = [
        replayed(run, costs.loc[cell].to_dict(), struck.get_group((row["seed"], *cell)), **waits)
        for row in shown.to_dict("records")
        for run in runs_of(row["seed"], row["seconds"])
        if (cell := tuple(_cell(run).values())) == tuple(row[name] for name in CELL)
    ]
    compared = ["measured", "predicted", "low", "high", "same_failures", "rate", "predicted_rate"]
    return shown[["seed", *CELL, "kills", *compared, "load", "steady"]]


def runs_of(seed: int, seconds: float, backend: str = "processes") -> list[Run]:
    """The jobs that run side by side under one seed; torchft has elastic ones without spares."""
    return [
        Run(
            policy=policy,
            nodes_per_replica=size,
            repair=repair,
            seed=seed,
            seconds=seconds,
            step=_STEP[size],
            spares=spares,
            backend=backend,
        )
        for policy, size, spares, repair in _CELLS
        if backend == "processes" or (policy, spares) == ("elastic", 0)
    ]


def _calibrated(runs: list[Run]) -> dict[tuple[Any, ...], Inputs]:
    """What each kind of job costs."""
    pairs = list(zip(runs, together(runs), strict=True))
    return {
        kind: inputs(*zip(*[pair for pair in pairs if _kind(pair[0]) == kind], strict=True))
        for kind in dict.fromkeys(map(_kind, runs))
    }


def _kind(run: Run) -> tuple[Any, ...]:
    """All of a cell but the repair time."""
    return tuple(_cell(run).values())[:-1]


def _steady(row: dict[str, Any], step: float) -> bool:
    """Whether steps took as long as in the calibration, and few took half as long again."""
    return bool(abs(row["step"] / step - 1) < 0.1 and row["late"] < 0.05)


def _cell(run: Run) -> dict[str, Any]:
    return {name: getattr(run, name) for name in CELL}


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="minutes")


def _write(rows: Any, path: Path, **columns: str) -> None:
    pd.DataFrame(rows).assign(**columns).to_csv(path, index=False, float_format="%.5g")
