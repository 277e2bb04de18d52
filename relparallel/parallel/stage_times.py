"""A pipeline whose stages differ: who holds which layers, and the time of its step.

Every chunk is priced by the formula, its passes are run by the simulator.
"""

import re
from collections.abc import Sequence
from itertools import groupby
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from relparallel._checks import require_indices, require_int
from relparallel.parallel.columns import Split
from relparallel.parallel.dealing import counted_ends
from relparallel.parallel.passes import passes
from relparallel.parallel.records import Rates, Sizes
from relparallel.parallel.schedules import ASYNCHRONOUS, SCHEDULES, SPLIT, TABLE, V_SHAPED, repeated
from relparallel.parallel.step_parts import PARTS, as_rows, step_parts
from relparallel.parallel.strategy import ENDS, Strategy
from relparallel.parallel.timeline import Timeline, play
from relparallel.workload import Transformer

UNLIMITED: Final = 2.0**53
"""Micro-batches that a stage may hold where nothing limits them."""
_ROUNDS: Final = 4  # times p micro-batches, after which a stage holds no more
_LAYER_PARTS: Final = [
    PARTS.index(n) for n in ("compute", "recompute", "launch", "tensor", "context", "expert")
]
_HEAD, _PIPELINE, _DATA, _OPTIMIZER = (
    PARTS.index(n) for n in ("head", "pipeline", "data", "optimizer")
)
_ITERATIONS: Final = 8  # of schedules that hide the filling of one iteration behind the one before


def require_stage_layers(
    model: Transformer, strategy: Strategy, stage_layers: Any
) -> NDArray[np.int64]:
    """Return the layers of every chunk as int64 [p v], or refuse them."""
    chunks = strategy.pipeline * strategy.virtual_stages
    allowed = (
        f"{chunks} integers >= 1 that sum to the {model.layers} layers, one for each of "
        f"{strategy.pipeline} "
        f"stages with {strategy.virtual_stages} chunks, 0 at either end too, or a text like "
        "'4x15+1'"
    )
    if isinstance(stage_layers, str) and re.fullmatch(
        r"(?=.*[x+])(\d{1,6}(x\d{1,4})?\+?\b)+", stage_layers
    ):
        runs = [run.split("x") for run in stage_layers.split("+")]
        stage_layers = [int(run[0]) for run in runs for _ in range(int(run[-1]) if run[1:] else 1)]
    if isinstance(stage_layers, str) or not isinstance(stage_layers, Sequence | np.ndarray):
        raise TypeError(f"stage_layers must be {allowed}, got {stage_layers!r:.80}")
    try:
        layers = require_indices(
            "stage_layers", [require_int(stage_layers=n) for n in stage_layers]
        )
    except (TypeError, ValueError, OverflowError):
        raise TypeError(f"stage_layers must be {allowed}, got {stage_layers!r:.80}") from None
    if (
        layers.size != chunks
        or np.any(layers < 0)
        or np.any(layers[1:-1] < 1)
        or sum(layers.tolist()) != model.layers
    ):
        said = f"{layers.size} that sum to {sum(layers.tolist())}"
        raise ValueError(f"stage_layers must be {allowed}, got {said}: {stage_layers!r:.80}")
    return layers


def dealt_layers(model: Transformer, strategy: Strategy) -> NDArray[np.int64]:
    """Layers of every chunk where nothing is said, [p v].

    Equal; else the first chunks have one more, and embedding and loss take places as
    ``ends_as_layers`` says.
    """
    p, v, folded = strategy.pipeline, strategy.virtual_stages, strategy.schedule in V_SHAPED
    said = ENDS.index(strategy.ends_as_layers)
    ends = np.array(counted_ends(model.layers, model.mtp_layers, p, v, folded, said))
    dealt = even_chunks(model.layers + int(ends.sum()), p * v)[::-1].copy()
    np.subtract.at(dealt, [0, -1], ends)
    return dealt


def in_chunks(layers: NDArray[np.int64]) -> str:
    """Layers of chunks in words: ``4x15+1`` are fifteen chunks of four layers and one of one."""
    runs = [(number, len(list(run))) for number, run in groupby(layers.tolist())]
    return "+".join(f"{number}x{times}" if times > 1 else str(number) for number, times in runs)


def even_chunks(layers: int, chunks: int) -> NDArray[np.int64]:
    """Layers of one stage's chunks, [v]; they differ by one at most, the later ones have more."""
    return np.arange(layers, layers + chunks) // chunks


def chunk_devices(strategy: Strategy) -> NDArray[np.int64]:
    """Stage that holds each chunk; int64 [p v]. In Chimera, the one on the way down."""
    p = strategy.pipeline
    chunk = np.arange(p * strategy.virtual_stages)
    return (
        np.where(chunk < p, chunk, 2 * p - 1 - chunk)
        if strategy.schedule in V_SHAPED
        else chunk % p
    )


def stage_sums(strategy: Strategy, chunks: NDArray[Any]) -> NDArray[np.float64]:
    """Sum over the chunks of every stage, [p]."""
    return np.bincount(chunk_devices(strategy), weights=chunks).astype(np.float64)


def device_layers(strategy: Strategy, chunks: NDArray[np.int64]) -> NDArray[np.float64]:
    """Layers a micro-batch meets on each stage, [p]; Chimera's mean over its two directions."""
    held = stage_sums(strategy, chunks)
    return (held + held[::-1]) / 2 if strategy.schedule == "chimera" else held


def kept_layers(
    strategy: Strategy, micro_batches: int, chunks: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Most layers times micro-batches that each stage keeps at once, [p].

    A stage runs its passes in a fixed order, so what it keeps does not depend on how long they
    take.
    """
    p, v = strategy.pipeline, strategy.virtual_stages
    order = TABLE[strategy.schedule].rule(
        p, min(micro_batches, _ROUNDS * p), v, np.full(p, UNLIMITED)
    )
    kinds = len(order.turn)
    gains = np.array([1.0, *[-1 / (kinds - 1)] * (kinds - 1)])[:, None, None] * chunks
    change = np.broadcast_to(gains, order.turn.shape).ravel()
    stage = np.broadcast_to(order.stage, order.turn.shape).ravel()
    by_turn = np.lexsort((order.turn.ravel(), stage))
    ends = np.searchsorted(stage[by_turn], np.arange(1, p))
    return np.array([part.cumsum().max() for part in np.split(change[by_turn], ends)])


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


def simulated_passes(
    rows: Rows, strategy: Strategy, chunks: NDArray[np.int64], iterations: int = 1
) -> Timeline:
    """All passes of some steps."""
    p, v, m = strategy.pipeline, strategy.virtual_stages, rows.split.micro_batches
    order = repeated(strategy.schedule, p, m, v, np.full(p, UNLIMITED), iterations)
    seconds = priced_passes(rows).of_chunks(chunks, strategy.schedule in SPLIT)
    return play(order, np.broadcast_to(seconds[:, None], order.turn.shape), 0.0)


def simulated_parts(
    rows: Rows, strategy: Strategy, chunks: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Parts of a step [s], ordered as `PARTS`: the slowest stage's work, and how long it waits."""
    one, m = priced_passes(rows), rows.split.micro_batches
    layers, heads = device_layers(strategy, chunks), np.zeros(strategy.pipeline)
    heads[chunk_devices(strategy)[-1]] = 1  # output layers that a micro-batch meets on each stage
    if strategy.schedule == "chimera":
        heads = (heads + heads[::-1]) / 2
    parts = np.array(step_parts(*rows))
    slowest = int(np.argmax(layers * one.parts.sum() + heads * one.head))
    parts[_LAYER_PARTS] = m * layers[slowest] * one.parts
    parts[_HEAD] = m * heads[slowest] * one.head
    parts[_PIPELINE] = 2 * m * strategy.virtual_stages * one.transfer
    busy = parts[[*_LAYER_PARTS, _HEAD, _PIPELINE]].sum()
    parts[PARTS.index("pipeline_bubble")] = max(
        _period(rows, strategy, chunks, slowest, busy) - busy, 0.0
    )
    parts[[_DATA, _OPTIMIZER]] = _replicas(rows, layers, heads)
    return np.asarray(parts)


def _period(
    rows: Rows, strategy: Strategy, chunks: NDArray[np.int64], slowest: int, busy: float
) -> float:
    """Time between two iterations.

    Schedules that flush: the makespan. Those that never do: the work of the slowest stage, since
    what may be in flight on a stage and those behind it never takes longer than the slowest of them
    as often.
    """
    if strategy.schedule in ASYNCHRONOUS:
        return busy
    if strategy.schedule not in SPLIT:
        return simulated_passes(rows, strategy, chunks).makespan
    found, m = simulated_passes(rows, strategy, chunks, _ITERATIONS), rows.split.micro_batches
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
