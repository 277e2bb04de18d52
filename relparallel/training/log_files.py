"""Files that users bring: lines and tables of text with their line numbers, times, and dialects.

Lines are read, never executed; one that is damaged is refused with its number. A new format of a
log is one function under ``@dialect(kind, name, form)``, of the kind "run" or "failures": the form
says which rows a file has, and by that which files are of it (`lines`: lines with certain words);
the function what they mean.
"""

import bz2
import csv
import gzip
import json
import lzma
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from os import PathLike
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from relparallel._checks import among, require_choice, require_instance
from relparallel.units import DAY, HOUR, MINUTE

CLOCKS: Final = {"s": 1.0, "min": MINUTE, "h": HOUR, "d": DAY}
EPOCH: Final = pd.Timestamp("1970-01-01", tz="UTC")
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
_COLOUR: Final = re.compile(r"(?:\x1b|\^\[|\\u001b|\\x1b|\\033)\[[\d;]*m")
_TEXTS: Final = ("textPayload", "message", "msg", "log", "MESSAGE")
_WHOLE: Final = "a whole line with {mark!r}: line {line} is the first that is not"
_ZONE: Final = r"[T ].*(?:[Zz]|[+-]\d\d(?::?\d\d)?)$"
_LONGEST_LINE: Final = 10**6
_OLDEST: Final = 3.2e9  # a century [s]: no window lasts so long, so the unit is wrong


class Rows(NamedTuple):
    """Rows of a log as text, indexed by their lines in the file."""

    path: Any
    table: pd.DataFrame
    passed: int = 0  # lines that are no rows
    delimiter: str = ""
    torn: tuple[int, ...] = ()  # lines with the mark of a row that cannot be read

    @property
    def unread(self) -> str:
        """How many lines could not be read, and the first of them, for a note."""
        return f"{len(self.torn)} lines, line {self.torn[0]} the first" if self.torn else ""


class Fit(NamedTuple):
    """How well a file fits a form, and what it lacks."""

    share: float  # 1 where it is of this form
    lacks: str = ""


class Form(NamedTuple):
    """How the rows of a log are written: what reads them, and whether a file has such rows."""

    rows: Callable[..., Any]
    fits: Callable[..., Fit]  # of a path and options


class Dialect(NamedTuple):
    """One format: how its rows are found in a file, and what is read from them."""

    rows: Callable[..., Any]
    read: Callable[..., Any]
    fits: Callable[..., Fit]

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
_READERS: Final = {"run": "read_run_log", "failures": "read_failure_log"}


def dialect(kind: str, name: str, form: Form) -> Callable[[Reader], Reader]:
    """Enter a format under its name."""

    def enter(reader: Reader) -> Reader:
        DIALECTS[kind][name] = Dialect(form.rows, reader, form.fits)
        return reader

    return enter


def dialect_of(
    kind: str, name: Any, path: Any = None, options: Mapping[str, Any] | None = None
) -> tuple[str, Dialect]:
    """The format of a name, or of a file where none is given; options that it takes are checked."""
    known, options = DIALECTS[kind], options or {}
    every = {option for form in known.values() for option in form.takes}
    for option, value in options.items():
        if option not in every:
            said = among(sorted(every), option)
            raise TypeError(f"{said}, got the option {option}={value!r:.80}")
    if name is None:
        name = recognised(kind, path, options)
    found = known[require_choice(tuple(known), dialect=name)]
    for option, value in options.items():
        if option not in found.takes:
            raise ValueError(
                f"{option} must be left out for the dialect {name!r}, got {value!r:.80}"
            )
    return name, found


def recognised(kind: str, path: Any, options: Mapping[str, Any] | None = None) -> str:
    """Name of the format of a file: of those that take the options, the one that it fits."""
    require_instance((str, PathLike), path=path)
    forms, options = DIALECTS[kind], options or {}
    takes = {name for name, form in forms.items() if {*options} <= {*form.takes}}
    found = {
        name: form.fits(path, **(options if name in takes else {})) for name, form in forms.items()
    }
    whole = [name for name, fit in found.items() if fit.share >= 1]
    own = [name for name in whole if name in takes]
    if len(own) > 1 and kind != "run":  # programs of one run print in turn: the first reads it
        raise ValueError(f"dialect must say which of {own} {path} is: it fits each, got None")
    if whole:  # what fits without the options refuses them by name
        return (own or whole)[0]
    import_module("relparallel.training.run_logs")  # all forms of logs are entered
    (other,) = DIALECTS.keys() - {kind}
    for name, form in DIALECTS[other].items():
        if form.fits(path).share >= 1:
            raise ValueError(f"path must be another log: {_READERS[other]} reads {path} ({name})")
    nearest = max(found, key=lambda name: (name in takes, found[name].share))
    raise ValueError(
        f"path must hold a log of a form that is known, {', '.join(forms)}; nearest to {path} is "
        f"{nearest}, but it lacks {found[nearest].lacks}"
    )


def require_delimiter(delimiter: Any) -> None:
    """Refuse what is not one letter."""
    if len(require_instance(str, delimiter=delimiter)) != 1:
        raise ValueError(f"delimiter must be one letter, got {delimiter!r}")


def has_columns(path: Any, names: Sequence[str], delimiter: str) -> Fit:
    """Whether the head of a table has these columns."""
    require_delimiter(delimiter)
    head = head_of(path)
    fields = [field.strip().strip('"') for field in head.split(delimiter)]
    missing = [name for name in names if name not in fields]
    said = f"the columns {', '.join(missing)} in its head {head[:80]!r}"
    return Fit(1 - len(missing) / len(names), said)


def lines(forms: Mapping[str, str], lacks: str = _WHOLE) -> Form:
    """Rows that are lines with any of several words, ``said``, and the groups of its pattern.

    What is in front of the words is ``front``; a line with the first of them has to be whole.
    """
    known = {mark: re.compile(pattern) for mark, pattern in forms.items()}
    none = dict.fromkeys((name for form in known.values() for name in form.groupindex), "")
    first = next(iter(known))

    def match(line: str) -> dict[str, str] | None:
        for mark, form in known.items():
            if mark in line and (found := form.search(line.rstrip())):
                return {
                    "said": mark,
                    "front": line.partition(mark)[0],
                    **none,
                    **found.groupdict(""),
                }
        return None

    def rows(path: Any) -> Rows:
        found, passed, torn = {}, 0, []
        for number, line in lines_of(path):
            if row := match(line):
                found[number] = row
            elif first in line:
                torn.append(number)
            else:
                passed += bool(line.strip())
        table = pd.DataFrame([*found.values()], [*found], ["said", "front", *none])
        return Rows(path, table.astype(str), passed, torn=tuple(torn))

    def fits(path: Any, **options: Any) -> Fit:
        torn = 0
        for number, line in lines_of(path):
            if match(line):
                return Fit(1)
            torn = torn or number * (first in line)
        if torn:
            return Fit(0.5, lacks.format(mark=first, line=torn))
        return Fit(0, f"a line with {' or '.join(map(repr, known))}")

    return Form(rows, fits)


def has_line(path: Any, mark: str) -> Fit:
    """Whether a line has a mark."""
    return lines({mark: ""}).fits(path)


def head_of(path: Any) -> str:
    """The first line that is not blank."""
    return next((line.strip() for _, line in lines_of(path) if line.strip()), "")


def lines_of(path: Any) -> Iterator[tuple[int, str]]:
    """Numbered lines of a file, also with bytes that are no text; a folder has none.

    They are as a program wrote them: without colours, and of the JSON of a collector or of the
    journal when, where and what.
    """
    require_instance((str, PathLike), path=path)
    head = ""
    for number, line in () if Path(path).is_dir() else read_lines(path, "replace"):
        line = _COLOUR.sub("", line)
        line = _unwrapped(line) if line.lstrip().startswith("{") else line
        if re.match(r"\s+NVRM:", line):  # the kernel goes on with what is above
            line = f"{head} {line.lstrip()}"
        else:
            head = line.rstrip()
        yield number, line


def _unwrapped(line: str) -> str:
    """Time, place and text of a line of JSON, the line itself where it has no text."""
    try:
        entry = json.loads(line)
        entry |= entry.get("jsonPayload", {})
        text = next(entry[key] for key in _TEXTS if key in entry)
        if "__REALTIME_TIMESTAMP" in entry:
            entry["time"] = f"{int(entry['__REALTIME_TIMESTAMP']) / 1e6:.6f}"
            entry.setdefault("SYSLOG_IDENTIFIER", "kernel")
        where = entry.get("kubernetes", {}) | entry.get("resource", {}).get("labels", {}) | entry
    except (ValueError, RecursionError, AttributeError, TypeError, StopIteration):
        return line
    time = entry.get("timestamp", entry.get("time"))
    front = (time, *(where.get(key) for key in ("pod_name", "_HOSTNAME", "SYSLOG_IDENTIFIER")))
    return f"{' '.join(str(one) for one in front if one)}: {str(text).replace(chr(10), ' ')}\n"


def told(counts: Mapping[str, Any]) -> tuple[str, ...]:
    """Notes on what occurred at all, with its number."""
    return tuple(note.format(many) for note, many in counts.items() if many)


def read_lines(path: str | PathLike[str], errors: str = "strict") -> Iterator[tuple[int, str]]:
    """Numbered lines of a text file, also a compressed one; of a length that a log has."""
    name = Path(require_instance((str, PathLike), path=path))
    how = {"encoding": "utf-8-sig", "errors": errors, "newline": ""}
    try:
        with _OPENERS.get(name.suffix, open)(name, "rt", **how) as file:
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
            f"head {names[0]!r:.80}: delimiter={other[0]!r} would split it"
        )
    for place, (number, row) in enumerate(rows):
        if len(row) != len(names):
            raise ValueError(
                f"path must have {len(names)} fields in every row, got {len(row)} in row {place} "
                f"after the first (line {number} of {path}): {row!r:.80}"
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
            form = "{} {!r}" if len(told) == 1 else "{} {}"
            got = " ".join(form.format(name, table[name].iloc[row]) for name in told)
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
        read = (dates - EPOCH).dt.total_seconds()
    found: Times = read.to_numpy(dtype=np.float64)
    if (bad := ~np.isfinite(found) & ~none).any():
        row = int(bad.argmax())
        given = column.iloc[row]
        hint = "; an empty field says that it is not known" * blank
        if re.search(r"\d[-/.:]\d+[-/.:]\d|^\d{9,}$", given):
            hint = "; clock='iso' reads dates such as 2026-03-02T10:15, '%d.%m.%Y %H:%M' others"
        raise ValueError(
            f"{name} must be a time ({clock}), got {column.iloc[row]!r:.80} in "
            f"{row_of(column, row, path)}{hint}"
        )
    if clock in CLOCKS and (bad := found > _OLDEST).any():
        row = int(bad.argmax())
        raise ValueError(
            f"{name} must be less than a century in the unit of clock={clock!r}, got "
            f"{column.iloc[row]} in {row_of(column, row, path)}; times that count from 1970 are in seconds"
        )
    return found


def require_zones(table: pd.DataFrame, path: Any) -> None:
    """Refuse dates without a zone among dates with one."""
    dates = table.stack()
    zoned = dates.str.contains(_ZONE)
    if zoned.any() and (bad := (~zoned & (dates != "")).to_numpy()).any():
        row, column = divmod(int(bad.argmax()), table.shape[1])
        raise ValueError(
            f"{table.columns[column]} must give a time zone as other rows do, got "
            f"{table.iloc[row, column]!r} in {row_of(table, row, path)}"
        )
