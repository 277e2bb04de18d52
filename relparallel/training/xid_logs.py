"""Xid lines of the kernel log: GPUs that failed, one incident however many lines tell of it."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd

from relparallel.training import log_files as files
from relparallel.training.machine_logs import Found
from relparallel.units import MINUTE

_STAMPS: Final = (
    (r"(\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?)", "iso"),
    (r"\w{3} (\w{3} +\d+ \d\d:\d\d:\d\d \d{4})", "%b %d %H:%M:%S %Y"),
    (r"(\w{3} +\d+ \d\d:\d\d:\d\d)", "%Y %b %d %H:%M:%S"),
    (r"\[ *(\d+\.\d+)\]", "s"),
)
_NO_FAILURE: Final = ("13", "31", "43", "45", "63", "92", "94", "154")


@files.dialect(
    "failures",
    "xid",
    files.lines(
        "NVRM: Xid",
        r"^(?P<front>.*?)NVRM: Xid \((?:PCI:)?(?P<gpu>[0-9a-fA-F:.]+)\): (?P<xid>\d+)\b",
    ),
)
def _kernel(rows: files.Rows, *, states: Sequence[str] = ()) -> Found:
    """Xid lines of ``dmesg`` (also ``-T`` and ``--time-format iso``), ``journalctl -k`` and syslog.

    NVIDIA's Xid catalogue: 13 and 31, errors of a program; 43 and 45, its channels after them; 63,
    92, 94 and 154, reports of what was remapped, corrected, contained or is to be done.
    """
    path, table = rows.path, rows.table
    if table.empty:
        raise ValueError(f"path must hold lines with 'NVRM: Xid', got none in {path}")
    start, clock = _stamps(table["front"], path)
    host = table["front"].str.extract(r"(\S+) kernel(?::| -)", expand=False)
    node = host.fillna(Path(path).name)
    table = table.assign(start=start, node=node, cause="xid " + table["xid"], end=np.nan)
    wanted = table["xid"].isin([*map(str, states)]) if states else ~table["xid"].isin(_NO_FAILURE)
    kept, other = (
        table[wanted].sort_values("start", kind="stable"),
        table["xid"][~wanted].value_counts(),
    )
    passed_over = ", ".join(f"{many} lines of Xid {xid}" for xid, many in other.items())
    if kept.empty:
        raise ValueError(
            f"path must hold a failure, got {passed_over} in {path}: states= says what counts"
        )
    again = kept.groupby(["node", "gpu"])["start"].diff() < MINUTE
    return Found(
        table=kept[~again],
        dated=clock != "s",
        origin=0.0 if clock == "s" else float(table["start"].min()),
        nodes=node.nunique(),
        notes={
            "left out: {} lines without an Xid": rows.passed,
            "left out: {}": passed_over,
            "left out: {} lines within a minute of another one of the same GPU": again.sum(),
            "no line names a host: all are of one node": host.isna().all(),
            "the lines give no year: each is taken to follow the one above within months": clock[:2]
            == "%Y",
        },
    )


def _stamps(front: pd.Series, path: Any) -> tuple[Any, str]:
    """Times of lines [s] and their clock; all lines give them as the first one does."""
    pattern, clock = next(
        (one for one in _STAMPS if re.search(one[0], front.iloc[0])), (r"(\0)", "iso")
    )
    text = front.str.extract(pattern, expand=False)
    fault = {"a time in every Xid line, given as in the first one": text.isna()}
    files.require_rows(front.to_frame("line"), fault, ["line"], path)
    if clock == "iso":
        text = text.str.replace(",", ".")
        files.require_zones(text.to_frame("time"), path)
    elif clock[:2] == "%Y":
        year = (
            pd.to_datetime(text.str[:3], format="%b", errors="coerce").dt.month.diff() < -6
        ).cumsum()
        leap = year[text.str.match("Feb +29")]
        text = (year + (2000 - leap.iloc[0] if len(leap) else 2001)).astype(str) + " " + text
    at = files.seconds(text, "time", clock, path)
    if clock == "s":
        fault = {
            "times since one boot (dmesg -T and journalctl -o short-iso give dates)": pd.Series(
                at
            ).diff()
            < 0
        }
        files.require_rows(text.to_frame("time"), fault, ["time"], path)
    return at, clock
