"""Valid calls of goodput, its report and the Markov chain; see `valid_calls`."""

from collections.abc import Callable
from typing import Any

import relparallel as rp
from valid_workload import Arguments


def failing() -> Any:
    strategy = rp.parallel.Strategy(tensor=8, pipeline=2, data=4)
    return rp.training.failure_model(rp.hardware.Cluster(nodes=8), strategy)


def storage() -> Any:
    level = rp.training.CheckpointLevel(name="storage", cost=20.0, restart=300.0)
    return rp.training.Checkpointing(levels=(level,))


def call() -> Arguments:
    return {
        "model": failing(),
        "step_time": 5.0,
        "checkpointing": storage(),
        "recovery": rp.training.Recovery("spares", repair=86400.0),
        "spares": 1,
        "tokens_per_step": 1e6,
        "planned": 0.01,
        "horizon": 2.6e6,
        "method": "markov",
        "crews": 3,
    }


CALLS: dict[str, Callable[[], Arguments]] = {
    "training.goodput": call,
}

MEANINGFUL: dict[str, dict[str, set[str]]] = {}
