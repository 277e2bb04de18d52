"""What claims read: derived tables, and what cost rows of parallelism say of model and strategy."""

from typing import Any

import pandas as pd

from relparallel import parallel, workload
from relparallel.published import Fact, data_folder

_SIZES = {
    "layers": "layers",
    "hidden": "h",
    "heads": "heads",
    "vocabulary": "vocab",
    "sequence": "s",
}


def derived(table: str) -> pd.DataFrame:
    """A table of results on data that are too large to ship."""
    return pd.read_csv(data_folder() / "derived" / f"{table}.csv")


def model_of(fact: Fact, **others: Any) -> workload.Transformer:
    """The model of a row; one that gives no vocabulary counts the layers only."""
    row: Any = {"heads": 1, "vocab": 1, **fact.inputs}
    sizes = {name: row[key] for name, key in _SIZES.items() if name not in others}
    return workload.Transformer(**sizes | others)


def strategy_of(fact: Fact, **others: Any) -> parallel.Strategy:
    """The strategy of a row."""
    row: Any = fact.inputs
    split = {
        "tensor": row["tp"],
        "pipeline": row["pp"],
        "data": row["dp"],
        "micro_batch": row["mbs"],
    }
    return parallel.Strategy(**split | others)
