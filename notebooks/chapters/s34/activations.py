"""Bytes of activations on every stage of a pipeline in the published form."""

import numpy as np
from numpy.typing import NDArray

from relparallel.parallel.memory_forms import activation_bytes_per_layer, micro_batches_in_flight
from relparallel.parallel.strategy import Strategy
from relparallel.workload import Transformer


def stage_activation_bytes(
    model: Transformer, strategy: Strategy, micro_batches: int
) -> NDArray[np.float64]:
    """Peak activation bytes of one GPU in each pipeline stage, without embedding and logits.

    Bytes per layer x layers per stage, dealt out evenly, x micro-batches in flight on it.

    >>> gpt3 = Transformer(layers=96, hidden=12288, heads=96, vocabulary=51200, sequence=2048)
    >>> strategy = Strategy(tensor=8, pipeline=8, virtual_stages=3, schedule="interleaved_1f1b",
    ...                     sequence_parallel=True, recompute="selective")
    >>> float(stage_activation_bytes(gpt3, strategy, micro_batches=64).max()) / 2**30
    12.3515625
    """
    chunks = strategy.pipeline * strategy.virtual_stages
    if model.layers % chunks:
        raise ValueError(
            f"model must have a multiple of {chunks} layers for its chunks, got {model.layers}"
        )
    layer = activation_bytes_per_layer(
        model.sequence,
        model.hidden,
        model.heads,
        strategy.micro_batch,
        tensor=strategy.tensor,
        context=strategy.context,
        sequence_parallel=strategy.sequence_parallel,
        recompute=strategy.recompute,
    )
    held = micro_batches_in_flight(
        strategy.schedule, strategy.pipeline, micro_batches, strategy.virtual_stages
    )
    return np.asarray(layer * model.layers / strategy.pipeline * held)
