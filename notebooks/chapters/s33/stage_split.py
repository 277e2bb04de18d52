"""How many layers each pipeline stage gets, as embedding and output layer make stages unequal."""

import heapq
from typing import Any

import numpy as np
from numpy.typing import NDArray

from relparallel.hardware import Cluster
from relparallel.parallel import Strategy
from relparallel.parallel.feasibility import require_feasible
from relparallel.parallel.gpu_memory import stage_peaks
from relparallel.parallel.prices import pricing
from relparallel.parallel.quantities import Split, Storage
from relparallel.parallel.simulated_steps import Rows, priced_passes
from relparallel.parallel.stages import chunk_devices, even_chunks
from relparallel.workload import Transformer


def best_stage_layers(
    model: Transformer, strategy: Strategy, cluster: Cluster, global_batch: int, **options: Any
) -> tuple[int, ...]:
    """Layers of every stage that make the slowest stage as fast as can be, and that fit.

    Layers of every chunk in the order of the model, p v of them: ``stage_layers`` of `step_time`,
    `step_timeline` and `memory`. Any schedule but Chimera, whose stages come in pairs; ``options``
    are of `evaluate`: software, precision, calibrated, storage, dropout, reserve.

    A stage with l layers takes l a + h_i, h_i being the output layer on the stage that has it; its
    memory bounds l by c_i. Every stage gets v layers; then the stage that would be the fastest with
    one more gets it as long as it has room. No split has a faster slowest stage: let T be the time
    of the best one. As long as a layer is left, some stage has fewer than the best split gives it,
    thus has room and stays within T with one more; the stage that is chosen takes no longer than
    that. A step takes m times the slowest stage, and the filling, which is not looked at and
    matters where micro-batches are few. Between equals, later stages get more: they keep fewer
    micro-batches. Chunks of a stage differ by one at most. O(L (p + log p)).

    Narayanan et al., "PipeDream", SOSP 2019, section 3.1. Fan et al., "DAPPLE", PPoPP 2021, section
    4.

    >>> from relparallel.hardware import cluster
    >>> gpt = Transformer(layers=32, hidden=4096, heads=32, vocabulary=250880, sequence=2048)
    >>> split = Strategy(tensor=2, pipeline=4)
    >>> best_stage_layers(gpt, split, cluster("a100-80gb-selene", gpus=8), global_batch=32)
    (9, 9, 9, 5)
    """
    costs = pricing(model, cluster, global_batch, **options)
    chunks = strategy.pipeline * strategy.virtual_stages
    if chunks > model.layers or strategy.schedule == "chimera":
        raise ValueError(
            f"strategy must have at most {model.layers} chunks, as many as layers, and not be "
            "Chimera, "
            f"got {strategy}"
        )
    require_feasible(model, strategy, cluster, global_batch)
    one = priced_passes(Rows(costs.sizes, costs.machine.rates, Split.of(strategy, global_batch)))
    device, v = chunk_devices(strategy), strategy.virtual_stages
    begin = np.where(np.arange(strategy.pipeline) == device[-1], one.head, 0.0)
    room = _room(model, strategy, global_batch, costs.storage, costs.available)
    held = _balanced(begin, float(one.parts.sum()), room, v, model.layers)
    if held is None:
        raise ValueError(
            f"strategy must leave room for {model.layers} layers, {v} or more on every stage, "
            f"got room for {room.tolist()} on those of {strategy}"
        )
    chunk = np.array([even_chunks(n, v) for n in held])
    return tuple(chunk[device, np.arange(chunks) // strategy.pipeline].tolist())


def _room(
    model: Transformer, strategy: Strategy, global_batch: int, storage: Storage, available: float
) -> NDArray[np.int64]:
    """Most layers that fit on each stage, [p]; 0 where too few for its chunks do."""
    fewest = strategy.virtual_stages
    most = model.layers - fewest * (strategy.pipeline - 1)
    fits = [
        stage_peaks(model, strategy, global_batch, storage, n) <= available
        for n in range(fewest, most + 1)
    ]
    counts = np.logical_and.accumulate(fits).sum(axis=0)
    return np.where(counts > 0, fewest - 1 + counts, 0)


def _balanced(
    begin: NDArray[np.float64], layer: float, room: NDArray[np.int64], fewest: int, layers: int
) -> list[int] | None:
    """Layers of every stage that make the slowest as fast as can be; None if they do not fit."""
    p = begin.size
    if room.min() < fewest or room.sum() < layers:
        return None
    held = [fewest] * p
    waiting = [(begin[i] + (fewest + 1) * layer, -i) for i in range(p) if room[i] > fewest]
    heapq.heapify(waiting)
    for _ in range(layers - fewest * p):
        seconds, i = heapq.heappop(waiting)
        held[-i] += 1
        if held[-i] < room[-i]:
            heapq.heappush(waiting, (seconds + layer, i))
    return held
