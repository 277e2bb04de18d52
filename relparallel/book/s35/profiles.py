"""Measured layers as text: the profiles of PipeDream, which DAPPLE writes as well.

Grammar: a line for each layer, then an indented line for each edge::

    node4 -- ReLU -- forward_compute_time=4.4, backward_compute_time=5.3, activation_size=8, parameter_size=0
        node4 -- node5

Times are in ms and sizes in bytes, of a batch whose size the file does not tell. ``activation_size`` may be a
list ``[a; b]`` of outputs, which is read as its sum.
"""

import os
import re
from pathlib import Path
from typing import Final

import numpy as np

from relparallel._checks import require_flag, require_int
from relparallel.topology.formats import _text
from relparallel.units import MILLISECOND
from relparallel.workload.graph import LayerGraph

FIELDS: Final = ("forward_compute_time", "backward_compute_time", "activation_size", "parameter_size")
_LAYER: Final = re.compile(r"(node\d+) -- (.*) -- " + ", ".join(f"{name}=(.*)" for name in FIELDS))
_EDGE: Final = re.compile(r"(node\d+) -- (node\d+)")
_HOW: Final = "write 'nodeN -- description -- " + ", ".join(f"{name}=..." for name in FIELDS) + "'"


def read_profile(path: str | os.PathLike[str], *, batch: int = 1, data_loading: bool = False) -> LayerGraph:
    """Read a profile in the text format of PipeDream (Narayanan et al., SOSP 2019) and DAPPLE.

    Parameters
    ----------
    path : str or path-like
        The file, such as ``vgg16/graph.txt``.
    batch : int
        Samples in the profiled batch.
    data_loading : bool
        Whether layers called ``Input...`` keep their time, which is that of loading data; PipeDream's
        optimizer sets it to 0.

    Returns
    -------
    LayerGraph
        Work in seconds, layers named as in the file (``node4``) and ordered by their numbers; kinds are the
        descriptions.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "graph.txt"
    >>> amounts = "forward_compute_time=2, backward_compute_time=4, activation_size=[8; 4], parameter_size=0"
    >>> _ = path.write_text(f"node1 -- ReLU -- {amounts}")
    >>> read_profile(path).activation_bytes.tolist()
    [12.0]
    """
    require_int(batch=batch, at_least=1)
    require_flag(data_loading=data_loading)
    source = _text.require_path(path=path)
    layers, edges = _parsed(source)
    names = sorted(layers, key=lambda name: int(name[4:]))
    number = {name: place for place, name in enumerate(names)}
    kinds = tuple(layers[name][0] for name in names)
    amounts = np.array([layers[name][1] for name in names]).reshape(-1, len(FIELDS)).T
    counted = np.array([data_loading or not kind.startswith("Input") for kind in kinds])
    try:
        return LayerGraph(
            names=tuple(names),
            kinds=kinds,
            forward=MILLISECOND * amounts[0] * counted,
            backward=MILLISECOND * amounts[1] * counted,
            activation_bytes=amounts[2],
            parameter_bytes=amounts[3],
            edges=np.array([[number[name] for name in pair] for pair in edges], dtype=np.int64),
            unit="s",
            batch=batch,
            title=source.parent.name if source.stem == "graph" else source.stem,
        )
    except ValueError as error:
        raise ValueError(f"{source}: {error}") from None


Layers = dict[str, tuple[str, tuple[float, ...]]]


def _parsed(source: Path) -> tuple[Layers, list[tuple[str, str]]]:
    """Description and numbers of each layer, and the edges."""
    layers: Layers = {}
    edges: dict[tuple[str, str], int] = {}
    for line, words in _text.numbered_lines(source):
        text = " ".join(words)
        edge, layer = _EDGE.fullmatch(text), _LAYER.fullmatch(text)
        if edge:
            pair = (edge[1], edge[2])
            if pair in edges:
                raise _text.malformed(
                    source, line, f"edge {text} stands already on line {edges[pair]}", "remove it"
                )
            edges[pair] = line
        elif not layer:
            raise _text.malformed(source, line, f"{text[:60]!r} is no layer and no edge", _HOW)
        elif layer[1] in layers:
            raise _text.malformed(source, line, f"{layer[1]} is defined twice", "give it another number")
        else:
            values = zip(FIELDS, layer.groups()[2:], strict=True)
            layers[layer[1]] = (layer[2], tuple(_number(source, line, *value) for value in values))
    for pair, line in edges.items():
        for name in pair:
            if name not in layers:
                raise _text.malformed(source, line, f"{name} is no layer of this file", "define it")
    return layers, list(edges)


def _number(source: Path, line: int, name: str, text: str) -> float:
    """A number >= 0, or the sum of a list of them."""
    parts = text[1:-1].split(";") if text.startswith("[") and text.endswith("]") else [text]
    try:
        values = [float(part) for part in parts]
    except ValueError:
        values = [-1.0]
    if not all(0 <= value < float("inf") for value in values):
        raise _text.malformed(source, line, f"{name} is {text!r}", "write a number >= 0 or a list [a; b]")
    return sum(values)
