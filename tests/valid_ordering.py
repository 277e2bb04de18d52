"""One valid call of what `parallel` offers on layouts and message orders; see `valid_calls`."""

from collections.abc import Callable

import numpy as np

from chapters.s37.fusion import merge_gradients
from relparallel.workload import LayerGraph
from valid_workload import Arguments


def graph_of(forward, backward, sizes, edges) -> LayerGraph:
    """Layers with work in seconds."""
    n = len(sizes)
    return LayerGraph(
        names=tuple(map(str, range(n))),
        kinds=("layer",) * n,
        forward=forward,
        backward=backward,
        parameter_bytes=sizes,
        activation_bytes=np.zeros(n),
        edges=edges,
        unit="s",
    )


def chain(forward, backward, sizes) -> LayerGraph:
    """Layers one after another."""
    steps = np.arange(len(sizes) - 1)
    return graph_of(forward, backward, sizes, np.column_stack((steps, steps + 1)))


def small() -> LayerGraph:
    return chain([1.0, 2.0], [2.0, 3.0], [4.0, 8.0])


MESH = {"row": 2, "column": 2}
DIMS = {"b": 4, "h": 6}

CALLS: dict[str, Callable[[], Arguments]] = {
    "parallel.order": lambda: {
        "graph": small(),
        "policy": "forward",
        "network": (0.1, 4.0),
        "partition": 2.0,
        "credit": 2,
        "bucket": 5.0,
        "groups": None,
        "loss": 0.1,
        "timeout": 1.0,
        "rng": np.random.default_rng(1),
    },
    "parallel.order with groups": lambda: {
        "graph": small(),
        "policy": [1, 0],
        "network": [(0.1, 4.0), (0.0, 1.0)],
        "groups": merge_gradients(small(), latency=0.1, bandwidth=1.0),
    },
    "parallel.tune_partition": lambda: {"graph": small(), "network": (0.1, 4.0)},
    "parallel.fluid_bound": lambda: {"graph": small(), "network": (0.1, 4.0)},
}
