"""Failure records of real machines: what failed, where, when, and how long it was down.

A record that cannot be true is refused with its row named. What is merged or replaced is counted in
`FailureLog.notes`; no row is ever left out.
"""

from __future__ import annotations

from dataclasses import replace
from numbers import Real
from typing import Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from relparallel._checks import choice, record, require_choice, require_instance, require_int, require_real
from relparallel.training._arguments import LONGEST
from relparallel.training.failures import ComponentClass
from relparallel.units import DAY

OVERLAPS: Final = ("refuse", "merge", "keep")
COLUMNS: Final = ("node", "start", "end")
Texts = NDArray[np.str_]
Times = NDArray[np.float64]


@record(eq=False)
class FailureLog:
    """Failures of a machine in the order in which they began.

    Parameters
    ----------
    node, cause : array of str [n]
        What failed, and the class of each failure.
    start, end : array [n]
        When it failed and when it was back [s since the watch began].
    population, finish : int, float, optional
        Nodes that were watched, and the end of the watch [s]; by default the last failure.
    overlaps : {"refuse", "merge", "keep"}
        What becomes of a failure of a node that is still down: refused, one repair with the earlier one, or
        kept.
    notes : tuple of str
        What a reader changed, with the number of rows.

    Examples
    --------
    >>> rows = {"node": ["a", "b"], "start": [5.0, 9.0], "end": [6.0, 9.5], "cause": ["gpu", "nic"]}
    >>> log = FailureLog(**rows, population=4)
    >>> log.gaps().tolist(), log.repairs.tolist()
    ([4.0], [1.0, 0.5])
    """

    node: Texts
    start: Times
    end: Times
    cause: Texts
    population: int
    finish: float | None = None
    overlaps: str = choice(OVERLAPS, default="refuse")
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        node, cause = texts(node=self.node), texts(cause=self.cause)
        start, end = (_times(**{name: getattr(self, name)}) for name in ("start", "end"))
        for name, column in (("start", start), ("end", end), ("cause", cause)):
            if len(column) != len(node):
                raise ValueError(f"{name} must have as many rows as node, {len(node)}, got {len(column)}")
        notes = require_instance(tuple, notes=self.notes)
        if (nameless := node == "").any():
            raise ValueError(f"node must have a name in every row, got '' in row {nameless.argmax() + 1}")
        if (bad := end < start).any():
            i, more = bad.argmax(), bad.sum() - 1
            raise ValueError(
                f"end must not lie before start, got start {start[i]:g} s and end {end[i]:g} s in row "
                f"{i + 1} (node {node[i]}), and {more} more such rows"
            )
        order = np.lexsort((end, start))
        table = pd.DataFrame({"node": node, "start": start, "end": end, "cause": cause}).iloc[order]
        table, merged = _overlapping(table, self.overlaps)
        failed = int(table["node"].nunique())
        require_int(population=self.population, at_least=max(failed, 1), at_most=10**9)
        last = float(table["start"].iloc[-1])
        finish = last
        if self.finish is not None:
            finish = require_real(finish=self.finish, at_least=last, at_most=1e18)
        for name, kind in (("node", np.str_), ("cause", np.str_), ("start", np.float64), ("end", np.float64)):
            object.__setattr__(self, name, table[name].to_numpy(dtype=kind))
        object.__setattr__(self, "finish", finish)
        object.__setattr__(self, "notes", notes + merged)

    @property
    def repairs(self) -> Times:
        """Time to repair of every failure [s]."""
        return np.asarray(self.end - self.start)

    @property
    def rate(self) -> float:
        """Failures per node and second, from the first one to the end of the watch."""
        watched = self.watched - float(self.start[0])
        if watched <= 0:
            raise ValueError(f"start must hold failures at two moments, got {len(self.start)} row(s)")
        return len(self.start) / (self.population * watched)

    @property
    def watched(self) -> float:
        """End of the watch [s]."""
        return float(self.start[-1] if self.finish is None else self.finish)

    @property
    def censored(self) -> float:
        """Time since the last failure [s]: a life that had not ended when the watch did."""
        return self.watched - float(self.start[-1])

    def gaps(self) -> Times:
        """Return the times between failures [s]; failures of one moment count as one."""
        return np.diff(np.unique(self.start))

    def classes(self) -> tuple[ComponentClass, ...]:
        """Classes of a failure model: nodes that stop, at the rate and with the mean repair of each cause."""
        return tuple(
            ComponentClass(
                name=str(cause), level="node", rate=self.rate * int(hit.sum()) / len(hit),
                repair=float(self.repairs[hit].mean()),
            )
            for cause in np.unique(self.cause)
            for hit in [self.cause == cause]
        )  # fmt: skip

    def select(self, cause: str) -> FailureLog:
        """Return the failures of one class, watched as long."""
        require_choice(tuple(np.unique(self.cause).tolist()), cause=cause)
        chosen = self.cause == cause
        columns = {name: getattr(self, name)[chosen] for name in ("node", "start", "end", "cause")}
        return replace(self, **columns)

    def records(self) -> pd.DataFrame:
        """Return every failure as a record for `simulate`: nodes from 0 in the order of their names."""
        number = np.unique(self.node, return_inverse=True)[1]
        return pd.DataFrame({"node": number, "start": self.start, "end": self.end})

    def to_frame(self) -> pd.DataFrame:
        """Return one row per class: failures, share, failures per 1000 node-days, mean and median repair [s].

        The most frequent class first.
        """
        groups = pd.Series(self.repairs).groupby(self.cause)
        table = groups.agg(failures="size", mean_repair="mean", median_repair="median")
        share = table["failures"] / len(self.start)
        table = table.assign(share=share, per_1000_node_days=1000 * DAY * self.rate * share)
        table = table.rename_axis("cause").reset_index()
        order = np.argsort(-table["failures"].to_numpy(), kind="stable")
        ordered: pd.DataFrame = table.iloc[order].reset_index(drop=True)
        return ordered


def _overlapping(table: pd.DataFrame, overlaps: str) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """Refuse, merge or keep failures of nodes that are still down; ``table`` is in order of time."""
    latest = table.groupby("node")["end"].cummax().groupby(table["node"]).shift()
    again = table["start"] == table.groupby("node")["start"].shift()  # also where repairs take no time
    inside = ((table["start"] < latest) | again).to_numpy()
    if not inside.any():
        return table, ()
    if overlaps == "refuse":
        first = int(inside.argmax())
        row, number = table.iloc[first], table.index.to_numpy()[first] + 1
        raise ValueError(
            f"start must not lie inside an earlier repair of the same node, got {row['start']:g} s in row "
            f"{number} (node {row['node']}), and {int(inside.sum()) - 1} more such rows"
        )
    found = int(inside.sum())
    if overlaps == "keep":
        return table, (f"{found} repairs overlap an earlier one of the same node and are kept",)
    repair = table.assign(repair=~inside).groupby("node")["repair"].cumsum()
    grouped = table.assign(repair=repair).groupby(["node", "repair"], sort=False)
    merged = grouped.agg(start=("start", "first"), end=("end", "max"), cause=("cause", "first")).reset_index()
    return merged.sort_values(["start", "end"]), (f"{found} rows are merged into an earlier repair",)


def texts(**named: Any) -> Texts:
    """A column of text; anything else is refused by name."""
    ((name, value),) = named.items()
    whole = isinstance(value, (list, tuple)) and all(isinstance(entry, str) for entry in value)
    array = value if isinstance(value, np.ndarray) else np.array(value, dtype=np.str_) if whole else None
    if array is None or array.dtype.kind != "U" or array.ndim != 1 or array.size == 0:
        raise TypeError(f"{name} must be a column of text with at least one row, got {value!r:.80}")
    return array


def _times(**named: Any) -> Times:
    """A column of times; negative ones are refused with their row."""
    ((name, value),) = named.items()
    array: Times = require_real(at_least=-LONGEST, at_most=LONGEST, **named)
    if np.ndim(array) != 1:
        raise ValueError(f"{name} must be a column of times, got shape {np.shape(array)}: {value!r:.80}")
    if (bad := array < 0).any():
        row = int(bad.argmax())
        raise ValueError(f"{name} must hold times >= 0, got {array[row]:g} s in row {row + 1}")
    return array


def check_records(records: pd.DataFrame, nodes: int) -> pd.DataFrame:
    """Refuse records that cannot be replayed; the row is named by its index."""
    require_instance(pd.DataFrame, records=records)
    require_int(nodes=nodes, at_least=1)
    if missing := [name for name in COLUMNS if name not in records]:
        raise ValueError(f"records must have columns {', '.join(COLUMNS)}, got none called {missing[0]!r}")
    if records.columns.duplicated().any():
        twice = records.columns[records.columns.duplicated()][0]
        raise ValueError(f"records must have every column once, got {twice!r} twice")
    table = records[list(COLUMNS)].map(_number).astype(np.float64)
    _refuse_row(records, table.isna().any(axis=1) | (table.abs() == np.inf).any(axis=1), "numbers")
    _refuse_row(records, ~table["node"].isin(range(nodes)), f"nodes in 0 … {nodes - 1}")
    _refuse_row(records, table["start"] < 0, "starts >= 0")
    _refuse_row(records, table["end"] <= table["start"], "an end after the start")
    order = table.reset_index(drop=True).sort_values(["node", "start"], kind="stable")
    before = order.groupby("node")["end"].shift()
    _refuse_row(records, (order["start"] < before).sort_index(), "repairs of a node that do not overlap")
    return records


def _number(entry: Any) -> float:
    """The number as a float, NaN for anything else."""
    return float(entry) if isinstance(entry, Real) and not isinstance(entry, (bool, np.bool_)) else np.nan


def _refuse_row(records: pd.DataFrame, bad: pd.Series, wanted: str) -> None:
    """Name the first bad row."""
    if bad.any():
        row = int(bad.to_numpy().argmax())
        label, given = records.index.tolist()[row], records.iloc[row].to_dict()
        raise ValueError(f"records must have {wanted}, got row {label!r}: {given}")
