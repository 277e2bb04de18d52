"""One layer on one micro-batch: its kernels, its transfers, and both on the clock.

A *pass* is the work of one layer on one micro-batch, forward or backward. A model (`Sizes`), a
machine (`Rates`, ``h``) and a strategy (`Split`, ``s``) are numbers or columns. n is tokens of a
micro-batch on one rank. Collectives run on two levels of links; sizes are bytes, ``inside`` the
ranks of a group that share a node.
"""

from typing import Final, NamedTuple

import numpy as np

from relparallel.parallel.collective_forms import one_ring, rings_in_rings
from relparallel.parallel.quantities import Numbers, Rates, Sizes, Split, by_kind, some, where

_TILE: Final = 128.0  # rows and columns of the smaller tile of a matrix product
_SMALL_TILE: Final = 0.9  # rate of the smaller tile beside the larger one of 256 x 128
_SOFTMAX_BYTES: Final = 9.0  # per score: softmax read and write, dropout read, write and mask
_NORM_BYTES: Final = 8.0  # per token and hidden unit: two norms read and write
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
) -> tuple[Numbers, Numbers, Numbers, Numbers]:
    """Forward and backward time of the matrices and the activation function between them.

    Then, forward, the activation and the second of two products that a gate has before it; and the
    activation alone.
    """
    up, up_back = _linear(n, (matrices - 1) * width, depth, batch, h.weight_rate, h)
    down, down_back = _linear(n, depth, width, batch, h.weight_rate, h)
    moved = n * width * batch * (matrices - 1) * _GELU_BYTES * h.traffic * h.elementwise
    between = moved / (h.memory_bandwidth * h.hbm)
    second = up * (1 - 1 / (matrices - 1))
    return up + down + between, up_back + down_back + between, second + between, between


class Passes(NamedTuple):
    """Seconds of the kernels of one layer on one micro-batch.

    Forward, backward, of that for the weights; forward, of the attention core, of every second
    product with what lies between products, of that alone, and of dense feed-forward blocks.
    """

    forward: Numbers
    backward: Numbers
    weight: Numbers
    core: Numbers
    alternate: Numbers
    between: Numbers
    mlp: Numbers

    def again(self, recompute: Numbers) -> Numbers:
        """What is computed once more."""
        parts = self.alternate, self.between, self.mlp
        return by_kind(recompute, 0.0, self.core, self.forward, *parts)


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
    block, block_back, second, between, mlp = _blocks(model, h, s, n)
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
    between = between + stream * (_NORM_BYTES / _STREAM_BYTES)
    forward, backward = around + core + block + stream, inputs + weights
    return Passes(forward, backward, weights, core, alternate, between, mlp)


def _blocks(model: Sizes, h: Rates, s: Split, n: Numbers) -> tuple[Numbers, ...]:
    """`_feed_forward` of all blocks of a layer, dense ones and experts; and that of dense ones."""
    t, block, block_back, second, between = s.tensor, 0.0, 0.0, 0.0, 0.0
    if some(model.dense > 0):
        times = _feed_forward(n, model.ffn / t, model.matrices, model.hidden, 1.0, h)
        block, block_back, second, between = (time * model.dense for time in times)
    mlp = block
    if some(model.mixture > 0):
        local, split = model.experts / s.expert, s.expert_tensor
        mine = n * (split / t)  # tokens that a rank sends to experts
        routed, routed_back, other, gates = _feed_forward(
            mine * model.active / local,
            model.expert_ffn / split,
            model.matrices,
            model.hidden,
            local,
            h._replace(gemm=h.gemm * (1 - (1 - h.grouped) * (1 - 1 / local))),
        )
        copies = mine * model.active * model.routed * _PERMUTE_BYTES
        permuted = copies * h.traffic / (h.memory_bandwidth * h.hbm)
        routed, routed_back = routed + permuted, routed_back + permuted
        always, always_back, same, gate = 0.0, 0.0, 0.0, 0.0
        if some(model.shared > 0):
            always, always_back, same, gate = _feed_forward(
                n, model.shared * model.expert_ffn / t, model.matrices, model.hidden, 1.0, h
            )
        block = block + model.mixture * (routed + always)
        block_back = block_back + model.mixture * (routed_back + always_back)
        second = second + model.mixture * (other + same)
        between = between + model.mixture * (gates + gate)
    return block, block_back, second, between, mlp


def output_layer(model: Sizes, h: Rates, s: Split) -> Numbers:
    """Output layer, loss and what a micro-batch costs besides layers."""
    n, words = s.micro_batch * model.sequence / s.context, model.vocabulary / s.tensor
    forward, backward = _linear(n, words, model.hidden, 1.0, h.peak, h)
    logits = (
        n * model.vocabulary / s.tensor * _LOGIT_BYTES * h.traffic / (h.memory_bandwidth * h.hbm)
    )
    return forward + backward + logits + h.micro


def gather(size: Numbers, ranks: Numbers, inside: Numbers, ring: Numbers, h: Rates) -> Numbers:
    """Cheapest reduce-scatter or all-gather of a vector among ranks of which some share a node.

    The forms of `collective_time` with calibrated links, whose latencies are counted on their own.
    Over several nodes, two levels save network and use it later. The halves of an all-reduce have
    the rounds of a tree between nodes if those are fewer, either half alone goes round the
    ``ring``: NCCL has no tree for it.
    """
    if not some(ranks > 1):
        return 0.0
    near = size / (h.node_link * h.link_share)
    found = one_ring(ranks, 0.0, near, 0.0, 0.0) + h.round * (1 + 0.25 * ranks) / 2
    if some(ranks > inside):
        nodes = np.ceil(ranks / inside)
        # so many groups leave the node
        far = size * h.node / inside / (h.network * h.network_share)
        moved = np.minimum(
            one_ring(ranks, 0.0, near, 0.0, far), rings_in_rings(inside, nodes, 0.0, near, 0.0, far)
        )
        hops = where(ring, nodes - 1, np.minimum(nodes - 1, np.ceil(np.log2(nodes))))
        found = where(ranks <= inside, found, moved + h.round / 2 + hops * h.hop)
    return where(ranks <= 1, 0.0, found)


def in_node(h: Rates, stride: Numbers, ranks: Numbers) -> Numbers:
    """Ranks of a group that share a node, where neighbours in the group are so many GPUs apart."""
    return np.minimum(np.maximum(h.node / stride, 1.0), ranks)


def exchange(size: Numbers, ranks: Numbers, inside: Numbers, copies: Numbers, h: Rates) -> Numbers:
    """All-to-all of what each rank holds, in the node and out of it at once.

    A dispatcher that knows nodes sends a token once to each node that has some of its experts: to
    k (1 - (1 - 1/k)^a) of k nodes where a experts are drawn.
    """
    near = size * (inside - 1) / ranks / (h.node_link * h.link_share)
    far = size * (ranks - inside) / ranks * h.node / (h.network * h.exchange_share)
    if some(h.node_dispatch > 0):
        nodes = ranks / inside
        fewer = far * (nodes * (1 - (1 - 1 / nodes) ** copies) / copies)
        far = where(h.node_dispatch > 0, fewer, far)
    within = near + h.round * (1 + 0.25 * ranks) / 2
    across = np.maximum(near, far) + h.round / 2 + h.hop
    return where(ranks <= 1, 0.0, where(ranks <= inside, within, across))


def send(size: Numbers, apart: Numbers, h: Rates) -> Numbers:
    """Transfer to a GPU so many GPUs further on, while all others of the node do the same."""
    within = size / (h.node_link * h.link_share) + h.round / 2
    return where(apart < h.node, within, size * h.node / (h.network * h.network_share) + h.hop)


def _longer(x: Numbers, y: Numbers) -> Numbers:
    """Time of two things that overlap: the longer one, rounded off where they are about equal."""
    # The 8-norm: kernels differ, so where host and GPU are even some of them wait: 9 %,
    # and 0.05 % where one takes twice as long. Products and roots round alike on every machine.
    x4, y4 = x * x * x * x, y * y * y * y
    return np.sqrt(np.sqrt(np.sqrt(x4 * x4 + y4 * y4)))


def exchanged_in_layer(
    model: Sizes, h: Rates, s: Split, core: Numbers
) -> tuple[Numbers, Numbers, Numbers]:
    """Communication of one pass of a layer: tensor, context and experts.

    A pass has two all-reduces of its activations among tensor ranks and two exchanges among
    experts; keys and values go round the context ranks while these attend to what they have. Whole
    experts exchange the tokens of each tensor rank, and leave one all-reduce to the attention where
    no expert is shared.
    """
    n, t, c = s.micro_batch * model.sequence / s.context, s.tensor, s.context
    hidden = 2 * n * model.hidden
    split = s.expert_tensor
    alone = where((split < t) & (model.shared == 0), model.mixture, 0.0)
    tensor = gather(hidden * h.tensor_slow, t, in_node(h, 1.0, t), False, h)
    tensor = (4 * model.blocks - 2 * alone) * tensor
    # keys and values of the whole sequence
    sequence = 2 * 2 * n * model.kv_heads * model.head / t * c
    sequence = sequence * model.attention
    context = gather(sequence * h.context_slow, c, in_node(h, t, c), True, h)
    context = np.maximum(context - core * (c - 1) / c, 0.0)  # the last of c rounds fetches nothing
    experts = 0.0
    if some((model.mixture > 0) & (s.expert > 1)):
        exchanged = 2 * n * model.routed * (split / t) * model.active * h.data_slow
        together = in_node(h, split, s.expert)
        experts = 2 * model.mixture * exchange(exchanged, s.expert, together, model.active, h)
    return tensor, context, experts


def seen_beside(moved: Numbers, work: Numbers, share: Numbers) -> Numbers:
    """What is seen of a transfer under some work, a share of which goes on seen all the same."""
    return np.maximum(moved - work, 0.0) + share * np.minimum(moved, work)


def seen_of_offload(
    model: Sizes, h: Rates, s: Split, out: Numbers, layers: Numbers, host_link: float
) -> Numbers:
    """Seconds of a step that transfers to the host and back add on a stage of so many layers.

    So many bytes of a step leave under its forward passes, and come back under the backward ones.
    """
    one, each = passes(model, h, s), s.micro_batches * layers * h.factor
    moved = out / (host_link * h.link_share)
    works = one.forward, one.backward + one.again(s.recompute)
    return sum(seen_beside(moved, each * work, h.exposed) for work in works)


def _gathered(model: Sizes, h: Rates, s: Split) -> Numbers:
    """Parameters of a layer from those who share them, context ranks too, which hold the same."""
    own = model.expert_weights / s.expert * (s.tensor / s.expert_tensor)
    sharing = s.shard * s.context
    rows = 2 * (model.layer_weights + own) / s.tensor * h.data_slow
    return gather(rows, sharing, in_node(h, s.tensor, sharing), True, h)


class LayerTimes(NamedTuple):
    """Seconds of one layer and micro-batch, with communication, and waiting for the host."""

    tensor: Numbers
    context: Numbers
    experts: Numbers
    launch: Numbers
    launch_back: Numbers
    ahead: Numbers
    behind: Numbers


def layer_on_clock(model: Sizes, h: Rates, s: Split, one: Passes) -> LayerTimes:
    """A layer on the clock: the host launches kernels while earlier ones run.

    Many ranks in step wait for the slowest of them. ``behind`` is without what is computed again.
    """
    tensor, context, experts = exchanged_in_layer(model, h, s, one.core)
    if some(h.exchange_overlap > 0):
        seen = seen_beside(experts, one.forward, h.exchanged)
        experts = where(h.exchange_overlap > 0, seen, experts)
    if some(h.tensor_overlap > 0):  # in pieces, each under the product that makes or needs it
        tensor = where(h.tensor_overlap > 0, seen_beside(tensor, one.forward, h.exposed), tensor)
    wide = np.maximum(s.tensor - 4.0, 0.0) / 4
    host = h.host * (1 + h.host_wide * wide * wide) * (1 - h.graphs)
    quantised = where(h.weight_peak > h.peak, h.sync, 0.0)
    # the host launches the kernels of experts when their tokens have come: nothing runs meanwhile
    stall = model.mixture * (quantised + h.expert_launch * model.experts / s.expert)
    stall = where(h.graphs < 1, stall, 0.0)
    on_gpu = one.forward + tensor + context + experts
    back_on_gpu = one.backward + tensor + 2 * context + experts
    launch = np.maximum(_longer(on_gpu, host) - on_gpu, 0.0) + stall  # no less by rounding
    launch_back = (
        np.maximum(_longer(back_on_gpu, host * h.host_backward) - back_on_gpu, 0.0) + stall
    )
    return LayerTimes(
        tensor, context, experts, launch, launch_back, on_gpu + launch, back_on_gpu + launch_back
    )


def sharded_passes(
    model: Sizes, h: Rates, s: Split, ahead: Numbers, behind: Numbers
) -> tuple[Numbers, Numbers]:
    """Gathering the sharded parameters of a layer, and what is seen of that and of scattering gradients.

    Parameters are gathered before each pass of a layer and gradients scattered after it. Stage 2
    gathers once a step what a pipeline then uses for all micro-batches, and still has it on the way
    back.
    """
    sharded = (s.zero_stage >= 2) & (s.data * s.context > 1)
    if not some(sharded):
        return 0.0, 0.0
    gathered = where(sharded, _gathered(model, h, s), 0.0)
    times = where((s.zero_stage == 2) & (s.pipeline > 1), s.micro_batches, 1)
    seen = seen_beside(gathered, ahead, h.overlap) / times
    seen = seen + seen_beside(gathered * (s.zero_stage - 1), behind, h.overlap)
    return gathered, where(sharded, seen, 0.0)
