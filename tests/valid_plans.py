"""One valid call of what planners and merged messages offer; see `valid_calls`."""

from collections.abc import Callable

from valid_workload import Arguments

CALLS: dict[str, Callable[[], Arguments]] = {
    "parallel.fuse_gradients": lambda: {
        "gradients": [[1.0, 2.0], [2.0, 2.0]], "latency": 1.0, "bandwidth": 1.0, "buffer": 4.0, "cycle": 0.5,
    },
    "parallel.merge_gradients": lambda: {
        "gradients": [[1.0, 2.0], [2.0, 2.0]], "latency": 1.0, "bandwidth": 1.0, "method": "greedy",
    },
    "parallel.switch_model": lambda: {"layers": [[1.0, 2.0], [2.0, 2.0]], "latency": 1.0, "bandwidth": 1.0},
}  # fmt: skip
