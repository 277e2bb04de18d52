"""Device-placement problems as JSON: the inputs of Tarnawski et al. (dnn-partitioning).

The file is an object with ``maxFPGAs`` accelerators of ``maxSizePerFPGA`` bytes, ``maxCPUs``,
``nodes`` (``id``, ``supportedOnFpga``, ``cpuLatency``, ``fpgaLatency``, ``isBackwardNode``,
``size`` and, where nodes must share a device, ``colorClass``) and ``edges`` (``sourceId``,
``destId``, ``cost``). "FPGA" means any accelerator. A ``cost`` is a time, paid once for each maker
on each device.
"""

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from relparallel._checks import require_int, require_real
from relparallel.topology import _arrays
from relparallel.units import MILLISECOND
from relparallel.workload.graph import Layered

_NODE: Final = ("supportedOnFpga", "cpuLatency", "fpgaLatency", "isBackwardNode", "size")
_EDGE: Final = ("sourceId", "destId")


@dataclass(frozen=True, kw_only=True, eq=False)
class PartitionProblem(Layered):
    """Operators to be placed on accelerators and CPUs, with times [s] and sizes [bytes] of each.

    ``transfer_time`` moves an output to another device; operators of one ``colour`` share a device;
    ``supported`` are those that accelerators can run; ``edges`` are pairs (maker, user). Tarnawski
    et al., "Efficient Algorithms for Device Placement of DNN Graph Operators", NeurIPS 2020.
    """

    accelerator_time: _arrays.FloatArray
    cpu_time: _arrays.FloatArray
    transfer_time: _arrays.FloatArray
    memory_bytes: _arrays.FloatArray
    colour: _arrays.IntArray
    is_backward: _arrays.BoolArray
    supported: _arrays.BoolArray
    accelerators: int
    cpus: int
    accelerator_memory: float

    def __post_init__(self) -> None:
        n = len(_arrays.names("names", self.names))
        require_int(accelerators=self.accelerators, cpus=self.cpus, at_least=0)
        require_real(accelerator_memory=self.accelerator_memory, at_least=0)
        self._set(
            ("accelerator_time", "cpu_time", "transfer_time", "memory_bytes"),
            colour=_arrays.integers("colour", self.colour, n, per="names"),
            is_backward=_arrays.flags("is_backward", self.is_backward, n, "names"),
            supported=_arrays.flags("supported", self.supported, n, "names"),
        )


def read_partition_problem(path: str | os.PathLike[str]) -> PartitionProblem:
    """Read an input of dnn-partitioning, operators ordered by id, each without a colour in its own.

    The file does not tell the unit of its times; it is ms in its graphs of layers. The published
    files charge a tensor its bytes over 2 GiB/s, in ms as the nodes, but the layer graphs of the
    throughput inputs a thousandth of it; the published objectives are of the files as they stand.

    >>> import tempfile
    >>> node = {"supportedOnFpga": 1, "cpuLatency": 9, "fpgaLatency": 2, "isBackwardNode": 0, "size": 8}
    >>> sizes = {"maxSizePerFPGA": 100, "maxFPGAs": 2, "maxCPUs": 1}
    >>> path = Path(tempfile.mkdtemp()) / "graph.json"
    >>> _ = path.write_text(json.dumps(sizes | {"nodes": [{"id": 1, "name": "a"} | node], "edges": []}))
    >>> read_partition_problem(path).cpu_time.round(3).tolist()
    [0.009]
    """
    file = json.loads(Path(path).read_text())
    nodes, edges = sorted(file["nodes"], key=lambda node: node["id"]), file["edges"]
    number = {node["id"]: place for place, node in enumerate(nodes)}
    if len(number) < len(nodes):
        raise ValueError(f"{path}: two nodes have the same id")
    transfer = np.zeros(len(nodes))
    for edge in edges:
        np.maximum.at(transfer, number[edge["sourceId"]], MILLISECOND * edge["cost"])
    free = 1 + max((node.get("colorClass", -1) for node in nodes), default=0)
    columns = {key: np.array([node[key] for node in nodes]) for key in _NODE}
    names = [str(node.get("name", node["id"])) for node in nodes]
    return PartitionProblem(
        names=tuple(
            f"{name} ({node['id']})" if names.count(name) > 1 else name
            for name, node in zip(names, nodes, strict=True)
        ),
        accelerator_time=MILLISECOND * columns["fpgaLatency"],
        cpu_time=MILLISECOND * columns["cpuLatency"],
        transfer_time=transfer,
        memory_bytes=columns["size"],
        colour=np.array([node.get("colorClass", free + place) for place, node in enumerate(nodes)]),
        is_backward=columns["isBackwardNode"].astype(np.bool_),
        supported=columns["supportedOnFpga"].astype(np.bool_),
        edges=np.array([[number[edge[key]] for key in _EDGE] for edge in edges], dtype=np.int64),
        accelerators=file["maxFPGAs"],
        cpus=file["maxCPUs"],
        accelerator_memory=file["maxSizePerFPGA"],
    )
