"""Recorded failures: which node was down from when until when."""

from __future__ import annotations

from numbers import Real
from typing import TYPE_CHECKING

import numpy as np

from relparallel._checks import require_instance, require_int

if TYPE_CHECKING:
    import pandas as pd

COLUMNS = ("node", "start", "end")


def check_records(records: pd.DataFrame, nodes: int) -> pd.DataFrame:
    """Refuse records that cannot be replayed; the row is named by its index."""
    import pandas as pd

    require_instance(pd.DataFrame, records=records)
    require_int(nodes=nodes, at_least=1)
    if missing := [name for name in COLUMNS if name not in records]:
        raise ValueError(
            f"records must have the columns {', '.join(COLUMNS)}, got none called {missing[0]!r}"
        )
    if records.columns.duplicated().any():
        twice = records.columns[records.columns.duplicated()][0]
        raise ValueError(f"records must have every column once, got {twice!r} twice")
    table = records[list(COLUMNS)].apply(_numbers)
    _refuse(records, table.isna().any(axis=1) | (table.abs() == np.inf).any(axis=1), "numbers")
    _refuse(records, ~table["node"].isin(range(nodes)), f"nodes in 0 … {nodes - 1}")
    _refuse(records, table["start"] < 0, "starts >= 0")
    _refuse(records, table["end"] <= table["start"], "an end after the start")
    order = table.reset_index(drop=True).sort_values(["node", "start"], kind="stable")
    before = order.groupby("node")["end"].shift()
    _refuse(records, (order["start"] < before).sort_index(), "repairs of a node that do not overlap")
    return records


def _numbers(column: pd.Series) -> pd.Series:
    """The same numbers as float64, NaN for anything else."""
    import pandas as pd

    real = column.map(lambda entry: isinstance(entry, Real) and not isinstance(entry, (bool, np.bool_)))
    kept = column.astype(object).where(real.to_numpy(dtype=bool), np.nan)
    return pd.to_numeric(kept, errors="coerce").astype(np.float64)


def _refuse(records: pd.DataFrame, bad: pd.Series, wanted: str) -> None:
    """Name the first bad row."""
    if bad.any():
        row = int(bad.to_numpy().argmax())
        label, given = records.index.tolist()[row], records.iloc[row].to_dict()
        raise ValueError(f"records must have {wanted}, got row {label!r}: {given}")
