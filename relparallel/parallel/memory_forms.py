"""Closed forms of the bytes on a GPU, term by term: the formulas of `memory`, on arrays.

A model-parallel rank holds psi parameters, shared by N_d data-parallel ranks, with K bytes of
optimizer state each. s, h, a are sequence, hidden size and heads; b, t, c micro-batch, tensor and
context degree; p, m, v stages, micro-batches and chunks per stage.
"""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from relparallel._checks import (
    MOST_BYTES,
    MOST_DEVICES,
    bare,
    require_choice,
    require_flag,
    require_int,
    require_real,
    require_whole,
)
from relparallel.parallel.bytes_by_part import layer_bytes, state_bytes
from relparallel.parallel.schedules import SCHEDULES, TABLE
from relparallel.parallel.stages import FLIGHT_RULES, flight
from relparallel.parallel.strategy import RECOMPUTE


def model_state_bytes(
    parameters: ArrayLike,
    data: ArrayLike,
    zero_stage: ArrayLike,
    *,
    parameter_bytes: float = 2,
    gradient_bytes: float = 2,
    optimizer_bytes: float = 12,
) -> Any:
    """Return bytes of parameters, gradients and optimizer state on one GPU; broadcasts over arrays.

    Parameters
    ----------
    parameters, data, zero_stage : float or array
        Parameters psi of one model-parallel rank, above 0; data-parallel ranks N_d that share the
        state, of which infinity gives the limit; and 0 to shard nothing, 1 the optimizer state, 2
        the gradients too, 3 the parameters too.
    parameter_bytes, gradient_bytes, optimizer_bytes : float
        Bytes per parameter; by default mixed-precision Adam: fp16, fp16, fp32 copy and two moments
        (K = 12).

    Returns
    -------
    float or numpy.ndarray
        (2 + 2 + K) psi; 4 psi + K psi / N_d; 2 psi + (2 + K) psi / N_d; (4 + K) psi / N_d for
        stages 0 to 3. Megatron's distributed optimizer is stage 1 with 2, 2, 16 (fp16), 2, 4, 12
        (bf16, fp32 gradients) or 4, 4, 8 bytes (fp32). Rajbhandari et al., "ZeRO", SC 2020, section
        5 and Table 1.

    Examples
    --------
    >>> [model_state_bytes(parameters=7.5e9, data=64, zero_stage=stage) / 1e9 for stage in range(4)]
    [120.0, 31.40625, 16.640625, 1.875]
    """
    psi = require_real(parameters=parameters, above=0)
    ranks = require_whole(data=data, at_least=1, infinite=True)
    stage = require_whole(zero_stage=zero_stage, at_least=0, at_most=3)
    sizes: dict[str, Any] = {"parameter_bytes": parameter_bytes, "gradient_bytes": gradient_bytes}
    require_real(**sizes, optimizer_bytes=optimizer_bytes, at_least=0, at_most=MOST_BYTES)
    kept = *sizes.values(), optimizer_bytes
    psi, ranks, stage = np.broadcast_arrays(psi, ranks, stage)
    return bare(sum(state_bytes(psi, psi / ranks, stage, stage == 3, 1.0, *kept)))


def activation_bytes_per_layer(
    sequence: ArrayLike,
    hidden: ArrayLike,
    heads: ArrayLike,
    micro_batch: ArrayLike = 1,
    *,
    tensor: ArrayLike = 1,
    context: ArrayLike = 1,
    sequence_parallel: bool = False,
    recompute: str = "none",
) -> Any:
    """Return the bytes one GPU keeps of one layer for one micro-batch; broadcasts over arrays.

    Parameters
    ----------
    sequence, hidden, heads, micro_batch, tensor, context : int or array
        s, h, a, b and the tensor- and context-parallel degrees t and c, each at least 1.
    sequence_parallel : bool
        Whether LayerNorm and dropout are split over the tensor ranks too.
    recompute : {"none", "selective", "full"}
        Keep everything, everything but the attention core, or the layer's input only.

    Returns
    -------
    float or numpy.ndarray
        Bytes of fp16 activations and one-byte dropout masks: s b h (10 + 24/t + 5 a s/(h t)); with
        sequence parallelism (s b h / t)(34 + 5 a s/h); selective recomputation drops the term in a;
        full keeps 2 s b h, or 2 s b h / t; all of it over c. Korthikanti et al. 2022, Table 2.

    Examples
    --------
    >>> activation_bytes_per_layer(2048, 6144, 64, 4, tensor=8)
    1325400064.0
    """
    s, h, a = require_whole(sequence=sequence, hidden=hidden, heads=heads, at_least=1)
    b, t, c = require_whole(micro_batch=micro_batch, tensor=tensor, context=context, at_least=1)
    require_flag(sequence_parallel=sequence_parallel)
    require_choice(RECOMPUTE[:3], recompute=recompute)
    n = s * b / c
    kept, needed, _ = layer_bytes(
        n,
        n / t if sequence_parallel else n,
        t,
        h,
        8 * h,
        24 * h,
        0.0,
        (),
        a,
        s,
        RECOMPUTE.index(recompute),
        False,
        True,
    )
    return bare(kept + 0 * needed)


def micro_batches_in_flight(
    schedule: str, stages: int, micro_batches: int, virtual_stages: int = 1
) -> NDArray[np.float64]:
    """How many micro-batches' activations each stage holds at its peak, [p]; a chunk counts 1/v.

    On stage i = 0 ... p - 1: m with GPipe; min(m, p - i) with 1F1B; min(m, (2 (p - i - 1) + (v - 1)
    g + 1)/v) interleaved in groups of g, as `simulate_schedule` has them, which is p + (p - 1)/v on
    stage 0 where p divides m. One chunk per stage makes interleaving plain 1F1B. The other
    schedules are counted for enough micro-batches, and hold no more with fewer of them. Narayanan
    et al., SC 2021, section 2.2. Korthikanti et al. 2022, section 5.
    """
    require_choice(SCHEDULES, schedule=schedule)
    require_int(stages=stages, at_least=1, at_most=MOST_DEVICES)
    require_int(micro_batches=micro_batches, virtual_stages=virtual_stages, at_least=1)
    if virtual_stages > 1 and TABLE[schedule].chunks == 1:
        raise ValueError(
            f"virtual_stages must be 1 with schedule {schedule!r}, got {virtual_stages}"
        )
    rule, m = FLIGHT_RULES[schedule], float(micro_batches)
    held = flight(rule, stages, m, virtual_stages, np.arange(stages)).held
    return np.broadcast_to(held, stages).astype(np.float64)
