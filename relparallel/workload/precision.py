"""Few-bit numbers: what a parameter weighs in training, which gradients a format cannot hold."""

from collections.abc import Mapping
from typing import Any, Final

from relparallel._checks import (
    MOST_BYTES,
    flag,
    real,
    record,
    whole,
)


@record
class NumberFormat:
    """A binary floating-point format with subnormal numbers and infinities, as in IEEE 754."""

    exponent_bits: int = whole(at_least=2, at_most=11)
    mantissa_bits: int = whole(at_least=1, at_most=52)

    @property
    def bytes(self) -> int:
        """Width in memory."""
        return -(-(1 + self.exponent_bits + self.mantissa_bits) // 8)

    @property
    def smallest_normal(self) -> float:
        """Below it, digits are lost."""
        return float(2.0 ** (2 - 2 ** (self.exponent_bits - 1)))

    @property
    def smallest(self) -> float:
        """Smallest subnormal number; what is below half of it becomes zero."""
        return self.smallest_normal * 2.0**-self.mantissa_bits

    @property
    def largest(self) -> float:
        """Largest finite number."""
        return float((2 - 2.0**-self.mantissa_bits) * 2.0 ** (2 ** (self.exponent_bits - 1) - 1))


FORMATS: Final = {
    "fp32": NumberFormat(exponent_bits=8, mantissa_bits=23),
    "bf16": NumberFormat(exponent_bits=8, mantissa_bits=7),
    "fp16": NumberFormat(exponent_bits=5, mantissa_bits=10),
    "fp8": NumberFormat(exponent_bits=5, mantissa_bits=2),
}
"""Formats by name; fp8 is the one for gradients (E5M2)."""


@record
class Precision:
    """Bytes per parameter, and what sharding adds to them.

    Parameters
    ----------
    parameter_bytes, gradient_bytes, optimizer_bytes : float
        Of a parameter that nothing shards.
    gathered_bytes : float
        Of a parameter or gradient on its way between GPUs, and of a parameter gathered from its
        shards.
    bucket : float
        Elements of the buffer for collectives of ZeRO stages 1 to 3; none where they work in place.
    sharded_storage : bool
        Whether stage 2 keeps shards too and gathers all parameters for a step (FSDP's
        SHARD_GRAD_OP).
    setup_bytes : float
        Held before the state is cut into shards.
    logit_bytes, loss_bytes : float
        Of a logit: kept for the backward pass, and besides while the loss is computed.
    product_bytes : float
        Of a number that a matrix product keeps of its input, for the gradient of its weights.
    expert_copies : float
        How often the tokens that went to experts are kept: as they leave and as they return, or
        once.
    scratch_bytes : float
        Of a weight of one layer and of the output layer, in place of gradients that are added
        elsewhere.
    host_factor : float
        Of state that the host keeps in place of the GPU, with the buffers it is copied through.
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
    product_bytes: float = real(default=2.0, at_least=0, at_most=2)
    expert_copies: float = real(default=2.0, at_least=1, at_most=2)
    scratch_bytes: float = real(default=0.0, at_least=0, at_most=MOST_BYTES)
    host_factor: float = real(default=1.0, at_least=1, at_most=4)


PRODUCTS: Final[Mapping[str, float]] = {"bf16": 2.0, "fp8": 1 + 1 / 32, "fp4": 0.5 + 1 / 16}
"""Format of products: bytes of a number, with its part of a scale per 32 (MXFP8) or 16 (NVFP4)."""

_SHARDS: Final[Mapping[str, Any]] = {
    "parameter_bytes": 4.0,
    "gradient_bytes": 4.0,
    "optimizer_bytes": 8.0,
}
_CORE: Final[Mapping[str, Any]] = {
    "logit_bytes": 2.0,
    "loss_bytes": 0.0,
    "expert_copies": 1.0,
    "scratch_bytes": 2.0,
}
PRECISIONS: Final[Mapping[str, Precision]] = {
    "mixed": Precision(),
    "fp32": Precision(**_SHARDS, gathered_bytes=4.0),
    "megatron-fp16": Precision(optimizer_bytes=16.0),
    "megatron-bf16": Precision(gradient_bytes=4.0),
    "deepspeed-fp16": Precision(optimizer_bytes=16.0, bucket=1e9, host_factor=1.5),
    "deepspeed-bf16-2022": Precision(
        gradient_bytes=6.0, bucket=5e9, setup_bytes=18.0, host_factor=1.5
    ),
    "fsdp": Precision(**_SHARDS, sharded_storage=True, logit_bytes=2.0, loss_bytes=2.0),
    "torchtitan": Precision(**_SHARDS, sharded_storage=True, logit_bytes=6.0, loss_bytes=6.0),
    "megatron-core": Precision(gradient_bytes=4.0, **_CORE),
    "megatron-bridge": Precision(**_CORE),
}
"""By name:

- mixed: ZeRO's fp16 weights and gradients, fp32 copy and two moments (Rajbhandari et al. 2020,
  section 3.1).
- fp32, megatron-fp16, megatron-bf16: 16, 20 and 18 bytes (Megatron-LM README, Distributed
  Optimizer).
- deepspeed-fp16: the fp32 copy of the gradients is a shard; two buckets of 5e8 elements (its
  defaults). On the host, 1.5 times the state (``additional_buffer_factor`` of its
  ``estimate_zero3_model_states_mem_needs``).
- deepspeed-bf16-2022: gradients in bf16 and in fp32, neither sharded; the updated weights pass
  through one bucket of 5e9 elements (``bf16_optimizer.py``). That the 18 bytes of weights, fp32
  gradients and optimizer must fit once before they are cut is inferred from which BLOOM runs
  failed; no source says so.
- fsdp: fp32 shards, computed with in half precision (PyTorch FSDP under automatic mixed precision),
  and a fused cross entropy that keeps half-precision logits and makes their gradient (llm-foundry's
  default).
- torchtitan: the same with PyTorch's cross entropy of logits in fp32, which keeps them in bf16, and
  its result; both gradients come on top.
- megatron-core, megatron-bridge: Megatron-Core since 0.14 with Transformer Engine, gradients in
  fp32 (its default) or in bf16 (``grad_reduce_in_fp32=False`` of Megatron-Bridge's recipes). The
  gradient of the logits overwrites them (``cross_entropy_fusion_impl="te"``). A token is weighted
  by its expert's probability inside the expert, so that only its way there is kept
  (``weighted_bias_swiglu_impl``). Gradients are added to those of former micro-batches at once; a
  tensor of each shape of weights stands in for them (``get_dummy_wgrad``), one expert's for all
  experts.

Elsewhere logits are kept in fp32, which the loss turns into the softmax in place; half-precision
logits and the exponentials stand beside them for a moment (Megatron-LM's ``cross_entropy.py``).
"""
