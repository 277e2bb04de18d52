"""Mean share of full throughput with 0 … ``down`` failed nodes, of policies needing a recursion."""

import math
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from relparallel._checks import require_int
from relparallel.training._random_failures import (
    among_sets,
    binomial,
    power,
    product,
    surviving_sets,
    units_hit,
)
from relparallel.training.job_shape import JobShape
from relparallel.training.recovery import speed_of

Array = NDArray[np.float64]


def redundant(
    shape: JobShape, down: int, batch: str, micro_batches: int | None, overhead: float
) -> Array:
    """Let the node before a failed one work for both; drop a pipeline that loses two neighbours.

    A unit is w rings of P nodes. Given i failed nodes it goes on in A_i of C(g, i) cases. One unit
    that goes on with a failed node slows every step, the others wait for it.
    """
    units, size = shape.units, shape.nodes_per_replica
    positions, width = shape.positions
    most = min(size, down)
    every = [math.comb(size, i) for i in range(most + 1)]
    goes_on = surviving_sets(positions, width, most)
    held = np.array([some / all_ for some, all_ in zip(goes_on, every, strict=True)])
    lost = np.array([(all_ - some) / all_ for some, all_ in zip(goes_on, every, strict=True)])
    slow = _slow_pair(shape.stages, micro_batches)

    def joint(share: float) -> Array:
        chance = binomial(size, share, down)
        alive, gone = chance * held, chance * lost
        if batch == "keep":
            return _kept(units, down, alive, gone, slow, batch, micro_batches)
        others = binomial((units - 1) * size, share, down)
        clean = gone.copy()
        clean[0] += alive[0]  # an alive unit without failures; index 0 of ``gone`` is zero
        mean = np.zeros(down + 1)
        any_alive = product(alive, others, down)
        mean[: any_alive.size] = slow * any_alive
        all_clean = alive[0] * power(clean, units - 1, down)
        mean[: all_clean.size] += (1 - slow) * all_clean
        return mean

    return (1 - overhead) * among_sets(shape.nodes, down, joint)


def _slow_pair(stages: int, micro_batches: int | None) -> float:
    """Speed of a pipeline of which one node does two stages, beside the usual one."""
    if micro_batches is None:
        return 0.5
    return (stages + micro_batches - 1) / (stages + 2 * (micro_batches - 1))


def _kept(
    units: int,
    down: int,
    alive: Array,
    gone: Array,
    slow: float,
    batch: str,
    micro_batches: int | None,
) -> Array:
    """Mean speed with a kept batch: the sum over how many units are lost."""
    fewest = int(np.argmax(gone > 0)) if gone.any() else down + 1
    most = min(units, down // fewest)
    loss = float(np.clip(gone.sum(), 1e-12, 1 - 1e-12))
    speeds = speed_of(units - np.arange(most + 1), units, batch, micro_batches)
    weights = binomial(units, loss, most)
    rest, ending = power(alive / (1 - loss), units - most, down), [np.ones(1)]
    for _ in range(most):
        ending.append(product(ending[-1], gone / loss, down))
    mean = np.zeros(down + 1)
    for broken in range(most, -1, -1):
        clean = (alive[0] / (1 - loss)) ** (units - broken)
        both = slow * product(rest, ending[broken], down)
        both[: ending[broken].size] += (1 - slow) * clean * ending[broken][: both.size]
        mean[: both.size] += weights[broken] * speeds[broken] * both
        rest = product(rest, alive / (1 - loss), down)
    return mean


def rerouted(shape: JobShape, down: int, micro_batches: int | None, bubble: float) -> Array:
    """Let replicas share a failed worker's micro-batches stage by stage; the busiest stage decides.

    A stage has a worker of w nodes in each of U units. P(no stage lost more than f workers) is a
    power, and the mean of a falling function of the most is a sum over f with positive terms.
    """
    units = shape.units
    positions, width = shape.positions
    most = min(units, down)
    within = np.cumsum(units_hit(units, width, min(down, units * width)), axis=1)
    speeds = _rerouted_speed(units, np.arange(most + 1), shape.stages, micro_batches, bubble)
    drops = speeds - np.append(speeds[1:], 0.0)

    def joint(share: float) -> Array:
        chance = binomial(units * width, share, down)
        every = power(chance, positions, down)
        mean, tail = np.zeros(down + 1), np.cumsum(drops[::-1])[::-1]
        for lost in range(most + 1):
            held = power(chance * within[: chance.size, lost], positions, down)
            if (held >= every * (1 - 1e-15)).all():  # the rest is certain
                mean[: held.size] += tail[lost] * held
                break
            mean[: held.size] += drops[lost] * held
        return mean

    return among_sets(shape.nodes, down, joint)


def _rerouted_speed(
    units: int, lost: NDArray[np.int64], stages: int, micro_batches: int | None, bubble: float
) -> Array:
    """Speed where the busiest stage has lost a number of its workers."""
    left = units - lost
    if micro_batches is None:
        return left / units
    work = -(-units * micro_batches // np.maximum(left, 1))
    full = micro_batches + stages - 1
    time = np.maximum(full, work + (1 - bubble) * (stages - 1))
    return np.where(left > 0, full / time, 0.0)


@lru_cache(maxsize=8)
def template_speed(
    nodes: int, smallest: int, largest: int, faults: int = 1, layers: int | None = None
) -> Array:
    """Largest joint speed of pipelines of n0 … n1 nodes on 0 … n nodes, in node units (read only).

    A pipeline of i nodes has the rate 1 / ceil(L / i) of its fullest node, times L; each takes a
    share of the batch in proportion; fewer than f + 1 pipelines count as none. With n1 >= 2 n0 - 1
    no node idles once there are (f + 1) n0 (Jang et al., "Oobleck", SOSP 2023, section 4). O(n (n1
    - n0) f).
    """
    require_int(largest=largest, at_least=smallest)
    if layers is not None:
        require_int(layers=layers, at_least=largest)
    sizes = np.arange(smallest, largest + 1)
    rates = sizes.astype(np.float64) if layers is None else layers / -(-layers // sizes)
    speed: Array = _fill(nodes, smallest, rates, faults + 1)
    speed.flags.writeable = False
    return speed


def _fill(nodes: int, smallest: int, rates: Array, pipelines: int) -> Array:
    """Best speed by the pipelines that are still missing; a node may idle.

    As many entries as the smallest pipeline has nodes follow at once: the others have theirs
    already.
    """
    before, backward = smallest + rates.size - 1, rates[::-1]
    best = np.full((pipelines + 1, before + nodes + 1), -np.inf)
    best[0, before] = 0.0
    for start in range(1, nodes + 1, smallest):
        stop = min(start + smallest, nodes + 1)
        rest = sliding_window_view(best[:-1, start : stop + rates.size - 1], rates.size, axis=1)
        found = (rest + backward).max(axis=2)
        idle = best[:, before + start - 1, None]
        steps = np.hstack([idle, np.vstack([found[:1], found])])
        best[:, before + start : before + stop] = np.maximum.accumulate(steps, axis=1)[:, 1:]
    return np.asarray(np.maximum(best[pipelines, before:], 0.0))


def uneven_speed(
    whole: NDArray[np.int64],
    slowed: NDArray[np.int64],
    fast: int,
    slow: int,
    units: int,
    micro_batches: int,
) -> Array:
    """Speed at which replicas of two paces get through a batch of whole micro-batches.

    In ticks of which a micro-batch takes so many in a fast replica and in a slow one, the first
    time at which enough are done is a whole number; found by bisection.
    """
    low = np.zeros(whole.shape, dtype=np.int64)
    high = np.full(whole.shape, micro_batches * slow, dtype=np.int64)
    while (high - low > 1).any():
        middle = (low + high) // 2
        enough = whole * (middle // fast) + slowed * (middle // slow) >= units * micro_batches
        low, high = np.where(enough, low, middle), np.where(enough, middle, high)
    return micro_batches * fast / high


def shared_shards(units: int, holders: int, held: Array) -> Array:
    """Mean of 1/L with 0 … k dead units of a ring, shards on r units in a row, L the most on one.

    Every arc of shards needs holders (Hall): a step of at most l shards a unit is possible if in
    every row of units l - 1 for each living one, minus 1 for each dead one, sum to more than -r.
    That is a queue which dead units lengthen by 1 and living ones shorten by l - 1, never above r -
    1. In a ring of l u > U it is empty somewhere: the work that living units leave undone at an
    empty queue is l u - U in all, so that walks which begin behind such a unit, weighted with what
    it leaves, count every ring l u - U times.
    """
    down = held.size - 1
    dead = np.arange(down + 1)
    # at most one shard each
    mean, before = np.where(dead == 0, 0.5, 0.0), np.where(dead == 0, 1.0, 0.0)
    for most in range(2, holders + 1):
        idle = most * (units - dead) - units

        def joint(share: float, most: int = most, idle: Any = idle) -> Array:
            found: Array = (
                _rings(units, holders, most, share, down) * units / np.where(idle > 0, idle, np.inf)
            )
            for place in np.flatnonzero(idle == 0):
                wide, narrow = (
                    _closed_rings(units, size, most, share) for size in (holders, holders - 1)
                )
                found[place] = wide - narrow
            return found

        before = np.minimum(among_sets(units, down, joint), held)
        if most == holders or (held - before <= 1e-12 * held).all():
            return np.asarray(mean + held / most)
        mean += before / (most * (most + 1))
    return mean + before / 2  # one holder each


def _rings(units: int, room: int, most: int, share: float, down: int) -> Array:
    """Chance of 0 … k dead in walks from an empty queue to a living unit, times what it leaves."""
    now = np.zeros((room, down + 1))  # [level, dead]
    now[0, 0] = 1.0
    for _ in range(units - 1):
        after, alive = np.zeros_like(now), now * (1 - share)
        after[0], far = alive[:most].sum(axis=0), alive[most:]
        after[1 : len(far) + 1] = far
        after[1:, 1:] += now[:-1, :-1] * share
        now = after
    left = np.maximum(most - 1 - np.arange(room), 0)
    return np.asarray((now * left[:, None] * (1 - share)).sum(axis=0))


def _closed_rings(units: int, room: int, most: int, share: float) -> float:
    """Chance of walks that end at the level where they began, summed over levels, none outside."""
    now = np.eye(room)  # [level, level at the begin]
    for _ in range(units):
        after, alive = np.zeros_like(now), now[most - 1 :] * (1 - share)
        after[: len(alive)] = alive
        after[1:] += now[:-1] * share
        now = after
    return float(np.trace(now))
