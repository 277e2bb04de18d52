"""Xid lines of the kernel log: GPUs that failed, one incident however many lines tell of it."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import numpy as np

from relparallel._checks import require_instance, require_real
from relparallel.training import log_files as files
from relparallel.training._arguments import LONGEST
from relparallel.training.incidents import SILENCE, level, outages, told as incidents_told
from relparallel.training.line_times import stamped
from relparallel.training.machine_logs import Found

_NO_FAILURE: Final = ("13", "31", "43", "45", "63", "92", "94", "154")
_GPU: Final = r"(?P<part>[0-9a-fA-F:]+)"
_NOT_YET: Final = "(?i:requir|need|fail|pending|cannot|not |unable|error|request)"
_LOST: Final = "fallen off the bus"
_LINES: Final = {  # words of a line, and its pattern; without a number a GPU or its node began anew
    "NVRM: Xid": rf"Xid \((?:PCI:)?{_GPU}[^)]*\): (?P<xid>\d+)\b(?P<rest>.*)",
    ": SXid": r"nvidia-(?P<part>nvswitch\d+): SXid \([^)]*\): (?P<sxid>\d+)\b(?P<rest>.*)",
    _LOST: rf"NVRM:.*\bGPU (?:at )?(?:PCI:)?{_GPU}\b.* fallen|NVRM: fallen",
    "Linux version": r"Linux version \d",
    "-- Boot": r"-- Boot\b",
    "-- Reboot": "",
    "reboot: Restarting": "",
    "NVRM: loading NVIDIA": "",
    "eset": rf"^(?!.*{_NOT_YET}).*\bGPU\b.*\b[Rr]eset\b",
}
# lines of data follow that of a switch that says how severe it is
_HARMLESS: Final = r"(?i)\bnon-?fatal\b|^, (?:Severity 0|Data)\b"
_HOST: Final = r"(?:(\S+) kernel\S*?(?::| -)|^(?!kern)([\w.-]+): +(?:kern: \w+: +)?\[)"


@files.dialect("failures", "xid", files.lines(_LINES))
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
    table, name = rows.table, Path(rows.path).name
    number = (
        table["xid"]
        .mask(table["sxid"] != "", "s" + table["sxid"])
        .mask(table["said"] == _LOST, "79")
    )
    given = stamped(rows._replace(table=table[number != ""]), every=True)
    hosts = given.front.str.extract(_HOST).bfill(axis=1)[0]
    table = table.assign(
        xid=number,
        start=given.at[table.index],
        part=table["part"].mask(table["part"] == ""),
        node=hosts.fillna(name)[table.index],
        cause=("xid " + number).str.replace("xid s", "sxid "),
        harmless=table["rest"].str.contains(_HARMLESS),
    )
    told = table[number != ""]
    wanted = ~told["xid"].isin(_NO_FAILURE) & ~told["harmless"]
    wanted = told["xid"].isin([*map(str, states)]) if states else wanted
    kept, other = told[wanted], told["xid"][~wanted].value_counts()
    # a line without a time is as old as the next one; Xid 154 tells that nothing is left to do
    again = table.assign(start=given.at.bfill()[table.index])[
        (number == "") | table["rest"].str.contains("to 0x0 (None)", regex=False)
    ].dropna(subset="start")
    only, nodes = hosts.dropna().unique(), {*kept["node"]}
    usual = name if not len(only) else only[0] if len(only) == 1 else ""
    words = again["front"].str.replace(":", " ").str.split()
    again = again.assign(node=[next((w for w in one if w in nodes), usual) for one in words])
    found = outages(kept, again, silence)
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
            and hosts[told.index].isna().all(),
            "the lines give no year: each is taken to follow the one above within months": not (
                given.window["years"]
            ),
        },
    )
