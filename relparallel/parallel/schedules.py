"""Pipeline schedules: rules that fix in which order every stage works through its micro-batches.

p stages work on m micro-batches with v chunks of the model each. A forward pass of a stage takes f,
a backward pass b for the inputs and w for the weights. A new schedule is one rule under
``@schedule(name, ...)`` in this file: it makes an `Order` from p, m, v and what a stage may hold.
"""

from collections.abc import Callable
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from relparallel._checks import require_choice, require_column, require_int, require_number
from relparallel.parallel.timeline import Order, Timeline, Turns, Whole, play

_MOST_PASSES: Final = 2**24  # more would not fit into memory


Rule = Callable[[int, int, int, Turns], Order]
FLIGHTS: Final = (
    "gpipe",
    "1f1b",
    "interleaved_1f1b",
    "eager_1f1b",
    "pipedream",
    "pipedream_2bw",
    "zb_h1",
    "zb_2p",
    "chimera",
    "zb_v",
    "v_half",
    "v_min",
)
"""Schedules whose micro-batches in flight the kernel of `memory` counts, in order of its codes."""


class Schedule(NamedTuple):
    """A rule and what else there is to know about it.

    ``flight``: the one of `FLIGHTS` that holds as many micro-batches. ``chunks``: how many a stage
    has, 0 for any. ``even``: of stages. ``asynchronous``: never flushes. ``split``: the backward
    pass of the weights runs on its own. ``limited``: takes ``most_in_flight``. ``fewest``: (x, y)
    where `bubble_fraction` holds for x p + y micro-batches and more.
    """

    rule: Rule
    flight: str
    chunks: int = 1
    even: bool = False
    asynchronous: bool = False
    split: bool = False
    limited: bool = False
    fewest: tuple[int, int] | None = (0, 1)


TABLE: Final[dict[str, Schedule]] = {}
"""Schedules by name."""


def schedule(name: str, **known: Any) -> Callable[[Rule], Rule]:
    """Enter a rule under a name, with the other fields of a `Schedule`."""

    def enter(rule: Rule) -> Rule:
        TABLE[name] = Schedule(rule, **known)
        return rule

    return enter


def _alternating(
    m: int, v: int, warm_up: Whole, deferred: Whole | None = None, group: int = 1
) -> Order:
    """Warm-up forward passes, one forward and one backward in turn, then the backward passes left.

    Micro-batches pass each chunk in groups, the last one of what is left. The weights of a
    micro-batch wait for ``deferred`` more backward passes of their stage.
    """
    p = warm_up.size
    item, chunk = np.indices((m, p * v))
    stage, part = chunk % p, chunk // p
    first = item // group * group
    together, begin = np.minimum(group, m - first), first * (v - 1) + item
    forward, backward = begin + part * together, begin + (v - 1 - part) * together
    turns = [2.0 * forward, 2.0 * (backward + warm_up[stage]) + 1]
    if deferred is not None:
        turns.append(2.0 * (backward + warm_up[stage] + deferred[stage]) + 1.5)
    return Order(stage, part, np.stack(turns))


def _one_forward_one_backward(ahead: int, *, split: bool = False) -> Rule:
    """1F1B starting ``ahead`` forward passes per stage behind, as far as a stage may hold them."""

    def rule(p: int, m: int, v: int, limit: Turns) -> Order:
        stage = np.arange(p)
        # a stage gets no more than the one before it
        held = np.minimum.accumulate(np.minimum(limit, m))
        warm_up = np.minimum(ahead * (p - 1 - stage), held - 1).astype(np.int64)
        # Weights that wait hold half a micro-batch.
        deferred = np.minimum(ahead * stage, 2 * (np.minimum(limit, m) - 1 - warm_up)).astype(
            np.int64
        )
        return _alternating(m, v, warm_up, deferred if split else None)

    return rule


@schedule("gpipe", flight="gpipe")
def _gpipe(p: int, m: int, v: int, limit: Turns) -> Order:
    """Every forward pass before any backward pass."""
    return _alternating(m, v, np.full(p, m))


schedule("1f1b", flight="1f1b", limited=True)(_one_forward_one_backward(1))


def group_size(p: Any, m: Any) -> Any:
    """Micro-batches that pass a chunk one after another where stages are interleaved.

    The fewest, from p on, of which none are left over, or at least p: Megatron-Core refuses others,
    since they would wait for each other, and took multiples of p only until November 2024. All of
    fewer than p, as Llama 3 had them.
    """
    found = np.maximum(np.minimum(p, m), 1.0)
    while True:
        times = np.floor(m / found)  # of columns, faster than whole numbers and their rest
        rest = m - times * found
        if not np.any(short := rest * (rest < p)):
            return found
        found = found + np.ceil(short / np.maximum(times, 1))


@schedule("interleaved_1f1b", flight="interleaved_1f1b", chunks=0)
def _interleaved(p: int, m: int, v: int, limit: Turns) -> Order:
    """1F1B over the chunks of every stage, a group of micro-batches at a time."""
    behind, group = p - 1 - np.arange(p), int(group_size(p, m))
    warm_up = behind if v == 1 else 2 * behind + (v - 1) * group
    return _alternating(m, v, np.minimum(warm_up, m * v), group=group)


schedule("eager_1f1b", flight="eager_1f1b", limited=True)(_one_forward_one_backward(2))
schedule("dapple", flight="1f1b", limited=True)(_one_forward_one_backward(1))
for _name, _ahead, _same in (
    ("pipedream", 1, "pipedream"),
    ("pipedream_2bw", 1, "pipedream_2bw"),
    ("pipemare", 2, "eager_1f1b"),
):
    schedule(_name, flight=_same, limited=True, asynchronous=True)(
        _one_forward_one_backward(_ahead)
    )
schedule(
    "zb_h1",
    flight="zb_h1",
    limited=True,
    split=True,
    fewest=(1, 0),
)(_one_forward_one_backward(1, split=True))
schedule(
    "zb_2p",
    flight="zb_2p",
    limited=True,
    split=True,
    fewest=(2, -1),
)(_one_forward_one_backward(2, split=True))


def _v_shape(p: int, m: int) -> tuple[Whole, Whole, Whole]:
    """Micro-batch, stage and part where the chunks go down the stages and up again."""
    item, chunk = np.indices((m, 2 * p))
    return item, np.where(chunk < p, chunk, 2 * p - 1 - chunk), chunk // p


@schedule(
    "zb_v",
    flight="zb_v",
    chunks=2,
    split=True,
    fewest=(2, -1),
)
def _zero_bubble_v(p: int, m: int, v: int, limit: Turns) -> Order:
    """Cycles of six passes: forward, backward and weights of the first chunk, then the second."""
    item, stage, part = _v_shape(p, m)
    # with few micro-batches, the passes of absent ones fall out
    n, left = max(m, 2 * p - 1), p - stage
    early = p - 1 + left  # forward passes down before the first cycle
    down = np.where(item < early, 6.0 * (item - early - left) + 3.5, 6.0 * (item - early))
    forward = np.where(part, 6.0 * (item - p) + 3, down)
    backward = np.where(part, 6.0 * (item - left) + 4, 6.0 * item + 1)
    drains = item - np.where(part, left, 0) >= n - p  # these weights wait for the last backward
    late = 6.0 * (item + np.where(part, n, stage)) + 2
    return Order(stage, part, np.stack([forward, backward, np.where(drains, late, backward + 1)]))


def _blocks(slots: Turns, m: int, deferred: int) -> Order:
    """A repeated block of six slots per micro-batch; weights take free slots in order of arrival.

    ``slots`` says when each stage (column) runs the first micro-batch: forward down, forward up,
    backward down, backward up (rows). Weights leave out ``deferred`` free slots.
    """
    item, stage, part = _v_shape(slots.shape[1], m)
    forward, backward = (6.0 * item + slots[row, stage] for row in (part, 3 - part))
    weights = np.empty_like(backward)
    for i in range(slots.shape[1]):
        mine = stage == i
        ends = np.sort(backward[mine])
        taken = np.concatenate([forward[mine], ends])
        free = np.setdiff1d(np.arange(taken.max() + 2 * ends.size + deferred + 1), taken)
        count = np.arange(ends.size)
        first = np.maximum.accumulate(np.searchsorted(free, ends) + deferred - count) + count
        weights[mine] = free[first][np.searchsorted(ends, backward[mine])]
    return Order(stage, part, np.stack([forward, backward, weights]))


@schedule("v_half", flight="v_half", chunks=2, split=True, fewest=None)
def _v_half(p: int, m: int, v: int, limit: Turns) -> Order:
    """Transfers down take two slots, transfers up one."""
    i, pause = np.arange(p), 3.0 * (p % 2 == 0)
    down, up = 2 * i, 3 * p - 2 - i
    return _blocks(np.stack([down, up, 3 * p - 1 + pause + down, 3 * p + pause + up]), m, 2)


@schedule("v_min", flight="v_min", chunks=2, split=True, fewest=None)
def _v_min(p: int, m: int, v: int, limit: Turns) -> Order:
    """Every transfer takes one slot."""
    i, pause = np.arange(p), 2.0 * (p % 3 == 0)
    return _blocks(np.stack([i, 2 * p - 1 - i, 2 * p + pause + i, 4 * p - 1 + pause - i]), m, 0)


@schedule(
    "chimera",
    flight="chimera",
    even=True,
)
def _chimera(p: int, m: int, v: int, limit: Turns) -> Order:
    """Even micro-batches go down the stages, odd ones up; units of p follow every 2 p slots."""
    item, chunk = np.indices((m, p))
    up = item % 2
    begin = item // p * 2.0 * p + item % p // 2 * 2
    return Order(
        np.where(up, p - 1 - chunk, chunk), up, np.stack([begin + chunk, begin + 2 * p - 1 - chunk])
    )


SCHEDULES: Final = tuple(TABLE)
"""Names of the schedules."""
V_SHAPED: Final = tuple(name for name, known in TABLE.items() if known.chunks == 2)
"""Schedules with two chunks per stage, on the way down and up."""
ASYNCHRONOUS: Final = tuple(name for name, known in TABLE.items() if known.asynchronous)
"""Schedules that never flush: an iteration starts while the one before it is on its way."""
SPLIT: Final = tuple(name for name, known in TABLE.items() if known.split)
"""Schedules that run the backward pass of the weights on its own."""


def schedule_problem(name: str, stages: int, virtual_stages: int) -> str:
    """What a schedule demands and these sizes break, empty where nothing."""
    known = TABLE[name]
    if known.chunks == 2 and virtual_stages != 2:
        return f"virtual_stages must be 2 with schedule {name!r}"
    if virtual_stages > 1 and known.chunks == 1:
        return "virtual_stages must be 1 unless schedule is 'interleaved_1f1b' or V-shaped"
    return f"stages must be even with schedule {name!r}" if known.even and stages % 2 else ""


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
        The schedule, one of `schedules.SCHEDULES`.
    stages, micro_batches, virtual_stages : int
        p, m and v, each at least 1. Interleaving takes any v, the V-shaped schedules (zb_v, v_half,
        v_min) take v = 2, all others v = 1. Chimera takes an even p.
    forward, backward, backward_weight : float or array
        Seconds per micro-batch on each stage's GPU, one number or shape (p,), above 0; a chunk
        takes 1/v of them. The third is what of ``backward`` goes into the gradients of the weights,
        half of it where omitted; it matters to the schedules that run this pass on its own.
    communication : float
        Seconds between the end of a pass and the start of the next one on another stage, at least
        0; it delays and does not occupy the stages.
    most_in_flight : float or array, optional
        Micro-batches that a stage may hold, one number or shape (p,), at least 1; for the 1F1B
        family (1f1b, eager_1f1b, dapple, pipedream, pipedream_2bw, pipemare, zb_h1, zb_2p).
    iterations : int
        Iterations that follow each other, at least 1. A stage starts the next one when its own
        passes are done; it waits for no other stage.

    Returns
    -------
    Timeline
        One task per iteration, micro-batch, chunk and kind of pass: ``kind`` "forward" and
        "backward", or "backward_input" and "backward_weight"; ``item`` the micro-batch, counted on
        over the iterations; ``part`` the chunk, in Chimera the direction. Its holdings count
        micro-batches in flight; a chunk is 1/v, and the two parts of a split backward pass free
        half each.

    Notes
    -----
    The rules, for the stage with k stages behind it and i before it:

    - gpipe: all forward passes, then all backward passes (Huang et al. 2019).
    - 1f1b: k forward passes, then forward and backward in turn. dapple (Fan et al., PPoPP 2021) is
      1f1b under a memory limit. interleaved_1f1b starts 2 k + (v - 1) g chunks ahead (Narayanan et
      al., SC 2021, section 2.2), g micro-batches to a group: the fewest, from p on, of which none
      or at least p are left over (Megatron-Core, ``get_schedule_table``); all of fewer than p
      (Llama 3, section 3.3.2).
    - eager_1f1b: 2 k forward passes ahead, which leaves time for communication (Zhuang et al.
      2023).
    - pipedream (SOSP 2019), pipedream_2bw (ICML 2021): 1f1b without a flush; pipemare (Yang et al.,
      MLSys 2021): eager_1f1b without a flush.
    - zb_h1, zb_2p: 1f1b and eager_1f1b whose weight passes wait for i and 2 i backward passes,
      fewer where the micro-batches that stage i holds, at most m, leave no room: two for each it
      could still take (Qi et al., ICLR 2024). zb_v, v_half, v_min: two chunks per stage on a path
      that goes down and up again (Qi et al., NeurIPS 2024).
    - chimera: half of the micro-batches go down the stages, half go up (Li and Hoefler, SC 2021).

    At most 3 tasks per micro-batch and chunk; O(n log n) for n tasks.

    Examples
    --------
    >>> timeline = simulate_schedule("interleaved_1f1b", stages=8, micro_batches=32, virtual_stages=4)
    >>> timeline.makespan, timeline.bubble_fraction, float(timeline.peak_in_flight[0])
    (101.25, 0.0546875, 9.75)
    """
    require_size(name, stages, micro_batches, virtual_stages)
    require_int(iterations=iterations, at_least=1)
    if stages * micro_batches * virtual_stages * iterations > _MOST_PASSES:
        raise ValueError(
            f"stages * micro_batches * virtual_stages must be at most {_MOST_PASSES}, "
            f"got {stages} * {micro_batches} * {virtual_stages}, in {iterations} iterations"
        )
    if most_in_flight is not None and not TABLE[name].limited:
        raise ValueError(
            f"most_in_flight must be None with schedule {name!r}, got {most_in_flight!r}"
        )
    limit = require_column(
        "most_in_flight", 2**53 if most_in_flight is None else most_in_flight, stages, at_least=1
    )
    seconds = pass_seconds(name, stages, forward, backward, backward_weight)
    require_number(communication=communication, at_least=0)
    order = repeated(
        name, stages, micro_batches, virtual_stages, np.floor(2 * limit) / 2, iterations
    )
    return play(order, seconds[:, order.stage] * (stages / order.stage.shape[1]), communication)


def require_size(name: str, stages: int, micro_batches: int, virtual_stages: int) -> None:
    """Refuse sizes that a schedule does not take."""
    require_choice(SCHEDULES, name=name)
    require_int(
        stages=stages, micro_batches=micro_batches, virtual_stages=virtual_stages, at_least=1
    )
    problem = schedule_problem(name, stages, virtual_stages)
    if problem:
        raise ValueError(
            f"{problem}, got {name!r} with stages {stages}, virtual_stages {virtual_stages}"
        )


def pass_seconds(
    name: str,
    stages: int,
    forward: ArrayLike,
    backward: ArrayLike,
    backward_weight: ArrayLike | None,
) -> NDArray[np.float64]:
    """Seconds of each kind of pass on each stage."""
    f = require_column("forward", forward, stages, above=0)
    whole = require_column("backward", backward, stages, above=0)
    w = whole / 2
    if backward_weight is not None:
        w = require_column("backward_weight", backward_weight, stages, above=0)
        if np.any(w >= whole):
            raise ValueError(f"backward_weight must be below backward, got {backward_weight!r}")
    return np.stack([f, whole - w, w] if TABLE[name].split else [f, whole])


def repeated(name: str, p: int, m: int, v: int, limit: NDArray[np.float64], times: int) -> Order:
    """The order of several iterations."""
    if TABLE[name].asynchronous:
        return TABLE[name].rule(p, m * times, v, limit)
    stage, part, turn = TABLE[name].rule(p, m, v, limit)
    after = np.ptp(turn) + 1
    return Order(
        np.tile(stage, (times, 1)),
        np.tile(part, (times, 1)),
        np.concatenate([turn + k * after for k in range(times)], axis=1),
    )
