"""What launchers of training write of failures: NVIDIA's Resiliency Extension, and torchelastic.

They see processes that break and a job that runs again: never when a node is back.
"""

import json
import signal
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd

from relparallel.training import log_files as files
from relparallel.training.line_times import stamped
from relparallel.training.machine_logs import Found, spans, window
from relparallel.units import MINUTE


@files.dialect(
    "failures",
    "nvrx",
    files.lines(
        {
            "- Cycle: ": r"- Cycle: (?P<cycle>\d+) Event: (?P<event>\w+) Node: (?P<node>\S+) "
            r"Rank: \w+ Time: (?P<time>\S+ \S+ UTC)$"
        }
    ),
)
def _launcher(rows: files.Rows) -> Found:
    """Cycles of the launcher: failures seen, and when the job was back.

    ``- Cycle: 1 Event: failure_detected Node: host_123_0 Rank: 0 Time: 2026-01-01 00:10:00.250
    UTC`` is what ``shared_utils/profiling.py`` of nvidia-resiliency-ext writes; a failure that is
    detected begins a cycle.
    """
    table = rows.table
    if table.empty:
        raise ValueError(f"path must hold whole events of cycles, got none in {rows.path}")
    events = table.assign(
        line=table.index,
        cycle=table["cycle"].astype(int),
        # of a process on the host
        node=table["node"].str.replace(r"_\d+_\d+$", "", regex=True),
        start=files.seconds(table["time"], "time", "%Y-%m-%d %H:%M:%S.%f UTC", rows.path),
        seen=table["event"] == "failure_detected",
    ).sort_values("start", kind="stable")
    event, number = events["event"], events["cycle"]
    anew = (event == "rendezvous_started") & (number == 0) & (number.shift() > 0)
    up = events["start"].where(event == "worker_start_completed")
    events = events.assign(job=anew.cumsum(), up=up)
    groups = events.sort_values("seen", ascending=False, kind="stable").groupby(["job", "cycle"])
    first = groups.first().assign(resumed=groups["up"].max().bfill()).reset_index()
    leaps = first.groupby("job")["cycle"].diff().fillna(1) - 1
    # the first one may be older
    failed = first[first["seen"] | ((first["cycle"] > 0) & (first.index > 0))]
    failed = failed.assign(end=np.nan, cause="not given").set_index("line")
    return Found(
        table=failed.sort_values("start", kind="stable"),
        origin=float(events["start"].min()),
        finish=float(events["start"].max()),
        nodes=events["node"].nunique(),
        notes={
            "left out: {} lines without an event of a cycle": rows.passed,
            "{} cycles without failure_detected are taken to fail at their first event": (
                ~failed["seen"]
            ).sum(),
            "{:g} cycles left no event and are not counted": leaps.sum(),
            "left out: {}, that hold no whole event": rows.unread,
        },
    )


_SPAN: Final = ("cycle_start_time", "cycle_end_time", "active_nodes")
_CYCLE: Final = {"job_id": "", "attempt_index": 0, "cycle_number": 0} | dict.fromkeys(_SPAN, "")


def _cycle_objects(path: Any) -> files.Rows:
    """Cycle-info objects of a file, one after another or in a list, or of the files of a folder."""
    found: list[dict[str, Any]] = []
    given = Path(path)
    for file in sorted(given.glob("cycle_info.*[0-9]")) if given.is_dir() else [given]:
        whole = text = "".join(line for _, line in files.read_lines(file))
        while text := text.lstrip():
            place = f"line {1 + whole.count(chr(10), 0, len(whole) - len(text))} of {file.name}"
            try:
                part, end = json.JSONDecoder().raw_decode(text)
            except (json.JSONDecodeError, RecursionError) as error:
                raise ValueError(
                    f"path must hold whole JSON, got {place} in {path}: {error}"
                ) from None
            text = text[end:]
            for one in part if isinstance(part, list) else [part]:
                if not isinstance(one, dict) or not {"job_id", "cycle_start_time"} <= {*one}:
                    raise ValueError(
                        f"path must hold job_id and start of cycles, got {one!r:.40}, {place} in {path}"
                    )
                known = {name: one[name] for name in _CYCLE if one.get(name) is not None}
                found.append({**_CYCLE, **known, "where": place.removeprefix("line ")})
    if not found:
        raise ValueError(f"path must hold cycle-info JSON, got none in {path}")
    return files.Rows(path, pd.DataFrame(found).set_index("where"))


def _has_cycles(path: Any, **options: Any) -> files.Fit:
    """Whether a folder has cycle-info files, or a file a start of a cycle."""
    if Path(path).is_dir():
        return files.Fit(any(Path(path).glob("cycle_info.*[0-9]")), "files cycle_info.*")
    return files.has_line(path, '"cycle_start_time"')


@files.dialect("failures", "nvrx-cycles", files.Form(_cycle_objects, _has_cycles))
def _cycles(rows: files.Rows) -> Found:
    """Cycle-info JSON of the launcher: a cycle that ends and is followed by another one has failed.

    ``fault_tolerance/cycle_info_writer.py`` of nvidia-resiliency-ext writes
    ``cycle_info.JOB.ATTEMPT.CYCLE``: job_id, attempt_index, cycle_number (0 where left out),
    cycle_start_time and cycle_end_time (ISO 8601, "" while it runs), active_nodes as Slurm folds
    them.
    """
    order = ["job_id", "attempt_index", "cycle_number"]
    path, table = rows.path, rows.table
    whole = table[order[1:]].map(lambda n: type(n) is int and n >= 0).all(axis=1)
    files.require_rows(table, {"whole numbers of attempts and cycles": ~whole}, order, path)
    table = spans(table, _SPAN, path, [""]).sort_values(order)
    after = table.shift(-1)
    follows = table["job_id"] == after["job_id"]
    faults = {
        "every cycle once": table.duplicated(order),
        "cycles that end after they start": table["ended"] < table["begun"],
        "cycles one after another": follows
        & (after["begun"] < np.fmax(table["ended"], table["begun"])),
    }
    files.require_rows(table, faults, [*order, "cycle_start_time", "cycle_end_time"], path)
    failed, after = table[follows], after[follows]
    gone = [
        next((node for node in one if node not in other), [*one, "not given"][0])
        for one, other in zip(failed["nodes"], after["nodes"], strict=True)
    ]
    leaps = after["cycle_number"] - failed["cycle_number"] - 1
    return Found(
        table=failed.assign(
            node=gone,
            start=failed["ended"].fillna(after["begun"]),
            resumed=after["begun"],
            end=np.nan,
            cause="not given",
        ),
        **window(table),
        notes={
            "{:g} cycles left no file and are not counted": leaps[
                after["attempt_index"] == failed["attempt_index"]
            ].sum(),
            "the last cycles of {} jobs are not taken to have failed": (~follows).sum(),
        },
    )


_ELASTIC: Final = {  # words of a line: what it says, and its pattern
    "failed (exitcode: ": ("breaks", r"exitcode: (?P<value>-?\d+)"),
    "Worker group FAILED": ("breaks", ""),
    "Worker group UNHEALTHY": ("breaks", ""),
    "Root Cause (first observed failure)": ("root", ""),
    "  time      : ": ("time", r" : (?P<value>\S+)"),
    "  host      : ": ("host", r" : (?P<value>\S+)"),
    "  exitcode  : ": ("code", r" : (?P<value>-?\d+)"),
    "has joined round": ("joins", r"The node '(?P<value>\S+)_(?P<agent>\d+)_\d+' has joined"),
    "Starting worker group": ("starts", ""),
    "starting workers for entrypoint": ("launches", ""),
    "distributed/run.py:": ("launches", ""),
    "torch.distributed.run:": ("launches", ""),  # before PyTorch 2.3
    "death signal": ("stops", ""),
}
_LATE: Final = 10 * MINUTE  # NCCL's time-out: so late others tell of the same failure
_AGENTS: Final = files.lines({said: form for said, (_, form) in _ELASTIC.items()})


@dataclass
class _Break:
    """A failure of workers, of which several agents may tell."""

    line: Any
    start: float
    told: float  # when the last agent told of it
    node: str = ""
    cause: str = ""
    resumed: float = np.nan
    root: str = "~"  # when the first worker broke, by what agents say in the end


def _has_agents(path: Any, **options: Any) -> files.Fit:
    """Whether lines are of torchelastic, and not of NVIDIA's launcher, which is one."""
    fit = _AGENTS.fits(path)
    return files.Fit(0.5, "no cycles") if files.has_line(path, "- Cycle: ").share else fit


@files.dialect("failures", "torchelastic", _AGENTS._replace(fits=_has_agents))
def _agents(rows: files.Rows) -> Found:
    """Agents of torchelastic (torchrun): workers that broke, and when workers started again.

    The wordings are those of ``torch/distributed/elastic`` of PyTorch 1.9 to 2.9. A failure counts
    once, whoever tells of it, until workers start; where no line tells of starts, until ten minutes
    pass. The node is the host of the root cause, or of the agent that tells first.
    """
    table = rows.table.assign(does=[_ELASTIC[said][0] for said in rows.table["said"]])
    lines = table[~table["does"].isin(["root", "time", "host", "code"])]
    if not lines["front"].str.contains(r"\d:\d\d:\d\d").any():  # only root causes have times
        lines = table[table["does"] == "time"]
    times = stamped(rows._replace(table=lines))
    table = table.assign(at=times.at[table.index].where(table.index.isin(lines.index)).ffill())
    found, again = _breaks(table)
    breaks = pd.DataFrame(found, columns=[*_Break.__annotations__]).set_index("line")
    breaks = breaks.astype({"start": float, "resumed": float}).replace("", "not given")
    return Found(
        table=breaks.assign(end=np.nan),
        **times.window,
        nodes=breaks["node"].nunique(),
        levels=dict.fromkeys(breaks["cause"], "job"),
        notes={
            "left out: {} lines that tell of no failure and no start": rows.passed,
            "left out: {} lines before the first one with a time": table["at"].isna().sum(),
            "{} lines tell of a failure that another one told and count once": again,
            "left out: {} times that a signal from outside stopped an agent: the log of the "
            "scheduler says why": (table["does"] == "stops").sum(),
            "{} failures after which no line says that workers started: when the job ran again is "
            "not known": breaks["resumed"].isna().sum(),
        },
    )


def _breaks(lines: Any) -> tuple[list[_Break], int]:
    """Failures in their order, and how many lines tell of one that is known."""
    starts = "starts" if (lines["does"] == "starts").any() else "launches"
    process = lines["front"].str.extract(r"\b[IWEF]\d{4} \S+ (\d+) ", expand=False)
    hosts: dict[str, str] = {}
    found: list[_Break] = []
    now: _Break | None = None
    root: dict[str, str] | None = None
    again = 0
    for line in lines.assign(process=process).itertuples():
        at, does, value = line.at, line.does, line.value
        if does == "joins":
            hosts[line.agent] = value
        elif does == starts and now:
            now.resumed, now = at, None
        elif does == "root":
            root = {}
        elif does in ("time", "host") and root is not None:
            root[does] = value
        elif at == at and (does == "breaks" or (does == "code" and root is not None)):
            if not now or (starts == "launches" and at - now.told > _LATE):
                now = _Break(line.Index, at, at)
                found.append(now)
            else:
                again += 1
            if root and root.get("time", "~") < now.root:
                now.root, now.node, now.cause = root["time"], root.get("host", ""), _exit(value)
            now.node = now.node or hosts.get(line.process, "")
            now.cause = now.cause or _exit(value)
            now.told, root = at, None
    return found, again


def _exit(code: str) -> str:
    """The name of an exit code: of a signal where it is below 0."""
    names = {str(-one.value): one.name for one in signal.Signals}
    return names.get(code, f"exit code {code}") if code else ""
