"""One valid call of what `optimize` offers on shared clusters and GPUs, and `workload` on tiles."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from valid_workload import Arguments, fields

import relparallel as rp


def goodput() -> Any:
    return rp.optimize.StatisticalGoodput(
        compute=0.1, compute_per_sample=0.01, nodes=0.05, nodes_per_replica=0.005, local=0.02,
        local_per_replica=0.002, overlap=2.0, noise=1280.0, batch=128,
    )  # fmt: skip


def application() -> Any:
    return rp.optimize.modelled_application(goodput(), epochs=1, steps=10.0, limits=(8, 64, 1024), name="app")


def jobs() -> Any:
    row = {"name": "a", "time": 0, "application": "app", "num_replicas": 2, "batch_size": 128}
    return pd.DataFrame([row])


def operators() -> list[Any]:
    sizes = {"m": 8, "n": 8, "k": 4}
    product = rp.workload.TileOperator(
        name="product", writes="C[m,n]", reads=("A[m,k]", "B[k,n]"), sizes=sizes, flops=2.0
    )
    return [product]


CALLS: dict[str, Callable[[], Arguments]] = {
    "optimize.StatisticalGoodput": lambda: fields(goodput()),
    "optimize.modelled_application": lambda: {
        "model": goodput(), "epochs": 2, "steps": 10.0, "limits": (8, 64, 1024), "name": "app",
    },
    "optimize.nexus": lambda: {
        "latencies": {"a": [0.05, 0.06]}, "objectives": {"a": 0.3}, "rates": {"a": 30.0},
    },
    "optimize.share_cluster": lambda: {
        "jobs": jobs(), "applications": {"app": application()},
        "policy": "elastic", "nodes": 1, "interval": 60.0, "restart": 30.0, "node_rate": 1e-6,
        "repair": 600.0, "checkpoint": 600.0, "rng": np.random.default_rng(0),
    },
    "optimize.switch_plan": lambda: {
        "send": [3.0, 1.0], "compute": [1.0, 1.0], "per_send": 0.5, "per_group": 0.1,
    },
    "optimize.switching_time": lambda: {
        "send": [3.0, 1.0], "compute": [1.0, 1.0], "groups": [2], "per_send": 0.5, "per_group": 0.1,
    },
    "workload.TileOperator": lambda: fields(operators()[0]),
    "workload.tile_schedule": lambda: {
        "operators": operators(), "memory": 64.0, "density": {"A": 0.5}, "stream": True, "chunk": 4,
        "connect": True,
    },
}  # fmt: skip

FREE = {"text"}
MEANINGFUL: dict[str, dict[str, set[str]]] = {
    "optimize.modelled_application": {"name": FREE},
    "optimize.share_cluster": {"rng": {"none"}},
    "workload.TileOperator": {"name": FREE},
}
