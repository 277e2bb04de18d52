"""Switching a GPU to another model: groups of layers overlap sending and computing (PipeSwitch)."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from chapters.chain import best_chains
from relparallel._checks import require_real

FloatArray = NDArray[np.float64]


class SwitchPlan(NamedTuple):
    """Groups of layers that are sent, and computed, as one."""

    groups: tuple[int, ...]  # layers of each
    time: float  # until the last layer has computed [s]
    bound: float  # what no grouping goes below [s]


def switching_time(
    send: ArrayLike, compute: ArrayLike, groups: Sequence[int], *, per_send: float, per_group: float
) -> float:
    """Seconds until a model has been sent by groups and has computed, each group once it is there.

    ``end = max(end, sent) + per_group + compute`` over the groups, whose numbers of layers are
    given; groups are sent without a break, and each adds ``per_send`` to sending. ``send`` and
    ``compute`` are seconds of every layer. Bai et al., "PipeSwitch", OSDI 2020, section 4.2.

    >>> switching_time([3, 1, 1], [1, 1, 2], [1, 2], per_send=0.5, per_group=0.1)
    9.1
    """
    sent, computed = _layers(send, compute)
    ends = np.cumsum(groups)
    if ends[-1] != sent.size:
        raise ValueError(f"groups must hold all {sent.size} layers, got {list(groups)}")
    arrived = np.cumsum(sent)[ends - 1] + per_send * np.arange(1, ends.size + 1)
    now = 0.0
    for arrival, work in zip(
        arrived, np.diff(np.cumsum(computed)[ends - 1], prepend=0.0), strict=True
    ):
        now = max(now, float(arrival)) + per_group + float(work)
    return now


def switch_plan(
    send: ArrayLike, compute: ArrayLike, *, per_send: float, per_group: float
) -> SwitchPlan:
    """Groups of the layers of a model with which it is ready soonest.

    Bai et al., "PipeSwitch", OSDI 2020, 4.2.

    Optimal: with g groups sent, only the end so far matters for the rest, so the best one for every
    g and layer is enough, where the paper prunes a search over all 2^(n-1) groupings.

    >>> plan = switch_plan([3, 1, 1, 1], [1, 1, 1, 2], per_send=0.5, per_group=0.1)
    >>> plan.groups, round(plan.time, 3)
    ((2, 1, 1), 9.8)
    """
    sent, computed = _layers(send, compute)
    arrived, done = np.cumsum(sent), np.append(0.0, np.cumsum(computed))
    even = ([part.size for part in np.array_split(sent, n)] for n in range(1, sent.size + 1))
    some = min(
        switching_time(sent, computed, n, per_send=per_send, per_group=per_group) for n in even
    )
    last = float(arrived[-1] + computed[-1])
    # groups that may still be better
    most = int((some - last) / per_send * (1 + 1e-9)) if per_send else 0

    def cost(stop: int, used: int, k: int) -> tuple[FloatArray, FloatArray]:
        add = per_group + done[stop] - done[:stop]
        return add, arrived[stop - 1] + used * per_send + add

    found = best_chains(sent.size, cost, devices=min(most, sent.size), most=1)
    used = int(found.values[:, 0, -1].argmin())
    groups = tuple(stop - start for start, stop, _ in found.groups(devices=used))
    bound = max(last, float(sent[0]) + float(done[-1])) + per_send + per_group
    return SwitchPlan(groups, float(found.values[used, 0, -1]), bound)


def _layers(send: ArrayLike, compute: ArrayLike) -> tuple[FloatArray, FloatArray]:
    sent, computed = (
        np.atleast_1d(x) for x in require_real(send=send, compute=compute, at_least=0)
    )
    if sent.shape != computed.shape:
        raise ValueError(
            f"send and compute must be as long as each other, got {sent.size}, {computed.size}"
        )
    return sent, computed
