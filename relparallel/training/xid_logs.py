"""Xid lines of the kernel log: GPUs that failed, one incident however many lines tell of it."""

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd

from relparallel._checks import require_instance, require_real
from relparallel.training import log_files as files
from relparallel.training._arguments import LONGEST
from relparallel.training.incidents import SILENCE, level, outages, told as incidents_told
from relparallel.training.line_times import FRONT, times
from relparallel.training.machine_logs import Found

_NO_FAILURE: Final = ("13", "31", "43", "45", "63", "92", "94", "154")
_LINE: Final = re.compile(
    r"NVRM: Xid \((?:PCI:)?(?P<gpu>[0-9a-fA-F:.]+)[^)]*\): (?P<xid>\d+)\b"
    r"|\bnvidia-(?P<switch>nvswitch\d+): SXid \([^)]*\): (?P<sxid>\d+)\b"
    r"|NVRM:.*\bGPU (?:at )?(?:PCI:)?(?P<lost>[0-9a-fA-F:.]+)\b.* fallen off the bus"
    r"|NVRM: fallen off the bus"  # its GPU stands two lines above
)
# lines of data follow that of a switch that says how severe it is
_HARMLESS: Final = re.compile(r"\bnon-?fatal\b|SXid.*: \d+, (?:Severity 0|Data)\b", re.IGNORECASE)
_HOST: Final = r"(?:(\S+) kernel\S*?(?::| -)|^(?!kern)([\w.-]+): +(?:kern: \w+: +)?\[)"
# a GPU was reset, its driver loaded anew, or the node started
_AGAIN: Final = re.compile(
    r"Linux version \d|-- (?:re)?boot\b|reboot: restarting|NVRM: loading NVIDIA"
    r"|\bGPU\b.*\breset\b",
    re.IGNORECASE,
)
_NOT_YET: Final = re.compile(
    r"(?i:requir|need|fail|pending|cannot|not |unable|error|request)|_RESET"
)


def _lines(path: Any) -> Iterator[tuple[int, str]]:
    """Numbered lines; those of ``journalctl -o json`` as it prints them without.

    What goes on in an indented line is of the time and host of the line above.
    """
    head = ""
    for number, line in files.read_lines(path):
        if line.startswith("{") and "__REALTIME_TIMESTAMP" in line:
            try:
                entry = json.loads(line)
                at = pd.Timestamp(int(entry["__REALTIME_TIMESTAMP"]), unit="us", tz="UTC")
            except (ValueError, TypeError, KeyError, RecursionError):
                continue
            line = f"{at.isoformat()} {entry.get('_HOSTNAME')} kernel: {entry.get('MESSAGE')}"
            line = line.replace("\n", " ")
        if not line[:1].isspace():
            head = line.rstrip()
        elif line.lstrip().startswith("NVRM:"):
            line = f"{head} {line.lstrip()}"
        yield number, line.rstrip()


def _rows(path: Any) -> files.Rows:
    """All lines: what is before the Xid, its number and GPU, and whether one began anew."""
    found, torn = {}, []
    for number, line in _lines(path):
        match = _LINE.search(line)
        if match is None:
            torn += [number] if "NVRM: Xid" in line else []
            again = bool(_AGAIN.search(line)) and not _NOT_YET.search(line)
            found[number] = line[:FRONT], "", "", again, False
            continue
        xid = match["xid"] or (f"s{match['sxid']}" if match["sxid"] else "79")
        part = match["lost"] or match["gpu"] or match["switch"]
        gpu = part and part.split(".")[0]
        again = "to 0x0 (None)" in line  # Xid 154: nothing is left to do
        found[number] = line[: match.start()], xid, gpu, again, bool(_HARMLESS.search(line))
    table = pd.DataFrame.from_dict(
        found, orient="index", columns=["front", "xid", "gpu", "again", "harmless"]
    )
    return files.Rows(path, table, int((table["xid"] == "").sum()), torn=tuple(torn))


def _fits(path: Any, **options: Any) -> files.Fit:
    """Whether a line tells of a GPU that failed, or another one has an Xid that is not whole."""
    fit = files.has_line(path, "", _LINE)
    return fit if fit.share >= 1 else files.has_line(path, "NVRM: Xid", _LINE)


@files.dialect("failures", "xid", files.Form(_rows, _fits))
def _kernel(rows: files.Rows, *, states: Sequence[str] = (), silence: float = SILENCE) -> Found:
    """Xid lines of ``dmesg`` (also ``-T`` and ``--time-format iso``), ``journalctl -k`` and syslog.

    NVIDIA's Xid catalogue: 13 and 31, errors of a program; 43 and 45, its channels after them; 63,
    92, 94 and 154, reports of what was remapped, corrected, contained or is to be done; of 144 to
    150 and of a switch (SXid) the line says whether it is fatal.
    """
    require_real(silence=silence, at_least=0, at_most=LONGEST)
    require_instance((list, tuple), states=states)
    for state in states:
        if not re.fullmatch(r"s?\d+", str(state)):
            raise ValueError(f"states must be Xid numbers, got {state!r}")
    path, table = rows.path, rows.table
    given = times(table["front"], table["xid"] != "", path, need=True)
    table = table.assign(start=given.at, node=_nodes(table, path))
    cause = ("xid " + table["xid"]).str.replace("xid s", "sxid ")
    told = table.assign(cause=cause)[table["xid"] != ""]
    asked = told["xid"].isin([*map(str, states)])
    wanted = asked if states else ~told["xid"].isin(_NO_FAILURE) & ~told["harmless"]
    kept, other = told[wanted], told["xid"][~wanted].value_counts()
    hosts = {*table["node"]} - {Path(path).name}
    again = _again(table, {*kept["node"]}, hosts or {Path(path).name})
    found = outages(kept.rename(columns={"gpu": "part"}), again, silence)
    return Found(
        table=found.assign(end=np.nan),
        **given.window,
        nodes=told["node"].nunique(),
        levels={cause: level(cause) or "gpu" for cause in found["cause"]},
        notes={
            **incidents_told(len(kept), found, silence),
            "left out: {} lines without an Xid": rows.passed,
            "left out: {}, whole Xids are missing": rows.unread,
            "left out: {}": ", ".join(f"{n} lines of Xid {xid}" for xid, n in other.items()),
            "of these {} lines call themselves not fatal, or are data": (
                told["harmless"] & ~wanted
            ).sum(),
            "no line names a host: all are of one node": bool(len(told))
            and (told["node"] == Path(path).name).all(),
            "the lines give no year: each is taken to follow the one above within months": not (
                given.window["years"]
            ),
        },
    )


def _again(table: pd.DataFrame, nodes: set[str], hosts: set[str]) -> pd.DataFrame:
    """When nodes began anew, whoever says so; a line without a time is as old as the next one."""
    found = table.assign(start=table["start"].bfill())[table["again"]].dropna(subset="start")
    only = min(hosts) if len(hosts) == 1 else ""
    named = [
        next((word for word in front.replace(":", " ").split() if word in nodes), only)
        for front in found["front"]
    ]
    return found.assign(node=named)


def _nodes(table: pd.DataFrame, path: Any) -> pd.Series:
    """The host of each line, that of the file where lines name none."""
    hosts = table["front"].str.extract(_HOST)
    return hosts[0].fillna(hosts[1]).fillna(Path(path).name)
