"""Pipeline schedules: rules that fix in which order every stage works through its micro-batches.

========  ==========================================  ======================
letter    meaning                                     argument
========  ==========================================  ======================
p         pipeline stages                             ``stages``
m         micro-batches                               ``micro_batches``
v         model chunks per stage                      ``virtual_stages``
========  ==========================================  ======================

Every rule here has the same shape: each stage starts with some forward passes (its warm-up), then alternates
one forward and one backward pass, then ends with the backward passes that are left. The rules differ in the
length of the warm-up only.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from relparallel._checks import require_choice, require_int
from relparallel.parallel._arguments import require_column, require_number
from relparallel.parallel.strategy import SCHEDULES
from relparallel.parallel.timeline import Timeline, simulate_timeline

__all__ = ["simulate_schedule"]

_MOST_PASSES: Final = 2**24  # more would not fit into memory
# Warm-up passes of the stage that has `behind` stages after it, of p, with v chunks.
_WARM_UP: Final[Mapping[str, Callable[[NDArray[np.int64], int, int], NDArray[np.int64] | float]]] = {
    "gpipe": lambda behind, p, v: np.inf,
    "1f1b": lambda behind, p, v: behind,
    "interleaved_1f1b": lambda behind, p, v: behind if v == 1 else 2 * behind + (v - 1) * p,
}


def simulate_schedule(
    name: str,
    stages: int,
    micro_batches: int,
    virtual_stages: int = 1,
    *,
    forward: ArrayLike = 1.0,
    backward: ArrayLike = 2.0,
    communication: float = 0.0,
) -> Timeline:
    """Run one iteration of a pipeline and return when every pass happens.

    Parameters
    ----------
    name : {"gpipe", "1f1b", "interleaved_1f1b"}
        The schedule.
    stages, micro_batches, virtual_stages : int
        p, m and v, each at least 1. Above v = 1 (interleaving only) p must divide m.
    forward, backward : float or array
        Seconds per micro-batch and stage, one number or shape (p,), above 0; a chunk takes 1/v of them.
    communication : float
        Seconds between the end of a pass and the start of the next one on another stage, at least 0;
        it delays and does not occupy the stages.

    Returns
    -------
    Timeline
        One task per stage, micro-batch, chunk and direction: ``kind`` "forward" or "backward", ``item`` the
        micro-batch, ``part`` the chunk. Its holdings count micro-batches in flight; a chunk is 1/v.

    Raises
    ------
    TypeError, ValueError
        If an argument is out of its range, ``virtual_stages`` does not fit the schedule, or p does not
        divide m where it must.

    Notes
    -----
    With equal stages and no communication time the bubble fraction is (p - 1)/(v m): the same for GPipe and
    1F1B. The peak in flight is that of `micro_batches_in_flight`. 2 p m v tasks, O(p m v log(p m v)) time.

    References
    ----------
    Huang et al., "GPipe", 2019. Narayanan et al., SC 2021, section 2.2, Figure 4.

    Examples
    --------
    >>> timeline = simulate_schedule("interleaved_1f1b", stages=8, micro_batches=32, virtual_stages=4)
    >>> timeline.makespan, timeline.bubble_fraction, float(timeline.peak_in_flight[0])
    (101.25, 0.0546875, 9.75)
    """
    require_choice(SCHEDULES, name=name)
    require_int(stages=stages, micro_batches=micro_batches, virtual_stages=virtual_stages, at_least=1)
    if stages * micro_batches * virtual_stages > _MOST_PASSES:
        raise ValueError(
            f"stages * micro_batches * virtual_stages must be at most {_MOST_PASSES}, "
            f"got {stages} * {micro_batches} * {virtual_stages}"
        )
    if virtual_stages > 1 and name != "interleaved_1f1b":
        raise ValueError(f"virtual_stages must be 1 with schedule {name!r}, got {virtual_stages}")
    if virtual_stages > 1 and micro_batches % stages:
        raise ValueError(
            f"micro_batches must be a multiple of stages = {stages} to interleave, got {micro_batches}"
        )
    seconds = np.stack([
        require_column("forward", forward, stages, above=0),
        require_column("backward", backward, stages, above=0),
    ])  # fmt: skip
    require_number(communication=communication, at_least=0)
    return _run(name, stages, micro_batches, virtual_stages, seconds / virtual_stages, communication)


def _run(name: str, p: int, m: int, v: int, seconds: NDArray[np.float64], delay: float) -> Timeline:
    """Lay out the tasks on the axes (direction, stage, micro-batch, chunk) and simulate them."""
    task = np.arange(2 * p * m * v).reshape(2, p, m, v)
    direction, stage, item, part = np.indices(task.shape).reshape(4, -1)
    before, after = _dependencies(task)
    warm_up = _WARM_UP[name](p - 1 - np.arange(p), p, v)
    start = simulate_timeline(
        stage, seconds[direction, stage], _positions(p, m, v, warm_up).ravel(), before, after,
        np.where(stage[before] == stage[after], 0.0, delay), in_order=True,
    )  # fmt: skip
    return Timeline(
        resources=p, resource=stage, start=start, duration=seconds[direction, stage],
        holding=(1 - 2 * direction) / v, kind=np.array(["forward", "backward"])[direction],
        item=item, part=part,
    )  # fmt: skip


def _positions(p: int, m: int, v: int, warm_up: NDArray[np.int64] | float) -> NDArray[np.int64]:
    """Place of every pass in its stage's order; axes (direction, stage, micro-batch, chunk)."""
    item, part = np.indices((m, v))
    turns = [item // p * p * v + chunk * p + item % p for chunk in (part, v - 1 - part)]
    forward, backward = (np.broadcast_to(turn if v > 1 else item, (p, m, v)) for turn in turns)
    w = np.broadcast_to(np.minimum(warm_up, m * v).astype(np.int64), (p,))[:, None, None]
    return np.stack([
        np.where(forward < w, forward, 2 * forward - w),
        np.where(backward < m * v - w, w + 2 * backward + 1, m * v + backward),
    ])  # fmt: skip


def _dependencies(task: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Pairs (before, after): each micro-batch goes forward through all chunks of the model, then back."""
    # The model's chunks in order: chunk 0 of every stage, then chunk 1 of every stage, ...
    forward, backward = (passes.transpose(2, 0, 1).reshape(-1, task.shape[2]) for passes in task)
    path = np.concatenate((forward, backward[::-1]))
    return path[:-1].ravel(), path[1:].ravel()
