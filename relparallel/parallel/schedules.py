"""Pipeline schedules: rules that fix in which order every stage works through its micro-batches.

========  ==========================================  ======================
letter    meaning                                     argument
========  ==========================================  ======================
p         pipeline stages                             ``stages``
m         micro-batches of an iteration               ``micro_batches``
v         model chunks per stage                      ``virtual_stages``
f         forward pass of a stage                     ``forward``
b + w     backward pass, of inputs and of weights     ``backward``
w         backward pass of the weights                ``backward_weight``
========  ==========================================  ======================
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from relparallel._checks import require_choice, require_int
from relparallel.parallel._arguments import require_column, require_number
from relparallel.parallel._orders import RULES, Order
from relparallel.parallel.strategy import SCHEDULES, schedule_problem
from relparallel.parallel.timeline import Timeline, simulate_timeline

ASYNCHRONOUS: Final = ("pipedream", "pipedream_2bw", "pipemare")
"""Schedules that never flush: an iteration starts while the one before it is on its way."""
SPLIT: Final = ("zb_h1", "zb_2p", "zb_v", "v_half", "v_min")
"""Schedules that run the backward pass of the weights on its own."""
_LIMITED: Final = (
    "1f1b", "eager_1f1b", "dapple", *ASYNCHRONOUS, "zb_h1", "zb_2p",
)  # fmt: skip
_KINDS: Final = {2: ("forward", "backward"), 3: ("forward", "backward_input", "backward_weight")}
_HOLDING: Final = {2: (1.0, -1.0), 3: (1.0, -0.5, -0.5)}  # inputs and weights each free half of what is kept
_MOST_PASSES: Final = 2**24  # more would not fit into memory


def simulate_schedule(
    name: str,
    stages: int,
    micro_batches: int,
    virtual_stages: int = 1,
    *,
    forward: ArrayLike = 1.0,
    backward: ArrayLike = 2.0,
    backward_weight: ArrayLike | None = None,
    communication: float = 0.0,
    most_in_flight: ArrayLike | None = None,
    iterations: int = 1,
) -> Timeline:
    """Run a pipeline and return when every pass happens.

    Parameters
    ----------
    name : str
        The schedule, one of `strategy.SCHEDULES`.
    stages, micro_batches, virtual_stages : int
        p, m and v, each at least 1. Interleaving takes any v, above 1 where p divides m; the V-shaped
        schedules (zb_v, v_half, v_min) take v = 2, all others v = 1. Chimera takes an even p.
    forward, backward : float or array
        Seconds per micro-batch on each stage's GPU, one number or shape (p,), above 0; a chunk takes 1/v of
        them, whichever part of the model it is.
    backward_weight : float or array, optional
        Seconds of ``backward`` that go into the gradients of the weights, below ``backward``; half of it
        where omitted. Matters to the schedules that run this pass on its own.
    communication : float
        Seconds between the end of a pass and the start of the next one on another stage, at least 0;
        it delays and does not occupy the stages.
    most_in_flight : float or array, optional
        Micro-batches that a stage may hold, one number or shape (p,), at least 1; for the 1F1B family
        (1f1b, eager_1f1b, dapple, pipedream, pipedream_2bw, pipemare, zb_h1, zb_2p).
    iterations : int
        Iterations that follow each other, at least 1. A stage starts the next one when its own passes are
        done; it waits for no other stage.

    Returns
    -------
    Timeline
        One task per iteration, micro-batch, chunk and kind of pass: ``kind`` "forward" and "backward", or
        "backward_input" and "backward_weight"; ``item`` the micro-batch, counted on over the iterations;
        ``part`` the chunk, in Chimera the direction. Its holdings count micro-batches in flight; a chunk is
        1/v, and the two halves of a split backward pass free half each.

    Notes
    -----
    The rules, for the stage with k stages behind it and i before it:

    - gpipe: all forward passes, then all backward passes.
    - 1f1b: k forward passes, then forward and backward in turn. dapple is 1f1b under a memory limit (its
      policy A; its policy B is eager_1f1b). interleaved_1f1b starts 2 k + (v - 1) p chunks ahead.
    - eager_1f1b: 2 k forward passes ahead, which leaves time for communication.
    - pipedream, pipedream_2bw: 1f1b without a flush; pipemare: eager_1f1b without a flush.
    - zb_h1, zb_2p: 1f1b and eager_1f1b whose weight passes wait for i and 2 i backward
      passes. zb_v, v_half, v_min: two chunks per stage on a path that goes down and up again.
    - chimera: half of the micro-batches go down the stages, half go up.

    `bubble_fraction` has the closed forms. At most 3 tasks per micro-batch and chunk; O(n log n) for n tasks.

    References
    ----------
    Huang et al., "GPipe", 2019. Narayanan et al., SC 2021, section 2.2, Figure 4. Fan et al., "DAPPLE",
    PPoPP 2021, section 3.2. Zhuang et al., "On optimizing the communication of model parallelism", 2023.
    Narayanan et al., "PipeDream", SOSP 2019. Narayanan et al., "Memory-efficient pipeline-parallel DNN
    training", ICML 2021. Yang et al., "PipeMare", MLSys 2021. Li and Hoefler, "Chimera", SC 2021. Qi et al.,
    "Zero bubble pipeline parallelism", ICLR 2024. Qi et al., "Pipeline parallelism with controllable
    memory", NeurIPS 2024.

    Examples
    --------
    >>> timeline = simulate_schedule("interleaved_1f1b", stages=8, micro_batches=32, virtual_stages=4)
    >>> timeline.makespan, timeline.bubble_fraction, float(timeline.peak_in_flight[0])
    (101.25, 0.0546875, 9.75)
    >>> simulate_schedule("zb_h1", stages=4, micro_batches=8).makespan
    27.0
    """
    require_size(name, stages, micro_batches, virtual_stages)
    require_int(iterations=iterations, at_least=1)
    if stages * micro_batches * virtual_stages * iterations > _MOST_PASSES:
        raise ValueError(
            f"stages * micro_batches * virtual_stages must be at most {_MOST_PASSES}, "
            f"got {stages} * {micro_batches} * {virtual_stages}, in {iterations} iterations"
        )
    if most_in_flight is not None and name not in _LIMITED:
        raise ValueError(f"most_in_flight must be None with schedule {name!r}, got {most_in_flight!r}")
    limit = require_column(
        "most_in_flight", 2**53 if most_in_flight is None else most_in_flight, stages, at_least=1
    )
    seconds = pass_seconds(name, stages, forward, backward, backward_weight)
    require_number(communication=communication, at_least=0)
    order = repeated(name, stages, micro_batches, virtual_stages, np.floor(2 * limit) / 2, iterations)
    return play(order, seconds[:, order.stage] * (stages / order.stage.shape[1]), communication)


def require_size(name: str, stages: int, micro_batches: int, virtual_stages: int) -> None:
    """Refuse sizes that a schedule does not take."""
    require_choice(SCHEDULES, name=name)
    require_int(stages=stages, micro_batches=micro_batches, virtual_stages=virtual_stages, at_least=1)
    problem = schedule_problem(name, stages, virtual_stages)
    if problem:
        raise ValueError(f"{problem}, got {name!r} with stages {stages}, virtual_stages {virtual_stages}")
    if name == "interleaved_1f1b" and virtual_stages > 1 and micro_batches % stages:
        raise ValueError(
            f"micro_batches must be a multiple of stages = {stages} to interleave, got {micro_batches}"
        )


def pass_seconds(
    name: str, stages: int, forward: ArrayLike, backward: ArrayLike, backward_weight: ArrayLike | None
) -> NDArray[np.float64]:
    """Seconds of each kind of pass on each stage."""
    f = require_column("forward", forward, stages, above=0)
    whole = require_column("backward", backward, stages, above=0)
    w = whole / 2
    if backward_weight is not None:
        w = require_column("backward_weight", backward_weight, stages, above=0)
        if np.any(w >= whole):
            raise ValueError(f"backward_weight must be below backward, got {backward_weight!r}")
    return np.stack([f, whole - w, w] if name in SPLIT else [f, whole])


def repeated(name: str, p: int, m: int, v: int, limit: NDArray[np.float64], times: int) -> Order:
    """The order of several iterations."""
    if name in ASYNCHRONOUS:
        return RULES[name](p, m * times, v, limit)
    stage, part, turn = RULES[name](p, m, v, limit)
    after = np.ptp(turn) + 1
    return Order(
        np.tile(stage, (times, 1)), np.tile(part, (times, 1)),
        np.concatenate([turn + k * after for k in range(times)], axis=1),
    )  # fmt: skip


def play(order: Order, seconds: NDArray[np.float64], delay: float) -> Timeline:
    """Simulate the passes of an order; seconds have its axes (kind, micro-batch, chunk of the model)."""
    kinds, _, chunks = order.turn.shape
    kind, item, chunk = np.indices(order.turn.shape).reshape(3, -1)
    stage, p = order.stage[item, chunk], int(order.stage.max()) + 1
    before, after = _dependencies(np.arange(kind.size).reshape(order.turn.shape))
    rank = np.empty(kind.size, dtype=np.int64)
    rank[np.argsort(order.turn, axis=None, kind="stable")] = np.arange(kind.size)
    duration = seconds.ravel()
    start = simulate_timeline(
        stage, duration, rank, before, after,
        np.where(stage[before] == stage[after], 0.0, delay), in_order=True,
    )  # fmt: skip
    return Timeline(
        resources=p, resource=stage, start=start, duration=duration,
        holding=np.array(_HOLDING[kinds])[kind] * p / chunks, kind=np.array(_KINDS[kinds])[kind],
        item=item, part=order.part[item, chunk],
    )  # fmt: skip


def _dependencies(task: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Pairs (before, after): each micro-batch goes forward through all chunks, then back; weights follow."""
    path = np.concatenate([task[0], task[1][:, ::-1]], axis=1)
    weights = [(task[1].ravel(), later.ravel()) for later in task[2:]]
    before, after = zip((path[:, :-1].ravel(), path[:, 1:].ravel()), *weights, strict=True)
    return np.concatenate(before), np.concatenate(after)
