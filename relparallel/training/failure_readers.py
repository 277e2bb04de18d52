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
from relparallel.training import launcher_logs, slurm_logs, xid_logs
from relparallel.training._arguments import LONGEST
from relparallel.training.cause_levels import level_of
from relparallel.training.failure_logs import FIELDS, FailureLog
from relparallel.training.incidents import (
    SILENCE,
    TOGETHER,
    level,
    outages,
    told as incidents_told,
    wide_events,
)
from relparallel.training.log_columns import OVERLAPS, texts
from relparallel.training.log_files import (
    CLOCKS,
    EPOCH,
    Fit,
    Form,
    Rows,
    dialect as reads,
    dialect_of,
    has_columns,
    read_rows,
    read_table,
    require_delimiter,
    require_rows,
    require_zones,
    seconds,
    told,
)
from relparallel.training.machine_logs import Found
from relparallel.units import HOUR, MINUTE

_FORMS: Final = (slurm_logs, launcher_logs, xid_logs)  # which enter what machines write


def read_failure_log(
    path: str | PathLike[str],
    *,
    population: int,
    dialect: str | None = None,
    since: float | str | None = None,
    until: float | str | None = None,
    overlaps: str | None = None,
    repair: float | None = None,
    levels: Mapping[str, str] | None = None,
    **options: Any,
) -> FailureLog:
    r"""Read a failure log.

    Parameters
    ----------
    path : str or path
        The file; .gz, .bz2 and .xz are read too.
    population : int
        Nodes that were watched.
    dialect : {"csv", "slurm", "slurmctld", "torchelastic", "nvrx", "nvrx-cycles", "xid"}, optional
        Recognised from the file where omitted. "csv": one row per failure. "slurm": output of
        ``sacct --parsable2 --duplicates --format=JobID,JobName,State,Start,End,NodeList``; User,
        Cluster, FailedNode and Elapsed are read where they are, more columns passed over; or of
        ``sacct --json --duplicates``. "slurmctld": log of Slurm's controller. "torchelastic": log of
        the agents of ``torchrun``. "nvrx": log of the launcher of NVIDIA's Resiliency Extension.
        "nvrx-cycles": its cycle-info JSON, a file or a folder of ``cycle_info.*``. "xid": lines of
        the kernel log with ``NVRM: Xid``.
    since, until : float or str, optional
        When the observation window began and ended: seconds as those of the log, or ISO 8601 dates
        where the log has dates. Failures outside are left out. Where omitted, the first and the
        last dated line of a log that machines write; of "csv" the first and the last failure, a guess.
    overlaps : str
        As in `FailureLog`; "refuse" for "csv", "keep" for the others where omitted.
    repair : float
        Time that every failure without an end took [s], those of a job none; where omitted such an
        end is not known.
    levels : Mapping of str to str
        As in `FailureLog`.
    **options
        Of one form, refused for the others. Of "csv": ``node``, ``start``, ``end``, ``cause``,
        names of the columns (without ``end`` no repair time is known; columns ``resumed`` and
        ``incident`` are read where they are, as in `FailureLog`); ``clock``, the unit of numbers
        ("s", "min", "h" or "d"), "iso" for ISO 8601 dates, or a format such as "%m/%d/%Y %H:%M",
        where omitted "s" or "iso" by what the starts are, dates with a zone all or none;
        ``ignore``, other columns that are not needed; ``delimiter``, "," where omitted;
        ``silence``, without ends, as for "xid". Of "slurm":
        ``delimiter``, "|" where omitted; ``states`` that are failures (NODE_FAIL and BOOT_FAIL
        where omitted: a job that FAILED or ran OUT_OF_MEMORY is its user's error); ``jobs``, names
        of jobs that count, all where omitted. Of "xid": ``states``, Xid numbers that are failures
        (all but 13, 31, 43, 45, errors of programs, and 63, 92, 94, 154, reports without a failure,
        where omitted); ``silence`` [s] after which another line is another incident.

    Returns
    -------
    FailureLog
        What was left out or read in one of several ways is in its notes, with the number of rows.
        An empty end is an outage that still lasted at the end of the window.

    Notes
    -----
    Slurm's accounting and the launchers tell when the job was back (``resumed``), never when a node
    was: its repair is not known. Of the accounting a run that ended in NODE_FAIL or BOOT_FAIL is a
    failure of a node: the one that FailedNode names, else the one that the next run no longer has;
    FAILED and OUT_OF_MEMORY are failures of the job where jobs of its user and name hold a tenth of
    the node-hours, of smaller ones their users' errors. The next run is one of the same job, else
    of the same user and name; without a column User, of the same name, if somebody gave it. Tasks
    of an array that fail on a node within a minute are one failure, nodes at one second one event.
    The log of slurmctld tells when nodes were down or drained, and when they were in service again.
    Of a launcher one failure for each restart, on the node of the root cause or the first to tell.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "log.csv"
    >>> _ = path.write_text("node,start,end,cause\nn1,2026-01-05T00:00,2026-01-05T01:00,gpu\n")
    >>> log = read_failure_log(path, population=8, since="2026-01-01", until="2026-02-01")
    >>> log.repairs.tolist(), log.span / 86400
    ([3600.0], 31.0)
    """
    require_choice((*OVERLAPS, None), overlaps=overlaps)
    require_int(population=population, at_least=1, at_most=10**9)
    require_instance((Mapping, type(None)), levels=levels)
    require_instance((float, int, str, type(None)), since=since, until=until)
    if repair is not None:
        require_real(repair=repair, at_least=0, at_most=LONGEST)
    found: Found = dialect_of("failures", dialect, path, options)[1](path, **options)
    window = {"since": since, "until": until}
    return _log(found, path, population, window, overlaps or found.overlaps, repair, levels)


def _log(
    found: Found,
    path: Any,
    population: int,
    window: Mapping[str, Any],
    overlaps: str,
    repair: Any,
    levels: Any,
) -> FailureLog:
    """A log of what a dialect found, in seconds since its origin."""
    table, begin, finish, origin = _window(found, path, window)
    known = {name: at for name, at in found.levels.items() if name in set(table["cause"])}
    known |= levels or {}
    events = pd.Series(wide_events(table, level_of(set(table["cause"]), known)))
    same = events.duplicated().sum() * ("incident" not in table)
    precise = bool((table["start"] % HOUR).any())  # whole hours are no sign of one event
    if "incident" not in table and precise:
        table = table.assign(incident=events.to_numpy())
    open_ = table["end"].isna()
    lasts = "they count for the rate, and for no repair that ended"
    lasts = lasts if repair is None else f"taken as {repair} s"
    notes = {
        **found.notes,
        "{} rows give no cause": (table["cause"] == "").sum(),
        "{} failures have no end: " + lasts: open_.sum(),
        "left out: {} failures before since= or after until=": len(found.table) - len(table),
        "{} rows are of an event of another row: one cause, that takes several nodes, at one "
        "moment": same * precise,
        "{} rows have the cause of another row and its time in whole hours: a column incident "
        "tells which are one event": same * (not precise),
        "the log names {} nodes, more than the population": found.nodes
        * (found.nodes > population),
    }
    if repair is not None:
        if not open_.any():
            raise ValueError(
                f"repair must be left out where every failure has an end, got {repair!r} for {path}"
            )
        jobs = table["cause"].map(known) == "job"  # no node is down
        table = table.assign(end=table["end"].fillna(table["start"] + repair * ~jobs))
    if "still" in table:
        table = table.assign(still=table["still"].astype(bool) & table["end"].isna())
    times = table.columns.intersection(["start", "end", "resumed"])
    table = table.assign(cause=table["cause"].replace("", "not given"), **(table[times] - origin))
    columns = {name: table[name].to_numpy() for name in table.columns.intersection([*FIELDS])}
    columns |= {name: table[name].to_numpy(dtype=np.str_) for name in ("node", "cause")}
    try:
        return FailureLog(
            **columns,
            population=population,
            overlaps=overlaps,
            begin=begin,
            finish=finish,
            levels=known or None,
            notes=told(notes),
        )
    except ValueError as error:
        row = re.search(r" in row (\d+)", str(error))
        line = f"line {table.index[int(row[1]) - 1]} of " if row else ""
        raise ValueError(f"{error} ({line}{path})") from None


def _window(
    found: Found, path: Any, window: Mapping[str, Any]
) -> tuple[pd.DataFrame, float | None, float | None, float]:
    """Failures within the window, its ends since the origin, and the origin.

    An end is None where nothing but a failure there tells it.
    """
    since, until = (_moment(name, value, found, path) for name, value in window.items())
    start, (first, last) = found.table["start"], (-np.inf, np.inf)
    if found.finish is not None:  # the log has a window of its own
        first, last = found.origin, max(found.finish, start.max())
    first, last = first if since is None else since, last if until is None else until
    if first >= last and (since is not None or until is not None):
        raise ValueError(
            f"until must lie after since and the beginning of {path}, got since={window['since']!r} "
            f"and until={window['until']!r}"
        )
    inside = start.between(first, last)
    table = found.table[inside]
    if table.empty and not start.empty:
        name = "until" if (start > last).all() else "since"
        raise ValueError(
            f"{name} must leave a failure of {path} in the window, got {name}={window[name]!r} and "
            f"{start.size} failures outside"
        )
    if (table.empty and not np.isfinite([first, last]).all()) or first == last:
        left = "".join(f"; {note}" for note in told(found.notes) if note.startswith("left out"))
        raise ValueError(
            f"path must hold a failure or two moments, got {len(table)} failures in {path}: since= "
            f"and until= say from when to when was watched{left}"
        )
    origin = first if found.dated and np.isfinite(first) else found.origin if found.dated else 0.0
    begin, finish = (
        float(moment - origin) if told or moment not in (-np.inf, failure, np.inf) else None
        for told, moment, failure in (
            (since is not None, first, table["start"].min()),
            (until is not None, last, table["start"].max()),
        )
    )
    return table, begin, finish, origin


def _moment(name: str, value: Any, found: Found, path: Any) -> float | None:
    """Seconds as those of the log, of a number or a date."""
    if value is None:
        return None
    try:
        if not found.dated:
            return float(require_real(at_least=0, at_most=LONGEST, moment=float(value)))
        if not isinstance(value, str) or not re.match(r"\d{4}-?\d\d", value):
            raise ValueError
        date = pd.to_datetime(value, format="ISO8601", utc=True)
        if not found.years:  # of the year that brings it nearest to that end of the log
            near = found.finish if name == "until" else found.origin
            late = EPOCH + pd.Timedelta(near or 0.0, "s") - date
            date += pd.DateOffset(years=round(late / pd.Timedelta(365.25, "D")))
        return float((date - EPOCH).total_seconds())
    except ValueError:
        wanted = "an ISO 8601 date" if found.dated else "a number of seconds >= 0"
        raise ValueError(f"{name} must be {wanted} as the times of {path}, got {value!r}") from None


def _rows(path: Any, *, delimiter: str = ",") -> Rows:
    """Rows of a table."""
    require_delimiter(delimiter)
    return Rows(path, read_rows(path, delimiter, head=True), delimiter=delimiter)


def _fits(
    path: Any, *, node: str = "node", start: str = "start", delimiter: str = ",", **others: Any
) -> Fit:
    """Whether a table has columns of nodes and starts, whatever separates them."""
    signs = {delimiter: 0, **dict.fromkeys(",;\t|")}
    fit = max(has_columns(path, [node, start], sign) for sign in signs)
    # whatever there is can be brought into this form
    return Fit(max(fit.share, 0.1), f"{fit.lacks}: node= and start= name them")


@reads("failures", "csv", Form(_rows, _fits))
def _csv(
    rows: Rows,
    *,
    node: str = "node",
    start: str = "start",
    end: str = "end",
    cause: str = "cause",
    clock: str | None = None,
    ignore: Sequence[str] = (),
    silence: float | None = None,
) -> Found:
    """A user's own table."""
    path, given = rows.path, rows.table
    wanted = {"node": node, "start": start, "end": end, "cause": cause}
    require_instance(str, **wanted)
    require_instance((list, tuple), ignore=ignore)
    texts(ignore=list(ignore))
    started = end == "end" and end not in given  # a log with starts only
    if started:
        del wanted["end"]
    more = {name: name for name in ("resumed", "incident") if name in given and name not in ignore}
    _require_columns([*given], wanted | more, ignore)
    table = pd.DataFrame({name: given[column] for name, column in (wanted | more).items()})
    if guessed := clock is None:
        clock = "iso" if table["start"].str.match(r"\d{4}-\d\d").any() else "s"
    if require_instance(str, clock=clock) not in CLOCKS and clock != "iso" and "%" not in clock:
        raise ValueError(
            f"clock must be one of {', '.join(CLOCKS)}, iso, or a date format, got {clock!r}"
        )
    moments = table.filter(["start", "end", "resumed"])
    if clock == "iso":
        require_zones(moments, path)
    if rows.delimiter == ";" and clock in CLOCKS:  # 1,234 may be a thousand or little more than one
        comma = moments.apply(lambda column: column.str.contains(",")).any(axis=1)
        require_rows(table, {"numbers without commas between semicolons": comma}, ["start"], path)
    for name in map(str, moments):
        table[name] = seconds(table[name], name, clock, path, blank=name != "start")
    if "incident" in more:
        own = table["incident"].where(table["incident"] != "", table.index.astype(str) + " alone")
        table["incident"] = pd.factorize(own)[0]
    notes: dict[str, Any] = {
        "there is no column of ends": started,
        "times are taken as seconds: clock= names another unit": guessed and clock == "s",
    }
    levels, table = {}, table.assign(end=table.get("end", np.nan))
    if started and not more and (table["start"] % HOUR).any():  # to the minute at least
        quiet = SILENCE if silence is None else require_real(silence=silence, at_least=0)
        lines, precise = table.assign(part=""), (table["start"] % MINUTE).any()
        table = outages(lines, lines.iloc[:0], quiet, TOGETHER if precise else None)
        notes |= incidents_told(len(lines), table, quiet)
        table["end"] = np.nan
        levels = {name: at for name in table["cause"] if (at := level(name))}
    elif silence is not None:
        raise ValueError(
            "silence must be left out where a table tells ends, resumed or incidents, or no more "
            f"than hours, got {silence!r}"
        )
    return Found(
        table=table,
        origin=0.0 if clock in CLOCKS or table.empty else table["start"].min(),
        dated=clock not in CLOCKS,
        overlaps="refuse",
        notes=notes,
        levels=levels,
    )


def _require_columns(head: list[str], wanted: Mapping[str, str], ignored: Sequence[str]) -> None:
    """Refuse columns that are missing, read twice, or neither read nor ignored."""
    free = [*head]
    for name, column in wanted.items():
        if column not in head:
            raise ValueError(f"{name} must be one of {', '.join(head)}, got {column!r}")
        if column not in free:
            raise ValueError(f"{name} must be a column of its own, got {column!r} again")
        free.remove(column)
    if extra := ", ".join(repr(column) for column in free if column not in ignored):
        raise ValueError(f"ignore must name every column that is not used, got {extra}")


_LANL_CAUSES: Final = {
    "Hardware": "hardware",
    "Software": "software",
    "Undetermined": "undetermined",
    "Network": "network",
    "Facilities": "facilities",
    "Human Error": "human",
}
_LANL: Final = ("System", "nodes", "nodenumz", "Prob Started", "Prob Fixed", "Down Time")


def read_lanl(path: str | PathLike[str], system: int | None = None) -> FailureLog:
    """Failures of one system or all in Los Alamos' LA-UR-05-7318 (Schroeder, Gibson, DSN 2006).

    Nodes are called "system-node"; seconds since the first failure of the whole record; down times
    of the record's own column. Repairs that overlap another one of the same node are kept.
    """
    table = read_table(path, [*_LANL, *_LANL_CAUSES])
    given = pd.to_numeric(table["nodes"], errors="coerce").groupby(table["System"]).max()
    size = given.fillna(table.groupby("System")["nodenumz"].nunique()).astype(int)
    named = table[[*_LANL_CAUSES]] != ""
    table = table.assign(
        start=seconds(table["Prob Started"], "start", "%m/%d/%Y %H:%M", path),
        fixed=seconds(table["Prob Fixed"], "end", "%m/%d/%Y %H:%M", path),
        down=MINUTE * seconds(table["Down Time"], "end", "s", path),
        node=table["System"] + "-" + table["nodenumz"],
        cause=named.idxmax(axis=1).map(_LANL_CAUSES).where(named.any(axis=1), "not given"),
    )
    origin = table["start"].min()
    if system is not None:
        require_choice(tuple(sorted(map(int, size.index))), system=system)
        table, size = table[table["System"] == str(system)], size.loc[[str(system)]]
    apart = ((table["fixed"] - table["start"] - table["down"]).abs() > 30).sum()
    return FailureLog(
        node=table["node"].to_numpy(dtype=np.str_),
        start=(table["start"] - origin).to_numpy(),
        end=(table["start"] - origin + table["down"]).to_numpy(),
        cause=table["cause"].to_numpy(dtype=np.str_),
        population=max(int(size.sum()), table["node"].nunique()),
        overlaps="keep",
        notes=(
            f"{apart} down times differ from fixed minus started",
            f"{(table['cause'] == 'not given').sum()} rows give no cause",
        ),
    )
