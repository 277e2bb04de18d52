"""Mixtures of many numbers at once, of 48 digits or of as many as it takes.

A number is a sum of k floats, each below the last digit of the one before it. A batch of n is an array of
shape (k, n): whole rows go through the same few additions, which a processor does several at a time.
"""

from __future__ import annotations

from relparallel.reliability.programme.compiling import njit_borrowing

__all__ = ["mixed_long", "mixed_threefold"]

_SPLIT = 134217729.0  # 2^27 + 1 cuts a float into two halves whose products are exact


@njit_borrowing
def mixed_long(d, u, up, down, made, change, work, count):  # type: ignore[no-untyped-def]
    """Mix numbers d and u by their chances.

    Parameters
    ----------
    d, u : float64[k, n]
        What is mixed. No u is above its d.
    up, down : float
        Chances of u and d. The smaller one, whose digits count, multiplies the difference.
    made : float64[k, n]
        To be filled: up u + down d.
    change : float64[n]
        To be filled: d - u, to all digits of a float while it is more than 2^-53k of d.
    work : float64[5 k, n]
        Room.
    count : int
        How many of the n there are.

    Notes
    -----
    O(k^2) operations: k passes over the terms, each of which leaves their rounded sum in front and what
    rounding lost behind it.

    References
    ----------
    Ogita, Rump and Oishi, "Accurate sum and dot product", SIAM Journal on Scientific Computing 26, 2005.
    """
    k = len(d)
    base, factor = (u, down) if down <= up else (d, -up)
    terms, gap = work[: 3 * k], work[3 * k :]
    for i in range(k):
        for n in range(count):
            gap[2 * i, n], gap[2 * i + 1, n] = d[i, n], -u[i, n]
    _distil(gap, k, count)
    for n in range(count):
        total = 0.0
        for i in range(k - 1, -1, -1):
            total += gap[i, n]
        change[n] = max(total, 0.0)
    for i in range(k):
        for n in range(count):
            terms[3 * i, n] = base[i, n]
            terms[3 * i + 1, n], terms[3 * i + 2, n] = _two_product(gap[i, n], factor)
    _distil(terms, k, count)
    for i in range(k):
        for n in range(count):
            made[i, n] = terms[i, n]


@njit_borrowing
def mixed_threefold(d, u, up, down, made, change, count):  # type: ignore[no-untyped-def]
    """The same for k = 3, several times as fast."""
    base, factor = (u, down) if down <= up else (d, -up)
    for n in range(count):
        a, error = _two_sum(d[0, n], -u[0, n])
        b, rest = _two_sum(d[1, n], -u[1, n])
        b, error = _two_sum(b, error)
        a, b, c = _in_order(a, b, (d[2, n] - u[2, n]) + (rest + error))
        change[n] = max(a + (b + c), 0.0)
        a, lost = _two_product(a, factor)
        b, less = _two_product(b, factor)
        x, error = _two_sum(base[0, n], a)
        y, rest = _two_sum(base[1, n], b)
        y, lost = _two_sum(y, lost)
        y, error = _two_sum(y, error)
        z = ((base[2, n] + c * factor) + less) + ((rest + lost) + error)
        made[0, n], made[1, n], made[2, n] = _in_order(x, y, z)


@njit_borrowing
def _in_order(x, y, z):  # type: ignore[no-untyped-def]
    """The same sum, each number below the last digit of the one before it."""
    y, z = _two_sum(y, z)
    x, y = _two_sum(x, y)
    y, z = _two_sum(y, z)
    return x, y, z


@njit_borrowing
def _distil(terms, k, count):  # type: ignore[no-untyped-def]
    """Put the sums of all terms into the first k of them, in place."""
    for first in range(k):
        for i in range(len(terms) - 1, first, -1):
            for n in range(count):
                terms[i - 1, n], terms[i, n] = _two_sum(terms[i - 1, n], terms[i, n])


@njit_borrowing
def _two_product(x, y):  # type: ignore[no-untyped-def]
    """Product of two numbers and what rounding lost (Dekker)."""
    product = x * y
    wide, thin = _halves(x)
    long, short = _halves(y)
    return product, ((wide * long - product) + wide * short + thin * long) + thin * short


@njit_borrowing
def _two_sum(x, y):  # type: ignore[no-untyped-def]
    """Sum of two numbers and what rounding lost (Knuth)."""
    total = x + y
    back = total - x
    return total, (x - (total - back)) + (y - back)


@njit_borrowing
def _halves(x):  # type: ignore[no-untyped-def]
    """Two numbers of 26 bits that add up to x (Veltkamp)."""
    large = _SPLIT * x
    high = large - (large - x)
    return high, x - high
