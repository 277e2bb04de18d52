"""What stragglers cost a recorded run: operations of every worker, replayed with other durations.

A worker does one thing after another, in the order of the trace; sends and receives that it posts
together end when the last of them does. A transfer lasts from the moment at which all its partners
are there.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from os import PathLike
from typing import Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from relparallel._checks import require_choice
from relparallel.training.log_files import read_table

_COLUMNS: Final = ("dp_rank", "stage", "step", "optype", "start_ts", "duration", "seq_id")
_PARTNERS: Final = {
    "params-all-gather": ("stage",),
    "grads-reduce-scatter": ("stage",),
    "embedding-grads-all-reduce": ("dp_rank",),
    "optimizer-clip-main-grad": (),
}
"""What the workers of a collective have in common."""
_OPERATIONS: Final = (
    *_PARTNERS,
    "layernorm-grads-all-reduce",
    "optimizer",
    "gc",
    *(f"{way}-{what}" for way in ("forward", "backward") for what in ("compute", "send", "recv")),
)
_TOGETHER: Final = 1e-9  # operations are posted together if they start this close [s]


@dataclass(frozen=True, kw_only=True, eq=False)
class StragglerTrace:
    """Operations of a run: a row each, with ``kind``, ``group`` of partners and own ``seconds``."""

    frame: pd.DataFrame

    @property
    def step_time(self) -> float:
        """Mean time of a step as recorded [s]."""
        steps = self.frame.groupby("step")
        return float((steps["end"].max() - steps["start_ts"].min()).mean())

    @cached_property
    def without_delays(self) -> float:
        """Mean time of a step if operations started as soon as they could [s]."""
        return self._replayed(self.frame["seconds"].to_numpy())

    @cached_property
    def typical(self) -> NDArray[np.float64]:
        """Typical duration of every operation: its kind's mean for computing, median for others."""
        kinds = self.frame.groupby("kind")["seconds"]
        computing = self.frame["kind"].str.endswith("compute").to_numpy()
        return np.where(computing, kinds.transform("mean"), kinds.transform("median"))

    @cached_property
    def ideal(self) -> float:
        """Mean time of a step if every operation took its typical time [s]."""
        return self._replayed(self.typical)

    @property
    def slowdown(self) -> float:
        """Time of a step over that without stragglers, delays of launches apart."""
        return self.without_delays / self.ideal

    def what_if(self, part: str) -> pd.Series:
        """Slowdown left if only the operations of one stage, dp_rank or kind are as recorded."""
        require_choice(("stage", "dp_rank", "kind"), part=part)
        recorded, column = self.frame["seconds"].to_numpy(), self.frame[part].to_numpy()
        kept = {
            value: self._replayed(np.where(column == value, recorded, self.typical)) / self.ideal
            for value in np.unique(column)
        }
        return pd.Series(kept, name="slowdown").rename_axis(part)

    def _replayed(self, seconds: NDArray[np.float64]) -> float:
        """Mean time of a step with other durations."""
        return float(np.mean([_replay(posts, groups, seconds) for posts, groups in self._steps]))

    @cached_property
    def _steps(self) -> list[tuple[list[list[list[int]]], dict[int, list[int]]]]:
        """Of every step: what each worker posts, in order, and the partners of every operation."""
        return [
            (
                list(_posts(rows)),
                {
                    place: list(same)
                    for same in rows.groupby("group").groups.values()
                    for place in same
                },
            )
            for _, rows in self.frame.groupby("step")
        ]


def read_straggler_trace(path: str | PathLike[str]) -> StragglerTrace:
    r"""A trace of the operations of every worker, from a CSV file, also compressed.

    Columns dp_rank, stage, step, optype, start_ts, duration [s] and seq_id (number among the
    operations of the kind, step and worker). Seconds of a transfer are those after its last partner
    has arrived. Lin et al., "Understanding Stragglers in Large Model Training Using What-if
    Analysis", OSDI 2025: means of computing and medians of communication as typical durations;
    slowdown S.

    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "trace.csv"
    >>> head = "dp_rank,stage,step,optype,start_ts,duration,seq_id\n"
    >>> _ = path.write_text(head + "0,0,0,forward-compute,0,1,0\n1,0,0,forward-compute,0,3,0\n"
    ...     "0,0,0,grads-reduce-scatter,1,3,0\n1,0,0,grads-reduce-scatter,3,1,0\n")
    >>> trace = read_straggler_trace(path)
    >>> trace.without_delays, trace.ideal
    (4.0, 3.0)
    """
    frame = read_table(path, _COLUMNS)[list(_COLUMNS)].reset_index(drop=True)
    numbers = frame.columns.drop("optype")
    frame[numbers] = frame[numbers].apply(pd.to_numeric)
    if not frame["optype"].isin(_OPERATIONS).all():
        raise ValueError(f"{path} must hold operations of {', '.join(_OPERATIONS)}")
    if frame.duplicated(["dp_rank", "stage", "step", "seq_id", "optype"]).any():
        raise ValueError(f"{path} must hold every operation once")
    frame["end"] = frame["start_ts"] + frame["duration"]
    frame["kind"] = frame["optype"].str.replace(r"-(send|recv)$", "-pp-comm", regex=True)
    frame["group"] = pd.factorize(
        pd.Series([_group(row) for row in frame.itertuples()], dtype=object)
    )[0]
    groups = frame.groupby("group")
    paired = frame["kind"].str.endswith("pp-comm")
    finish = groups["end"].transform("min").where(paired, groups["end"].transform("max"))
    frame["seconds"] = (finish - groups["start_ts"].transform("max")).clip(lower=0.0)
    return StragglerTrace(frame=frame)


def _group(row: Any) -> Any:
    """Operations that are one: a send with its receive, the ranks of a collective, or one alone."""
    if row.kind.endswith("pp-comm"):
        back = 1 if row.optype.startswith("forward") else -1
        sender = row.stage - back * row.optype.endswith("recv")
        return (row.step, row.kind, row.dp_rank, sender, row.seq_id)
    if row.optype in _PARTNERS:
        return (
            row.step,
            row.optype,
            row.seq_id,
            *(getattr(row, name) for name in _PARTNERS[row.optype]),
        )
    return row.Index


def _posts(rows: pd.DataFrame) -> Iterator[list[list[int]]]:
    """For each worker the operations of a step in order, those posted together in one list."""
    for _, own in rows.groupby(["dp_rank", "stage"]):
        own = own.sort_values("start_ts", kind="stable")
        posts: list[list[int]] = []
        last = -np.inf
        for place, start, kind in zip(own.index, own["start_ts"], own["kind"], strict=True):
            if kind.endswith("pp-comm") and start - last < _TOGETHER:
                posts[-1].append(place)
            else:
                posts.append([place])
            last = start
        yield posts


def _replay(
    posts: list[list[list[int]]], partners: dict[int, list[int]], seconds: NDArray[np.float64]
) -> float:
    """End of step: a post ends when its operations do, each its seconds after the last partner."""
    clock, place = [0.0] * len(posts), [0] * len(posts)
    begun: dict[int, float] = {}
    moved = True
    while moved:
        moved = False
        for worker, own in enumerate(posts):
            while place[worker] < len(own):
                post = own[place[worker]]
                for one in post:
                    begun.setdefault(one, clock[worker])
                if not all(other in begun for one in post for other in partners[one]):
                    break
                clock[worker] = max(
                    max(begun[other] for other in partners[one]) + seconds[one] for one in post
                )
                place[worker] += 1
                moved = True
    stuck = next((w for w, own in enumerate(posts) if place[w] < len(own)), None)
    if stuck is not None:
        raise ValueError(
            f"path must hold every partner of an operation, got worker {stuck} waiting for ever"
        )
    return max(clock)
