"""Layers entered one by one: multiply-adds, parameters and outputs of one sample."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from relparallel._checks import require_real
from relparallel.workload.layer_graph import LayerGraph


@dataclass(frozen=True, slots=True)
class Builder:
    """Rows of layers and edges; `add` returns the number of the layer that it enters."""

    rows: list[tuple[str, str, float, float, float]] = field(default_factory=list)
    edges: list[tuple[int, int]] = field(default_factory=list)

    def add(
        self,
        name: str,
        kind: str,
        after: int | tuple[int, ...],
        *,
        macs: float,
        parameters: float,
        outputs: float,
    ) -> int:
        """Enter a layer that uses the outputs of others (none: the input of the model)."""
        layer = len(self.rows)
        self.rows.append((name, kind, 2 * macs, parameters, outputs))
        self.edges.extend((maker, layer) for maker in ((after,) if isinstance(after, int) else after))
        return layer

    def graph(self, title: str, element_bytes: float) -> LayerGraph:
        """The layers as a graph; a backward pass is two forward passes of work."""
        require_real(element_bytes=element_bytes, above=0)
        names, kinds, *columns = zip(*self.rows, strict=True)
        flops, parameters, outputs = np.array(columns, dtype=np.float64)
        return LayerGraph(
            names=names,
            kinds=kinds,
            forward=flops,
            backward=2 * flops,
            parameter_bytes=element_bytes * parameters,
            activation_bytes=element_bytes * outputs,
            edges=np.array(self.edges, dtype=np.int64),
            title=title,
        )
