"""Numbers of 48 digits, and of as many as it takes: sums of floats, each below the last digit of another."""

from __future__ import annotations

from relparallel.reliability.programme.compiling import njit_borrowing

__all__ = ["mixed_long", "mixed_threefold", "two_product", "two_sum"]

_SPLIT = 134217729.0  # 2^27 + 1 cuts a float into two halves whose products are exact


@njit_borrowing
def mixed_long(value, d, u, up, down, made, at, work):  # type: ignore[no-untyped-def]
    """Mix two numbers by their chances; return value d - value u, which is not negative but for rounding.

    Parameters
    ----------
    value : float64[k numbers]
        Numbers of k floats each, one after the other.
    d, u : int
        Which of them are mixed.
    up, down : float
        Chances of u and d. The smaller one, whose digits count, multiplies the difference.
    made : float64[>= k (at + 1)]
        The mixture becomes its number ``at``.
    work : float64[5 k]
        Room.

    Returns
    -------
    float
        The difference, to all digits of a float while it is more than 2^-53k of value d.

    Notes
    -----
    O(k^2) operations: k passes over the terms, each of which leaves their rounded sum in front and what
    rounding lost behind it.

    References
    ----------
    Ogita, Rump and Oishi, "Accurate sum and dot product", SIAM Journal on Scientific Computing 26, 2005.
    """
    k = len(work) // 5
    base = k * (u if d == u or down <= up else d)
    factor = down if down <= up else -up
    terms, gap = work[: 3 * k], work[3 * k :]
    change = 0.0
    for i in range(k):
        gap[2 * i], gap[2 * i + 1] = value[k * d + i], -value[k * u + i]
    if d != u:
        _distil(gap, k)
        for i in range(k - 1, -1, -1):
            change += gap[i]
    for i in range(k):
        terms[3 * i] = value[base + i]
        terms[3 * i + 1] = terms[3 * i + 2] = 0.0
        if d != u:
            terms[3 * i + 1], terms[3 * i + 2] = two_product(gap[i], factor)
    _distil(terms, k)
    for i in range(k):
        made[k * at + i] = terms[i]
    return max(change, 0.0)


@njit_borrowing
def mixed_threefold(value, d, u, up, down, made, at):  # type: ignore[no-untyped-def]
    """The same for k = 3, several times as fast."""
    base, factor = (u, down) if down <= up else (d, -up)
    x, y, z = value[3 * base], value[3 * base + 1], value[3 * base + 2]
    change = 0.0
    if d != u:
        a, error = two_sum(value[3 * d], -value[3 * u])
        b, rest = two_sum(value[3 * d + 1], -value[3 * u + 1])
        b, error = two_sum(b, error)
        a, b, c = _in_order(a, b, (value[3 * d + 2] - value[3 * u + 2]) + (rest + error))
        change = a + (b + c)
        a, lost = two_product(a, factor)
        b, less = two_product(b, factor)
        x, error = two_sum(x, a)
        y, rest = two_sum(y, b)
        y, lost = two_sum(y, lost)
        y, error = two_sum(y, error)
        x, y, z = _in_order(x, y, ((z + c * factor) + less) + ((rest + lost) + error))
    made[3 * at], made[3 * at + 1], made[3 * at + 2] = x, y, z
    return max(change, 0.0)


@njit_borrowing
def _in_order(x, y, z):  # type: ignore[no-untyped-def]
    """The same sum, each number below the last digit of the one before it."""
    y, z = two_sum(y, z)
    x, y = two_sum(x, y)
    y, z = two_sum(y, z)
    return x, y, z


@njit_borrowing
def _distil(terms, k):  # type: ignore[no-untyped-def]
    """Put the sum of all terms into the first k of them, in place."""
    for first in range(k):
        for i in range(len(terms) - 1, first, -1):
            terms[i - 1], terms[i] = two_sum(terms[i - 1], terms[i])


@njit_borrowing
def two_product(x, y):  # type: ignore[no-untyped-def]
    """Product of two numbers and what rounding lost (Dekker)."""
    product = x * y
    wide, thin = _halves(x)
    long, short = _halves(y)
    return product, ((wide * long - product) + wide * short + thin * long) + thin * short


@njit_borrowing
def two_sum(x, y):  # type: ignore[no-untyped-def]
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
