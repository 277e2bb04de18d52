"""Failures that come together, on real processes: pieces of a public trace, and kills of whole racks.

What is predicted by the law of shared events and by independent failures of the same rate is filed
before the runs. The law of a piece is fitted to what the trace holds before or after it.
"""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import pandas as pd

from relparallel.published import data_folder
from relparallel.rehearsal import recording
from relparallel.rehearsal.job import Timetable
from relparallel.rehearsal.node import Run
from relparallel.rehearsal.predictions import replayed, spread
from relparallel.training import FailureLog, NodeLives, SharedEvents, read_failure_log
from relparallel.units import DAY

NODES: Final = 96
_JOBS: Final = (  # policy, nodes of a replica, spares
    ("spares", 4, 8),
    ("elastic", 4, 0),
    ("elastic", 4, 8),
    ("regroup", 8, 0),
)
_SECONDS: Final = 480.0
_DAYS: Final = 80  # of the trace in a run
_RACK: Final = 8  # nodes
_SINGLE, _RACKS = 0.06, 0.006  # failures of nodes and of racks per second
_REPAIR: Final = 20.0  # s
_CALIBRATION: Final = 90.0  # s


class Scene(NamedTuple):
    """Failures of a run; what is known before: outages of a node per second, mean repair, and law."""

    name: str
    records: pd.DataFrame
    rate: float
    repair: float
    law: SharedEvents


def of_trace(rng: np.random.Generator) -> Scene:
    """Draw nodes and days of the trace; what is known is the longer part of it before or after."""
    path = data_folder() / "failures" / "infinitehbd" / "outages.csv"
    log = read_failure_log(path, population=400, overlaps="merge", ignore=("domain",))
    scale, last = _SECONDS / _DAYS, log.watched / DAY
    begin = float(rng.uniform(0, last - _DAYS))
    rows = pd.DataFrame({"node": log.node, "start": log.start / DAY, "end": log.end / DAY})
    rest = (0.0, begin) if begin > last - begin - _DAYS else (begin + _DAYS, last)
    within = rows["start"].between(*rest).to_numpy()
    other = FailureLog(
        node=log.node[within],
        start=log.start[within],
        end=log.end[within],
        cause=log.cause[within],
        population=log.population,
        begin=rest[0] * DAY,
        finish=rest[1] * DAY,
        overlaps="merge",
    )
    law = other.shared_events(nodes=NODES)
    places = dict(zip(np.unique(log.node), rng.permutation(400), strict=False))
    own = rows.assign(node=rows["node"].map(places)).query("node < @NODES")
    own[["start", "end"]] = ((own[["start", "end"]] - begin) * scale).clip(lower=0.0)
    own = own[(own["end"] > 0) & (own["start"] < _SECONDS)]
    day = DAY / scale  # s of the trace in one of the run
    repair = float(other.repairs.mean())
    slow = replace(law, lasting=law.lasting / day)
    return Scene("trace", own, other.outage_rate * day, repair / day, slow)


def of_racks(rng: np.random.Generator) -> Scene:
    """Draw failures of nodes and of whole racks, which come back together."""
    sizes = np.zeros(_RACK)
    sizes[[0, -1]] = np.array([_SINGLE, _RACKS]) / (_SINGLE + _RACKS)
    law = SharedEvents(sizes=tuple(sizes), neighbours=True)
    rows = []
    for rate, width in ((_SINGLE, 1), (_RACKS, _RACK)):
        span = _SECONDS + 10 * _REPAIR  # some are down as the run begins
        for start in rng.uniform(-10 * _REPAIR, _SECONDS, rng.poisson(rate * span)):
            first, end = int(rng.integers(NODES // width)) * width, start + rng.exponential(_REPAIR)
            rows += [(node, max(start, 0.0), end) for node in range(first, first + width)]
    table = pd.DataFrame(rows, columns=["node", "start", "end"]).query("end > 0")
    table = table.sort_values(["node", "start"])
    free = table.groupby("node")["end"].cummax().groupby(table["node"]).shift(fill_value=0.0)
    table["start"] = np.maximum(table["start"], free)  # a node that is down fails no second time
    rate = (_SINGLE + _RACK * _RACKS) / NODES
    return Scene("racks", table[table["start"] < table["end"]], rate, _REPAIR, law)


def rehearse_bursts(folder: Path, count: int, seed: int) -> Iterator[str]:
    """Calibrate, file what both laws predict of so many scenes of each kind, then run them."""
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(seed)
    scenes = [draw(rng) for _ in range(count) for draw in (of_trace, of_racks)]
    runs = [_runs(scene.repair, 1 / scene.rate, _SECONDS) for scene in scenes]
    if not (folder / "predictions.csv").exists():
        costs = recording.known_of(recording.calibrated(_runs(3.0, 4.0 * NODES, _CALIBRATION), 1))
        filed: list[dict[str, Any]] = []
        for place, scene in enumerate(scenes):
            for run, (known,) in zip(runs[place], costs.values(), strict=True):
                row: dict[str, Any] = {
                    "date": recording.now(),
                    "scene": place,
                    "kind": scene.name,
                }
                for name, source in (("law", scene.law), ("independent", NodeLives())):
                    found = spread(run, [known], source)
                    row |= {f"{key}_{name}": value for key, value in found.items()}
                filed.append(row | recording.cell(run) | known)
        recording.write(filed, folder / "predictions.csv")
        yield f"{len(filed)} runs are predicted"
    filed = recording.stored(folder / "predictions.csv")
    rows = recording.stored(folder / "runs.csv")
    for place in range(len(rows) // len(_JOBS), len(scenes)):
        scene, date = scenes[place], recording.now()
        logs = recording.side_by_side(runs[place], [Timetable(scene.records) for _ in _JOBS])
        own = [row for row in filed if row["scene"] == place]
        for run, log, row in zip(runs[place], logs, own, strict=True):
            result = {"date": date, "scene": place, **recording.cell(run)}
            result |= recording.outcome(run, log, row)
            known = {name: row[name] for name in recording.COSTS}
            rows.append(result | {"same_failures": replayed(run, known, scene.records)})
        recording.write(rows, folder / "runs.csv")
        yield beside_bursts(folder).tail(len(_JOBS)).round(3).to_string()


def beside_bursts(folder: Path) -> pd.DataFrame:
    """Recorded runs beside what both laws predicted."""
    filed, runs = (pd.read_csv(folder / f"{name}.csv") for name in ("predictions", "runs"))
    keys = ["scene", *recording.CELL[:-1]]
    found = ["measured", "same_failures", "kills", "timeouts", "steady"]
    return filed.drop(columns=recording.COSTS).merge(runs[[*keys, *found]], on=keys)


def _runs(repair: float, mtbf: float, seconds: float) -> list[Run]:
    given: dict[str, Any] = {"repair": repair, "mtbf": mtbf, "seconds": seconds, "nodes": NODES}
    given |= {"start": 0.5, "write": 0.03, "step": 0.5, "seed": 0, "exposed": True}
    return [
        Run(policy=policy, nodes_per_replica=size, spares=spares, **given)
        for policy, size, spares in _JOBS
    ]
