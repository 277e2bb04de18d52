"""How much a day's tokens vary about what is expected: by steps, by slow GPUs and by failures.

The doubt about the expected step time is kept apart: it is one error of all days, which own runs
take away, while this is left. Measured steps, of which predictions are means, hold noise and slow
GPUs already, so that both add to the spread alone; to the mean only what the slowest of more GPUs
than in any series lacks. Parts of the failure table that slow a job count with the failures.
"""

import math
from functools import cache
from typing import Final, NamedTuple

import numpy as np
from scipy.special import betaincinv, ndtri

from relparallel.optimize.joint_search import Choice, JointSearch
from relparallel.published import shipped_rows
from relparallel.training.goodput_forms import SteadyState
from relparallel.training.order_statistics import LAWS, NORMAL, largest
from relparallel.units import DAY

_NONE: Final = 0.01  # share below which a day is said to make nothing


class Day(NamedTuple):
    """Tokens of a day over those of a day of steps as predicted, and what makes days differ."""

    median: float
    low: float  # of nine days of ten
    high: float
    steps: float  # standard deviation over mean: noise of steps
    slow_gpus: float  # which GPU is the slowest, the same all day
    failures: float
    growth: float  # of the step time, by more GPUs than were ever measured

    def said(self) -> str:
        """In words."""
        grown = f"; more GPUs than were ever measured take {self.growth:.2%}" * bool(self.growth)
        return (
            f"days differ by {self.failures:.2%} through failures, {self.slow_gpus:.2%} slow GPUs, "
            f"{self.steps:.2%} noise of steps{grown}"
        )


def day_of(search: JointSearch, choice: Choice) -> Day:
    """A day of a joint choice."""
    gpus = search.sites[choice.site].job.gpus
    return day_of_state(choice.state, gpus, search.question.tokens / choice.throughput)


def day_of_state(state: SteadyState, gpus: int, step: float) -> Day:
    """A day of a job of so many GPUs, whose steps take so many seconds.

    Failures leave a beta distribution with their mean and variance over a day, and at its upper end
    days without any; steps and slow GPUs leave a normal one; the distances of quantiles from the
    mean add in squares.
    """
    spread, mean = _spread(), float(state.share)
    slowest, apart = _slowest(gpus)
    growth = spread["gpu_sd"] * max(slowest - _slowest(int(spread["gpus"]))[0], 0.0)
    steps, slow = spread["step_sd"] * math.sqrt(step / DAY), spread["gpu_sd"] * apart
    variance = state.variance_over(DAY) / DAY
    low, median, high = _left_by_failures(mean, variance)
    wide = NORMAL * mean * math.hypot(steps, slow)
    least, most = mean - math.hypot(mean - low, wide), mean + math.hypot(high - mean, wide)
    chance, whole = without_failures(state, DAY)
    if chance > 0.05 and variance > 0:  # the best days are those; a smooth law has none of them
        median = min(median, whole)
        most = whole * (1 + float(ndtri(1 - 0.05 / chance)) * math.hypot(steps, slow))
    return Day(
        median=median / (1 + growth),
        low=least / (1 + growth) if low > _NONE else 0.0,
        high=most / (1 + growth),
        steps=steps,
        slow_gpus=slow,
        failures=math.sqrt(variance) / mean if mean else 0.0,
        growth=growth,
    )


def _left_by_failures(mean: float, variance: float) -> tuple[float, float, float]:
    """Quantiles 5, 50 and 95 % of the beta distribution of a mean and a variance."""
    most = mean * (1 - mean)
    if variance <= 0 or most <= 0:
        return mean, mean, mean
    both = max(most / variance - 1, 1e-3)
    low, median, high = betaincinv(mean * both, (1 - mean) * both, [0.05, 0.5, 0.95])
    return float(low), float(median), float(high)


def without_failures(state: SteadyState, length: float) -> tuple[float, float]:
    """Chance that a time [s] begins at full speed and nothing fails in it, and its share."""
    job = state.job
    whole = float(job.down()[job.states()[1] == 1].sum())
    chance = whole * math.exp(-length * float(job.rate.sum()))
    written = job.cost / np.cumprod(np.concatenate([[1], job.every[:-1]]))
    return chance, 1 / (1 + float(written.sum()) / job.interval)


@cache
def _slowest(gpus: int) -> tuple[float, float]:
    """Mean and standard deviation of the largest of so many normal draws."""
    return largest(gpus, LAWS["normal"])


@cache
def _spread() -> dict[str, float]:
    """Of all series of MLPerf Training together: deviations of steps and GPUs, and most GPUs."""
    every = shipped_rows("derived/step_spread.csv")[-1]
    return {name: float(every[name]) for name in ("step_sd", "gpu_sd", "gpus")}
