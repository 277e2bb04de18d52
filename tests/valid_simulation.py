"""One valid call of what `training` offers on simulation; see `valid_calls`."""

from collections.abc import Callable

import numpy as np
import pandas as pd

from relparallel.hardware import Cluster
from relparallel.parallel import Strategy
from relparallel.training import (
    Checkpointing,
    CheckpointLevel,
    Lifetime,
    NodeLives,
    Recovery,
    Replay,
    SharedEvents,
    failure_model,
)
from valid_workload import Arguments, fields

RECORDS = pd.DataFrame({"node": [0, 3], "start": [60.0, 90.0], "end": [600.0, 100.0]})


def generator() -> np.random.Generator:
    return np.random.default_rng(0)


LIVES = NodeLives(
    lifetimes=Lifetime.weibull(mean=1.0, shape=0.7), ages="new", repairs=Lifetime.exponential(1.0)
)
CALLS: dict[str, Callable[[], Arguments]] = {
    "training.NodeLives": lambda: fields(LIVES),
    "training.Replay": lambda: fields(Replay(records=RECORDS, nodes=8, span=86400.0)),
    "training.SharedEvents": lambda: fields(SharedEvents(sizes=(0.7, 0.3))),
    "training.Lifetime": lambda: fields(Lifetime.empirical(np.array([1.0, 3.0]))),
    "training.simulate": lambda: {
        "model": failure_model(Cluster(nodes=8), Strategy(tensor=8, data=8), source=LIVES),
        "step_time": 5.0,
        "checkpointing": Checkpointing(
            levels=(CheckpointLevel(name="storage", cost=1.0, restart=60.0),)
        ),
        "recovery": Recovery("spares", 3600.0),
        "spares": 1,
        "years": 0.2,
        "rng": generator(),
        "level": "identity",
        "planned": 0.01,
        "tokens_per_step": 1e6,
        "horizon": 86400.0,
        "replications": 2,
        "executor": None,
    },
    "training.simulate on counts": lambda: {
        "model": failure_model(Cluster(nodes=8), Strategy(tensor=8, data=8)),
        "step_time": 5.0,
        "checkpointing": Checkpointing(
            levels=(CheckpointLevel(name="storage", cost=1.0, restart=60.0),)
        ),
        "recovery": Recovery("spares", 3600.0),
        "years": 0.2,
        "rng": generator(),
        "crews": 2,
        "horizon": 86400.0,
        "replications": 2,
    },
}
