"""Rows of the kernel's structured arrays, made from the types that people use."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from relparallel._checks import require_choice, require_instance
from relparallel.hardware import Cluster
from relparallel.parallel._kernel import CHOICE, MACHINE, PARTS, run
from relparallel.parallel.calibration import (
    Calibration,
    Software,
    calibration,
    newest_software,
    software as known_software,
    softwares,
)
from relparallel.parallel.schedules import SCHEDULES
from relparallel.parallel.strategy import DEGREES, ENDS, RECOMPUTE, Strategy
from relparallel.workload import Transformer
from relparallel.workload.mixers import attended

MODEL: Final = np.dtype(
    (
        np.record,
        [
            (name, np.float64)
            for name in (
                "layers",
                "hidden",
                "heads",
                "kv_heads",
                "head",
                "ffn",
                "matrices",
                "vocabulary",
                "sequence",
                "experts",
                "active",
                "shared",
                "expert_ffn",
                "mixture",
                "layer_weights",
                "expert_weights",
                "positions",
                "tied",
                "biases",
                "attention",
                "span",
                "dense",
                "blocks",
                "mixer",
                "core",
                "kept",
                "mtp",
            )
        ],
    )
)
"""Sizes of a model; ``matrices``: 2, or 3 with a gate; ``positions``, ``tied``, ``biases``: 0 or 1.

What layers do not share is a mean over all of them: the shares ``mixture`` with experts, ``dense``
with a dense block, ``attention`` with the own attention, whose queries look at ``span`` tokens (a
masked half counted); weights, without and with those that expert parallelism splits; ``blocks`` in
a layer over two; and of other mixers columns of products, FLOPs of a token besides (a masked half
left out) and numbers it keeps. ``mtp`` layers of multi-token prediction come behind the last one.
"""

_SAME: Final = ("layers", "hidden", "heads", "vocabulary", "sequence", "experts", "tied", "biases")


def model_record(model: Transformer) -> NDArray[Any]:
    """Sizes of a model, one row of `MODEL`."""
    L, mixers = model.layers, model.mixers
    # what expert parallelism splits
    own = model.mixture_layers * model.experts * model.expert_weights
    plain = model.ffn_blocks - model.mixture_layers
    return _row(
        MODEL,
        **{name: getattr(model, name) for name in _SAME},
        kv_heads=model.key_value_heads,
        head=model.head_width,
        ffn=model.ffn_hidden,
        matrices=2 + model.gated,
        active=model.active_experts,
        shared=model.shared_experts,
        expert_ffn=model.expert_hidden,
        mixture=model.mixture_layers / L,
        layer_weights=(model.layer_weights - own) / L,
        expert_weights=own / L,
        positions=model.learned_positions,
        attention=model.attentions / L,
        span=_span(model) / L,
        dense=1 - (L - plain) / L,
        blocks=(model.attentions + model.mixed + model.ffn_blocks) / (2 * L),
        mixer=sum(m.layers * m.weights for m in mixers) / (model.hidden * L),
        core=model.other_flops(model.sequence, causal=True) / L,
        kept=sum(m.layers * m.kept for m in mixers) / L,
        mtp=model.mtp_layers,
    )


def _span(model: Transformer) -> float:
    """Tokens that queries of the model's own attention see in all layers, a masked half counted."""
    full = (model.attentions - model.windowed) * model.sequence
    return full + model.windowed * 2 * attended(model.sequence, model.window, causal=True)


def machine_record(
    cluster: Cluster,
    calibration: Calibration,
    software: Software,
    precision: str = "bf16",
    slow: Mapping[str, float] | None = None,
) -> NDArray[Any]:
    """What a cluster and its software can do, one row of `MACHINE`.

    A smaller number format speeds products with weights up by as much as has been measured for
    large ones. ``slow`` says how much less bandwidth the groups of a degree have than in the
    default placement.
    """
    device = cluster.accelerator
    if device is None or cluster.network_bandwidth is None:
        raise ValueError(
            f"cluster must have an accelerator and a network_bandwidth, got {cluster!r}"
        )
    require_choice(tuple(device.matmul), precision=precision)
    return _row(
        MACHINE,
        peak=device.peak["bf16"],
        weight_peak=device.peak["bf16"] * device.matmul[precision] / device.matmul["bf16"],
        memory_bandwidth=device.memory_bandwidth,
        processors=device.multiprocessors,
        node=cluster.gpus_per_node,
        node_link=device.node_link,
        network=cluster.network_bandwidth,
        flash_attention=software.flash_attention + software.fused_attention,
        gradient_bytes=software.gradient_bytes,
        scatter=software.scatter_gather,
        bucketed=software.bucketed,
        elementwise=0.7 if software.fused_elementwise else 1.0,
        tensor_overlap=software.tensor_overlap,
        pipeline_overlap=software.pipeline_overlap,
        expert_launch=software.expert_launch,
        node_dispatch=software.node_dispatch,
        factor=calibration.factor(software.name),
        **{f"{degree}_slow": 1.0 for degree in DEGREES}
        | {f"{k}_slow": v for k, v in (slow or {}).items()},
        **calibration.values,
    )


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Machine:
    """A cluster with software: row of `MACHINE`, what is known, whether assumed, peak [FLOP/s]."""

    row: NDArray[Any]
    known: Calibration
    software: Software
    assumed: bool
    precision: str
    peak: float


def calibrated_machine(
    cluster: Cluster,
    software: str | None,
    precision: str = "bf16",
    calibrated: Calibration | None = None,
    slow: Mapping[str, float] | None = None,
) -> Machine:
    """Check a cluster with its software; return its row of `MACHINE`, and what is known of both.

    Where no software is named, it is the newest that was measured on the accelerator.
    """
    device = require_instance(Cluster, cluster=cluster).accelerator
    if device is None:
        raise ValueError(f"cluster must have an accelerator, got {cluster!r}")
    name = newest_software(device) if software is None else software
    programs = known_software(require_choice(softwares(), software=name))
    known = calibration(device) if calibrated is None else calibrated
    require_instance(Calibration, calibrated=known)
    row = machine_record(cluster, known, programs, precision, slow)
    peak = device.peak.get(precision, device.peak["bf16"])
    return Machine(
        row=row,
        known=known,
        software=programs,
        assumed=software is None,
        precision=precision,
        peak=peak,
    )


def choice_record(strategy: Strategy, global_batch: int | None = None) -> NDArray[Any]:
    """A strategy with its micro-batches (0 without a batch), one row of `CHOICE`."""
    degrees = ("tensor", "pipeline", "data", "context", "expert", "micro_batch", "virtual_stages")
    return _row(
        CHOICE,
        **{name: getattr(strategy, name) for name in degrees},
        shard=strategy.shard_group,
        micro_batches=0 if global_batch is None else strategy.micro_batches(global_batch),
        sequence_parallel=strategy.sequence_parallel,
        recompute=RECOMPUTE.index(strategy.recompute),
        zero_stage=strategy.zero_stage,
        schedule=SCHEDULES.index(strategy.schedule),
        experts_over_tensor=strategy.experts_over_tensor,
        ends_as_layers=ENDS.index(strategy.ends_as_layers),
    )


def step_parts(
    models: NDArray[Any],
    machines: NDArray[Any],
    choices: NDArray[Any],
    machine: NDArray[np.int64] | None = None,
) -> NDArray[np.float64]:
    """Parts of a step [s], a row per choice; one model or machine stands for all, unless chosen."""
    rows = np.arange(choices.size)
    out = np.empty((choices.size, len(PARTS)))
    machine = rows % machines.size if machine is None else machine
    run(models, machines, choices, rows % models.size, machine, out)
    return out


def _row(dtype: np.dtype[Any], **values: Any) -> NDArray[Any]:
    if set(values) != set(dtype.names or ()):
        raise TypeError(f"values must be {dtype.names}, got {tuple(values)}")
    row = np.zeros(1, dtype)
    for name, value in values.items():
        row[name] = value
    return row
