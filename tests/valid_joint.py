"""Valid calls of joint choices of strategy, recovery, checkpoints and spares; see `valid_calls`."""

from collections.abc import Callable
from typing import Any

import relparallel as rp
from valid_workload import Arguments, model


def question() -> Any:
    cluster = rp.hardware.cluster("a100-80gb-selene", gpus=16)
    return {
        "workload": model(),
        "cluster": cluster,
        "rates": "llama3",
        "objective": "goodput",
        "global_batch": 8,
        "policies": ("restart", "elastic"),
        "checkpoints": None,
        "storage_bandwidth": None,
        "spares": 0,
        "repair": 86400.0,
        "restart": 300.0,
        "pause": 30.0,
        "price": 1e-3,
        "horizon": 1e6,
        "limits": {"schedule": "1f1b"},
        "network": None,
        "network_rates": None,
        "write_off": None,
        "orders": (("tensor", "context", "pipeline", "data"),),
        "source": rp.training.SharedEvents(sizes=(0.9, 0.1)),
        "apart": {"pipeline": 4},
        "executor": None,
    }


CALLS: dict[str, Callable[[], Arguments]] = {
    "optimize.joint": question,
    "optimize.joint measured": lambda: (
        question()
        | {
            "limits": None,
            "apart": None,
            "orders": (("tensor", "context", "data", "pipeline"),),
            "measured": {rp.parallel.Strategy(tensor=8, data=2): 1e4},
        }
    ),
    "optimize.place_replicas": lambda: {"domains": {"rack": [0, 0, 1, 1]}, "copies": 1, "room": 1},
}
