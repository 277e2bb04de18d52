"""The time of one training step, one strategy after the other: the numba kernel behind `step_time`.

Every number is SI. A *pass* is the work of one layer on one micro-batch, forward or backward.
Models, machines and strategies come as rows of structured arrays (`MODEL`, `MACHINE`, `CHOICE`);
the answer is a row of `PARTS` that sums to the time of the step. n is tokens of a micro-batch on
one rank; t, c, e, d, p are the degrees, m micro-batches, v chunks per stage.
"""

from typing import Any, Final

import numba
import numpy as np

from relparallel.parallel._memory_kernel import counted_ends, most_layers, stage_layers
from relparallel.parallel._transfer_kernel import exchange, gather, in_node, send
from relparallel.parallel.schedules import SCHEDULES, V_SHAPED
from relparallel.parallel.steady_state import bubble_time

MACHINE: Final = np.dtype(
    (
        np.record,
        [
            (name, np.float64)
            for name in (
                # the data sheet
                "peak",
                "weight_peak",
                "memory_bandwidth",
                "processors",
                "node",
                "node_link",
                "network",
                # what calibration finds, see `Calibration`
                "gemm",
                "depth",
                "batched",
                "flash",
                "fused",
                "misaligned",
                "hbm",
                "traffic",
                "link_share",
                "network_share",
                "round",
                "hop",
                "host",
                "host_backward",
                "host_wide",
                "micro",
                "step",
                "overlap",
                "exposed",
                # how much slower than in the default placement on this cluster the groups of a
                # degree are
                "tensor_slow",
                "context_slow",
                "data_slow",
                "pipeline_slow",
                # the software
                "flash_attention",
                "gradient_bytes",
                "scatter",
                "bucketed",
                "elementwise",
                "tensor_overlap",
                "pipeline_overlap",
                "expert_launch",
                "node_dispatch",
                "factor",
            )
        ],
    )
)
"""What a machine and its software can do; weight products may run in a smaller number format."""

CHOICE: Final = np.dtype(
    (
        np.record,
        np.dtype(
            [
                ("tensor", np.int32),
                ("pipeline", np.int32),
                ("data", np.int32),
                ("context", np.int32),
                ("expert", np.int32),
                ("shard", np.int32),
                ("micro_batch", np.int32),
                ("micro_batches", np.int32),
                ("virtual_stages", np.int32),
                ("sequence_parallel", np.int8),
                ("recompute", np.int8),
                ("zero_stage", np.int8),
                ("schedule", np.int8),
                ("ends_as_layers", np.int8),
                ("experts_over_tensor", np.int8),
            ],
            align=True,
        ),
    )
)
"""One strategy, with the micro-batches of a replica."""

PARTS: Final = (
    "compute",
    "recompute",
    "launch",
    "head",
    "tensor",
    "context",
    "expert",
    "pipeline",
    "pipeline_bubble",
    "data",
    "optimizer",
    "overhead",
)
"""What a step is made of, in the order of the kernel's columns."""

_CHIMERA: Final = SCHEDULES.index("chimera")
_FOLDED: Final = tuple(SCHEDULES.index(name) for name in V_SHAPED)
_TILE: Final = 128.0  # rows and columns of the smaller tile of a matrix product
_SMALL_TILE: Final = 0.9  # rate of the smaller tile beside the larger one of 256 x 128
_SOFTMAX_BYTES: Final = 9.0  # per score: softmax read and write, dropout read, write and mask
_STREAM_BYTES: Final = 22.0  # per token and hidden unit: two norms, two dropouts with residual
_GELU_BYTES: Final = 4.0  # per token and unit of the feed-forward block
_LOGIT_BYTES: Final = 14.0  # per token and word: logits in fp32, softmax and its gradient
# per operand of a product in fp8: bf16 read, fp8 written, and once more transposed
_CAST_BYTES: Final = 4.0
_STATE_BYTES: Final = 28.0  # per parameter: Adam reads and writes moments, master copy and gradient


@numba.njit(cache=True)  # type: ignore[misc]
def _longer(x: Any, y: Any) -> Any:
    """Time of two things that overlap: the longer one, rounded off where they are about equal."""
    x4, y4 = x * x * x * x, y * y * y * y
    return np.sqrt(np.sqrt(np.sqrt(x4 * x4 + y4 * y4)))


@numba.njit(cache=True)  # type: ignore[misc]
def _gemm(rows: Any, columns: Any, depth: Any, batch: Any, rate: Any, shallow: Any, h: Any) -> Any:
    """Matrix product: its tiles go over the processors in waves, unless memory is slower."""
    wave = h.processors * _TILE * _TILE
    across = np.ceil(columns / _TILE) * batch
    work = rows * columns * batch
    small = _SMALL_TILE * work / (np.ceil(np.ceil(rows / _TILE) * across / h.processors) * wave)
    large = work / (np.ceil(np.ceil(rows / (2 * _TILE)) * across / h.processors) * 2 * wave)
    compute = 2 * work * depth / (rate * max(small, large)) * (1 + shallow / depth)
    moved = 2 * (rows * columns + (rows + columns) * depth) * batch
    return max(compute, moved / (h.memory_bandwidth * h.hbm))


@numba.njit(cache=True)  # type: ignore[misc]
def _linear(n: Any, columns: Any, depth: Any, batch: Any, peak: Any, h: Any) -> Any:
    """Forward and backward product of a layer with weights [depth, columns]."""
    rate = peak * h.gemm
    forward = _gemm(n, columns, depth, batch, rate, h.depth, h)
    back = _gemm(n, depth, columns, batch, rate, h.depth, h)
    return forward, back + _gemm(depth, columns, n, batch, rate, h.depth, h)


@numba.njit(cache=True)  # type: ignore[misc]
def _attention(model: Any, h: Any, s: Any) -> Any:
    """Forward and backward time of the attention core."""
    hbm = h.memory_bandwidth * h.hbm
    heads = s.micro_batch * model.heads / s.tensor
    length = model.sequence / s.context
    if h.flash_attention > 0:  # the masked half is left out
        share = h.fused if h.flash_attention > 1 else h.flash
        forward = 2 * length * model.span * model.head * heads / (h.peak * share)
        forward += s.micro_batch * length * model.core / s.tensor / (h.peak * share)
        return forward, 2.5 * forward
    # scores of a window are all made, then masked; other mixers have no such path
    heads *= model.attention
    rate = h.peak * h.batched * (1.0 if model.head % 8 == 0 else h.misaligned)
    scores = _gemm(length, model.sequence, model.head, heads, rate, 0.0, h)
    values = _gemm(length, model.head, model.sequence, heads, rate, 0.0, h)
    # gradients of scores, q, k, v
    into_head = _gemm(length, model.sequence, model.head, heads, rate, 0.0, h)
    softmax = heads * length * model.sequence * _SOFTMAX_BYTES * h.traffic / hbm
    return scores + values + softmax, into_head + 3 * values + softmax


@numba.njit(cache=True)  # type: ignore[misc]
def _feed_forward(n: Any, width: Any, matrices: Any, depth: Any, batch: Any, h: Any) -> Any:
    """Forward and backward time of the matrices and the activation function between them."""
    up, up_back = _linear(n, (matrices - 1) * width, depth, batch, h.weight_peak, h)
    down, down_back = _linear(n, depth, width, batch, h.weight_peak, h)
    moved = n * width * batch * (matrices - 1) * _GELU_BYTES * h.traffic * h.elementwise
    between = moved / (h.memory_bandwidth * h.hbm)
    return up + down + between, up_back + down_back + between


@numba.njit(cache=True)  # type: ignore[misc]
def _expert_tensor(s: Any) -> Any:
    """Ranks that split one expert."""
    return 1.0 if s.experts_over_tensor else 1.0 * s.tensor


@numba.njit(cache=True)  # type: ignore[misc]
def _layer(model: Any, h: Any, s: Any) -> Any:
    """Forward and backward time of one layer, of its attention core, of the weights' gradients."""
    n = s.micro_batch * model.sequence / s.context
    t = s.tensor
    qkv, qkv_back = _linear(
        n, (model.heads + 2 * model.kv_heads) * model.head / t, model.hidden, 1.0, h.weight_peak, h
    )
    out, out_back = _linear(n, model.hidden, model.heads * model.head / t, 1.0, h.weight_peak, h)
    around, around_back = (qkv + out) * model.attention, (qkv_back + out_back) * model.attention
    if model.mixer > 0:
        mixer, mixer_back = _linear(n, model.mixer / t, model.hidden, 1.0, h.weight_peak, h)
        around, around_back = around + mixer, around_back + mixer_back
    core, core_back = _attention(model, h, s)
    block, block_back = 0.0, 0.0
    if model.dense > 0:
        block, block_back = _feed_forward(n, model.ffn / t, model.matrices, model.hidden, 1.0, h)
        block, block_back = block * model.dense, block_back * model.dense
    if model.mixture > 0:
        local, split = model.experts / s.expert, _expert_tensor(s)
        mine = n * (split / t)  # tokens that a rank sends to experts
        routed, routed_back = _feed_forward(
            mine * model.active / local,
            model.expert_ffn / split,
            model.matrices,
            model.hidden,
            local,
            h,
        )
        always, always_back = 0.0, 0.0
        if model.shared > 0:
            always, always_back = _feed_forward(
                n, model.shared * model.expert_ffn / t, model.matrices, model.hidden, 1.0, h
            )
        block += model.mixture * (routed + always)
        block_back += model.mixture * (routed_back + always_back)
    split = t if s.sequence_parallel else 1
    bytes_ = n * model.hidden * _STREAM_BYTES / split
    if h.weight_peak > h.peak:
        bytes_ += (
            n
            * (2 * model.hidden / split + (model.heads * model.head + model.ffn) / t)
            * _CAST_BYTES
        )
    stream = model.blocks * bytes_ * h.traffic * h.elementwise / (h.memory_bandwidth * h.hbm)
    products = around_back + block_back  # half of them make gradients of weights
    return around + core + block + stream, products + core_back + stream, core, products / 2


@numba.njit(cache=True)  # type: ignore[misc]
def pass_times(model: Any, h: Any, s: Any) -> Any:
    """Kernels of a layer on a micro-batch: forward, backward, its weight part, forward again."""
    forward, backward, core, weight = _layer(model, h, s)
    return (
        forward,
        backward,
        weight,
        forward if s.recompute == 2 else (core if s.recompute == 1 else 0.0),
    )


@numba.njit(cache=True)  # type: ignore[misc]
def _moved(model: Any, h: Any, s: Any, core: Any) -> Any:
    """Communication of one pass of a layer: tensor, context and experts.

    A pass has two all-reduces of its activations among tensor ranks and two exchanges among
    experts; keys and values go round the context ranks while these attend to what they have. Whole
    experts exchange the tokens of each tensor rank, and leave one all-reduce to the attention where
    no expert is shared.
    """
    n, t, c = s.micro_batch * model.sequence / s.context, s.tensor, s.context
    hidden = 2 * n * model.hidden
    split = _expert_tensor(s)
    alone = model.mixture if split < t and model.shared == 0 else 0.0
    tensor = (4 * model.blocks - 2 * alone) * gather(
        hidden * h.tensor_slow, t, in_node(h, 1.0, t), False, h
    )
    # keys and values of the whole sequence
    sequence = 2 * 2 * n * model.kv_heads * model.head / t * c
    sequence *= model.attention
    context = max(gather(sequence * h.context_slow, c, in_node(h, t, c), True, h) - core, 0.0)
    experts = 0.0
    if model.mixture > 0:
        exchanged = hidden * (split / t) * model.active * h.data_slow
        together = in_node(h, split, s.expert)
        experts = 2 * model.mixture * exchange(exchanged, s.expert, together, model.active, h)
    return tensor, context, experts


@numba.njit(cache=True)  # type: ignore[misc]
def _under(moved: Any, work: Any, share: Any) -> Any:
    """What is seen of a transfer under some work, a share of which goes on seen all the same."""
    return max(moved - work, 0.0) + share * min(moved, work)


@numba.njit(cache=True)  # type: ignore[misc]
def _held(model: Any, s: Any) -> Any:
    """Weights of a rank besides experts, and in experts; from both ends if a schedule has two."""
    t, p, ends = s.tensor, s.pipeline, 2.0 if s.schedule == _CHIMERA else 1.0
    dense = ends * (
        model.layer_weights * model.layers / (t * p) + model.vocabulary * model.hidden / t
    )
    return dense, ends * model.expert_weights * model.layers / (_expert_tensor(s) * p * s.expert)


@numba.njit(cache=True)  # type: ignore[misc]
def _gradients(
    model: Any, h: Any, s: Any, gathered: Any, forward: Any, backward: Any, held: Any
) -> Any:
    """Gradients (and parameters) between replicas at a step's end, as far as it waits for them.

    The first gradients are complete when the last micro-batch has passed a layer backward, or where
    stages have chunks, when the last p micro-batches have passed the last one; the last layer hides
    behind nothing.
    """
    copies = (2.0 if s.schedule == _CHIMERA else 1.0) * s["data"] * s.context
    split = _expert_tensor(s)
    whole = s.tensor / split  # times as many ranks have copies of the experts
    if copies * whole <= 1:
        return 0.0
    dense, expert = _held(model, s)
    dense, expert = dense * h.data_slow, expert * h.data_slow
    # the first and the last layer have nothing to hide behind; copies are kept equal
    if s.zero_stage >= 2:
        sharing = 1.0 * s.shard * s.context
        again = copies / sharing
        together = in_node(h, s.tensor * sharing, again)
        equal = gather(dense * h.gradient_bytes / sharing, again, together, False, h)
        if expert > 0:
            sharing = max(sharing * whole / s.expert, 1.0)
            again = copies * whole / (s.expert * sharing)
            together = in_node(h, split * s.expert * sharing, again)
            equal += gather(expert * h.gradient_bytes / sharing, again, together, False, h)
        return s.zero_stage * gathered + 2 * equal
    # parameters come back where the state is sharded
    again = 2.0 if s.zero_stage == 1 else h.gradient_bytes
    together = in_node(h, s.tensor, copies)
    alone = s.zero_stage == 1
    scattered = gather(dense * h.gradient_bytes, copies, together, alone, h)
    back = gather(dense * again, copies, together, alone, h)
    if expert > 0:
        copies = copies * whole / s.expert
        together = in_node(h, split * s.expert, copies)
        scattered += gather(expert * h.gradient_bytes, copies, together, alone, h)
        back += gather(expert * again, copies, together, alone, h)
    if h.bucketed == 0:
        return scattered + back
    window, last = 1 + (s.pipeline - 1) * (1 - 1 / s.virtual_stages), 1 / held
    if s.zero_stage == 0:  # one all-reduce under the backward pass
        both = scattered + back
        return last * both + _under((1 - last) * both, window * backward, h.exposed)
    seen = _under((1 - last) * scattered, window * backward, h.exposed)
    seen += _under((1 - last) * back, window * forward, h.exposed)
    return last * (scattered + back) + seen


@numba.njit(cache=True)  # type: ignore[misc]
def _update(model: Any, h: Any, s: Any) -> Any:
    """Optimiser on the weights a rank owns; context ranks hold the same ones and share them too."""
    dense, expert = _held(model, s)
    if s.zero_stage > 0:
        copies = 1.0 * s.shard * s.context
        dense, expert = (
            dense / copies,
            expert / max(copies * (s.tensor / _expert_tensor(s)) / s.expert, 1.0),
        )
    return (dense + expert) * _STATE_BYTES * h.traffic / (h.memory_bandwidth * h.hbm)


@numba.njit(cache=True)  # type: ignore[misc]
def _step(model: Any, h: Any, s: Any, out: Any) -> None:
    """Fill the parts of one step."""
    t, c, d, p, v = s.tensor, s.context, s["data"], s.pipeline, s.virtual_stages
    m, repeats = s.micro_batches, 1.0 if s.recompute == 2 else 0.0
    n = s.micro_batch * model.sequence / c
    forward, backward, core, weight = _layer(model, h, s)
    again = forward if s.recompute == 2 else (core if s.recompute == 1 else 0.0)
    tensor, context, experts = _moved(model, h, s, core)
    if h.tensor_overlap > 0:  # in pieces, each under the product that makes or needs it
        tensor = _under(tensor, forward, h.exposed)

    # The host launches kernels while earlier ones run; many ranks in step wait for the slowest of
    # them.
    wide = max(t - 4.0, 0.0) / 4
    sharded = s.zero_stage >= 2 and s["data"] * c > 1
    host = h.host * (1 + h.host_wide * wide * wide)
    host += h.expert_launch * model.mixture * model.experts / s.expert
    on_gpu = forward + tensor + context + experts
    back_on_gpu = backward + tensor + 2 * context + experts
    launch = max(_longer(on_gpu, host) - on_gpu, 0.0)  # no less by rounding
    launch_back = max(_longer(back_on_gpu, host * h.host_backward) - back_on_gpu, 0.0)
    ahead = on_gpu + launch
    behind = back_on_gpu + launch_back + again + repeats * (tensor + context + experts + launch)

    # Sharded parameters are gathered before each pass of a layer and their gradients scattered
    # after it.
    gathered, exposed = 0.0, 0.0
    if sharded:
        own = model.expert_weights / s.expert * (t / _expert_tensor(s))
        rows = 2 * (model.layer_weights + own) / t * h.data_slow
        sharing = 1.0 * s.shard * c  # context ranks hold the same parameters, and share them too
        gathered = gather(rows, sharing, in_node(h, t, sharing), True, h)
        # Stage 2 gathers once a step what a pipeline then uses for all micro-batches, else for
        # every one.
        exposed = _under(gathered, ahead, h.overlap) / (m if s.zero_stage == 2 and p > 1 else 1)
        # stage 2 still has them
        exposed += _under(gathered * (s.zero_stage - 1), behind, h.overlap)

    # Layers are dealt out as `counted_ends` says; the stage of the output layer may have fewer.
    folded = s.schedule in _FOLDED
    layers, stages, chunks = np.int64(model.layers), np.int64(p), np.int64(v)
    mtp, said = np.int64(model.mtp), np.int64(s.ends_as_layers)
    embedding, loss = counted_ends(layers, mtp, stages, chunks, folded, said)
    held = 1.0 * most_layers(layers, stages, chunks, folded, embedding, loss)
    place = 0 if folded else stages - 1
    short = held - stage_layers(layers, stages, chunks, folded, embedding, loss, place)
    lin, lin_back = _linear(n, model.vocabulary / t, model.hidden, 1.0, h.peak, h)
    logits = n * model.vocabulary / t * _LOGIT_BYTES * h.traffic / (h.memory_bandwidth * h.hbm)
    head = lin + lin_back + logits + h.micro
    layer = ahead + behind + exposed
    head += model.mtp * (layer + head)
    middle = held * layer
    last = max(middle, middle - short * layer + head)
    filled = held  # layers of each stage that a lone micro-batch passes while one stage works
    if v > 1 and not folded:  # those of the first chunks, which may have one more
        filled = v * np.ceil((layers + embedding + loss) / (p * v))
    elif layers % stages != 0 and v == 1 and s.schedule != _CHIMERA:  # all but the slowest stage's
        others = layers - held + head / layer if last == middle else layers - held + short
        filled = others / (p - 1)
    transfer = 0.0
    if p > 1:
        apart = h.node if t * c * d * p > h.node else t * c * d
        transfer = send(
            2 * n * model.hidden / (t if h.scatter > 0 else 1) * h.pipeline_slow, apart, h
        )
        if h.pipeline_overlap > 0 and v > 1:
            transfer = _under(transfer, held / v * ahead, h.exposed)

    out[0] = m * held * (forward + backward)
    out[1] = m * held * (again + repeats * launch)
    out[2] = m * held * (launch + launch_back)
    out[3] = m * (last - middle)
    out[4] = m * held * tensor * (2 + repeats)
    out[5] = m * held * context * (3 + repeats)
    out[6] = m * held * experts * (2 + repeats)
    out[7] = m * 2 * v * transfer
    out[8] = (p - 1) * 2 * transfer + bubble_time(
        s.schedule, p, m, v, filled * ahead, filled * (behind + exposed - weight), filled * weight
    )
    out[9] = m * held * exposed + _gradients(
        model, h, s, gathered, held * (on_gpu + launch), held * (back_on_gpu + launch_back), held
    )
    out[10] = _update(model, h, s)
    out[11] = h.step
    for i in range(len(out)):
        out[i] *= h.factor


@numba.njit(cache=True)  # type: ignore[misc]
def run(models: Any, machines: Any, choices: Any, model: Any, machine: Any, out: Any) -> None:
    """Parts of each strategy's step, [rows, parts]; ``model`` and ``machine`` name rows to use."""
    for i in range(choices.size):
        _step(models[model[i]], machines[machine[i]], choices[i], out[i])
