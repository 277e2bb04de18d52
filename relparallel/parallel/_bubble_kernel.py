"""How long a stage of a pipeline waits in a step: closed forms of every schedule, compiled."""

from typing import Any, Final

import numba

from relparallel.parallel.schedules import ASYNCHRONOUS, SCHEDULES

_NO_FLUSH: Final = tuple(SCHEDULES.index(name) for name in ASYNCHRONOUS)
_ZB_H1, _ZB_2P, _ZB_V, _V_HALF, _V_MIN, _CHIMERA = (
    SCHEDULES.index(name) for name in ("zb_h1", "zb_2p", "zb_v", "v_half", "v_min", "chimera")
)


@numba.njit(cache=True)  # type: ignore[misc]
def bubble_time(schedule: Any, p: Any, m: Any, v: Any, forward: Any, back: Any, weight: Any) -> Any:
    """Time that a stage waits in a step, of seconds per micro-batch: forward, input gradients, weights.

    For few micro-batches too: each one more fills a gap of the first one's way down and up. With V-Half and
    V-Min, unequal passes cost time with every micro-batch. Where ``weight <= back`` and
    ``forward <= back + 2 weight``, that is what the simulator finds, at most a pass too much with Chimera and
    ZB-V, to two with the other V.
    """
    if schedule in _NO_FLUSH or p == 1:
        return 0.0
    alone, apart = (p - 1) * (forward + back), abs(back - forward)
    if schedule == _ZB_H1:
        return alone - min(forward, weight) * (min(m, p) - 1)
    if schedule == _ZB_2P:
        return alone - min(forward, weight, (forward + back) / 2) * (min(m, 2 * p - 1) - 1)
    if schedule == _ZB_V:
        down = min(forward, (forward + back) / 2)
        left = max(back - weight, forward - weight, (back - forward) / 2)
        return alone - down * (min(m, p) - 1) - (forward + back - down - left) * max(min(m, 2 * p - 1) - p, 0)
    if schedule == _V_HALF:
        saved = max(weight - apart, weight / 2) / 2 * (p - 1)
        return alone - min(saved, weight * (m - 1)) + (m - 1) * max(apart - weight / 2, 0.0)
    if schedule == _V_MIN:
        uneven = 3 * max(forward, back, weight) - forward - back - weight
        return alone + (m - 1) * (uneven if p > 2 else max(uneven / 2, (forward + back) / 2 - weight))
    if schedule == _CHIMERA:  # a lone micro-batch of one end leaves the way of its partner empty
        behind, pairs = back + weight, m + m % 2
        units = -(-pairs // p)
        uneven = max(forward, behind) + (units - 1) * abs(behind - forward)
        short = (units * p - pairs) * min(forward, behind) + m % 2 * (forward + behind)
        return (p - 2) * uneven + short
    return (p - 1) * (forward + back + weight) / v
