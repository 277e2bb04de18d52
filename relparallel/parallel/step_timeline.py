"""A predicted step, pass by pass: the schedule simulated with the stages that the model really has.

`step_time` uses closed forms, for a grid of millions. Here every stage has its own time, the last one with
the output layer, and the passes run on the one simulator of schedules: what each GPU does and when it waits.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from relparallel.hardware import Cluster
from relparallel.parallel.stage_layers import dealt_layers
from relparallel.parallel.stage_times import simulated_passes
from relparallel.parallel.step_time import step_rows
from relparallel.parallel.strategy import Strategy
from relparallel.parallel.timeline import Timeline
from relparallel.workload import Transformer


def step_timeline(
    model: Transformer,
    strategy: Strategy,
    cluster: Cluster,
    global_batch: int,
    *,
    stage_layers: Sequence[int] | None = None,
    **options: Any,
) -> Timeline:
    """Predict when every pass of a training step happens.

    Parameters
    ----------
    model : Transformer
        What is trained.
    strategy : Strategy
        How it is split.
    cluster : Cluster
        With an accelerator and the bandwidth of its network.
    global_batch : int
        Sequences of a step.
    stage_layers : sequence of int, optional
        Layers of every stage or chunk, as `step_time` takes them.
    **options : optional
        The other arguments of `step_time`.

    Returns
    -------
    Timeline
        Of the micro-batches; gradients, optimiser and fixed overhead of the step come after it.

    Notes
    -----
    Chunks do the layers that they hold, one less on the first and on the last where embedding and output
    layer count as one each; the last one has the output layer, a third of it in each of its products.
    Communication inside layers and the transfer behind it lengthen a pass, as in the closed form. With equal
    chunks and a schedule that flushes (Chimera apart) this is its time; where embedding and output layer
    count, the closed form fills the pipeline with up to two layers more. O(n log n) for n passes.

    Examples
    --------
    >>> from relparallel.hardware import cluster
    >>> gpt3 = Transformer(layers=96, hidden=12288, heads=96, vocabulary=51200, sequence=2048)
    >>> split = Strategy(tensor=8, pipeline=8, recompute="full")
    >>> found = step_timeline(gpt3, split, cluster("a100-80gb-selene", gpus=64), global_batch=16)
    >>> bool(found.busy[-1] > found.busy[0])
    True
    """
    _, rows, layers = step_rows(model, strategy, cluster, global_batch, stage_layers=stage_layers, **options)
    if layers is None:
        layers = dealt_layers(model.layers, strategy.pipeline * strategy.virtual_stages)
    return simulated_passes(rows, strategy, layers)
