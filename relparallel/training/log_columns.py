"""Columns of a failure log and of records: what cannot be true is refused with its row."""

from __future__ import annotations

from numbers import Real
from typing import Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from relparallel._checks import require_indices, require_instance, require_int, require_real
from relparallel.training._arguments import LONGEST

OVERLAPS: Final = ("refuse", "merge", "keep")
COLUMNS: Final = ("node", "start", "end")
Texts = NDArray[np.str_]
Times = NDArray[np.float64]


def overlapping(table: pd.DataFrame, overlaps: str) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """Refuse, merge or keep failures of nodes still down; ``table`` is in order of time."""
    latest = table.groupby("node")["end"].cummax().groupby(table["node"]).shift()
    # also where repairs take no time
    again = table["start"] == table.groupby("node")["start"].shift()
    inside = ((table["start"] < latest) | again).to_numpy()
    if not (many := int(inside.sum())):
        return table, ()
    if overlaps == "refuse":
        first = int(inside.argmax())
        row, number = table.iloc[first], table.index.to_numpy()[first] + 1
        raise ValueError(
            f"start must not lie inside an earlier repair of the same node, got {row['start']:g} s "
            "in row "
            f"{number} (node {row['node']}), and {many - 1} more such rows; "
            "overlaps='merge' makes them one repair, 'keep' keeps them"
        )
    if overlaps == "keep":
        return table, (f"{many} repairs overlap an earlier one of the same node and are kept",)
    repair = table.assign(repair=~inside).groupby("node")["repair"].cumsum()
    grouped = table.assign(repair=repair).groupby(["node", "repair"], sort=False)
    ends = grouped[["end", "resumed"]].agg("max", skipna=False)
    merged = grouped[["start", "cause", "incident"]].first().join(ends)
    merged["still"] = grouped["still"].any() & merged["end"].isna()
    merged = merged.reset_index().sort_values(["start", "end"])
    return merged, (f"{many} rows are merged into an earlier repair",)


def texts(**named: Any) -> Texts:
    """A column of text; anything else is refused by name."""
    ((name, value),) = named.items()
    if isinstance(value, (list, tuple)) and all(isinstance(entry, str) for entry in value):
        value = np.array(value, dtype=np.str_)
    if not isinstance(value, np.ndarray) or value.dtype.kind != "U" or value.ndim != 1:
        raise TypeError(f"{name} must be a column of text, got {value!r:.80}")
    return value


def others(many: int, *, resumed: Any, incident: Any, still: Any) -> dict[str, Any]:
    """Columns that a log may lack: no job is known to be back, and every row is an event."""
    down = np.zeros(many, dtype=np.bool_) if still is None else np.asarray(still)
    if down.dtype != np.bool_ or down.ndim != 1:
        raise TypeError(f"still must be a column of True and False, got {still!r:.80}")
    return {
        "resumed": np.full(many, np.nan) if resumed is None else times(True, resumed=resumed),
        "incident": np.arange(many) if incident is None else require_indices("incident", incident),
        "still": down,
    }


def possible(table: pd.DataFrame) -> None:
    """Refuse rows that cannot be."""
    start, end = table["start"], table["end"]
    faults = {
        "node must have a name in every row, got ''": table["node"] == "",
        "start must hold times >= 0, got {start:g} s": start < 0,
        "end must not lie before start, got start {start:g} s and end {end:g} s": end < start,
        "resumed must not lie before start, got start {start:g} s and resumed {resumed:g} s": table[
            "resumed"
        ]
        < start,
        "still must be of a row whose end is not known, got end {end:g} s": table["still"]
        & end.notna(),
    }
    for said, bad in faults.items():
        if bad.any():
            row = int(bad.to_numpy().argmax())
            told = said.format_map(table.iloc[row])
            raise ValueError(
                f"{told} in row {row + 1} (node {table['node'].iloc[row]}), and {bad.sum() - 1} "
                "more such rows"
            )


def times(open_too: bool = False, **named: Any) -> Times:
    """A column of times, NaN for what is open."""
    ((name, value),) = named.items()
    given = np.asarray(value)
    if given.shape == (0,):
        return np.zeros(0)
    blank = np.isnan(given) if open_too and given.dtype.kind == "f" else np.False_
    checked: dict[str, Any] = {name: np.where(blank, 0.0, given)} if blank.any() else named
    array: Times = require_real(at_least=-LONGEST, at_most=LONGEST, **checked)
    if np.ndim(array) != 1:
        raise ValueError(
            f"{name} must be a column of times, got shape {np.shape(array)}: {value!r:.80}"
        )
    return np.where(blank, np.nan, array)


def check_records(records: pd.DataFrame, nodes: int) -> pd.DataFrame:
    """Refuse records that cannot be replayed; the row is named by its index."""
    require_instance(pd.DataFrame, records=records)
    require_int(nodes=nodes, at_least=1)
    if missing := [name for name in COLUMNS if name not in records]:
        raise ValueError(
            f"records must have columns {', '.join(COLUMNS)}, got none called {missing[0]!r}"
        )
    if records.columns.duplicated().any():
        twice = records.columns[records.columns.duplicated()][0]
        raise ValueError(f"records must have every column once, got {twice!r} twice")
    table = records[list(COLUMNS)].map(_number).astype(np.float64)
    _refuse_row(records, table.isna().any(axis=1) | (table.abs() == np.inf).any(axis=1), "numbers")
    _refuse_row(records, ~table["node"].isin(range(nodes)), f"nodes in 0 … {nodes - 1}")
    _refuse_row(records, table["start"] < 0, "starts >= 0")
    _refuse_row(records, table["end"] < table["start"], "an end not before the start")
    order = table.reset_index(drop=True).sort_values(["node", "start"], kind="stable")
    before = order.groupby("node")["end"].shift()
    _refuse_row(
        records, (order["start"] < before).sort_index(), "repairs of a node that do not overlap"
    )
    return records


def _number(entry: Any) -> float:
    """The number as a float, NaN for anything else."""
    return (
        float(entry)
        if isinstance(entry, Real) and not isinstance(entry, (bool, np.bool_))
        else np.nan
    )


def _refuse_row(records: pd.DataFrame, bad: pd.Series, wanted: str) -> None:
    """Name the first bad row."""
    if bad.any():
        row = int(bad.to_numpy().argmax())
        label, given = records.index.tolist()[row], records.iloc[row].to_dict()
        raise ValueError(f"records must have {wanted}, got row {label!r}: {given}")
