"""Logs that training runs write of themselves: starts, steps, what was done twice; how long starts take.

Lines are read, never executed.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from os import PathLike
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy import optimize

from relparallel._checks import Result, bare, real, record, require_choice, require_int, require_real
from relparallel.published import data_folder
from relparallel.training._arguments import LONGEST, MOST_NODES, Real
from relparallel.training.failure_readers import read_lines

_MLLOG: Final = ":::MLLOG "
_BORDERS: Final = ("block_stop", "eval_start", "block_start")
_POSITIONS: Final = ("samples_count", "epoch_num", "first_epoch_num")
_DIALECTS: Final = ("events", "mlperf")


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class RunLog(Result):
    """One run of training: how long its starts took, its steps, and which of them were done again."""

    source: str  # file that was read
    elapsed: float  # from the first event to the last [s]
    start_ups: NDArray[np.float64]  # from each start to its first step [s]
    steps: NDArray[np.float64]  # time of every step, or the mean of every block of steps [s]
    weights: NDArray[np.float64]  # steps that each of these stands for
    repeated: int = 0  # steps that were done again after going back
    batch: int | None = None  # sequences of a step
    sequence: int | None = None  # tokens of one

    @property
    def step_time(self) -> float:
        """Mean time of a step [s], the first block or step of the run left out where there are others."""
        rest = slice(1, None) if self.steps.size > 1 else slice(None)
        return float(np.average(self.steps[rest], weights=self.weights[rest]))

    @property
    def training_time_ratio(self) -> float:
        """Share of the elapsed time in steps that count (ETTR)."""
        done = float(self.steps @ self.weights)
        return (done - self.repeated * self.step_time) / self.elapsed

    def what_if(self) -> pd.DataFrame:
        """Time that each kind of loss takes, and by how much the run would be faster without it."""
        stepping = float(self.steps @ self.weights)
        lost = {
            "starts": float(self.start_ups.sum()),
            "repeated steps": self.repeated * self.step_time,
            "steps slower than the median": stepping - float(np.median(self.steps)) * self.weights.sum(),
            "evaluation, saving and waiting": self.elapsed - stepping - float(self.start_ups.sum()),
        }
        table = pd.DataFrame({"seconds": pd.Series(lost).clip(lower=0.0)})
        return table.assign(faster=self.elapsed / (self.elapsed - table["seconds"]) - 1)

    def factor(self, predicted: float) -> float:
        """Time of a step over a predicted one: what one's own software adds or saves."""
        if not predicted > 0:
            raise ValueError(f"predicted must be a time above 0 s, got {predicted!r}")
        return self.step_time / predicted


def read_run_log(path: str | PathLike[str], dialect: str = "events") -> RunLog:
    """Read the log of a run.

    Parameters
    ----------
    path : str or path
        The file, also compressed.
    dialect : {"events", "mlperf"}
        "events": what goodput libraries write, a JSON object in each line: ``job_start_time``;
        ``step_start_time`` and ``step_count``; ``job_end_time``; times as seconds since 1970 or in ISO 8601.
        A job that starts again writes ``job_start_time`` again. "mlperf": ``result_N.txt`` of MLPerf
        Training, lines with ``:::MLLOG``. Other events, and there other lines, are passed over.

    Returns
    -------
    RunLog
        Of events: start-up of every start until its first step; a step lasts until the next one of the same
        start, the last one of a start is unfinished unless ``job_end_time`` follows. Steps whose count comes
        again after a start were repeated. Of MLPerf: start-up from the first ``init_start`` of any rank to
        ``init_stop``; steps as means over the blocks between evaluations, counted in samples or tokens as the
        log states them; elapsed from the first ``init_start`` to the last event.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "events.jsonl"
    >>> lines = [{"job_start_time": 0}] + [{"step_start_time": 60 + 2 * k, "step_count": k} for k in range(5)]
    >>> lines += [{"job_start_time": 100}, {"step_start_time": 150, "step_count": 3}, {"job_end_time": 152}]
    >>> _ = path.write_text(chr(10).join(json.dumps(line) for line in lines))
    >>> log = read_run_log(path)
    >>> log.start_ups.tolist(), log.steps.tolist(), log.repeated
    ([60.0, 50.0], [2.0, 2.0, 2.0, 2.0, 2.0], 1)
    """
    return (_mlperf if require_choice(_DIALECTS, dialect=dialect) == "mlperf" else _events)(path)


def _objects(path: str | PathLike[str], mark: str = "") -> Iterator[tuple[int, dict[str, Any]]]:
    """JSON objects of the lines that hold a mark, behind it; a torn line is named."""
    for number, line in read_lines(path):
        if not line.strip() or mark not in line:
            continue
        text = line.partition(mark)[2] if mark else line
        try:
            found = json.loads(text)
        except (json.JSONDecodeError, RecursionError) as error:
            raise ValueError(
                f"path must hold whole lines of JSON, got line {number} of {path}: {error}"
            ) from None
        if not isinstance(found, dict):
            raise ValueError(f"path must hold JSON objects, got {text[:60]!r} in line {number} of {path}")
        yield number, found


def _mlperf(path: str | PathLike[str]) -> RunLog:
    """A result log of MLPerf Training."""
    events = []
    for number, entry in _objects(path, _MLLOG):
        try:
            time = float(entry["time_ms"]) / 1e3
            events.append((time, str(entry["key"]), entry["value"], entry["metadata"]))
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"path must hold MLLOG events, got line {number} of {path}: {error!r}") from None
    begun = [time for time, key, *_ in events if key == "init_start"]
    ready = [time for time, key, *_ in events if key == "init_stop"]
    batch = next((value for _, key, value, _ in events if key == "global_batch_size"), None)
    if not begun or not ready or not batch:
        raise ValueError(f"path must hold init_start, init_stop and global_batch_size, got {path}")
    length = next((value for _, key, value, _ in events if key == "max_sequence_length"), None)
    seconds, steps = _blocks(events, int(batch), int(length) if length else None)
    if not seconds:
        raise ValueError(f"path must hold blocks of training, got none in {path}")
    return RunLog(
        source=Path(path).name, elapsed=events[-1][0] - min(begun),
        start_ups=np.array([ready[0] - min(begun)]), steps=np.divide(seconds, steps),
        weights=np.array(steps, dtype=np.float64), batch=int(batch),
        sequence=int(length) if length else None,
    )  # fmt: skip


def _blocks(events: list[Any], batch: int, length: int | None) -> tuple[list[float], list[float]]:
    """Seconds and steps of the blocks that have an end and a count of samples."""
    seconds: list[float] = []
    steps: list[float] = []
    begun, first = 0.0, None
    for place, (time, key, _, where) in enumerate(events):
        if key == "block_start":
            begun, first = time, _position(where, length)
        elif key == "block_stop" and first is not None:
            later = (_position(e[3], length) for e in events[place:] if e[1] in _BORDERS)
            last = next((p for p in later if p is not None and p > first), None)
            if last is not None:
                seconds.append(time - begun)
                steps.append((last - first) / batch)
            first = None
    return seconds, steps


def _position(where: Mapping[str, Any], length: int | None) -> float | None:
    """Samples that had been trained on when an event was written."""
    for name in _POSITIONS:
        if name in where:
            counted = float(where[name])
            return counted if name == "samples_count" or length is None else counted / length
    return None


def _events(path: str | PathLike[str]) -> RunLog:
    """Events of a goodput library."""
    starts: list[float] = []
    begun: list[tuple[int, float]] = []
    first = last = None
    steps, start_ups, done, repeated = [], [], -1, 0
    for number, entry in _objects(path):
        names = [name for name in ("job_start_time", "step_start_time", "job_end_time") if name in entry]
        if not names:
            continue
        time = _seconds(entry[names[0]], path, number)
        if last is not None and time < last:
            raise ValueError(
                f"path must hold events in order, got line {number} of {path} {last - time:g} s early"
            )
        first, last = time if first is None else first, time
        if names[0] == "job_start_time":
            starts, begun = [*starts, time], []
            continue
        if begun:
            steps.append(time - begun[-1][1])
            done = max(done, begun[-1][0])
        if names[0] == "job_end_time":
            begun = []
            continue
        count = require_int(step_count=entry.get("step_count"), at_least=0)
        if starts and not begun:
            start_ups.append(time - starts[-1])
        repeated += count <= done
        begun.append((count, time))
    if not steps or first is None or last is None:
        raise ValueError(f"path must hold the starts of at least two steps, got {len(steps)} in {path}")
    return RunLog(
        source=Path(path).name, elapsed=last - first, start_ups=np.array(start_ups, dtype=np.float64),
        steps=np.array(steps), weights=np.ones(len(steps)), repeated=repeated,
    )  # fmt: skip


def _seconds(value: Any, path: Any, number: int) -> float:
    """Seconds since 1970, from a number or an ISO date."""
    try:
        if isinstance(value, (int, float)):
            if isinstance(value, bool) or not np.isfinite(value):
                raise ValueError
            return float(value)
        date = datetime.fromisoformat(value)
        return (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp()
    except (TypeError, ValueError):
        raise ValueError(
            f"path must hold times in seconds or ISO 8601, got {value!r:.60} in line {number} of {path}"
        ) from None


@record
class StartUp:
    """Time until a job of n nodes computes, a + b (n / 1000)^p [s]; called with n."""

    base: float = real(at_least=0, at_most=LONGEST)  # of the smallest job, a [s]
    growth: float = real(at_least=0, at_most=LONGEST)  # what a thousand nodes add, b [s]
    power: float = real(above=0, at_most=10)  # p; 2 or more where every rank waits for every other one

    def __call__(self, nodes: Real) -> Real:
        """Seconds for a job of so many nodes."""
        many = require_real(nodes=nodes, at_least=1, at_most=MOST_NODES)
        return bare(self.base + self.growth * (np.asarray(many) / 1000) ** self.power)


def start_up_law(nodes: ArrayLike, seconds: ArrayLike) -> StartUp:
    """Law of the start-up of one software on one cluster.

    Parameters
    ----------
    nodes, seconds : array_like [k]
        Sizes of jobs, at least three different ones, and how long each took [s].

    Returns
    -------
    StartUp
        Least squares in all three numbers, none below 0. Beyond the largest size it is an extrapolation;
        other software on the same machine took two to four times as long (`start_ups`).

    Examples
    --------
    >>> runs = start_ups().query("software == 'nemo-2023'")
    >>> law = start_up_law(runs["nodes"], runs["seconds"])
    >>> round(law.power, 1), round(law(2048))
    (2.5, 838)
    """
    size, took = (np.atleast_1d(x) for x in (
        require_real(nodes=nodes, at_least=1, at_most=MOST_NODES),
        require_real(seconds=seconds, at_least=0, at_most=LONGEST),
    ))  # fmt: skip
    if size.shape != took.shape or np.unique(size).size < 3:
        raise ValueError(f"nodes must be one for each of the seconds and of three sizes, got {nodes!r:.80}")

    def fitted(power: Any) -> tuple[NDArray[np.float64], float]:
        found: tuple[NDArray[np.float64], float] = optimize.nnls(
            np.column_stack([np.ones(size.size), (size / 1000) ** power]), took
        )
        return found

    power = float(optimize.minimize_scalar(lambda p: fitted(p)[1], bounds=(0.25, 6.0), method="bounded").x)
    base, growth = fitted(power)[0].tolist()
    return StartUp(base=base, growth=growth, power=power)


def start_ups() -> pd.DataFrame:
    """Start-up times that result logs of MLPerf Training hold, medians of three runs.

    Returns
    -------
    pandas.DataFrame
        Indexed by row: software, accelerator, model, nodes, gpus, source, and seconds from the first
        ``init_start`` of any rank to ``init_stop``. Scheduling and the start of containers are not in it.

    Examples
    --------
    >>> int(start_ups()["nodes"].max())
    1344
    """
    return pd.read_csv(data_folder() / "start_ups.csv", index_col="id")
