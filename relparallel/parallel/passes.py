"""The kernels of one layer, and of the output layer, on one micro-batch: seconds of a machine.

A *pass* is the work of one layer on one micro-batch, forward or backward. A model (`Sizes`), a
machine (`Rates`) and a strategy (`Split`) are numbers or columns. n is tokens of a micro-batch on
one rank.
"""

from typing import Final, NamedTuple

import numpy as np

from relparallel.parallel.columns import Numbers, Split, by_kind, some, where
from relparallel.parallel.records import Rates, Sizes

_TILE: Final = 128.0  # rows and columns of the smaller tile of a matrix product
_SMALL_TILE: Final = 0.9  # rate of the smaller tile beside the larger one of 256 x 128
_SOFTMAX_BYTES: Final = 9.0  # per score: softmax read and write, dropout read, write and mask
_STREAM_BYTES: Final = 22.0  # per token and hidden unit: two norms, two dropouts with residual
_GELU_BYTES: Final = 4.0  # per token and unit of the feed-forward block
_LOGIT_BYTES: Final = 14.0  # per token and word: logits in fp32, softmax and its gradient
_PERMUTE_BYTES: Final = 8.0  # per copy of a token and hidden unit: out to experts, and back
_CAST_BYTES: Final = 4.0  # per operand in fp8: bf16 read, fp8 written, and once more transposed


def _gemm(
    rows: Numbers,
    columns: Numbers,
    depth: Numbers,
    batch: Numbers,
    rate: Numbers,
    shallow: Numbers,
    h: Rates,
) -> Numbers:
    """Matrix product: its tiles go over the processors in waves, unless memory is slower."""
    wave = h.processors * _TILE * _TILE
    across = np.ceil(columns / _TILE) * batch
    work = rows * columns * batch
    small = _SMALL_TILE * work / (np.ceil(np.ceil(rows / _TILE) * across / h.processors) * wave)
    large = work / (np.ceil(np.ceil(rows / (2 * _TILE)) * across / h.processors) * 2 * wave)
    compute = 2 * work * depth / (rate * np.maximum(small, large)) * (1 + shallow / depth)
    moved = 2 * (rows * columns + (rows + columns) * depth) * batch
    return np.maximum(compute, moved / (h.memory_bandwidth * h.hbm))


def _linear(
    n: Numbers, columns: Numbers, depth: Numbers, batch: Numbers, peak: Numbers, h: Rates
) -> tuple[Numbers, Numbers]:
    """Forward and backward product of a layer with weights [depth, columns]."""
    rate = peak * h.gemm
    forward = _gemm(n, columns, depth, batch, rate, h.depth, h)
    back = _gemm(n, depth, columns, batch, rate, h.depth, h)
    return forward, back + _gemm(depth, columns, n, batch, rate, h.depth, h)


def _attention(model: Sizes, h: Rates, s: Split) -> tuple[Numbers, Numbers]:
    """Forward and backward time of the attention core."""
    heads = s.micro_batch * model.heads / s.tensor
    length = model.sequence / s.context
    if some(h.flash_attention > 0):  # the masked half is left out
        share = where(h.flash_attention > 1, h.fused, h.flash)
        forward = 2 * length * model.span * model.head * heads / (h.peak * share)
        forward += s.micro_batch * length * model.core / s.tensor / (h.peak * share)
        return forward, 2.5 * forward
    # all scores of a window are made, then masked; other mixers have none
    heads = heads * model.attention
    rate = h.peak * h.batched * where(model.head % 8 == 0, 1.0, h.misaligned)
    scores = _gemm(length, model.sequence, model.head, heads, rate, 0.0, h)
    values = _gemm(length, model.head, model.sequence, heads, rate, 0.0, h)
    into_head = _gemm(length, model.sequence, model.head, heads, rate, 0.0, h)  # of scores, q, k, v
    softmax = (
        heads * length * model.sequence * _SOFTMAX_BYTES * h.traffic / (h.memory_bandwidth * h.hbm)
    )
    return scores + values + softmax, into_head + 3 * values + softmax


def _feed_forward(
    n: Numbers, width: Numbers, matrices: Numbers, depth: Numbers, batch: Numbers, h: Rates
) -> tuple[Numbers, Numbers, Numbers]:
    """Forward and backward time of the matrices and the activation function between them.

    Last, forward, the activation and the second of two products that a gate has before it.
    """
    up, up_back = _linear(n, (matrices - 1) * width, depth, batch, h.weight_rate, h)
    down, down_back = _linear(n, depth, width, batch, h.weight_rate, h)
    moved = n * width * batch * (matrices - 1) * _GELU_BYTES * h.traffic * h.elementwise
    between = moved / (h.memory_bandwidth * h.hbm)
    second = up * (1 - 1 / (matrices - 1))
    return up + down + between, up_back + down_back + between, second + between


class Passes(NamedTuple):
    """Seconds of the kernels of one layer on one micro-batch.

    Forward, backward, of that for the weights; forward, of the attention core, and of every second
    product with what lies between products.
    """

    forward: Numbers
    backward: Numbers
    weight: Numbers
    core: Numbers
    alternate: Numbers

    def again(self, recompute: Numbers) -> Numbers:
        """What is computed once more."""
        return by_kind(recompute, 0.0, self.core, self.forward, self.alternate)


def passes(model: Sizes, h: Rates, s: Split) -> Passes:
    """Kernels of one layer on one micro-batch."""
    n, t = s.micro_batch * model.sequence / s.context, s.tensor
    qkv, qkv_back = _linear(n, model.queries / t, model.hidden, 1.0, h.weight_rate, h)
    out, out_back = _linear(n, model.hidden, model.out / t, 1.0, h.weight_rate, h)
    around, around_back = (qkv + out) * model.attention, (qkv_back + out_back) * model.attention
    if some(model.mixer > 0):
        mixer, mixer_back = _linear(n, model.mixer / t, model.hidden, 1.0, h.weight_rate, h)
        around, around_back = around + mixer, around_back + mixer_back
    core, core_back = _attention(model, h, s)
    block, block_back, second = _blocks(model, h, s, n)
    split = where(s.sequence_parallel > 0, t, 1)
    moved = n * model.hidden * _STREAM_BYTES / split
    if some(h.weight_peak > h.peak):
        cast = 2 * model.hidden / split + (model.out + model.ffn) / t
        moved = where(h.weight_peak > h.peak, moved + n * cast * _CAST_BYTES, moved)
    stream = model.blocks * moved * h.traffic * h.elementwise / (h.memory_bandwidth * h.hbm)
    products = around_back + block_back
    weights = where(h.adapters > 0, 0.0, products / 2)  # half of them make gradients of weights
    inputs = products / 2 + core_back + stream
    keys = model.kv_heads * model.head / model.queries
    alternate = second + (keys * qkv + out) * model.attention + stream
    alternate = where(h.flash_attention > 0, alternate, alternate + core)
    return Passes(around + core + block + stream, inputs + weights, weights, core, alternate)


def _blocks(model: Sizes, h: Rates, s: Split, n: Numbers) -> tuple[Numbers, Numbers, Numbers]:
    """`_feed_forward` of all blocks of a layer, dense ones and experts."""
    t, block, block_back, second = s.tensor, 0.0, 0.0, 0.0
    if some(model.dense > 0):
        times = _feed_forward(n, model.ffn / t, model.matrices, model.hidden, 1.0, h)
        block, block_back, second = (time * model.dense for time in times)
    if some(model.mixture > 0):
        local, split = model.experts / s.expert, s.expert_tensor
        mine = n * (split / t)  # tokens that a rank sends to experts
        routed, routed_back, other = _feed_forward(
            mine * model.active / local,
            model.expert_ffn / split,
            model.matrices,
            model.hidden,
            local,
            h._replace(gemm=h.gemm * h.grouped),
        )
        copies = mine * model.active * model.hidden * _PERMUTE_BYTES
        permuted = copies * h.traffic / (h.memory_bandwidth * h.hbm)
        routed, routed_back = routed + permuted, routed_back + permuted
        always, always_back, same = 0.0, 0.0, 0.0
        if some(model.shared > 0):
            always, always_back, same = _feed_forward(
                n, model.shared * model.expert_ffn / t, model.matrices, model.hidden, 1.0, h
            )
        block = block + model.mixture * (routed + always)
        block_back = block_back + model.mixture * (routed_back + always_back)
        second = second + model.mixture * (other + same)
    return block, block_back, second


def output_layer(model: Sizes, h: Rates, s: Split) -> Numbers:
    """Output layer, loss and what a micro-batch costs besides layers."""
    n, words = s.micro_batch * model.sequence / s.context, model.vocabulary / s.tensor
    forward, backward = _linear(n, words, model.hidden, 1.0, h.peak, h)
    logits = (
        n * model.vocabulary / s.tensor * _LOGIT_BYTES * h.traffic / (h.memory_bandwidth * h.hbm)
    )
    return forward + backward + logits + h.micro
