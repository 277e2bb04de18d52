"""A job under failures, compiled: the factors of its goodput, their spread and their slopes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from relparallel.training._missing import speed_spread
from relparallel.training._rows import STANDING, Rows, rows, undisturbed
from relparallel.training.checkpoint_policies import Cause, Checkpointing
from relparallel.training.failures import Domain, FailureModel
from relparallel.training.markov import NodeChain
from relparallel.training.recovery_policies import Recovery
from relparallel.training.rollback import Rollback, rollback, rollback_slopes


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
        if speed == 1 or speed < STANDING or self.rows.interval == np.inf:
            return self
        chosen = replace(self.checkpointing, interval=self.rows.interval / speed)
        return replace(self, checkpointing=chosen, back=rollback(chosen, self.causes))

    @property
    def pausing(self) -> NDArray[np.bool_]:
        """Rows that stop the job for a pause only."""
        kept: NDArray[np.bool_] = ~self.rows.back & (self.rows.slowdown == 1)
        return kept & (self.rows.detection + self.rows.pause > 0)

    def shares(self) -> Shares:
        """Factors in closed form."""
        available, mean = self.rows.running(self.waits)
        clear, noticed = self._clear()
        return Shares(available, clear, noticed, mean, self._undisturbed())

    def _undisturbed(self) -> float:
        return float(undisturbed(*self.rows.slow()))

    def chain_shares(self, crews: int | None) -> Shares:
        """Factors from the Markov chain."""
        job, busy, pausing = self.rows, self.rows.taken, self.pausing
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
        return Shares(1 - waiting, clear, self._clear()[1], min(speed, 1.0), self._undisturbed())

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

    def variance_rate(self, shares: Shares, planned: float) -> float:
        """Variance of the productive share over a run, times its length: relative variances add."""
        job, loads = self.rows, self.rows.taken
        run = (1 - planned) * shares.available
        mean = run * shares.clear * self.back.share * shares.speed * shares.undisturbed
        if mean < STANDING:
            return 0.0
        able, speed = self.rows.states(self.waits)
        law = job.law(self.waits, loads)
        weight = np.where(job.nodes > 0, job.rate * job.repair, 0.0)
        repair = float(weight @ job.repair / weight.sum()) if weight.sum() else 0.0
        parts = speed_spread(law, loads, able, speed, repair) / float(law @ speed) ** 2
        parts += self.back.variance_rate / self.back.share**2 / (run * shares.clear)
        rate, pause = job.rate[self.pausing], job.detection[self.pausing] + job.pause
        parts += float(rate @ pause**2) * shares.clear / run
        parts += _slow_spread(
            *self.rows.slow(), job.repair[job.slowdown > 1].mean() if self.rows.slow()[0].size else 0
        )
        return float(mean**2 * parts)

    def third_rate(self, shares: Shares, planned: float, mean: float) -> float:
        """Third cumulant of the productive share over a run, times its length squared; going back only."""
        going = (1 - planned) * shares.available * shares.clear
        if mean < STANDING:
            return 0.0
        return float(mean**3 * self.back.third_rate / self.back.share**3 / going**2)

    def gradient(self) -> NDArray[np.float64]:
        """Derivative of ln(goodput) by the logarithm of the rate of every row."""
        job = self.rows
        found = np.zeros(len(job.rate))
        for size, slope in self._speed_slopes().items():
            found += np.where(job.nodes == size, slope * job.rate * job.repair, 0.0)
        slopes, by_interval = np.zeros(0), 0.0
        if self.causes and self.checkpointing.interval is not None:
            slopes, by_interval = rollback_slopes(self.checkpointing, self.causes)
        elif not self.causes:
            by_interval = 1 - self.back.share  # of W / (W + C); an interval without end costs nothing
        stretch = 1 - by_interval  # a lower speed makes an interval longer
        found *= 1.0 if self.waits else stretch
        found[self.pausing] += self._pause_slopes()
        found += self._slow_slopes() * stretch
        if self.causes:
            rates = np.array([cause.rate for cause in self.causes])
            found[job.back] += job.rate[job.back] * (slopes / rates)[self.of_cause[job.back]]
        return found

    def _speed_slopes(self) -> dict[int, float]:
        """Slopes d ln E[speed] / d load for every size: a complex step, exact to rounding."""
        speed = self.rows.states(self.waits)[1]
        loads, step = self.rows.taken, 1e-100
        found = {}
        for size, load in loads.items():
            moved = self.rows.law(self.waits, {**loads, size: load + 1j * step})
            found[size] = float(np.log(moved @ speed).imag) / step
        return found

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
        busy, factor = self.rows.slow()
        for place, row in enumerate(order):
            moved = busy + 1j * step * (np.arange(len(busy)) == place) * busy
            found[row] = np.log(undisturbed(moved, factor)).imag / step
        return found


def _slow_spread(busy: NDArray[np.float64], factor: NDArray[np.float64], repair: float) -> float:
    """Relative asymptotic variance of that speed, times the time; each kind as an on-off process."""
    none = np.exp(-busy)
    drop = 1 - 1 / factor
    # Mean on-time (e^u - 1) r / u, off-time r / u: variance 2 p0^2 p1^2 (on + off) drop^2, with p0 = e^-u.
    cycle = np.divide(none * repair, busy, out=np.zeros_like(busy), where=busy > 0)
    return float((2 * (1 - none) ** 2 * cycle * drop**2 / (1 - (1 - none) * drop) ** 2).sum())
