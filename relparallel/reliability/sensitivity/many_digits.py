"""Mixtures of many chances at once, in whole numbers of as many bits as it takes.

A chance x is the whole number x 2^30w, cut off, in w words of 30 bits, the least one first; 1 is given as one
unit less. A batch of n chances is an array of shape (w, n): whole rows go through the same few steps, which a
processor does several at a time, since a word fits in 32 bits and three products of two of them in 64.
"""

from __future__ import annotations

import math

import numpy as np

from relparallel.reliability.programme.compiling import njit_borrowing

BITS = 30  # of a word
FULL = np.uint32(2**BITS - 1)  # the largest one
_LONG = np.uint64(FULL)
_SIGN, _WIDE = np.uint32(31), np.uint64(BITS)
_MANTISSA = 53  # bits of a float


@njit_borrowing
def mixed(d, u, up, down, made, change, gap, carry, count):  # type: ignore[no-untyped-def]
    """Mix chances d and u by those of two cases.

    Notes
    -----
    O(w): the smaller chance is a float, whose 53 bits are in three words.
    """
    _subtract(d, u, change, gap, carry[0], count)
    shift, low, middle, high = _in_words(min(up, down))
    words, product, total = len(d), carry[0], carry[1]
    base, flip, first = (u, np.uint32(0), np.uint64(0)) if down <= up else (d, FULL, np.uint64(1))
    for n in range(count):
        product[n], total[n] = np.uint64(0), first
    for i in range(-1, words):  # from the place below the last: what it carries; gap[-1] and beyond are 0
        at = min(i + shift, words), min(i + shift - 1, words), min(i + shift - 2, words)
        some, more, most = gap[at[0]], gap[at[1]], gap[at[2]]
        for n in range(count):
            term = low * np.uint64(some[n]) + middle * np.uint64(more[n]) + high * np.uint64(most[n])
            term += product[n]
            product[n] = term >> _WIDE
            if i >= 0:
                term = total[n] + np.uint64(base[i, n]) + np.uint64(np.uint32(term & _LONG) ^ flip)
                total[n] = term >> _WIDE
                made[i, n] = np.uint32(term & _LONG)


@njit_borrowing
def _subtract(d, u, change, gap, borrow, count):  # type: ignore[no-untyped-def]
    """Difference of chances in words, and as a float; 0 where rounding made it negative."""
    words, negative = len(d), np.uint64(0)
    for n in range(count):
        borrow[n], change[n], gap[words, n] = np.uint64(0), 0.0, np.uint32(0)
    for i in range(words):
        unit = math.ldexp(1.0, BITS * (i - words))
        for n in range(count):
            word = np.uint32(d[i, n] - u[i, n] - np.uint32(borrow[n]))
            borrow[n] = np.uint64(word >> _SIGN)
            gap[i, n] = word & FULL
            change[n] += np.float64(np.int32(gap[i, n])) * unit
    for n in range(count):
        negative |= borrow[n]
    if negative:
        for n in range(count):
            if borrow[n]:
                change[n] = 0.0
                for i in range(words):
                    gap[i, n] = np.uint32(0)


@njit_borrowing
def _in_words(chance):  # type: ignore[no-untyped-def]
    """Three words, the least one first, that are a chance when they stand ``shift`` words lower."""
    fraction, exponent = math.frexp(chance)
    digits, below = np.int64(math.ldexp(fraction, _MANTISSA)), _MANTISSA - exponent
    shift = -(-below // BITS)
    left = BITS * shift - below
    low = (digits & FULL) << left
    high = (low >> BITS) + ((digits >> BITS) << left)
    return shift, np.uint64(low & FULL), np.uint64(high & FULL), np.uint64(high >> BITS)
