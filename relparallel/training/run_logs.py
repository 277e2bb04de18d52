"""Logs that training runs write of themselves: starts, steps, and what was done twice.

Three dialects become one `RunLog`: result logs of MLPerf Training, event logs of the kind that goodput
libraries write, and Slurm's accounting, which becomes a `FailureLog`. Lines are read, never executed.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from relparallel._checks import Result, require_instance, require_int
from relparallel.training.failure_logs import FailureLog
from relparallel.training.failure_readers import OPENERS

if TYPE_CHECKING:
    import pandas as pd

_MLLOG: Final = ":::MLLOG "
_POSITIONS: Final = ("samples_count", "epoch_num", "first_epoch_num")
_LONGEST_LINE: Final = 10**6
_BROKEN: Final = ("NODE_FAIL", "BOOT_FAIL", "FAILED", "OUT_OF_MEMORY")


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class RunLog(Result):
    """One run of training: how long its starts took, its steps, and which of them were done again.

    Parameters
    ----------
    source : str
        File that was read.
    elapsed : float
        From the first event to the last [s].
    start_ups : numpy.ndarray
        From each start to its first step [s].
    steps : numpy.ndarray
        Time of every step, or the mean of every block of steps [s].
    weights : numpy.ndarray
        Steps that each of these stands for.
    repeated : int
        Steps that were done again after going back.
    batch, sequence : int, optional
        Sequences of a step, and tokens of one.
    """

    source: str
    elapsed: float
    start_ups: NDArray[np.float64]
    steps: NDArray[np.float64]
    weights: NDArray[np.float64]
    repeated: int = 0
    batch: int | None = None
    sequence: int | None = None

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
        import pandas as pd

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


def _lines(path: str | PathLike[str]) -> Iterator[tuple[int, str]]:
    """Lines of a text file with their numbers; of a length that a log has."""
    name = Path(require_instance((str, PathLike), path=path))
    try:
        with OPENERS.get(name.suffix, open)(name, "rt", encoding="utf-8") as file:
            for number, line in enumerate(file, 1):
                if len(line) > _LONGEST_LINE:
                    raise ValueError(
                        f"path must hold lines of a log, got {len(line)} letters in line {number}"
                    )
                yield number, line
    except (OSError, EOFError, UnicodeDecodeError) as error:
        raise ValueError(f"path must name a log in UTF-8, got {path} ({error})") from None


def _object(text: str, path: Any, number: int) -> Mapping[str, Any]:
    """One JSON object; a torn line is named."""
    try:
        found = json.loads(text)
    except (json.JSONDecodeError, RecursionError) as error:
        raise ValueError(
            f"path must hold whole lines of JSON, got line {number} of {path}: {error}"
        ) from None
    if not isinstance(found, dict):
        raise ValueError(f"path must hold JSON objects, got {text[:60]!r} in line {number} of {path}")
    return found


def read_mlperf_log(path: str | PathLike[str]) -> RunLog:
    """Read a result log of MLPerf Training.

    Parameters
    ----------
    path : str or path
        ``result_N.txt``, also compressed; lines without ``:::MLLOG`` are passed over.

    Returns
    -------
    RunLog
        Start-up from the first ``init_start`` of any rank to ``init_stop``; steps as means over the blocks
        between evaluations, counted in samples or tokens as the log states them; elapsed from the first
        ``init_start`` to the last event.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "result_0.txt"
    >>> lines = [(0, "init_start", None, {}), (100, "global_batch_size", 8, {}),
    ...          (9000, "init_stop", None, {}), (9000, "block_start", None, {"samples_count": 0}),
    ...          (19000, "block_stop", None, {"samples_count": 80})]
    >>> _ = path.write_text("".join(":::MLLOG " + json.dumps(
    ...     {"time_ms": t, "key": k, "value": v, "metadata": m}) + chr(10) for t, k, v, m in lines))
    >>> log = read_mlperf_log(path)
    >>> log.start_ups.tolist(), log.step_time
    ([9.0], 1.0)
    """
    events = []
    for number, line in _lines(path):
        if _MLLOG in line:
            entry = _object(line.partition(_MLLOG)[2], path, number)
            try:
                events.append(
                    (float(entry["time_ms"]) / 1e3, str(entry["key"]), entry["value"], entry["metadata"])
                )
            except (KeyError, TypeError, ValueError) as error:
                raise ValueError(
                    f"path must hold MLLOG events, got line {number} of {path}: {error!r}"
                ) from None
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
    open_at: tuple[float, float | None] | None = None
    for place, (time, key, _, where) in enumerate(events):
        if key == "block_start":
            open_at = (time, _position(where, length))
        elif key == "block_stop" and open_at is not None:
            begun, first = open_at
            open_at = None
            if first is None:
                continue
            later = (
                _position(e[3], length)
                for e in events[place:]
                if e[1] in ("block_stop", "eval_start", "block_start")
            )
            last = next((p for p in later if p is not None and p > first), None)
            if last is not None:
                seconds.append(time - begun)
                steps.append((last - first) / batch)
    return seconds, steps


def _position(where: Mapping[str, Any], length: int | None) -> float | None:
    """Samples that had been trained on when an event was written."""
    for name in _POSITIONS:
        if name in where:
            counted = float(where[name])
            return counted if name == "samples_count" or length is None else counted / length
    return None


def read_event_log(path: str | PathLike[str]) -> RunLog:
    """Read the events that a goodput library writes, one JSON object in each line.

    Parameters
    ----------
    path : str or path
        Lines with ``job_start_time``, with ``step_start_time`` and ``step_count``, and with ``job_end_time``;
        times as seconds since 1970 or in ISO 8601. Other events are passed over. A job that starts again
        writes ``job_start_time`` again.

    Returns
    -------
    RunLog
        Start-up of every start until its first step; a step lasts until the next one of the same start, the
        last one of a start is unfinished unless ``job_end_time`` follows. Steps whose count comes again after
        a start were repeated.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "events.jsonl"
    >>> lines = [{"job_start_time": 0}] + [{"step_start_time": 60 + 2 * k, "step_count": k} for k in range(5)]
    >>> lines += [{"job_start_time": 100}, {"step_start_time": 150, "step_count": 3}, {"job_end_time": 152}]
    >>> _ = path.write_text(chr(10).join(json.dumps(line) for line in lines))
    >>> log = read_event_log(path)
    >>> log.start_ups.tolist(), log.steps.tolist(), log.repeated
    ([60.0, 50.0], [2.0, 2.0, 2.0, 2.0, 2.0], 1)
    """
    starts: list[float] = []
    begun: list[tuple[int, float]] = []
    first = last = None
    steps, start_ups, done, repeated = [], [], -1, 0
    for number, line in _lines(path):
        if not line.strip():
            continue
        entry = _object(line, path, number)
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
            return float(value)
        date = datetime.fromisoformat(value)
        return (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp()
    except (TypeError, ValueError):
        raise ValueError(
            f"path must hold times in seconds or ISO 8601, got {value!r:.60} in line {number} of {path}"
        ) from None


def read_slurm(path: str | PathLike[str], *, population: int) -> FailureLog:
    r"""Read Slurm's accounting: which jobs ended broken, and how long until the same job ran again.

    Parameters
    ----------
    path : str or path
        Output of ``sacct --parsable2 --format=JobID,JobName,State,Start,End,NodeList``.
    population : int
        Nodes that were watched.

    Returns
    -------
    FailureLog
        One failure for each job that ended with NODE_FAIL, BOOT_FAIL, FAILED or OUT_OF_MEMORY, which is the
        cause; on the first node of its list, since Slurm does not say which failed; back when the next job of
        that name starts, or at once where none does, which the notes count.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "sacct.txt"
    >>> _ = path.write_text("JobID|JobName|State|Start|End|NodeList\n"
    ...     "1|train|NODE_FAIL|2026-01-01T00:00:00|2026-01-01T05:00:00|n[1-64]\n"
    ...     "2|train|COMPLETED|2026-01-01T05:30:00|2026-01-02T05:30:00|n[1-64]\n")
    >>> read_slurm(path, population=64).repairs.tolist()
    [1800.0]
    """
    wanted = ("JobID", "JobName", "State", "Start", "End", "NodeList")
    rows = list(csv.reader((line for _, line in _lines(path)), delimiter="|"))
    if not rows or any(name not in rows[0] for name in wanted):
        raise ValueError(f"path must have the columns {', '.join(wanted)}, got {rows[:1]!r:.120} in {path}")
    jobs = []
    for number, row in enumerate(rows[1:], 2):
        if len(row) != len(rows[0]):
            raise ValueError(
                f"path must have {len(rows[0])} fields in every line, got {len(row)} in line {number}"
            )
        job = dict(zip(rows[0], row, strict=True))
        if "." not in job["JobID"] and job["Start"] not in ("Unknown", "None") and job["End"] != "Unknown":
            jobs.append((_seconds(job["Start"], path, number), _seconds(job["End"], path, number), job))
    jobs.sort(key=lambda entry: entry[0])
    found, never = [], 0
    for begun, ended, job in jobs:
        state = job["State"].split()[0] if job["State"] else ""
        if state in _BROKEN:
            again = next(
                (b for b, _, j in jobs if b >= ended and j["JobName"] == job["JobName"] and b > begun), None
            )
            never += again is None
            node = re.sub(r"[\[,].*", "", job["NodeList"]) or job["JobID"]
            found.append((node, ended, ended if again is None else again, state))
    if not found:
        raise ValueError(f"path must hold a job that ended broken, got {len(jobs)} others in {path}")
    first = jobs[0][0]
    nodes, starts, ends, causes = zip(*found, strict=True)
    return FailureLog(
        node=np.array(nodes, dtype=np.str_), start=np.array(starts) - first, end=np.array(ends) - first,
        cause=np.array(causes, dtype=np.str_), population=population, overlaps="keep",
        finish=max(ended for _, ended, _ in jobs) - first,
        notes=(f"{never} broken jobs did not run again: back at once",) if never else (),
    )  # fmt: skip
