"""One valid call of what planners and merged messages offer; see `valid_calls`."""

from collections.abc import Callable
from typing import Any

import numpy as np
from valid_layer_graphs import graph
from valid_workload import Arguments

import relparallel as rp


def problem() -> Any:
    """Two operators of two strategies each."""
    return rp.optimize.OperatorProblem(
        nodes=(np.array([0.0, 1.0]), np.array([2.0, 0.0])), edges={(0, 1): np.ones((2, 2))}
    )


MEANINGFUL = {"optimize.OperatorProblem": {"room": {"infinite"}}}  # nothing has to fit
CALLS: dict[str, Callable[[], Arguments]] = {
    "optimize.OperatorProblem": lambda: {
        "nodes": problem().nodes, "edges": problem().edges, "memory": problem().nodes, "room": 9.0,
    },
    "optimize.alpa": lambda: {"graph": graph(), "seconds": np.ones((3, 3, 3)), "micro_batches": 2},
    "optimize.anneal_plan": lambda: {
        "problem": problem(), "rng": np.random.default_rng(1), "steps": 10, "coldness": 2.0,
    },
    "optimize.dapple": lambda: {"graph": graph(), "machines": 2, "gpus": 2, "micro_batches": 2},
    "optimize.hypar": lambda: {"graph": graph(), "levels": 1},
    "optimize.operator_plan": lambda: {"problem": problem(), "seconds": 60.0},
    "optimize.pipedream": lambda: {"graph": graph(), "levels": [(2, 1.0)], "straight": False},
    "optimize.stanza": lambda: {"graph": graph(), "workers": 2, "bandwidth": 1.0},
    "optimize.tofu": lambda: {"graph": graph(), "levels": 1},
    "parallel.fuse_gradients": lambda: {
        "gradients": [[1.0, 2.0], [2.0, 2.0]], "latency": 1.0, "bandwidth": 1.0, "buffer": 4.0, "cycle": 0.5,
    },
    "parallel.merge_gradients": lambda: {
        "gradients": [[1.0, 2.0], [2.0, 2.0]], "latency": 1.0, "bandwidth": 1.0, "method": "greedy",
    },
}  # fmt: skip
