"""What machines write of failures: Slurm's accounting, NVIDIA's launcher, Xid lines of the kernel.

Each reader counts twice what its log says twice, and says what it left out.
"""

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import pandas as pd
from ClusterShell.NodeSet import NodeSet, NodeSetException

from relparallel._checks import require_choice
from relparallel.training import log_files as files
from relparallel.units import MINUTE


class Found(NamedTuple):
    """What a reader found; times as the log has them."""

    # node, start, end, cause of every failure, indexed by the lines of the file
    table: pd.DataFrame
    origin: float = 0.0  # time that becomes 0
    begin: float | None = None  # of the watch
    finish: float | None = None
    dated: bool = True  # the times are dates
    overlaps: str = "keep"
    nodes: frozenset[str] = frozenset()  # that the log names
    notes: tuple[str, ...] = ()


_SACCT: Final = ("JobID", "JobName", "State", "Start", "End", "NodeList")
_NEVER: Final = ("Unknown", "None", "None assigned", "(null)", "")
_FAILED: Final = ("NODE_FAIL", "BOOT_FAIL")
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


@files.dialect("failures", "slurm")
def _slurm(
    path: Any, *, states: Sequence[str] = _FAILED, jobs: Sequence[str] = (), delimiter: str = "|"
) -> Found:
    """Runs of jobs that Slurm calls broken, and when the job ran again."""
    table = files.read_table(path, _SACCT, delimiter)
    whole = table[~table["JobID"].str.contains(".", regex=False)]
    for state in states:
        require_choice(_STATES, states=state)
    for name in jobs:
        require_choice(tuple(whole["JobName"].unique()), jobs=name)
    chosen = whole[whole["JobName"].isin(jobs)] if jobs else whole
    runs = _runs(chosen[~chosen["Start"].isin(_NEVER)], states, path)
    broken = runs[runs["state"].isin(states)].sort_values(["ended", "begun"], kind="stable")
    rows = [_next_run(run, runs) for run in broken.itertuples()]
    found = pd.DataFrame(
        rows, columns=["node", "start", "end", "cause", "known"], index=broken.index
    )
    if found.empty:
        raise ValueError(
            f"path must hold a job that broke, got {len(runs)} runs, none {states}, in {path}"
        )
    same = found.duplicated(["node", "start"])  # jobs that shared the node
    kept = runs["state"][~runs["state"].isin((*states, "COMPLETED", "RUNNING"))].value_counts()
    begin = float(runs["begun"].min())
    return Found(
        table=found[~same],
        origin=begin,
        begin=begin,
        nodes=frozenset(runs["nodes"].explode().dropna()),
        finish=float(np.nanmax(runs[["begun", "ended"]])),
        notes=files.told(
            {
                "left out: {} steps of jobs": len(table) - len(whole),
                "left out: {} runs of other jobs": len(whole) - len(chosen),
                "left out: {} runs that never started": len(chosen) - len(runs),
                "left out: columns {}": ", ".join(
                    table.columns.difference([*_SACCT, "NNodes", ""])
                ),
                "no failures of nodes: {}": ", ".join(
                    f"{many} {state}" for state, many in kept.items()
                ),
                "{} runs failed with the node of another one and count once": same.sum(),
                "{} failures are put on the first node of their run: no list tells it": (
                    ~found["known"]
                ).sum(),
                "{} runs had not ended: the watch ends with the last time in the log, or as "
                "finish= says": runs["ended"].isna().sum(),
            }
        ),
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
    ends = table["End"].where(~table["End"].isin(_NEVER), "")
    files.require_zones(pd.DataFrame({"Start": table["Start"], "End": ends}), path)
    runs = table.assign(
        state=[full[text][0] for text in table["State"]],
        begun=files.seconds(table["Start"], "Start", "iso", path),
        ended=files.seconds(ends, "End", "iso", path, blank=True),
        nodes=_nodes(table["NodeList"], path),
    )
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


def _matches(path: Any, mark: str, pattern: re.Pattern[str]) -> tuple[list[tuple[Any, ...]], int]:
    """Lines with a mark, by number and what a pattern finds in them, and how many have none."""
    rows, passed = [], 0
    for number, line in files.read_lines(path):
        if mark not in line:
            passed += bool(line.strip())
        elif found := pattern.search(line.rstrip()):
            rows.append((number, *found.groups()))
        else:
            raise ValueError(
                f"path must hold whole events, got line {number} of {path}: {line[:120]!r}"
            )
    return rows, passed


_NVRX: Final = re.compile(r"- Cycle: (\d+) Event: (\w+) Node: (\S+) Rank: \w+ Time: (\S+ \S+ UTC)$")


@files.dialect("failures", "nvrx")
def _launcher(path: Any) -> Found:
    """Cycles of the launcher: failures seen, and when the job was back.

    ``- Cycle: 1 Event: failure_detected Node: host_123_0 Rank: 0 Time: 2026-01-01 00:10:00.250
    UTC`` is what ``shared_utils/profiling.py`` of nvidia-resiliency-ext writes; a failure that is
    detected begins a cycle.
    """
    rows, passed = _matches(path, "- Cycle: ", _NVRX)
    events = pd.DataFrame(rows, columns=["line", "cycle", "event", "node", "time"])
    time = events.set_index("line")["time"].astype(str)
    at = files.seconds(time, "time", "%Y-%m-%d %H:%M:%S.%f UTC", path)
    # of a process on the host
    node = events["node"].astype(str).str.replace(r"_\d+_\d+$", "", regex=True)
    events = events.assign(at=at, node=node, cycle=events["cycle"].astype(int)).sort_values(
        "at", kind="stable"
    )
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
            f"path must hold a job that broke, got 0 failures in {len(events)} events of {path}"
        )
    back = events[events["event"] == "worker_start_completed"].groupby(cycle)["at"].max()
    failed = failed.assign(
        start=failed["at"], end=back.reindex(failed.index).bfill(), cause="not given"
    )
    leaps = began.reset_index().groupby("job")["cycle"].diff().fillna(1) - 1
    first, last = float(events["at"].iloc[0]), float(events["at"].iloc[-1])
    return Found(
        table=failed.set_index("line").sort_values("start", kind="stable"),
        origin=first,
        begin=first,
        finish=last,
        nodes=frozenset(events["node"]),
        notes=files.told(
            {
                "left out: {} lines without an event of a cycle": passed,
                "{} cycles without failure_detected are taken to fail at their first event": len(
                    unseen
                ),
                "{:g} cycles left no event and are not counted": leaps.sum(),
            }
        ),
    )


_TEXTS: Final = ("cycle_start_time", "cycle_end_time", "active_nodes")
_CYCLE: Final = {"job_id": "", "attempt_index": 0, "cycle_number": 0} | dict.fromkeys(_TEXTS, "")


@files.dialect("failures", "nvrx-cycles")
def _cycles(path: Any) -> Found:
    """Cycle-info JSON of the launcher: a cycle that ends and is followed by another one has failed.

    ``fault_tolerance/cycle_info_writer.py`` of nvidia-resiliency-ext writes
    ``cycle_info.JOB.ATTEMPT.CYCLE``: job_id, attempt_index, cycle_number (0 where left out),
    cycle_start_time and cycle_end_time (ISO 8601, "" while it runs), active_nodes as Slurm folds
    them.
    """
    order = ["job_id", "attempt_index", "cycle_number"]
    table = pd.DataFrame(_cycle_objects(path)).set_index("where")
    whole = table[order[1:]].map(lambda n: type(n) is int and n >= 0).all(axis=1)
    files.require_rows(table, {"whole numbers of attempts and cycles": ~whole}, order, path)
    texts = table[list(_TEXTS)].astype(str)
    files.require_zones(texts[list(_TEXTS[:2])], path)
    begun = files.seconds(texts["cycle_start_time"], "cycle_start_time", "iso", path)
    ended = files.seconds(texts["cycle_end_time"], "cycle_end_time", "iso", path, blank=True)
    nodes = _nodes(texts["active_nodes"], path)
    table = table.assign(begun=begun, ended=ended, nodes=nodes).sort_values(order)
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
        origin=float(begun.min()),
        begin=float(begun.min()),
        finish=float(np.nanmax([begun, ended])),
        nodes=frozenset(nodes.explode().dropna()),
        notes=files.told(
            {
                "{:g} cycles left no file and are not counted": leaps.sum(),
                "the last cycles of {} jobs are not taken to have failed": (~follows).sum(),
            }
        ),
    )


def _cycle_objects(path: Any) -> list[dict[str, Any]]:
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
    return found


_XID: Final = re.compile(r"^(.*?)NVRM: Xid \((?:PCI:)?([0-9a-fA-F:.]+)\): (\d+)\b")
_STAMPS: Final = (
    (r"(\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?)", "iso"),
    (r"\w{3} (\w{3} +\d+ \d\d:\d\d:\d\d \d{4})", "%b %d %H:%M:%S %Y"),
    (r"(\w{3} +\d+ \d\d:\d\d:\d\d)", "%Y %b %d %H:%M:%S"),
    (r"\[ *(\d+\.\d+)\]", "s"),
)
_NO_FAILURE: Final = ("13", "31", "43", "45", "63", "92", "94", "154")


@files.dialect("failures", "xid")
def _kernel(path: Any, *, states: Sequence[str] = ()) -> Found:
    """Xid lines of ``dmesg`` (also ``-T`` and ``--time-format iso``), ``journalctl -k`` and syslog.

    NVIDIA's Xid catalogue: 13 and 31, errors of a program; 43 and 45, its channels after them; 63,
    92, 94 and 154, reports of what was remapped, corrected, contained or is to be done.
    """
    rows, passed = _matches(path, "NVRM: Xid", _XID)
    if not rows:
        raise ValueError(f"path must hold lines with 'NVRM: Xid', got none in {path}")
    table = pd.DataFrame(rows, columns=["line", "front", "gpu", "xid"]).set_index("line")
    start, clock = _stamps(table["front"], path)
    host = table["front"].str.extract(r"(\S+) kernel(?::| -)", expand=False)
    node = host.fillna(Path(path).name)
    table = table.assign(start=start, node=node, cause="xid " + table["xid"], end=np.nan)
    wanted = table["xid"].isin([*map(str, states)]) if states else ~table["xid"].isin(_NO_FAILURE)
    kept, other = (
        table[wanted].sort_values("start", kind="stable"),
        table["xid"][~wanted].value_counts(),
    )
    if kept.empty:
        found = ", ".join(f"{many} lines of Xid {xid}" for xid, many in other.items())
        raise ValueError(
            f"path must hold a failure, got {found} in {path}: states= says what counts"
        )
    again = kept.groupby(["node", "gpu"])["start"].diff() < MINUTE
    return Found(
        table=kept[~again],
        dated=clock != "s",
        origin=0.0 if clock == "s" else float(table["start"].min()),
        nodes=frozenset(node),
        notes=files.told(
            {
                "left out: {} lines without an Xid": passed,
                "left out: {}": ", ".join(
                    f"{many} lines of Xid {xid}" for xid, many in other.items()
                ),
                "left out: {} lines within a minute of another one of the same GPU": again.sum(),
                "no line names a host: all are of one node": host.isna().all(),
                "the lines give no year: each is taken to follow the one above within "
                "months": clock[:2] == "%Y",
            }
        ),
    )


def _stamps(front: pd.Series, path: Any) -> tuple[Any, str]:
    """Times of lines [s] and their clock; all lines give them as the first one does."""
    pattern, clock = next(
        (one for one in _STAMPS if re.search(one[0], front.iloc[0])), (r"(\0)", "iso")
    )
    text = front.str.extract(pattern, expand=False)
    fault = {"a time in every Xid line, given as in the first one": text.isna()}
    files.require_rows(front.to_frame("line"), fault, ["line"], path)
    if clock == "iso":
        text = text.str.replace(",", ".")
        files.require_zones(text.to_frame("time"), path)
    elif clock[:2] == "%Y":
        year = (
            pd.to_datetime(text.str[:3], format="%b", errors="coerce").dt.month.diff() < -6
        ).cumsum()
        leap = year[text.str.match("Feb +29")]
        text = (year + (2000 - leap.iloc[0] if len(leap) else 2001)).astype(str) + " " + text
    at = files.seconds(text, "time", clock, path)
    if clock == "s":
        fault = {
            "times since one boot (dmesg -T and journalctl -o short-iso give dates)": pd.Series(
                at
            ).diff()
            < 0
        }
        files.require_rows(text.to_frame("time"), fault, ["time"], path)
    return at, clock
