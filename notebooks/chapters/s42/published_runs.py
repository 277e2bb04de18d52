"""Published training runs: effective time predicted from the failures and costs of each run alone.

Inputs stand in ``data/training_runs/inputs.csv``, each with a range and its source: a published
row, a public log, or the words "not published" where a value is assumed. The published share of
effective time is compared afterwards and never used.
"""

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import numpy as np
import pandas as pd
import scipy

from relparallel.published import data_folder
from relparallel.training.checkpoint_policies import Cause, Checkpointing, CheckpointLevel
from relparallel.training.rollback_forms import Rollback, rollback
from relparallel.units import DAY, HOUR, MINUTE

_UNITS: Final = {
    "nodes": 1.0,
    "count": 1.0,
    "share": 1.0,
    "s": 1.0,
    "min": MINUTE,
    "h": HOUR,
    "d": DAY,
    "per 1000 node-days": 1 / (1000 * DAY),
}


class RunInput(NamedTuple):
    """One number that a prediction starts from, with the range in which it is known, in SI units.

    Kinds: hardware and soft failures send the job back to a checkpoint; "hardware work", "soft
    work" and "planned" name a whole loss in their ``restart``; an overhead lengthens every step.
    """

    part: str  # class of failures it belongs to; empty for the run itself
    kind: str
    # nodes, duration, checkpoint, interval, effective, events, rate, restart or share
    quantity: str
    value: float | None  # None for a published bound, whose range is the statement
    lowest: float
    highest: float
    source: str  # where it is published, or that it is not

    @property
    def name(self) -> str:
        """Part and quantity."""
        return f"{self.part}: {self.quantity}" if self.part else self.quantity


class PublishedRun(NamedTuple):
    """A run and what is published: nodes, duration, checkpoints, and events and restarts per part.

    The prediction is that of `rollback` with one level of checkpoints (Daly 2006), times what whole
    losses leave of the duration, over one plus the overheads. O(parts).
    """

    name: str
    inputs: tuple[RunInput, ...]

    @property
    def effective(self) -> RunInput | None:
        """The share of effective time, published or derived, None where none is."""
        return next((entry for entry in self.inputs if entry.quantity == "effective"), None)

    @property
    def uncertain(self) -> tuple[RunInput, ...]:
        """Inputs that are known as a range only."""
        return tuple(e for e in self.inputs if e.highest > e.lowest and e.quantity != "effective")

    def ratio(
        self, changed: Mapping[str, float] | None = None, *, hardware_only: bool = False
    ) -> float:
        """Predict the effective-time share with changed inputs [SI] or hardware failures alone."""
        values = {entry.name: entry.value for entry in self.inputs} | dict(changed or {})
        if len(values) > len(self.inputs):
            raise ValueError(f"changed must name inputs of the run, got {list(changed or {})}")
        kinds = {entry.part: entry.kind for entry in self.inputs}
        causes, losses, overhead = _classes(values, kinds, hardware_only)
        return max(0.0, 1 - losses) * _rollback(values, causes).share / (1 + overhead)

    def implied(self, name: str) -> float:
        """Return the value of an input (rate, count, time) that predicts the known share.

        SI; the published bound counts as the share. NaN where none is known, or no value up
        to a factor of 64 away does.
        """
        if self.effective is None:
            return float("nan")
        share = self.effective.value or self.effective.lowest
        (start,) = (entry.value or entry.lowest for entry in self.inputs if entry.name == name)
        ends = [start * 2.0**power for power in range(-6, 7)]
        above = np.array([self.ratio({name: end}) > share for end in ends])
        turns = np.flatnonzero(above[1:] != above[:-1])
        if not len(turns):
            return float("nan")
        turn = turns[np.argmin(np.abs(turns - 5.5))]
        root = scipy.optimize.brentq(
            lambda x: self.ratio({name: x}) - share, ends[turn], ends[turn + 1]
        )
        return float(root)

    def bounds(self) -> tuple[float, float]:
        """Return the smallest and largest prediction over all ranges at once.

        Exact: the share falls with every event and cost; in the interval it has one peak.
        """
        ends: dict[str, tuple[float, float]] = {
            entry.name: (entry.highest, entry.lowest)
            for entry in self.uncertain
            if entry.quantity != "interval"
        }
        if "duration" in ends:  # a longer run dilutes a given number of events
            ends["duration"] = ends["duration"][::-1]
        worst, best = ({name: end[k] for name, end in ends.items()} for k in (0, 1))
        return self._extreme(worst, min), self._extreme(best, max)

    def sensitivities(self) -> dict[str, float]:
        """Return half the share points between both ends of each uncertain input, largest first."""
        ends = {
            entry.name: [self.ratio({entry.name: end}) for end in (entry.lowest, entry.highest)]
            for entry in self.uncertain
        }
        points = {name: 50 * abs(high - low) for name, (low, high) in ends.items()}
        return dict(sorted(points.items(), key=lambda item: -item[1]))

    def _extreme(self, values: Mapping[str, float], choose: Any) -> float:
        """Extreme over the interval with all other inputs given."""
        interval = next((entry for entry in self.uncertain if entry.quantity == "interval"), None)
        if interval is None:
            return self.ratio(values)
        every = {entry.name: entry.value for entry in self.inputs} | dict(values)
        causes, _, _ = _classes(every, {entry.part: entry.kind for entry in self.inputs}, False)
        peak = _rollback(every | {"interval": None}, causes).interval
        ends = np.clip([interval.lowest, peak, interval.highest], interval.lowest, interval.highest)
        return float(choose(self.ratio({**values, "interval": float(w)}) for w in ends))


@cache
def published_runs() -> Mapping[str, PublishedRun]:
    """Published runs by name, with the inputs of a prediction, in the order of the table.

    >>> [entry.value for entry in published_runs()["BLOOM-176B"].inputs if entry.quantity == "checkpoint"]
    [40.0]
    """
    table = pd.read_csv(
        data_folder() / "training_runs" / "inputs.csv", keep_default_na=False, dtype=str
    )
    rows: dict[str, list[RunInput]] = {}
    for row in table.to_dict("records"):
        unit = _UNITS[row["unit"]]
        value, lowest, highest = (
            float(row[k]) * unit if row[k] else None for k in ("value", "lowest", "highest")
        )
        entry = RunInput(
            part=row["part"],
            kind=row["kind"],
            quantity=row["quantity"],
            value=value,
            lowest=lowest or 0.0,
            highest=1e18 if highest is None else highest,
            source=row["source"],
        )
        rows.setdefault(row["run"], []).append(entry)
    return MappingProxyType(
        {name: PublishedRun(name, tuple(found)) for name, found in rows.items()}
    )


def predict_runs() -> pd.DataFrame:
    """Every published run predicted, and which missing input the error hangs on.

    Share or its bound, published or derived; prediction, its range over all unknown inputs,
    hardware failures alone; errors in points; whether the inputs suffice for a range of 2 points
    either way; the input that moves the prediction most, by how many points, and its value that
    would explain the share [SI].

    >>> table = predict_runs().set_index("run")
    >>> bool(table.loc["GLM-130B", "sufficient"]), float(round(table.loc["GLM-130B", "error"], 1))
    (True, -1.4)
    """
    return pd.DataFrame([_row(run) for run in published_runs().values()])


def _row(run: PublishedRun) -> dict[str, object]:
    """One run of the table."""
    (lowest, highest), predicted, alone = run.bounds(), run.ratio(), run.ratio(hardware_only=True)
    dominant, moved = next(iter(run.sensitivities().items()))
    return {
        "run": run.name,
        "share": np.nan if run.effective is None else run.effective.value or run.effective.lowest,
        "bound": run.effective is not None and run.effective.value is None,
        "predicted": predicted,
        "lowest": lowest,
        "highest": highest,
        "hardware only": alone,
        "error": _error(run, predicted),
        "hardware error": _error(run, alone),
        "sufficient": bool(50 * (highest - lowest) <= 2.0),
        "dominant input": dominant,
        "points": moved,
        "implied": run.implied(dominant),
    }


def _error(run: PublishedRun, predicted: float) -> float:
    """Points between prediction and published value, or published range where that is a bound."""
    if run.effective is None:
        return float("nan")
    if run.effective.value is not None:
        return 100 * (predicted - run.effective.value)
    return 100 * float(predicted - np.clip(predicted, run.effective.lowest, run.effective.highest))


def _rollback(values: Mapping[str, Any], causes: list[Cause]) -> Rollback:
    """What checkpoints and failures leave, before whole losses and overheads."""
    level = CheckpointLevel(name="checkpoint", cost=values["checkpoint"], restart=0.0)
    return rollback(Checkpointing(levels=(level,), interval=values.get("interval")), causes)


def _classes(
    values: Mapping[str, Any], kinds: Mapping[str, str], hardware_only: bool
) -> tuple[list[Cause], float, float]:
    """Failures that send the job back, share of time lost as a whole, overhead of every step."""
    causes, losses, overhead = [], 0.0, 0.0
    for part, kind in kinds.items():
        if not part or (hardware_only and not kind.startswith("hardware")):
            continue
        if kind == "overhead":
            overhead += values[f"{part}: share"]
            continue
        standing = values.get(f"{part}: restart", values.get("restart"))
        events = values.get(f"{part}: events")
        rate = (
            values[f"{part}: rate"] * values["nodes"]
            if events is None
            else events / values["duration"]
        )
        if kind in ("hardware", "soft"):
            causes.append(Cause(level="job", rate=rate, restart=standing))
        else:
            losses += rate * standing
    return causes, losses, overhead
