"""Simulation on counts: exponential failures of all rows superposed, exponential repairs, no identities.

One event costs O(rows), however many nodes there are.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from relparallel.training._compiled import njit_bare, njit_inline
from relparallel.training._job_kernel import (
    PLANNED,
    Tables,
    advance,
    clear,
    count_missing,
    failure_rates,
    pick_row,
    speed_left,
    strike,
)  # fmt: skip

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@njit_inline
def _repaired(draw: float, under: Integers, tables: Tables) -> int:
    """Which row's part is repaired; ``draw`` is uniform below the rate of all repairs."""
    last = 0
    for row in range(under.size):
        if under[row] > 0:
            last = row
            draw -= under[row] * tables.repair[row]
            if draw < 0.0:
                break
    return last


@njit_inline
def _repairs(under: Integers, tables: Tables) -> tuple[float, float]:
    """Repairs that end per second with a crew for each, and the share of parts that have one."""
    total, parts = 0.0, 0
    for row in range(under.size):
        total += under[row] * tables.repair[row]
        parts += under[row]
    return total, tables.crews / parts if parts > tables.crews else 1.0


@njit_inline
def _can_fail(down: int, waiting: bool, tables: Tables) -> float:
    """Nodes that can fail, as a share of those of the job."""
    if tables.hot:
        return max(tables.size + tables.spares - down, 0) / tables.size
    return 0.0 if waiting else 1.0 - count_missing(down, tables) / tables.size


@njit_bare
def run_counts(
    rng: Any, tables: Tables, window: float, found: Floats, counts: Integers, blame: Floats,
    times: Floats, places: Integers, marks: Floats, spent: Floats, under: Integers,
) -> None:  # fmt: skip
    """Fill ``found`` [window, bucket] (seconds), ``counts`` by row: failures, interruptions, last level."""
    times[2] = tables.interval
    down, now, place, stopped, share, mending = 0, 0.0, 0, False, tables.speed[0], 0.0
    crewed, up, toggle = 1.0, _can_fail(0, share == 0.0, tables), tables.every
    own, slow, other = failure_rates(tables)
    failing = own * up + slow + (other if share > 0.0 else 0.0)
    while place < found.shape[0]:
        rate = (0.0 if stopped else failing) + mending * crewed
        step = rng.standard_exponential() / rate if rate > 0.0 else np.inf
        end = min(window, toggle)
        event = now + step < end
        step = step if event else end - now
        if stopped:
            spent[PLANNED] += step
            times[5] += step
        else:
            advance(step, share, tables, times, places, marks, spent, blame)
        now = now + step if event else end
        if not event:
            if now >= toggle:
                stopped = not stopped
                toggle = now + (tables.planned if stopped else tables.every)
            if now >= window:
                clear(found[place], spent)
                place, now, toggle = place + 1, 0.0, toggle - window
            continue
        draw = rng.random() * rate - mending * crewed
        if draw < 0.0:
            row = _repaired((draw + mending * crewed) / crewed, under, tables)
            under[row] -= 1
            down -= tables.nodes[row]
        else:
            row = pick_row(draw, up, share == 0.0, tables)
            under[row] += tables.nodes[row] > 0 or tables.slowdown[row] > 1.0
            counts[row, 0] += 1
            down += tables.nodes[row]
            inside = not tables.hot or tables.nodes[row] == 0 or rng.random() * up < 1.0
            if inside and share > 0.0 and (tables.back[row] or tables.nodes[row] > 0):
                strike(rng, row, tables, times, places, marks, spent, blame, counts)
        share = speed_left(count_missing(down, tables), under, tables)
        up = _can_fail(down, share == 0.0, tables)
        failing = own * up + slow + (other if share > 0.0 else 0.0)
        mending, crewed = _repairs(under, tables)
