"""The sweep of the frontier programme: layer after layer of states with their probabilities.

A layer is an array of pairs, state and mass, in the order in which its states were found; a hash table says
where each of them is. Most rows change a layer in place (`layer_rows`); the others write a new one. What
states become is looked up in batches, so that the memory works on many places at a time.
"""

from __future__ import annotations

from typing import NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from relparallel.reliability.programme.in_place import decide_in_place, two_sum
from relparallel.reliability.programme.labels import leave, merge, pack, unpack
from relparallel.reliability.programme.layer_rows import FRESH, GENERAL, KIND, MERGE, SUCCEED, planned_rows
from relparallel.reliability.programme.layer_table import add_states, grown, indexed

__all__ = ["sweep"]

_NIBBLE = np.uint64(15)
_BATCH = 256  # states that are decided before what they become is stored
_U0, _U1 = np.uint64(0), np.uint64(1)


class Ways(NamedTuple):
    """How the entering vertices can be, up or down: mass, labels and flags that they add, [4]."""

    weight: NDArray[np.float64]
    labels: NDArray[np.uint64]
    flags: NDArray[np.uint64]


@numba.njit(cache=True)
def sweep(steps, chances, max_states, max_visits):  # type: ignore[no-untyped-def]
    """Decide all links; stop early, with peak > max_states or visited > max_visits, when there are too many.

    Parameters
    ----------
    steps, chances : int64[m, 9], float64[m, 6]
        See `Programme`.
    max_states, max_visits : int
        Largest layer, and most states of all layers.

    Returns
    -------
    success, failure : float
        Mass in which the terminals are connected, and in which they are not.
    peak, visited : int
        States of the largest layer, and of all layers.
    """
    rows, nothing = planned_rows(steps, chances[:, 1::2] > 0.0), np.empty(0, np.int32)
    here, there = np.zeros(2, np.uint64), np.empty(32 * _BATCH, np.uint64)
    here.view(np.float64)[1] = 1.0
    table, bits, buffer = np.empty(64, np.int32), -1, np.empty(16 * _BATCH, np.uint64)
    count, peak, total, sums = 1, 1, 0, np.zeros(4)
    ways = Ways(np.empty(4), np.empty(4, np.uint64), np.empty(4, np.uint64))
    for r in range(len(rows)):
        row, chance, kind, most = rows[r], chances[r], rows[r, KIND], min(max_states, max_visits - total)
        if kind >= MERGE:
            there = grown(there, 0, count)
            made, _ = decide_in_place(here[: 2 * count], row, chance, kind == SUCCEED, sums, there, nothing)
            if bits < 0:
                table, bits = indexed(table, here, count, 2 * count + made)
            here, table, bits, found = add_states(there[: 2 * made], here, table, bits, count)
        else:
            kinds, found, bits = _ways(row, chance, ways), 0, -1
            if kind == GENERAL:
                table, bits = indexed(table, there, 0, 2 * count)
            for start in range(0, 2 * count, 2 * _BATCH):
                part = here[start : min(start + 2 * _BATCH, 2 * count)]
                if kind == FRESH:
                    there = grown(there, found, 4 * len(part))
                    found += _expand(part, row, chance, ways, kinds, sums, there[2 * found :]) // 2
                else:
                    made = _expand(part, row, chance, ways, kinds, sums, buffer)
                    there, table, bits, found = add_states(buffer[:made], there, table, bits, found)
                if found > most:
                    break
            here, there = there, here
        if found > most:
            return sums[0], sums[2], max(peak, found), total + found
        count = found
        total += count
        peak = max(peak, count)
    return sums[0] + sums[1], sums[2] + sums[3], peak, total


@numba.njit(cache=True)
def _ways(step, chance, ways):  # type: ignore[no-untyped-def]
    """Fill in how the entering vertices can be: their mass, labels and flags; return the number of ways."""
    kinds = 0
    for dead in range(4):
        weight, labels, flags = 1.0, _U0, _U0
        for side in range(2):
            if (dead >> side) & 1:
                weight *= chance[3 + 2 * side]
            else:
                weight *= chance[2 + 2 * side]
                if step[side] >= 0:
                    shift = np.uint64(4 * step[side])
                    labels |= np.uint64(step[side] + 1) << shift
                    flags |= np.uint64(step[2 + side]) << shift
        if weight > 0.0:
            ways.weight[kinds], ways.labels[kinds], ways.flags[kinds] = weight, labels, flags
            kinds += 1
    return kinds


@numba.njit(cache=True)
def _expand(here, step, chance, ways, kinds, sums, buffer):  # type: ignore[no-untyped-def]
    """Decide one link in some states: write what they become to the buffer, return how many that are."""
    old, new = here.view(np.float64), buffer.view(np.float64)
    up, down = chance[0], chance[1]
    a, b = np.uint64(4 * step[4]), np.uint64(4 * step[5])
    leave_a, leave_b, last = step[6] >= 0, step[7] >= 0, step[8] == 0
    made, success, failure, success_rest, failure_rest = 0, sums[0], sums[2], sums[1], sums[3]
    for i in range(0, len(here), 2):
        old_labels, old_flags = unpack(here[i])
        for kind in range(kinds):
            weight = old[i + 1] * ways.weight[kind]
            labels, flags = old_labels | ways.labels[kind], old_flags | ways.flags[kind]
            x, y = (labels >> a) & _NIBBLE, (labels >> b) & _NIBBLE
            joins = x != _U0 and y != _U0 and x != y
            for connected in range(2 if joins else 1):
                after, held, share, closed = labels, flags, weight, False
                if joins:
                    share *= up if connected else down
                    if connected:
                        after, held = merge(labels, flags, x, y)
                        if last and held & (held - _U1) == _U0 and held != _U0:
                            success, success_rest = two_sum(success, success_rest, share)
                            continue
                if share == 0.0:
                    continue
                if leave_a:
                    after, held, closed = leave(after, held, a)
                if leave_b and not closed:
                    after, held, closed = leave(after, held, b)
                if closed:
                    failure, failure_rest = two_sum(failure, failure_rest, share)
                    continue
                buffer[made], new[made + 1] = pack(after, held), share
                made += 2
    sums[0], sums[1], sums[2], sums[3] = success, success_rest, failure, failure_rest
    return made
