"""What going back to checkpoints costs: exact for exponential failures and any number of levels.

A block of a level is what lies between two checkpoints of that level or a higher one; it consists
of blocks of the level below. Its transform (see `_block_times`) follows from theirs: a geometric
series over the blocks inside, and a loop for the failures that send the job back to its begin.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from relparallel._checks import Result, bare, require_instance
from relparallel.training._arguments import Real, require_time, run_percentiles
from relparallel.training._block_times import block_times, restarts
from relparallel.training.checkpoint_policies import Cause, Checkpointing
from relparallel.training.factors import lost_share

Array = NDArray[np.float64]
BUCKETS: Final = ("productive", "checkpoint", "lost", "detection", "restart")
# Of the mean time between failures: the intervals looked at; a checkpoint may be free.
SHORTEST: Final = 1e-6
LONGEST: Final = 30.0
STEPS: Final = (0.5, 0.9, 0.99, 1.01, 1.1, 2.0)
_POINTS: Final = 97  # of a grid: two bring a factor of nine below the tolerance
MOST: Final = 10**6  # checkpoints of one level for one of the next


@dataclass(frozen=True, kw_only=True, slots=True)
class Rollback(Result):
    """Share of the wall time that becomes saved work, and where the rest goes.

    The long-run share; its variance over a run times the length of the run [s]; work between two
    checkpoints [s], infinite where nothing ever fails and nothing is written; checkpoints of a
    level for one of the next; shares of the time (productive, checkpoint: standstill for those that
    are kept, lost: work and standstill done in vain, detection, restart); third central moment of
    the share times the square of the length [s^2].
    """

    share: float
    variance_rate: float
    interval: float
    every: tuple[int, ...]
    buckets: dict[str, float]
    third_rate: float = 0.0

    def std(self, horizon: Real) -> Real:
        """Return the standard deviation of the share over a run of that length [s]."""
        return bare(np.sqrt(self.variance_rate / require_time(horizon=horizon, positive=True)))

    def percentiles(self, levels: Real, horizon: float) -> Real:
        """Return percentiles (levels in [0, 100]) of the share over a run of that length [s]."""
        return run_percentiles(levels, horizon, self.share, self.variance_rate, self.third_rate)


class Levels(NamedTuple):
    """Levels of checkpoints as arrays, [level]: seconds to write, to read, until durable."""

    cost: Array
    restart: Array
    delay: Array


class Causes(NamedTuple):
    """What sends a job back, as arrays by cause."""

    rate: Array  # 1/s
    survive: Array  # [cause, level] probability that a checkpoint does
    detection: Array  # s
    restart: Array | float  # fixed part [s]


@dataclass(frozen=True, slots=True)
class _System:
    """Causes and levels in units of the mean time between failures."""

    rate: float
    read: Array  # [cause, level]: probability that a failure is of that cause and reads it
    detection: Array  # [cause]
    back: Array  # [cause, level]: detection, fixed restart and reading
    cost: Array  # [level]
    delay: Array  # [level]
    weight: Array  # [level]: of a failure that reads it beside a running job, all time summed up
    restarts: Any  # [level]: see `_block_times`

    @classmethod
    def of(cls, levels: Levels, causes: Causes) -> _System:
        """Compile."""
        rate, there = float(causes.rate.sum()), causes.survive
        # A failure reads the first level that survives it: all below are gone, this one is there.
        gone = np.cumprod(np.column_stack([np.ones(len(there)), 1 - there[:, :-1]]), axis=1)
        detection = causes.detection * rate
        fixed = detection + rate * np.asarray(causes.restart)
        cost, restart, delay = (rate * each for each in levels)
        read, back = causes.rate[:, None] / rate * gone * there, fixed[:, None] + restart
        share = read.sum(axis=0)
        # A fall to a level carries the chance e^-delay that nothing strikes until it is durable; the
        # weights take that out again, so that falls to all levels add up to all failures.
        weight = share / (share @ np.exp(-delay))
        again = restarts(read, back, delay, weight)
        return cls(rate, read, detection, back, cost, delay, weight, again)

    def block(self, work: Any, every: Any, moments: int = 3) -> tuple[Any, ...]:
        """Time from one checkpoint of the last level to the next."""
        return block_times(work, every, self.cost, self.delay, self.weight, self.restarts, moments)


def rollback(checkpointing: Checkpointing, causes: Sequence[Cause]) -> Rollback:
    """Share of the time that becomes saved work when failures send the job back to checkpoints.

    Parameters
    ----------
    checkpointing : Checkpointing
        Levels, interval and frequencies; what is left open is chosen best.
    causes : sequence of Cause
        What sends the job back.

    Returns
    -------
    Rollback
        Share, variance rate, interval, frequencies and buckets.

    Notes
    -----
    One level, failures at rate L, cause j with probability p_j and R_j seconds back to work:
    a segment of W + C takes e^{L d} (e^{L (W+C)} - 1)/(L q) with q = sum_j p_j e^{-L R_j} and the
    delay d. So the optimal W of `checkpoint_interval` holds for any causes and delay. Several
    levels: nested blocks, exact, O(n^2 log every + n causes) for n levels. The variance rate is
    that of the renewal-reward process, (work)^2 Var(T)/E[T]^3 with the time T of a block of the
    last level, and the third cumulant (work)^3 (3 Var(T)^2/E[T] - E[(T - E[T])^3])/E[T]^4.

    A failure reads the newest checkpoint of the first level that survives. Where a higher level is
    durable sooner than a lower one, its newer checkpoint would do: the share is then too small, by
    about L (difference of the delays) / (checkpoints of the lower level for one of the higher).

    References
    ----------
    Daly 2006 for one level and one cause. Moody et al., SC 2010, for the levels.

    Examples
    --------
    >>> from relparallel.training import Cause, Checkpointing, CheckpointLevel
    >>> memory = CheckpointLevel(name="memory", cost=1.0, restart=60.0, survives={"rack": 0.0})
    >>> storage = CheckpointLevel(name="storage", cost=60.0, restart=600.0)
    >>> causes = [Cause(level="node", rate=8e-5), Cause(level="rack", rate=1e-6)]
    >>> plans = [Checkpointing(levels=levels) for levels in ((storage,), (memory, storage))]
    >>> [round(rollback(plan, causes).share, 4) for plan in plans]
    [0.8617, 0.9713]
    """
    require_instance(Checkpointing, checkpointing=checkpointing)
    require_instance(Sequence, causes=causes)
    for cause in causes:
        require_instance(Cause, causes=cause)
    causes = [cause for cause in causes if cause.rate > 0]
    levels = checkpointing.levels
    survive = np.array([[x.survival(cause.level) for x in levels] for cause in causes])
    rate, detection, fixed = (
        np.array([(x.rate, x.detection, x.restart) for x in causes]).reshape(-1, 3).T
    )
    cost, restart, delay = np.array([(x.cost, x.restart, x.delay) for x in levels]).T
    found = Causes(rate, survive, detection, fixed)
    return going_back(
        Levels(cost, restart, delay), found, checkpointing.interval, checkpointing.every
    )


def going_back(
    levels: Levels, causes: Causes, interval: float | None, every: tuple[int, ...] | None
) -> Rollback:
    """`rollback` of arrays; causes have rates above 0."""
    if not causes.rate.size:
        return _without_failures(levels.cost, interval, every)
    system = _System.of(levels, causes)
    interval, every = _chosen(system, interval, every)
    work = interval * int(np.prod(every, dtype=object))
    _, c1, c2, c3 = system.block(interval * system.rate, every)
    if not np.isfinite(c2):
        raise ValueError(
            "checkpointing must let the job get on, got one that takes 1e150 lives per block"
        )
    # the coefficients are E[(-T)^k] / k!
    mean = -c1 / system.rate
    variance = max((2 * c2 - c1**2) / system.rate**2, 0.0)
    third = (
        -6 * c3 + 6 * c1 * c2 - 2 * c1**3
    ) / system.rate**3  # central moment of the time of a block
    share = float(work / mean)
    stalls = _stalls(every, system.cost / system.rate) / mean
    return Rollback(
        share=share,
        variance_rate=float(share**2 * variance / mean),
        interval=interval,
        every=every,
        buckets=_buckets(system, share, float(stalls)),
        third_rate=float(share**3 * (3 * variance**2 / mean - third) / mean),
    )


def _without_failures(
    cost: Array, interval: float | None, every: tuple[int, ...] | None
) -> Rollback:
    """Nothing sends the job back: only the checkpoints that were asked for cost time."""
    every = every or (1,) * (len(cost) - 1)
    interval = np.inf if interval is None else interval
    work = interval * int(np.prod(every, dtype=object))
    share = 1.0 if work == np.inf else float(work / (work + _stalls(every, cost)))
    return Rollback(
        share=share,
        variance_rate=0.0,
        interval=interval,
        every=every,
        buckets=dict(zip(BUCKETS, (share, 1 - share, 0.0, 0.0, 0.0), strict=True)),
    )


def _stalls(every: tuple[int, ...], cost: Array) -> float:
    """Standstill of all checkpoints of one block of the last level."""
    inside = np.cumprod(np.array((1, *every[::-1]), dtype=np.float64))
    blocks = inside[::-1]  # of a level and higher ones
    return float(cost @ (blocks - np.append(blocks[1:], 0.0)))


def _buckets(system: _System, share: float, stalls: float) -> dict[str, float]:
    """Where the time goes; failures strike at rate 1 whatever the job does."""
    short = -np.expm1(-system.back)
    below, read = np.cumsum(system.read, axis=1), np.empty_like(system.read)
    above = 0.0  # share of failures that strike while a higher level is being read
    # downwards: a restart that is struck goes on at its own level or a higher one, never at a lower
    for i in range(len(system.cost) - 1, -1, -1):
        first, again = system.read[:, i], below[:, i] - system.read[:, i]
        struck_again = float((1 - above) * (first @ short[:, i]) / (1 - again @ short[:, i]))
        read[:, i] = first * (1 - above) + again * struck_again
        above += struck_again
    detection = float(system.read.sum(axis=1) @ -np.expm1(-system.detection))
    restart = float((read * (short - -np.expm1(-system.detection)[:, None])).sum())
    # what is left, which rounding may put below 0
    lost = max(1 - share - stalls - detection - restart, 0.0)
    return dict(zip(BUCKETS, (share, stalls, lost, detection, restart), strict=True))


def _chosen(
    system: _System, interval: float | None, every: tuple[int, ...] | None
) -> tuple[float, tuple[int, ...]]:
    """The interval and the frequencies, the best where they are open."""
    if interval is not None and every is not None:
        return interval, every
    if len(system.cost) == 1:
        if interval is not None:
            return interval, ()
        return max(float(lost_share(system.cost[0])), SHORTEST) / system.rate, ()
    return _searched(system, interval, every)


def _searched(
    system: _System, interval: float | None, every: tuple[int, ...] | None
) -> tuple[float, tuple[int, ...]]:
    """Best interval and frequencies: downhill from the first order, one after the other."""
    fixed = None if interval is None else interval * system.rate
    best = every or _first_order(system, fixed)
    known = _best_intervals(system, [best], fixed, (SHORTEST, LONGEST))
    while every is None:
        near = (known[best][1] / 3, known[best][1] * 3)
        nearby = [_moved(best, level, step) for level in range(len(best)) for step in STEPS]
        if asked := [one for one in dict.fromkeys(nearby) if one not in known]:
            known |= _best_intervals(system, asked, fixed, near)
        better = min(nearby, key=lambda one: known[one][0])
        if known[better][0] >= known[best][0] * (1 - 1e-9):
            break
        best = better
    found = _best_intervals(system, [best], fixed, (SHORTEST, LONGEST), 1e-9)
    return found[best][1] / system.rate, best


def _moved(every: tuple[int, ...], level: int, step: float) -> tuple[int, ...]:
    """One frequency by a factor, at least by one."""
    old = every[level]
    new = max(round(old * step), old + 1) if step > 1 else min(round(old * step), old - 1)
    return (*every[:level], min(max(new, 1), MOST), *every[level + 1 :])


def _first_order(system: _System, fixed: float | None) -> tuple[int, ...]:
    """Young's interval of each level on its own, and how often one goes into the next."""
    rates = np.maximum(system.read.sum(axis=0), 1e-12)
    spans = np.maximum.accumulate(np.sqrt(2 * np.maximum(system.cost, 1e-12) / rates))
    spans[0] = spans[0] if fixed is None else fixed
    return tuple(int(n) for n in np.clip(np.rint(spans[1:] / spans[:-1]), 1, MOST))


def _best_intervals(
    system: _System,
    choices: Sequence[tuple[int, ...]],
    fixed: float | None,
    bounds: tuple[float, float],
    tolerance: float = 1e-3,
) -> dict[tuple[int, ...], tuple[float, float]]:
    """Least time per unit of work and its interval, by frequencies: refined grids."""
    every = np.array(choices).T[:, :, None]  # [level, choice, 1]
    blocks = every.prod(axis=0, dtype=np.float64)

    def per_work(work: Any) -> Array:
        times = -system.block(work, every, moments=1)[1] / (work * blocks)
        return np.where(np.isfinite(times), times, np.inf)

    if fixed is not None:
        return {
            choice: (time, fixed) for choice, (time,) in zip(choices, per_work(fixed), strict=True)
        }
    # Grids and no bracketing: one call prices all points of all choices, and where a block never
    # ends its infinite time is no obstacle.
    low, high = np.log(np.tile(bounds, (len(choices), 1))).T
    each = np.arange(len(choices))
    while (high - low).max() > tolerance:
        grid = np.linspace(low, high, _POINTS, axis=1)
        times = per_work(np.exp(grid))
        place = times.argmin(axis=1)
        low, high = (
            grid[each, np.maximum(place - 1, 0)],
            grid[each, np.minimum(place + 1, _POINTS - 1)],
        )
    found = zip(times[each, place].tolist(), np.exp(grid[each, place]).tolist(), strict=True)
    return dict(zip(choices, found, strict=True))
