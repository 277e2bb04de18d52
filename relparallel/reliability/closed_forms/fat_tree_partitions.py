"""The pods of a fat-tree whose core cables fail too: Moebius inversion over partitions of the pods.

Letters: ``k`` pods; ``h`` groups of ``h`` cores; ``c``, ``a``, ``q`` the chances that a core is up, that an
aggregation switch is up, that a cable between them is down. A partition cuts the pods into ``b`` blocks of
sizes ``s_1 >= ... >= s_b``; Phi is the probability that no core of one group joins two blocks.

The terms alternate and are up to (b-1)! times larger than their sum. All arithmetic is therefore in whole
numbers over ``2**bits``, with a bound on what rounding can have done, and with more bits until that bound is
far below both results. The partial sums over b = 2, 3, .. blocks lie in turn above and below the sum, as
those of every inversion over a geometric lattice do: where failures are rare, few blocks settle all digits.

References
----------
Rota, "On the foundations of combinatorial theory I: theory of Moebius functions", Zeitschrift fuer
Wahrscheinlichkeitstheorie 2, 1964.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import cache
from operator import mul
from typing import Final, NamedTuple

_PARTITIONS: Final = 10_000  # all 8,349 of 32 pods; fewer of larger fabrics, where each is more work
_KEPT: Final = 56  # bits of both results that rounding must leave alone


class Bracket(NamedTuple):
    """Chance that the pods are together, and the least and largest chance that they are not."""

    together: float
    lower: float
    upper: float


class Group:
    """One group of cores in whole numbers over ``one``: chances of cores, and of a block to touch some."""

    def __init__(
        self,
        k: int,
        core_up: float | Fraction,
        aggregation_up: float | Fraction,
        link_up: float | Fraction,
        bits: int,
    ) -> None:
        self.k, self.h, self.bits, self.one = k, k // 2, bits, 1 << bits
        c, a, link = (int(Fraction(p) * self.one) for p in (core_up, aggregation_up, link_up))
        core = [self.powers(p, self.h) for p in (c, self.one - c)]
        self.live = [
            math.comb(self.h, j) * self.times(core[0][j], core[1][-1 - j]) for j in range(self.h + 1)
        ]
        misses = self.powers(self.one - link, self.h)
        self.missed = [self.powers(self.one - a + self.times(a, miss), k) for miss in misses]
        self.touched, self.shares, self.last = cache(self._touched), cache(self._shares), cache(self._last)

    def times(self, x: int, y: int) -> int:
        """Product of two chances."""
        return (x * y) >> self.bits

    def powers(self, x: int, most: int) -> list[int]:
        """Powers 0..most of a chance."""
        powers = [self.one]
        for _ in range(most):
            powers.append(self.times(powers[-1], x))
        return powers

    def _touched(self, s: int) -> list[list[int]]:
        """Chance that s pods touch i given cores of j, and no other of them, over i!; reversed in i."""
        return [[max(x, 0) for x in row] for row in self.exactly([row[s] for row in self.missed])]

    def exactly(self, missed: list[int]) -> list[list[int]]:
        """The same from the chance to miss m given cores, or from a derivative of it."""

        def touched(i: int, rest: int) -> int:
            total: int = sum((-1) ** r * math.comb(i, r) * missed[rest + r] for r in range(i + 1))
            return total // math.factorial(i)

        return [[touched(i, j - i) for i in range(j, -1, -1)] for j in range(self.h + 1)]

    def _shares(self, sizes: tuple[int, ...]) -> list[list[int]]:
        """Chance that the blocks touch d given cores of j, each core one block at most, over d!."""
        if not sizes:
            return [[self.one] + [0] * j for j in range(self.h + 1)]
        return [
            [sum(map(mul, share, mine[j - d :])) >> self.bits for d in range(j + 1)]
            for j, (share, mine) in enumerate(
                zip(self.shares(sizes[:-1]), self.touched(sizes[-1]), strict=True)
            )
        ]

    def _last(self, sizes: tuple[int, ...]) -> list[list[int]]:
        """Weights that turn shares of the other blocks into Phi_j: the last blocks, and cores of no block."""
        if not sizes:
            return [
                [math.factorial(j) // math.factorial(j - d) * self.one for d in range(j + 1)]
                for j in range(self.h + 1)
            ]
        return [
            [sum(map(mul, reversed(mine), rest[d:])) >> self.bits for d in range(j + 1)]
            for j, (mine, rest) in enumerate(zip(self.touched(sizes[0]), self.last(sizes[1:]), strict=True))
        ]

    def cut(self, parts: tuple[int, ...]) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The last two blocks, and all of one or two pods, recur: they are kept apart."""
        most = min(len(parts) - 2, sum(s > 2 for s in parts))
        return parts[:most], parts[most:]

    def phis(self, first: tuple[int, ...], last: tuple[int, ...]) -> list[int]:
        """Chance that no core joins two blocks, by the number of live cores."""
        return [
            sum(map(mul, share, weights)) >> self.bits
            for share, weights in zip(self.shares(first), self.last(last), strict=True)
        ]

    def phi(self, phis: list[int]) -> int:
        """The same for any number of live cores."""
        phi: int = sum(map(mul, self.live, phis)) >> self.bits
        return min(phi, self.one)


def pods_apart(k: int, core_up: float, aggregation_up: float, core_link_up: float, terminals: int) -> Bracket:
    """Chance that ``terminals`` of k pods are not together.

    The bracket has a width only where k > 32 and failures are too frequent for partitions into few blocks.
    """
    chances = (core_up, aggregation_up, core_link_up)
    digits = min(digits_alone(k, *chances), 1074)
    while True:
        lower, upper = _alternating(k, chances, terminals, digits + _KEPT)
        together = 1 - (lower + upper) / 2
        if lower < upper or digits > 1074 or together * 2**digits >= 1:
            return Bracket(*map(_inside, (together, lower, upper)))
        digits = 1080 if together <= 0 else 1 + int(1 / together).bit_length()


def pods_joined(k: int, ups: Sequence[Fraction], smallest: Fraction) -> Fraction:
    """Probability that all of at most 32 pods are together, to a few bits of a number that may be tiny."""
    digits = smallest.denominator.bit_length() - smallest.numerator.bit_length() + _KEPT
    return 1 - _alternating(k, ups, k, digits)[1]


def _alternating(
    k: int, chances: Sequence[float | Fraction], terminals: int, digits: int
) -> tuple[Fraction, Fraction]:
    """Least and largest unreliability by the partial sums, each off by less than 2^-digits."""
    ways, visited, groups = math.comb(k, terminals), 0, dict[int, Group]()
    joins = [ways - math.comb(k - s, terminals) for s in range(k + 1)]
    before = total = Fraction(0)
    for b in range(2, k + 1):
        visited += _count(k, b, k)
        if visited * max(k / 32, 1) ** 3 > _PARTITIONS and b > 3:
            break
        bits = -(-(digits + rounding(k, b)) // 128) * 128  # few different groups, whose tables are shared
        group = groups.setdefault(bits, Group(k, *chances, bits))
        term = 0
        for parts in partitions(k, b, k):
            separate = sum(joins[s] for s in parts) - ways
            term += (
                arrangements(k, parts)
                * separate
                * group.powers(group.phi(group.phis(*group.cut(parts))), k // 2)[-1]
            )
        step = Fraction(term * math.factorial(b - 2), ways << group.bits)
        before, total = total, total + (-1) ** b * step
        if step * 2**digits < 1:
            return total, total
    else:
        return total, total
    return min(before, total), max(before, total)


def rounding(k: int, b: int) -> int:
    """Bits that rounding can spoil in the term of b blocks.

    A power of a chance is off by at most k (h + 4), a sum over touched cores by 2^h of these, a share or
    weight by b 2^h of those, and Phi by h! of those; its power by h times as many, in at most b^k / b! times
    (b - 1)! terms.
    """
    h = k // 2
    table = 2**h * k * (h + 4) + 1
    phi = h * (b + 2) * 2**h * table * math.factorial(h) * 4
    return int(phi * b ** (k - 1) * k).bit_length() + 1


def partitions(n: int, parts: int, largest: int) -> Iterator[tuple[int, ...]]:
    """Descending sizes, none above ``largest``, of so many parts of n."""
    if parts == 1:
        yield (n,)
        return
    for s in range(-(-n // parts), min(largest, n - parts + 1) + 1):
        for rest in partitions(n - s, parts - 1, s):
            yield (s, *rest)


def arrangements(k: int, parts: tuple[int, ...]) -> int:
    """Set partitions of k pods with these block sizes."""
    alike = math.prod(map(math.factorial, Counter(parts).values()))
    return math.factorial(k) // math.prod(map(math.factorial, parts)) // alike


@cache
def _count(n: int, parts: int, largest: int) -> int:
    """Partitions of n into so many parts, none above ``largest``."""
    if parts == 0 or n < parts or n > parts * largest:
        return int(n == parts == 0)
    return _count(n - largest, parts - 1, largest) + _count(n, parts, largest - 1)


def digits_alone(k: int, c: float, a: float, link: float) -> int:
    """Bits before the first digit of the chance that one pod is cut off."""
    h = k // 2
    return int(-h * math.log2(max(1.0 - a + a * (1.0 - c * link) ** h, 2.0**-200))) + 1


def _inside(x: Fraction) -> float:
    """Nearest number in [0, 1]."""
    return float(min(max(x, Fraction(0)), Fraction(1)))
