"""One valid call of what `parallel` offers on layouts and on the order of messages; see `valid_calls`."""

from collections.abc import Callable

import numpy as np
from valid_workload import Arguments

from relparallel.parallel import merge_gradients, shards
from relparallel.workload import LayerGraph


def graph_of(forward, backward, sizes, edges) -> LayerGraph:
    """Layers with work in seconds."""
    n = len(sizes)
    return LayerGraph(
        names=tuple(map(str, range(n))), kinds=("layer",) * n, forward=forward, backward=backward,
        parameter_bytes=sizes, activation_bytes=np.zeros(n), edges=edges, unit="s",
    )  # fmt: skip


def chain(forward, backward, sizes) -> LayerGraph:
    """Layers one after another."""
    steps = np.arange(len(sizes) - 1)
    return graph_of(forward, backward, sizes, np.column_stack((steps, steps + 1)))


def small() -> LayerGraph:
    return chain([1.0, 2.0], [2.0, 3.0], [4.0, 8.0])


MESH = {"row": 2, "column": 2}
DIMS = {"b": 4, "h": 6}

CALLS: dict[str, Callable[[], Arguments]] = {
    "parallel.shards": lambda: {
        "dims": DIMS, "mesh": MESH, "layout": {"b": "row"}, "halo": {"b": (1, 1)},
    },
    "parallel.movement": lambda: {
        "before": shards(DIMS, MESH, {"b": "row"}), "after": shards(DIMS, MESH, {"h": "row"}),
    },
    "parallel.mesh_product": lambda: {
        "terms": "bh,h->b", "dims": DIMS, "mesh": MESH, "layout": {"b": "row"}, "element_bytes": 4.0,
    },
    "parallel.reshard": lambda: {
        "before": shards(DIMS, MESH, {"b": "row"}), "after": shards(DIMS, MESH, {"h": "row"}),
        "bandwidth": 1e9, "method": "broadcast", "order": "search", "element_bytes": 2.0, "per_host": 2,
        "pieces": 4,
    },
    "parallel.order": lambda: {
        "graph": small(), "policy": "forward", "network": (0.1, 4.0), "partition": 2.0, "credit": 2,
        "groups": None, "loss": 0.1, "timeout": 1.0, "rng": np.random.default_rng(1),
    },
    "parallel.order with groups": lambda: {
        "graph": small(), "policy": [1, 0], "network": [(0.1, 4.0), (0.0, 1.0)],
        "groups": merge_gradients(small(), latency=0.1, bandwidth=1.0),
    },
    "parallel.tune_partition": lambda: {"graph": small(), "network": (0.1, 4.0)},
    "parallel.fluid_bound": lambda: {"graph": small(), "network": (0.1, 4.0)},
}  # fmt: skip
