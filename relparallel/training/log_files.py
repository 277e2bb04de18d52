"""Files that users bring: lines and tables of text with their line numbers, times, and dialects.

Lines are read, never executed; one that is damaged is refused with its number. A new format of a
log is one function under ``@dialect(kind, name, rows)``, of the kind "run" or "failures": `lines`
and `columns` say how its rows are written, the function what they mean.
"""

import bz2
import csv
import gzip
import json
import lzma
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from relparallel._checks import require_choice, require_instance
from relparallel.units import DAY, HOUR, MINUTE

CLOCKS: Final = {"s": 1.0, "min": MINUTE, "h": HOUR, "d": DAY}
Times = NDArray[np.float64]
Reader = TypeVar("Reader", bound=Callable[..., Any])
_OPENERS: Final[dict[str, Callable[..., Any]]] = {
    ".gz": gzip.open,
    ".bz2": bz2.open,
    ".xz": lzma.open,
}
_NUMBER: Final = (
    r"[+-]?(?:\d+|\d{1,3}(?:,\d{3})+)(?:\.\d*)?(?:[eE][+-]?\d+)?|[+-]?\.\d+(?:[eE][+-]?\d+)?"
)
_ZONE: Final = r"[T ].*(?:[Zz]|[+-]\d\d(?::?\d\d)?)$"
_LONGEST_LINE: Final = 10**6
_OLDEST: Final = 3.2e9  # a century [s]: no watch lasts so long, so the unit is wrong


class Rows(NamedTuple):
    """Rows of a log as text, indexed by their lines in the file."""

    path: Any
    table: pd.DataFrame
    passed: int = 0  # lines that are no rows
    delimiter: str = ""


class Dialect(NamedTuple):
    """One format: how its rows are found in a file, and what is read from them."""

    rows: Callable[..., Any]
    read: Callable[..., Any]

    @property
    def takes(self) -> dict[str, Any]:
        """Options, of the rows and of their meaning."""
        return {**(self.rows.__kwdefaults__ or {}), **(self.read.__kwdefaults__ or {})}

    def __call__(self, path: Any, **options: Any) -> Any:
        """What a log says."""
        own = {
            name: options.pop(name) for name in self.rows.__kwdefaults__ or () if name in options
        }
        return self.read(self.rows(path, **own), **options)


DIALECTS: Final[dict[str, dict[str, Dialect]]] = {"run": {}, "failures": {}}
"""Formats by kind of log and by name."""


def dialect(
    kind: str, name: str, rows: Callable[..., Any] = lambda path: path
) -> Callable[[Reader], Reader]:
    """Enter a format under its name; without rows, its reader takes the path."""

    def enter(reader: Reader) -> Reader:
        DIALECTS[kind][name] = Dialect(rows, reader)
        return reader

    return enter


def dialect_of(kind: str, name: Any) -> Dialect:
    """The format of a name."""
    return DIALECTS[kind][require_choice(tuple(DIALECTS[kind]), dialect=name)]


def columns(names: str = "", usual: str = ",") -> Callable[..., Rows]:
    """Rows of a table with a head that has these columns, and what usually separates its fields."""

    def rows(path: Any, *, delimiter: str = usual) -> Rows:
        return Rows(path, read_table(path, names.split(), delimiter), delimiter=delimiter)

    return rows


def lines(mark: str, pattern: str) -> Callable[..., Rows]:
    """Rows that are lines with a mark: the named groups of a pattern."""
    form = re.compile(pattern)

    def rows(path: Any) -> Rows:
        found, passed = {}, 0
        for number, line in read_lines(path):
            if mark not in line:
                passed += bool(line.strip())
            elif match := form.search(line.rstrip()):
                found[number] = match.groups()
            else:
                raise ValueError(
                    f"path must hold whole events, got line {number} of {path}: {line[:120]!r}"
                )
        table = pd.DataFrame([*found.values()], index=[*found], columns=[*form.groupindex])
        return Rows(path, table.astype(str), passed)

    return rows


def told(counts: Mapping[str, Any]) -> tuple[str, ...]:
    """Notes on what occurred at all, with its number."""
    return tuple(note.format(many) for note, many in counts.items() if many)


def read_lines(path: str | PathLike[str]) -> Iterator[tuple[int, str]]:
    """Numbered lines of a text file, also a compressed one; of a length that a log has."""
    name = Path(require_instance((str, PathLike), path=path))
    try:
        with _OPENERS.get(name.suffix, open)(name, "rt", encoding="utf-8-sig", newline="") as file:
            for number, line in enumerate(file, 1):
                if len(line) > _LONGEST_LINE:
                    raise ValueError(
                        f"path must hold lines of a log, got {len(line)} letters in line {number} "
                        f"of {path}"
                    )
                yield number, line
    except (OSError, EOFError, UnicodeDecodeError, lzma.LZMAError) as error:
        raise ValueError(f"path must name a text file in UTF-8, got {path} ({error})") from None


def read_objects(
    path: str | PathLike[str], mark: str = ""
) -> Iterator[tuple[int, str, dict[str, Any]]]:
    """Of lines with a mark: the JSON objects behind it and what is before; a torn line is named."""
    for number, line in read_lines(path):
        if not line.strip() or mark not in line:
            continue
        front, _, text = line.partition(mark) if mark else ("", "", line)
        try:
            found = json.loads(text)
        except (json.JSONDecodeError, RecursionError) as error:
            raise ValueError(
                f"path must hold whole lines of JSON, got line {number} of {path}: {error}"
            ) from None
        if not isinstance(found, dict):
            raise ValueError(
                f"path must hold JSON objects, got {text[:60]!r} in line {number} of {path}"
            )
        yield number, front, found


def read_rows(path: str | PathLike[str], delimiter: str = ",", head: bool = False) -> pd.DataFrame:
    """Rows of a table as text, indexed by their last lines in the file; blank lines hold none.

    The csv module splits them: pandas fills a torn row with blanks, which would read as "no end".
    """
    table = csv.reader((line for _, line in read_lines(path)), delimiter=delimiter, strict=True)
    try:
        rows = [(table.line_num, [field.strip() for field in row]) for row in table if row]
    except csv.Error as error:
        raise ValueError(
            f"path must name a CSV file in UTF-8, got {path} ({error} in line {table.line_num})"
        ) from None
    if not rows:
        raise ValueError(f"path must hold at least one row, got none in {path}")
    names = rows[0][1]
    if head and len(names) == 1 and (other := [sign for sign in ",;\t|" if sign in names[0]]):
        raise ValueError(
            f"delimiter must be what separates the fields of {path}, got {delimiter!r} with the "
            "head "
            f"{names[0]!r:.80}: delimiter={other[0]!r} would split it"
        )
    for place, (number, row) in enumerate(rows):
        if len(row) != len(names):
            raise ValueError(
                f"path must have {len(names)} fields in every row, got {len(row)} in row {place} "
                "after the "
                f"first (line {number} of {path}): {row!r:.80}"
            )
    if head:
        rows = rows[1:]
        if twice := [name for name in names if names.count(name) > 1]:
            raise ValueError(f"path must name every column once, got {twice[0]!r} twice in {path}")
    lines = [number for number, _ in rows]
    columns = names if head else range(len(names))
    return pd.DataFrame([row for _, row in rows], index=lines, columns=columns, dtype=str)


def read_table(
    path: str | PathLike[str], columns: Sequence[str], delimiter: str = ","
) -> pd.DataFrame:
    """Columns of a table with a head, as text."""
    table = read_rows(path, delimiter, head=True)
    if missing := [name for name in columns if name not in table]:
        raise ValueError(
            f"path must have the columns {', '.join(columns)}, got no {', '.join(missing)} in "
            f"{path}"
        )
    return table


def row_of(table: pd.DataFrame | pd.Series, row: Any, path: Any) -> str:
    """A row of a table and its line in the file, for a refusal."""
    return f"row {int(row) + 1} (line {table.index[int(row)]} of {path})"


def require_rows(
    table: pd.DataFrame, faults: Mapping[str, Any], told: Sequence[str], path: Any
) -> None:
    """Refuse the first faulty row; ``faults``: what is allowed, and for each row if it is not."""
    for allowed, wrong in faults.items():
        if (bad := np.asarray(wrong)).any():
            row = int(bad.argmax())
            got = " ".join(f"{name} {table[name].iloc[row]}" for name in told)
            if len(told) == 1:
                got = f"{told[0]} {table[told[0]].iloc[row]!r}"
            raise ValueError(
                f"path must hold {allowed}, got {got:.160} in {row_of(table, row, path)}"
            )


def seconds(column: pd.Series, name: str, clock: str, path: Any, blank: bool = False) -> Times:
    """Seconds of a column of numbers or dates, NaN where nothing is given and may be.

    A field that is neither, and a number of more than a century, is refused with its line.
    """
    none = (column == "").to_numpy() if blank else np.zeros(len(column), dtype=np.bool_)
    if clock in CLOCKS:
        plain = column.where(column.str.fullmatch(_NUMBER)).str.replace(",", "")
        read = pd.to_numeric(plain, errors="coerce") * CLOCKS[clock]
    else:
        layout = "ISO8601" if clock == "iso" else clock
        dates = pd.to_datetime(column, format=layout, errors="coerce", utc=True)
        read = (dates - pd.Timestamp("1970-01-01", tz="UTC")).dt.total_seconds()
    found: Times = read.to_numpy(dtype=np.float64)
    if (bad := ~np.isfinite(found) & ~none).any():
        row = int(bad.argmax())
        hint = (
            "; clock='iso' reads dates" if clock in CLOCKS and "-" in column.iloc[row][1:] else ""
        )
        raise ValueError(
            f"{name} must be a time ({clock}), got {column.iloc[row]!r:.80} in "
            f"{row_of(column, row, path)}{hint}"
        )
    if clock in CLOCKS and (bad := found > _OLDEST).any():
        row = int(bad.argmax())
        raise ValueError(
            f"{name} must be less than a century in the unit of clock={clock!r}, got "
            f"{column.iloc[row]} in "
            f"{row_of(column, row, path)}; times that count from 1970 are in seconds"
        )
    return found


def require_zones(table: pd.DataFrame, path: Any) -> None:
    """Refuse dates without a zone among dates with one."""
    dates = table.stack()
    zoned = dates.str.contains(_ZONE).to_numpy(dtype=np.bool_) | (dates == "").to_numpy()
    if (dates.str.contains(_ZONE)).any() and not zoned.all():
        row, column = divmod(int(zoned.argmin()), table.shape[1])
        raise ValueError(
            f"{table.columns[column]} must give a time zone as other rows do, got "
            f"{table.iloc[row, column]!r} in {row_of(table, row, path)}"
        )
