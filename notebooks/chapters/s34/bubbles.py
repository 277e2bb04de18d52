"""Independent work that runs while a schedule waits: how much fits without delaying anything."""

from typing import NamedTuple

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from relparallel._checks import require_column, require_indices
from relparallel.parallel.timeline import Timeline


class Filling(NamedTuple):
    """Independent tasks in the gaps of a timeline.

    ``placed``: which fit, [tasks]; ``filled`` and ``idle``: seconds of each resource that they
    fill, and that were idle before; ``timeline``: with those that fit, of kind "extra" and numbered
    by ``item``.
    """

    placed: NDArray[np.bool_]
    filled: NDArray[np.float64]
    idle: NDArray[np.float64]
    timeline: Timeline


def fill_bubbles(timeline: Timeline, resource: ArrayLike, duration: ArrayLike) -> Filling:
    """As much independent work as fits into the gaps of a timeline, moving none of its tasks.

    ``resource`` and ``duration`` [s] are those of each independent task, which runs without a
    break; gaps lie between 0 and the makespan. No choice fills more seconds of any resource: a
    multiple subset sum problem for each, solved to optimality as an integer program (HiGHS; a gap
    may be overfilled by 1e-7 of the longest one). Osawa et al., "PipeFisher", MLSys 2023.

    >>> from relparallel.parallel import simulate_schedule
    >>> filling = fill_bubbles(simulate_schedule("gpipe", 3, 4), [0, 0, 1, 1, 2], [4.0, 2.0, 3.0, 4.0, 7.0])
    >>> filling.placed.tolist(), filling.filled.tolist()
    ([True, True, True, False, False], [6.0, 3.0, 0.0])
    """
    stage = require_indices("resource", resource, timeline.resources)
    seconds = require_column("duration", duration, stage.size, above=0)
    start = np.full(stage.size, np.nan)
    for row in range(timeline.resources):
        begin, length = _gaps(timeline, row)
        mine = np.flatnonzero(stage == row)
        if mine.size and begin.size:
            _place(start, mine, seconds[mine], begin, length)
    fits = ~np.isnan(start)
    filled = np.bincount(stage[fits], weights=seconds[fits], minlength=timeline.resources).astype(
        np.float64
    )
    idle = np.maximum(timeline.makespan - timeline.busy, 0.0)
    joined = _joined(timeline, stage[fits], start[fits], seconds[fits], np.flatnonzero(fits))
    return Filling(fits, filled, idle, joined)


def _gaps(timeline: Timeline, row: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Begin and length of the gaps of a resource."""
    mine = np.flatnonzero(timeline.resource == row)
    mine = mine[np.argsort(timeline.start[mine])]
    begin = np.r_[0.0, timeline.finish[mine]]
    length = np.r_[timeline.start[mine], timeline.makespan] - begin
    real = length > 1e-12 * timeline.makespan
    return begin[real], length[real]


def _place(
    start: NDArray[np.float64],
    mine: NDArray[np.int64],
    seconds: NDArray[np.float64],
    begin: NDArray[np.float64],
    length: NDArray[np.float64],
) -> None:
    """Set the starts of the tasks that fit, gap by gap."""
    sizes, kind, available = np.unique(seconds, return_inverse=True, return_counts=True)
    counts = _fullest(sizes, available, length)
    waiting = [list(mine[kind == k]) for k in range(sizes.size)]
    for gap, taken in enumerate(counts):
        clock = begin[gap]
        for k in np.flatnonzero(taken):
            for _ in range(taken[k]):
                start[waiting[k].pop(0)] = clock
                clock += sizes[k]


def _fullest(
    sizes: NDArray[np.float64], available: NDArray[np.int64], length: NDArray[np.float64]
) -> NDArray[np.int64]:
    """How many tasks of each size (column) to put into each gap (row)."""
    gaps, scale = length.size, length.max()
    each_gap = scipy.sparse.kron(scipy.sparse.eye_array(gaps), sizes[None] / scale)
    each_size = scipy.sparse.kron(np.ones((1, gaps)), scipy.sparse.eye_array(sizes.size))
    solution = scipy.optimize.milp(
        -np.tile(sizes / scale, gaps),
        options={"mip_rel_gap": 0.0},
        integrality=np.ones(gaps * sizes.size, dtype=np.int64),
        bounds=scipy.optimize.Bounds(0, np.tile(available, gaps)),
        constraints=scipy.optimize.LinearConstraint(
            scipy.sparse.vstack([each_gap, each_size]).tocsr(), ub=np.r_[length / scale, available]
        ),
    )
    counts: NDArray[np.int64] = np.rint(np.asarray(solution.x)).astype(np.int64)
    return counts.reshape(gaps, sizes.size)


def _joined(
    timeline: Timeline,
    stage: NDArray[np.int64],
    start: NDArray[np.float64],
    seconds: NDArray[np.float64],
    number: NDArray[np.int64],
) -> Timeline:
    """The timeline with the extra tasks."""
    none = np.zeros(stage.size)
    return Timeline(
        resources=timeline.resources,
        resource=np.r_[timeline.resource, stage],
        start=np.r_[timeline.start, start],
        duration=np.r_[timeline.duration, seconds],
        holding=np.r_[timeline.holding, none],
        kind=np.r_[timeline.kind, np.full(stage.size, "extra")],
        item=np.r_[timeline.item, number],
        part=np.r_[timeline.part, none.astype(np.int64)],
    )
