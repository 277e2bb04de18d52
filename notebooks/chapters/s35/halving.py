"""Devices halved again and again, each time with the best way to halve every layer: HyPar and Tofu.

Both pay in bytes that the two halves exchange, and choose with one integer programme for each
halving.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from chapters.s35.operator_strategies import OperatorProblem, operator_plan
from relparallel.workload import LayerGraph

FloatArray = NDArray[np.float64]
Sizes = dict[str, FloatArray]
_TENSORS = ("input", "weight", "output")


class HalvedPlan(NamedTuple):
    """Choice of every layer at every halving, and bytes that halves receive, summed over groups."""

    choices: tuple[tuple[str, ...], ...]
    volume: float


def hypar(graph: LayerGraph, levels: int) -> HalvedPlan:
    """Parallelism of "data" or "model" of least volume for every layer at every halving.

    Song et al., "HyPar", HPCA 2019, 3.

    2^levels accelerators. Two halves exchange W under data parallelism, the output F under model
    parallelism, and at a boundary F/2 (half of it F, half its gradient) unless both layers are data
    parallel. Data parallelism halves F, model parallelism W, for the halvings below.

    >>> graph = LayerGraph(
    ...     names=("conv", "dense"), kinds=("conv", "dense"), forward=[1.0, 1.0], backward=[1.0, 1.0],
    ...     parameter_bytes=[1, 99], activation_bytes=[10, 10], edges=[(0, 1)],
    ... )
    >>> hypar(graph, levels=1)
    HalvedPlan(choices=(('data', 'model'),), volume=16.0)
    """
    chain = graph.to_chain()
    sizes = {"weight": chain.parameter_bytes, "output": chain.activation_bytes}

    def problem(held: Sizes) -> OperatorProblem:
        boundary = np.array([[0.0, 0.5], [0.5, 0.5]])
        edges = {
            (layer, layer + 1): held["output"][layer] * boundary for layer in range(len(chain) - 1)
        }
        return OperatorProblem(
            nodes=tuple(np.column_stack((held["weight"], held["output"]))), edges=edges
        )

    halved = {"data": ("output",), "model": ("weight",)}
    return _halvings(sizes, problem, halved, len(chain), levels)


def tofu(graph: LayerGraph, levels: int) -> HalvedPlan:
    """The dimension that splits every layer, "batch", "out" or "in", at every halving.

    Wang et al., "Tofu", EuroSys 2019, 4-5.

    Each layer is taken for a product of its input and its parameters, and every tensor is split
    along one of its two dimensions. A half of the devices gets S/2 of a tensor that it needs whole,
    S/4 of one that is split the other way, and sends S/2 of a result that is summed over both
    halves; the passes backward pay the same again for the other tensors. Operators forward and
    backward of a layer share their choice (Tofu's coarsening).

    >>> graph = LayerGraph(
    ...     names=("first", "second"), kinds=("dense", "dense"), forward=[1.0, 1.0], backward=[1.0, 1.0],
    ...     parameter_bytes=[99, 99], activation_bytes=[4, 4], edges=[(0, 1)],
    ... )
    >>> tofu(graph, levels=1).choices
    (('out', 'in'),)
    """
    chain = graph.to_chain()
    n, made = len(chain), chain.activation_bytes
    sizes = {"input": np.append(0.0, made[:-1]), "weight": chain.parameter_bytes, "output": made}
    apart = np.array([[0.0, 0.25], [0.25, 0.0], [0.5, 0.5]])  # rows: rows, columns, whole or summed
    needs = {"input": [0, 2, 1], "weight": [2, 1, 0], "output": [0, 1, 2]}

    def problem(held: Sizes) -> OperatorProblem:
        """Layers, then the splits of their weights, of their outputs, and of the first input."""
        pairs: dict[tuple[int, int], FloatArray] = {}
        for layer in range(n):
            places = {"weight": n + layer, "output": 2 * n + layer, "input": 2 * n + layer - 1}
            if not layer:
                places["input"] = 3 * n
            for name in _TENSORS:
                pairs[layer, places[name]] = 2 * held[name][layer] * apart[needs[name]]
        nodes = tuple(np.zeros(3 if place < n else 2) for place in range(3 * n + 1))
        return OperatorProblem(nodes=nodes, edges=pairs)

    halved = {"batch": ("input", "output"), "out": ("weight", "output"), "in": ("input", "weight")}
    return _halvings(sizes, problem, halved, n, levels)


def _halvings(
    sizes: Sizes,
    problem: Callable[[Sizes], OperatorProblem],
    halved: Mapping[str, Sequence[str]],
    layers: int,
    levels: int,
) -> HalvedPlan:
    """Solve a halving, halve what its choices halve, and go on with twice as many groups."""
    volume, chosen, names = 0.0, [], list(halved)
    for level in range(levels):
        choice, cost = operator_plan(problem(sizes))
        volume += 2**level * cost
        chosen.append(tuple(names[s] for s in choice[:layers]))
        sizes = {
            tensor: size / np.array([2.0 if tensor in halved[name] else 1.0 for name in chosen[-1]])
            for tensor, size in sizes.items()
        }
    return HalvedPlan(tuple(chosen), volume)
