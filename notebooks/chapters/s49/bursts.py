"""How short of nodes a log is with the spares that a model asks for, and what bursts do to a job."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

import numpy as np
import pandas as pd

from relparallel.hardware import Cluster
from relparallel.parallel import Placement, Strategy
from relparallel.training import (
    Checkpointing,
    ComponentClass,
    FailureLog,
    FailureModel,
    Recovery,
    SharedEvents,
    goodput,
    simulate,
    spares_needed,
)
from relparallel.training.failure_sources import Replay, Source
from relparallel.training.report import Goodput
from relparallel.units import YEAR

IN_A_ROW: Final = ("tensor", "context", "pipeline", "data")  # nodes in a row are a replica
_REPLAYS: Final = 8  # of a record, from other moments on and with other nodes
_LONGEST_EVENT: Final = 1e-6  # share of events that are larger than the largest kept


def burst(variance_ratio: float, most: int) -> SharedEvents:
    """Events with geometric numbers of nodes, with this index of dispersion of the nodes down.

    E[B^2]/E[B] = (2 - p)/p for the share p of events that take no further node.
    """
    stop = 2 / (1 + variance_ratio)
    sizes = stop * (1 - stop) ** np.arange(most)
    sizes = sizes[sizes > _LONGEST_EVENT * sizes[0]]
    return SharedEvents(sizes=tuple((sizes / sizes.sum()).tolist()))


def halves(log: FailureLog) -> dict[str, FailureLog]:
    """The whole log, and the failures that begin in each half of its window, repaired by its end."""
    begin = log.watched - log.span
    middle, found = begin + log.span / 2, {"whole": log}
    for name, first, last in (("first half", begin, middle), ("second half", middle, log.watched)):
        inside = (log.start >= first) & (log.start < last)
        end = np.where(np.isnan(log.end), log.watched, log.end)[inside]
        found[name] = FailureLog(
            node=log.node[inside],
            start=log.start[inside] - first,
            end=np.minimum(end, last) - first,
            cause=log.cause[inside],
            population=log.population,
            begin=0.0,
            finish=last - first,
            overlaps="keep",
        )
    return found


def shortage_tries(log: FailureLog, shortage: float = 1e-3) -> pd.DataFrame:
    """Spares by three models fitted on a part of a log, and how often that part or another is short.

    Columns fitted, tried, model, spares, shortage (share of the time with more nodes down) and least,
    the spares that would have done. Spares can fail.
    """
    parts, rows = halves(log), []
    for fitted, tried in (
        ("whole", "whole"),
        ("first half", "second half"),
        ("second half", "first half"),
    ):
        known, seen = parts[fitted], parts[tried].down_distribution()
        repair = float(np.nanmean(known.repairs))
        events = known.shared_events()
        models = {
            "independent": None,
            "events": replace(events, phases=((1.0, 1.0),)),
            "events, months differ": events,
        }
        least = int(np.argmax(1 - np.cumsum(seen) <= shortage))
        for model, source in models.items():
            asked = spares_needed(
                log.population, known.outage_rate, repair, shortage, "hot", source=source
            )
            asked = min(asked, log.population)
            rows.append(
                {
                    "fitted": fitted,
                    "tried": tried,
                    "model": model,
                    "spares": asked,
                    "shortage": max(0.0, 1 - float(seen[: asked + 1].sum())),
                    "least": least,
                }
            )
    return pd.DataFrame(rows)


def failing(placement: Placement, cluster: Cluster, rate: float, source: Any) -> FailureModel:
    """Nodes of a job that fail at a rate, or as the source says."""
    nodes = ComponentClass(name="node", level="node", rate=rate)
    return FailureModel(classes=(nodes,), cluster=cluster, placement=placement, source=source)


def replayed(model: FailureModel, *how: Any, rng: np.random.Generator, times: int) -> Goodput:
    """Goodput of a job whose source is a record, from so many other moments on."""
    span = model.source.span  # type: ignore[union-attr]
    years = (times + 0.5) * span / YEAR
    return simulate(model, 1.0, *how, years=years, rng=rng, horizon=span, replications=times)


def goodput_per_node(
    source: Source | None,
    policy: str,
    *,
    nodes: int,
    rate: float,
    repair: float,
    checkpointing: Checkpointing,
    pause: float = 0.0,
    spares: int = 0,
    replica: int = 1,
    rng: np.random.Generator | None = None,
) -> float:
    """Relative goodput per node owned: by formula, or of a `Replay`, which takes an ``rng``.

    ``nodes`` are all that are owned, spares among them; ``rate`` of one [1/s].
    """
    used = nodes - spares
    strategy = Strategy(tensor=8, pipeline=replica, data=used // replica)
    placed = Placement(strategy=strategy, order=IN_A_ROW)
    model = failing(placed, Cluster(nodes=used), rate, source)
    way = Recovery(policy, repair, pause=pause)
    if not isinstance(source, Replay):
        return goodput(model, 1.0, checkpointing, way, spares).mean * used / nodes
    drawn = np.random.default_rng(0) if rng is None else rng
    found = replayed(model, checkpointing, way, spares, rng=drawn, times=_REPLAYS)
    return found.mean * used / nodes
