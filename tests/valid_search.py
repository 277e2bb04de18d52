"""Valid calls of what evaluates and searches grids of strategies; see `valid_calls`."""

from collections.abc import Callable
from typing import Any

from valid_layer_graphs import problem
from valid_workload import Arguments, fields, model

import relparallel as rp


def machine() -> Any:
    return rp.hardware.cluster("a100-80gb-selene", gpus=2)


def grid() -> Any:
    return rp.parallel.StrategyGrid.of(tensor=[1, 2], data=[2, 1], micro_batch=[1, 3])


CALLS: dict[str, Callable[[], Arguments]] = {
    "optimize.best_stage_layers": lambda: {
        "model": model(), "strategy": rp.parallel.Strategy(pipeline=2), "cluster": machine(),
        "global_batch": 8,
    },
    "optimize.stage_order": lambda: {
        "nvlink": [[0, 2.0], [2.0, 0]], "sizes": [1.0], "pcie": 1.0, "latency": 0.5, "pcie_latency": 0.5,
        "grouped": 1, "objective": "sum", "last": [0],
    },
    "optimize.throughput_partition": lambda: {
        "problem": rp.workload.read_partition_problem(problem()), "accelerators": 2, "cpus": 1,
        "memory": 100.0, "method": "auto", "seconds": 60.0,
    },
    "parallel.StrategyGrid": lambda: fields(grid()),
    "parallel.evaluate": lambda: {
        "model": model(), "grid": grid(), "cluster": machine(), "global_batch": 8,
        "software": "megatron-2022", "precision": "bf16", "calibrated": None, "storage": "mixed",
        "dropout": True, "reserve": 1e9, "network": None, "complete": False, "executor": None,
    },
}  # fmt: skip
