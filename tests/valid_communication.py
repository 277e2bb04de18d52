"""One valid call of what `communication` offers on less, later and larger messages; see `valid_calls`."""

from collections.abc import Callable

import numpy as np
from valid_workload import Arguments

from relparallel import communication as com


def rng() -> np.random.Generator:
    return np.random.default_rng(0)


CALLS: dict[str, Callable[[], Arguments]] = {
    "communication.CompressedGradient": lambda: {
        "gradient": com.quadratic_gradient(1.0), "method": com.ErrorFeedback(com.random_k(0.5)),
        "workers": 2, "rng": rng(), "kept": 1,
    },
    "communication.ErrorFeedback": lambda: {
        "compressor": com.top_k(0.5), "momentum": 0.5, "masking": True,
    },
    "communication.UpdateRule": lambda: {"momentum": 0.9, "second": 0.99, "decay": 0.1, "trust": 0.01},
    "communication.asynchronous_run": lambda: {
        "durations": np.ones((5, 2)), "staleness": 1, "fetch": 2,
    },
    "communication.asynchronous_taps": lambda: {"rate": 0.1, "workers": 4, "curvature": 2.0},
    "communication.cocoa": lambda: {
        "inputs": np.eye(4), "targets": np.ones(4), "workers": 2, "local_steps": 2, "rounds": 2,
        "rng": rng(), "regularization": 0.5, "combine": "average",
    },
    "communication.global_top_k": lambda: {"vectors": [[1.0, 2.0], [3.0, 4.0]], "kept": 1},
    "communication.golomb_bits": lambda: {"density": [0.1, 0.01]},
    "communication.logistic_problem": lambda: {
        "samples": 20, "features": 3, "rng": rng(), "regularization": 0.1,
    },
    "communication.network_problem": lambda: {"samples": 20, "hidden": 3, "rng": rng(), "classes": 3},
    "communication.noise_scale": lambda: {
        "small": 2.0, "large": 20.0, "small_norms": [3.0, 4.0], "large_norms": [1.5, 1.6],
    },
    "communication.one_bit": dict,
    "communication.qsgd": lambda: {"levels": 4},
    "communication.random_k": lambda: {"density": 0.5},
    "communication.reduced_precision": lambda: {"number": "bf16", "scale": 8.0},
    "communication.sparse_binary": lambda: {"density": 0.5},
    "communication.ssp_throughput": lambda: {
        "workers": 2, "staleness": 1, "rates": [1.0, 2.0], "failure_rate": 0.1, "repair_rate": 2.0,
    },
    "communication.terngrad": dict,
    "communication.top_k": lambda: {"density": 0.5},
}  # fmt: skip

MEANINGFUL = {
    "communication.asynchronous_run": {"fetch": {"none"}},  # SSP's cache
    "communication.ssp_throughput": {"staleness": {"none"}},  # no bound
}
