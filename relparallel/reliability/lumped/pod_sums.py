"""The terms of the sum over all splits of the cores, in integers of any length or in floats.

Letters: q is the down-probability of a link between core and aggregation switch. In a plane with n cores in
blocks and s live cores outside them, a switch that is up is coloured by a block of j cores with probability
q^(n + s - j) (1 - q^j), free with q^(n + s), idle with q^n (1 - q^s).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, reduce
from itertools import combinations
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from relparallel.reliability.chances import Chance
from relparallel.reliability.lumped.pod_partitions import Layouts, set_partitions
from relparallel.reliability.lumped.pod_tables import Table

__all__ = ["Floats", "Numbers", "Scale", "Term", "Uplinks", "exact_up", "signed_ways", "to_power"]

Numbers = NDArray[Any]  # of floats, or of Python integers in units of 2^-bits
States = tuple[Numbers, Numbers, Numbers, Numbers]  # no link to a core outside; down; free; idle
Outside = Sequence[tuple[int, ...]]  # live cores of each plane outside the blocks, [choices, planes]


class Term(NamedTuple):
    """A set of aggregation switches, by index in the pod, in blocks that share a colour each."""

    coloured: tuple[int, ...]
    blocks: tuple[tuple[int, ...], ...]

    @property
    def sizes(self) -> tuple[int, ...]:
        """Switches of each block, descending."""
        return tuple(sorted(map(len, self.blocks), reverse=True))


class Floats:
    """Numbers as floats: the same arithmetic as `Scale` for a rough first look."""

    one: Final = 1.0

    def array(self, values: Iterable[Fraction]) -> Numbers:
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

    def array(self, values: Iterable[Fraction]) -> Numbers:
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


@dataclass(frozen=True)
class Uplinks:
    """The aggregation switches of one pod and their links to the cores.

    Parameters
    ----------
    planes, cores, switches : int
        Planes, cores of each plane, and aggregation switches of the pod in each plane.
    up, link_up : Fraction
        Of an aggregation switch, and of its link to a core.
    scale : Scale or Floats
        Of the numbers.
    """

    planes: int
    cores: int
    switches: int
    up: Fraction
    link_up: Fraction
    scale: Scale | Floats

    @cached_property
    def terms(self) -> list[Term]:
        """All sets of coloured switches with all set partitions: Bell(number of switches + 1)."""
        width = range(self.planes * self.switches)
        chosen = (some for size in range(len(width) + 1) for some in combinations(width, size))
        return [Term(some, tuple(blocks)) for some in chosen for blocks in set_partitions(some)]

    @cached_property
    def miss(self) -> Numbers:
        """q^j for all numbers j of cores."""
        return self.scale.array((1 - self.link_up) ** j for j in range(self.cores + 1))

    def core_chances(self, sizes: tuple[int, ...], outside: Outside, core_up: Fraction) -> Numbers:
        """Probability that the cores in the blocks are up and just so many others, [choices]."""
        chances = []
        for others in outside:
            up = sum(sizes) + sum(others)
            ways = math.prod(math.comb(self.cores - n, s) for n, s in zip(sizes, others, strict=True))
            down = self.planes * self.cores - up
            chances.append(ways * core_up**up * (1 - core_up) ** down)
        return self.scale.array(chances)

    def power_sums(self, some: Layouts) -> Numbers:
        """Sum over the colours of the chance that all switches of a block have it, [layouts, terms].

        One factor for each block of the term; switches that see no core outside the blocks.
        """
        own = [self._colour(n)[some.blocks[:, :, plane]] for plane, n in enumerate(some.sizes)]
        all_of: dict[tuple[int, ...], Numbers] = {}  # chance of each colour, [layouts, colours]
        result = np.full((len(some.ways), len(self.terms)), self.scale.one, dtype=self.miss.dtype)
        for coloured in filter(None, dict.fromkeys(term.coloured for term in self.terms)):
            *others, last = coloured
            chance = own[last // self.switches]
            all_of[coloured] = self.scale.times(all_of[tuple(others)], chance) if others else chance
        summed = {switches: chance.sum(axis=1) for switches, chance in all_of.items()}
        for column, (_, blocks) in enumerate(self.terms):
            if blocks:
                result[:, column] = reduce(self.scale.times, [summed[block] for block in blocks])
        return result

    def agreements(
        self, some: Layouts, weights: Sequence[tuple[int, Numbers]]
    ) -> Iterator[tuple[int, Numbers]]:
        """For pods of each kind: how many, and the probability that one agrees, [layouts, choices]."""
        sums = self.power_sums(some)
        return ((count, self.scale.product(sums, weight)) for count, weight in weights)

    def weights(self, sizes: tuple[int, ...], outside: Outside, table: Table) -> Numbers:
        """What multiplies each power sum in the probability that a pod agrees, [terms, choices]."""
        entries = dict(zip(table, self.scale.array(table.values()), strict=True))
        states = self._states(sizes, outside)
        result = np.zeros((len(self.terms), len(outside)), dtype=self.miss.dtype)
        rest: dict[tuple[int, ...], dict[tuple[int, int], Numbers]] = {}
        for row, term in enumerate(self.terms):
            if term.coloured not in rest:
                rest[term.coloured] = self._uncoloured(term.coloured, states)
            for (free, idle), chance in rest[term.coloured].items():
                result[row] += self.scale.times(chance, entries[term.sizes, free, idle])
        return result

    def _colour(self, n: int) -> Numbers:
        """Chance that a switch has links to j cores of a block, of n in blocks, and to no other, [j]."""
        q = 1 - self.link_up
        return self.scale.array(self.up * q ** (n - j) * (1 - q**j) for j in range(n + 1))

    def _states(self, sizes: tuple[int, ...], outside: Outside) -> list[States]:
        """Chances of a switch of each plane, [choices]."""
        up, dead = self.scale.array([self.up, 1 - self.up])
        states: list[States] = []
        for n, others in zip(sizes, np.array(outside, dtype=np.int64).T, strict=True):
            unseen, down = self.miss[others], np.full(len(outside), dead, dtype=self.miss.dtype)
            alone = self.scale.times(up, self.miss[n])
            idle = self.scale.times(alone, self.scale.one - unseen)
            states.append((unseen, down, self.scale.times(alone, unseen), idle))
        return states

    def _uncoloured(self, coloured: tuple[int, ...], states: list[States]) -> dict[tuple[int, int], Numbers]:
        """Chance of so many free and idle switches among the uncoloured ones, by (free, idle), [choices]."""
        sums: dict[tuple[int, int], Any] = {(0, 0): self.scale.one}
        for switch in range(self.planes * self.switches):
            unseen, down, free, idle = states[switch // self.switches]
            if switch in coloured:
                sums = {key: self.scale.times(chance, unseen) for key, chance in sums.items()}
                continue
            after: dict[tuple[int, int], Any] = {}
            for (f, i), chance in sums.items():
                for key, factor in (((f, i), down), ((f + 1, i), free), ((f, i + 1), idle)):
                    after[key] = after.get(key, 0) + self.scale.times(chance, factor)
            sums = after
        return sums


def exact_up(chance: Chance) -> Fraction:
    """Up-probability as the fraction that the smaller of the two floats stands for."""
    up, down = chance
    return 1 - Fraction(down) if down < up else Fraction(up)


def signed_ways(some: Layouts) -> Numbers:
    """How many splits a layout stands for, times the Moebius weight (-1)^(r-1) (r-1)! of r blocks."""
    blocks = some.blocks.any(axis=2).sum(axis=1)
    weights = [0, *((-1) ** (r - 1) * math.factorial(r - 1) for r in range(1, int(blocks.max()) + 1))]
    return np.asarray(some.ways * np.array(weights, dtype=object)[blocks])


def to_power(x: Numbers, n: int, scale: Scale) -> Numbers:
    """x^n for n >= 1, by squaring."""
    if n == 1:
        return x
    square = to_power(scale.times(x, x), n // 2, scale)
    return np.asarray(scale.times(square, x)) if n % 2 else square
