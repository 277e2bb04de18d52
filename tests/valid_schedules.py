"""One valid call of what `parallel` offers on pipeline schedules; see `valid_calls`."""

from collections.abc import Callable

from relparallel.parallel import simulate_schedule
from valid_workload import Arguments

CALLS: dict[str, Callable[[], Arguments]] = {
    "parallel.bubble_fraction": lambda: {
        "name": "interleaved_1f1b",
        "stages": 4,
        "micro_batches": 8,
        "virtual_stages": 2,
        "forward": 1.0,
        "backward": 2.0,
        "backward_weight": 1.0,
    },
    "parallel.simulate_schedule": lambda: {
        "name": "interleaved_1f1b",
        "stages": 4,
        "micro_batches": 8,
        "virtual_stages": 2,
        "forward": 1.0,
        "backward": 2.0,
        "backward_weight": 1.0,
        "communication": 0.1,
        "most_in_flight": None,
        "iterations": 2,
    },
    "parallel.simulate_schedule under a memory limit": lambda: {
        "name": "zb_2p",
        "stages": 4,
        "micro_batches": 8,
        "most_in_flight": 4.0,
    },
    "parallel.weight_delay": lambda: {
        "timeline": simulate_schedule("pipedream", 2, 4),
        "per_update": 1,
    },
}
