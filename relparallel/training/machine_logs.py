"""What machines write of failures: Slurm's accounting, NVIDIA's launcher.

How the rows of a dialect are written stands in its entry: columns of a table, or a mark and a
pattern of lines. Each reader counts once what its log says twice, and says what it left out.
"""

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import pandas as pd
from ClusterShell.NodeSet import NodeSet, NodeSetException

from relparallel._checks import require_choice
from relparallel.training import log_files as files


class Found(NamedTuple):
    """What a reader found; times as the log has them.

    The table has node, start, end and cause of every outage, indexed by the lines of the file, and
    where the log tells them resumed, incident and still, as in `FailureLog`.
    """

    table: pd.DataFrame
    origin: float = 0.0  # time that becomes 0: where the watch began, if it has an end
    finish: float | None = None
    dated: bool = True  # the times are dates
    overlaps: str = "keep"
    nodes: int = 0  # that the log names
    notes: Mapping[str, Any] = {}  # what was left out, with its number; nothing where that is 0
    levels: Mapping[str, str] = {}  # of causes, where the log tells them
    years: bool = True  # the dates have a year


_NEVER: Final = ("Unknown", "None", "None assigned", "(null)", "")
_STATES: Final = (
    "BOOT_FAIL",
    "CANCELLED",
    "COMPLETED",
    "COMPLETING",
    "CONFIGURING",
    "DEADLINE",
    "FAILED",
    "LAUNCH_FAILED",
    "NODE_FAIL",
    "OUT_OF_MEMORY",
    "PENDING",
    "PREEMPTED",
    "RECONFIG_FAIL",
    "REQUEUED",
    "REQUEUE_FED",
    "REQUEUE_HOLD",
    "RESIZING",
    "REVOKED",
    "RUNNING",
    "SIGNALING",
    "SPECIAL_EXIT",
    "STAGE_OUT",
    "STOPPED",
    "SUSPENDED",
    "TIMEOUT",
)
# between a job and its place in an array, or among those that start together
_PART: Final = r"[_+]"


def _spans(
    table: pd.DataFrame, names: Sequence[str], path: Any, never: Sequence[str]
) -> pd.DataFrame:
    """The table with columns begun, ended and nodes, of those with these names."""
    start, end, nodes = (table[name].astype(str) for name in names)
    end = end.where(~end.isin(never), "")
    files.require_zones(pd.concat([start, end], axis=1), path)
    return table.assign(
        begun=files.seconds(start, names[0], "iso", path),
        ended=files.seconds(end, names[1], "iso", path, blank=True),
        nodes=_nodes(nodes, path),
    )


def _watch(table: pd.DataFrame) -> dict[str, Any]:
    """When the log of such a table begins and ends, and how many nodes it names."""
    return {
        "origin": float(table["begun"].min()),
        "finish": float(np.nanmax(table[["begun", "ended"]])),
        "nodes": table["nodes"].explode().nunique(),
    }


_SACCT: Final = "JobID JobName State Start End NodeList"


@files.dialect("failures", "slurm", files.columns(_SACCT, "|"))
def _slurm(
    rows: files.Rows,
    *,
    states: Sequence[str] = ("NODE_FAIL", "BOOT_FAIL"),
    jobs: Sequence[str] = (),
) -> Found:
    """Runs of jobs that Slurm calls broken, and when the job ran again."""
    path, table = rows.path, rows.table
    whole = table[~table["JobID"].str.contains(".", regex=False)]
    for state in states:
        require_choice(_STATES, states=state)
    for name in jobs:
        require_choice(tuple(whole["JobName"].unique()), jobs=name)
    chosen = whole[whole["JobName"].isin(jobs)] if jobs else whole
    runs = _runs(chosen[~chosen["Start"].isin(_NEVER)], states, path)
    broken = runs[runs["state"].isin(states)].sort_values(["ended", "begun"], kind="stable")
    found = pd.DataFrame(
        [_next_run(run, runs) for run in broken.itertuples()],
        columns=["node", "start", "end", "cause", "known"],
        index=broken.index,
    )
    if found.empty:
        raise ValueError(
            f"path must hold a job that broke, got {len(runs)} runs, none {states}, in {path}"
        )
    same = found.duplicated(["node", "start"])  # jobs that shared the node
    kept = runs["state"][~runs["state"].isin((*states, "COMPLETED", "RUNNING"))].value_counts()
    return Found(
        table=found[~same],
        **_watch(runs),
        notes={
            "left out: {} steps of jobs": len(table) - len(whole),
            "left out: {} runs of other jobs": len(whole) - len(chosen),
            "left out: {} runs that never started": len(chosen) - len(runs),
            "left out: columns {}": ", ".join(
                table.columns.difference([*_SACCT.split(), "NNodes", ""])
            ),
            "no failures of nodes: {}": ", ".join(
                f"{many} {state}" for state, many in kept.items()
            ),
            "{} runs failed with the node of another one and count once": same.sum(),
            "{} failures are put on the first node of their run: no list tells it": (
                ~found["known"]
            ).sum(),
            "{} runs had not ended: the watch ends with the last time in the log, or as "
            "until= says": runs["ended"].isna().sum(),
        },
    )


def _runs(table: pd.DataFrame, states: Sequence[str], path: Any) -> pd.DataFrame:
    """Runs with state, times and nodes; those that cannot be are refused."""
    full = {
        text: [s for s in _STATES if s == cut or (cut.endswith("+") and s.startswith(cut[:-1]))]
        for text in table["State"].unique()
        for cut in [(text.split() or [""])[0]]  # "CANCELLED by 7"; without --parsable2 "OUT_OF_ME+"
    }
    strange = [len(full[text]) != 1 for text in table["State"]]
    files.require_rows(table, {f"states of Slurm, {', '.join(_STATES)}": strange}, ["State"], path)
    runs: pd.DataFrame = _spans(table, ["Start", "End", "NodeList"], path, _NEVER)
    runs = runs.assign(state=[full[text][0] for text in table["State"]])
    failed, many = runs["state"].isin(states), runs["nodes"].str.len()
    faults = {
        "every run once": runs.duplicated(["JobID", "Start", "End", "State"]),
        "runs that end after they start": runs["ended"] < runs["begun"],
        "an end and nodes of every failed run": failed & (runs["ended"].isna() | (many == 0)),
    }
    if "NNodes" in runs:
        faults["as many nodes as NNodes says"] = (many > 0) & (runs["NNodes"] != many.astype(str))
    files.require_rows(runs, faults, ["JobID", "State", "Start", "End", "NodeList"], path)
    return runs


def _nodes(lists: pd.Series, path: Any) -> pd.Series:
    """Node names of lists as Slurm folds them, in their order; none where none was assigned."""
    found: list[list[str]] = []
    for row, text in enumerate(lists):
        try:
            found.append([] if text in _NEVER else list(NodeSet(text)))
        except NodeSetException:
            raise ValueError(
                f"path must hold lists of nodes, got {text!r:.60} in "
                f"{files.row_of(lists, row, path)}"
            ) from None
    return pd.Series(found, index=lists.index, dtype=object)


def _next_run(run: Any, runs: pd.DataFrame) -> tuple[str, float, float, str, bool]:
    """Node, start, end and cause of a failure, and whether the next run's nodes tell the node."""
    later = runs[
        (runs["begun"] >= run.ended) & (runs.index != run.Index) & (runs["JobName"] == run.JobName)
    ]
    own = later[later["JobID"] == run.JobID]
    later = later[later["JobID"].str.split(_PART).str[0] != re.split(_PART, run.JobID)[0]]
    again = (own if len(own) else later).sort_values("begun", kind="stable").head(1)
    gone = [node for node in run.nodes if node not in set(again["nodes"].explode())] or run.nodes
    known = len(run.nodes) == 1 or len(gone) < len(run.nodes)
    return gone[0], run.ended, float(again["begun"].min()), run.state, known


@files.dialect(
    "failures",
    "nvrx",
    files.lines(
        "- Cycle: ",
        r"- Cycle: (?P<cycle>\d+) Event: (?P<event>\w+) Node: (?P<node>\S+) Rank: \w+ "
        r"Time: (?P<time>\S+ \S+ UTC)$",
    ),
)
def _launcher(rows: files.Rows) -> Found:
    """Cycles of the launcher: failures seen, and when the job was back.

    ``- Cycle: 1 Event: failure_detected Node: host_123_0 Rank: 0 Time: 2026-01-01 00:10:00.250
    UTC`` is what ``shared_utils/profiling.py`` of nvidia-resiliency-ext writes; a failure that is
    detected begins a cycle.
    """
    table = rows.table
    events = table.assign(
        line=table.index,
        cycle=table["cycle"].astype(int),
        # of a process on the host
        node=table["node"].str.replace(r"_\d+_\d+$", "", regex=True),
        at=files.seconds(table["time"], "time", "%Y-%m-%d %H:%M:%S.%f UTC", rows.path),
    ).sort_values("at", kind="stable")
    anew = (
        (events["event"] == "rendezvous_started")
        & (events["cycle"] == 0)
        & (events["cycle"].shift() > 0)
    )
    events, cycle = events.assign(job=anew.cumsum()), ["job", "cycle"]
    began = events.groupby(cycle).first()
    seen = events[events["event"] == "failure_detected"].groupby(cycle).first()
    # the first may be older
    unseen = began.iloc[1:].drop(seen.index, errors="ignore").query("cycle > 0")
    failed = pd.concat([seen, unseen]).sort_index()
    if failed.empty:
        raise ValueError(
            f"path must hold a job that broke, got 0 failures in {len(events)} events of {rows.path}"
        )
    back = events[events["event"] == "worker_start_completed"].groupby(cycle)["at"].max()
    failed = failed.assign(
        start=failed["at"], end=back.reindex(failed.index).bfill(), cause="not given"
    )
    leaps = began.reset_index().groupby("job")["cycle"].diff().fillna(1) - 1
    return Found(
        table=failed.set_index("line").sort_values("start", kind="stable"),
        origin=float(events["at"].iloc[0]),
        finish=float(events["at"].iloc[-1]),
        nodes=events["node"].nunique(),
        notes={
            "left out: {} lines without an event of a cycle": rows.passed,
            "{} cycles without failure_detected are taken to fail at their first event": len(
                unseen
            ),
            "{:g} cycles left no event and are not counted": leaps.sum(),
            "left out: {}, that hold no whole event": rows.unread,
        },
    )


_SPAN: Final = ("cycle_start_time", "cycle_end_time", "active_nodes")
_CYCLE: Final = {"job_id": "", "attempt_index": 0, "cycle_number": 0} | dict.fromkeys(_SPAN, "")


def _cycle_objects(path: Any) -> files.Rows:
    """Cycle-info objects of a file, one after another or in a list, or of the files of a folder."""
    found: list[dict[str, Any]] = []
    for file in (
        sorted(Path(path).glob("cycle_info.*[0-9]")) if Path(path).is_dir() else [Path(path)]
    ):
        text = "".join(line for _, line in files.read_lines(file)).rstrip()
        place = 0
        while place < len(text):
            line = 1 + text.count("\n", 0, place)
            try:
                start = len(text) - len(text[place:].lstrip())
                part, place = json.JSONDecoder().raw_decode(text, start)
            except (json.JSONDecodeError, RecursionError) as error:
                raise ValueError(
                    f"path must hold whole JSON, got line {line} of {file}: {error}"
                ) from None
            for one in part if isinstance(part, list) else [part]:
                if not isinstance(one, dict) or not {"job_id", "cycle_start_time"} <= {*one}:
                    raise ValueError(
                        f"path must hold job_id and start of cycles, got {one!r:.40}, line {line} "
                        f"of {file}"
                    )
                known = _CYCLE | {name: one[name] for name in _CYCLE if one.get(name) is not None}
                found.append({**known, "where": f"{line} of {file.name}"})
    if not found:
        raise ValueError(f"path must hold cycle-info JSON, got none in {path}")
    return files.Rows(path, pd.DataFrame(found).set_index("where"))


def _has_cycles(path: Any, **options: Any) -> files.Fit:
    """Whether a folder has cycle-info files, or a file a start of a cycle."""
    if Path(path).is_dir():
        return files.Fit(any(Path(path).glob("cycle_info.*[0-9]")), "files cycle_info.*")
    return files.has_line(path, '"cycle_start_time"', re.compile(""))


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
    table = _spans(table, _SPAN, path, [""]).sort_values(order)
    after = table.shift(-1)
    follows = table["job_id"] == after["job_id"]
    faults = {
        "every cycle once": table.duplicated(order),
        "cycles that end after they start": table["ended"] < table["begun"],
        "cycles one after another": follows
        & (after["begun"] < np.fmax(table["ended"], table["begun"])),
    }
    files.require_rows(table, faults, [*order, "cycle_start_time", "cycle_end_time"], path)
    own: list[Any] = table["nodes"].tolist()
    gone = [
        ([node for node in one if node not in other] or [*one, "not given"])[0]
        for one, other in zip(own, [*own[1:], []], strict=True)
    ]
    failed = table.assign(
        node=gone,
        start=table["ended"].fillna(after["begun"]),
        end=after["begun"],
        cause="not given",
    )
    if not follows.any():
        raise ValueError(
            f"path must hold a job that broke, got {len(table)} last cycles of jobs in {path}"
        )
    leaps = (after["cycle_number"] - table["cycle_number"] - 1)[
        follows & (after["attempt_index"] == table["attempt_index"])
    ]
    return Found(
        table=failed[follows],
        **_watch(table),
        notes={
            "{:g} cycles left no file and are not counted": leaps.sum(),
            "the last cycles of {} jobs are not taken to have failed": (~follows).sum(),
        },
    )
