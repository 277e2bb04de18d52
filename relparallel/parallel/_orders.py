"""The rules of `schedules`: where every pass of a pipeline runs, and when its turn comes.

A rule makes an `Order` from p stages, m micro-batches, v chunks per stage and what a stage may hold. Its
arrays have the axes (kind, micro-batch, chunk of the model): kind 0 is the forward pass, 1 the backward pass
(of the inputs, where the weights have their own), 2 the backward pass of the weights. A stage runs its passes
by rising turn.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

Turns = NDArray[np.float64]
Whole = NDArray[np.int64]


class Order(NamedTuple):
    """Stage and part of every (micro-batch, chunk), and the turn of every (kind, micro-batch, chunk)."""

    stage: Whole
    part: Whole
    turn: Turns


Rule = Callable[[int, int, int, Turns], Order]


def _alternating(m: int, v: int, warm_up: Whole, deferred: Whole | None = None) -> Order:
    """Warm-up forward passes, then one forward and one backward in turn, then the backward passes left.

    The weights of a micro-batch wait for ``deferred`` more backward passes of their stage.
    """
    p = warm_up.size
    item, chunk = np.indices((m, p * v))
    stage, part = chunk % p, chunk // p
    rounds = item // p * p * v + item % p if v > 1 else item
    forward, backward = rounds + part * p, rounds + (v - 1 - part) * p
    turns = [2.0 * forward, 2.0 * (backward + warm_up[stage]) + 1]
    if deferred is not None:
        turns.append(2.0 * (backward + warm_up[stage] + deferred[stage]) + 1.5)
    return Order(stage, part, np.stack(turns))


def _one_forward_one_backward(ahead: int, *, split: bool = False) -> Rule:
    """1F1B that starts ``ahead`` forward passes for every stage behind, as far as a stage may hold them."""

    def rule(p: int, m: int, v: int, limit: Turns) -> Order:
        stage = np.arange(p)
        held = np.minimum.accumulate(np.minimum(limit, m))  # a stage gets no more than the one before it
        warm_up = np.minimum(ahead * (p - 1 - stage), held - 1).astype(np.int64)
        # Weights that wait hold half a micro-batch.
        deferred = np.minimum(ahead * stage, 2 * (np.minimum(limit, m) - 1 - warm_up)).astype(np.int64)
        return _alternating(m, v, warm_up, deferred if split else None)

    return rule


def _gpipe(p: int, m: int, v: int, limit: Turns) -> Order:
    """Every forward pass before any backward pass."""
    return _alternating(m, v, np.full(p, m))


def _interleaved(p: int, m: int, v: int, limit: Turns) -> Order:
    """1F1B over the chunks of every stage, p micro-batches at a time."""
    behind = p - 1 - np.arange(p)
    warm_up = behind if v == 1 else 2 * behind + (v - 1) * p
    return _alternating(m, v, np.minimum(warm_up, m * v))


def _chimera(p: int, m: int, v: int, limit: Turns) -> Order:
    """Even micro-batches go down the stages, odd ones up; units of p of them follow every 2 p slots."""
    item, chunk = np.indices((m, p))
    up = item % 2
    begin = item // p * 2.0 * p + item % p // 2 * 2
    return Order(np.where(up, p - 1 - chunk, chunk), up, np.stack([begin + chunk, begin + 2 * p - 1 - chunk]))


def _v_shape(p: int, m: int) -> tuple[Whole, Whole, Whole]:
    """Micro-batch, stage and part where the chunks go down the stages and up again."""
    item, chunk = np.indices((m, 2 * p))
    return item, np.where(chunk < p, chunk, 2 * p - 1 - chunk), chunk // p


def _zero_bubble_v(p: int, m: int, v: int, limit: Turns) -> Order:
    """Cycles of six passes: forward, backward and weights of the first chunk, then of the second."""
    item, stage, part = _v_shape(p, m)
    n, left = max(m, 2 * p - 1), p - stage  # with few micro-batches, the passes of absent ones fall out
    early = p - 1 + left  # forward passes down before the first cycle
    down = np.where(item < early, 6.0 * (item - early - left) + 3.5, 6.0 * (item - early))
    forward = np.where(part, 6.0 * (item - p) + 3, down)
    backward = np.where(part, 6.0 * (item - left) + 4, 6.0 * item + 1)
    drains = item - np.where(part, left, 0) >= n - p  # these weights wait for the last backward passes
    late = 6.0 * (item + np.where(part, n, stage)) + 2
    return Order(stage, part, np.stack([forward, backward, np.where(drains, late, backward + 1)]))


def _blocks(slots: Turns, m: int, deferred: int) -> Order:
    """A block of six slots per micro-batch, repeated; weights take the free slots, first come first served.

    ``slots`` says when each stage (column) runs the first micro-batch: forward down, forward up, backward
    down, backward up (rows). Weights leave out ``deferred`` free slots.
    """
    item, stage, part = _v_shape(slots.shape[1], m)
    forward, backward = (6.0 * item + slots[row, stage] for row in (part, 3 - part))
    weights = np.empty_like(backward)
    for i in range(slots.shape[1]):
        mine = stage == i
        ends = np.sort(backward[mine])
        taken = np.concatenate([forward[mine], ends])
        free = np.setdiff1d(np.arange(taken.max() + 2 * ends.size + deferred + 1), taken)
        count = np.arange(ends.size)
        first = np.maximum.accumulate(np.searchsorted(free, ends) + deferred - count) + count
        weights[mine] = free[first][np.searchsorted(ends, backward[mine])]
    return Order(stage, part, np.stack([forward, backward, weights]))


def _v_min(p: int, m: int, v: int, limit: Turns) -> Order:
    """Every hop takes one slot."""
    i, pause = np.arange(p), 2.0 * (p % 3 == 0)
    return _blocks(np.stack([i, 2 * p - 1 - i, 2 * p + pause + i, 4 * p - 1 + pause - i]), m, 0)


def _v_half(p: int, m: int, v: int, limit: Turns) -> Order:
    """Hops down take two slots, hops up one."""
    i, pause = np.arange(p), 3.0 * (p % 2 == 0)
    down, up = 2 * i, 3 * p - 2 - i
    return _blocks(np.stack([down, up, 3 * p - 1 + pause + down, 3 * p + pause + up]), m, 2)


RULES: Final[Mapping[str, Rule]] = {
    "gpipe": _gpipe,
    "1f1b": _one_forward_one_backward(1),
    "interleaved_1f1b": _interleaved,
    "eager_1f1b": _one_forward_one_backward(2),
    "dapple": _one_forward_one_backward(1),
    "pipedream": _one_forward_one_backward(1),
    "pipedream_2bw": _one_forward_one_backward(1),
    "pipemare": _one_forward_one_backward(2),
    "zb_h1": _one_forward_one_backward(1, split=True),
    "zb_2p": _one_forward_one_backward(2, split=True),
    "zb_v": _zero_bubble_v,
    "v_half": _v_half,
    "v_min": _v_min,
    "chimera": _chimera,
}
