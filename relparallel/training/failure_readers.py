"""Readers of failure records: a user's own CSV file, and the public record of Los Alamos, read in place."""

import bz2
import csv
import gzip
import lzma
from collections.abc import Callable, Mapping, Sequence
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
OPENERS: Final[dict[str, Callable[..., Any]]] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
NUMBER: Final = r"[+-]?(?:\d+|\d{1,3}(?:,\d{3})+)(?:\.\d*)?(?:[eE][+-]?\d+)?|[+-]?\.\d+(?:[eE][+-]?\d+)?"
ZONE: Final = r"[T ].*(?:[Zz]|[+-]\d\d(?::?\d\d)?)$"


def read_rows(path: str | PathLike[str]) -> list[list[str]]:
    r"""Read all rows of a CSV file as text; blank lines hold none."""
    require_instance((str, PathLike), path=path)
    name = Path(path)
    try:
        with OPENERS.get(name.suffix, open)(name, "rt", encoding="utf-8-sig", newline="") as file:
            rows = [[field.strip() for field in row] for row in csv.reader(file, strict=True) if row]
    except (csv.Error, UnicodeDecodeError) as error:
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


def read_failure_log(
    path: str | PathLike[str],
    *,
    population: int,
    node: str = "node",
    start: str = "start",
    end: str = "end",
    cause: str = "cause",
    clock: str = "s",
    finish: float | None = None,
    overlaps: str = "refuse",
    ignore: Sequence[str] = (),
) -> FailureLog:
    r"""Read a failure log: a CSV file with one row per failure.

    Parameters
    ----------
    path : str or path
        The file; .gz, .bz2 and .xz are read too.
    population : int
        Nodes that were watched.
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


LANL_CAUSES: Final = {
    "Hardware": "hardware", "Software": "software", "Undetermined": "undetermined", "Network": "network",
    "Facilities": "facilities", "Human Error": "human",
}  # fmt: skip


def read_lanl(path: str | PathLike[str], system: int | None = None) -> FailureLog:
    """Read the failure record of Los Alamos National Laboratory, 1996 to 2005.

    Parameters
    ----------
    path : str or path
        The file LA-UR-05-7318, plain or compressed.
    system : int, optional
        Number of one system; by default all of them.

    Returns
    -------
    FailureLog
        Nodes are called "system-node"; seconds since the first failure of the whole record; down times of the
        record's own column. Repairs that overlap another one of the same node are kept.

    References
    ----------
    Los Alamos National Laboratory, LA-UR-05-7318. Schroeder and Gibson, "A large-scale study of failures in
    high-performance computing systems", DSN 2006.

    Examples
    --------
    >>> read_lanl("LA-UR-05-7318-failure-data-1996-2005.csv.xz", system=20).population  # doctest: +SKIP
    512
    """
    require_instance((str, PathLike), path=path)
    table = pd.read_csv(path, dtype=str, keep_default_na=False)
    needed = {"System", "nodes", "nodenumz", "Prob Started", "Prob Fixed", "Down Time", *LANL_CAUSES}
    if missing := sorted(needed - set(table)):
        raise ValueError(f"path must name a record with the columns {', '.join(missing)}, got {path}")
    started = _seconds(table["Prob Started"], "start", "%m/%d/%Y %H:%M")
    fixed = _seconds(table["Prob Fixed"], "end", "%m/%d/%Y %H:%M")
    down = MINUTE * _seconds(table["Down Time"], "end", "s")
    named = table[list(LANL_CAUSES)].to_numpy() != ""
    cause = np.where(named.any(1), np.array([*LANL_CAUSES.values()])[named.argmax(1)], "not given")
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
        zoned = pd.concat([table[start], table[end]]).str.contains(ZONE).to_numpy()
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
        plain = column.where(column.str.fullmatch(NUMBER)).str.replace(",", "")
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
