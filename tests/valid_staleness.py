"""One valid call of what `communication` offers on stale weights; see `valid_calls`."""

from collections.abc import Callable

import numpy as np
from valid_workload import Arguments

from relparallel.communication import quadratic_gradient

CALLS: dict[str, Callable[[], Arguments]] = {
    "communication.delayed_descent": lambda: {
        "gradient": quadratic_gradient(1.0),
        "start": [1.0, 2.0],
        "rates": np.full(5, 0.1),
        "forward_delay": [3, 1],
        "backward_delay": [1, 0],
        "decay": 0.5,
    },
    "communication.largest_stable_step": lambda: {
        "method": lambda step: {0: 1.0, 1: -step},
        "smallest": 1e-3,
    },
    "communication.quadratic_gradient": lambda: {
        "curvature": [1.0, 2.0],
        "discrepancy": 0.5,
        "noise": 0.1,
        "rng": np.random.default_rng(0),
    },
    "communication.stable_step": lambda: {"delay": [0, 1], "curvature": 2.0},
}
