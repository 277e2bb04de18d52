"""The time of a step whose stages differ: every chunk priced by the kernel, the passes by the simulator."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from relparallel.parallel._kernel import PARTS, pass_times
from relparallel.parallel._records import step_parts
from relparallel.parallel.schedules import ASYNCHRONOUS, SPLIT, repeated
from relparallel.parallel.stage_layers import UNLIMITED, chunk_devices, device_layers
from relparallel.parallel.strategy import Strategy
from relparallel.parallel.timeline import Timeline, play

_LAYER_PARTS: Final = [
    PARTS.index(n) for n in ("compute", "recompute", "launch", "tensor", "context", "expert")
]
_HEAD, _PIPELINE, _DATA, _OPTIMIZER = (PARTS.index(n) for n in ("head", "pipeline", "data", "optimizer"))
_ITERATIONS: Final = 8  # of schedules that hide the filling of one iteration behind the one before


class Rows(NamedTuple):
    """What the kernel takes, one row each of `MODEL`, `MACHINE` and `CHOICE`."""

    model: NDArray[Any]
    machine: NDArray[Any]
    choice: NDArray[Any]


class PassSeconds(NamedTuple):
    """Seconds of one micro-batch.

    ``parts`` [6] of a layer, forward and backward; of these ``forward`` and, in the backward pass,
    ``weight``; ``head`` of the output layer, all its passes; ``hop`` of one transfer between stages.
    """

    parts: NDArray[np.float64]
    forward: float
    weight: float
    head: float
    hop: float

    def of_chunks(self, chunks: NDArray[np.int64], split: bool) -> NDArray[np.float64]:
        """Seconds of each kind of pass of each chunk, [kinds, chunks].

        A transfer occupies its stage. The output layer takes a third of its time for each of its products.
        """
        backward = self.parts.sum() - self.forward
        layer = np.array([self.forward, backward - self.weight, self.weight])
        kinds: NDArray[np.float64] = np.multiply.outer(layer, chunks.astype(np.float64))
        kinds[:2] += self.hop
        kinds[:, -1] += self.head / 3
        return kinds if split else np.stack([kinds[0], kinds[1] + kinds[2]])


def priced_passes(rows: Rows) -> PassSeconds:
    """Price one layer, the output layer and a transfer, by the kernel that prices steps.

    Full recomputation does the forward pass once more, so that is what it adds.
    """
    model, choice = rows.model.copy(), np.repeat(rows.choice, 3)
    model["layers"] = 1
    choice[["pipeline", "micro_batches", "virtual_stages"]] = 1
    choice["recompute"][1:] = 0, 2
    one, none, full = step_parts(model, rows.machine, choice)
    (step,) = step_parts(*rows)
    s = rows.choice[0]
    weight = pass_times(rows.model[0], rows.machine[0], s)[2]
    return PassSeconds(
        parts=one[_LAYER_PARTS], forward=float((full - none)[_LAYER_PARTS].sum()),
        weight=float(weight * rows.machine["factor"][0]), head=float(one[_HEAD]),
        hop=float(step[_PIPELINE] / (2.0 * s["micro_batches"] * s["virtual_stages"])),
    )  # fmt: skip


def simulated_passes(
    rows: Rows, strategy: Strategy, chunks: NDArray[np.int64], iterations: int = 1
) -> Timeline:
    """All passes of some steps."""
    p, v, m = strategy.pipeline, strategy.virtual_stages, int(rows.choice["micro_batches"][0])
    order = repeated(strategy.schedule, p, m, v, np.full(p, UNLIMITED), iterations)
    seconds = priced_passes(rows).of_chunks(chunks, strategy.schedule in SPLIT)
    return play(order, np.broadcast_to(seconds[:, None], order.turn.shape), 0.0)


def simulated_parts(rows: Rows, strategy: Strategy, chunks: NDArray[np.int64]) -> NDArray[np.float64]:
    """Parts of a step [s] in the order of `PARTS`: the work of the slowest stage, and how long it waits."""
    one, m = priced_passes(rows), int(rows.choice["micro_batches"][0])
    layers, heads = device_layers(strategy, chunks), np.zeros(strategy.pipeline)
    heads[chunk_devices(strategy)[-1]] = 1  # output layers that a micro-batch meets on each stage
    if strategy.schedule == "chimera":
        heads = (heads + heads[::-1]) / 2
    parts = step_parts(*rows)[0]
    slowest = int(np.argmax(layers * one.parts.sum() + heads * one.head))
    parts[_LAYER_PARTS] = m * layers[slowest] * one.parts
    parts[_HEAD] = m * heads[slowest] * one.head
    parts[_PIPELINE] = 2 * m * strategy.virtual_stages * one.hop
    busy = parts[[*_LAYER_PARTS, _HEAD, _PIPELINE]].sum()
    parts[PARTS.index("bubble")] = max(_period(rows, strategy, chunks, slowest, busy) - busy, 0.0)
    parts[[_DATA, _OPTIMIZER]] = _replicas(rows, layers, heads)
    return np.asarray(parts)


def _period(rows: Rows, strategy: Strategy, chunks: NDArray[np.int64], slowest: int, busy: float) -> float:
    """Time between two iterations.

    Schedules that flush: the makespan. Those that never do: the work of the slowest stage, since what may be
    in flight on a stage and those behind it never takes longer than the slowest of them as often.
    """
    if strategy.schedule in ASYNCHRONOUS:
        return busy
    if strategy.schedule not in SPLIT:
        return simulated_passes(rows, strategy, chunks).makespan
    found, m = simulated_passes(rows, strategy, chunks, _ITERATIONS), rows.choice["micro_batches"][0]
    own, starts = found.resource == slowest, np.full(_ITERATIONS, np.inf)
    np.minimum.at(starts, found.item[own] // m, found.start[own])
    half = _ITERATIONS // 2
    return float(starts[-1] - starts[half - 1]) / half


def _replicas(rows: Rows, layers: NDArray[np.float64], heads: NDArray[np.float64]) -> NDArray[np.float64]:
    """Gradients and optimiser of the stage that they take longest on.

    Every stage is priced as a model of its own; one without embedding and output layer has as many weights
    fewer in its layers, as the kernel counts the table on every stage.
    """
    table = rows.model["vocabulary"] * rows.model["hidden"]
    model, choice = np.repeat(rows.model, layers.size), np.repeat(rows.choice, layers.size)
    outside = (heads == 0) & (np.arange(layers.size) > 0)
    model["layers"] = layers
    model["layer_weights"] -= outside * table / layers
    choice[["pipeline", "virtual_stages"]] = 1
    parts = step_parts(model, rows.machine, choice)[:, [_DATA, _OPTIMIZER]]
    return np.asarray(parts[parts.sum(axis=1).argmax()])
