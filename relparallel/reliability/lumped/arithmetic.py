"""Numbers of the lumped sums, with terms of both signs: long integers, floats for a first look."""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from relparallel.reliability.probability import Chance

Numbers = NDArray[Any]  # of floats, or of Python integers in units of 2^-bits
Exact = Any  # Fraction or int


class Floats:
    """Numbers as floats: the same arithmetic as `Scale` for a rough first look."""

    one: Final = 1.0

    def array(self, values: Iterable[Exact]) -> Numbers:
        """The numbers in this representation."""
        return np.array([float(x) for x in values])

    def times(self, x: Any, y: Any) -> Any:
        """Product of two numbers or arrays."""
        return x * y

    def product(self, x: Numbers, y: Numbers) -> Numbers:
        """Product of two matrices."""
        return np.asarray(x @ y)


class Scale(NamedTuple):
    """Numbers as integers in units of 2^-bits."""

    bits: int

    @property
    def one(self) -> int:
        """The number 1."""
        return 1 << self.bits

    @classmethod
    def of(cls, cores: int, pods: int, smallest: Fraction) -> Scale:
        """Enough bits for 53 correct ones in a result at least ``smallest``, or below all floats.

        Rounding grows with the pods and with the sum of the weights (r - 1)! of all splits: at most
        the number of ordered partitions of the cores and one more, n!/(2 (ln 2)^(n + 1)).
        """
        n = cores + 1
        orders = math.lgamma(n + 1) / math.log(2.0) - (n + 1) * math.log2(math.log(2.0)) - 1.0
        digits = math.log2(smallest.denominator) - math.log2(smallest.numerator)
        return cls(53 + 24 + math.ceil(orders + math.log2(pods) + min(digits, 1100.0)))

    def integer(self, x: Fraction) -> int:
        """The number in units of 2^-bits."""
        return (x.numerator << self.bits) // x.denominator

    def array(self, values: Iterable[Exact]) -> Numbers:
        """The numbers in this representation."""
        return np.array([self.integer(x) for x in values], dtype=object)

    def times(self, x: Any, y: Any) -> Any:
        """Product of two numbers or arrays."""
        return (x * y) >> self.bits

    def product(self, x: Numbers, y: Numbers) -> Numbers:
        """Product of two matrices."""
        return np.asarray((x @ y) >> self.bits)

    def chance(self, up: int) -> Chance:
        """Up- and down-probability as floats, each rounded once."""
        return up / self.one, (self.one - up) / self.one


def exact_up(chance: Chance) -> Fraction:
    """Up-probability as the fraction that the smaller of the two floats stands for."""
    up, down = chance
    return 1 - Fraction(down) if down < up else Fraction(up)


def to_power(x: Numbers, n: int, scale: Scale | Floats) -> Numbers:
    """x^n for n >= 1, by squaring."""
    if n == 1:
        return x
    square = to_power(scale.times(x, x), n // 2, scale)
    return np.asarray(scale.times(square, x)) if n % 2 else square
