"""How many words a sweep back needs for the digits of the derivative that matters least.

It is guessed before, from the chances and the outcome, and seen behind, from what a unit is worth.
"""

from __future__ import annotations

import math

import numba
import numpy as np

from relparallel.reliability.programme.labels import ALL
from relparallel.reliability.programme.layer_rows import HOLDS
from relparallel.reliability.sensitivity.many_digits import BITS

_TINY = 1e-300  # masses below may be 0
_FEW, _MANY, MOST = 8, 11, 34  # words of a g: at least; at most where states are many; whose unit is a float
_DETOUR = 3  # times the length of the shortest way, that by the most remote link
_ENOUGH = 40  # bits of a derivative where rounding is a unit


@numba.njit(cache=True)
def first_words(rows, chances, success, failure):  # type: ignore[no-untyped-def]
    """Words for what seems to be the least derivative: by a part of a large cut, or of a detour."""
    costs = np.zeros((len(rows), 3))
    for row in range(len(rows)):
        for i in range(3):
            rarer = min(chances[row, 2 * i], chances[row, 2 * i + 1])
            costs[row, i] = -math.log2(rarer) if rarer > 0.0 else 0.0
    cut, way = _cut(rows, costs), -math.log2(max(success, _TINY))
    if rows[-1, HOLDS] != ALL:
        way *= _DETOUR
    bits = _ENOUGH + math.log2(len(rows)) + max(cut, way)
    ever = _MANY - math.log2(max(min(success, failure), _TINY)) / BITS
    return min(max(math.ceil(bits / BITS), _FEW), math.floor(ever), MOST)


@numba.njit(cache=True)
def _cut(rows, costs):  # type: ignore[no-untyped-def]
    """Cost of all links of a vertex where all are terminals, else of as many parts as there are slots."""
    around, live, most = np.zeros(16), 1, 0.0
    for row in range(len(rows)):
        for slot in rows[row, 4:6]:
            around[slot] += costs[row, 0]
            live, most = max(live, slot), max(most, around[slot])
        for slot in rows[row, 6:8]:
            if slot >= 0:
                around[slot] = 0.0
    known = np.sort(costs.ravel()[costs.ravel() > 0.0])
    return most if rows[-1, HOLDS] == ALL or len(known) == 0 else live * known[3 * len(known) // 4]


@numba.njit(cache=True)
def missing_words(gain, asked, words):  # type: ignore[no-untyped-def]
    """How many words are missing at least in a derivative that is asked for."""
    least = np.inf
    for row in range(len(gain)):
        for i in range(3):
            if asked[row, i]:
                least = min(least, gain[row, i])
    bits = math.log2(max(least / rounding(gain, words), 1.0))
    return math.ceil((_ENOUGH - bits) / BITS) if bits < _ENOUGH else 0


@numba.njit(cache=True)
def rounding(gain, words):  # type: ignore[no-untyped-def]
    """What rounding adds to a derivative at most: a unit of so many words in every row."""
    return len(gain) * math.ldexp(1.0, -BITS * words)
