"""Events that nodes of a log share, and how much its months differ; see `FailureLog.shared_events`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import scipy

from relparallel._checks import require_int
from relparallel.training._arguments import require_time
from relparallel.training.failure_sources import SharedEvents


def shared_events(log: Any, window: Any, together: Any, month: Any, nodes: Any) -> SharedEvents:
    """See `FailureLog.shared_events`."""
    length, month = require_time(window=window, month=month, positive=True, single=True)
    later = np.diff(log.start, prepend=log.start[:1]) > length
    event = np.cumsum(later & ~pd.Series(log.incident).duplicated().to_numpy())
    taken = np.bincount(pd.Series(log.node).groupby(event).nunique().to_numpy())[1:]
    made = SharedEvents(
        sizes=tuple((taken / taken.sum()).tolist()), together=together, lasting=month
    )
    months = int(log.span / month)
    border = np.linspace(log.watched - log.span, log.watched, months + 1)
    end = np.where(np.isnan(log.end), log.watched, log.end)
    held = np.clip(end, border[:, None], None) - np.clip(log.start, border[:, None], None)
    down = -np.diff(held.sum(axis=1)) * months / log.span  # nodes in the mean of each month
    shape = made.drift(down, log.span / max(months, 1), float((end - log.start).mean()))
    if shape is not None:
        made = replace(made, phases=SharedEvents.drifting(shape))
    if nodes is None:
        return made
    require_int(nodes=nodes, at_least=1, at_most=log.population)
    met = np.arange(1, min(nodes, taken.size) + 1)[:, None]
    size = np.arange(1, taken.size + 1)
    own = scipy.stats.hypergeom.pmf(met, log.population, size, nodes) @ taken
    return replace(made, sizes=tuple((own / own.sum()).tolist()))


def outages_alone(log: Any) -> Any:
    """Every outage as a failure of its own node: `SharedEvents` says how many fail together.

    What stops the job as a whole stays one failure.
    """
    several = set(log.cause[pd.Series(log.incident).duplicated(keep=False)].tolist())
    levels = {
        cause: "node" if cause in several and level in ("nvlink", "switch", "rack") else level
        for cause, level in log.level_of().items()
    }
    job = np.array([levels[cause] == "job" for cause in log.cause.tolist()], dtype=np.bool_)
    own = log.incident.max(initial=0) + 1 + np.arange(len(job))
    return log._watched(incident=np.where(job, log.incident, own), levels=levels)
