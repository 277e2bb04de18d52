"""The step of a pipeline whose stages differ: every chunk is priced, its passes are simulated."""

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from relparallel.parallel.layer_times import passes
from relparallel.parallel.quantities import Rates, Sizes, Split
from relparallel.parallel.schedules import ASYNCHRONOUS, SCHEDULES, SPLIT, repeated
from relparallel.parallel.stages import UNLIMITED, Pipeline, chunk_devices, device_layers
from relparallel.parallel.step_formula import PARTS, as_rows, step_parts
from relparallel.parallel.timeline import Timeline, play

_LAYER_PARTS: Final = [
    PARTS.index(n) for n in ("compute", "recompute", "launch", "tensor", "context", "expert")
]
_HEAD, _PIPELINE, _DATA, _OPTIMIZER = (
    PARTS.index(n) for n in ("head", "pipeline", "data", "optimizer")
)
_ITERATIONS: Final = 8  # of schedules that hide the filling of one iteration behind the one before


class Rows(NamedTuple):
    """What the formula takes."""

    model: Sizes
    machine: Rates
    split: Split


class PassSeconds(NamedTuple):
    """Seconds of one micro-batch.

    ``parts`` [6] of a layer, forward and backward; of these ``forward`` and, in the backward pass,
    ``weight``; ``head`` of the output layer, all its passes; ``transfer`` of one transfer between
    stages.
    """

    parts: NDArray[np.float64]
    forward: float
    weight: float
    head: float
    transfer: float

    def of_chunks(self, chunks: NDArray[np.int64], split: bool) -> NDArray[np.float64]:
        """Seconds of each kind of pass of each chunk, [kinds, chunks].

        A transfer occupies its stage. The output layer takes a third of its time for each of its
        products.
        """
        backward = self.parts.sum() - self.forward
        layer = np.array([self.forward, backward - self.weight, self.weight])
        kinds: NDArray[np.float64] = np.multiply.outer(layer, chunks.astype(np.float64))
        kinds[:2] += self.transfer
        kinds[:, -1] += self.head / 3
        return kinds if split else np.stack([kinds[0], kinds[1] + kinds[2]])


def priced_passes(rows: Rows) -> PassSeconds:
    """Price one layer, the output layer and a transfer, by the formula that prices steps.

    Full recomputation does the forward pass once more, so that is what it adds.
    """
    model, machine, s = rows
    plain = s._replace(
        pipeline=1,
        micro_batches=1,
        virtual_stages=1,
        schedule=SCHEDULES.index("1f1b"),
        recompute=np.array([s.recompute, 0, 2]),
    )
    one, none, full = as_rows(step_parts(model._replace(layers=1.0), machine, plain))
    transfer = step_parts(*rows)[_PIPELINE]
    return PassSeconds(
        parts=one[_LAYER_PARTS],
        forward=float((full - none)[_LAYER_PARTS].sum()),
        weight=float(passes(*rows).weight * machine.factor),
        head=float(one[_HEAD]),
        transfer=float(transfer / (2.0 * s.micro_batches * s.virtual_stages)),
    )


def simulated_passes(rows: Rows, split: Pipeline, iterations: int = 1) -> Timeline:
    """All passes of some steps."""
    strategy, chunks, m = split.strategy, split.chunks, rows.split.micro_batches
    p, v = strategy.pipeline, strategy.virtual_stages
    order = repeated(strategy.schedule, p, m, v, np.full(p, UNLIMITED), iterations)
    seconds = priced_passes(rows).of_chunks(chunks, strategy.schedule in SPLIT)
    return play(order, np.broadcast_to(seconds[:, None], order.turn.shape), 0.0)


def simulated_parts(rows: Rows, split: Pipeline) -> NDArray[np.float64]:
    """Parts of a step [s], ordered as `PARTS`: the slowest stage's work, and how long it waits."""
    one, m, strategy = priced_passes(rows), rows.split.micro_batches, split.strategy
    layers, heads = device_layers(strategy, split.chunks), np.zeros(strategy.pipeline)
    heads[chunk_devices(strategy)[-1]] = 1  # output layers that a micro-batch meets on each stage
    if strategy.schedule == "chimera":
        heads = (heads + heads[::-1]) / 2
    parts = np.array(step_parts(*rows))
    slowest = int(np.argmax(layers * one.parts.sum() + heads * one.head))
    parts[_LAYER_PARTS] = m * layers[slowest] * one.parts
    parts[_HEAD] = m * heads[slowest] * one.head
    parts[_PIPELINE] = 2 * m * strategy.virtual_stages * one.transfer
    busy = parts[[*_LAYER_PARTS, _HEAD, _PIPELINE]].sum()
    parts[PARTS.index("pipeline_bubble")] = max(_period(rows, split, slowest, busy) - busy, 0.0)
    parts[[_DATA, _OPTIMIZER]] = _replicas(rows, layers, heads)
    return np.asarray(parts)


def _period(rows: Rows, split: Pipeline, slowest: int, busy: float) -> float:
    """Time between two iterations.

    Schedules that flush: the makespan. Those that never do: the work of the slowest stage, since
    what may be in flight on a stage and those behind it never takes longer than the slowest of them
    as often.
    """
    schedule = split.strategy.schedule
    if schedule in ASYNCHRONOUS:
        return busy
    if schedule not in SPLIT:
        return simulated_passes(rows, split).makespan
    found, m = simulated_passes(rows, split, _ITERATIONS), rows.split.micro_batches
    own, starts = found.resource == slowest, np.full(_ITERATIONS, np.inf)
    np.minimum.at(starts, found.item[own] // m, found.start[own])
    half = _ITERATIONS // 2
    return float(starts[-1] - starts[half - 1]) / half


def _replicas(
    rows: Rows, layers: NDArray[np.float64], heads: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Gradients and optimizer of the stage that they take longest on.

    Every stage is priced as a model of its own; one without embedding and output layer has as many
    weights fewer in its layers, as the formula counts the table on every stage.
    """
    model = rows.model
    outside = (heads == 0) & (np.arange(layers.size) > 0)
    fewer = outside * (model.vocabulary * model.hidden) / np.maximum(layers, 1)
    model = model._replace(layers=layers * layers.size, layer_weights=model.layer_weights - fewer)
    parts = as_rows(step_parts(model, rows.machine, rows.split))[:, [_DATA, _OPTIMIZER]]
    return np.asarray(parts[parts.sum(axis=1).argmax()])
