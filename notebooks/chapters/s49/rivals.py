"""One decision by three objectives: Parcae's liveput, MoFa's model and the expected goodput.

All choose among the same candidates: how the model is split, how many replicas run and how many nodes
are spares, copies of the training state, and recovery. A replay of a log says who was right.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product
from typing import Any, Final, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from chapters.s49.bursts import IN_A_ROW, failing, halves, replayed
from relparallel.hardware import Cluster
from relparallel.parallel import Placement, Strategy, notation, step_time
from relparallel.training import (
    Checkpointing,
    FailureLog,
    JobShape,
    Recovery,
    goodput,
)
from relparallel.workload import Transformer

POLICIES: Final = ("hot_spares", "elastic", "regroup")
_COMMON: Final[dict[str, Any]] = {"sequence_parallel": True, "zero_stage": 1}
_CHUNKS: Final[dict[str, Any]] = {"schedule": "interleaved_1f1b"}
# Llama 3 405B on 400 nodes of eight H100, the fastest with 16, 10 and 4 nodes to a replica.
SPLITS: Final = (
    Strategy(tensor=8, pipeline=8, context=2, virtual_stages=8, **_CHUNKS, **_COMMON),
    Strategy(tensor=8, pipeline=5, context=2, **_COMMON),
    Strategy(tensor=4, pipeline=8, virtual_stages=16, recompute="full", **_CHUNKS, **_COMMON),
)
_SEQUENCES: Final = 4  # of a node and step, so that the batch follows the replicas


class Candidate(NamedTuple):
    """A job on some of the nodes that are owned; the others are spares."""

    placement: Placement
    policy: str
    cluster: Cluster  # nodes of the job
    spares: int
    throughput: float  # tokens/s without failures, predicted

    @property
    def shape(self) -> JobShape:
        """Nodes and replicas of the job."""
        return JobShape.of(self.placement, self.cluster)


def candidates(
    model: Transformer, owned: Cluster, splits: Sequence[Strategy], held: Sequence[int]
) -> Iterator[Candidate]:
    """Every split with as many replicas as there are nodes once so many are held back.

    Copies of the training state: one, and the fewest from two on that the replicas can hold.
    """
    for split in splits:
        size = split.model_parallel // owned.gpus_per_node
        for data in dict.fromkeys((owned.nodes - spares) // size for spares in held):
            job, batch = replace(owned, nodes=data * size), _SEQUENCES * data * size
            several = (data // n for n in range(2, data + 1) if data % n == 0)
            fitting: list[tuple[Strategy, float]] = []
            for shard in (data, *several):
                held_by = replace(split, data=data, shard=shard)
                step = step_time(model, held_by, job, batch)
                if step.fits and len(fitting) < 2:
                    fitting.append((held_by, batch * model.sequence / step.total))
            for (strategy, speed), policy in product(fitting, POLICIES):
                placed = Placement(strategy=strategy, order=IN_A_ROW)
                yield Candidate(placed, policy, job, owned.nodes - job.nodes, speed)


def liveput(one: Candidate, down: NDArray[np.float64], rate: float, stop: float) -> float:
    """Parcae's liveput: throughput expected over what may be missing, less what migrations take.

    Duan et al. 2024, abstract: "the expected training throughput of a DNN job under various possible
    preemption scenarios"; `liveput.py` of their artefact: throughput (interval - migration). Ours: the
    share of time with 0, 1, ... of the owned nodes down is the forecast, and ``stop`` [s] the
    migration of a failure. It has no checkpoints, and so no work that is lost.
    """
    missing = np.maximum(np.arange(down.size) - one.spares, 0)
    most = min(int(missing[-1]), one.shape.nodes)
    speed = Recovery(one.policy, 1.0).speed(one.shape, most)[np.minimum(missing, most)]
    return float(one.throughput * (down @ speed) * (1 - rate * one.shape.nodes * stop))


def mofa(one: Candidate, rate: float, plan: Checkpointing) -> float:
    """MoFa: throughput less checkpoints, restarts and repeated work, from a past failure rate.

    Zhao et al. 2025, abstract: "fault tolerance mechanisms like checkpoint recovery", "historical
    cluster reliability data". Ours: the first-order form W/(W + C) / (1 + N lam (R + W/2)), their
    own not being in what we could read. A failed node is replaced at once.
    """
    level, interval = plan.levels[0], float(plan.interval or 0.0)
    lost = level.restart + interval / 2
    kept = interval / (interval + level.cost) / (1 + rate * one.shape.nodes * lost)
    return one.throughput * kept


def decide(
    asked: Sequence[Candidate],
    known: FailureLog,
    tried: FailureLog,
    plan: Checkpointing,
    pause: float,
    rng: np.random.Generator,
    replications: int,
) -> tuple[pd.DataFrame, NDArray[np.float64]]:
    """What each objective says from one log, and what a replay of the other leaves [tokens/s].

    Second: the replay by candidate and replication; each begins at another moment, with the nodes in
    another order, the same for all candidates.
    """
    rate, repair, replay = known.outage_rate, float(np.nanmean(known.repairs)), tried.replay()
    down, events, seed = known.down_distribution(), known.shared_events(), rng.integers(2**32)
    rows, runs = [], []
    for one in asked:
        way = Recovery(one.policy, repair, pause=pause)
        strategy, stop = one.placement.strategy, plan.levels[0].restart if way.waits else pause
        where = one.placement, one.cluster
        share = goodput(failing(*where, rate, events), 1.0, plan, way, one.spares).mean
        model, draws = failing(*where, rate, replay), np.random.default_rng(seed)
        seen = replayed(model, plan, way, one.spares, rng=draws, times=replications)
        runs.append(one.throughput * np.asarray(seen.samples))
        rows.append(
            {
                "strategy": notation(strategy, short=True),
                "copies": strategy.state_copies,
                "spares": one.spares,
                "policy": one.policy,
                "joint": share * one.throughput,
                "liveput": liveput(one, down, rate, stop),
                "MoFa": mofa(one, rate, plan),
                "replay": float(runs[-1].mean()),
            }
        )
    return pd.DataFrame(rows), np.array(runs)


def verdicts(
    asked: Sequence[Candidate], log: FailureLog, usual: int, policies: Sequence[str], **how: Any
) -> pd.DataFrame:
    """Who chooses what of these policies, and what it loses against the best choice of the replay.

    Known is the whole log, and tried on itself, or one half, and tried on the other. MoFa chooses
    among restarts, also with the ``usual`` spares, those of independent failures.
    """
    parts, rows = halves(log), []
    asked = [one for one in asked if one.policy in policies]
    for known, tried in (
        ("whole", "whole"),
        ("first half", "second half"),
        ("second half", "first half"),
    ):
        found, runs = decide(asked, parts[known], parts[tried], **how)
        waits = found["policy"] == "hot_spares"
        rules = {
            "joint": ("joint", found["spares"] >= 0),
            "liveput": ("liveput", found["spares"] >= 0),
            "liveput, several copies": ("liveput", found["copies"] > 1),
            "MoFa": ("MoFa", waits),
            f"MoFa, {usual} spares or more": ("MoFa", waits & (found["spares"] >= usual)),
            "best of the replay": ("replay", found["spares"] >= 0),
        }
        best = runs[int(found["replay"].argmax())]
        for name, (score, among) in rules.items():
            chosen = int(found[score].where(among).argmax())
            lost, row = 1 - runs[chosen] / best, found.iloc[chosen].to_dict()
            row |= {"known": known, "objective": name, "loses": lost.mean()}
            rows.append(row | {"least": lost.min(), "most": lost.max()})
    return pd.DataFrame(rows).set_index(["known", "objective"])
