"""What the readers of the logs of machines share: what they found, runs on lists of nodes.

How the rows of a dialect are written stands in its entry: columns of a table, or a mark and a
pattern of lines. Each reader counts once what its log says twice, and says what it left out.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import pandas as pd
from ClusterShell.NodeSet import NodeSet, NodeSetException

from relparallel.training import log_files as files


class Found(NamedTuple):
    """What a reader found; times as the log has them.

    The table has node, start, end and cause of every outage, indexed by the lines of the file, and
    where the log tells them resumed, incident and still, as in `FailureLog`.
    """

    table: pd.DataFrame
    origin: float = 0.0  # time that becomes 0: where the window began, if it has an end
    finish: float | None = None
    dated: bool = True  # the times are dates
    overlaps: str = "keep"
    nodes: int = 0  # that the log names
    notes: Mapping[str, Any] = {}  # what was left out, with its number; nothing where that is 0
    levels: Mapping[str, str] = {}  # of causes, where the log tells them
    years: bool = True  # the dates have a year


NEVER: Final = ("Unknown", "None", "None assigned", "(null)", "")


def spans(
    table: pd.DataFrame, names: Sequence[str], path: Any, never: Sequence[str]
) -> pd.DataFrame:
    """The table with columns begun, ended and nodes, of those with these names."""
    start, end, nodes = (table[name].astype(str) for name in names)
    end = end.where(~end.isin(never), "")
    files.require_zones(pd.concat([start, end], axis=1), path)
    return table.assign(
        begun=files.seconds(start, names[0], "iso", path),
        ended=files.seconds(end, names[1], "iso", path, blank=True),
        nodes=node_lists(nodes, path),
    )


def window(table: pd.DataFrame) -> dict[str, Any]:
    """When the log of such a table begins and ends, and how many nodes it names."""
    return {
        "origin": float(table["begun"].min()),
        "finish": float(np.nanmax(table[["begun", "ended"]])),
        "nodes": table["nodes"].explode().nunique(),
    }


def node_lists(lists: pd.Series, path: Any) -> pd.Series:
    """Node names of lists as Slurm folds them, in their order; none where none was assigned."""
    found: list[list[str]] = []
    for row, text in enumerate(lists):
        try:
            found.append([] if text in NEVER else list(NodeSet(text)))
        except NodeSetException:
            raise ValueError(
                f"path must hold lists of nodes, got {text!r:.60} in "
                f"{files.row_of(lists, row, path)}"
            ) from None
    return pd.Series(found, index=lists.index, dtype=object)
