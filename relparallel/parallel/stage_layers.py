"""Layers of every chunk of a pipeline: what is allowed, who holds them, how many of them a stage keeps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from relparallel._checks import require_int
from relparallel.parallel._arguments import require_indices
from relparallel.parallel.schedules import TABLE, V_SHAPED
from relparallel.parallel.strategy import Strategy
from relparallel.workload import Transformer

UNLIMITED: Final = 2.0**53
"""Micro-batches that a stage may hold where nothing limits them."""
_ROUNDS: Final = 4  # times p micro-batches, after which a stage holds no more


def require_stage_layers(model: Transformer, strategy: Strategy, stage_layers: Any) -> NDArray[np.int64]:
    """Return the layers of every chunk as int64 [p v], or refuse them."""
    chunks = strategy.pipeline * strategy.virtual_stages
    allowed = (
        f"{chunks} integers >= 1 that sum to the {model.layers} layers, one for each of {strategy.pipeline} "
        f"stages with {strategy.virtual_stages} chunks"
    )
    if isinstance(stage_layers, str) or not isinstance(stage_layers, Sequence | np.ndarray):
        raise TypeError(f"stage_layers must be {allowed}, got {stage_layers!r:.80}")
    try:
        layers = require_indices("stage_layers", [require_int(stage_layers=n) for n in stage_layers])
    except (TypeError, ValueError, OverflowError):
        raise TypeError(f"stage_layers must be {allowed}, got {stage_layers!r:.80}") from None
    if layers.size != chunks or np.any(layers < 1) or sum(layers.tolist()) != model.layers:
        said = f"{layers.size} that sum to {sum(layers.tolist())}"
        raise ValueError(f"stage_layers must be {allowed}, got {said}: {stage_layers!r:.80}")
    return layers


def dealt_layers(layers: int, chunks: int) -> NDArray[np.int64]:
    """Layers of every chunk where nothing is said: equal, or embedding and output layer count as one each."""
    ends = layers % chunks > 0
    dealt = np.full(chunks, (layers + 2 * ends) // chunks)
    dealt[[0, -1]] -= ends
    return dealt


def even_chunks(layers: int, chunks: int) -> NDArray[np.int64]:
    """Layers of the chunks of one stage, [v]; they differ by one at most, the later ones have more."""
    return np.arange(layers, layers + chunks) // chunks


def chunk_devices(strategy: Strategy) -> NDArray[np.int64]:
    """Stage that holds each chunk; int64 [p v]. In Chimera, the one on the way down."""
    p = strategy.pipeline
    chunk = np.arange(p * strategy.virtual_stages)
    return np.where(chunk < p, chunk, 2 * p - 1 - chunk) if strategy.schedule in V_SHAPED else chunk % p


def stage_sums(strategy: Strategy, chunks: NDArray[Any]) -> NDArray[np.float64]:
    """Sum over the chunks of every stage, [p]."""
    return np.bincount(chunk_devices(strategy), weights=chunks).astype(np.float64)


def device_layers(strategy: Strategy, chunks: NDArray[np.int64]) -> NDArray[np.float64]:
    """Layers that a micro-batch meets on each stage, [p]; Chimera's mean over its two directions."""
    held = stage_sums(strategy, chunks)
    return (held + held[::-1]) / 2 if strategy.schedule == "chimera" else held


def kept_layers(strategy: Strategy, micro_batches: int, chunks: NDArray[np.int64]) -> NDArray[np.float64]:
    """Most layers times micro-batches that each stage keeps at once, [p].

    A stage runs its passes in a fixed order, so what it keeps does not depend on how long they take.
    """
    p, v = strategy.pipeline, strategy.virtual_stages
    order = TABLE[strategy.schedule].rule(p, min(micro_batches, _ROUNDS * p), v, np.full(p, UNLIMITED))
    kinds = len(order.turn)
    gains = np.array([1.0, *[-1 / (kinds - 1)] * (kinds - 1)])[:, None, None] * chunks
    change = np.broadcast_to(gains, order.turn.shape).ravel()
    stage = np.broadcast_to(order.stage, order.turn.shape).ravel()
    by_turn = np.lexsort((order.turn.ravel(), stage))
    ends = np.searchsorted(stage[by_turn], np.arange(1, p))
    return np.array([part.cumsum().max() for part in np.split(change[by_turn], ends)])
