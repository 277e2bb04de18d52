"""One simulator for whatever runs in an order: tasks on resources with dependencies and priorities.

A resource (a pipeline stage, a link) runs one task at a time and never interrupts it. A task may
start when all its predecessors have finished, plus the lag of each dependency. A resource that is
free starts the most urgent of its tasks that may start, or, strictly in order, waits for the next
one. What a link sends arrives later than it has left; a resource with credit takes more tasks
before the first has arrived.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from relparallel._checks import MOST_DEVICES, Result, require_column, require_flag, require_indices

if TYPE_CHECKING:
    import pandas as pd


Turns = NDArray[np.float64]
Whole = NDArray[np.int64]
_KINDS: Final = {2: ("forward", "backward"), 3: ("forward", "backward_input", "backward_weight")}
# inputs and weights each free half of what is kept
_HOLDING: Final = {2: (1.0, -1.0), 3: (1.0, -0.5, -0.5)}


class Order(NamedTuple):
    """Stage and part of each (micro-batch, chunk), and the turn of each (kind, micro-batch, chunk).

    Kind 0 is the forward pass, 1 the backward pass (of the inputs, where the weights have their
    own), 2 the backward pass of the weights. A stage runs its passes by rising turn.
    """

    stage: Whole
    part: Whole
    turn: Turns


@dataclass(frozen=True, kw_only=True, slots=True)
class Timeline(Result):
    """When each task runs on its resource, and what that holds meanwhile; arrays of shape (tasks,).

    ``start`` and ``duration`` are seconds. ``holding`` is what a task adds to its resource's
    holdings: a positive amount from its start on, a negative one from its end on. ``kind``,
    ``item`` and ``part`` name the task's kind and what it works on: micro-batch and model chunk in
    a pipeline.
    """

    resources: int
    resource: NDArray[np.int64]
    start: NDArray[np.float64]
    duration: NDArray[np.float64]
    holding: NDArray[np.float64]
    kind: NDArray[np.str_]
    item: NDArray[np.int64]
    part: NDArray[np.int64]

    @property
    def finish(self) -> NDArray[np.float64]:
        """End of each task, seconds."""
        return self.start + self.duration

    @property
    def makespan(self) -> float:
        """Time from 0 to the end of the last task, seconds."""
        return float(self.finish.max())

    @property
    def busy(self) -> NDArray[np.float64]:
        """Seconds that each resource works, shape (resources,)."""
        total = np.bincount(self.resource, weights=self.duration, minlength=self.resources)
        return total.astype(np.float64)

    @property
    def idle_fraction(self) -> float:
        """Idle time over makespan, averaged over the resources."""
        return 1 - float(self.busy.mean()) / self.makespan

    @property
    def bubble_fraction(self) -> float:
        """Idle time over ideal time: how much longer the work takes than without any waiting."""
        return self.makespan / float(self.busy.mean()) - 1

    @property
    def peak_in_flight(self) -> NDArray[np.float64]:
        """Most that each resource holds at once, shape (resources,)."""
        gains = self.holding > 0
        when = np.where(gains, self.start, self.finish)
        order = np.lexsort((gains, when, self.resource))  # at equal times, release before taking
        ends = np.searchsorted(self.resource[order], np.arange(1, self.resources))
        return np.array(
            [part.cumsum().max(initial=0.0) for part in np.split(self.holding[order], ends)]
        )

    def _said(self) -> str:
        idle = f"idle {self.idle_fraction:.1%}"
        return (
            f"{len(self.start):,} tasks on {self.resources} resources, {self.makespan:.4g} s, "
            f"{idle}"
        )

    def to_frame(self) -> pd.DataFrame:
        """One row for each task, by resource and start."""
        import pandas as pd

        columns = ("resource", "kind", "item", "part", "start", "finish")
        table = pd.DataFrame({name: getattr(self, name) for name in columns})
        return table.sort_values(["resource", "start"], ignore_index=True)


def simulate_timeline(
    resource: ArrayLike,
    duration: ArrayLike,
    priority: ArrayLike,
    before: ArrayLike,
    after: ArrayLike,
    lag: ArrayLike = 0.0,
    *,
    delay: ArrayLike = 0.0,
    credit: ArrayLike = 1,
    in_order: bool = False,
) -> NDArray[np.float64]:
    """Start time [s] of every task by event-driven list scheduling.

    Task ``after[i]`` starts at least ``lag[i]`` after the end of ``before[i]``; a smaller
    ``priority`` goes first. ``in_order``, a resource waits for the next task even if another could
    start: the longest path through the tasks; otherwise none is idle while one of its tasks may
    start. O(n log n) for n tasks and dependencies in order; choosing among waiting tasks adds a
    scan over those that may not start yet.

    A task ends, for its successors, ``delay`` after its resource has done its ``duration``. A
    resource takes the next task while fewer than its ``credit`` (one number, or one for each
    resource) have not ended; what it took it runs in this order.
    """
    from relparallel.parallel._list_schedule import list_schedule  # a strategy needs no compiler

    res = require_indices("resource", resource, MOST_DEVICES)
    n = res.size
    if n == 0:
        raise ValueError("resource must name the resource of at least one task, got none")
    dur = require_column("duration", duration, n, at_least=0)
    rank = require_indices("priority", priority)
    first, then = require_indices("before", before, n), require_indices("after", after, n)
    if rank.size != n:
        raise ValueError(f"priority must have {n} entries, as resource has, got {rank.size}")
    if then.size != first.size:
        raise ValueError(f"after must have {first.size} entries, as before has, got {then.size}")
    wait = require_column("lag", lag, first.size, at_least=0)
    late = require_column("delay", delay, n, at_least=0)
    room = require_column("credit", credit, int(res.max()) + 1, at_least=1)
    require_flag(in_order=in_order)
    queue = np.lexsort((rank, res))  # tasks resource by resource, most urgent first
    by_source = np.argsort(first, kind="stable")
    start = list_schedule(
        res,
        dur,
        queue,
        np.searchsorted(res[queue], np.arange(int(res.max()) + 2)),
        np.searchsorted(first[by_source], np.arange(n + 1)),
        then[by_source],
        wait[by_source],
        np.bincount(then, minlength=n),
        late,
        room,
        in_order,
    )
    if np.isnan(start).any():
        stuck = int(np.isnan(start).argmax())
        raise ValueError(
            f"before and after must let every task start, got a cycle that stops task {stuck}"
        )
    return np.asarray(start)


def play(order: Order, seconds: NDArray[np.float64], delay: float) -> Timeline:
    """Simulate an order's passes; seconds have its axes (kind, micro-batch, chunk of the model)."""
    kinds, _, chunks = order.turn.shape
    kind, item, chunk = np.indices(order.turn.shape).reshape(3, -1)
    stage, p = order.stage[item, chunk], int(order.stage.max()) + 1
    before, after = _dependencies(np.arange(kind.size).reshape(order.turn.shape))
    rank = np.empty(kind.size, dtype=np.int64)
    rank[np.argsort(order.turn, axis=None, kind="stable")] = np.arange(kind.size)
    duration = seconds.ravel()
    start = simulate_timeline(
        stage,
        duration,
        rank,
        before,
        after,
        np.where(stage[before] == stage[after], 0.0, delay),
        in_order=True,
    )
    return Timeline(
        resources=p,
        resource=stage,
        start=start,
        duration=duration,
        holding=np.array(_HOLDING[kinds])[kind] * p / chunks,
        kind=np.array(_KINDS[kinds])[kind],
        item=item,
        part=order.part[item, chunk],
    )


def _dependencies(task: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Pairs (before, after): each micro-batch forward through all chunks, back; then weights."""
    path = np.concatenate([task[0], task[1][:, ::-1]], axis=1)
    weights = [(task[1].ravel(), later.ravel()) for later in task[2:]]
    before, after = zip((path[:, :-1].ravel(), path[:, 1:].ravel()), *weights, strict=True)
    return np.concatenate(before), np.concatenate(after)
