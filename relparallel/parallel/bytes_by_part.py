"""The bytes of a pipeline stage: the formula behind `memory`.

A model (`Sizes`), a strategy (`Split`) and the storage of its numbers (`Storage`) are numbers or
columns; so are the bytes of a stage, per GPU. n is tokens of a micro-batch on one rank; t, c, e, p
are the degrees, m micro-batches, v chunks per stage, i the stage, counted from 0.
"""

from typing import Final, NamedTuple

import numpy as np

from relparallel.parallel.quantities import (
    Numbers,
    Sizes,
    Split,
    Storage,
    by_kind,
    folded,
    part,
    some,
    taken,
    where,
)
from relparallel.parallel.stages import (
    CHIMERA,
    INTERLEAVED,
    PIPEDREAM,
    RULES,
    TWO_VERSIONS,
    Flight,
    counted_ends,
    flight,
    stage_layers,
    waiting,
)


class StageBytes(NamedTuple):
    """Bytes of a stage: the first five are held together, the last one before training starts."""

    parameters: Numbers
    gradients: Numbers
    optimizer: Numbers
    activations: Numbers
    buffers: Numbers
    setup: Numbers

    @property
    def peak(self) -> Numbers:
        """Bytes that must be there, with what is lost between the blocks of the allocator."""
        held = self.parameters + self.gradients + self.optimizer + self.activations + self.buffers
        return np.maximum(held * (1 + FRAGMENTATION), self.setup)


FRAGMENTATION: Final = 0.02
"""Of what is held, lost between the blocks of a caching allocator.

With the reserve of `memory`, no verdict on the BLOOM runs is wrong between 0.001 and 0.10, and none
of the llm-foundry runs, which fill their GPUs, is refused up to 0.05.
"""

_HALF: Final = 2.0


def _layer_parameters(model: Sizes, s: Split, mixture: Numbers) -> tuple[Numbers, Numbers]:
    """Parameters of a layer on one rank: common to all data-parallel ranks, and in its experts.

    Matrices are split over t; norms, the biases of what is summed over t, and the router are not.
    Keys and values have at least one head on every rank. ``mixture`` is the share of layers with
    experts.
    """
    t, h, inner = 1.0 * s.tensor, model.hidden, model.matrices - 1
    kept = np.maximum(model.kv_heads / t, 1.0)
    router = where(mixture > 0, mixture * h * model.experts, 0.0)
    more = mixture - model.mixture  # layers with experts than a layer has on average
    block = model.matrices * h * (model.shared * model.expert_ffn - model.ffn)
    common = (model.layer_weights + more * (block + h * model.experts) - router) / t + router
    common = common + 2 * h * model.head * (kept - model.kv_heads / t) * model.attention
    common = common + 2 * model.blocks * (1 + model.biases) * h
    experts = model.expert_weights / (s.expert_tensor * s.expert)
    if some(more != 0):
        experts = where(more != 0, experts * (mixture / model.mixture), experts)
    if model.biases > 0:
        common = common + ((model.heads / t + 2 * kept) * model.head + h)
        common = common + (model.dense - more) * (inner * model.ffn / t + h)
        common = common + model.shared * (mixture * (inner * model.expert_ffn / t + h))
        bias = mixture * (inner * model.expert_ffn / s.expert_tensor + h)
        experts = experts + where(mixture > 0, model.experts / s.expert * bias, 0.0)
    return common, experts


def _outside(model: Sizes, s: Split, i: Numbers) -> Numbers:
    """Parameters of a stage outside its layers: embedding, positions, last norm, output layer."""
    table = model.vocabulary * model.hidden / s.tensor
    begin = table + model.positions * model.sequence * model.hidden
    down_and_up = folded(s.schedule)
    untied = (model.tied == 0) | ((s.pipeline > 1) & np.logical_not(down_and_up))
    found = where(i == 0, begin, 0.0)
    end = i == where(down_and_up, 0, s.pipeline - 1)
    return where(end, found + (1 + model.biases) * model.hidden + where(untied, table, 0.0), found)


def layer_bytes(
    n: Numbers,
    whole: Numbers,
    t: Numbers,
    hidden: Numbers,
    outer: Numbers,
    inner: Numbers,
    chosen: Numbers,
    parts: tuple[Numbers, ...],
    heads: Numbers,
    sequence: Numbers,
    recompute: Numbers,
    flash: bool,
    dropout: bool,
) -> tuple[Numbers, Numbers, Numbers]:
    """Bytes that a layer keeps of a micro-batch, that its backward pass needs at once, more for weights.

    A rank sees ``whole`` tokens outside the tensor-parallel part, where a token keeps ``outer``
    bytes besides two masks, and inside ``inner``, of which ``chosen`` are left where every second
    product is computed again; ``parts`` are bytes of the rank that the kinds behind that leave out.
    What is computed again for the gradients of the inputs stays until those of the weights: half of
    it, as half of what is kept does.
    """
    inputs = whole * (2 * dropout * hidden + outer)
    inside, core = n / t * inner, 0.0
    kept = whole * _HALF * hidden
    some_kept = kept + n / t * chosen
    if flash:  # the logarithm of each row's sum, in fp32
        inside, some_kept = inside + n / t * 4 * heads, some_kept + n / t * 4 * heads
    else:  # softmax; its dropout adds a mask and the product
        core = n / t * heads * sequence * (_HALF + 3 * dropout)
    needed = inputs + inside + core
    less = (needed - part for part in parts)
    held = by_kind(recompute, needed, needed - core, kept, some_kept, *less)
    again = (needed - core - held) / 2
    return held, needed, by_kind(recompute, 0.0, 0.0, again, again, *(part / 2 for part in parts))


def _layer_activations(
    model: Sizes, s: Split, k: Storage, mixture: Numbers
) -> tuple[Numbers, Numbers, Numbers]:
    """`layer_bytes` of a model: inputs of norms and products, Q, K, V, and what feed-forward keeps.

    Inputs of products may be kept in fewer bytes: those behind the norms, of the projection, which
    the gradient of attention needs in half precision too, and behind the activation; those of
    routers are not. Feed-forward weights without gradients (adapters on attention alone) need no
    inputs, and that of their activation function is kept as these are.
    """
    t, h = 1.0 * s.tensor, model.hidden
    n = s.micro_batch * model.sequence / s.context
    fed, acted, routed = k.product, _HALF, _HALF - k.product
    if not (k.gradient or k.optimizer):
        fed, acted, routed = 0.0, k.product, 0.0
    outer = (2 * _HALF + k.product + fed) * model.blocks + 2 * (model.blocks - 1) * k.dropout
    outer = outer * h
    block = model.ffn * (model.dense - (mixture - model.mixture))
    whole = where(s.sequence_parallel > 0, n / t, n)
    mlp = n / t * (acted * (model.matrices - 1) + fed) * block
    norms = whole * ((k.product + fed) * model.blocks + mixture * routed) * h
    # tokens go to their experts and may be kept as they return; probabilities fp32
    if some(mixture > 0):
        sent = (fed + _HALF * (k.expert_copies - 1)) * model.active * h
        outer = outer + mixture * (sent + routed * h + 4 * model.experts)
        block = block + mixture * model.expert_ffn * (model.active + model.shared)
    inner = (
        _HALF * (2 * model.heads + 2 * np.maximum(model.kv_heads, t)) * model.head * model.attention
    )
    inner = inner + _HALF * model.kept
    # without keys, the other half of a gated block, and what is between products
    chosen = (2 * model.heads + np.maximum(model.kv_heads, t)) * model.head * model.attention
    chosen = _HALF * (chosen + model.kept + block)
    if k.product < _HALF:
        inner = inner + k.product * model.heads * model.head * model.attention
    inner = inner + (acted * (model.matrices - 1) + fed) * block
    return layer_bytes(
        n,
        whole,
        t,
        h,
        outer,
        inner,
        chosen,
        (norms + n / t * fed * block, mlp),
        model.heads * model.attention,
        model.sequence,
        s.recompute,
        k.flash,
        k.dropout,
    )


def state_bytes(
    whole: Numbers,
    shard: Numbers,
    zero_stage: Numbers,
    thin: Numbers,
    copies: Numbers,
    parameter: Numbers,
    gradient: Numbers,
    optimizer: Numbers,
) -> tuple[Numbers, Numbers, Numbers]:
    """Bytes of parameters, gradients, optimizer state that a rank holds, of all or of its shard."""
    return (
        parameter * copies * where(thin, shard, whole),
        gradient * where(zero_stage >= 2, shard, whole),
        optimizer * where(zero_stage >= 1, shard, whole),
    )


class Dealt(NamedTuple):
    """Layers of a stage, of the one that Chimera puts beside it, and times micro-batches in flight.

    The last is below 0 where the rule of the schedule says it; ``before`` are those of earlier
    stages.
    """

    own: Numbers
    mirrored: Numbers
    flown: Numbers
    before: Numbers = 0.0


class Layer(NamedTuple):
    """Parameters of a layer, common and in experts; bytes that it keeps, needs, and keeps for weights."""

    common: Numbers
    experts: Numbers
    kept: Numbers
    needed: Numbers
    again: Numbers


def mean_layer(model: Sizes, s: Split, k: Storage, mixture: Numbers) -> Layer:
    """The mean of some layers, that share of them with experts."""
    return Layer(*_layer_parameters(model, s, mixture), *_layer_activations(model, s, k, mixture))


def _mixture(model: Sizes, s: Split, rule: Numbers, dealt: Dealt) -> Numbers:
    """Share of a stage's layers that have experts.

    Where fewer than half of the layers have none, these come first (DeepSeek, Kimi, GLM); else
    every stage has its share (Llama 4, where kinds alternate), as have both ends of Chimera.
    """
    dense, layers = model.dense * model.layers, dealt.own
    if dense < 0.5 or model.mixture <= 0.5:
        return model.mixture
    share = np.minimum(np.maximum(dense - dealt.before, 0.0), layers / s.virtual_stages)
    beyond = np.maximum(dense - model.layers / s.virtual_stages, 0.0)
    share = share + beyond * layers / model.layers
    own = np.maximum(1 - share / np.maximum(layers, 1e-9), 0.0)
    return where((rule == CHIMERA) | (layers == 0), model.mixture, own)


def _ends(model: Sizes, s: Split) -> tuple[Numbers, Numbers]:
    """Layers that embedding and loss count as."""
    p, v, down_and_up = s.pipeline, s.virtual_stages, folded(s.schedule)
    return counted_ends(model.layers, model.mtp, p, v, down_and_up, s.ends_as_layers)


def _dealt(model: Sizes, s: Split, ends: tuple[Numbers, Numbers], i: Numbers) -> Dealt:
    """Layers of stages where they are dealt out, without those before them."""
    rule, p, v = RULES[s.schedule], s.pipeline, s.virtual_stages
    layers, down_and_up = model.layers, folded(s.schedule)
    own = stage_layers(layers, p, v, down_and_up, ends, i)
    mirrored = stage_layers(layers, p, v, down_and_up, ends, p - 1 - i)
    flown, chunks = -1.0, (rule == INTERLEAVED) & (v > 1)
    if some(chunks):  # the last chunk may have fewer layers, and waits shortest
        each = (layers + ends[0] + ends[1]) // (p * v)
        rest = layers + ends[0] + ends[1] - each * (p * v)
        each = each + (rest > p * (v - 1) + i) - where(i == p - 1, ends[1], 0)
        more = own - v * each
        held, longest, _ = flight(rule, p, 1.0 * s.micro_batches, v, i)
        late = np.minimum(held * v / np.maximum(v - 1, 1), longest) * more
        flown = where(chunks & (more > 0), held * v * each + late, -1.0)
    return Dealt(own, mirrored, flown)


class _Stage(NamedTuple):
    """Layers of a stage, those of both ends, layers times micro-batches in flight, and what is outside.

    ``outside`` are parameters besides those of layers; ``begins`` and ``ends``: whether it has the
    first and the last chunk; ``flight`` are its micro-batches.
    """

    i: Numbers
    layers: Numbers
    of_layers: Numbers
    flown: Numbers
    outside: Numbers
    begins: Numbers
    ends: Numbers
    flight: Flight


def _stage(model: Sizes, s: Split, i: Numbers, dealt: Dealt) -> _Stage:
    """A stage with the layers that were dealt to it, and those of multi-token prediction."""
    rule, p = RULES[s.schedule], s.pipeline
    found = flight(rule, p, 1.0 * s.micro_batches, s.virtual_stages, i)
    chimera, end = rule == CHIMERA, i == where(folded(s.schedule), 0, p - 1)
    layers, flown, outside = dealt.own, dealt.flown, _outside(model, s, i)
    if model.mtp > 0:
        layers = layers + where(end, model.mtp, 0)
        flown = flown + where(end & (flown >= 0), model.mtp * found.held, 0.0)
        outside = outside + where(end, 2 * model.mtp * model.hidden**2 / s.tensor, 0.0)
    of_layers = layers
    if some(chimera):  # a second stage of the model, seen from the other end
        layers = where(chimera, (layers + dealt.mirrored) / 2, layers)
        of_layers = where(chimera, 2 * layers, layers)
        outside = outside + where(chimera, _outside(model, s, p - 1 - i), 0.0)
    begins, ends = (i == 0) | (chimera & (i == p - 1)), end | (chimera & (i == 0))
    flown = where(flown < 0, found.held * layers, flown)
    return _Stage(i, layers, of_layers, flown, outside, begins, ends, found)


def _activations(model: Sizes, s: Split, k: Storage, one: Layer, stage: _Stage) -> Numbers:
    """Bytes kept for the backward passes, and what one layer computes again."""
    n = s.micro_batch * model.sequence / s.context
    outside = where(s.sequence_parallel > 0, n / s.tensor, n)
    flown = stage.flown
    if k.offload_activations:  # one comes or goes while another is at work
        flown = np.minimum(flown, 2.0)
    found = flown * one.kept + where(stage.layers > 0, one.needed - one.kept, 0.0)
    if some(one.again > 0):
        held = waiting(RULES[s.schedule], 1.0 * s.micro_batches, stage.i)
        found = found + held * stage.layers * one.again
    begin = stage.flight.first * k.dropout * outside * model.hidden
    found = found + where(stage.begins, begin, 0.0)
    logits = k.logit * (n * model.vocabulary / s.tensor)
    end = stage.flight.last * (2 * _HALF * outside * model.hidden + logits)
    return found + where(stage.ends, end, 0.0)


def _buffers(
    model: Sizes, s: Split, k: Storage, one: Layer, stage: _Stage, whole: Numbers, thin: Numbers
) -> Numbers:
    """Bytes held for a moment."""
    logits, z = (
        s.micro_batch * model.sequence / s.context * model.vocabulary / s.tensor,
        s.zero_stage,
    )
    loss = k.loss * logits + k.scratch * model.vocabulary * model.hidden / s.tensor
    found, shared = where(stage.ends, loss, 0.0), s.shard * s.context > 1
    # a layer's gradients before they are scattered; parameters gathered
    if some((z >= 2) & shared):
        layer = one.common + one.experts
        most = k.gathered * np.maximum(layer, stage.outside)
        two = k.gathered * (np.minimum(stage.of_layers, 2.0) * layer + stage.outside)
        again = where(z == 3, two, where(thin, k.gathered * whole, 0.0))
        found = where((z >= 2) & shared, found + most + again, found)
    if some((z > 0) & shared):
        found = found + where((z > 0) & shared, k.gathered * np.minimum(k.bucket, whole), 0.0)
    # one expert stands for all, whose weights have the same shape
    scratch = k.scratch * (one.common + one.experts * s.expert / model.experts)
    return found + where(stage.layers > 0, scratch, 0.0)


def stage_bytes(model: Sizes, s: Split, k: Storage, i: Numbers, dealt: Dealt) -> StageBytes:
    """Bytes of a stage with the layers that were dealt to it."""
    rule, z, stage = RULES[s.schedule], s.zero_stage, _stage(model, s, i, dealt)
    one = mean_layer(model, s, k, _mixture(model, s, rule, dealt))
    # the weights with which each micro-batch in flight went forward
    copies = where(rule == TWO_VERSIONS, np.minimum(stage.flight.held, 2.0), 1.0)
    copies = where(rule == PIPEDREAM, stage.flight.held, copies)
    whole, expert = stage.of_layers * one.common + stage.outside, stage.of_layers * one.experts
    # context-parallel ranks hold the same parameters, and share them
    ranks = 1.0 * s.shard * s.context
    replicas = np.maximum(ranks * (s.tensor / s.expert_tensor) / s.expert, 1.0)
    shard = whole / ranks + expert / replicas
    whole = whole + expert
    thin = (z == 3) | ((z == 2) & k.sharded_storage)
    parameters, gradients, optimizer = state_bytes(
        whole, shard, z, thin, copies, k.parameter, k.gradient, k.optimizer
    )
    return StageBytes(
        0.0 * parameters if k.offload_parameters else parameters,
        gradients,
        0.0 * optimizer if k.offload_optimizer else optimizer,
        _activations(model, s, k, one, stage),
        _buffers(model, s, k, one, stage, whole, thin),
        k.setup * whole,
    )


def stages(model: Sizes, s: Split, k: Storage, dealt: Dealt | None = None) -> StageBytes:
    """Bytes of every stage of strategies with one pipeline degree, [stages, ...]; layers may be given."""
    i = np.arange(s.pipeline).reshape(-1, *[1] * max(np.ndim(column) for column in s))
    dealt = _dealt(model, s, _ends(model, s), i) if dealt is None else dealt
    before = np.cumsum(dealt.own / s.virtual_stages, axis=0)
    before = np.concatenate([np.zeros_like(before[:1]), before[:-1]])
    return stage_bytes(model, s, k, i, dealt._replace(before=before))


def peaks(model: Sizes, s: Split, k: Storage) -> Numbers:
    """Bytes of the largest stage.

    From the second stage to the last but one, layers and micro-batches in flight never grow, so the
    second stands for all, and behind layers without experts the first stage that has none of these.
    Every stage is looked at where a schedule comes from both ends, and where layers are computed
    again and their weights wait.
    """
    p, rule, ends = s.pipeline, RULES[s.schedule], _ends(model, s)
    found: Numbers = 0.0
    before: Numbers = 0.0
    plain = model.dense * model.layers if 0.5 < model.mixture < 1 else 0.0
    first = 2 if plain < 0.5 else 4 + int(plain)
    behind: Numbers = 0.0
    for i in range(min(first, int(np.max(p, initial=1)))):
        dealt = _dealt(model, s, ends, i)._replace(before=before)
        # behind a second stage without plain layers only the last one may need more
        asked = (i < p) & ((i < 2) | (behind < plain) | (i == p - 1))
        if np.all(asked):
            found = np.maximum(found, stage_bytes(model, s, k, i, dealt).peak)
        elif some(asked):
            rows = part(asked, found.shape)
            here = stage_bytes(model, taken(s, rows), k, i, taken(dealt, rows)).peak
            found[rows] = np.maximum(found[rows], here)
        behind, before = before, before + dealt.own / s.virtual_stages
    if some(p > first):
        dealt = _dealt(model, s, ends, p - 1)._replace(before=model.layers)
        here = stage_bytes(model, s, k, p - 1, dealt).peak
        found = np.maximum(found, where(p > first, here, 0.0))
    waits = waiting(rule, 1.0 * p, 0) > 0
    for every in (rule == CHIMERA, (s.recompute >= 2) & waits):
        asked = np.where(every, p, 0)
        for degree in np.unique(asked[asked > 0]).tolist():
            rows = part(asked == degree, found.shape)
            most = stages(model, taken(s, rows)._replace(pipeline=degree), k).peak.max(axis=0)
            found[rows] = np.maximum(found[rows], most)
    return found
