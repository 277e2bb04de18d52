"""How much each part matters where the pods of a fat-tree are joined by cores whose cables fail too.

The sum of `fat_tree_partitions` is a polynomial in the chances of all parts, and one sweep back over its
tables gives the derivative by every one of them: what multiplies a table entry in the sum is gathered from
all partitions first. Sums that go forth as a convolution come back as a correlation. Letters are those of
`fat_tree_partitions`, and so is the arithmetic: whole numbers over ``2**bits``.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from operator import add, mul
from typing import Any, Final, NamedTuple

from relparallel.reliability.closed_forms.fat_tree_partitions import (
    Group,
    arrangements,
    digits_alone,
    partitions,
    rounding,
)
from relparallel.reliability.closed_forms.form_slopes import ClassSlopes
from relparallel.reliability.closed_forms.pivotal_blocks import pivotal_slopes

__all__ = ["slopes_of_partitions"]

_KEPT: Final = 48  # bits of every slope that rounding must leave alone
_SPARE: Final = 8  # of these that may be lost all the same
_STEEPER: Final = 32  # more bits that the factors of a derivative can spoil
_FEWEST_DIGITS: Final = 40  # which saves a second attempt more often than it lengthens the first
_MOST_DIGITS: Final = 1400  # below all floats, with the bits that are kept

Sizes = tuple[int, ...]
Rows = list[list[int]]  # [live cores j, cores 0..j]


class _Weights(NamedTuple):
    """What a partition counts: its chance by ``separate``; terminal pods of blocks by the other two."""

    separate: int
    others: int
    plain: int


class _Swept(Group):
    """A group of cores that remembers which partitions were summed, and with which weights."""

    def __init__(self, k: int, core_up: float, aggregation_up: float, link_up: float, bits: int) -> None:
        super().__init__(k, core_up, aggregation_up, link_up, bits)
        c, a, link = (int(Fraction(p) * self.one) for p in (core_up, aggregation_up, link_up))
        ups, downs = self.powers(c, self.h), self.powers(self.one - c, self.h)
        self._one_core = [
            (math.comb(self.h - 1, j - 1) * self.times(ups[j - 1], downs[self.h - j]) if j else 0)
            - (math.comb(self.h - 1, j) * self.times(ups[j], downs[self.h - 1 - j]) if j < self.h else 0)
            for j in range(self.h + 1)
        ]
        misses = self.powers(self.one - link, self.h)
        self._rises = (
            [miss - self.one for miss in misses],
            [0, *(-m * self.times(a, misses[m - 1]) for m in range(1, self.h + 1))],
        )
        self.raised = cache(self._raised)
        self.core = 0  # derivative by one core
        self._summed: list[tuple[Sizes, Sizes, _Weights]] = []

    def add(self, parts: Sizes, weights: _Weights) -> int:
        """Phi to the power h; the weights are those of its derivative."""
        prefix, suffix = self.cut(parts)
        phis = self.phis(prefix, suffix)
        phi = self.phi(phis)
        power = self.powers(phi, self.h - 1)[-1]
        mine = _Weights(*(x * power for x in weights))
        self._summed.append((prefix, suffix, mine))
        self.core += self.times(mine.separate, sum(map(mul, self._one_core, phis)) >> self.bits)
        return self.times(power, phi)

    def sweep(self, kind: int) -> dict[int, Rows]:
        """Derivative by the entries of `touched` by the size of a block, with one of the weights."""
        by_suffix, by_prefix = (defaultdict[Sizes, list[tuple[Sizes, int]]](list) for _ in range(2))
        for prefix, suffix, weights in self._summed:
            by_suffix[suffix].append((prefix, weights[kind]))
            by_prefix[prefix].append((suffix, weights[kind]))
        of_touched: dict[int, Rows] = {}
        for found, table, last in ((by_suffix, self.shares, True), (by_prefix, self.last, False)):
            levers = {sizes: self._gathered(others, table) for sizes, others in found.items()}
            self._back(levers, of_touched, last=last)
        return of_touched

    def slope(self, of_touched: dict[int, Rows], kind: int, worth: Callable[[int], int]) -> int:
        """Derivative by the chance of all switches (0) or cables (1); what each counts by size of block."""
        total = 0
        for s, lever in of_touched.items():
            rows = zip(lever, self.raised(s, kind), strict=True)
            total += worth(s) * sum(sum(map(mul, mine, row)) for mine, row in rows)
        return total >> self.bits

    def _raised(self, s: int, kind: int) -> Rows:
        """Derivative of `touched`, not reversed, by a chance of all s pods."""
        rises = zip(self.missed, self._rises[kind], strict=True)
        rows = self.exactly([s * self.times(row[s - 1], rise) for row, rise in rises])
        return [row[::-1] for row in rows]

    def _gathered(self, found: list[tuple[Sizes, int]], table: Callable[[Sizes], Rows]) -> Rows:
        """Weighted sum of tables, times the chance of so many live cores."""
        weights, bits = [weight for _, weight in found], 2 * self.bits
        tables = zip(*(table(sizes) for sizes, _ in found), strict=True)
        return [
            [sum(map(mul, weights, column)) * live >> bits for column in zip(*rows, strict=True)]
            for live, rows in zip(self.live, tables, strict=True)
        ]

    def _back(self, levers: dict[Sizes, Rows], of_touched: dict[int, Rows], *, last: bool) -> None:
        """From what multiplies the tables of many blocks to what multiplies those of fewer, and of one."""
        for length in range(max(map(len, levers), default=0), 0, -1):
            for sizes in [sizes for sizes in levers if len(sizes) == length]:
                lever = levers.pop(sizes)
                s, fewer = (sizes[0], sizes[1:]) if last else (sizes[-1], sizes[:-1])
                mine, rest = self.touched(s), (self.last if last else self.shares)(fewer)
                first, second = (lever, rest) if last else (rest, lever)
                one = [self._correlated(x, y) for x, y in zip(first, second, strict=True)]
                _gather(of_touched, s, one)
                if fewer and last:
                    back = [self._convolved(x, y) for x, y in zip(lever, mine, strict=True)]
                    _gather(levers, fewer, back)
                elif fewer:
                    back = [self._correlated(y[::-1], x) for x, y in zip(lever, mine, strict=True)]
                    _gather(levers, fewer, back)

    def _correlated(self, x: list[int], y: list[int]) -> list[int]:
        """Sum over d of x[d] y[d + i], by i."""
        return [sum(map(mul, x, y[i:])) >> self.bits for i in range(len(x))]

    def _convolved(self, x: list[int], reverse: list[int]) -> list[int]:
        """Sum over d of x[d] y[i - d], by i, y given from its end."""
        j = len(x) - 1
        return [sum(map(mul, x, reverse[j - i :])) >> self.bits for i in range(j + 1)]


def _gather(found: dict[Any, Rows], key: Any, rows: Rows) -> None:
    """Add rows to those of a key."""
    known = found.get(key)
    found[key] = [list(map(add, x, y)) for x, y in zip(known, rows, strict=True)] if known else rows


def slopes_of_partitions(
    k: int, core_up: float, aggregation_up: float, core_link_up: float, terminals: int
) -> ClassSlopes:
    """Slopes of all classes where ``terminals`` of k pods have to be together; see `pods_apart`.

    Parameters
    ----------
    k : int
        Pods, even, from 4 to 32.
    core_up, aggregation_up, core_link_up : float
        As for `fat_tree_pods_connected`, none of them 0.
    terminals : int
        Pods that have to be together, 2 to k.

    Returns
    -------
    ClassSlopes
        Of a class whose parts can fail: to ten digits at least, but where it is below all floats.

    Notes
    -----
    `pivotal_slopes` where failures are rare: less work than `pods_apart`. Else the derivative of its sum in
    whole numbers. Both states of a part have a sum over b blocks whose partial sums lie above and below in
    turn. The step of the sum itself is their mean, so that a step over the rarer state's chance bounds what
    is left out. One to five times the work of `pods_apart`, more for 20 pods of which some are no terminals.

    Examples
    --------
    >>> slopes = slopes_of_partitions(4, 0.9, 1.0, 0.9, 4)
    >>> print(f"{slopes.core:.6f} {slopes.near_link:.6f}")
    0.020348 0.006093
    """
    ups = core_up, aggregation_up, core_link_up
    return pivotal_slopes(k, *ups, terminals) or _whole(k, ups, terminals)


def _whole(k: int, ups: tuple[float, float, float], terminals: int) -> ClassSlopes:
    """The same in whole numbers."""
    kinds = 1 if terminals == k else 2  # of pods
    digits = min(max(_expected_digits(k, *ups, kinds), _FEWEST_DIGITS), _MOST_DIGITS)
    while True:
        found = _slopes(k, ups, terminals, digits + _KEPT)
        of_class = found[:1], found[1 : 1 + kinds], found[3 : 3 + kinds]
        least = min(min(slopes, key=float) for up, slopes in zip(ups, of_class, strict=True) if up < 1)
        if digits >= _MOST_DIGITS or least * 2 ** (digits + _SPARE) >= 1:
            core, near, far, near_link, far_link = (max(float(x), 0.0) for x in found)
            return ClassSlopes(core, near, far, near_link, far_link)
        digits = 2 * digits if least <= 0 else 1 + int(1 / least).bit_length()


def _expected_digits(k: int, c: float, a: float, link: float, kinds: int) -> int:
    """Bits before the first digit of the least slope, to begin with.

    That of a cable from which a pod hangs, which has no other group and no other cable in its own; of a far
    pod's cable, about that where two pods hang so, and all others do at one group more.
    """
    h, alone = k // 2, digits_alone(k, c, a, link)
    cables = 0 if c * link == 1 else int(-(h - 1) * math.log2(1 - c * link))
    return alone + cables if kinds == 1 else 3 * alone * (h - 1) // h + 9 * cables // 10


def _slopes(k: int, ups: tuple[float, float, float], terminals: int, digits: int) -> list[Fraction]:
    """By a core, near and far switches, and near and far cables, each off by less than 2^-digits."""
    ways, groups = math.comb(k, terminals), dict[int, _Swept]()
    joins = [ways - math.comb(k - s, terminals) for s in range(k + 1)]
    besides = [math.comb(k - 1, terminals - 1) - math.comb(k - 1 - s, terminals - 1) for s in range(k)] + [0]
    rarest = min(min(up, 1 - up) for up in ups if up < 1)
    for b in range(2, k + 1):
        bits = -(-(digits + rounding(k, b) + _STEEPER) // 128) * 128
        group = groups[bits] = groups.get(bits) or _Swept(k, *ups, bits)
        term = 0
        for parts in partitions(k, b, k):
            separate, count = sum(joins[s] for s in parts) - ways, arrangements(k, parts)
            signed = (-1) ** b * math.factorial(b - 2) * count
            near = sum(besides[s] for s in parts)
            term += count * separate * group.add(parts, _Weights(signed * separate, signed * near, signed))
        if Fraction(term * math.factorial(b - 2), ways << bits) * 2**digits < Fraction(rarest):
            break
    total = [Fraction(0)] * 5
    for bits, group in groups.items():
        total = [
            x - Fraction(y, ways << bits)
            for x, y in zip(total, _of_group(group, k, terminals, besides), strict=True)
        ]
    far = max(k - terminals, 1)
    parts = 1, terminals, far, terminals * (k // 2), far * (k // 2)
    return [x / count for x, count in zip(total, parts, strict=True)]


def _of_group(group: _Swept, k: int, terminals: int, besides: list[int]) -> list[int]:
    """Derivatives by one core, and by all switches and cables of near and of far pods in one group."""
    every, found = group.sweep(0), [group.core]
    if terminals < k:
        plain = group.sweep(2)
        others = group.sweep(1) if terminals > 2 else {}
    for kind in range(2):
        near = total = group.slope(every, kind, lambda s: 1)
        if terminals == 2:  # s pods join one of k - 1 others in s ways: the others join it in k - s
            near = group.slope(plain, kind, lambda s: k - s)
        elif terminals < k:
            near = group.slope(others, kind, lambda s: 1) - group.slope(plain, kind, besides.__getitem__)
        found += [near, total - near]
    return found
