"""What few failures of a log leave open: goodput, checkpoint interval and spares; and its words.

The rates of all classes have one gamma posterior, their repairs one inverse gamma (`failure_rates`).
Both are drawn from on a lattice; of each draw the relative goodput of the choice, its strategy,
spares and checkpoint interval as they are, is a beta variable with the mean and the variance that
failures leave it over the horizon, and beside it the chance that nothing fails.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

import numpy as np
import pandas as pd
import scipy
from numpy.typing import NDArray

from relparallel.optimize.joint_plans import JointPlan
from relparallel.optimize.joint_search import Choice, JointSearch
from relparallel.planning.days import without_failures
from relparallel.training import FailureLog, spares_needed
from relparallel.training.failure_rates import (
    NONE_SEEN,
    Counted,
    counted_rate,
    counted_repair,
    in_node_days,
)
from relparallel.training.goodput_forms import SteadyState
from relparallel.units import DAY, HOUR, MINUTE

TAILS: Final = (0.05, 0.95)  # of the intervals of a plan
_POINTS: Final = 34  # of a lattice of Fibonacci numbers, evenly spread over rates and repairs
_STEP: Final = 21
_NONE: Final = 1e-9  # share next to 0 or 1
_UNITS: Final = (("days", DAY, 3), ("h", HOUR, 1), ("min", MINUTE, 1), ("s", 1.0, 0))
Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, eq=False)
class FewFailures:
    """Doubt about the rates and repairs of a log; repairs that were given leave none."""

    log: FailureLog
    given: bool  # the repair
    _shares: dict[SteadyState, tuple[float, float]] = field(default_factory=dict, repr=False)

    @cached_property
    def rate(self) -> Counted:
        """Failures of a node."""
        return counted_rate(self.log)

    @cached_property
    def repair(self) -> Counted | None:
        """Mean repair that the log has seen, None where it has not, or another one was given."""
        return None if self.given else counted_repair(self.log)

    @cached_property
    def factors(self) -> tuple[Floats, Floats]:
        """Draws of rates and repairs over their point values."""
        place = np.arange(_POINTS)
        rates = self.rate.rates((place + 0.5) / _POINTS)
        spread = (place * _STEP % _POINTS + 0.5) / _POINTS
        return rates, np.ones(_POINTS) if self.repair is None else self.repair.means(spread)

    def share(self, state: SteadyState, horizon: float) -> tuple[float, float]:
        """Interval of the relative goodput over a horizon [s]."""
        if state not in self._shares:
            drawn = [state.at(*each) for each in zip(*self.factors, strict=True)]
            self._shares[state] = mixed_interval(drawn, horizon)
        return self._shares[state]

    def checkpoint(self, search: JointSearch, choice: Choice) -> tuple[float, float]:
        """Interval of the best work between two checkpoints [s]; rates alone decide it."""
        asked, job = search.checkpoints[choice.checkpoint], choice.state.job
        if asked.interval is not None:
            return job.interval, job.interval
        if np.isinf(job.chosen(None, asked.every).interval):  # Young's root of what was not seen
            most, least = job.interval / np.sqrt(Counted(0.0, 1.0).rates(TAILS))
            return float(least), float(most)
        found = (
            job._replace(rate=job.rate * factor).chosen(None, asked.every).interval
            for factor in self.rate.rates(TAILS)
        )
        most, least = found
        return least, most

    def spares(self, nodes: int, rate: float, repair: float, shortage: float) -> tuple[int, int]:
        """Interval of the spares that so many nodes need."""
        load = np.quantile(np.multiply(*self.factors), TAILS)
        few, many = (spares_needed(nodes, rate * x, repair, shortage, "hot") for x in load.tolist())
        return few, many


def mixed_interval(states: list[SteadyState], horizon: float) -> tuple[float, float]:
    """Quantiles 5 and 95 % of the relative goodput over a horizon [s], each state as likely.

    The upper end is that of a run without a failure, where that has a chance above 5 %; a run holds
    one checkpoint more or less.
    """
    none, top = np.array([without_failures(state, horizon) for state in states]).T
    none, whole = np.minimum(none, 1 - _NONE), float(top[0])
    mean = np.array([float(state.share) for state in states]) / whole
    variance = np.array([state.variance_over(horizon) for state in states]) / horizon / whole**2
    some = np.clip((mean - none) / (1 - none), _NONE, 1 - _NONE)  # mean of runs with a failure
    square = (variance + mean**2 - none) / (1 - none) - some**2
    both = some * (1 - some) / np.clip(square, 1e-18, some * (1 - some) * (1 - 1e-3)) - 1

    def below(share: float) -> float:
        """Chance of less than a share of a run without failures."""
        return float(
            ((1 - none) * scipy.special.betainc(some * both, (1 - some) * both, share)).mean()
        )

    low, high = (
        1.0
        if below(1.0) <= tail
        else scipy.optimize.brentq(lambda x, tail=tail: below(x) - tail, 0.0, 1.0)
        for tail in TAILS
    )
    job = states[0].job
    more = float(job.cost.sum()) / horizon if high == 1 and np.isfinite(job.interval) else 0.0
    return low * whole, min(high * whole + more, 1.0)


def watched(log: FailureLog) -> str:
    """Window, failures and rate."""
    said = (
        f"the log: {log.incidents} failures of {log.population:,} nodes in {log.span / DAY:.4g} days, "
        f"{in_node_days(log.rate_interval())}"
    )
    if not log.incidents:
        said += "; the value is the mean of what may be, half a failure over the time watched"
    return said


def repaired(few: FewFailures, one: JointPlan) -> list[str]:
    """Which repair and restart a plan uses, and where they come from."""
    log, recovery = few.log, one.search.recoveries[one.policy]
    seen, still, used = counted_repair(log), int(log.still.sum()), _time(recovery.repair)
    known = ""
    if seen is not None:
        low, high = (_time(seen.value * each) for each in seen.means(np.array(TAILS)))
        ended = int(np.isfinite(log.end).sum())
        known = f"{_time(seen.value)} ({low} to {high}) by {ended} repairs of the log"
        if np.isinf(seen.number):
            known = (
                f"{_time(seen.value)}, which all {ended} of the log took or were given (repair=)"
            )
    elif still:
        longest = _time(float((log.watched - log.start[log.still]).max()))
        known = f"longer than {longest} for one of {still} that were still down when the log ended"
    if few.given:
        said = f"repair of a node {used}: as given (repair=)"
        said += f"; the log has {known}, which is not used" * (seen is not None)
    elif seen is None:
        said = f"repair of a node {used}: assumed by recovery policy {one.policy}, the log does not say"
        said += f" (it is {known})" * bool(still) + "; repair= does"
    else:
        said = f"repair of a node {known}"
        if still:
            said += f", {still} nodes still down at its end counted by Kaplan and Meier"
        if none := [cause for cause in log.level_of() if log.repair_of(cause) is None]:
            said += f"; {', '.join(none)}, of which none ended, as the others"
    return [said, *_resumed(log, recovery.restart)]


def _resumed(log: FailureLog, restart: float) -> list[str]:
    """How long the job was gone in a log, beside the restart of a plan."""
    gone = log.resumed - log.start
    if not (back := np.isfinite(gone)).any():
        return []
    return [
        f"the job was back {_time(float(gone[back].mean()))} after a failure ({back.sum()} known, at "
        f"most {_time(float(gone[back].max()))}), which is no repair of a node; the plan takes "
        f"{_time(restart)} for a restart besides what checkpoints cost; restart= says another"
    ]


def unseen(log: FailureLog, one: JointPlan) -> list[str]:
    """Why checkpoints are written though no failure of a log goes back to one."""
    job, asked = one.choice.state.job, one.search.checkpoints[one.checkpoint]
    if asked.interval is not None or not np.isinf(job.chosen(None, asked.every).interval):
        return []
    levels = [f"{cause} ({level})" for cause, level in log.level_of().items()] or ["none was seen"]
    often = log.exposure / (one.cluster.nodes * NONE_SEEN)
    return [
        f"no failure of the log loses the state of a job that recovers by {one.policy}: "
        f"{', '.join(levels)}; a checkpoint every {_time(job.interval)} is against those that it did "
        f"not see, taken as half a one over the time watched: once in {_time(often)}"
    ]


def never(one: JointPlan) -> list[str]:
    """Why no checkpoint is written at all."""
    if not np.isinf(one.interval):
        return []
    return [
        f"no failure that was given loses the state of a job that recovers by {one.policy}: it writes "
        "no checkpoint (every inf min)"
    ]


def causes(log: FailureLog) -> pd.DataFrame:
    """Table of causes: failures, what fails, mean repair [h]."""
    table = log.to_frame()
    hours = (table["mean_repair"].astype(float) / HOUR).round(2)
    return pd.DataFrame(
        {
            "cause": table["cause"],
            "failures": table["failures"],
            "fails": table["level"],
            "mean repair [h]": hours.astype(object).where(hours.notna(), "not known"),
        }
    )


def _time(seconds: float) -> str:
    """A time in the largest unit of which there are a few."""
    unit, size = next(
        ((unit, size) for unit, size, least in _UNITS if seconds >= least * size), ("s", 1.0)
    )
    return (
        f"{seconds / size:,.0f} {unit}"
        if seconds >= 1000 * size
        else f"{seconds / size:.3g} {unit}"
    )
