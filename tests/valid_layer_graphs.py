"""One valid call of everything that layer graphs offer; see `valid_calls`."""

import atexit
import shutil
import tempfile
from collections.abc import Callable
from typing import Any

import relparallel as rp
from valid_workload import Arguments, fields

FOLDER = tempfile.mkdtemp()
atexit.register(shutil.rmtree, FOLDER, ignore_errors=True)

NODE = {
    "supportedOnFpga": 1,
    "cpuLatency": 9.0,
    "fpgaLatency": 2.0,
    "isBackwardNode": 0,
    "size": 8.0,
}
PROBLEM = {
    "maxSizePerFPGA": 1e3,
    "maxFPGAs": 2,
    "maxCPUs": 1,
    "nodes": [{"id": 1, **NODE}, {"id": 2, **NODE}],
    "edges": [{"sourceId": 1, "destId": 2, "cost": 0.5}],
}

_AMOUNTS = "forward_compute_time=1, backward_compute_time=2, activation_size=4, parameter_size=8"
PROFILE = f"node1 -- conv -- {_AMOUNTS}\nnode2 -- dense -- {_AMOUNTS}\n\tnode1 -- node2\n"


def graph() -> Any:
    """Two measured layers."""
    return rp.workload.LayerGraph(
        names=("node1", "node2"),
        kinds=("conv", "dense"),
        forward=[1.0, 2.0],
        backward=[2.0, 4.0],
        parameter_bytes=[8, 16],
        activation_bytes=[4, 4],
        edges=[(0, 1)],
        unit="s",
        batch=2,
        title="two",
    )


CALLS: dict[str, Callable[[], Arguments]] = {
    "workload.layer_graph": lambda: {"name": "vgg-11"},
    "workload.layer_graphs": dict,
    "workload.LayerGraph": lambda: fields(graph()),
}
