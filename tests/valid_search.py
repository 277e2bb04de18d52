"""Valid calls of what evaluates and searches grids of strategies; see `valid_calls`."""

from collections.abc import Callable
from typing import Any

import relparallel as rp
from valid_workload import Arguments, fields, model


def machine() -> Any:
    return rp.hardware.cluster("a100-80gb-selene", gpus=2)


def grid() -> Any:
    return rp.parallel.StrategyGrid.of(tensor=[1, 2], data=[2, 1], micro_batch=[1, 3])


CALLS: dict[str, Callable[[], Arguments]] = {
    "parallel.StrategyGrid": lambda: fields(grid()),
    "parallel.price_strategies": lambda: {
        "model": model(),
        "grid": grid(),
        "cluster": machine(),
        "global_batch": 8,
        "software": "megatron-2022",
        "precision": "bf16",
        "calibrated": None,
        "storage": "mixed",
        "dropout": True,
        "reserve": 1e9,
        "network": None,
        "complete": False,
        "executor": None,
    },
}
