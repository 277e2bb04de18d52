"""Published numbers: each row with its unit, tolerance, source and origin, ready to be recomputed.

A row of ``data/published/<topic>.csv`` becomes a `Fact`. Its ``inputs`` text
(``h=6144; MTTR=600 s; rate=3.79e-3/d``) stands beside the same as JSON in SI units, ``inputs_si``;
its ``value`` is read into a tuple of numbers; its ``tolerance`` stands beside the same in numbers,
``rtol``, ``atol`` or ``digits``, which the ledger applies. The tolerance of somebody else's number
is *printed*, half a unit of its last digit (``117e6`` has its last digit in the millions, ``16`` is
a count and has none), or *ours*, with the reason why its digits cannot be asked for. A folder named
by the environment variable ``RELPARALLEL_DATA`` may hold more rows in ``facts/*.csv``; rows that
the project ships come first.
"""

from __future__ import annotations

import csv
import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any, Final, Literal, get_args

from relparallel import units
from relparallel._checks import require_choice

__all__ = ["Fact", "data_folder", "facts", "topics"]

Number = int | float
Role = Literal["check", "input", "quoted"]
Origin = Literal["printed", "artefact", "formula", "second route", "unverified", "unstated"]
# somebody else's number; all other origins are our computations
PUBLISHED: Final = ("printed", "artefact")
_TOLERANCES: Final = {"rtol": float, "atol": float, "digits": int}


def data_folder() -> Path:
    """Folder of shipped data: beside the package in a checkout, inside it if installed as a wheel.

    Returns
    -------
    Path
        The folder that holds ``published/`` and ``systems.csv``.

    Examples
    --------
    >>> (data_folder() / "published").is_dir()
    True
    """
    package = Path(__file__).resolve().parent
    installed = package / "_data"
    return installed if installed.is_dir() else package.parent / "data"


@dataclass(frozen=True, kw_only=True)
class Fact:
    """One number, or one short list of numbers, as its source gives it.

    Attributes
    ----------
    id : str
        Unique over all topics.
    topic : str
        Name of the table that holds the row.
    system, quantity, unit, tolerance, source, confidence : str
        As in the table.
    inputs_text, value_text : str
        The two columns as written; `inputs` and `values` are what they say.
    role : {"check", "input", "quoted"}
        A model computes it; models start from it; or it is a headline whose inputs are not public.
    origin : {"printed", "artefact", "formula", "second route", "unverified", "unstated"}
        The source prints the value; its authors' code or data give it; the formula of the source
        gives it, evaluated here; or a second computation of ours does. *Unverified* stands in a
        source that nobody read for this table, *unstated* is what a table without the column says.
        Only the first two are published.
    rtol, atol : float or None
        What ``tolerance`` says in numbers: the largest relative error, or the largest in the row's
        unit.
    digits : int or None
        Or how many significant digits have to agree, 0 for every digit printed.
    inputs_si : str
        The inputs as a JSON object in SI units; empty where no input is a value.
    """

    id: str
    topic: str
    system: str
    quantity: str
    inputs_text: str
    value_text: str
    unit: str
    tolerance: str
    source: str
    confidence: str
    role: Role
    origin: Origin
    rtol: float | None = None
    atol: float | None = None
    digits: int | None = None
    inputs_si: str = ""

    @cached_property
    def inputs(self) -> Mapping[str, Number | str | bool]:
        """The inputs by name; numbers with a unit are in SI."""
        if self.inputs_si:
            return json.loads(self.inputs_si)  # type: ignore[no-any-return]
        return read_inputs(self.inputs_text)

    @cached_property
    def values(self) -> tuple[Number | str | None, ...]:
        """Numbers of the value column in written order; a blank is None, a formula stays text."""
        return tuple(_number(token) for token in self.tokens)

    @property
    def value(self) -> Number | str | tuple[Number | str | None, ...] | None:
        """The number, or the tuple of them when the row has several."""
        return self.values[0] if len(self.values) == 1 else self.values

    @cached_property
    def tokens(self) -> tuple[str, ...]:
        """The value column cut into its numbers (``2:635904;4:...`` alternates hop and count)."""
        text = self.value_text.strip()
        for pattern in (r"\s*(?:;|/|,|\bvs\b|:)\s*", r"\s+"):
            tokens = tuple(re.split(pattern, text))
            if all(token == "" or isinstance(_number(token), int | float) for token in tokens):
                return tokens
        return tuple(token.strip() for token in re.split(r";|\s/\s|\svs\s", text))


_UNITS: Final[Mapping[str, float]] = {
    "s": 1.0,
    "ms": units.MILLISECOND,
    "us": units.MICROSECOND,
    "min": units.MINUTE,
    "h": units.HOUR,
    "d": units.DAY,
    "days": units.DAY,
    "years": units.YEAR,
    "/s": 1.0,
    "/h": 1 / units.HOUR,
    "/d": 1 / units.DAY,
    "/node-day": 1 / units.DAY,
    "B": 1.0,
    "KB": units.KB,
    "MB": units.MB,
    "GB": units.GB,
    "TB": units.TB,
    "KiB": units.KIB,
    "MiB": units.MIB,
    "GiB": units.GIB,
    "TiB": units.TIB,
    "GB/s": units.GB,
    "MB/s": units.MB,
    "Gb/s": units.GBIT,
    "Gbit/s": units.GBIT,
    "TFLOP/s": units.TFLOP,
    "%": 0.01,
    "nodes": 1,
    "GPUs": 1,
    "hosts": 1,
    "replicas": 1,
    "stages": 1,
    "micro-batches": 1,
    "spares": 1,
}


def read_inputs(text: str) -> dict[str, Number | str | bool]:
    """Read ``key=value; key=value`` text; segments without an equals sign are remarks and left out.

    Integers, floats and booleans where the text is one; a number followed by a known unit in SI;
    other values as text.

    >>> read_inputs("k=4, n=2; MTTR=600 s; rate=2/h; seqpar=False; gpu=A100-80GB; a remark")
    {'k': 4, 'n': 2, 'MTTR': 600.0, 'rate': 0.0005555555555555556, 'seqpar': False, 'gpu': 'A100-80GB'}
    """
    read: dict[str, Number | str | bool] = {}
    for segment in text.split(";"):
        parts = segment.split(",")
        for part in parts if all("=" in p for p in parts) else [segment]:
            key, equals, value = part.partition("=")
            if equals:
                read[key.strip()] = _value(value.strip())
    return read


@cache
def _tables() -> tuple[Path, ...]:
    """Files of rows: the shipped ones, then those of the data folder when it is given."""
    given = os.environ.get("RELPARALLEL_DATA")
    extra = sorted((Path(given) / "facts").glob("*.csv")) if given else []
    return (*sorted((data_folder() / "published").glob("*.csv")), *extra)


@cache
def _rows(path: Path) -> tuple[Fact, ...]:
    rows = tuple(_fact(path.stem, row) for row in shipped_rows(path))
    ids = [fact.id for fact in rows]
    if len(set(ids)) < len(ids):
        raise ValueError(f"id {max(ids, key=ids.count)!r} stands twice in {path}")
    return rows


@cache
def _all_facts() -> dict[str, Fact]:
    rows: dict[str, Fact] = {}
    for path in _tables():
        for fact in _rows(path):
            if fact.id in rows and path.parent == _tables()[0].parent:
                raise ValueError(f"id {fact.id!r} stands twice in {path.parent}")
            rows.setdefault(fact.id, fact)
    return rows


def facts(topic: str | None = None) -> dict[str, Fact]:
    """All rows by id, or those of one topic.

    Parameters
    ----------
    topic : str, optional
        One of `topics`.

    Returns
    -------
    dict of str to Fact
        In the order of the tables.

    Examples
    --------
    >>> facts("topologies")["TOPO-001"].value
    16
    """
    if topic is None:
        return dict(_all_facts())
    require_choice(topics(), topic=topic)
    return {
        fact.id: fact for path in reversed(_tables()) if path.stem == topic for fact in _rows(path)
    }


def topics() -> tuple[str, ...]:
    """Names of the tables of published rows.

    Returns
    -------
    tuple of str
        Sorted.

    Examples
    --------
    >>> "topologies" in topics()
    True
    """
    return tuple(sorted({path.stem for path in _tables()}))


def _number(token: str) -> Number | str | None:
    """An integer, a float, None for a blank, or the text itself."""
    if token == "":
        return None
    for kind in (int, float):
        try:
            return kind(token)
        except ValueError:
            continue
    return token


def _value(text: str) -> Number | str | bool:
    """One value of an inputs column."""
    if text in ("True", "False"):
        return text == "True"
    bare = _number(text)
    if isinstance(bare, int | float):
        return bare
    if match := re.fullmatch(r"(\d+)/(\d+)", text):
        return int(match[1]) / int(match[2])
    if (match := re.fullmatch(r"([-+]?[\d.]+(?:e[-+]?\d+)?)\s*(\D\S*)", text)) and match[
        2
    ] in _UNITS:
        number, factor = _number(match[1]), _UNITS[match[2]]
        return number * factor if isinstance(number, int | float) else text
    return text


def _fact(topic: str, row: Mapping[str, str]) -> Fact:
    # Tables outside the project carry no role, no origin and no tolerance in numbers: observations.
    role: Role = require_choice(("check", "input", "quoted"), role=row.get("role") or "input")
    origin: Origin = require_choice(get_args(Origin), origin=row.get("origin") or "unstated")
    if origin in PUBLISHED and row["confidence"] != "confirmed":
        origin = "unverified"
    same = ("id", "system", "quantity", "unit", "tolerance", "source", "confidence")
    given: dict[str, Any] = {name: row[name] for name in same}
    given |= {name: kind(row[name]) for name, kind in _TOLERANCES.items() if row.get(name)}
    return Fact(
        topic=topic,
        inputs_text=row["inputs"],
        inputs_si=row.get("inputs_si") or "",
        value_text=row["value"],
        role=role,
        origin=origin,
        **given,
    )


def shipped_rows(table: str | Path) -> list[dict[str, str]]:
    """Rows of a table of `data_folder`, or of any other file by its whole path."""
    with (data_folder() / table).open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))
