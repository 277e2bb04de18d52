"""What Slurm writes of failures: the accounting of jobs, and the log of its controller.

The accounting tells when a job broke and when it ran again, never when a node was back; the log of
the controller tells when a node was down or drained and when it was in service again.
"""

import fnmatch
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import pandas as pd

from relparallel._checks import require_choice, require_instance
from relparallel.training import log_files as files
from relparallel.training.line_times import stamped
from relparallel.training.log_columns import texts
from relparallel.training.log_files import Rows
from relparallel.training.machine_logs import NEVER, Found, node_lists, spans, window
from relparallel.units import HOUR, MINUTE

_LEVELS: Final = {"NODE_FAIL": "node", "BOOT_FAIL": "node", "FAILED": "job", "OUT_OF_MEMORY": "job"}
_OTHERS: Final = (  # states that are no failures
    "CANCELLED COMPLETED COMPLETING CONFIGURING DEADLINE EXPEDITING LAUNCH_FAILED PENDING "
    "POWER_UP_NODE PREEMPTED RECONFIG_FAIL REQUEUED REQUEUE_FED REQUEUE_HOLD RESIZING REVOKED "
    "RUNNING SIGNALING SPECIAL_EXIT STAGE_OUT STOPPED SUSPENDED TIMEOUT UPDATE_DB"
)
_STATES: Final = (*_LEVELS, *_OTHERS.split())
_QUIET: Final = ("COMPLETED", "RUNNING", "PENDING", "COMPLETING", "CONFIGURING")
# that jobs have where nobody names them
_NAMELESS: Final = "wrap bash sh zsh interactive python python3 sbatch srun salloc job.sh run.sh"
# between a job and its place in an array, or among those that start together
_PART: Final = r"[_+]"
_MAIN: Final = 0.1  # of the node-hours: jobs of a name with less are evaluations and trials
_SACCT: Final = ["JobID", "JobName", "State", "Start", "End", "NodeList"]
_MORE: Final = ("User", "Cluster", "FailedNode", "Elapsed", "ElapsedRaw", "NNodes", "")
_WHO: Final = ["Cluster", "User", "JobName"]


def _accounting(path: Any, *, delimiter: str = "|") -> Rows:
    """Rows of ``sacct``: its text, or the jobs of ``--json``."""
    if not files.head_of(path).startswith("{"):
        return Rows(path, files.read_table(path, _SACCT, delimiter), delimiter=delimiter)
    try:
        text = "".join(line for _, line in files.read_lines(path))
        found = [_job(job) for job in json.loads(text, object_hook=_plain)["jobs"]]
    except (json.JSONDecodeError, RecursionError) as error:
        raise ValueError(f"path must hold whole JSON, got {path}: {error}") from None
    except (KeyError, TypeError, IndexError, AttributeError, ValueError) as error:
        raise ValueError(
            "path must hold jobs with job_id, name, nodes, state and time.start, time.end, as "
            f"sacct --json writes, got {error!r:.60} in {path}"
        ) from None
    places = [f"{number} of the jobs" for number in range(1, len(found) + 1)]
    return Rows(path, pd.DataFrame(found, places, [*_SACCT, *_MORE[:4]], dtype=str))


def _plain(part: dict[str, Any]) -> Any:
    """What versions since 2023 write as {"set": true, "number": 5}, {"current": ["FAILED"]}."""
    if "number" in part:
        return part["number"] if part.get("set", True) else None
    return part.get("current", part)


def _job(job: Any) -> list[str]:
    """The columns of a job."""
    name, state, times = job["job_id"], job["state"], job["time"]
    states = [state] if isinstance(state, str) else state
    for many, one, sign in (("array", "task_id", "_"), ("het", "job_offset", "+")):
        if whole := (job.get(many) or {}).get("job_id"):
            name = f"{whole}{sign}{job[many][one]}"
    dates = [
        pd.Timestamp(at, unit="s", tz="UTC").isoformat() if at else "Unknown"
        for at in (times["start"], times["end"])
    ]
    known = [one for one in states if one in _LEVELS] or states
    more = [job.get(key) for key in ("nodes", "user", "cluster", "failed_node")]
    told = [str(value or "") for value in (*more, times.get("elapsed"))]
    return [str(name), str(job["name"]), str(known[0]), *dates, *told]


def _fits(path: Any, *, delimiter: str = "|", **options: Any) -> files.Fit:
    """Whether a file is of ``sacct``: a head with these columns, or JSON with jobs."""
    head = files.head_of(path)
    if head.startswith("{"):
        return files.has_line(path, '"jobs"')
    fit = files.has_columns(path, _SACCT, delimiter)
    if fit.share < 1 and {*_SACCT} <= {*re.findall(r"\w+", head)}:
        lacks = f"{delimiter!r} between its fields: sacct --parsable2 writes it"
        return files.Fit(0.99, f"{lacks}; delimiter= names another")
    return fit


@files.dialect("failures", "slurm", files.Form(_accounting, _fits))
def _slurm(rows: Rows, *, states: Sequence[str] = (), jobs: Sequence[str] = ()) -> Found:
    """Runs of jobs that Slurm calls broken, and when the job ran again."""
    path, table = rows.path, rows.table
    require_instance((list, tuple), states=states, jobs=jobs)
    whole = table[~table["JobID"].str.contains(".", regex=False)]
    once = whole.drop_duplicates()
    for state in states:
        require_choice(_STATES, states=state)
    for name in jobs:
        require_choice(tuple(once["JobName"].unique()), jobs=name)
    began = once[~once["Start"].isin(NEVER)]
    if began.empty:
        raise ValueError(f"path must hold a run that started, got {len(table)} rows in {path}")
    runs, strange, turned = _runs(began, path)
    chosen = runs["JobName"].isin(jobs) if jobs else runs["state"].notna()
    failed = chosen & runs["state"].isin(states or _LEVELS)
    trial = failed & ~(runs["main"] | bool(states or jobs) | (runs["state"].map(_LEVELS) == "node"))
    lost = failed & ~trial & (runs["ended"].isna() | (runs["nodes"].str.len() == 0))
    runs = runs.assign(broken=failed & ~trial & ~lost)
    named = runs[runs.groupby(_WHO)["broken"].transform("any")].groupby(_WHO, sort=False)
    found = pd.DataFrame(
        [row for _, group in named for row in _failures(group)],
        columns=["line", "node", "start", "resumed", "cause", "part", "known"],
    ).astype({"start": float, "resumed": float, "known": bool, "cause": str, "node": str})
    found = found.sort_values(["part", "start", "known"], ascending=[True, True, False])
    again = found.groupby("part")["start"].diff() < MINUTE
    found = found[~again].sort_values("start", kind="stable").set_index("line")
    level = found["cause"].map(_LEVELS).fillna("job")
    small = ", ".join(runs["JobName"][trial].unique()[:3])
    return Found(
        table=found.assign(end=np.nan, incident=pd.factorize(found["start"])[0]),
        **window(runs.assign(ended=runs["seen"])),
        levels=dict(zip(found["cause"], level, strict=True)),
        notes={
            "counted: {}": _counts(found["cause"] + " (level " + level + ")"),
            "left out: {}; jobs= counts those of the jobs it names": trial.any()
            and f"{_counts(runs['state'][trial])} of jobs with less than {_MAIN:.0%} of the "
            f"node-hours ({small}), errors of their users",
            "no failures: {}": _counts(
                runs["state"][chosen & ~failed & ~runs["state"].isin(_QUIET)]
            ),
            "left out: {} steps of jobs": len(table) - len(whole),
            "left out: {} rows that are given twice": len(whole) - len(once),
            "left out: {} runs of other jobs": (~chosen).sum(),
            "left out: {} runs that never started": len(once) - len(began),
            "left out: {} runs in states that Slurm does not document": strange,
            "left out: {} runs that failed without an end or nodes": lost.sum(),
            "left out: columns {}": ", ".join(table.columns.difference([*_SACCT, *_MORE])),
            "{} runs end up to an hour before they start: the clock was set back": turned,
            "{} runs failed with the node of another one, or with a part of their job, and count "
            "once": again.sum(),
            "{} failures are put on the first of the nodes that may have failed": (
                ~found["known"] & (level == "node")
            ).sum(),
            "{} runs had not ended, and no column Elapsed says how long they ran: the window ends "
            "with the last time in the log, or as until= says": runs["seen"].isna().sum(),
            "{} failures were followed by another run of the job; when a node was back the "
            "accounting does not tell": found["resumed"].notna().sum(),
        },
    )


def _counts(values: pd.Series) -> str:
    """How often each of them occurs."""
    return ", ".join(f"{many} {value}" for value, many in values.value_counts().items())


def _runs(table: pd.DataFrame, path: Any) -> tuple[pd.DataFrame, int, int]:
    """Runs with state, times, nodes and who they are; how many are in no known state, turn back."""
    full = {  # "CANCELLED by 7"; without --parsable2 "OUT_OF_ME+"
        text: fnmatch.filter(_STATES, text.partition(" ")[0].replace("+", "*"))
        for text in table["State"].unique()
    }
    known = table["State"].map(full).str.len() == 1
    runs: pd.DataFrame = spans(table[known], ["Start", "End", "NodeList"], path, NEVER)
    runs = runs.assign(**{name: runs.get(name, "") for name in _MORE[:4]})
    turned = (runs["begun"] - runs["ended"]).between(0, HOUR, inclusive="right")
    ended = runs["ended"] + HOUR * turned
    text = runs.get("ElapsedRaw", runs["Elapsed"]).str.replace("-", " days ")
    text = text.where(text.str.contains(":"), text + " s")
    lasts = pd.to_timedelta(text, errors="coerce").dt.total_seconds()
    runs = runs.assign(
        state=runs["State"].map(full).str[0],
        ended=ended,
        seen=ended.fillna(runs["begun"] + lasts),
        base=runs["JobID"].str.split(_PART).str[0],
    )
    faults = {"runs that end after they start": ended < runs["begun"]}
    files.require_rows(runs, faults, _SACCT, path)
    last = runs["seen"].fillna(runs[["begun", "seen"]].max().max())
    size = runs["nodes"].str.len() * (last - runs["begun"])
    share = size.groupby([runs[name] for name in _WHO]).transform("sum")
    return runs.assign(main=share >= _MAIN * size.sum()), int((~known).sum()), int(turned.sum())


def _failures(runs: Any) -> Iterator[tuple[Any, ...]]:
    """Failures of jobs of one user and name: node, start, when the job ran again, cause."""
    runs = runs.sort_values("begun", kind="stable")
    named = (runs["User"] != "") | ~runs["JobName"].isin(_NAMELESS.split())
    for run in runs[runs["broken"]].itertuples():
        later = (runs["begun"] >= run.ended) & (runs.index != run.Index)
        own = later & (runs["JobID"] == run.JobID)
        again = runs[own if own.any() else later & named & (runs["base"] != run.base)].head(1)
        told = [run.FailedNode] if run.FailedNode in run.nodes else []
        left = [node for node in run.nodes if node not in set(again["nodes"].explode())]
        gone = told or left or run.nodes
        part = f"job {run.base}" if "+" in run.JobID else gone[0]
        part += f" {run.base}" * (_LEVELS.get(run.state) != "node")
        back = float(again["begun"].min())
        yield run.Index, gone[0], run.ended, back, run.state, part, len(gone) == 1


_UNIT: Final = r"\b[Nn]odes? (?P<node>\S+) "
_CONTROLLER: Final = {  # words of a line: what it says of the node, and its pattern
    "not responding, setting DOWN": ("silent", _UNIT),
    "unexpectedly rebooted": ("silent", _UNIT),
    "not resumed by ResumeTimeout": ("silent", _UNIT),
    "state set to": ("state", _UNIT + "state set to:? (?P<rest>.+)"),
    "reason set to": ("reason", _UNIT + "reason set to:? (?P<rest>.+)"),
    "state to INVAL with reason": ("reason", _UNIT + "state to INVAL with reason: ?(?P<rest>.+)"),
    ", draining the node": ("reason", r"(?P<rest>\w+ \w+) on (?:node )?(?P<node>\S+), draining"),
    "returned to service": ("up", _UNIT),
    "now responding": ("answers", _UNIT),
}
_OUT: Final = r"(DOWN)|DRAIN|FAIL"
_IN: Final = r"IDLE|ALLOC|MIX|COMPL|RESUME|UNDRAIN|RESERVED|PLANNED"
_PLANNED: Final = (
    r"(?i)\b(?:maint|planned|scheduled|upgrad|updat|re-?imag|decommission|reboot asap)|^reboot\b"
)
_BROKEN: Final = r"(?i)\b(?:xid|ecc|err|fail|fault|lost|fell|hung|dead|broken)"
_WIDE: Final = r"(?i)\b(?:rack|power|pdu|cool|cdu|switch|leaf|chassis|nvlink|nvl\d|fabric)"


@dataclass
class _Outage:
    """A time in which a node was not in service."""

    line: Any
    node: str
    start: float
    cause: str
    wide: bool  # it may be one event of several nodes
    marks: set[str] = field(default_factory=set)  # "silent", "down", "drained", till it is back
    end: float = np.nan  # with marks: when it answered, where that is all that is known


@files.dialect(
    "failures", "slurmctld", files.lines({said: form for said, (_, form) in _CONTROLLER.items()})
)
def _controller(rows: Rows, *, states: Sequence[str] = ()) -> Found:
    """Log of slurmctld: when nodes were down or drained, why, and when they were in service again.

    The wordings are those of node_mgr.c, ping_nodes.c and power_save.c of Slurm 2 to 25. A node
    that is both down and drained is back when it is neither.
    """
    texts(states=[*require_instance((list, tuple), states=states)])
    times = stamped(rows)
    at = times.at[rows.table.index]
    turned = at.diff().between(-HOUR - 1, -HOUR / 2)  # clocks are set back in autumn
    table = rows.table.assign(
        at=at + HOUR * turned.cumsum(), nodes=node_lists(rows.table["node"], rows.path)
    )
    found, unseen = _outages(table[table["at"].notna()].sort_values("at", kind="stable"))
    events = pd.DataFrame(found, columns=[*_Outage.__annotations__])
    events = events.astype({"start": float, "end": float, "cause": str, "node": str, "wide": bool})
    cause = events["cause"]
    planned, broken, wide = (
        cause.str.contains(form).astype(bool) for form in (_PLANNED, _BROKEN, _WIDE)
    )
    planned &= ~broken
    wanted = cause.isin(states) if states else ~planned
    shared = cause.where(events["wide"] | wide, "")  # an event may take several nodes by it
    kept = events.assign(shared=shared)[wanted].sort_values(["shared", "start"])
    anew = (kept["shared"] == "") | (kept["shared"] != kept["shared"].shift())
    kept = kept.assign(event=(anew | (kept["start"].diff() > 1)).cumsum())
    kept = kept.sort_values(["start", "line"]).set_index("line")
    return Found(
        table=kept.assign(incident=pd.factorize(kept["event"])[0], still=kept["end"].isna()),
        **times.window,
        nodes=events["node"].nunique(),
        notes={
            "left out: {} lines that tell of no node": rows.passed + len(rows.torn),
            "left out: {} lines without a time": table["at"].isna().sum(),
            "left out: {}, planned (states= names the reasons that count)": not states
            and _counts(cause[planned]),
            "left out: {}, which states= does not name": states and _counts(cause[~wanted]),
            "left out: {} returns of nodes that were down before the log began": unseen,
            "{} nodes answered and no line puts them back in service: taken to be back then": (
                (events["marks"].str.len() > 0) & events["end"].notna()
            ).sum(),
        },
    )


def _outages(lines: Any) -> tuple[list[_Outage], int]:
    """Outages in the order of their starts, and how many nodes are back that were never down."""
    out: dict[str, _Outage] = {}  # nodes that are not in service
    why: dict[str, tuple[float, str]] = {}
    found: list[_Outage] = []
    unseen = 0
    for line in lines.itertuples():
        at, rest, says = line.at, line.rest, _CONTROLLER[line.said][0]
        reason = re.sub(r"(?<=\S)\s+[\[(].*$", "", rest)
        if says == "state":
            gone = re.match(_OUT, rest)
            says = ("down" if gone[1] else "drained") if gone else "in" * bool(re.match(_IN, rest))
        for node in line.nodes:
            now = out.get(node)
            if says == "reason":
                why[node] = at, reason
                if now and at - now.start < MINUTE:
                    now.cause = reason
            elif says in ("silent", "down", "drained"):
                if not now or (says == "silent" and now.end == now.end):  # in service since
                    told, cause = why.get(node, (-np.inf, ""))
                    usual = line.said.split(",")[0] if says == "silent" else says
                    cause = cause if at - told < MINUTE else usual
                    now = out[node] = _Outage(line.Index, node, at, cause, says == "silent")
                    found.append(now)
                now.marks.add(says)
                now.end = np.nan
            elif now and says == "answers":
                now.end = at if now.marks == {"silent"} else np.nan
            elif now and says in ("up", "in"):
                now.marks -= {"silent", "down", "drained"} if says == "in" else {"silent", "down"}
                now.end = np.nan
                if not now.marks:
                    out.pop(node).end = at
            else:
                unseen += says == "up"
    return found, unseen
