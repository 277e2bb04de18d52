"""Device-placement problems as JSON: the inputs of Tarnawski et al. (dnn-partitioning).

The file is an object with ``maxFPGAs`` accelerators of ``maxSizePerFPGA`` bytes, ``maxCPUs``, ``nodes``
(``id``, ``supportedOnFpga``, ``cpuLatency``, ``fpgaLatency``, ``isBackwardNode``, ``size`` and, where nodes
must share a device, ``colorClass``) and ``edges`` (``sourceId``, ``destId``, ``cost``). "FPGA" means any
accelerator. A ``cost`` is a time, paid once for each maker on each device.
"""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from relparallel._checks import require_int, require_real
from relparallel.topology import _arrays
from relparallel.topology.formats import _text
from relparallel.units import MILLISECOND
from relparallel.workload.graph import Layered

_TOP: Final = ("maxSizePerFPGA", "maxFPGAs", "maxCPUs")
_NODE: Final = ("id", "supportedOnFpga", "cpuLatency", "fpgaLatency", "isBackwardNode", "size")
_EDGE: Final = ("sourceId", "destId", "cost")


@dataclass(frozen=True, kw_only=True, eq=False)
class PartitionProblem(Layered):
    """Operators to be placed on accelerators and CPUs, with times [s] and sizes [bytes] of each.

    ``transfer_time`` moves an output to another device; operators of one ``colour`` share a device;
    ``supported`` are those that accelerators can run; ``edges`` are pairs (maker, user). Tarnawski et al.,
    "Efficient Algorithms for Device Placement of DNN Graph Operators", NeurIPS 2020.
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


def read_partition_problem(
    path: str | os.PathLike[str], *, time_unit: float = MILLISECOND
) -> PartitionProblem:
    """Read an input of dnn-partitioning.

    Parameters
    ----------
    path : str or path-like
        The JSON file.
    time_unit : float
        Seconds of one unit of the file's times, which does not tell; ms in its graphs of layers.

    Returns
    -------
    PartitionProblem
        Operators ordered by id. One without a colour gets a colour of its own. The published files charge a
        tensor its bytes over 2 GiB/s, in ms as the nodes, but the layer graphs of the throughput inputs a
        thousandth of it; the published objectives are of the files as they stand.

    Examples
    --------
    >>> import tempfile
    >>> node = {"supportedOnFpga": 1, "cpuLatency": 9, "fpgaLatency": 2, "isBackwardNode": 0, "size": 8}
    >>> sizes = {"maxSizePerFPGA": 100, "maxFPGAs": 2, "maxCPUs": 1}
    >>> path = Path(tempfile.mkdtemp()) / "graph.json"
    >>> _ = path.write_text(json.dumps(sizes | {"nodes": [{"id": 1, "name": "a"} | node], "edges": []}))
    >>> read_partition_problem(path).cpu_time.round(3).tolist()
    [0.009]
    """
    require_real(time_unit=time_unit, above=0)
    source = _text.require_path(path=path)
    file = _File(source)
    nodes = sorted(file.records("nodes", _NODE), key=lambda node: node["id"])
    edges = file.records("edges", _EDGE)
    number = {node["id"]: place for place, node in enumerate(nodes)}
    transfer = np.zeros(len(nodes))
    for place, edge in enumerate(edges):
        for key in ("sourceId", "destId"):
            if edge[key] not in number:
                raise file.malformed("edges", place, f"{key} {edge[key]} is the id of no node")
        np.maximum.at(transfer, number[edge["sourceId"]], time_unit * edge["cost"])
    free = 1 + max((node.get("colorClass", -1) for node in nodes), default=0)
    columns = {key: np.array([node[key] for node in nodes]) for key in _NODE[1:]}
    try:
        return PartitionProblem(
            names=_distinct(nodes),
            accelerator_time=time_unit * columns["fpgaLatency"],
            cpu_time=time_unit * columns["cpuLatency"],
            transfer_time=transfer,
            memory_bytes=columns["size"],
            colour=np.array([node.get("colorClass", free + place) for place, node in enumerate(nodes)]),
            is_backward=columns["isBackwardNode"].astype(np.bool_),
            supported=columns["supportedOnFpga"].astype(np.bool_),
            edges=np.array([[number[edge[key]] for key in _EDGE[:2]] for edge in edges], dtype=np.int64),
            accelerators=file.top["maxFPGAs"],
            cpus=file.top["maxCPUs"],
            accelerator_memory=file.top["maxSizePerFPGA"],
        )
    except (TypeError, ValueError) as error:
        raise ValueError(f"{source}: {error}") from None


class _File:
    """A JSON object of numbers and two lists of records, which knows the line of each record."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.text = path.read_bytes().decode("utf-8", errors="replace")
        try:
            self.top = json.loads(self.text)
        except json.JSONDecodeError as error:
            raise _text.malformed(path, error.lineno, error.msg, "write JSON") from None
        if not isinstance(self.top, dict):
            raise _text.malformed(path, 1, "the file is no object", "write {...}")
        for key in _TOP:
            if not _number(self.top.get(key)):
                raise _text.malformed(path, 1, f"{key} is {self.top.get(key)!r}", "write a number >= 0")

    def records(self, key: str, needed: tuple[str, ...]) -> list[dict[str, Any]]:
        """The list under a key, each record with all the numbers that it needs, each id once."""
        found = self.top.get(key)
        if not isinstance(found, list):
            raise _text.malformed(self.path, 1, f"{key} is {str(found)[:40]}", "write a list of objects")
        seen: set[object] = set()
        for place, record in enumerate(found):
            if not isinstance(record, Mapping):
                raise self.malformed(key, place, "no object")
            for name in (*needed, *({"colorClass"} & record.keys())):
                value = record.get(name)
                whole = name in ("id", "sourceId", "destId", "colorClass")
                if not _number(value) or (whole and not isinstance(value, int)):
                    raise self.malformed(key, place, f"{name} is {value!r}")
            if record.get("id", place) in seen:
                raise self.malformed(key, place, f"id {record['id']} is used twice")
            seen.add(record.get("id", place))
        return found

    def malformed(self, key: str, place: int, wrong: str) -> ValueError:
        """Error with the line of a record, found by decoding the list again up to it."""
        decoder, at = json.JSONDecoder(), self.text.index("[", self.text.index(f'"{key}"')) + 1
        for _ in range(place + 1):
            while self.text[at] in " \t\r\n,":
                at += 1
            start = at
            at = decoder.raw_decode(self.text, at)[1]
        line = self.text.count("\n", 0, start) + 1
        return _text.malformed(self.path, line, f"{key}[{place}]: {wrong}", "write numbers >= 0, ids once")


def _number(value: object) -> bool:
    return isinstance(value, int | float) and 0 <= value < float("inf")


def _distinct(nodes: list[dict[str, Any]]) -> tuple[str, ...]:
    """Names of the nodes; with its id where another has the same."""
    names = [str(node.get("name", node["id"])) for node in nodes]
    repeated = {name for name in names if names.count(name) > 1}
    return tuple(
        f"{name} ({node['id']})" if name in repeated else name
        for name, node in zip(names, nodes, strict=True)
    )
