"""Times in front of the lines of a log, and from when to when its lines are."""

import re
from itertools import product
from typing import Any, Final, NamedTuple

import numpy as np
import pandas as pd

from relparallel.training import log_files as files

_STAMPS: Final = (
    (r"(\d{4}[-/]\d\d[-/]\d\d[T _]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?)", "iso"),
    (r"\w{3} (\w{3} +\d+ \d\d:\d\d:\d\d \d{4})", "%b %d %H:%M:%S %Y"),
    (r"(\d{4} \w{3} +\d+ \d\d:\d\d:\d\d)", "%Y %b %d %H:%M:%S"),
    (r"(\w{3} +\d+ \d\d:\d\d:\d\d)", "no year %b %d %H:%M:%S"),
    (r"\b[IWEF](\d{4} \d\d:\d\d:\d\d\.\d+)", "no year %m%d %H:%M:%S.%f"),
    (r"\b(\d{10}\.\d+) ", "since 1970"),
    (r"\[ *(\d+\.\d+)\]", "s"),
)
_FRONT: Final = 120  # letters in which a line gives time and host


class Times(NamedTuple):
    """Times of the lines of a log [s], NaN of those that have none, and their clock."""

    at: pd.Series
    clock: str
    front: pd.Series  # the first letters of each line

    @property
    def window(self) -> dict[str, Any]:
        """The window of `Found`."""
        known = self.at.dropna().to_numpy()
        return {
            "origin": known.min(initial=np.inf),
            "finish": known.max(initial=-np.inf),
            "dated": self.clock != "s",
            "years": not self.clock.startswith("no year"),
        }


def stamped(rows: files.Rows, every: bool | None = False) -> Times:
    """Times of all lines of a log, given as in the first of the rows that has one.

    ``every``: whether all rows need one, some (False), or none does (None).
    """
    path = rows.path
    front = pd.Series({n: line[:_FRONT] for n, line in files.lines_of(path)}, dtype=str)
    told = front.index.isin(rows.table.index)
    tries = product(front[told] if told.any() else front, _STAMPS)
    form = next((form for line, form in tries if re.search(form[0], line)), (r"(\0)", "iso"))
    text, clock = front.str.extract(form[0], expand=False).fillna(""), form[1]
    lacks = told & (text == "")
    if every or (every is False and lacks[told].all()):
        allowed = "a time in every line of an event, given as in the first"
        files.require_rows(front.to_frame("line"), {allowed: lacks}, ["line"], path)
    if clock in ("s", "since 1970"):
        found = pd.to_numeric(text, errors="coerce")
        back = (found < found.ffill().shift() - 1) & (clock == "s")
        allowed = "times since one boot (dmesg -T and journalctl -o short-iso give dates)"
        files.require_rows(text.to_frame("time"), {allowed: back}, ["time"], path)
        return Times(found, clock, front)
    layout = clock.replace("no year", "%Y")
    if clock == "iso":
        text, layout = (
            text.str.replace(",", ".").str.replace("/", "-").str.replace("_", "T"),
            "ISO8601",
        )
        files.require_zones(text[told & (text != "")].to_frame("time"), path)
    elif layout != clock:
        day = pd.to_datetime("2000 " + text, format=layout, errors="coerce")
        turns = (day.dt.month.dropna().diff() < -6).cumsum()
        year = turns.reindex(text.index).ffill().fillna(0).astype(int)
        leap = year[(day.dt.month == 2) & (day.dt.day == 29)]
        text = (year + (2000 - leap.iloc[0] if len(leap) else 2001)).astype(str) + " " + text
    dates = pd.to_datetime(text, format=layout, errors="coerce", utc=True)
    wrong = told & dates.isna() & bool(every)
    files.require_rows(text.to_frame("time"), {"times": wrong}, ["time"], path)
    return Times((dates - files.EPOCH).dt.total_seconds(), clock, front)
