"""A job under failures, compiled: the factors of its goodput, their spread and their slopes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from relparallel.training._missing import able_to_fail, missing_law, reach, speed_spread, speeds
from relparallel.training._rows import Rows, rows
from relparallel.training.checkpoint_policies import Cause, Checkpointing
from relparallel.training.failures import Domain, FailureModel
from relparallel.training.markov import NodeChain
from relparallel.training.recovery_policies import Recovery
from relparallel.training.rollback import Rollback, rollback

__all__ = ["FailingJob", "Shares"]

_STANDING: Final = 1e-9  # a share of time or speed below which nothing is productive
_STEP: Final = 1e-3  # of a logarithm, in differences


@dataclass(frozen=True, slots=True)
class Shares:
    """Factors of the productive share besides those of the rollback."""

    available: float  # some speed is left
    clear: float  # of this, no pause
    noticed: float  # of the pauses, what comes after the detection
    speed: float  # mean speed where some is left
    undisturbed: float


@dataclass(frozen=True, slots=True)
class FailingJob:
    """A compiled job, its rollback, and which rows cause what."""

    rows: Rows
    checkpointing: Checkpointing  # with the interval and frequencies that were chosen
    causes: tuple[Cause, ...]  # merged
    of_cause: NDArray[np.int64]  # [i]: cause of a row, -1 where it does not go back
    back: Rollback
    waits: bool

    @classmethod
    def of(
        cls, model: FailureModel, domains: Sequence[Domain], checkpointing: Checkpointing,
        recovery: Recovery, spares: int,
    ) -> FailingJob:  # fmt: skip
        """Compile, merge what sends the job back by what it costs, and let the interval be chosen once."""
        job = rows(model, checkpointing, recovery, spares)
        kinds: dict[tuple[str, float], int] = {}
        going = [d.component for d, back in zip(domains, job.back, strict=True) if back]
        place = [kinds.setdefault((part.level, part.detection), len(kinds)) for part in going]
        totals = np.bincount(place, job.rate[job.back], minlength=len(kinds))
        causes = tuple(
            Cause(level=level, rate=float(rate), detection=detection, restart=job.restart_fixed)
            for (level, detection), rate in zip(kinds, totals, strict=True)
        )
        of_cause = np.full(len(job.rate), -1)
        of_cause[job.back] = place
        chosen = checkpointing
        if np.isfinite(job.interval):
            chosen = replace(
                checkpointing, interval=job.interval, every=tuple(int(n) for n in job.every[:-1])
            )
        return cls(job, chosen, causes, of_cause, rollback(chosen, causes), recovery.waits)

    def slowed(self, speed: float) -> FailingJob:
        """Return the same job at a lower mean speed: an interval is work, and takes longer."""
        if speed == 1 or speed < _STANDING or not self.causes:
            return self
        chosen = replace(self.checkpointing, interval=self.rows.interval / speed)
        return replace(self, checkpointing=chosen, back=rollback(chosen, self.causes))

    @property
    def taken(self) -> dict[int, float]:
        """Parts under repair at once if all could always fail, by the nodes of a part."""
        busy = self.rows.rate * self.rows.repair
        sizes = np.unique(self.rows.nodes[self.rows.nodes > 0])
        return {int(size): float(busy[self.rows.nodes == size].sum()) for size in sizes}

    @property
    def pausing(self) -> NDArray[np.bool_]:
        """Rows that stop the job for a pause only."""
        kept: NDArray[np.bool_] = ~self.rows.back & (self.rows.slowdown == 1)
        return kept & (self.rows.detection + self.rows.pause > 0)

    def _states(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Ability to fail and speed with 0 ... K nodes down."""
        job, loads = self.rows, self.taken
        top = job.total + job.spares
        cold = self.waits and not job.hot
        most = min(top, job.spares + max(loads, default=1)) if cold else reach(loads, top)
        down = np.arange(most + 1)
        able = able_to_fail(down, job.total, job.spares, job.hot, self.waits)
        return able, speeds(down, job.spares, job.speed)

    def shares(self) -> Shares:
        """Factors in closed form."""
        able, speed = self._states()
        law = missing_law(self.taken, able)
        available = max(1 - float(law[speed == 0].sum()), 0.0)
        mean = min(float(law @ speed) / available, 1.0) if available else 0.0
        clear, noticed = self._clear()
        return Shares(available, clear, noticed, mean, float(_slowed(*self._slow()).real))

    def chain_shares(self, crews: int | None) -> Shares:
        """Factors from the Markov chain."""
        job, busy, pausing = self.rows, self.taken, self.pausing
        takes = job.nodes > 0
        rates = {n: float(job.rate[job.nodes == n].sum()) for n in busy}
        nodes = float(job.rate[takes] @ job.nodes[takes])
        repair = float(job.rate[takes] @ (job.nodes * job.repair)[takes]) / nodes if nodes else 1.0
        still = job.rate[pausing] @ (job.detection[pausing] + job.pause)
        chain = NodeChain(
            nodes=job.total, spares=job.spares, rates=rates, repair=max(repair, 1e-6), speed=job.speed,
            hot=job.hot, waits=self.waits, crews=crews,
            pause=float(still / job.rate[pausing].sum()) if pausing.any() else 0.0,
        )  # fmt: skip
        waiting, pause, mean = chain.shares()
        clear = 1 - pause / (1 - waiting) if waiting < 1 else 1.0
        speed = mean / ((1 - waiting) * clear) if waiting < 1 else 0.0
        undisturbed = float(_slowed(*self._slow()).real)
        return Shares(1 - waiting, clear, self._clear()[1], min(speed, 1.0), undisturbed)

    def _clear(self) -> tuple[float, float]:
        """Share of time outside pauses, and of the pauses what comes after the detection.

        Failures at rate v begin the pause d_i of their kind anew: sum_i (v_i / v) e^{-v d_i} is left.
        """
        rate, found = self.rows.rate[self.pausing], self.rows.detection[self.pausing]
        total = rate.sum()
        if not total:
            return 1.0, 1.0
        clear = rate @ np.exp(-total * (found + self.rows.pause)) / total
        unnoticed = rate @ -np.expm1(-total * found) / total
        return float(clear), float(1 - unnoticed / (1 - clear)) if clear < 1 else 1.0

    def _slow(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Parts that are slow at once, and the slowdown, slowest first."""
        order = np.argsort(-self.rows.slowdown, kind="stable")
        order = order[self.rows.slowdown[order] > 1]
        return (self.rows.rate * self.rows.repair)[order], self.rows.slowdown[order]

    def variance_rate(self, shares: Shares, planned: float) -> float:
        """Variance of the productive share over a run, times its length: relative variances add."""
        job, loads = self.rows, self.taken
        run = (1 - planned) * shares.available
        mean = run * shares.clear * self.back.share * shares.speed * shares.undisturbed
        if mean < _STANDING:
            return 0.0
        able, speed = self._states()
        law = missing_law(loads, able)
        weight = np.where(job.nodes > 0, job.rate * job.repair, 0.0)
        repair = float(weight @ job.repair / weight.sum()) if weight.sum() else 0.0
        parts = speed_spread(law, loads, able, speed, repair) / float(law @ speed) ** 2
        parts += self.back.variance_rate / self.back.share**2 / (run * shares.clear)
        rate, pause = job.rate[self.pausing], job.detection[self.pausing] + job.pause
        parts += float(rate @ pause**2) * shares.clear / run
        parts += _slow_spread(
            *self._slow(), job.repair[job.slowdown > 1].mean() if self._slow()[0].size else 0
        )
        return float(mean**2 * parts)

    def gradient(self) -> NDArray[np.float64]:
        """Derivative of ln(goodput) by the logarithm of the rate of every row."""
        job = self.rows
        found = np.zeros(len(job.rate))
        for size, slope in self._speed_slopes().items():
            found += np.where(job.nodes == size, slope * job.rate * job.repair, 0.0)
        stretch = self._stretch()
        found *= 1.0 if self.waits else stretch
        found[self.pausing] += self._pause_slopes()
        found += self._slow_slopes() * stretch
        if self.causes:
            slopes = _rollback_slopes(self.checkpointing, self.causes)
            rates = np.array([cause.rate for cause in self.causes])
            found[job.back] += job.rate[job.back] * (slopes / rates)[self.of_cause[job.back]]
        return found

    def _stretch(self) -> float:
        """One minus d ln share / d ln interval of the rollback: what a lower speed does to both."""
        if not self.causes or self.checkpointing.interval is None:
            return 1.0
        plan, span = self.checkpointing, self.checkpointing.interval
        ends = [
            rollback(replace(plan, interval=span * np.exp(step)), self.causes).share
            for step in (_STEP, -_STEP)
        ]
        return float(1 - np.log(ends[0] / ends[1]) / (2 * _STEP))

    def _speed_slopes(self) -> dict[int, float]:
        """Slopes d ln E[speed] / d load for every size: a complex step, exact to rounding."""
        able, speed = self._states()
        loads, step = self.taken, 1e-100
        return {
            size: float(np.log(missing_law({**loads, size: load + 1j * step}, able) @ speed).imag) / step
            for size, load in loads.items()
            if load > 0
        }

    def _pause_slopes(self) -> NDArray[np.float64]:
        """Slopes d ln clear / d ln rate of every row that pauses the job."""
        rate, pause = self.rows.rate[self.pausing], self.rows.detection[self.pausing] + self.rows.pause
        total = rate.sum()
        if not total:
            return np.zeros(0)
        left = np.exp(-total * pause)
        clear = rate @ left / total
        slopes: NDArray[np.float64] = rate * ((left - clear) / total - rate @ (pause * left) / total) / clear
        return slopes

    def _slow_slopes(self) -> NDArray[np.float64]:
        """Slopes d ln undisturbed / d ln rate of every row, by complex steps."""
        job, found, step = self.rows, np.zeros(len(self.rows.rate)), 1e-100
        order = np.argsort(-job.slowdown, kind="stable")
        order = order[job.slowdown[order] > 1]
        busy, factor = self._slow()
        for place, row in enumerate(order):
            moved = busy + 1j * step * (np.arange(len(busy)) == place) * busy
            found[row] = np.log(_slowed(moved, factor)).imag / step
        return found


def _slowed(busy: Any, factor: NDArray[np.float64]) -> Any:
    """Mean speed with Poisson numbers of slow parts, slowest kind first: the slowest of all counts."""
    none = np.exp(-np.concatenate([[0.0], np.cumsum(busy)]))
    return none[-1] + ((none[:-1] - none[1:]) / factor).sum()


def _slow_spread(busy: NDArray[np.float64], factor: NDArray[np.float64], repair: float) -> float:
    """Relative asymptotic variance of that speed, times the time; each kind as an on-off process."""
    none = np.exp(-busy)
    drop = 1 - 1 / factor
    # Mean on-time (e^u - 1) r / u, off-time r / u: variance 2 p0^2 p1^2 (on + off) drop^2, with p0 = e^-u.
    cycle = np.divide(none * repair, busy, out=np.zeros_like(busy), where=busy > 0)
    return float((2 * (1 - none) ** 2 * cycle * drop**2 / (1 - (1 - none) * drop) ** 2).sum())


def _rollback_slopes(checkpointing: Checkpointing, causes: tuple[Cause, ...]) -> NDArray[np.float64]:
    """Slopes d ln share / d ln rate at a fixed interval: central differences, extrapolated once."""

    def change(place: int, step: float) -> float:
        ends = []
        for sign in (1, -1):
            moved = replace(causes[place], rate=causes[place].rate * np.exp(sign * step))
            ends.append(rollback(checkpointing, (*causes[:place], moved, *causes[place + 1 :])).share)
        return float(np.log(ends[0] / ends[1]) / (2 * step))

    return np.array([(4 * change(j, _STEP / 2) - change(j, _STEP)) / 3 for j in range(len(causes))])
