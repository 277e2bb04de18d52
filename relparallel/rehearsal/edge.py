"""Pairs of jobs near the load at which the faster one is overtaken: drawn, predicted, then run.

The rivals know the same speeds and costs, and each one thing more: how many nodes are up, or what
failures cost while they are handled, or nothing.
"""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import pandas as pd

from relparallel.rehearsal import recording
from relparallel.rehearsal.node import SAMPLES, Run
from relparallel.rehearsal.predictions import Inputs, inputs, predicted, replayed

LOADS: Final = (0.5, 0.8, 1.25, 2.0)  # repair time over that of the predicted break-even
RIVALS: Final = ("availability", "young_daly", "speed")
_KINDS: Final = (  # of a recovery: policy, nodes of a replica, spares, copies of the state
    tuple(("elastic", size, 0, 0) for size in (2, 4, 8, 16)),
    tuple(("elastic", size, 0, 2) for size in (2, 4, 8, 16)),
    tuple(("regroup", size, 0, 0) for size in (4, 8, 16)),
    (("elastic", 2, 2, 0), ("elastic", 4, 4, 0)),
    tuple(("spares", 2, spares, 0) for spares in (2, 4, 6)),
)
_STEP: Final = 0.5  # s, of the faster job
_RATIO: Final = (1.03, 1.10)  # of the speeds
_EVERY: Final = (4.0, 8.0)  # s between two failures of the job
_START: Final = (0.3, 2.0)  # s of a process: a lag from a tenth of a repair to twice one
_REPAIR: Final = (0.7, 14.0)  # s, between which the break-even is wanted
_GUESSED: Final = {"checkpoint": 0.06, "pause": 0.6, "lag": 0.4, "restart": 1.2}  # and the start
_SIDE: Final = 6  # pairs that run side by side
_CALIBRATION: Final = 60.0  # s
_DRAWN: Final = 10_000  # seed of the first calibration, away from those of the runs


class Pair(NamedTuple):
    """The faster job, the other one, and where the load lies."""

    fast: Run
    slow: Run
    load: float


def drawn(rng: np.random.Generator, seconds: float) -> Iterator[Pair]:
    """Pairs without end whose faster job is overtaken, by what costs usually are."""
    place = 0
    while True:
        nodes = int(rng.choice([64, 96, 128], p=[0.7, 0.2, 0.1]))
        given: dict[str, Any] = {
            "repair": 1.0,
            "seconds": seconds,
            "nodes": nodes,
            "mtbf": nodes * float(np.exp(rng.uniform(*np.log(_EVERY)))),
            "start": float(np.exp(rng.uniform(*np.log(_START)))),
            "write": 0.03,
        }
        steps = _STEP * np.array([1.0, rng.uniform(*_RATIO)])
        fast, slow = (
            Run(
                policy=policy,
                nodes_per_replica=size,
                spares=spares,
                copies=copies,
                step=float(step),
                seed=place,
                **given,
            )
            for step, kinds in zip(steps, rng.integers(len(_KINDS), size=2), strict=True)
            for policy, size, spares, copies in [_KINDS[kinds][rng.integers(len(_KINDS[kinds]))]]
        )
        known = [_guessed(run) for run in (fast, slow)]
        if break_even(fast, slow, *known) > 2 * _REPAIR[0]:  # costs will be others than these
            yield Pair(fast, slow, LOADS[place % len(LOADS)])
            place += 1


def break_even(fast: Run, slow: Run, known: Inputs, other: Inputs) -> float:
    """Repair time from which the slower job does more [s]; NaN where there is none in the range, or two."""
    from scipy.optimize import brentq

    def lead(repair: float) -> float:
        rates = (
            predicted(replace(run, repair=repair), costs)["predicted_rate"]
            for run, costs in ((fast, known), (slow, other))
        )
        return float(np.log(next(rates) / next(rates)))

    sure = np.isfinite(
        [*known.values(), *other.values()]
    ).all()  # else it never came to a checkpoint
    if not sure or not lead(_REPAIR[0]) > 0 > lead(_REPAIR[1]):
        return np.nan
    even = float(brentq(lead, *_REPAIR, rtol=1e-4))
    return even if all(lead(load * even) * (1 - load) > 0 for load in LOADS) else np.nan


def rivals(run: Run, known: Inputs) -> dict[str, float]:
    """Samples a second by nodes that are up, by what failures cost while they are handled, by speed."""
    from scipy.stats import binom

    active, size = run.nodes - run.spares, run.nodes_per_replica
    speed = SAMPLES * active / known["step"]
    missing = np.maximum(np.arange(run.nodes + 1) - run.spares, 0)
    chance = binom.pmf(np.arange(run.nodes + 1), run.nodes, run.repair / (run.repair + run.mtbf))
    up = {
        "spares": missing == 0,
        "restart": missing == 0,
        "elastic": (1 - np.minimum(missing / active, 1)) ** size,
        "regroup": np.maximum(active - missing, 0) // size * size / active,
    }[run.policy]
    interval = run.every * known["step"]
    each = known["pause"] + (0.0 if run.elastic else known["restart"] + interval / 2)
    kept = max(1 - active / run.mtbf * each, 0.01) / (1 + known["checkpoint"] / interval)
    return dict(
        zip(RIVALS, (speed * max(float(chance @ up), 0.01), speed * kept, speed), strict=True)
    )


def rehearse_edge(folder: Path, count: int, seconds: float, seed: int) -> Iterator[str]:
    """Draw pairs; calibrate, file what is predicted, and run them, a few at a time; tell how it goes.

    What the folder holds is not done again. Costs are measured just before, since they vary with
    what else the machine does.
    """
    folder.mkdir(parents=True, exist_ok=True)
    filed, rows = (recording.stored(folder / f"{name}.csv") for name in ("pairs", "runs"))
    source = drawn(np.random.default_rng(seed), seconds)
    known: dict[int, Pair] = {}
    while len(rows) < 2 * count:
        more = [next(source) for _ in range(min(_SIDE, count - len(rows) // 2))]
        known |= {pair.fast.seed: pair for pair in more}
        if len(filed) == len(rows) and filed and more[-1].fast.seed <= filed[-1]["seed"]:
            continue  # ran before
        if len(filed) == len(rows):
            filed += _predicted(more, len(filed) // 2)
            recording.write(filed, folder / "pairs.csv")
        own, date = filed[len(rows) :], recording.now()
        if not own:
            continue
        runs = [
            replace(getattr(known[row["seed"]], row["role"]), repair=row["repair"]) for row in own
        ]
        for row, run, log in zip(own, runs, recording.side_by_side(runs), strict=True):
            costs = {name: row[name] for name in recording.COSTS}
            kills = pd.DataFrame(recording.struck({}, log))
            result = {"date": date, **{name: row[name] for name in ("pair", "role")}}
            result |= recording.outcome(run, log, costs)
            rows.append(result | {"same_failures": replayed(run, costs, kills)})
        recording.write(rows, folder / "runs.csv")
        yield scored(folder).tail(_SIDE).round(4).to_string()


def _predicted(pairs: list[Pair], before: int) -> list[dict[str, Any]]:
    """Measure the costs of pairs; rows of what is predicted of those that have a break-even."""
    short = [
        replace(run, seconds=_CALIBRATION, repair=3.0, seed=_DRAWN + run.seed)
        for pair in pairs
        for run in pair[:2]
    ]
    logs = recording.side_by_side(short)
    costs = iter(inputs([run], [log]) for run, log in zip(short, logs, strict=True))
    filed: list[dict[str, Any]] = []
    for pair in pairs:
        known = {"fast": next(costs), "slow": next(costs)}
        even = break_even(pair.fast, pair.slow, *known.values())
        if not np.isfinite(even):
            continue
        for role, own in known.items():
            run = replace(getattr(pair, role), repair=pair.load * even)
            row = {"date": recording.now(), "pair": before + len(filed) // 2 + 1, "role": role}
            row |= {"load": pair.load, "break_even": even, **_job(run)}
            filed.append(row | recording.forecast(run, [own]) | rivals(run, own))
    return filed


def scored(folder: Path) -> pd.DataFrame:
    """Logarithm of the faster job's samples a second over the other's: measured, predicted, by rivals."""
    filed, runs = (pd.read_csv(folder / f"{name}.csv") for name in ("pairs", "runs"))
    both = filed.merge(runs[["pair", "role", "rate", "measured"]], on=["pair", "role"])
    both["model"] = both["predicted_rate"] * both["expected"] / both["predicted"]
    rates = both.pivot(index="pair", columns="role", values=["rate", "model", *RIVALS])
    found = pd.DataFrame(
        {
            name: np.log(rates[name]["fast"] / rates[name]["slow"])
            for name in ("rate", "model", *RIVALS)
        }
    )
    fast = filed[filed["role"] == "fast"].set_index("pair")
    return found.rename(columns={"rate": "measured"}).assign(load=fast["load"])


def _guessed(run: Run) -> Inputs:
    """What a job usually costs, to draw by."""
    known = _GUESSED | {"step": run.step}
    known |= {name: known[name] + run.start for name in ("lag", "restart")}
    return known | ({"lag": 0.0, "pause": 0.0} if not run.elastic else {"restart": 0.0})


def _job(run: Run) -> dict[str, Any]:
    names = (*recording.CELL, "nodes", "mtbf", "start", "seed", "seconds")
    return {name: getattr(run, name) for name in names}
