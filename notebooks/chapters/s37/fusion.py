"""Gradients merged into messages on their way out of a backward pass.

Tensors become ready one after another and are sent in that order. A message of several saves
latency and waits for the last of them. MG-WFBP and Horovod's fusion buffer are two answers.
"""

from collections.abc import Iterable, Iterator
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from chapters.chain import best_chains
from relparallel._checks import require_choice, require_real
from relparallel.parallel.ordering import MergedMessages
from relparallel.units import MIB
from relparallel.workload import LayerGraph

FloatArray = NDArray[np.float64]
MERGING: Final = ("optimal", "greedy", "none", "all")
"""Least finish; the rule of MG-WFBP; each tensor alone (wait-free backpropagation); one message."""


def merge_gradients(
    gradients: LayerGraph | ArrayLike, *, latency: float, bandwidth: float, method: str = "optimal"
) -> MergedMessages:
    """Gradients that follow each other, merged so that the last has been sent as early as can be.

    ``gradients`` are a measured model, or when each is ready [s], never falling, and its bytes,
    shape [n, 2]; a message of M bytes takes ``latency + M / bandwidth``. Methods: "optimal", least
    finish; "greedy", the rule of MG-WFBP; "none", every gradient alone; "all", one message.

    ``F(j) = min over i of max(F(i), ready_j) + latency + (S_j - S_i)/bandwidth`` (`best_chains`), S
    being sums of bytes. The rule merges the next gradient when it is ready before the message can
    begin, or so soon after that waiting costs less than another latency. Shi, Chu and Li,
    "MG-WFBP", INFOCOM 2019, equations 7-8 and algorithm 1.

    >>> found = merge_gradients([[1.0, 2.0], [2.0, 2.0], [9.0, 4.0]], latency=3.0, bandwidth=1.0)
    >>> found.groups, found.finish
    (((0, 2), (2, 3)), 16.0)
    """
    ready, sent = _tensors(gradients)
    require_choice(MERGING, method=method)
    total, n = np.concatenate(([0.0], np.cumsum(sent))), len(ready)
    if method == "optimal":

        def cost(stop: int, used: int, k: int) -> tuple[FloatArray, FloatArray]:
            message = latency + (total[stop] - total[:stop]) / bandwidth
            return message, ready[stop - 1] + message

        cuts: Iterable[int] = [stop for _, stop, _ in best_chains(n, cost).groups()]
    elif method == "greedy":
        cuts = _greedy_cuts(ready, total, latency, bandwidth)
    else:
        cuts = range(1, n + 1) if method == "none" else [n]
    return _sent(ready, total, cuts, latency, bandwidth)


def fuse_gradients(
    gradients: LayerGraph | ArrayLike,
    *,
    latency: float,
    bandwidth: float,
    buffer: float = 128 * MIB,
    cycle: float = 1e-3,
) -> MergedMessages:
    """Gradients sent as by Horovod: per cycle whatever is ready, as many bytes as the buffer holds.

    As `merge_gradients`, with the ``buffer`` [bytes] of ``HOROVOD_FUSION_THRESHOLD``, beside which
    a larger gradient goes alone, and the ``cycle`` [s] of ``HOROVOD_CYCLE_TIME`` between two looks
    at what is ready, which also wait for the messages of the last look. Sergeev and Del Balso,
    "Horovod", 2018; docs/tensor-fusion.rst.

    >>> fuse_gradients([[1, 2], [2, 2], [9, 4]], latency=3.0, bandwidth=1.0, cycle=2.0).groups
    ((0, 2), (2, 3))
    """
    ready, sent = _tensors(gradients)
    groups: list[tuple[int, int]] = []
    begin: list[float] = []
    end, look, at = [0.0], 0.0, 0
    while at < len(ready):
        soonest = max(look + cycle, end[-1])  # a look that waited begins the cycles anew
        look = soonest + max(np.ceil((ready[at] - soonest) / cycle), 0.0) * cycle
        while at < len(ready) and ready[at] <= look:
            due = int(np.searchsorted(ready, look, side="right"))
            fits = int((np.cumsum(sent[at:due]) <= buffer).sum())
            groups.append((at, at + max(fits, 1)))
            begin.append(max(look, end[-1]))
            end.append(begin[-1] + latency + float(sent[at : groups[-1][1]].sum()) / bandwidth)
            at = groups[-1][1]
    return MergedMessages(groups=tuple(groups), begin=np.array(begin), end=np.array(end[1:]))


def _tensors(gradients: LayerGraph | ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Seconds from the start of the backward pass at which each tensor is ready, and its bytes.

    Layers of a graph run in the opposite of their topological order; those without parameters send
    nothing.
    """
    given: ArrayLike = gradients  # type: ignore[assignment]
    if isinstance(gradients, LayerGraph):
        if gradients.unit != "s":
            raise ValueError(f"gradients must be a graph that holds seconds, got {gradients!r}")
        order = gradients.order[::-1]
        size = gradients.parameter_bytes[order]
        given = np.column_stack((np.cumsum(gradients.backward[order]), size))[size > 0]
    rows = np.asarray(require_real(gradients=given, at_least=0), dtype=float)
    if rows.shape[1:] != (2,) or (np.diff(rows[:, 0]) < 0).any():
        raise ValueError(
            f"gradients must be rows of a time that never falls and bytes, got {rows.shape}"
        )
    return rows[:, 0], rows[:, 1]


def _greedy_cuts(
    ready: FloatArray, total: FloatArray, latency: float, bandwidth: float
) -> Iterator[int]:
    """Where the rule of MG-WFBP ends its messages."""
    first, free = 0, 0.0
    for at in range(1, len(ready)):
        begin = max(free, ready[at - 1])
        end = begin + latency + (total[at] - total[first]) / bandwidth
        if ready[at] >= end or ready[at] - begin >= latency:
            yield at
            first, free = at, end
    yield len(ready)


def _sent(
    ready: FloatArray, total: FloatArray, cuts: Iterable[int], latency: float, bandwidth: float
) -> MergedMessages:
    """The messages that end at the cuts, one after another."""
    groups: list[tuple[int, int]] = []
    begin, end = [], [0.0]
    for stop in cuts:
        start = groups[-1][1] if groups else 0
        groups.append((start, stop))
        begin.append(max(end[-1], float(ready[stop - 1])))
        end.append(begin[-1] + latency + float(total[stop] - total[start]) / bandwidth)
    return MergedMessages(groups=tuple(groups), begin=np.array(begin), end=np.array(end[1:]))
