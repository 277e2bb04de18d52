"""Readers of failure records: a user's own CSV file, and what Slurm, NVIDIA's restarts and Los Alamos wrote.

Lines are read, never executed; one that is damaged is refused with its number.
"""

import bz2
import csv
import gzip
import lzma
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from relparallel._checks import require_choice, require_instance
from relparallel.training.failure_logs import FailureLog, texts
from relparallel.units import DAY, HOUR, MINUTE

CLOCKS: Final = {"s": 1.0, "min": MINUTE, "h": HOUR, "d": DAY}
Times = NDArray[np.float64]
_OPENERS: Final[dict[str, Callable[..., Any]]] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
_NUMBER: Final = r"[+-]?(?:\d+|\d{1,3}(?:,\d{3})+)(?:\.\d*)?(?:[eE][+-]?\d+)?|[+-]?\.\d+(?:[eE][+-]?\d+)?"
_ZONE: Final = r"[T ].*(?:[Zz]|[+-]\d\d(?::?\d\d)?)$"
_LONGEST_LINE: Final = 10**6
_DIALECTS: Final = ("csv", "slurm", "nvrx")
_SACCT: Final = ("JobID", "JobName", "State", "Start", "End", "NodeList")
_BROKEN: Final = ("NODE_FAIL", "BOOT_FAIL", "FAILED", "OUT_OF_MEMORY")
_NVRX: Final = re.compile(r"- Cycle: (\d+) Event: (\w+) Node: (\S+) Rank: \w+ Time: (\S+ \S+ UTC)$")


def read_lines(path: str | PathLike[str]) -> Iterator[tuple[int, str]]:
    """Lines of a text file, also a compressed one, with their numbers; of a length that a log has."""
    name = Path(require_instance((str, PathLike), path=path))
    try:
        with _OPENERS.get(name.suffix, open)(name, "rt", encoding="utf-8-sig", newline="") as file:
            for number, line in enumerate(file, 1):
                if len(line) > _LONGEST_LINE:
                    raise ValueError(
                        f"path must hold lines of a log, got {len(line)} letters in line {number}"
                    )
                yield number, line
    except (OSError, EOFError, UnicodeDecodeError, lzma.LZMAError) as error:
        raise ValueError(f"path must name a text file in UTF-8, got {path} ({error})") from None


def read_rows(path: str | PathLike[str], delimiter: str = ",") -> list[list[str]]:
    """All rows of a CSV file as text; blank lines hold none."""
    lines = (line for _, line in read_lines(path))
    try:
        table = csv.reader(lines, delimiter=delimiter, strict=True)
        rows = [[field.strip() for field in row] for row in table if row]
    except csv.Error as error:
        raise ValueError(f"path must name a CSV file in UTF-8, got {path} ({error})") from None
    if not rows:
        raise ValueError(f"path must hold at least one row, got none in {path}")
    for number, row in enumerate(rows):
        if len(row) != len(rows[0]):
            raise ValueError(
                f"path must have {len(rows[0])} fields in every row, got {len(row)} in row {number} after "
                f"the first: {row!r:.80}"
            )
    return rows


def read_table(path: str | PathLike[str], columns: Sequence[str], delimiter: str = ",") -> pd.DataFrame:
    """Columns of a CSV file with a head, as text."""
    head, *rows = read_rows(path, delimiter)
    if missing := [name for name in columns if name not in head]:
        raise ValueError(f"path must have the columns {', '.join(columns)}, got no {missing[0]} in {path}")
    return pd.DataFrame(rows, columns=head, dtype=str)[list(columns)]


def read_failure_log(
    path: str | PathLike[str],
    *,
    population: int,
    dialect: str = "csv",
    node: str = "node",
    start: str = "start",
    end: str = "end",
    cause: str = "cause",
    clock: str = "s",
    finish: float | None = None,
    overlaps: str = "refuse",
    ignore: Sequence[str] = (),
) -> FailureLog:
    r"""Read a failure log.

    Parameters
    ----------
    path : str or path
        The file; .gz, .bz2 and .xz are read too.
    population : int
        Nodes that were watched.
    dialect : {"csv", "slurm", "nvrx"}
        "csv": one row per failure; all that follows is about these files. "slurm": output of ``sacct
        --parsable2 --format=JobID,JobName,State,Start,End,NodeList``. "nvrx": log of the launcher of NVIDIA's
        Resiliency Extension, in which lines without an event of a cycle are passed over.
    node, start, end, cause : str
        Names of the columns.
    clock : str
        Unit of numbers ("s", "min", "h" or "d"), "iso" for ISO 8601 dates, or a format such as
        "%m/%d/%Y %H:%M". Dates become seconds since the first failure; all of them give a zone, or none.
    finish, overlaps : float, str
        As in `FailureLog`.
    ignore : sequence of str
        Other columns of the file that are not needed.

    Returns
    -------
    FailureLog
        All rows of the file. A failure without a cause is of the class "not given", and counted in its notes.
        Of Slurm one failure for each job that ended with NODE_FAIL, BOOT_FAIL, FAILED or OUT_OF_MEMORY, which
        is the cause; on the first node of its list, since Slurm does not say which failed; back when the next
        job of that name starts. Of NVIDIA's launcher one failure for each cycle of restarts, on the node that
        detected it first; back when the last worker of the cycle, or of the next one that got so far, has
        started. What did not run again is back at once, and counted in the notes.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "log.csv"
    >>> _ = path.write_text("node,start,end,cause\nn1,2026-01-01T00:00,2026-01-01T01:00,gpu\n")
    >>> read_failure_log(path, population=8, clock="iso").repairs.tolist()
    [3600.0]
    """
    wanted = {"node": node, "start": start, "end": end, "cause": cause}
    require_instance(str, clock=clock, **wanted)
    if clock not in CLOCKS and clock != "iso" and "%" not in clock:
        raise ValueError(f"clock must be one of {', '.join(CLOCKS)}, iso, or a date format, got {clock!r}")
    require_instance((list, tuple), ignore=ignore)
    ignored = set(texts(ignore=ignore).tolist()) if ignore else set()
    if require_choice(_DIALECTS, dialect=dialect) != "csv":
        return (_slurm if dialect == "slurm" else _restarts)(path, population)
    head, *rows = read_rows(path)
    _require_columns(head, wanted, ignored)
    if not rows:
        raise ValueError(f"path must hold at least one failure, got none in {path}")
    table = pd.DataFrame(rows, columns=head, dtype=str)
    begun, ended = _clocked(table, start, end, clock)
    causes = table[cause].to_numpy(dtype=np.str_)
    blank = int(np.count_nonzero(causes == ""))
    return FailureLog(
        node=table[node].to_numpy(dtype=np.str_), start=begun, end=ended,
        cause=np.where(causes == "", "not given", causes), population=population, finish=finish,
        overlaps=overlaps, notes=(f"{blank} rows give no cause",) if blank else (),
    )  # fmt: skip


def _require_columns(head: list[str], wanted: Mapping[str, str], ignored: set[str]) -> None:
    """Refuse columns that are missing, there twice, read twice, or neither read nor ignored."""
    if twice := [column for column in head if head.count(column) > 1]:
        raise ValueError(f"path must name every column once, got {twice[0]!r} twice")
    for number, (name, column) in enumerate(wanted.items()):
        if column not in head:
            raise ValueError(f"{name} must be one of {', '.join(head)}, got {column!r}")
        if column in list(wanted.values())[:number]:
            raise ValueError(f"{name} must be a column of its own, got {column!r} again")
    if extra := [column for column in head if column not in {*wanted.values(), *ignored}]:
        raise ValueError(f"ignore must name every column that is not used, got {', '.join(map(repr, extra))}")


def _slurm(path: str | PathLike[str], population: int) -> FailureLog:
    """Jobs that Slurm calls broken, and when the next job of the same name started."""
    table = read_table(path, _SACCT, "|")
    whole = ~table["JobID"].str.contains(".", regex=False) & ~table["Start"].isin(("Unknown", "None"))
    jobs = table[whole & (table["End"] != "Unknown")]
    begun, ended = _seconds(jobs["Start"], "start", "iso"), _seconds(jobs["End"], "end", "iso")
    jobs = jobs.assign(begun=begun, ended=ended, state=jobs["State"].str.split().str[0])
    broken = jobs[jobs["state"].isin(_BROKEN)].sort_values("begun", kind="stable")
    again = [
        jobs["begun"][
            (jobs["JobName"] == job.JobName) & (jobs["begun"] >= job.ended) & (jobs["begun"] > job.begun)
        ].min()
        for job in broken.itertuples()
    ]
    node = broken["NodeList"].str.replace(r"[\[,].*", "", regex=True).where(lambda name: name != "")
    found = {"node": node.fillna(broken["JobID"]), "start": broken["ended"], "end": again}
    return _restarted(pd.DataFrame({**found, "cause": broken["state"]}), jobs, population, path)


def _restarts(path: str | PathLike[str], population: int) -> FailureLog:
    """Cycles of the launcher of NVIDIA's Resiliency Extension: failures seen, and when the job was back."""
    rows = []
    for number, line in read_lines(path):
        if "- Cycle: " in line:
            if (found := _NVRX.search(line.rstrip())) is None:
                raise ValueError(f"path must hold whole events, got line {number} of {path}: {line[:120]!r}")
            rows.append(found.groups())
    events = pd.DataFrame(rows, columns=["cycle", "event", "node", "time"], dtype=str)
    events = events.assign(begun=_seconds(events["time"], "time", "%Y-%m-%d %H:%M:%S.%f UTC"))
    events = events.assign(ended=events["begun"]).sort_values("begun", kind="stable")
    failed = events[events["event"] == "failure_detected"].groupby("cycle", sort=False).first()
    back = events[events["event"] == "worker_start_completed"].groupby("cycle")["begun"].max()
    table = failed.assign(start=failed["begun"], end=back.reindex(failed.index).bfill(), cause="not given")
    return _restarted(table, events, population, path)


def _restarted(table: pd.DataFrame, watched: pd.DataFrame, population: int, path: Any) -> FailureLog:
    """Failures of jobs that were watched from their first beginning to their last end."""
    if table.empty:
        raise ValueError(f"path must hold a job that broke, got {len(watched)} other entries in {path}")
    first, never = watched["begun"].min(), int(table["end"].isna().sum())
    return FailureLog(
        node=table["node"].to_numpy(dtype=np.str_), start=(table["start"] - first).to_numpy(),
        end=(table["end"].fillna(table["start"]) - first).to_numpy(),
        cause=table["cause"].to_numpy(dtype=np.str_), population=population, overlaps="keep",
        finish=float(watched["ended"].max() - first),
        notes=(f"{never} broken jobs did not run again: back at once",) if never else (),
    )  # fmt: skip


_LANL_CAUSES: Final = {
    "Hardware": "hardware", "Software": "software", "Undetermined": "undetermined", "Network": "network",
    "Facilities": "facilities", "Human Error": "human",
}  # fmt: skip
_LANL: Final = ("System", "nodes", "nodenumz", "Prob Started", "Prob Fixed", "Down Time", *_LANL_CAUSES)


def read_lanl(path: str | PathLike[str], system: int | None = None) -> FailureLog:
    """Failures of one system or all in Los Alamos' record LA-UR-05-7318 (Schroeder, Gibson, DSN 2006).

    Nodes are called "system-node"; seconds since the first failure of the whole record; down times of the
    record's own column. Repairs that overlap another one of the same node are kept.
    """
    table = read_table(path, _LANL)
    started = _seconds(table["Prob Started"], "start", "%m/%d/%Y %H:%M")
    fixed = _seconds(table["Prob Fixed"], "end", "%m/%d/%Y %H:%M")
    down = MINUTE * _seconds(table["Down Time"], "end", "s")
    named = table[list(_LANL_CAUSES)].to_numpy() != ""
    cause = np.where(named.any(1), np.array([*_LANL_CAUSES.values()])[named.argmax(1)], "not given")
    given = pd.to_numeric(table["nodes"], errors="coerce").groupby(table["System"]).max()
    size = given.fillna(table.groupby("System")["nodenumz"].nunique()).astype(int)
    chosen = np.ones(len(table), dtype=bool)
    if system is not None:
        require_choice(tuple(sorted(map(int, size.index))), system=system)
        chosen, size = (table["System"] == str(system)).to_numpy(), size.loc[[str(system)]]
    apart = int(np.count_nonzero(np.abs(fixed - started - down)[chosen] > 30))
    blank = int(np.count_nonzero(~named.any(1)[chosen]))
    origin, label = started.min(), (table["System"] + "-" + table["nodenumz"]).to_numpy(dtype=np.str_)[chosen]
    return FailureLog(
        node=label,
        start=(started - origin)[chosen], end=(started - origin + down)[chosen], cause=cause[chosen],
        population=max(int(size.sum()), len(np.unique(label))), overlaps="keep",
        notes=(f"{apart} down times differ from fixed minus started", f"{blank} rows give no cause"),
    )  # fmt: skip


def _clocked(table: pd.DataFrame, start: str, end: str, clock: str) -> tuple[Times, Times]:
    """Both columns of times in seconds; dates count from the first failure."""
    if clock == "iso":
        zoned = pd.concat([table[start], table[end]]).str.contains(_ZONE).to_numpy()
        if zoned.any() and not zoned.all():
            row, which = divmod(int(zoned.reshape(2, -1).T.argmin()), 2)
            raise ValueError(
                f"{('start', 'end')[which]} must give a time zone as other rows do, got "
                f"{table[(start, end)[which]].iloc[row]!r} in row {row + 1}"
            )
    begun, ended = _seconds(table[start], "start", clock), _seconds(table[end], "end", clock)
    origin = 0.0 if clock in CLOCKS else begun.min()
    return begun - origin, ended - origin


def _seconds(column: pd.Series, name: str, clock: str) -> Times:
    """Seconds of a column of numbers or dates; a field that is neither is refused with its row."""
    if clock in CLOCKS:
        plain = column.where(column.str.fullmatch(_NUMBER)).str.replace(",", "")
        read = pd.to_numeric(plain, errors="coerce") * CLOCKS[clock]
    else:
        layout = "ISO8601" if clock == "iso" else clock
        dates = pd.to_datetime(column, format=layout, errors="coerce", utc=True)
        read = (dates - pd.Timestamp("1970-01-01", tz="UTC")).dt.total_seconds()
    bad = ~np.isfinite(read.to_numpy(dtype=np.float64))
    if bad.any():
        row = int(bad.argmax())
        raise ValueError(f"{name} must be a time ({clock}), got {column.iloc[row]!r} in row {row + 1}")
    return read.to_numpy(dtype=np.float64)
