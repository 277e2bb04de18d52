"""Incidents of a log whose lines tell that something failed, and not when it was back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import pandas as pd

from relparallel.units import DAY, MINUTE

_WIDE: Final = ("nvlink", "switch", "rack", "job")
SILENCE: Final = 3 * MINUTE
TOGETHER: Final = 2.0  # s within which lines of several nodes tell of one event
_NVLINK: Final = ("sxid", "xid 74", *(f"xid {number}" for number in range(144, 151)))


def outages(
    lines: pd.DataFrame, again: pd.DataFrame, silence: float, together: float | None = TOGETHER
) -> pd.DataFrame:
    """One row for each node and incident: its first line, its cause, the number of the incident.

    Lines have node, start, cause and part, a GPU. A node fails anew after a silence [s] or where it
    began ``again``, by node and start; what several nodes tell within ``together`` [s] is one
    incident, by the first of its lines.
    """
    both = pd.concat([lines.assign(again=False), again.assign(again=True)])
    both = both.rename_axis("line").sort_values(["start", "line"], kind="stable")
    both["resets"] = both["again"].groupby(both["node"]).cumsum()
    told = both[~both["again"]]
    last = told.groupby("node")[["start", "resets"]].shift()
    new = ~(told["start"] - last["start"] <= silence) | (told["resets"] > last["resets"])
    keys = [told["node"].to_numpy(), new.groupby(told["node"]).cumsum().to_numpy()]
    groups = told.reset_index().groupby(keys, sort=False)
    found = groups[["line", "node", "start", "cause"]].first().set_index("line")
    parts = groups["part"].nunique().to_numpy()
    found = found.assign(parts=parts).sort_values("start", kind="stable")
    found["incident"] = np.arange(len(found))
    if together is not None:
        found["incident"] = (found["start"].diff() > together).cumsum()
    alike = found.groupby("incident")
    several = alike["node"].transform("size") > 1
    found["cause"] = alike["cause"].transform("first")
    found.loc[~several & (found["parts"] > 1), "cause"] += " on several GPUs"
    found.loc[several, "cause"] += " on several nodes"
    return found.drop(columns="parts")


def wide_events(table: pd.DataFrame, levels: Mapping[str, str]) -> Any:
    """Numbers of incidents of rows: one for rows of one cause and moment that takes several nodes."""
    wide = table["cause"].map(levels).isin(_WIDE)
    key = table["cause"] + table["start"].map(" {!r}".format)
    return pd.factorize(key.where(wide, pd.Series(range(len(table)), table.index).astype(str)))[0]


def level(cause: str) -> str | None:
    """What fails by the cause of an incident: several GPUs are a node, several nodes more."""
    if cause.endswith(" on several nodes"):
        links = cause.startswith(_NVLINK) or "nvlink" in cause.lower()
        return "nvlink" if links else "rack"
    return "node" if cause.endswith(" on several GPUs") or cause.startswith("sxid") else None


def told(lines: int, found: pd.DataFrame, silence: float) -> dict[str, Any]:
    """Of how many incidents so many lines tell, and why, for the notes."""
    many = found["incident"].nunique()
    soon = found.groupby(["node", "cause"])["start"].diff() < DAY
    return {
        "{} incidents follow one of their node and cause within a day: a longer silence= makes one "
        "of what repeats until it is repaired": soon.sum(),
        f"{{}} lines of what failed tell of {many} incidents: lines of a node belong to one until "
        f"{silence:g} s are silent or it was reset, those of several nodes within {TOGETHER:g} s "
        "too": lines * (lines > many),
    }
