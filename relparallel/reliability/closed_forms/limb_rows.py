"""Sums of products of large whole numbers, compiled: many at once, in digits of 24 bits.

A number x in [0, 2) stands for the whole number floor(2^bits x), bits a multiple of 24. It has ``width``
digits, the least first, and the last is the part of x that is whole.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import numba
import numpy as np
from numpy.typing import NDArray

DIGIT: Final = 24  # bits: 2^16 products of two add up in 64
_MASK: Final = np.uint64(2**DIGIT - 1)
_SHIFT: Final = np.uint64(DIGIT)
_TOGETHER: Final = 32  # numbers whose digits are multiplied at once

Digits = NDArray[np.uint32]
Terms = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]  # left, right, ends; see `products`


def to_digits(numbers: Iterable[int], width: int) -> Digits:
    """Digits [number, width] of whole numbers."""
    raw = np.frombuffer(b"".join(x.to_bytes(3 * width, "little") for x in numbers), dtype=np.uint8)
    low, middle, high = raw.reshape(-1, width, 3).astype(np.uint32).transpose(2, 0, 1)
    return np.ascontiguousarray(low | middle << 8 | high << 16)


def to_numbers(digits: Digits) -> list[int]:
    """Whole numbers of digits [width, number]."""
    places = digits.T[..., None] >> np.array([0, 8, 16], dtype=np.uint32)
    rows = (places & 255).astype(np.uint8).reshape(digits.shape[1], -1)
    return [int.from_bytes(row.tobytes(), "little") for row in rows]


@numba.njit(cache=True)
def products(x, y, left, right, ends):  # type: ignore[no-untyped-def]
    """Sums of x[left[i], :, t] y[right[i]] over i from one end to the next, [end, width, t].

    Digits three places and more below the last that is kept are left out: less than one unit. The terms of an
    end, times the width, have to be fewer than 2^16: 32 pods have 17 terms, of 120 digits at most.
    """
    width, count = x.shape[1:]
    found = np.empty((len(ends), width, count), dtype=np.uint32)
    sums = np.zeros((width + 2, _TOGETHER), dtype=np.uint64)
    for start in range(0, count, _TOGETHER):
        i, stop = 0, min(start + _TOGETHER, count)
        near = x[:, :, start:stop].copy()
        for entry, end in enumerate(ends):
            while i < end:
                for p in range(width):
                    some = near[left[i], p]
                    for q in range(max(width - 3 - p, 0), width):
                        digit, place = np.uint64(y[right[i], q]), sums[p + q + 3 - width]
                        if digit:
                            for t in range(len(some)):
                                place[t] += digit * np.uint64(some[t])
                i += 1
            for place in range(width + 2):
                for t in range(stop - start):
                    total = sums[place, t]
                    sums[place, t] = 0
                    if place < width + 1:
                        sums[place + 1, t] += total >> _SHIFT
                    if place > 1:
                        found[entry, place - 2, start + t] = total & _MASK
    return found
