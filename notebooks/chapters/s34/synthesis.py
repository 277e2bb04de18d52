"""The best order of the passes of a small pipeline, found by exhaustive search.

Time runs in whole ticks. A state says how many passes of each kind every stage has done and what it
runs. All states that can still meet a deadline are carried from tick to tick; the deadline grows
from a lower bound until one of them is done. The micro-batches are interchangeable, so running them
in turn loses nothing.
"""

from typing import Any, Final, NamedTuple

import numba
import numpy as np
from numpy.typing import ArrayLike, NDArray

from relparallel._checks import require_column
from relparallel.parallel.timeline import Order, Timeline, play

Counts = NDArray[np.int64]
_MOST_STATES: Final = 100_000


class BestOrder(NamedTuple):
    """An order of passes that none beats: its span and the bound where the search began, in ticks.

    Every span from the bound on was refuted; ``states`` were visited.
    """

    span: int
    bound: int
    states: int
    timeline: Timeline


class _Problem(NamedTuple):
    """Durations (kind, stage), micro-batches, memory and the tick by which every stage is done."""

    seconds: Counts
    m: int
    limit: NDArray[np.float64]
    deadline: Counts


class _States(NamedTuple):
    """Passes done (state, kind, stage), kind that runs or -1, and its ticks left (state, stage)."""

    done: Counts
    runs: Counts
    left: Counts


def best_order(
    stages: int,
    micro_batches: int,
    *,
    forward: ArrayLike = 1,
    backward: ArrayLike = 2,
    backward_weight: ArrayLike | None = None,
    most_in_flight: ArrayLike | None = None,
    local: bool = False,
) -> BestOrder:
    """An order of the passes of an iteration that takes the least time, with a proof by exhaustion.

    Meant for p up to 4 stages and up to about 8 micro-batches. Passes take whole ticks per
    micro-batch and stage, one number or shape (p,); ``backward_weight`` is what of ``backward``
    goes into the gradients of the weights, which may then run on their own. A stage may hold
    ``most_in_flight`` micro-batches; a forward pass takes one, each part of a split backward pass
    frees half. With ``local`` the time of each stage counts from the moment when its first input
    can arrive, as it does for iterations without a barrier, and not from 0.

    Communication is free. A state is dropped only if it cannot meet the deadline or another one at
    the same tick is no worse in any respect. A stage may idle beside a pass that it could run,
    unless all passes are equally long. The number of states grows exponentially with p. Qi et al.,
    ICLR 2024, section 3: the same as an integer program.

    >>> best_order(3, 4, forward=1, backward=2, most_in_flight=3).span
    18
    >>> best_order(3, 4, forward=1, backward=2, backward_weight=1, most_in_flight=3, local=True).span
    14
    """
    seconds = _ticks(stages, forward, backward, backward_weight)
    most = micro_batches if most_in_flight is None else most_in_flight
    # with less no state moves on
    limit = require_column("most_in_flight", most, stages, at_least=1)
    # No iteration is shorter than a stage's first input, its work, and the way back of its last
    # pass.
    arrival = np.cumsum(seconds[0]) - seconds[0]
    window = arrival if local else np.zeros(stages, dtype=np.int64)
    bound = span = int(np.max(arrival + micro_batches * seconds.sum(axis=0) - window))
    visited = 0
    while True:
        order, count = _search(_Problem(seconds, micro_batches, limit, window + span))
        visited += count
        if order is not None:
            timeline = play(order, seconds[:, order.stage].astype(np.float64), 0.0)
            return BestOrder(span, bound, visited, timeline)
        span += 1


def _ticks(p: int, forward: ArrayLike, backward: ArrayLike, weight: ArrayLike | None) -> Counts:
    """Whole durations (kind, stage)."""
    given = [forward, backward] if weight is None else [forward, backward, weight]
    columns = np.stack(
        [require_column("forward or backward", value, p, at_least=1) for value in given]
    )
    if (columns % 1).any():
        raise ValueError(f"forward and backward must be whole ticks, got {columns.tolist()}")
    if weight is not None:
        columns[1] -= columns[2]
    if (columns < 1).any():
        raise ValueError(
            f"backward_weight must be at least 1 below backward, got {weight!r} of {backward!r}"
        )
    return columns.astype(np.int64)


def _search(problem: _Problem) -> tuple[Order | None, int]:
    """An order that meets the deadlines, or None, and how many states were visited."""
    p, kinds = problem.limit.size, len(problem.seconds)
    states = _States(
        np.zeros((1, kinds, p), dtype=np.int64),
        np.full((1, p), -1),
        np.zeros((1, p), dtype=np.int64),
    )
    history, visited = [], 0
    for tick in range(int(problem.deadline.max())):
        states, parent, begun = _start(problem, states)
        states = _advance(states)
        keep = _can_meet(problem, states, tick + 1)
        if not keep.any():
            return None, visited
        keep[keep] = _undominated(_States(*(part[keep] for part in states)))
        states = _States(*(part[keep] for part in states))
        history.append((parent[keep], begun[keep]))
        visited += states.left.shape[0]
        if states.left.shape[0] > _MOST_STATES:
            raise ValueError(
                f"micro_batches must be fewer for stages {p}, got {problem.m}: too many states"
            )
    complete = np.flatnonzero((states.done == problem.m).all(axis=(1, 2)))
    return (_order(problem, history, int(complete[0])) if complete.size else None), visited


def _start(problem: _Problem, states: _States) -> tuple[_States, Counts, Counts]:
    """Every combination of passes that idle stages may start, with its parent and what began."""
    done, runs, left = states
    parent = np.arange(left.shape[0])
    begun = np.full(runs.shape, -1)
    for stage in range(problem.limit.size):
        may = _startable(problem, _States(done, runs, left), stage)
        equal = bool((problem.seconds == problem.seconds.flat[0]).all())
        rests = ~may.any(axis=0) if equal else np.ones(may.shape[1], dtype=np.bool_)
        picks = [np.flatnonzero(rests), *(np.flatnonzero(row) for row in may)]
        chosen = np.concatenate(picks)
        kind = np.repeat(np.arange(-1, len(may)), [pick.size for pick in picks])
        done, runs, left, parent, begun = (
            part[chosen] for part in (done, runs, left, parent, begun)
        )
        new = kind >= 0
        runs[new, stage] = begun[new, stage] = kind[new]
        left[new, stage] = problem.seconds[kind[new], stage]
    return _States(done, runs, left), parent, begun


def _startable(problem: _Problem, states: _States, stage: int) -> NDArray[np.bool_]:
    """Which kinds of pass (row) the stage may start in which state."""
    done, last = states.done, problem.limit.size - 1
    forward, backward = done[:, 0], done[:, 1]
    freed = (done[:, 1:].sum(axis=1) / (done.shape[1] - 1))[:, stage]
    ready = [
        forward[:, stage] < (problem.m if stage == 0 else forward[:, stage - 1]),
        backward[:, stage] < (forward[:, stage] if stage == last else backward[:, stage + 1]),
    ]
    ready[0] = ready[0] & (forward[:, stage] + 1 - freed <= problem.limit[stage])
    if done.shape[1] == 3:
        ready.append(done[:, 2, stage] < backward[:, stage])
    return np.stack(ready) & (states.runs[:, stage] < 0)


def _advance(states: _States) -> _States:
    """One tick later."""
    left = np.maximum(states.left - 1, 0)
    ends = (states.runs >= 0) & (left == 0)
    done, runs = states.done.copy(), np.where(ends, -1, states.runs)
    row, stage = np.nonzero(ends)
    done[row, states.runs[row, stage], stage] += 1
    return _States(done, runs, left)


def _can_meet(problem: _Problem, states: _States, tick: int) -> NDArray[np.bool_]:
    """Whether work left and the ways to the last stage and back fit before the deadlines."""
    f, b = problem.seconds[:2]
    kinds = np.arange(len(problem.seconds))[:, None]
    running = states.runs[:, None] == kinds
    rest = (problem.m - states.done - running) * problem.seconds + running * states.left[:, None]
    work = rest.sum(axis=1)
    weight = problem.seconds[2, 0] if len(kinds) == 3 else 0
    # from the end of a stage's last backward pass to the end on stage 0
    back = np.cumsum(b) - b + weight
    forth = f.sum() - np.cumsum(f) + b.sum() + weight
    on_stage = np.where(work > 0, tick + work, 0) <= problem.deadline
    home = np.where(rest[:, 1] > 0, tick + rest[:, 0] + rest[:, 1] + back, 0) <= problem.deadline[0]
    there = np.where(rest[:, 0] > 0, tick + rest[:, 0] + forth, 0) <= problem.deadline[0]
    return np.asarray((on_stage & home & there).all(axis=1))


def _undominated(states: _States) -> NDArray[np.bool_]:
    """Mask of the states that no other one leaves behind.

    A state is no worse than another if no stage is busy longer, and every stage has done, and has
    done or runs, as many passes of each kind. It can do whatever the other does from here on, no
    later: until the other has caught up it only frees memory.
    """
    running = states.runs[:, None] == np.arange(states.done.shape[1])[:, None]
    rows = states.done.shape[0]
    progress = np.concatenate(
        [states.done.reshape(rows, -1), (states.done + running).reshape(rows, -1), -states.left],
        axis=1,
    )
    order = np.argsort(-progress.sum(axis=1), kind="stable")  # only an earlier one can be better
    keep = np.zeros(rows, dtype=np.bool_)
    keep[order] = _frontier(progress[order].astype(np.int16))
    return keep


@numba.njit(cache=True)  # type: ignore[misc]
def _frontier(progress: Any) -> Any:
    """Mask of the rows that no earlier kept row equals or exceeds everywhere."""
    rows, columns = progress.shape
    keep = np.zeros(rows, dtype=np.bool_)
    kept = np.empty(rows, dtype=np.int64)
    count = 0
    for row in range(rows):
        beaten = False
        for other in range(count):
            beaten = True
            for column in range(columns):
                if progress[kept[other], column] < progress[row, column]:
                    beaten = False
                    break
            if beaten:
                break
        if not beaten:
            keep[row] = True
            kept[count] = row
            count += 1
    return keep


def _order(problem: _Problem, history: list[tuple[Counts, Counts]], state: int) -> Order:
    """Walk back from the last state and turn the ticks at which passes began into turns."""
    p, m = problem.limit.size, problem.m
    starts: dict[tuple[int, int], list[int]] = {}
    for tick in range(len(history) - 1, -1, -1):
        parent, begun = history[tick]
        for stage, kind in enumerate(begun[state].tolist()):
            starts.setdefault((kind, stage), []).append(tick)
        state = int(parent[state])
    turn = [
        [sorted(starts[kind, stage]) for stage in range(p)] for kind in range(len(problem.seconds))
    ]
    item, chunk = np.indices((m, p))
    return Order(chunk, np.zeros_like(item), np.array(turn, dtype=np.float64).transpose(0, 2, 1))
