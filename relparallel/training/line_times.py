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
FRONT: Final = 120  # letters in which a line gives time and host
_LATER: Final = 24  # letters by which times may stand farther behind than in the first line


class Times(NamedTuple):
    """Times of the lines of a log [s], NaN of those that have none, and their clock."""

    at: pd.Series
    clock: str

    @property
    def window(self) -> dict[str, Any]:
        """The watch of `Found`."""
        known = self.at.dropna().to_numpy(dtype=np.float64)
        return {
            "origin": float(known.min(initial=np.inf)),
            "finish": float(known.max(initial=-np.inf)),
            "dated": self.clock != "s",
            "years": not self.clock.startswith("no year"),
        }


def stamped(rows: files.Rows) -> Times:
    """Times of all lines of a log, given as in the first of the rows that has one."""
    front = {number: line[:FRONT] for number, line in files.read_lines(rows.path, "replace")}
    fronts = pd.Series(front, dtype=str)
    return times(fronts, pd.Series(fronts.index.isin(rows.table.index), fronts.index), rows.path)


def times(front: pd.Series, told: pd.Series, path: Any, need: bool = False) -> Times:
    """Times of lines by what is in front of them.

    Those that tell something give them as the first one does; if they need one, all of them.
    """
    fronts = front[told] if told.any() else front
    stamps = ((re.search(p, text), p, clock) for text, (p, clock) in product(fronts, _STAMPS))
    match, pattern, clock = next((one for one in stamps if one[0]), (None, r"(\0)", "iso"))
    place = match.start() + _LATER if match else 0
    hits = [re.search(pattern, line) for line in front]
    text = pd.Series([hit[1] if hit and hit.start() <= place else "" for hit in hits], front.index)
    if need or (told.any() and match is None):
        fault = {"a time in every line of an event, given as in the first": told & (text == "")}
        files.require_rows(front.to_frame("line"), fault, ["line"], path)
    if clock in ("s", "since 1970"):
        found = pd.to_numeric(text, errors="coerce")
        faults = {
            "times since one boot (dmesg -T and journalctl -o short-iso give dates)": found.dropna()
            .diff()
            .reindex(found.index)
            < -1
        }
        files.require_rows(text.to_frame("time"), faults if clock == "s" else {}, ["time"], path)
        return Times(found, clock)
    layout = clock
    if clock == "iso":
        text = text.str.replace(",", ".").str.replace("/", "-").str.replace("_", "T")
        files.require_zones(text[told & (text != "")].to_frame("time"), path)
        layout = "ISO8601"
    elif clock.startswith("no year"):
        layout = clock.replace("no year", "%Y")
        day = pd.to_datetime("2000 " + text, format=layout, errors="coerce")
        turns = (day.dt.month.dropna().diff() < -6).cumsum()
        year = turns.reindex(text.index).ffill().fillna(0).astype(int)
        leap = year[(day.dt.month == 2) & (day.dt.day == 29)]
        text = (year + (2000 - leap.iloc[0] if len(leap) else 2001)).astype(str) + " " + text
    dates = pd.to_datetime(text, format=layout, errors="coerce", utc=True)
    files.require_rows(text.to_frame("time"), {"times": told & dates.isna() & need}, ["time"], path)
    return Times((dates - files.EPOCH).dt.total_seconds(), clock)
