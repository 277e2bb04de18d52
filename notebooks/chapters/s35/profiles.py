"""Measured layers as text: the profiles of PipeDream, which DAPPLE writes as well.

Grammar: a line for each layer, then an indented line for each edge::

    node4 -- ReLU -- forward_compute_time=4.4, backward_compute_time=5.3, activation_size=8,
    parameter_size=0
        node4 -- node5

Times are in ms and sizes in bytes, of a batch whose size the file does not tell.
``activation_size`` may be a list ``[a; b]`` of outputs, which is read as its sum.
"""

import os
import re
from pathlib import Path
from typing import Final

import numpy as np

from relparallel.units import MILLISECOND
from relparallel.workload.graph import LayerGraph

FIELDS: Final = (
    "forward_compute_time",
    "backward_compute_time",
    "activation_size",
    "parameter_size",
)
_LAYER: Final = re.compile(r"(node\d+) -- (.*) -- " + ", ".join(f"{name}=(.*)" for name in FIELDS))
_EDGE: Final = re.compile(r"(node\d+) -- (node\d+)")


def read_profile(
    path: str | os.PathLike[str], *, batch: int = 1, data_loading: bool = False
) -> LayerGraph:
    """Read a profile in the text format of PipeDream (Narayanan et al., SOSP 2019) and DAPPLE.

    Work is in seconds of ``batch`` samples; layers are named as in the file (``node4``) and ordered
    by their numbers, and their kinds are the descriptions. With ``data_loading`` layers called
    ``Input...`` keep their time, which is that of loading data; PipeDream's optimizer sets it to 0.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "graph.txt"
    >>> amounts = "forward_compute_time=2, backward_compute_time=4, activation_size=[8; 4], parameter_size=0"
    >>> _ = path.write_text(f"node1 -- ReLU -- {amounts}")
    >>> read_profile(path).activation_bytes.tolist()
    [12.0]
    """
    source, layers, pairs = Path(path), [], []
    for number, line in enumerate(source.read_text().splitlines(), start=1):
        text = " ".join(line.split())
        if edge := _EDGE.fullmatch(text):
            pairs.append(edge.groups())
        elif layer := _LAYER.fullmatch(text):
            layers.append((layer[1], layer[2], [_amount(value) for value in layer.groups()[2:]]))
        elif text:
            raise ValueError(f"{source}, line {number}: {text[:60]!r} is no layer and no edge")
    layers.sort(key=lambda layer: int(layer[0][4:]))
    names, kinds, rows = zip(*layers, strict=True)
    amounts = np.array(rows).T
    counted = np.array([data_loading or not kind.startswith("Input") for kind in kinds])
    return LayerGraph(
        names=names,
        kinds=kinds,
        forward=MILLISECOND * amounts[0] * counted,
        backward=MILLISECOND * amounts[1] * counted,
        activation_bytes=amounts[2],
        parameter_bytes=amounts[3],
        edges=np.array([[names.index(name) for name in pair] for pair in pairs], dtype=np.int64),
        unit="s",
        batch=batch,
        title=source.parent.name if source.stem == "graph" else source.stem,
    )


def _amount(text: str) -> float:
    """A number, or the sum of a list ``[a; b]``."""
    return sum(float(part) for part in text.removeprefix("[").removesuffix("]").split(";"))
