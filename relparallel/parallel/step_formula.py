"""The time of one training step, part by part: the formula behind `step_time`.

Every number is SI. A *pass* is the work of one layer on one micro-batch, forward or backward. A
model (`Sizes`), a machine (`Rates`, ``h``: hardware) and a strategy (`Split`, ``s``) are numbers or
columns; so are the parts of the step. They are letters since nearly every factor has one. t, c, p
are the degrees, m micro-batches, v chunks per stage; tokens of a micro-batch on one rank, n in
`layer_times`, are ``s.micro_batch * model.sequence / s.context``.
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from relparallel.parallel.layer_times import (
    gather,
    in_node,
    layer_on_clock,
    output_layer,
    passes,
    seen_beside,
    send,
    sharded_passes,
)
from relparallel.parallel.quantities import (
    CHIMERA,
    Numbers,
    Rates,
    Sizes,
    Split,
    by_kind,
    folded,
    some,
    where,
)
from relparallel.parallel.stages import counted_ends, most_layers, stage_layers
from relparallel.parallel.steady_state import bubble_time

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
"""What a step is made of."""

_STATE_BYTES: Final = 28.0  # per parameter: Adam reads and writes moments, master copy and gradient


def _held(model: Sizes, s: Split) -> tuple[Numbers, Numbers]:
    """Weights of a rank besides experts, and in experts; from both ends where a schedule has two."""
    t, p, ends = s.tensor, s.pipeline, where(s.schedule == CHIMERA, 2.0, 1.0)
    dense = ends * (
        model.layer_weights * model.layers / (t * p) + model.vocabulary * model.hidden / t
    )
    return dense, ends * model.expert_weights * model.layers / (s.expert_tensor * p * s.expert)


def _equal_copies(model: Sizes, h: Rates, s: Split, copies: Numbers, whole: Numbers) -> Numbers:
    """Half of what keeps copies of sharded weights equal, their gradients among those who hold them."""
    dense, expert = (held * h.data_slow for held in _held(model, s))
    sharing = s.shard * s.context
    again = copies / sharing
    together = in_node(h, s.tensor * sharing, again)
    equal = gather(dense * h.gradient_bytes / sharing, again, together, False, h)
    if some(expert > 0):
        sharing = np.maximum(sharing * whole / s.expert, 1.0)
        again = copies * whole / (s.expert * sharing)
        together = in_node(h, s.expert_tensor * s.expert * sharing, again)
        more = gather(expert * h.gradient_bytes / sharing, again, together, False, h)
        equal = equal + where(expert > 0, more, 0.0)
    return equal


def _scattered(
    model: Sizes, h: Rates, s: Split, copies: Numbers, whole: Numbers
) -> tuple[Numbers, Numbers]:
    """Gradients to those who own the weights, and back; parameters back where the state is sharded."""
    dense, expert = (held * h.data_slow for held in _held(model, s))
    alone = s.zero_stage == 1
    again = where(alone, 2.0, h.gradient_bytes)
    together = in_node(h, s.tensor, copies)
    scattered = gather(dense * h.gradient_bytes, copies, together, alone, h)
    back = gather(dense * again, copies, together, alone, h)
    if some(expert > 0):
        others = copies * whole / s.expert
        together = in_node(h, s.expert_tensor * s.expert, others)
        more = gather(expert * h.gradient_bytes, others, together, alone, h)
        scattered = scattered + where(expert > 0, more, 0.0)
        back = back + where(expert > 0, gather(expert * again, others, together, alone, h), 0.0)
    return scattered, back


def _gradients(
    model: Sizes,
    h: Rates,
    s: Split,
    gathered: Numbers,
    forward: Numbers,
    backward: Numbers,
    held: Numbers,
) -> Numbers:
    """Gradients (and parameters) between replicas at a step's end, as far as it waits for them.

    The first gradients are complete when the last micro-batch has passed a layer backward, or where
    stages have chunks, when the last p micro-batches have passed the last one; the last layer hides
    behind nothing.
    """
    copies = where(s.schedule == CHIMERA, 2.0, 1.0) * s.data * s.context
    whole = s.tensor / s.expert_tensor  # times as many ranks have copies of the experts
    if not some(copies * whole > 1):
        return 0.0
    found = 0.0
    window, last = 1 + (s.pipeline - 1) * (1 - 1 / s.virtual_stages), 1 / held
    behind, ahead = window * backward, window * forward
    if some(s.zero_stage < 2):
        scattered, back = _scattered(model, h, s, copies, whole)
        both = scattered + back
        found = both
        if some(h.bucketed > 0):
            hidden = 0.0
            if some(s.zero_stage == 0):  # one all-reduce under the backward pass
                hidden = last * both + seen_beside((1 - last) * both, behind, h.late)
            if some(s.zero_stage == 1):
                seen = seen_beside((1 - last) * scattered, behind, h.late)
                seen = seen + seen_beside((1 - last) * back, ahead, h.late)
                hidden = where(s.zero_stage == 0, hidden, last * both + seen)
            found = where(h.bucketed == 0, both, hidden)
    if some(s.zero_stage >= 2):  # first and last layer hide behind nothing; copies are kept equal
        equal = 2 * _equal_copies(model, h, s, copies, whole)
        equal = last * equal + seen_beside((1 - last) * equal, behind, h.late)
        found = where(s.zero_stage >= 2, s.zero_stage * gathered + equal, found)
    return where((copies * whole <= 1) | (h.adapters > 0), 0.0, found)


def _update(model: Sizes, h: Rates, s: Split) -> Numbers:
    """Optimiser on the weights a rank owns; context ranks hold the same ones and share them too."""
    dense, expert = _held(model, s)
    copies = s.shard * s.context
    own = np.maximum(copies * (s.tensor / s.expert_tensor) / s.expert, 1.0)
    owned = where(s.zero_stage > 0, dense / copies + expert / own, dense + expert)
    moved = owned * _STATE_BYTES * h.traffic / (h.memory_bandwidth * h.hbm)
    return where(h.adapters > 0, 0.0, moved)


def _besides(h: Rates, s: Split) -> Numbers:
    """What a step costs besides its micro-batches: the longest of random waits grows as the logarithm."""
    return h.step * np.log(1.0 + s.tensor * s.context * s.data * s.pipeline)


def _stages(model: Sizes, s: Split) -> tuple[Numbers, Numbers, Numbers]:
    """Layers of the fullest stage, how many fewer the last one has, and those that fill the pipeline.

    They are dealt out as `counted_ends` says; the stage of the output layer may have fewer.

    Of each stage a lone micro-batch passes ``filled`` layers while one stage works: those of the
    first chunks, which may have one more.
    """
    p, v, layers, down_and_up = s.pipeline, s.virtual_stages, model.layers, folded(s.schedule)
    ends = counted_ends(layers, model.mtp, p, v, down_and_up, s.ends_as_layers)
    held = 1.0 * most_layers(layers, p, v, down_and_up, ends)
    last = stage_layers(layers, p, v, down_and_up, ends, where(down_and_up, 0, p - 1))
    chunks = v * np.ceil((layers + ends[0] + ends[1]) / (p * v))
    return held, held - last, where((v > 1) & np.logical_not(down_and_up), chunks, held)


def _transfer(model: Sizes, h: Rates, s: Split, under: Numbers) -> Numbers:
    """What is seen of the transfer of a micro-batch to the next stage, ``under`` the passes of a chunk."""
    if not some(s.pipeline > 1):
        return 0.0
    t, c = s.tensor, s.context
    apart = where(t * c * s.data * s.pipeline > h.node, h.node, t * c * s.data)
    size = 2 * (s.micro_batch * model.sequence / c) * model.hidden
    moved = send(size / where(h.scatter > 0, t, 1) * h.pipeline_slow, apart, h)
    hidden = (h.pipeline_overlap > 0) & (s.virtual_stages > 1)
    if some(hidden):
        moved = where(hidden, seen_beside(moved, under, h.exposed), moved)
    return where(s.pipeline > 1, moved, 0.0)


def step_parts(model: Sizes, h: Rates, s: Split) -> tuple[Numbers, ...]:
    """Seconds of every one of `PARTS`."""
    p, v, m = s.pipeline, s.virtual_stages, s.micro_batches
    one, repeats = passes(model, h, s), by_kind(s.recompute, 0.0, 0.0, 1.0, 0.5)
    inside = by_kind(s.recompute, 0.0, 0.0, 1.0, 0.5, 0.0, 0.5 * model.dense)
    layer, (held, short, filled) = layer_on_clock(model, h, s, one), _stages(model, s)
    again, ahead = one.again(s.recompute), layer.ahead
    repeated = inside * (layer.tensor + layer.launch) + repeats * (layer.context + layer.experts)
    behind = layer.behind + again + repeated
    gathered, exposed = sharded_passes(model, h, s, ahead, behind)

    whole = ahead + behind + exposed
    head = output_layer(model, h, s)
    head = head + model.mtp * (whole + head)
    middle = held * whole
    last = np.maximum(middle, middle - short * whole + head)
    uneven = (model.layers % p != 0) & (v == 1) & (s.schedule != CHIMERA)
    if some(uneven):  # a lone micro-batch passes all layers but the slowest stage's
        others = model.layers - held + where(last == middle, head / whole, short)
        filled = where(uneven, others / np.maximum(p - 1, 1), filled)
    transfer = _transfer(model, h, s, held / v * ahead)
    inputs = filled * (behind + exposed - one.weight)
    waiting = bubble_time(s.schedule, p, m, v, filled * ahead, inputs, filled * one.weight)
    own = held * layer.ahead, held * layer.behind
    parts = (
        m * held * (one.forward + one.backward),
        m * held * (again + inside * layer.launch),
        m * held * (layer.launch + layer.launch_back),
        m * (last - middle),
        m * held * layer.tensor * (2 + inside),
        m * held * layer.context * (3 + repeats),
        m * held * layer.experts * (2 + repeats),
        m * 2 * v * transfer,
        (p - 1) * 2 * transfer + waiting,
        m * held * exposed + _gradients(model, h, s, gathered, *own, held),
        _update(model, h, s),
        _besides(h, s),
    )
    return tuple(part * h.factor for part in parts)


def total(parts: tuple[Numbers, ...]) -> Numbers:
    """Sum of the parts, rounded once: what an addition loses is carried along."""
    found, lost = 0.0, 0.0
    for part in parts:
        if isinstance(part, float) and part == 0:
            continue
        more = found + part
        rest = more - found
        lost = lost + ((found - (more - rest)) + (part - rest))
        found = more
    return found + lost


def as_rows(parts: tuple[Numbers, ...]) -> NDArray[np.float64]:
    """Parts of each strategy, [n, parts]."""
    return np.stack(np.broadcast_arrays(*parts), axis=-1)
