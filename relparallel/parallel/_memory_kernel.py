"""The bytes of a pipeline stage, one strategy after the other: the numba kernel behind `memory`.

Models and strategies come as rows of `MODEL` and `CHOICE`, the software as a row of `STORAGE`; the
answer is a row of `BYTES` for each stage, or the largest stage of each strategy, per GPU. n is
tokens of a micro-batch on one rank; t, c, e, p are the degrees, m micro-batches, v chunks per
stage, i the stage, counted from 0.
"""

from typing import Any, Final

import numba
import numpy as np

from relparallel.parallel.schedules import FLIGHTS, TABLE

STORAGE: Final = np.dtype(
    (
        np.record,
        [
            (name, np.float64)
            for name in (
                # see `Precision`
                "parameter",
                "gradient",
                "optimizer",
                "gathered",
                "bucket",
                "setup",
                "logit",
                "loss",
                "product",
                "expert_copies",
                "scratch",
                "sharded_storage",
                "flash",
                "dropout",
                "offload_optimizer",
                "offload_parameters",
                "offload_activations",  # 0 or 1
            )
        ],
    )
)
"""How the software keeps numbers."""

BYTES: Final = ("parameters", "gradients", "optimizer", "activations", "buffers", "setup")
"""Columns of the kernel: the first five are held together, the last one before training starts."""

FLIGHT_RULES: Final = {name: FLIGHTS.index(known.flight) for name, known in TABLE.items()}
"""Schedule: how many micro-batches stages hold; each part of a split backward pass frees half."""

FRAGMENTATION: Final = 0.02
"""Of what is held, lost between the blocks of a caching allocator.

With the reserve of `memory`, no verdict on the BLOOM runs is wrong between 0.001 and 0.10, and none
of the llm-foundry runs, which fill their GPUs, is refused up to 0.05.
"""

_RULES: Final = np.array(list(FLIGHT_RULES.values()))  # in the order of `SCHEDULES`
_INTERLEAVED: Final = FLIGHT_RULES["interleaved_1f1b"]
_EAGER: Final = FLIGHT_RULES["eager_1f1b"]
_PIPEDREAM: Final = FLIGHT_RULES["pipedream"]
_TWO_VERSIONS: Final = FLIGHT_RULES["pipedream_2bw"]
_SPLIT: Final = FLIGHT_RULES["zb_h1"]
_SPLIT_EAGER: Final = FLIGHT_RULES["zb_2p"]
_CHIMERA: Final = FLIGHT_RULES["chimera"]
# from here on, the path through the stages goes down and up again
_FOLDED: Final = FLIGHT_RULES["zb_v"]
_FOLDED_HALF: Final = FLIGHT_RULES["v_half"]
_HALF: Final = 2.0


@numba.njit(cache=True)  # type: ignore[misc]
def flight(rule: Any, p: Any, m: Any, v: Any, i: Any) -> Any:
    """Micro-batches in flight: of the stage (a chunk counts 1/v), its first chunk, its last one."""
    behind = p - 1.0 - i
    if rule == 0:
        return m, m, m
    if rule == _INTERLEAVED and v > 1:
        return min(m, (2 * behind + (v - 1) * p + 1) / v), min(m, 2.0 * p), 1.0
    if rule == _CHIMERA:  # half of the micro-batches come from the other end
        half = max(np.ceil(min(m, 1.0 * p) / 2), 1.0)
        return min(m, min(half, behind + 1) + min(half, i + 1.0)), half, 1.0
    if rule >= _FOLDED:
        held = 1.0 * p
        if rule == _FOLDED_HALF:
            held = p // 2 + 1.5
        elif rule > _FOLDED_HALF:
            held = np.floor(2 * p / 3 + 2) / 2
        return min(m, held), min(m, 2 * held), (2.0 if rule == _FOLDED_HALF else 1.0)
    held = behind + 1
    if rule == _EAGER:
        held = 2 * behind + 1
    elif rule == _SPLIT:
        held = p - i / 2
    elif rule == _SPLIT_EAGER:
        held = 2.0 * p - 1 - i
    held = min(m, held)
    return held, held, (held if rule >= _SPLIT else 1.0)


@numba.njit(cache=True)  # type: ignore[misc]
def _waiting(rule: Any, m: Any, i: Any) -> Any:
    """Micro-batches of a stage that have gone back but wait for the gradients of the weights."""
    if rule == _SPLIT:
        return min(m, i + 1.0)
    if rule == _SPLIT_EAGER:
        return min(m, 2.0 * i + 1)
    if rule == _FOLDED:
        return min(m, i + 0.5)
    return min(m, 2.0 if rule == _FOLDED_HALF else 1.0) if rule > _FOLDED else 0.0


@numba.njit(cache=True)  # type: ignore[misc]
def dealt_places(places: Any, p: Any, v: Any, folded: Any, i: Any) -> Any:
    """Places of a stage where all chunks have as many and the first ones have one more."""
    each, more = places // (p * v), places % (p * v)
    if folded:  # the last chunk lies on the first stage
        return 2 * each + (1 if i < more else 0) + (1 if 2 * p - 1 - i < more else 0)
    return v * each + (more - i + p - 1) // p


@numba.njit(cache=True)  # type: ignore[misc]
def stage_layers(
    layers: Any, p: Any, v: Any, folded: Any, embedding: Any, loss: Any, i: Any
) -> Any:
    """Layers of a stage; embedding and loss take places of the first and the last chunk."""
    taken = (embedding if i == 0 else 0) + (loss if i == (0 if folded else p - 1) else 0)
    return dealt_places(layers + embedding + loss, p, v, folded, i) - taken


@numba.njit(cache=True)  # type: ignore[misc]
def most_layers(layers: Any, p: Any, v: Any, folded: Any, embedding: Any, loss: Any) -> Any:
    """Layers of the fullest stage: the first one, the second or the last."""
    most = stage_layers(layers, p, v, folded, embedding, loss, 0)
    for i in (min(1, p - 1), p - 1):
        most = max(most, stage_layers(layers, p, v, folded, embedding, loss, i))
    return most


@numba.njit(cache=True)  # type: ignore[misc]
def counted_ends(layers: Any, mtp: Any, p: Any, v: Any, folded: Any, said: Any) -> Any:
    """Layers that embedding and loss count as: given, or those that fill chunks and grow no stage.

    Each of the ``mtp`` layers behind the last one counts as a layer and a loss. The loss comes
    first: its stage is the slowest; the embedding only takes memory.
    """
    if p == 1:
        return 0, 0
    if said > 0:
        return said & 1, said >> 1
    free = -layers % (p * v)
    loss = min(free, 1 + 2 * mtp, max(layers // (p * v), 1))
    embedding = min(free - loss, 1)
    most = most_layers(layers, p, v, folded, embedding, loss)
    return (0, 0) if most > most_layers(layers, p, v, folded, 0, 0) else (embedding, loss)


@numba.njit(cache=True)  # type: ignore[misc]
def _layer_parameters(model: Any, s: Any, mixture: Any) -> Any:
    """Parameters of a layer on one rank: common to all data-parallel ranks, and in its experts.

    Matrices are split over t; norms, the biases of what is summed over t, and the router are not.
    Keys and values have at least one head on every rank. ``mixture`` is the share of layers with
    experts.
    """
    t, h, inner = 1.0 * s.tensor, model.hidden, model.matrices - 1
    kept = max(model.kv_heads / t, 1.0)
    router = mixture * h * model.experts if mixture > 0 else 0.0
    more = mixture - model.mixture  # layers with experts than a layer has on average
    block = model.matrices * h * (model.shared * model.expert_ffn - model.ffn)
    common = (model.layer_weights + more * (block + h * model.experts) - router) / t + router
    common += 2 * h * model.head * (kept - model.kv_heads / t) * model.attention
    common += 2 * model.blocks * (1 + model.biases) * h
    split = 1.0 if s.experts_over_tensor else t
    experts = model.expert_weights / (split * s.expert)
    if more != 0:
        experts *= mixture / model.mixture
    if model.biases > 0:
        common += (model.heads / t + 2 * kept) * model.head + h
        common += (model.dense - more) * (inner * model.ffn / t + h)
        common += model.shared * (mixture * (inner * model.expert_ffn / t + h))
        bias = mixture * (inner * model.expert_ffn / split + h)
        experts += model.experts / s.expert * bias if mixture > 0 else 0.0
    return common, experts


@numba.njit(cache=True)  # type: ignore[misc]
def _outside(model: Any, s: Any, folded: Any, i: Any) -> Any:
    """Parameters of a stage outside its layers: embedding, positions, last norm, output layer."""
    table = model.vocabulary * model.hidden / s.tensor
    found = 0.0
    if i == 0:
        found += table + model.positions * model.sequence * model.hidden
    if i == (0 if folded else s.pipeline - 1):
        found += (1 + model.biases) * model.hidden
        if model.tied == 0 or (s.pipeline > 1 and not folded):
            found += table
    return found


@numba.njit(cache=True)  # type: ignore[misc]
def layer_bytes(
    n: Any,
    whole: Any,
    t: Any,
    hidden: Any,
    outer: Any,
    inner: Any,
    heads: Any,
    sequence: Any,
    recompute: Any,
    flash: Any,
    dropout: Any,
) -> Any:
    """Bytes a layer keeps of a micro-batch, its backward pass needs at once, and more for weights.

    A rank sees ``whole`` tokens outside the tensor-parallel part, where a token keeps ``outer``
    bytes besides two masks, and inside ``inner``. What is computed again for the gradients of the
    inputs stays until those of the weights: half of it, as half of what is kept does. The closed
    forms are the same lines on arrays.
    """
    inputs = whole * (2 * dropout * hidden + outer)
    inside = n / t * inner
    core = 0.0
    if flash > 0:
        inside += n / t * 4 * heads  # the logarithm of each row's sum, in fp32
    else:  # softmax; its dropout adds a mask and the product
        core = n / t * heads * sequence * (_HALF + 3 * dropout)
    needed = inputs + inside + core
    if recompute == 2:
        kept = whole * _HALF * hidden
        return kept, needed, (needed - core - kept) / 2
    return (needed if recompute == 0 else needed - core), needed, 0.0


@numba.njit(cache=True)  # type: ignore[misc]
def _layer_activations(model: Any, s: Any, k: Any, mixture: Any) -> Any:
    """`layer_bytes` of a model: inputs of norms and products, Q, K, V, and what feed-forward keeps.

    Inputs of products may be kept in fewer bytes: those behind the norms, of the projection, which
    the gradient of attention needs in half precision too, and behind the activation; those of
    routers are not.
    """
    t, h = 1.0 * s.tensor, model.hidden
    n = s.micro_batch * model.sequence / s.context
    outer = ((2 * _HALF + 2 * k.product) * model.blocks + 2 * (model.blocks - 1) * k.dropout) * h
    block = model.ffn * (model.dense - (mixture - model.mixture))
    # each token is sent to its experts and may be kept as it returns; probabilities in fp32
    if mixture > 0:
        sent = (k.product + _HALF * (k.expert_copies - 1)) * model.active * h
        outer += mixture * (sent + (_HALF - k.product) * h + 4 * model.experts)
        block += mixture * model.expert_ffn * (model.active + model.shared)
    inner = _HALF * (2 * model.heads + 2 * max(model.kv_heads, t)) * model.head * model.attention
    inner += _HALF * model.kept
    if k.product < _HALF:
        inner += k.product * model.heads * model.head * model.attention
    inner += (_HALF * (model.matrices - 1) + k.product) * block
    return layer_bytes(
        n,
        n / t if s.sequence_parallel else n,
        t,
        h,
        outer,
        inner,
        model.heads * model.attention,
        model.sequence,
        s.recompute,
        k.flash,
        k.dropout,
    )


@numba.njit(cache=True)  # type: ignore[misc]
def state_bytes(
    whole: Any,
    shard: Any,
    zero_stage: Any,
    thin: Any,
    copies: Any,
    parameter: Any,
    gradient: Any,
    optimizer: Any,
) -> Any:
    """Bytes of parameters, gradients, optimizer state that a rank holds, of all or of its shard."""
    return (
        parameter * copies * (shard if thin else whole),
        gradient * (shard if zero_stage >= 2 else whole),
        optimizer * (shard if zero_stage >= 1 else whole),
    )


@numba.njit(cache=True)  # type: ignore[misc]
def _stage(model: Any, s: Any, k: Any, rule: Any, layer: Any, i: Any, dealt: Any, out: Any) -> None:
    """Fill `BYTES` of one stage; ``layer`` holds what one layer has and keeps.

    ``dealt`` are the layers of the stage, of the one that Chimera puts beside it, and layers times
    micro-batches in flight, below 0 where the rule of the schedule says it.
    """
    common, experts, kept, needed, again = layer
    p, v, z = s.pipeline, s.virtual_stages, s.zero_stage
    held, first, last = flight(rule, p, 1.0 * s.micro_batches, v, i)
    folded = rule >= _FOLDED
    layers, mirrored, flown = dealt
    rest = _outside(model, s, folded, i)
    if model.mtp > 0 and i == (0 if folded else p - 1):
        layers += model.mtp
        flown += model.mtp * held if flown >= 0 else 0.0
        rest += 2 * model.mtp * model.hidden**2 / s.tensor
    of_layers, copies = layers, 1.0
    if rule == _CHIMERA:  # a second stage of the model, seen from the other end
        layers = (layers + mirrored) / 2
        of_layers = 2 * layers
        rest += _outside(model, s, folded, p - 1 - i)
    elif rule == _PIPEDREAM:  # the weights with which each micro-batch in flight went forward
        copies = held
    elif rule == _TWO_VERSIONS:
        copies = min(held, 2.0)
    whole, expert = of_layers * common + rest, of_layers * experts
    # context-parallel ranks hold the same parameters, and share them too
    ranks = 1.0 * s.shard * s.context
    replicas = max(ranks * (s.tensor if s.experts_over_tensor else 1) / s.expert, 1.0)
    shard = whole / ranks + expert / replicas
    whole += expert
    thin = z == 3 or (z == 2 and k.sharded_storage > 0)
    out[0], out[1], out[2] = state_bytes(
        whole, shard, z, thin, copies, k.parameter, k.gradient, k.optimizer
    )

    n = s.micro_batch * model.sequence / s.context
    outside = n / s.tensor if s.sequence_parallel else n
    flown = held * layers if flown < 0 else flown
    if k.offload_activations > 0:  # one comes or goes while another is at work
        flown = min(flown, 2.0)
    out[3] = flown * kept + (needed - kept if layers > 0 else 0.0)
    if again > 0:
        out[3] += _waiting(rule, 1.0 * s.micro_batches, i) * layers * again
    logits = n * model.vocabulary / s.tensor
    out[4] = 0.0
    if i == 0 or (rule == _CHIMERA and i == p - 1):
        out[3] += first * k.dropout * outside * model.hidden
    if i == (0 if folded else p - 1) or (rule == _CHIMERA and i == 0):
        out[3] += last * (2 * _HALF * outside * model.hidden + k.logit * logits)
        out[4] += k.loss * logits + k.scratch * model.vocabulary * model.hidden / s.tensor

    # a layer's gradients before they are scattered; two layers' parameters gathered
    if z >= 2 and ranks > 1:
        one = common + experts
        out[4] += k.gathered * max(one, rest)
        if z == 3:
            out[4] += k.gathered * (min(of_layers, 2.0) * one + rest)
        elif thin:
            out[4] += k.gathered * whole
    if z > 0 and ranks > 1:
        out[4] += k.gathered * min(k.bucket, whole)
    if layers > 0:  # one expert stands for all, whose weights have the same shape
        out[4] += k.scratch * (common + experts * s.expert / model.experts)
    out[5] = k.setup * whole
    if k.offload_optimizer > 0:
        out[2] = 0.0
    if k.offload_parameters > 0:
        out[0] = 0.0


@numba.njit(cache=True)  # type: ignore[misc]
def layer(model: Any, s: Any, k: Any, mixture: Any) -> Any:
    """Parameters and activations of a layer, or a mean of some, that share of them with experts."""
    common, experts = _layer_parameters(model, s, mixture)
    kept, needed, again = _layer_activations(model, s, k, mixture)
    return common, experts, kept, needed, again


@numba.njit(cache=True)  # type: ignore[misc]
def _dealt(model: Any, s: Any, rule: Any, i: Any) -> Any:
    """Layers of a stage and its mirror where they are dealt out."""
    p, v, folded = np.int64(s.pipeline), np.int64(s.virtual_stages), rule >= _FOLDED
    layers = np.int64(model.layers)
    first, last = counted_ends(
        layers, np.int64(model.mtp), p, v, folded, np.int64(s.ends_as_layers)
    )
    own = stage_layers(layers, p, v, folded, first, last, i)
    mirrored = stage_layers(layers, p, v, folded, first, last, p - 1 - i)
    flown = -1.0
    if rule == _INTERLEAVED and v > 1:  # the last chunk may have fewer layers, and waits shortest
        places = layers + first + last
        each = (
            places // (p * v)
            + (1 if places % (p * v) > p * (v - 1) + i else 0)
            - (last if i == p - 1 else 0)
        )
        more = own - v * each
        if more > 0:
            held, longest, _ = flight(rule, p, 1.0 * s.micro_batches, v, i)
            flown = held * v * each + min(held * v / (v - 1), longest) * more
    return own, mirrored, flown


@numba.njit(cache=True)  # type: ignore[misc]
def _mixture(model: Any, s: Any, rule: Any, layers: Any, before: Any) -> Any:
    """Share of a stage's layers with experts, the first ``before`` layers being on earlier stages.

    Where fewer than half of the layers have none, these come first (DeepSeek, Kimi, GLM); else
    every stage has its share (Llama 4, where kinds alternate), as have both ends of Chimera.
    """
    dense = model.dense * model.layers
    if dense < 0.5 or model.mixture <= 0.5 or rule == _CHIMERA or layers == 0:
        return model.mixture
    share = min(max(dense - before, 0.0), layers / s.virtual_stages)
    share += max(dense - model.layers / s.virtual_stages, 0.0) * layers / model.layers
    return max(1 - share / layers, 0.0)


@numba.njit(cache=True)  # type: ignore[misc]
def stages(model: Any, s: Any, k: Any, own: Any, flown: Any, out: Any) -> None:
    """Bytes of every stage of one strategy, [stages, BYTES].

    ``own`` and ``flown`` [stages] are its layers and those in flight; empty where they are dealt
    out.
    """
    rule, before = _RULES[s.schedule], 0.0
    for i in range(s.pipeline):
        dealt = _dealt(model, s, rule, i)
        if own.size > 0:
            dealt = own[i], own[s.pipeline - 1 - i], flown[i]
        one = layer(model, s, k, _mixture(model, s, rule, dealt[0], before))
        before += dealt[0] / s.virtual_stages
        _stage(model, s, k, rule, one, i, dealt, out[i])


@numba.njit(cache=True)  # type: ignore[misc]
def peaks(models: Any, choices: Any, model: Any, k: Any, out: Any) -> None:
    """Bytes of the largest stage of every strategy.

    From the second stage to the last but one, layers and micro-batches in flight never grow, so the
    second stands for all. Every stage is looked at where a schedule comes from both ends, where
    layers are computed again and their weights wait, and behind one with layers that have no
    experts.
    """
    row = np.empty(len(BYTES))
    for j in range(choices.size):
        s, rule, of = choices[j], _RULES[choices[j].schedule], models[model[j]]
        p, largest, before, last = s.pipeline, 0.0, 0.0, -1.0
        one = layer(of, s, k, of.mixture)
        every = rule == _CHIMERA or (one[4] > 0 and _waiting(rule, 1.0 * p, 0) > 0)
        for i in range(p):
            chosen = every or i < 2 or i == p - 1
            if not chosen and not 0.5 < of.mixture < 1:
                continue
            dealt = _dealt(of, s, rule, i)
            mixture = _mixture(of, s, rule, dealt[0], before)
            before += dealt[0] / s.virtual_stages
            if mixture != last:
                one, last, chosen = layer(of, s, k, mixture), mixture, True
            if chosen:
                _stage(of, s, k, rule, one, i, dealt, row)
                held = row[0] + row[1] + row[2] + row[3] + row[4]
                largest = max(largest, held * (1 + FRAGMENTATION), row[5])
        out[j] = largest
