"""A predicted step, pass by pass: the schedule simulated with the stages that the model really has.

`step_time` uses closed forms, for a grid of millions. Here every stage has its own time, the last one with
the output layer, and the passes run on the one simulator of schedules: what each GPU does and when it waits.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from relparallel._checks import require_instance, require_int
from relparallel.hardware import Cluster
from relparallel.parallel._kernel import pass_times
from relparallel.parallel._records import choice_record, machine_record, model_record
from relparallel.parallel.calibration import calibration, software
from relparallel.parallel.schedules import simulate_schedule
from relparallel.parallel.step_time import StepTime, step_time
from relparallel.parallel.strategy import Strategy
from relparallel.parallel.timeline import Timeline
from relparallel.workload import Transformer

__all__ = ["step_timeline"]


def step_timeline(
    model: Transformer, strategy: Strategy, cluster: Cluster, global_batch: int, **options: Any
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
    **options : optional
        The other arguments of `step_time`.

    Returns
    -------
    Timeline
        Of the micro-batches; gradients, optimiser and fixed overhead of the step come after it.

    Raises
    ------
    TypeError, ValueError
        As `step_time` does.

    Notes
    -----
    Stages do the layers that they hold, one less on the first and on the last where embedding and output
    layer count as one each; the last one has the output layer. Communication inside layers lengthens their
    passes; transfers between stages delay them. The makespan is that of the closed form to three per cent.

    Examples
    --------
    >>> from relparallel.hardware import cluster
    >>> gpt3 = Transformer(layers=96, hidden=12288, heads=96, vocabulary=51200, sequence=2048)
    >>> split = Strategy(tensor=8, pipeline=8, recompute="full")
    >>> found = step_timeline(gpt3, split, cluster("a100-80gb-selene", gpus=64), global_batch=16)
    >>> bool(found.busy[-1] > found.busy[0])
    True
    """
    time = step_time(model, strategy, cluster, global_batch, **options)
    m, v = strategy.micro_batches(require_int(global_batch=global_batch)), strategy.virtual_stages
    seconds = _stage_seconds(time, model, strategy, m)
    forward = seconds * _forward_share(model, strategy, cluster, global_batch, options)
    return simulate_schedule(
        strategy.schedule, strategy.pipeline, m, v, forward=forward, backward=seconds - forward,
        communication=time.pipeline / (2 * m * v),
    )  # fmt: skip


def _stage_seconds(time: StepTime, model: Transformer, strategy: Strategy, m: int) -> NDArray[np.float64]:
    """Seconds that a micro-batch takes on each stage, [p]."""
    p, chunks = strategy.pipeline, strategy.pipeline * strategy.virtual_stages
    inside = ("compute", "recompute", "launch", "tensor", "context", "expert")
    held = sum(getattr(time, part) for part in inside) / m
    seconds = np.full(p, held)
    head = time.head / m
    if model.layers % chunks:  # embedding and output layer count as one layer each
        layer = held / ((model.layers + 2) / p)
        seconds[0] -= layer
    seconds[-1] += head
    return seconds


def _forward_share(
    model: Transformer, strategy: Strategy, cluster: Cluster, global_batch: int, options: dict[str, Any]
) -> float:
    """Share of the forward pass in the time of a layer."""
    device = require_instance(Cluster, cluster=cluster).accelerator
    assert device is not None  # `step_time` has refused it
    known = options.get("calibrated") or calibration(device.name)
    programs = software(options.get("software", "megatron-2022"))
    machine = machine_record(cluster, known, programs, options.get("precision", "bf16"))
    forward, backward, again = pass_times(
        model_record(model)[0], machine[0], choice_record(strategy, global_batch)[0]
    )
    return float(forward / (forward + backward + again))
