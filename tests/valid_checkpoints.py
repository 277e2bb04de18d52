"""One valid call of what `training` offers on checkpoints; see `valid_calls`."""

from collections.abc import Callable
from typing import Any

from relparallel import training
from relparallel.hardware import Cluster
from valid_workload import Arguments, fields


def levels() -> tuple[Any, ...]:
    memory = training.CheckpointLevel(name="memory", cost=1.0, restart=60.0, survives={"rack": 0.0})
    return memory, training.CheckpointLevel(name="storage", cost=60.0, restart=600.0, delay=30.0)


def checkpointing() -> Any:
    return training.Checkpointing(levels=levels(), interval=300.0, every=(20,))


def causes() -> list[Any]:
    return [training.Cause(level="node", rate=1e-4, detection=30.0, restart=120.0)]


CALLS: dict[str, Callable[[], Arguments]] = {
    "training.Cause": lambda: fields(causes()[0]),
    "training.CheckpointLevel": lambda: fields(levels()[0]),
    "training.Checkpointing": lambda: fields(checkpointing()),
    "training.in_memory": lambda: {
        "size": 1e12,
        "bandwidth": 1e12,
        "cluster": Cluster(nodes=8),
        "replicas": 2,
        "placement": "group",
        "stride": 1,
        "read_bandwidth": 1e12,
    },
    "training.just_in_time": lambda: {"save": 5.0, "restart": 60.0, "survives": {"rack": 0.0}},
    "training.parity": lambda: {
        "size": 1e12,
        "bandwidth": 1e12,
        "cluster": Cluster(nodes=8),
        "group": 4,
        "parities": 1,
        "stride": 1,
        "read_bandwidth": 1e12,
    },
    "training.remote": lambda: {"size": 1e12, "bandwidth": 1e11, "read_bandwidth": 1e11},
    "training.rollback": lambda: {"checkpointing": checkpointing(), "causes": causes()},
}

MEANINGFUL = {
    "training.CheckpointLevel": {"name": {"text"}},
    "training.rollback": {"causes": {"empty"}},
}
