"""What a plan says of an own log: its watch, rate and repairs, and what it leaves open."""

from __future__ import annotations

from typing import Final

import numpy as np
import pandas as pd

from relparallel.optimize.joint_plans import JointPlan
from relparallel.planning.few_failures import TAILS, FewFailures
from relparallel.training import FailureLog
from relparallel.training.failure_rates import NONE_SEEN, counted_repair, in_node_days
from relparallel.units import DAY, HOUR, MINUTE

_UNITS: Final = (("days", DAY, 3), ("h", HOUR, 1), ("min", MINUTE, 1), ("s", 1.0, 0))


def watched(log: FailureLog) -> str:
    """Window, failures and rate."""
    begin = (log.watched - log.span) / DAY
    said = (
        f"the log: {log.incidents} failures of {log.population:,} nodes from day {begin:.4g} to day "
        f"{log.watched / DAY:.4g} ({log.span / DAY:.4g} days), "
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
