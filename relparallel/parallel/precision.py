"""How software keeps a parameter: its bytes as weight, gradient and optimiser state, and its buffers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from relparallel._checks import flag, real, record
from relparallel.parallel._arguments import MOST_BYTES


@record
class Precision:
    """Bytes per parameter, and what sharding adds to them.

    Parameters
    ----------
    parameter_bytes, gradient_bytes, optimizer_bytes : float
        Of a parameter that nothing shards.
    gathered_bytes : float
        Of a parameter or gradient on its way between GPUs, and of a parameter gathered from its shards.
    bucket : float
        Elements of the buffer for collectives of ZeRO stages 1 to 3; none where they work in place.
    sharded_storage : bool
        Whether stage 2 keeps shards too and gathers all parameters for a step (FSDP's SHARD_GRAD_OP).
    setup_bytes : float
        Held before the state is cut into shards.
    logit_bytes, loss_bytes : float
        Of a logit: kept for the backward pass, and besides while the loss is computed.

    Examples
    --------
    >>> half = PRECISIONS["megatron-bf16"]
    >>> half.parameter_bytes + half.gradient_bytes + half.optimizer_bytes
    18.0
    """

    parameter_bytes: float = real(default=2.0, at_least=0, at_most=MOST_BYTES)
    gradient_bytes: float = real(default=2.0, at_least=0, at_most=MOST_BYTES)
    optimizer_bytes: float = real(default=12.0, at_least=0, at_most=MOST_BYTES)
    gathered_bytes: float = real(default=2.0, at_least=0, at_most=MOST_BYTES)
    bucket: float = real(default=0.0, at_least=0, at_most=1e15)
    sharded_storage: bool = flag(default=False)
    setup_bytes: float = real(default=0.0, at_least=0, at_most=MOST_BYTES)
    logit_bytes: float = real(default=4.0, at_least=0, at_most=MOST_BYTES)
    loss_bytes: float = real(default=6.0, at_least=0, at_most=MOST_BYTES)


PRECISIONS: Final[Mapping[str, Precision]] = {
    "mixed": Precision(),
    "fp32": Precision(parameter_bytes=4.0, gradient_bytes=4.0, optimizer_bytes=8.0, gathered_bytes=4.0),
    "megatron-fp16": Precision(optimizer_bytes=16.0),
    "megatron-bf16": Precision(gradient_bytes=4.0),
    "deepspeed-fp16": Precision(optimizer_bytes=16.0, bucket=1e9),
    "deepspeed-bf16-2022": Precision(gradient_bytes=6.0, bucket=5e9, setup_bytes=18.0),
    "fsdp": Precision(
        parameter_bytes=4.0,
        gradient_bytes=4.0,
        optimizer_bytes=8.0,
        sharded_storage=True,
        logit_bytes=2.0,
        loss_bytes=2.0,
    ),
}
"""By name:

- mixed: ZeRO's fp16 weights and gradients, fp32 copy and two moments (Rajbhandari et al. 2020, section 3.1).
- fp32, megatron-fp16, megatron-bf16: 16, 20 and 18 bytes (Megatron-LM README, Distributed Optimizer).
- deepspeed-fp16: the fp32 copy of the gradients is a shard; two buckets of 5e8 elements (its defaults).
- deepspeed-bf16-2022: gradients in bf16 and in fp32, neither sharded; the updated weights pass through one
  bucket of 5e9 elements (``bf16_optimizer.py``). That the 18 bytes of weights, fp32 gradients and optimiser
  must fit once before they are cut is inferred from which BLOOM runs failed; no source says so.
- fsdp: fp32 shards, computed with in half precision (PyTorch FSDP under automatic mixed precision), and a
  fused cross entropy that keeps half-precision logits and makes their gradient (llm-foundry's default).

Elsewhere logits are kept in fp32, which the loss turns into the softmax in place; half-precision logits and
the exponentials stand beside them for a moment (Megatron-LM's ``cross_entropy.py``).
"""
