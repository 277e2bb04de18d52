"""Arithmetic of the finite field GF(q), vectorised, for the designs made from finite geometry.

An element is a number 0..q-1 whose base-p digits are the coefficients of a polynomial over the integers
modulo p, where q = p^m; 0 and 1 are themselves. Products go through powers of a primitive element.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from relparallel._checks import require_int
from relparallel.topology._arrays import IntArray

_LARGEST = 2**13  # two q x q grids of switches pass the limit of what is built long before


class FiniteField:
    """GF(q) for a prime power q of at most 8192."""

    def __init__(self, q: int) -> None:
        self.q: int = require_int(q=q, at_least=2, at_most=_LARGEST)
        self.p = next(p for p in range(2, q + 1) if q % p == 0)
        self.m = next(m for m in range(1, 14) if self.p**m >= q)
        if self.p**self.m != q:
            raise ValueError(f"q must be a prime power, for there is no field of other size, got {q}")

    def add(self, a: IntArray, b: IntArray) -> IntArray:
        """Sum: digit by digit modulo p."""
        places = self.p ** np.arange(self.m)
        digits = (a[..., None] // places + b[..., None] // places) % self.p
        return np.asarray((digits * places).sum(axis=-1))

    def multiply(self, a: IntArray, b: IntArray) -> IntArray:
        """Product: 0, or the power with the sum of both exponents."""
        exponent = (self._logarithms[a] + self._logarithms[b]) % (self.q - 1)
        return np.where((a == 0) | (b == 0), 0, self.powers[exponent])

    def negate(self, a: IntArray) -> IntArray:
        """Additive inverse: p - 1 times the element."""
        return self.multiply(a, np.array(self.p - 1))

    def invert(self, a: IntArray) -> IntArray:
        """Multiplicative inverse of elements that are not 0."""
        return self.powers[-self._logarithms[a] % (self.q - 1)]

    @cached_property
    def powers(self) -> IntArray:
        """Powers 0..q-2 of a primitive element: every element but 0, once."""
        return next(c for c in map(self._cycle, range(1, self.q)) if c.size == self.q - 1)

    @cached_property
    def _logarithms(self) -> IntArray:
        logarithms = np.zeros(self.q, dtype=np.int64)
        logarithms[self.powers] = np.arange(self.q - 1)
        return logarithms

    def _cycle(self, low: int) -> IntArray:
        """Powers of x until 1 returns, where x^m is replaced by the polynomial with the digits of low."""
        times = self._times_x(low).tolist()
        found = [1]
        while (following := times[found[-1]]) > 1 and len(found) < self.q:
            found.append(following)
        return np.array(found)

    def _times_x(self, low: int) -> IntArray:
        """Every element times x: its digits move up, and the highest becomes a multiple of x^m."""
        places = self.p ** np.arange(self.m)
        high, rest = np.divmod(np.arange(self.q), self.p ** (self.m - 1))
        digits = (rest * self.p)[:, None] // places + high[:, None] * (low // places % self.p)
        return np.asarray((digits % self.p * places).sum(axis=1))
