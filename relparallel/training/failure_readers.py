"""Readers of failure records: a user's own table, and what Los Alamos wrote.

What schedulers, launchers and kernels write is read by `machine_logs`. Lines are read, never
executed; one that is damaged is refused with its number in the file.
"""

import re
from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Any, Final

import numpy as np
import pandas as pd

from relparallel._checks import require_choice, require_instance, require_int, require_real
from relparallel.training._arguments import LONGEST
from relparallel.training.failure_logs import FailureLog
from relparallel.training.log_columns import OVERLAPS, texts
from relparallel.training.log_files import (
    CLOCKS,
    Rows,
    columns,
    dialect as reads,
    dialect_of,
    read_table,
    require_rows,
    require_zones,
    seconds,
    told,
)
from relparallel.training.machine_logs import Found
from relparallel.units import MINUTE


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
    finish: float | str | None = None,
    overlaps: str | None = None,
    ignore: Sequence[str] = (),
    delimiter: str | None = None,
    repair: float | None = None,
    levels: Mapping[str, str] | None = None,
    states: Sequence[str] | None = None,
    jobs: Sequence[str] | None = None,
) -> FailureLog:
    r"""Read a failure log.

    Parameters
    ----------
    path : str or path
        The file; .gz, .bz2 and .xz are read too.
    population : int
        Nodes that were watched.
    dialect : {"csv", "slurm", "nvrx", "nvrx-cycles", "xid"}
        "csv": one row per failure. "slurm": output of ``sacct --parsable2 --duplicates
        --format=JobID,JobName,State,Start,End,NodeList``, more columns are passed over. "nvrx": log
        of the launcher of NVIDIA's Resiliency Extension. "nvrx-cycles": its cycle-info JSON, a file
        or a folder of ``cycle_info.*``. "xid": lines of the kernel log with ``NVRM: Xid``.
    node, start, end, cause : str
        Names of the columns of "csv". Without a column ``end`` no repair time is known.
    clock : str
        Of "csv": unit of numbers ("s", "min", "h" or "d"), "iso" for ISO 8601 dates, or a format
        such as "%m/%d/%Y %H:%M". Dates become seconds since the first failure; all of them give a
        zone, or none.
    finish : float or str
        End of the watch, in seconds as those of the log, or as an ISO 8601 date where the log has
        dates.
    overlaps : str
        As in `FailureLog`; "refuse" for "csv", "keep" for the others where omitted.
    ignore : sequence of str
        Other columns of a "csv" file that are not needed.
    delimiter : str
        What separates the fields of "csv" and "slurm"; "," and "|" where omitted.
    repair : float
        Time that every failure without an end took [s]; where omitted such an end is not known.
    levels : Mapping of str to str
        As in `FailureLog`.
    states : sequence of str
        What counts as a failure: states of "slurm" (NODE_FAIL and BOOT_FAIL where omitted: a job
        that FAILED or ran OUT_OF_MEMORY is its user's error); Xid numbers of "xid" (all but 13, 31,
        43, 45, errors of programs, and 63, 92, 94, 154, reports without a failure, where omitted).
    jobs : sequence of str
        Names of jobs of "slurm" that count; all where omitted.

    Returns
    -------
    FailureLog
        What was left out or read in one of several ways is in its notes, with the number of rows.
        An empty end is an outage that still lasted at the end of the watch. Of Slurm one failure
        for each run of a job that ended in one of the states; on the node that its next run no
        longer has, else on the first one; back when the job, or the next one of its name, starts
        again. Of NVIDIA's launcher one failure for each cycle of restarts, on the node that
        detected it first; back when the last worker of the cycle, or of the next one that got so
        far, has started.

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
        raise ValueError(
            f"clock must be one of {', '.join(CLOCKS)}, iso, or a date format, got {clock!r}"
        )
    require_instance((list, tuple), ignore=ignore)
    if ignore:
        texts(ignore=ignore)
    require_choice((*OVERLAPS, None), overlaps=overlaps)
    require_int(population=population, at_least=1, at_most=10**9)
    require_instance((float, int, str, type(None)), finish=finish)
    if repair is not None:
        require_real(repair=repair, at_least=0, at_most=LONGEST)
    read = dialect_of("failures", dialect)
    given = {"delimiter": delimiter, "states": states, "jobs": jobs, **wanted}
    given |= {"clock": clock, "ignore": tuple(ignore)}
    usual = read_failure_log.__kwdefaults__ or {}
    options = {name: value for name, value in given.items() if repr(value) != repr(usual[name])}
    for name, value in options.items():
        if name not in read.takes:
            raise ValueError(
                f"{name} must be left out for the dialect {dialect!r}, got {value!r:.80}"
            )
        if name == "delimiter" and len(require_instance(str, delimiter=value)) != 1:
            raise ValueError(f"delimiter must be one letter, got {value!r}")
        if name in ("states", "jobs"):
            texts(
                **{name: [str(one) for one in value] if isinstance(value, list | tuple) else value}
            )
    found: Found = read(path, **options)
    return _log(found, path, population, finish, overlaps or found.overlaps, repair, levels)


def _log(
    found: Found, path: Any, population: int, finish: Any, overlaps: str, repair: Any, levels: Any
) -> FailureLog:
    """A log of what a dialect found, in seconds since its origin."""
    table = found.table
    if table.empty:
        raise ValueError(f"path must hold at least one failure, got none in {path}")
    open_ = int(table["end"].isna().sum())
    lasts = (
        "they count for the rate, and for no repair that ended"
        if repair is None
        else f"taken as {repair} s"
    )
    notes = told(
        {
            **found.notes,
            "{} rows give no cause": (table["cause"] == "").sum(),
            "{} failures have no end: " + lasts: open_,
            "the log names {} nodes, more than the population": found.nodes
            * (found.nodes > population),
        }
    )
    if repair is not None:
        table = table.assign(end=table["end"].fillna(table["start"] + repair))
    if isinstance(finish, str):
        if not found.dated:
            raise ValueError(
                f"finish must be a number of seconds as the times of {path}, got {finish!r}"
            )
        finish = seconds(pd.Series([finish]), "finish", "iso", path)[0] - found.origin
    elif finish is None and found.finish is not None:
        finish = max(found.finish, table["start"].max()) - found.origin
    columns = {
        "node": table["node"].to_numpy(dtype=np.str_),
        "start": (table["start"] - found.origin).to_numpy(),
        "cause": table["cause"].where(table["cause"] != "", "not given").to_numpy(dtype=np.str_),
        "end": (table["end"] - found.origin).to_numpy(),
    }
    try:
        return FailureLog(
            **columns,
            population=population,
            overlaps=overlaps,
            finish=finish,
            levels=levels,
            notes=notes,
            begin=None if found.finish is None else 0.0,
        )
    except ValueError as error:
        row = re.search(r" in row (\d+)", str(error))
        line = f"line {table.index[int(row[1]) - 1]} of " if row else ""
        raise ValueError(f"{error} ({line}{path})") from None


@reads("failures", "csv", columns())
def _csv(
    rows: Rows,
    *,
    node: str = "node",
    start: str = "start",
    end: str = "end",
    cause: str = "cause",
    clock: str = "s",
    ignore: Sequence[str] = (),
) -> Found:
    """A user's own table."""
    path, given = rows.path, rows.table
    started = end == "end" and end not in given  # a log with starts only
    wanted = {"node": node, "start": start} | ({} if started else {"end": end}) | {"cause": cause}
    _require_columns([*given], wanted, ignore)
    if given.empty:
        raise ValueError(f"path must hold at least one failure, got none in {path}")
    table = pd.DataFrame({name: given[column] for name, column in wanted.items()})
    if clock == "iso":
        require_zones(table.filter(["start", "end"]), path)
    if rows.delimiter == ";" and clock in CLOCKS:  # 1,234 may be a thousand or little more than one
        comma = (
            table.drop(columns=["node", "cause"])
            .apply(lambda column: column.str.contains(","))
            .any(axis=1)
        )
        require_rows(table, {"numbers without commas between semicolons": comma}, ["start"], path)
    ends = table.get("end", pd.Series("", table.index))
    table = table.assign(
        start=seconds(table["start"], "start", clock, path),
        end=seconds(ends, "end", clock, path, blank=True),
    )
    return Found(
        table=table,
        origin=0.0 if clock in CLOCKS else table["start"].min(),
        dated=clock not in CLOCKS,
        overlaps="refuse",
        notes={"there is no column of ends": started},
    )


def _require_columns(head: list[str], wanted: Mapping[str, str], ignored: Sequence[str]) -> None:
    """Refuse columns that are missing, read twice, or neither read nor ignored."""
    for number, (name, column) in enumerate(wanted.items()):
        if column not in head:
            raise ValueError(f"{name} must be one of {', '.join(head)}, got {column!r}")
        if column in list(wanted.values())[:number]:
            raise ValueError(f"{name} must be a column of its own, got {column!r} again")
    if extra := [column for column in head if column not in {*wanted.values(), *ignored}]:
        raise ValueError(
            f"ignore must name every column that is not used, got {', '.join(map(repr, extra))}"
        )


_LANL_CAUSES: Final = {
    "Hardware": "hardware",
    "Software": "software",
    "Undetermined": "undetermined",
    "Network": "network",
    "Facilities": "facilities",
    "Human Error": "human",
}
_LANL: Final = (
    "System",
    "nodes",
    "nodenumz",
    "Prob Started",
    "Prob Fixed",
    "Down Time",
    *_LANL_CAUSES,
)


def read_lanl(path: str | PathLike[str], system: int | None = None) -> FailureLog:
    """Failures of one system or all in Los Alamos' LA-UR-05-7318 (Schroeder, Gibson, DSN 2006).

    Nodes are called "system-node"; seconds since the first failure of the whole record; down times
    of the record's own column. Repairs that overlap another one of the same node are kept.
    """
    table = read_table(path, _LANL)
    started = seconds(table["Prob Started"], "start", "%m/%d/%Y %H:%M", path)
    fixed = seconds(table["Prob Fixed"], "end", "%m/%d/%Y %H:%M", path)
    down = MINUTE * seconds(table["Down Time"], "end", "s", path)
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
    origin, label = (
        started.min(),
        (table["System"] + "-" + table["nodenumz"]).to_numpy(dtype=np.str_)[chosen],
    )
    return FailureLog(
        node=label,
        start=(started - origin)[chosen],
        end=(started - origin + down)[chosen],
        cause=cause[chosen],
        population=max(int(size.sum()), len(np.unique(label))),
        overlaps="keep",
        notes=(
            f"{apart} down times differ from fixed minus started",
            f"{blank} rows give no cause",
        ),
    )
