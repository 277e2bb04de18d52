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
from relparallel.training.log_files import (
    dialect,
    read_lines,
    read_table,
    require_rows,
    require_zones,
    row_of,
    seconds,
    told,
)
from relparallel.units import MINUTE


class Found(NamedTuple):
    """What a reader found; times as the log has them."""

    table: pd.DataFrame  # node, start, end, cause of every failure, indexed by the lines of the file
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
    "BOOT_FAIL", "CANCELLED", "COMPLETED", "COMPLETING", "CONFIGURING", "DEADLINE", "FAILED", "LAUNCH_FAILED",
    "NODE_FAIL", "OUT_OF_MEMORY", "PENDING", "PREEMPTED", "RECONFIG_FAIL", "REQUEUED", "REQUEUE_FED",
    "REQUEUE_HOLD", "RESIZING", "REVOKED", "RUNNING", "SIGNALING", "SPECIAL_EXIT", "STAGE_OUT", "STOPPED",
    "SUSPENDED", "TIMEOUT",
)  # fmt: skip


def _nodes(lists: pd.Series, path: Any) -> pd.Series:
    """Names of the nodes of lists as Slurm folds them, in their order; none where none was assigned."""
    found: list[list[str]] = []
    for row, text in enumerate(lists):
        try:
            found.append([] if text in _NEVER else list(NodeSet(text)))
        except NodeSetException as error:
            raise ValueError(
                f"path must hold lists of nodes, got {text!r:.80} in {row_of(lists, row, path)}: {error}"
            ) from None
    return pd.Series(found, index=lists.index, dtype=object)


@dialect("failures", "slurm")
def _slurm(
    path: Any, *, states: Sequence[str] = _FAILED, jobs: Sequence[str] | None = None, delimiter: str = "|"
) -> Found:
    """Runs of jobs that Slurm calls broken, and when the job ran again."""
    for state in states:
        require_choice(_STATES, states=state)
    table = read_table(path, _SACCT, delimiter)
    whole = table[~table["JobID"].str.contains(".", regex=False)]
    for name in jobs or ():
        require_choice(tuple(whole["JobName"].unique()), jobs=name)
    chosen = whole if jobs is None else whole[whole["JobName"].isin(jobs)]
    runs = _runs(chosen[~chosen["Start"].isin(_NEVER)], states, path)
    broken = runs[runs["state"].isin(states)].sort_values(["ended", "begun"], kind="stable")
    rows = [_next_run(run, runs) for run in broken.itertuples()]
    found = pd.DataFrame(rows, columns=["node", "start", "end", "cause", "known"], index=broken.index)
    same = found.duplicated(["node", "start"])  # jobs that shared the node
    unread = [str(name) for name in table if name not in (*_SACCT, "NNodes", "")]
    kept = runs["state"][~runs["state"].isin((*states, "COMPLETED", "RUNNING"))].value_counts()
    notes = {
        f"left out: {len(table) - len(whole)} steps of jobs": len(table) - len(whole),
        f"left out: {len(whole) - len(chosen)} runs of other jobs": len(whole) - len(chosen),
        f"left out: {len(chosen) - len(runs)} runs that never started": len(chosen) - len(runs),
        f"left out: the columns {', '.join(unread)}": unread,
        f"no failures of nodes: {', '.join(f'{many} {state}' for state, many in kept.items())}": len(kept),
        f"{same.sum()} runs failed with the node of another one and count once": same.any(),
        f"{(~found['known']).sum()} failures are put on the first node of their run: no list tells the node":
            not found["known"].all(),
        f"{runs['ended'].isna().sum()} runs had not ended: watched to the last time in the log, or finish=":
            runs["ended"].isna().any(),
    }  # fmt: skip
    if found.empty:
        raise ValueError(
            f"path must hold a job that broke ({', '.join(states)}), got {len(runs)} other runs in {path}"
        )
    begin = float(runs["begun"].min())
    return Found(
        table=found[~same], origin=begin, begin=begin, notes=told(notes),
        finish=float(np.nanmax(runs[["begun", "ended"]])), nodes=frozenset(runs["nodes"].explode().dropna()),
    )  # fmt: skip


def _runs(table: pd.DataFrame, states: Sequence[str], path: Any) -> pd.DataFrame:
    """Runs with state, times and nodes; those that cannot be are refused."""
    word = table["State"].str.split().str[0].fillna("")
    full = {
        cut: [s for s in _STATES if s == cut or (cut.endswith("+") and s.startswith(cut[:-1]))]
        for cut in word.unique()
    }  # sacct cuts them off without --parsable2
    strange = word.map(lambda cut: len(full[cut]) != 1)
    require_rows(table, {f"states of Slurm, {', '.join(_STATES)}": strange.to_numpy(bool)}, ["State"], path)
    runs = table.assign(
        state=word.map(lambda cut: full[cut][0]),
        begun=seconds(table["Start"], "Start", "iso", path),
        ended=seconds(table["End"].where(~table["End"].isin(_NEVER), ""), "End", "iso", path, blank=True),
        nodes=_nodes(table["NodeList"], path),
    )
    require_zones(table[["Start", "End"]].replace(list(_NEVER), ""), path)
    failed, many = runs["state"].isin(states), runs["nodes"].str.len()
    faults = {
        "every run once": runs.duplicated(["JobID", "Start", "End", "State"]),
        "runs that end after they start": runs["ended"] < runs["begun"],
        "an end and nodes of every failed run": failed & (runs["ended"].isna() | (many == 0)),
    }
    if "NNodes" in runs:
        faults["as many nodes as NNodes says"] = (many > 0) & (runs["NNodes"] != many.astype(str))
    require_rows(runs, faults, ["JobID", "State", "Start", "End", "NodeList"], path)
    return runs


def _next_run(run: Any, runs: pd.DataFrame) -> tuple[str, float, float, str, bool]:
    """Node, start, end and cause of a failure, and whether the nodes of the next run tell the node."""
    later = runs[(runs["begun"] >= run.ended) & (runs.index != run.Index) & (runs["JobName"] == run.JobName)]
    own = later[later["JobID"] == run.JobID]
    again = (own if len(own) else later).sort_values("begun", kind="stable").head(1)
    gone = [node for node in run.nodes if node not in set(again["nodes"].explode())]
    known = len(run.nodes) == 1 or 0 < len(gone) < len(run.nodes)
    back = float(again["begun"].min())
    return (gone if len(gone) > 0 else run.nodes)[0], run.ended, back, run.state, known


_NVRX: Final = re.compile(r"- Cycle: (\d+) Event: (\w+) Node: (\S+) Rank: \w+ Time: (\S+ \S+ UTC)$")
_PROCESS: Final = r"_\d+_\d+$"  # process and its number behind the host in the description of a node


@dialect("failures", "nvrx")
def _launcher(path: Any) -> Found:
    """Cycles of the launcher: failures seen, and when the job was back.

    ``- Cycle: 1 Event: failure_detected Node: host_123_0 Rank: 0 Time: 2026-01-01 00:10:00.250 UTC`` is what
    ``shared_utils/profiling.py`` of nvidia-resiliency-ext writes; a failure that is detected begins a cycle.
    """
    rows, passed = [], 0
    for number, line in read_lines(path):
        passed += "- Cycle: " not in line and bool(line.strip())
        if "- Cycle: " in line:
            if (found := _NVRX.search(line.rstrip())) is None:
                raise ValueError(f"path must hold whole events, got line {number} of {path}: {line[:120]!r}")
            rows.append((number, *found.groups()))
    events = pd.DataFrame(rows, columns=["line", "cycle", "event", "node", "time"]).astype({"time": str})
    events["at"] = seconds(events["time"].set_axis(events["line"]), "time", "%Y-%m-%d %H:%M:%S.%f UTC", path)
    events["node"] = events["node"].str.replace(_PROCESS, "", regex=True)
    events["cycle"] = events["cycle"].astype(int)
    events = events.sort_values("at", kind="stable")
    anew = (events["event"] == "rendezvous_started") & (events["cycle"] == 0) & (events["cycle"].shift() > 0)
    events["job"] = anew.cumsum()
    cycle = ["job", "cycle"]
    seen = events[events["event"] == "failure_detected"].groupby(cycle).first()
    began = events.groupby(cycle).first()
    unseen = began[~began.index.isin(seen.index) & (began.index.get_level_values("cycle") > 0)].iloc[
        int(len(began) > 0 and began.index[0][1] > 0 and began.index[0] not in seen.index) :
    ]  # the first cycle of a log may have begun before it
    failed = pd.concat([seen, unseen]).sort_index()
    if failed.empty:
        raise ValueError(f"path must hold a job that broke, got 0 failures in {len(events)} events of {path}")
    back = events[events["event"] == "worker_start_completed"].groupby(cycle)["at"].max()
    table = failed.rename(columns={"at": "start"}).assign(end=back.reindex(failed.index).bfill(), cause="")
    numbers = began.reset_index().groupby("job")["cycle"].agg(["min", "max", "count"])
    missing = int((numbers["max"] - numbers["min"] + 1 - numbers["count"]).sum())
    notes = {
        f"left out: {passed} lines without an event of a cycle": passed,
        f"{len(unseen)} cycles without failure_detected are taken to fail at their first event": len(unseen),
        f"{missing} cycles left no event and are not counted": missing,
    }
    first, last = float(events["at"].iloc[0]), float(events["at"].iloc[-1])
    return Found(
        table=table.set_index("line")[["node", "start", "end", "cause"]].sort_values("start", kind="stable"),
        origin=first, begin=first, finish=last, nodes=frozenset(events["node"]), notes=told(notes),
    )  # fmt: skip


_TEXTS: Final = ("cycle_start_time", "cycle_end_time", "active_nodes")
_CYCLE: Final = {"job_id": "", "attempt_index": 0, "cycle_number": 0} | dict.fromkeys(_TEXTS, "")


@dialect("failures", "nvrx-cycles")
def _cycles(path: Any) -> Found:
    """Cycle-info JSON of the launcher: a cycle that ends and is followed by another one has failed.

    ``fault_tolerance/cycle_info_writer.py`` of nvidia-resiliency-ext writes ``cycle_info.JOB.ATTEMPT.CYCLE``:
    job_id, attempt_index, cycle_number (0 where left out), cycle_start_time and cycle_end_time (ISO 8601, ""
    while it runs), active_nodes as Slurm folds them.
    """
    order = ["job_id", "attempt_index", "cycle_number"]
    table = pd.DataFrame(_cycle_objects(path)).set_index("where")
    whole = table[order[1:]].map(lambda n: type(n) is int and n >= 0).all(axis=1)
    require_rows(table, {"whole numbers of attempts and cycles": ~whole}, order, path)
    texts = table[list(_TEXTS)].astype(str)
    table = table.assign(
        begun=seconds(texts["cycle_start_time"], "cycle_start_time", "iso", path),
        ended=seconds(texts["cycle_end_time"], "cycle_end_time", "iso", path, blank=True),
        nodes=_nodes(texts["active_nodes"], path),
    ).sort_values(order)
    after = table.shift(-1)
    follows = table["job_id"] == after["job_id"]
    faults = {
        "every cycle once": table.duplicated(order),
        "cycles in the order of their numbers": follows & (after["begun"] < table["begun"]),
        "cycles that end after they start": table["ended"] < table["begun"],
        "cycles that end before the next one starts": follows & (table["ended"] > after["begun"]),
    }  # fmt: skip
    require_rows(table, faults, [*order, "cycle_start_time", "cycle_end_time"], path)
    gone = [
        ([node for node in own if node not in others] or own or ["not given"])[0] if one else ""
        for own, others, one in zip(table["nodes"], after["nodes"], follows, strict=True)
    ]
    failed = pd.DataFrame(
        {"node": gone, "start": table["ended"].fillna(after["begun"]), "end": after["begun"]}
    )
    failed = failed[follows].assign(cause="")
    if failed.empty:
        raise ValueError(
            f"path must hold a job that broke, got {len(table)} cycles without a next one in {path}"
        )
    leaps = (after["cycle_number"] - table["cycle_number"] - 1)[
        follows & (table["attempt_index"] == after["attempt_index"])
    ]
    notes = {
        f"{leaps.sum():g} cycles left no file and are not counted": leaps.sum(),
        f"the last cycles of {table['job_id'].nunique()} jobs are not taken to have failed": True,
    }
    begin = float(table["begun"].min())
    return Found(
        table=failed, origin=begin, begin=begin, finish=float(np.nanmax(table[["begun", "ended"]])),
        nodes=frozenset(table["nodes"].explode().dropna()), notes=told(notes),
    )  # fmt: skip


def _cycle_objects(path: Any) -> list[dict[str, Any]]:
    """Cycle-info objects of a file, one after another or in a list, or of the files of a folder."""
    found: list[dict[str, Any]] = []
    for file in sorted(Path(path).glob("cycle_info.*[0-9]")) if Path(path).is_dir() else [Path(path)]:
        text = "".join(line for _, line in read_lines(file)).rstrip()
        place = 0
        while place < len(text):
            line = 1 + text.count("\n", 0, place)
            try:
                part, place = json.JSONDecoder().raw_decode(text, len(text) - len(text[place:].lstrip()))
            except (json.JSONDecodeError, RecursionError) as error:
                raise ValueError(f"path must hold whole JSON, got line {line} of {file}: {error}") from None
            for one in part if isinstance(part, list) else [part]:
                if not isinstance(one, dict) or not {"job_id", "cycle_start_time"} <= {*one}:
                    raise ValueError(f"path must hold cycles with a job_id and a start, got {one!r:.80} "
                                     f"in line {line} of {file}")  # fmt: skip
                known = {name: one.get(name, default) for name, default in _CYCLE.items()}
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


@dialect("failures", "xid")
def _kernel(path: Any, *, states: Sequence[str] = ()) -> Found:
    """Xid lines of ``dmesg`` (also ``-T`` and ``--time-format iso``), ``journalctl -k`` and syslog.

    NVIDIA's Xid catalogue: 13 and 31, errors of a program; 43 and 45, its channels after them; 63, 92, 94 and
    154, reports of what was remapped, corrected, contained or is to be done.
    """
    rows, passed = [], 0
    for number, line in read_lines(path):
        passed += "NVRM: Xid" not in line and bool(line.strip())
        if "NVRM: Xid" in line:
            if (found := _XID.match(line)) is None:
                raise ValueError(
                    f"path must hold whole Xid lines, got line {number} of {path}: {line[:120]!r}"
                )
            rows.append((number, *found.groups()))
    if not rows:
        raise ValueError(f"path must hold lines with 'NVRM: Xid', got none in {path}")
    table = pd.DataFrame(rows, columns=["line", "front", "gpu", "xid"]).set_index("line")
    start, clock = _stamps(table["front"], path)
    host = table["front"].str.extract(r"(\S+) kernel:", expand=False)
    table = table.assign(
        start=start, node=host.fillna(Path(path).name), cause="xid " + table["xid"], end=np.nan
    )
    wanted = table["xid"].isin([*map(str, states)]) if states else ~table["xid"].isin(_NO_FAILURE)
    kept, other = table[wanted].sort_values("start", kind="stable"), table["xid"][~wanted].value_counts()
    again = kept.groupby(["node", "gpu"])["start"].diff() < MINUTE
    notes = {
        f"left out: {passed} lines without an Xid": passed,
        f"left out: {', '.join(f'{many} of Xid {xid}' for xid, many in other.items())}": len(other),
        f"left out: {again.sum()} lines within a minute of another one of the same GPU": again.any(),
        "no line names a host: all are of one node": host.isna().all(),
        "the lines give no year: each is taken to follow the one above within months": clock.startswith("%Y"),
    }
    return Found(
        table=kept[~again][["node", "start", "end", "cause"]], dated=clock != "s",
        origin=0.0 if clock == "s" else float(table["start"].min()), nodes=frozenset(table["node"]),
        notes=told(notes),
    )  # fmt: skip


def _stamps(front: pd.Series, path: Any) -> tuple[Any, str]:
    """Times of lines [s] and their clock; all lines give them as the first one does."""
    pattern, clock = next((one for one in _STAMPS if re.search(one[0], front.iloc[0])), (r"(\0)", ""))
    text = front.str.extract(pattern, expand=False)
    fault = {"a time in every Xid line, given as in the first one": text.isna()}
    require_rows(front.to_frame("line"), fault, ["line"], path)
    if clock == "iso":
        text = text.str.replace(",", ".")
        require_zones(text.to_frame("time"), path)
    elif clock.startswith("%Y"):
        year = (pd.to_datetime(text.str[:3], format="%b", errors="coerce").dt.month.diff() < -6).cumsum()
        leap = year[text.str.match("Feb +29")]
        text = (year + (2000 - leap.iloc[0] if len(leap) else 2001)).astype(str) + " " + text
    at = seconds(text, "time", clock, path)
    if clock == "s":
        fault = {
            "times since one boot (dmesg -T and journalctl -o short-iso give dates)": text.astype(
                float
            ).diff()
            < 0
        }
        require_rows(text.to_frame("time"), fault, ["time"], path)
    return at, clock
