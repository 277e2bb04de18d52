"""What a pipeline schedule costs once it runs: idle time per iteration and the weights it keeps."""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from relparallel._checks import require_instance, require_int, require_number
from relparallel.parallel.quantities import Numbers, some, where
from relparallel.parallel.schedules import (
    ASYNCHRONOUS,
    SCHEDULES,
    TABLE,
    pass_seconds,
    require_size,
)
from relparallel.parallel.timeline import Timeline


def bubble_fraction(
    name: str,
    stages: int,
    micro_batches: int,
    virtual_stages: int = 1,
    *,
    forward: float = 1.0,
    backward: float = 2.0,
    backward_weight: float | None = None,
) -> float:
    """Idle over ideal time of an iteration among others, with equal stages and free communication.

    Parameters
    ----------
    name : str
        The schedule; v_half and v_min have no closed form.
    stages, micro_batches, virtual_stages : int
        p, m and v, as `simulate_schedule` takes them. Zero bubble needs m >= p (H1) or 2 p - 1 (H2,
        V), Chimera a multiple of p.
    forward, backward, backward_weight : float
        Seconds per micro-batch and stage, above 0; the third for the gradients of the weights, half
        of the second where omitted. With zb_v, w <= f <= b.

    Returns
    -------
    float
        The iteration takes (1 + fraction) m (f + b + w).

    Notes
    -----
    Idle seconds per iteration and stage, with b and w the backward passes of inputs and of weights:

    - gpipe, 1f1b, dapple, eager_1f1b, interleaved_1f1b: (p - 1)(f + b + w)/v, and of fewer
      micro-batches than stages (p - m + (m - 1)/v)(f + b + w); asynchronous schedules: 0.
    - zb_h1: (p - 1) max(f + b - w, b); zb_2p: (p - 1) max(f + b - 2 w, b - f, 0).
    - zb_v: (p - 1)(b - w).
    - chimera: ``(p - 2)(max(f, b + w) + (m/p - 1) |b + w - f|)``.

    Zero-bubble iterations follow each other without a barrier; with one, (p - 1) f comes back.
    Narayanan et al., SC 2021, section 2.2. Qi et al., ICLR 2024, table 1 (for w <= f). Li and
    Hoefler, SC 2021, table 2 (f = b + w).

    Examples
    --------
    >>> bubble_fraction("interleaved_1f1b", 8, micro_batches=32, virtual_stages=4)
    0.0546875
    """
    require_size(name, stages, micro_batches, virtual_stages)
    require_number(forward=forward, backward=backward, above=0)
    if backward_weight is not None:
        require_number(backward_weight=backward_weight, above=0)
    w = backward / 2 if backward_weight is None else backward_weight
    pass_seconds("zb_h1", 1, forward, backward, w)
    b = backward - w
    least = TABLE[name].fewest
    if least is None:
        known = tuple(key for key, entry in TABLE.items() if entry.fewest is not None)
        raise ValueError(f"name must have a closed form, which are {known}, got {name!r}")
    fewest = least[0] * stages + least[1]
    if micro_batches < fewest or (name == "chimera" and micro_batches % stages):
        allowed = f"a multiple of {stages}" if name == "chimera" else f"at least {fewest}"
        raise ValueError(
            f"micro_batches must be {allowed} for the form of {name!r}, got {micro_batches}"
        )
    if name == "zb_v" and not w <= forward <= b:
        raise ValueError(
            f"backward_weight must be at most forward = {forward}, and that at most the rest of "
            "backward, "
            f"for the form of {name!r}, got {w} and {b}"
        )
    ideal = micro_batches * (forward + backward)
    code = SCHEDULES.index(name)
    return float(bubble_time(code, stages, micro_batches, virtual_stages, forward, b, w) / ideal)


def weight_delay(timeline: Timeline, per_update: int) -> NDArray[np.int64]:
    """Return how many updates lie between the weights that a forward pass reads and its gradient's.

    Parameters
    ----------
    timeline, per_update : Timeline, int
        As of `weight_versions`.

    Returns
    -------
    numpy.ndarray
        int64, shape (stages,), the largest over the micro-batches; 1 is ordinary training, 2 (p -
        i) - 1 on stage i = 0 ... p - 1 PipeMare (Yang et al., MLSys 2021, table 1), p - i
        PipeDream.

    Examples
    --------
    >>> from relparallel.parallel import simulate_schedule
    >>> weight_delay(simulate_schedule("pipemare", 4, 12), per_update=1).tolist()
    [7, 5, 3, 1]
    """
    delays = [np.arange(read.size) - read + 1 for _, read in every_stage(timeline, per_update)]
    return np.array([delay.max() for delay in delays])


def every_stage(
    timeline: Timeline, per_update: int
) -> list[tuple[NDArray[np.float64], NDArray[np.int64]]]:
    """Of every stage, when each update happens, and which version its micro-batches read."""
    require_instance(Timeline, timeline=timeline)
    require_int(per_update=per_update, at_least=1)
    batch = timeline.item // per_update
    shape = timeline.resources, int(batch.max()) + 1
    begin, end = np.full(shape, np.inf), np.zeros(shape)
    np.minimum.at(begin, (timeline.resource, batch), timeline.start)
    np.maximum.at(end, (timeline.resource, batch), timeline.finish)
    updates = np.maximum.accumulate(end, axis=1)
    return [(u, np.searchsorted(u, b, side="right")) for u, b in zip(updates, begin, strict=True)]


_NO_FLUSH: Final = tuple(SCHEDULES.index(name) for name in ASYNCHRONOUS)
_ZB_H1, _ZB_2P, _ZB_V, _V_HALF, _V_MIN, _CHIMERA = (
    SCHEDULES.index(name) for name in ("zb_h1", "zb_2p", "zb_v", "v_half", "v_min", "chimera")
)


def bubble_time(
    schedule: Numbers,
    p: Numbers,
    m: Numbers,
    v: Numbers,
    forward: Numbers,
    back: Numbers,
    weight: Numbers,
) -> Numbers:
    """Time a stage waits in a step, of seconds per micro-batch: forward, input gradients, weights.

    For few micro-batches too: each one more fills a gap of the first one's way down and up. With
    V-Half and V-Min, unequal passes cost time with every micro-batch. Where ``weight <= back`` and
    ``forward <= back + 2 weight``, that is what the simulator finds, at most a pass too much with
    Chimera and ZB-V, to two with the other V.
    """
    found = (p - 1 - (np.minimum(m, p) - 1) * (1 - 1 / v)) * (forward + back + weight)
    forms = {
        _ZB_H1: _zero_bubble_h1,
        _ZB_2P: _zero_bubble_2p,
        _ZB_V: _zero_bubble_v,
        _V_HALF: _v_half,
        _V_MIN: _v_min,
        _CHIMERA: _chimera,
    }
    for code, form in forms.items():
        if some(schedule == code):
            found = where(schedule == code, form(p, m, forward, back, weight), found)
    for code in _NO_FLUSH:
        found = where(schedule == code, 0.0, found)
    return where(p == 1, 0.0, found)


def _zero_bubble_h1(
    p: Numbers, m: Numbers, forward: Numbers, back: Numbers, weight: Numbers
) -> Numbers:
    filled = np.minimum(forward, weight) * (np.minimum(m, p) - 1)
    return (p - 1) * (forward + back) - filled


def _zero_bubble_2p(
    p: Numbers, m: Numbers, forward: Numbers, back: Numbers, weight: Numbers
) -> Numbers:
    filled = np.minimum(np.minimum(forward, weight), (forward + back) / 2)
    return (p - 1) * (forward + back) - filled * (np.minimum(m, 2 * p - 1) - 1)


def _zero_bubble_v(
    p: Numbers, m: Numbers, forward: Numbers, back: Numbers, weight: Numbers
) -> Numbers:
    down = np.minimum(forward, (forward + back) / 2)
    left = np.maximum(np.maximum(back - weight, forward - weight), (back - forward) / 2)
    way = (p - 1) * (forward + back) - down * (np.minimum(m, p) - 1)
    return way - (forward + back - down - left) * np.maximum(np.minimum(m, 2 * p - 1) - p, 0)


def _v_half(p: Numbers, m: Numbers, forward: Numbers, back: Numbers, weight: Numbers) -> Numbers:
    apart = abs(back - forward)
    saved = np.maximum(weight - apart, weight / 2) / 2 * (p - 1)
    way = (p - 1) * (forward + back) - np.minimum(saved, weight * (m - 1))
    return way + (m - 1) * np.maximum(apart - weight / 2, 0.0)


def _v_min(p: Numbers, m: Numbers, forward: Numbers, back: Numbers, weight: Numbers) -> Numbers:
    longest = np.maximum(np.maximum(forward, back), weight)
    uneven = 3 * longest - forward - back - weight
    two = np.maximum(uneven / 2, (forward + back) / 2 - weight)
    return (p - 1) * (forward + back) + (m - 1) * where(p > 2, uneven, two)


def _chimera(p: Numbers, m: Numbers, forward: Numbers, back: Numbers, weight: Numbers) -> Numbers:
    """A lone micro-batch of one end leaves the way of its partner empty."""
    behind, pairs = back + weight, m + m % 2
    units = -(-pairs // p)
    uneven = np.maximum(forward, behind) + (units - 1) * abs(behind - forward)
    short = (units * p - pairs) * np.minimum(forward, behind) + m % 2 * (forward + behind)
    return (p - 2) * uneven + short
