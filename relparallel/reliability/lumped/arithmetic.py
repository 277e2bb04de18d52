"""Numbers of the lumped sums: integers of any length, floats for a rough first look, and both with slopes.

The sums of `lumping` have terms of both signs, so that they are made of integers in units of 2^-bits. A
*dual* number holds a value and its derivatives by some chances; sums and products of duals obey the product
rule, so that a sum written once gives its slopes as well, as exact as itself and without any difference.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from relparallel.reliability.chances import Chance

Numbers = NDArray[Any]  # of floats, or of Python integers in units of 2^-bits
Exact = Any  # Fraction, Dyadic, Dual of these, or int


@dataclass(frozen=True, slots=True, eq=False)
class Dyadic:
    """The fraction units / 2^bits, which sums and products need not reduce."""

    units: int
    bits: int

    @classmethod
    def of(cls, x: Fraction) -> Dyadic:
        """The same number; ValueError if its denominator is no power of two."""
        bits = x.denominator.bit_length() - 1
        if x.denominator != 1 << bits:
            raise ValueError(f"x must have a power of two for denominator, got {x}")
        return cls(x.numerator, bits)

    @property
    def numerator(self) -> int:
        """Units of 1 / `denominator`."""
        return self.units

    @property
    def denominator(self) -> int:
        """2^bits."""
        return 1 << self.bits

    def __add__(self, other: Dyadic | int) -> Dyadic:
        if isinstance(other, int):
            return Dyadic(self.units + (other << self.bits), self.bits) if other else self
        more = self.bits - other.bits
        if more >= 0:
            return Dyadic(self.units + (other.units << more), self.bits)
        return Dyadic((self.units << -more) + other.units, other.bits)

    def __mul__(self, other: Dyadic | int) -> Dyadic | int:
        if isinstance(other, int):
            return Dyadic(self.units * other, self.bits) if other else 0  # most slopes of a dual are 0
        return Dyadic(self.units * other.units, self.bits + other.bits)

    def __pow__(self, n: int) -> Dyadic:
        return Dyadic(self.units**n, self.bits * n)

    def __rsub__(self, other: int) -> Dyadic:
        return Dyadic((other << self.bits) - self.units, self.bits)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, (int, Dyadic)):
            return NotImplemented
        return self.numerator * other.denominator == other.numerator * self.denominator

    def __float__(self) -> float:
        return self.units / (1 << self.bits)

    __hash__ = None  # type: ignore[assignment]
    __radd__ = __add__
    __rmul__ = __mul__


@dataclass(frozen=True, slots=True)
class Dual:
    """A fraction and its derivatives by some variables; of x itself the derivative is 1."""

    value: Any
    slopes: tuple[Any, ...]

    def __add__(self, other: Exact) -> Dual:
        if not isinstance(other, Dual):
            return Dual(self.value + other, self.slopes)
        return Dual(self.value + other.value, tuple(map(operator.add, self.slopes, other.slopes)))

    def __mul__(self, other: Exact) -> Dual:
        if not isinstance(other, Dual):
            return self if other == 1 else Dual(self.value * other, tuple(x * other for x in self.slopes))
        a, b = self.value, other.value
        pairs = zip(self.slopes, other.slopes, strict=True)  # most slopes are 0
        slopes = tuple(((x * b + a * y if y else x * b) if x else a * y if y else 0) for x, y in pairs)
        return Dual(a * b, slopes)

    def __pow__(self, n: int) -> Dual:
        inner = n * self.value ** max(n - 1, 0)
        return Dual(self.value**n, tuple(inner * slope for slope in self.slopes))

    def __rsub__(self, other: Exact) -> Dual:
        return self.__mul__(-1).__add__(other)

    __radd__ = __add__
    __rmul__ = __mul__


class Floats:
    """Numbers as floats: the same arithmetic as `Scale` for a rough first look."""

    one: Final = 1.0

    def array(self, values: Iterable[Exact]) -> Numbers:
        """The numbers in this representation."""
        return np.array([float(x) for x in values])

    def rounded(self, x: Any) -> Any:
        """The sums of products that they are already."""
        return x

    def times(self, x: Any, y: Any) -> Any:
        """Product of two numbers or arrays."""
        return x * y

    def crossed(self, x: Numbers, y: Numbers) -> Numbers:
        """The same of two arrays."""
        return np.asarray(x * y)

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
        """Enough bits for 53 correct ones in a result that is at least ``smallest``, or below all floats.

        Rounding grows with the pods and with the sum of the weights (r - 1)! of all splits: at most the
        number of ordered partitions of the cores and one more, n!/(2 (ln 2)^(n + 1)).
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

    def rounded(self, x: Any) -> Any:
        """Sums of products of two numbers as numbers."""
        return x >> self.bits

    def times(self, x: Any, y: Any) -> Any:
        """Product of two numbers or arrays."""
        return (x * y) >> self.bits

    def crossed(self, x: Numbers, y: Numbers) -> Numbers:
        """The same of two arrays."""
        return np.asarray((x * y) >> self.bits)

    def product(self, x: Numbers, y: Numbers) -> Numbers:
        """Product of two matrices."""
        return np.asarray((x @ y) >> self.bits)

    def chance(self, up: int) -> Chance:
        """Up- and down-probability as floats, each rounded once."""
        return up / self.one, (self.one - up) / self.one


class Duals(NamedTuple):
    """Duals of numbers of a scale: the first axis holds the value and then the slopes."""

    scale: Scale | Floats
    slopes: int

    def array(self, values: Iterable[Exact]) -> Numbers:
        """The numbers in this representation, [1 + slopes, numbers]; of a fraction the slopes are 0."""
        flat = Dual(0, (0,) * self.slopes)
        duals = [x if isinstance(x, Dual) else flat + x for x in values]
        lines = zip(*((x.value, *x.slopes) for x in duals), strict=True)
        return np.stack([self.scale.array(line) for line in lines])

    def times(self, x: Any, y: Any) -> Any:
        """Product of two arrays."""
        product = x * y[:1]
        product[1:] += x[:1] * y[1:]
        return self.scale.rounded(product)

    def crossed(self, x: Numbers, y: Numbers) -> Numbers:
        """Product of two arrays that have slopes by different chances: y's, then x's."""
        return np.concatenate([self.scale.times(x[:1], y), self.scale.times(x[1:], y[:1])])

    def product(self, x: Numbers, y: Numbers) -> Numbers:
        """The same of two stacks of matrices."""
        return np.concatenate([self.scale.product(x[:1], y), self.scale.product(x[1:], y[:1])])


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
