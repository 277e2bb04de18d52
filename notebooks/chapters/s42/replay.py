"""What a recorded sequence of failures, or cluster size, would have done to a training job.

A checkpointed job lives through the gaps between recorded failures; an elastic one through the
sizes that a cluster of spot instances had. Nothing is drawn at random.
"""

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from relparallel.training._arguments import require_time
from relparallel.training.log_files import CLOCKS, read_rows

Times = NDArray[np.float64]


class TraceReplay(NamedTuple):
    """Where the time of a job went on a recorded trace, as shares of it that sum to 1."""

    interval: float  # work between two checkpoints [s]
    productive: float  # saved work
    checkpoint: float
    lost: float  # work that a failure undid
    restart: float


def replay_gaps(
    gaps: Sequence[float] | Times, interval: float, checkpoint: float, restart: float
) -> TraceReplay:
    """Run a job with checkpoints through recorded times between failures, positive [s].

    A gap g holds floor((g - R) / (W + C)) whole segments, none if g < R; the rest is lost (the
    accounting of Daly 2006 on whole segments, without his distribution of failures). O(n).
    """
    recorded = np.asarray(require_time(positive=True, gaps=gaps))
    standing = np.minimum(recorded, restart)
    segments = float(np.sum((recorded - standing) // (interval + checkpoint)))
    total = float(recorded.sum())
    productive, saving = segments * interval / total, segments * checkpoint / total
    waiting = float(standing.sum()) / total
    lost = max(0.0, 1 - productive - saving - waiting)
    return TraceReplay(float(interval), productive, saving, lost, waiting)


def best_replay(gaps: Sequence[float] | Times, checkpoint: float, restart: float) -> TraceReplay:
    """Replay at the checkpoint interval that would be best on a recorded trace: hindsight, exact.

    A gap holds its k-th segment while W <= (g - R)/k - C =: b. Saved work is W times the number of
    such bounds at or above W, so its maximum lies at a bound: the j-th largest one saves j b_j.
    There are at most sum(g)/C bounds; O(b log b) for b of them.
    """
    recorded = np.asarray(require_time(positive=True, gaps=gaps))
    room = recorded[recorded > restart + checkpoint] - restart
    most = np.ceil(room / checkpoint).astype(np.int64) - 1
    if not most.sum():
        raise ValueError(
            f"gaps must hold one longer than restart + checkpoint, got {recorded.max():g} s"
        )
    number = np.arange(most.sum()) - np.repeat(np.cumsum(most) - most, most) + 1
    bounds = np.sort(np.repeat(room, most) / number - checkpoint)[::-1]
    best = float(bounds[np.argmax(bounds * np.arange(1, len(bounds) + 1))])
    if best <= 0:
        raise ValueError(f"gaps must leave room for work, got a best interval of {best:g} s")
    # The bound itself: rounding must not push the last segment out of its gap.
    return replay_gaps(recorded, float(best * (1 - 1e-12)), checkpoint, restart)


class SpotTrace(NamedTuple):
    """Size of a cluster over time.

    Of several sizes at one moment the last one counts from there on; each step of them is a change.
    """

    time: Times  # moments of change [s], in order; the last one ends the trace
    size: NDArray[np.int64]  # nodes from this moment on

    @property
    def preemptions(self) -> int:
        """Steps at which the cluster lost nodes."""
        return int(np.count_nonzero(np.diff(self.size) < 0))

    @property
    def nodes_lost(self) -> int:
        """Nodes lost in all of them."""
        return int(-np.minimum(np.diff(self.size), 0).sum())

    @property
    def mean_size(self) -> float:
        """Mean number of nodes over the time of the trace."""
        whole = float(self.time[-1] - self.time[0])
        return float(np.diff(self.time) @ self.size[:-1] / whole if whole else self.size[-1])


def read_spot_trace(path: str | PathLike[str], clock: str = "s") -> SpotTrace:
    """Trace of the size of a cluster of spot instances: time and size, without a header.

    Times in a unit: s, min, h or d. Format of Thorpe et al., "Bamboo: Making Preemptible Instances
    Resilient for Affordable Training of Large DNNs", NSDI 2023.
    """
    time, size = read_rows(path).apply(pd.to_numeric).to_numpy(dtype=float).T
    if (np.diff(time) < 0).any() or (size < 0).any() or (size % 1 > 0).any():
        raise ValueError(f"{path} must hold times that never fall and whole numbers of nodes")
    return SpotTrace(time * CLOCKS[clock], size.astype(np.int64))


def replay_sizes(
    trace: SpotTrace,
    nodes: int,
    speeds: Mapping[str, Sequence[float] | Times],
    pause: Mapping[str, float] | None = None,
) -> pd.DataFrame:
    """Throughput of recovery policies on a trace of a cluster's size (Thorpe et al., section 6).

    ``speeds``: for each policy the share of full throughput with 0, 1, ... nodes missing
    (`Recovery.speed`); zero beyond the last entry. ``pause``: the standstill after a change of size
    [s], zero where not named; it ends early when the next change comes, and changes among sizes of
    at least ``nodes`` cost nothing. A row for each policy: throughput as share of that of the whole
    job all the time; throughput per node and time that the trace offers, in the same unit; share of
    time without progress, and in pauses.
    """
    standing = pause or {}
    if strange := set(standing) - set(speeds):
        raise ValueError(f"pause must name policies of speeds, got {', '.join(map(repr, strange))}")
    changed = np.diff(trace.time) > 0  # of several sizes at one moment the last one counts
    length, size = np.diff(trace.time)[changed], np.minimum(trace.size[:-1][changed], nodes)
    fresh = np.concatenate([[False], np.diff(size) != 0])
    rows = []
    for name, speed in speeds.items():
        shares = np.zeros(nodes + 1)
        shares[: len(speed)] = speed
        stopped = np.minimum(length, standing.get(name, 0.0)) * fresh
        rows.append(_spot_row(name, shares[nodes - size], length, stopped, size / nodes))
    return pd.DataFrame(rows)


def _spot_row(
    name: str, speed: Times, length: Times, stopped: Times, offered: Times
) -> dict[str, object]:
    """One policy on a trace."""
    done, total = float(speed @ (length - stopped)), float(length.sum())
    return {
        "policy": name,
        "throughput": done / total,
        "of offered": done / float(offered @ length) if offered.any() else 0.0,
        "without progress": float(length[speed == 0].sum()) / total,
        "in pauses": float(stopped[speed > 0].sum()) / total,
    }
