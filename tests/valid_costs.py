"""One valid call of everything that prices a strategy; see `valid_calls`."""

from collections.abc import Callable
from typing import Any

import relparallel as rp
from valid_workload import Arguments, model


def machine() -> Any:
    return rp.hardware.cluster("a100-80gb-selene", gpus=8)


def step() -> Arguments:
    return {
        "model": model(),
        "strategy": rp.parallel.Strategy(tensor=8),
        "cluster": machine(),
        "global_batch": 8,
        "software": "megatron-2022",
        "precision": "bf16",
        "calibrated": rp.parallel.calibration("a100-80gb"),
        "placement": None,
        "network": None,
        "alive": None,
        "stage_layers": [model().layers],
        "offload": "none",
    }


CALLS: dict[str, Callable[[], Arguments]] = {
    "parallel.calibration": lambda: {"name": "a100-80gb"},
    "parallel.blueconnect_time": lambda: {
        "size": 1e9,
        "levels": [(8, 1e-6, 1e11), (4, 1e-5, 1e10)],
    },
    "parallel.best_blueconnect_order": lambda: {
        "size": 1e9,
        "levels": [(8, 1e-6, 1e11), (4, 1e-5, 1e10)],
    },
    "parallel.step_time": step,
}
