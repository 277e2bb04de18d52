"""One valid call of what `communication` offers; see `valid_calls`."""

from collections.abc import Callable

import numpy as np

from valid_workload import Arguments

CALLS: dict[str, Callable[[], Arguments]] = {
    "communication.delayed_descent": lambda: {
        "gradient": lambda forward, backward: forward,
        "start": [1.0, 2.0],
        "rates": np.full(5, 0.1),
        "forward_delay": [3, 1],
        "backward_delay": [1, 0],
        "decay": 0.5,
    },
    "communication.logistic_problem": lambda: {
        "samples": 10,
        "features": 3,
        "rng": np.random.default_rng(0),
        "regularization": 1e-3,
    },
    "communication.network_problem": lambda: {
        "samples": 10,
        "hidden": 3,
        "rng": np.random.default_rng(0),
    },
}
