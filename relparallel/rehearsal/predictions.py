"""What a rehearsed job should reach by the package, from numbers of another run, and what it did reach."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from relparallel.hardware import Cluster
from relparallel.parallel import Placement, Strategy
from relparallel.rehearsal.job import Log
from relparallel.rehearsal.node import SAMPLES, Run
from relparallel.training import (
    Checkpointing,
    CheckpointLevel,
    ComponentClass,
    FailureModel,
    Recovery,
    goodput,
    simulate,
)
from relparallel.training.failure_sources import NodeLives, Replay, Source
from relparallel.units import YEAR

BLOCKS = 6  # of a run, for intervals of differences
_RUNS = 400  # simulated for a range
Inputs = dict[str, float]


def inputs(runs: Sequence[Run], logs: Sequence[Log]) -> Inputs:
    """What a policy costs with replicas of this size: step, checkpoint, restart, pause and lag [s].

    A pause is all that a failure of a working replica costs the others, at its loss and its return.
    """
    pairs = list(zip(runs, logs, strict=True))
    step = float(np.mean(np.concatenate([_clean(run, log) for run, log in pairs])))
    cost = float(np.mean([seconds for log in logs for _, seconds in log.saves]))
    found = {"step": step, "checkpoint": cost, "restart": 0.0, "pause": 0.0, "lag": 0.0}
    if runs[0].elastic:
        lost, hits = np.sum([_paused(run, log, step, cost) for run, log in pairs], axis=0)
        # with one copy of the state a loss sends the job back, so that it pays this as a restart
        found["restart" if runs[0].copies == 1 else "pause"] = float(lost / hits)
        found["lag"] = float(np.mean([lag for log in logs for lag in log.joins]))
    else:
        found["restart"] = float(np.mean([gap for log in logs for gap in _restarts(log)]))
    return found


def _clean(run: Run, log: Log) -> NDArray[np.float64]:
    """Seconds of the steps in which nothing happened."""
    begins = [at for at, _, _ in log.began]
    at, done = (np.array([step[column] for step in log.steps]) for column in (0, 1))
    whole = np.searchsorted(begins, at[:-1]) == np.searchsorted(begins, at[1:])
    return np.asarray(np.diff(at)[whole & (done[:-1] % run.every != 0)])


def _restarts(log: Log) -> list[float]:
    """Seconds from a failure, or from the moment when there are enough nodes, to the next step."""
    found, last = [], 0.0
    causes = np.array([at for _, at, _, _ in log.kills] + [to for _, to in log.waits])
    for at, _, _ in log.began:
        since = causes[(causes > last) & (causes < at)]
        found += [at - float(since.max())] if since.size else []
        last = at
    return found


def _paused(run: Run, log: Log, step: float, cost: float) -> tuple[float, int]:
    """Seconds in which an elastic job stood still to regroup, and the failures behind it.

    Gaps in which no replica was up and time-outs count too, as in the predictions that are
    recorded: what is replayed pays for them twice.
    """
    lost, hits = 0.0, 0
    for (at, done, *_), (then, *_) in zip(log.steps, log.steps[1:], strict=False):
        regrouped = any(at < began < then for began, _, _ in log.began)
        if regrouped:
            lost += then - at - step - cost * (done % run.every == 0)
            hits += sum(working and at < struck < then for _, struck, _, working in log.kills)
    return lost, hits


def measured(run: Run, log: Log) -> dict[str, Any]:
    """Relative goodput of a run by its own undisturbed step, and samples a second in each of its blocks."""
    kept: dict[int, tuple[float, int]] = {}  # step: when it was done for good, by how many replicas
    begins = [(at, done, 0) for at, _, done in log.began]
    for at, done, replicas in sorted(begins + [step[:3] for step in log.steps]):
        if replicas:
            kept[done] = at, replicas
        else:  # what is beyond is done again
            kept = {step: known for step, known in kept.items() if step <= done}
    at, replicas = np.array(list(kept.values())).T
    place = np.minimum(BLOCKS * at / run.seconds, BLOCKS - 1).astype(np.int64)
    samples = SAMPLES * run.nodes_per_replica * replicas
    blocks = np.bincount(place, samples, BLOCKS) * BLOCKS / run.seconds
    clean = _clean(run, log)
    return {
        "step": clean.mean(),
        "late": (clean > 1.5 * np.median(clean)).mean(),
        "kills": len(log.kills),
        "timeouts": log.timeouts,
        "measured": blocks.mean() * clean.mean() / (SAMPLES * run.nodes),
        "rate": blocks.mean(),
        **{f"block_{place}": value for place, value in enumerate(blocks)},
    }


def predicted(run: Run, known: Inputs) -> dict[str, float]:
    """Relative goodput and samples a second, in closed form."""
    share = goodput(*_job(run, known, 1 / run.mtbf)).mean * (1 - run.spares / run.nodes)
    return {"predicted": share, "predicted_rate": share * SAMPLES * run.nodes / known["step"]}


def spread(run: Run, repeats: Sequence[Inputs], source: Source | None = None) -> dict[str, float]:
    """Mean and range of the relative goodput of 90 % of such runs, as sure as repeats of the costs are.

    A run begins with everything up, which the closed form does not know.
    """
    source, each = source or NodeLives(ages="new"), -(-_RUNS // len(repeats))
    found = np.concatenate(
        [
            _simulated(run, known, each, 1 / run.mtbf, source, place).samples
            for place, known in enumerate(repeats)
        ]
    )
    low, high = np.percentile(found, (5, 95))
    part = 1 - run.spares / run.nodes
    return {"expected": part * found.mean(), "low": part * low, "high": part * high}


def replayed(run: Run, known: Inputs, kills: pd.DataFrame) -> float:
    """Relative goodput on recorded failures: columns node, start and end of the repair [s]."""
    table = kills[["node", "start", "end"]].sort_values(["node", "start"])
    again = table.groupby("node")["start"].shift(-1).fillna(np.inf)  # it may die as it comes back
    table["end"] = np.minimum(table["end"] + known["lag"], again - 1e-6)
    replay = Replay(records=table, nodes=run.nodes, span=run.seconds, shuffled=False)
    share = _simulated(run, known, 2, 1 / run.mtbf, replay, 0).mean  # both are alike
    return float(share * (1 - run.spares / run.nodes))


def _simulated(run: Run, known: Inputs, count: int, rate: float, source: Source, seed: int) -> Any:
    """So many simulated runs that begin with everything up."""
    model, *job = _job(run, known, rate)
    years, rng = (count + 0.5) * run.seconds / YEAR, np.random.default_rng([1, seed])
    given: Any = {"years": years, "rng": rng, "horizon": run.seconds, "replications": count}
    given["level"] = "identity"  # nodes in a row can fail together
    return simulate(replace(model, source=source), *job, **given)


def _job(run: Run, known: Inputs, rate: float) -> tuple[Any, ...]:
    """Arguments of `goodput` and `simulate`: what fails, how long a step takes, what recovery does."""
    active, size = run.nodes - run.spares, run.nodes_per_replica
    replicas, copies = active // size, run.copies
    shards: dict[str, Any] = {"zero_stage": 1, "shard": replicas // copies} if copies else {}
    model = FailureModel(
        classes=(ComponentClass(name="node", level="node", rate=rate),),
        cluster=Cluster(nodes=active, gpus_per_node=1),
        placement=Placement(
            strategy=Strategy(pipeline=size, data=replicas, **shards),
            order=("tensor", "context", "pipeline", "data"),  # nodes in a row are a replica
        ),
    )
    level = CheckpointLevel(name="file", cost=known["checkpoint"], restart=0.0)
    plan = Checkpointing(levels=(level,), interval=run.every * known["step"])
    repair, restart, pause = run.repair + known["lag"], known["restart"], known["pause"]
    policy = "hot_spares" if run.exposed and run.policy == "spares" else run.policy
    recovery = Recovery(policy, repair, restart=restart, pause=pause)
    return model, known["step"], plan, recovery, run.spares
