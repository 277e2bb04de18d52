"""Logs that training runs write: starts, steps, what was done twice; how long starts take.

Lines are read, never executed.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise
from os import PathLike
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from relparallel._checks import (
    Result,
    bare,
    real,
    record,
    require_int,
    require_number,
    require_real,
)
from relparallel.parallel import Strategy
from relparallel.published import data_folder
from relparallel.training import mlperf_logs, trainer_logs
from relparallel.training._arguments import LONGEST, MOST_NODES, Real
from relparallel.training.log_files import (
    Fit,
    Form,
    dialect as reads,
    dialect_of,
    lines,
    read_objects,
    told,
)

_TRACKED: Final = ("job_start_time", "step_start_time", "job_end_time")
_MILLISECONDS: Final = 1e11  # no seconds since 1970 that a run sees
# inside of steps, not productive
_APART: Final = ("custom_badput_event", "elastic_wait", "elastic_reinit")


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class RunLog(Result):
    """One training run: how long its starts took, its steps, and which of them were done again."""

    source: str  # file that was read
    elapsed: float  # from the first event to the last [s]
    start_ups: NDArray[np.float64]  # from each start to its first step [s]
    steps: NDArray[np.float64]  # time of every step, or the mean of every block of steps [s]
    weights: NDArray[np.float64]  # steps that each of these stands for
    repeated: int = 0  # steps that were done again after going back
    checkpoints: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))  # each [s]
    counts: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))  # of steps
    batch: int | None = None  # sequences of a step
    sequence: int | None = None  # tokens of one
    gpus: int | None = None
    tokens: int | None = None  # of a GPU in a step
    strategy: Strategy | None = None  # by what the log names
    precision: str | None = None  # where the log names one below bf16
    # which of the steps `step_time` counts; where empty, all but the first
    steady: NDArray[np.bool_] = field(default_factory=lambda: np.zeros(0, np.bool_))
    # what was left out, with the number of rows, and what the log says twice
    notes: tuple[str, ...] = ()

    @property
    def step_time(self) -> float:
        """Mean time of a step [s], without the run's first block or step where there are others."""
        rest: Any = slice(1, None) if self.steps.size > 1 else slice(None)
        rest = self.steady if self.steady.size else rest
        return float(np.average(self.steps[rest], weights=self.weights[rest]))

    @property
    def training_time_ratio(self) -> float:
        """Share of the elapsed time in steps that count (ETTR)."""
        done = float(self.steps @ self.weights)
        return (done - self.repeated * self.step_time) / self.elapsed

    def _said(self) -> str:
        """Steps, where the time went, and what a reader said."""
        said = f"{self.source}: {self.weights.sum():g} steps of {self.step_time:.4g} s"
        said += f" in {self.elapsed:.6g} s" if np.isfinite(self.elapsed) else ", without dates"
        said += f", start-up {self.start_ups.sum():.4g} s, {self.repeated} steps done again"
        if np.isfinite(self.elapsed):
            said += f", ETTR {self.training_time_ratio:.1%}"
        return "; ".join([said, *self.notes])

    def what_if(self) -> pd.DataFrame:
        """Time that each kind of loss takes, and by how much the run would be faster without it."""
        stepping = float(self.steps @ self.weights)
        lost = {
            "starts": float(self.start_ups.sum()),
            "repeated steps": self.repeated * self.step_time,
            "checkpoints": float(self.checkpoints.sum()),
            "steps slower than the median": stepping
            - float(np.median(self.steps)) * self.weights.sum(),
        }
        lost["evaluation, saving and waiting"] = (
            self.elapsed - stepping - lost["starts"] - lost["checkpoints"]
        )
        table = pd.DataFrame({"seconds": pd.Series(lost).clip(lower=0.0)})
        return table.assign(faster=self.elapsed / (self.elapsed - table["seconds"]) - 1)

    def factor(self, predicted: float) -> float:
        """Time of a step over a predicted one: what one's own software adds or saves."""
        if not predicted > 0:
            raise ValueError(f"predicted must be a time above 0 s, got {predicted!r}")
        return self.step_time / predicted


def read_run_log(
    path: str | PathLike[str], dialect: str | None = None, *, checkpoint_every: int | None = None
) -> RunLog:
    """Read the log of a run.

    Parameters
    ----------
    path : str or path
        The file, also compressed.
    dialect : {"events", "mlperf", "megatron", "nemo", "deepspeed", "torchtitan", "maxtext", "csv"}
        Recognised from the file where omitted.
        "events": what goodput libraries write (ml-goodput-measurement), a JSON object in each line:
        ``job_start_time``; ``step_start_time`` and ``step_count``; ``job_end_time``;
        ``custom_badput_event_start_time`` and ``..._end_time`` with their ``..._type``; times as
        seconds since 1970 or in ISO 8601. A job that starts again writes ``job_start_time`` again.
        "mlperf": ``result_N.txt`` of MLPerf Training, lines with ``:::MLLOG`` behind whatever a
        launcher puts in front.
        "megatron" to "maxtext": what trainers print, with whatever launchers and collectors put
        before the lines of steps. "megatron" is also what Megatron-Bridge, Megatron-DeepSpeed and
        others print that stand on Megatron-LM; "deepspeed" its pipeline engine.
        "csv": a table whose head names "step" or "iteration" and "seconds", "ms" (of a step),
        "timestamp" (of its end, a number or a date) or "time" (either, by its values).
    checkpoint_every : int, optional
        Steps from one blocking checkpoint to the next, of logs that tell every step. By what
        every so many steps last longer than the median of the others, checkpoints are told from
        steps; where omitted, they are a part of them.

    Returns
    -------
    RunLog
        Of events: start-up of every start until its first step; a step lasts until the next one of
        the same start, without the custom events and elastic waits inside it; the last one of a
        start is unfinished unless ``job_end_time`` follows; where counts leap, the mean of the
        steps between. Steps whose count comes again after a start were repeated. Of MLPerf:
        start-up from the first ``init_start`` of any rank to ``init_stop``; steps as means over the
        blocks between evaluations, counted in samples, tokens or epochs as the log states them:
        what the log says twice must agree, or the notes tell by how much not; elapsed from the
        first ``init_start`` to the last event. Of trainers: a line that stands for several steps
        weighs as many; a step that comes again was repeated, unless another rank wrote it or no
        step could have been done since; ``steady`` leaves out the first step of each start, two
        after it that last 1.5 times as long as usual or a part of that, and other batches;
        torchtitan's steps are by the dates of lines, and by tokens/s where something else stood
        between; start-ups and elapsed by dates, NaN without. GPUs, strategy, batch, sequence and
        tokens are what the log says of them.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "events.jsonl"
    >>> lines = [{"job_start_time": 0}] + [{"step_start_time": 60 + 2 * k, "step_count": k} for k in range(5)]
    >>> lines += [{"job_start_time": 100}, {"step_start_time": 150, "step_count": 3}, {"job_end_time": 152}]
    >>> _ = path.write_text(chr(10).join(str(line).replace("'", '"') for line in lines))
    >>> log = read_run_log(path)
    >>> log.start_ups.tolist(), log.steps.tolist(), log.repeated
    ([60.0, 50.0], [2.0, 2.0, 2.0, 2.0, 2.0], 1)
    """
    found: RunLog = dialect_of("run", dialect, path)[1](path)
    if checkpoint_every is None:
        return found
    require_int(checkpoint_every=checkpoint_every, at_least=2)
    if not found.counts.size or (found.weights > 1).any():
        raise ValueError(
            f"checkpoint_every must be left out unless every step is logged, got {checkpoint_every}"
        )
    return _without_checkpoints(found, checkpoint_every)


def _without_checkpoints(log: RunLog, every: int) -> RunLog:
    """Take from steps what one in so many lasts longer than the others, wherever counting begins."""
    place = log.counts % every
    writes = place == pd.Series(log.steps).groupby(place).median().idxmax()
    usual = np.median(log.steps[~writes]) if (~writes).any() else np.inf
    extra = np.where(writes, np.maximum(log.steps - usual, 0.0), 0.0)
    return replace(log, steps=log.steps - extra, checkpoints=extra[writes])


def _events(path: Any) -> dict[str, Any]:
    """Fields of a `RunLog` of events of a goodput library."""
    tracked, apart, others = _tracked(path)
    started, begun = None, None
    steps, counts, weights, start_ups = [], [], [], []
    done, repeated, inside, back = -1, 0, 0.0, 0
    for number, name, time, count in tracked:
        if name == "job_start_time":
            started, begun = time, None
            continue
        last, since = begun or (count - 1, time)
        back += begun is not None and name == "step_start_time" and count <= last
        if begun == (count, time):
            raise ValueError(
                f"path must hold every step once, got {count} again in line {number} of {path}"
            )
        if begun:
            lost = sum(max(0.0, min(end, time) - max(start, since)) for start, end in apart)
            many = max(count - last, 1) if name == "step_start_time" else 1
            steps.append((time - since - lost) / many)
            weights.append(many)
            counts.append(last)
            inside += lost
            # the same steps again, or the end
            done = last if count <= last and last > done else done
        elif started is not None and name == "step_start_time":
            start_ups.append(time - started)
        if name == "step_start_time":
            repeated += max(0, min(count, done) - min(last, count - 1))
            done, begun = max(done, count - 1) if begun else done, (count, time)
        else:
            begun = None
    if not steps:
        raise ValueError(f"path must hold the starts of at least two steps, got 0 in {path}")
    return {
        "elapsed": tracked[-1][2] - tracked[0][2],
        "steps": np.array(steps),
        "start_ups": np.array(start_ups, dtype=np.float64),
        "weights": np.array(weights, dtype=np.float64),
        "counts": np.array(counts, dtype=np.int64),
        "repeated": repeated,
        "notes": told(
            {
                "{:g} s of custom events and waits inside of steps are taken from them": inside,
                "{} times steps are not logged: taken at the mean of those between": sum(
                    w > 1 for w in weights
                ),
                "{} times the steps go back without a job_start_time: start-up and loss are in a "
                "step": back,
                "{} events are of a start whose job_start_time is missing: its start-up is not "
                "known": len(tracked) * (not start_ups),
                "left out: other lines, {}": ", ".join(
                    f"{many} {name}" for name, many in others.items()
                ),
            }
        ),
    }


def _tracked(
    path: Any,
) -> tuple[list[tuple[int, str, float, int]], list[tuple[float, float]], Counter[str]]:
    """Starts and ends with lines and counts, intervals apart, and what else there is."""
    tracked: list[tuple[int, str, float, int]] = []
    edges: list[tuple[float, str, str]] = []
    others: Counter[str] = Counter()
    jobs: set[str] = set()
    for number, _, line in read_objects(path):
        entry = line.get("jsonPayload", line)  # of an export of Cloud Logging
        key = next((key for key in entry if key.endswith("_time")), "no time")
        jobs |= {str(entry["job_name"])} if "job_name" in entry else set()
        try:
            if len(jobs) > 1:
                raise ValueError(f"path must hold one job, got {sorted(jobs)}")
            if key in _TRACKED:
                time, step, count = _seconds(entry[key]), key == _TRACKED[1], -1
                if step:
                    count = require_int(step_count=entry.get("step_count"), at_least=0)
                tracked.append((number, key, time, count))
                edges += [] if step else [(time, "", key)]
            elif key.startswith(_APART) and key.endswith(("_start_time", "_end_time")):
                what, _, edge = key.removesuffix("_time").rpartition("_")
                kind = f"{what} {str(entry.get(f'{what}_type', '')).upper()}"
                edges.append((_seconds(entry[key]), kind, edge))
            else:
                others[key] += 1
        except (TypeError, ValueError) as error:
            raise ValueError(f"{error} in line {number} of {path}") from None
    for (_, _, before, _), (number, _, time, _) in pairwise(tracked):
        if time < before:
            raise ValueError(
                f"path must hold events in order, got line {number} of {path} {before - time:g} s "
                "early"
            )
    return tracked, _spans(edges, tracked[-1][2] if tracked else 0.0), others


def _spans(edges: list[tuple[float, str, str]], finish: float) -> list[tuple[float, float]]:
    """Intervals between starts and ends of a kind, none inside another; a job start ends all."""
    found: list[tuple[float, float]] = []
    open_: dict[str, float] = {}
    for time, kind, edge in [*edges, (finish, "", "")]:
        if edge == "start":
            open_.setdefault(kind, time)
        else:
            for name in {kind} & {*open_} if kind else [*open_]:
                found.append((open_.pop(name), time))
    apart = [(-np.inf, -np.inf)]
    for start, end in sorted(found):
        apart.append((max(start, apart[-1][1]), max(end, apart[-1][1])))
    return apart[1:]


def _seconds(value: Any) -> float:
    """Seconds since 1970, from a number or an ISO date."""
    try:
        time = pd.Timestamp(value).timestamp() if isinstance(value, str) else value
        return float(require_number(time=time, at_least=-_MILLISECONDS, at_most=_MILLISECONDS))
    except (TypeError, ValueError):
        raise ValueError(
            f"path must hold times in seconds or ISO 8601, got {value!r:.60}"
        ) from None


@record
class StartUp:
    """Time until a job of n nodes computes, a + b (n / 1000)^p [s]; called with n."""

    base: float = real(at_least=0, at_most=LONGEST)  # of the smallest job, a [s]
    growth: float = real(at_least=0, at_most=LONGEST)  # what a thousand nodes add, b [s]
    # p; 2 or more where every rank waits for every other one
    power: float = real(above=0, at_most=10)

    def __call__(self, nodes: Real) -> Real:
        """Seconds for a job of so many nodes."""
        many = require_real(nodes=nodes, at_least=1, at_most=MOST_NODES)
        return bare(self.base + self.growth * (np.asarray(many) / 1000) ** self.power)


def start_ups() -> pd.DataFrame:
    """Start-up times that result logs of MLPerf Training hold, medians of three runs.

    Returns
    -------
    pandas.DataFrame
        Indexed by row: software, accelerator, model, nodes, gpus, source, and seconds from the
        first ``init_start`` of any rank to ``init_stop``. Scheduling and the start of containers
        are not in it.

    Examples
    --------
    >>> int(start_ups()["nodes"].max())
    1344
    """
    return pd.read_csv(data_folder() / "start_ups.csv", index_col="id")


def _enter(name: str, fits: Callable[..., Fit], fields: Callable[[Any], dict[str, Any]]) -> None:
    """Enter a form, by what reads the fields of a `RunLog`."""

    @reads("run", name, Form(lambda path: path, fits))
    def read(path: str | PathLike[str]) -> RunLog:
        return RunLog(**fields(path), source=Path(path).name)


_enter("mlperf", lines({":::MLLOG": ""}).fits, mlperf_logs.read)
_enter("events", lines({"_start_time": r'"(?:job|step)_start_time"'}).fits, _events)
for _name in trainer_logs.TRAINERS:
    _enter(_name, trainer_logs.form_of(_name).fits, partial(trainer_logs.read, name=_name))
_enter("csv", trainer_logs.fits_table, trainer_logs.read_table)
