"""Closed forms for fat-trees of any size: milliseconds where enumeration outlives the universe.

Letters: ``k`` ports per switch, and pods; ``h = k/2`` switches per group, where group j holds
aggregation switch j of every pod and the h cores that those switches share; ``c`` and ``a``
up-probability of a core and of an aggregation switch, ``l`` and ``m`` of a cable below and above
the aggregation.

Where core cables fail too, R is a Moebius inversion over partitions of the pods into ``b`` blocks
of sizes ``s_1 >= ... >= s_b``; Phi is the probability that no core of one group joins two blocks.
The terms alternate and are up to (b-1)! times larger than their sum. All arithmetic is therefore in
whole numbers over ``2**bits``, with a bound on what rounding can have done, and with more bits
until that bound is far below both results. The partial sums over b = 2, 3, .. lie in turn above and
below the sum, as those of every inversion over a geometric lattice do: where failures are rare, few
blocks settle all digits.

References
----------
Al-Fares, Loukissas and Vahdat, "A scalable, commodity data center network architecture", SIGCOMM
2008: the wiring. Rota, "On the foundations of combinatorial theory I: theory of Moebius functions",
Zeitschrift fuer Wahrscheinlichkeitstheorie 2, 1964.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import cache
from operator import mul
from typing import Final, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from relparallel._checks import require_choice, require_int
from relparallel.reliability.closed_forms.random_graph_connectivity import sides_connected
from relparallel.reliability.probability import (
    CERTAIN,
    Chance,
    parallel,
    part,
    series,
    single_probabilities,
)
from relparallel.reliability.result import Reliability, exactly

Turn = Literal["core", "aggregation", "edge"]


def fat_tree_pods_connected(
    k: int,
    core_up: float = 1.0,
    aggregation_up: float = 1.0,
    core_link_up: float = 1.0,
    *,
    pods: int | None = None,
) -> Reliability:
    """Probability that the pods of a k-ary fat-tree can reach each other.

    Parameters
    ----------
    k : int
        Ports per switch, even, from 2 to 256; to 64 if core cables fail.
    core_up, aggregation_up, core_link_up : float, optional
        Up-probability of a core switch, of an aggregation switch, and of a cable between the two.
    pods : int, optional
        How many of the k pods have to be together; by default all. The others relay.

    Returns
    -------
    Reliability
        Any path counts; edge switches and the cables below the aggregation work. With failing core
        cables, more than 32 pods and frequent failures, ``lower`` and ``upper`` may differ; else
        they are equal.

    Notes
    -----
    Perfect cables: a group connects its pods if one of its h cores is up, g = 1 - (1 - c)^h. Pods
    and groups are the two sides of a random bipartite graph whose edges, the aggregation switches,
    are up with probability a: a sum over the components of one pod, O(k^4) operations without a
    subtraction.

    Failing cables: U = sum_b (-1)^b (b - 2)! sum_t N(t) (T(t) - 1) Phi(t)^h over the partitions t
    of the k pods into b >= 2 blocks. N(t) counts the ways to form them, T(t) is the expected number
    of blocks that hold one of the pods in question (b if it is all), and Phi(t) the probability
    that no core of one group joins two blocks. Multi-precision whole numbers with a proved error;
    few b matter where failures are rare.

    Examples
    --------
    >>> print(f"{fat_tree_pods_connected(k=48, core_up=0.99, aggregation_up=0.99).unreliability:.1e}")
    4.8e-47
    >>> print(f"{fat_tree_pods_connected(16, 0.999, 0.999, core_link_up=0.999).unreliability:.6e}")
    1.600000e-23
    """
    c, a, m = single_probabilities(
        core_up=core_up, aggregation_up=aggregation_up, core_link_up=core_link_up
    )
    half_radix(k, at_most=256 if m == 1.0 else 64)
    terminals = k if pods is None else require_int(pods=pods, at_least=1, at_most=k)
    together, lower, upper = pods_together(k, c, a, m, terminals)
    return Reliability(
        reliability=together,
        unreliability=(lower + upper) / 2 if lower < upper else upper,
        lower=lower,
        upper=upper,
        method="closed_form",
    )


def pods_together(k: int, c: float, a: float, m: float, terminals: int) -> Bracket:
    """Chance that some pods are together, and the least and largest chance that they are not."""
    if terminals == 1:
        return Bracket(1.0, 0.0, 0.0)
    if c * a * m == 0:
        return Bracket(0.0, 1.0, 1.0)
    if m < 1.0:
        return pods_apart(k, c, a, m, terminals)
    group = parallel(*[part(c)] * (k // 2))
    together, apart = sides_connected(
        (terminals, k - terminals), (0, k // 2), part(a), column=group
    )
    return Bracket(together, apart, apart)


def fat_tree_pair(
    k: int,
    core_up: float = 1.0,
    aggregation_up: float = 1.0,
    edge_up: float = 1.0,
    core_link_up: float = 1.0,
    edge_link_up: float = 1.0,
    host_up: float = 1.0,
    *,
    turn: Turn = "core",
) -> Reliability:
    """Probability that two hosts of a k-ary fat-tree reach each other by an up-down path.

    Parameters
    ----------
    k : int
        Ports per switch, even, from 2 to 256.
    core_up, aggregation_up, edge_up : float, optional
        Up-probability of a switch of each tier; the edge switches of the two must be up themselves.
    core_link_up, edge_link_up : float, optional
        Up-probability of a cable between aggregation and core, and between edge and aggregation.
    host_up : float, optional
        Up-probability of a host with its cable; at 1 the pair is that of the edge switches.
    turn : {"core", "aggregation", "edge"}, optional
        Where the path turns: hosts of two pods, of two edge switches of one pod, or of one edge
        switch.

    Returns
    -------
    Reliability
        A path goes up to its highest switch and then only down.

    Notes
    -----
    The h groups are independent. With e of an edge switch and v of a host, R = v^2 e^2 (1 - U)
    where U = (1 - (a l)^2 (1 - (1 - c m^2)^h))^h between pods and U = (1 - a l^2)^h inside one; R =
    v^2 e at one switch.

    Examples
    --------
    >>> pair = fat_tree_pair(k=32, core_up=0.999, aggregation_up=0.999, core_link_up=0.9999,
    ...                      edge_link_up=0.9999)
    >>> print(f"{pair.unreliability:.9e}")
    2.980634117e-43
    """
    h = half_radix(k)
    c, a, e, m, l, v = single_probabilities(  # noqa: E741
        core_up=core_up,
        aggregation_up=aggregation_up,
        edge_up=edge_up,
        core_link_up=core_link_up,
        edge_link_up=edge_link_up,
        host_up=host_up,
    )
    require_choice(("core", "aggregation", "edge"), turn=turn)
    edges = [part(e)] * (1 if turn == "edge" else 2)
    middle = _climb(h, part(c), part(a), part(m), part(l), turn)
    return exactly(*series(part(v), part(v), *edges, middle), "closed_form")


def _climb(
    h: int, core: Chance, aggregation: Chance, core_link: Chance, link: Chance, turn: Turn
) -> Chance:
    """Chance of a way between two edge switches that are up."""
    if turn == "edge":
        return CERTAIN
    if turn == "aggregation":
        return parallel(*[series(aggregation, link, link)] * h)
    cores = parallel(*[series(core, core_link, core_link)] * h)
    return parallel(*[series(aggregation, aggregation, link, link, cores)] * h)


# all 8,349 of 32 pods; fewer of larger fabrics, where each is more work
_PARTITIONS: Final = 10_000
_KEPT: Final = 56  # bits of both results that rounding must leave alone


class Bracket(NamedTuple):
    """Chance that the pods are together, and the least and largest chance that they are not."""

    together: float
    lower: float
    upper: float


class Group:
    """A group of cores as integers over ``one``: chances of cores, and of a block to touch some."""

    def __init__(self, k: int, ups: Sequence[float | Fraction], bits: int) -> None:
        self.k, self.h, self.bits, self.one = k, k // 2, bits, 1 << bits
        c, a, link = (int(Fraction(p) * self.one) for p in ups)
        core = [self.powers(p, self.h) for p in (c, self.one - c)]
        self.live = [
            math.comb(self.h, j) * self.times(core[0][j], core[1][-1 - j])
            for j in range(self.h + 1)
        ]
        misses = self.powers(self.one - link, self.h)
        self.missed = [self.powers(self.one - a + self.times(a, miss), k) for miss in misses]
        self.touched, self.shares, self.last = (
            cache(self._touched),
            cache(self._shares),
            cache(self._last),
        )

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
        """Chance that s pods touch i given cores of j, and no other, over i!; reversed in i."""
        missed = [row[s] for row in self.missed]

        def touched(i: int, rest: int) -> int:
            total: int = sum((-1) ** r * math.comb(i, r) * missed[rest + r] for r in range(i + 1))
            return max(total // math.factorial(i), 0)

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
        """Weights turning other blocks' shares into Phi_j: last blocks, and cores of no block."""
        if not sizes:
            return [
                [math.factorial(j) // math.factorial(j - d) * self.one for d in range(j + 1)]
                for j in range(self.h + 1)
            ]
        return [
            [sum(map(mul, reversed(mine), rest[d:])) >> self.bits for d in range(j + 1)]
            for j, (mine, rest) in enumerate(
                zip(self.touched(sizes[0]), self.last(sizes[1:]), strict=True)
            )
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


def pods_apart(
    k: int, core_up: float, aggregation_up: float, core_link_up: float, terminals: int
) -> Bracket:
    """Chance that ``terminals`` of k pods are not together.

    The bracket has a width only where k > 32 and failures are too frequent for partitions into few
    blocks.
    """
    chances = (core_up, aggregation_up, core_link_up)
    digits = min(digits_alone(k, *chances), 1074)
    while True:
        lower, upper = _alternating(k, chances, terminals, digits + _KEPT)
        together = 1 - (lower + upper) / 2
        if lower < upper or digits > 1074 or together * 2**digits >= 1:
            return Bracket(*map(_inside, (together, lower, upper)))
        digits = 1080 if together <= 0 else 1 + int(1 / together).bit_length()


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
        # few different groups, whose tables are shared
        bits = -(-(digits + rounding(k, b)) // 128) * 128
        group = groups.setdefault(bits, Group(k, chances, bits))
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

    A power of a chance is off by at most k (h + 4), a sum over touched cores by 2^h of these, a
    share or weight by b 2^h of those, and Phi by h! of those; its power by h times as many, in at
    most b^k / b! times (b - 1)! terms.
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


def fat_tree_pod_bandwidth(
    k: int, core_up: float, aggregation_up: float, core_link_up: float = 1.0
) -> NDArray[np.float64]:
    """Distribution of the core links' worth of bandwidth between two pods.

    Notes
    -----
    A group carries nothing unless both its aggregation switches are up, then Bin(h, c m^2) units:
    the sum of h = k/2 independent groups, a convolution of positive terms, O(h^4).
    """
    from scipy.stats import binom

    require_int(k=k, at_least=4)
    single_probabilities(core_up=core_up, aggregation_up=aggregation_up, core_link_up=core_link_up)
    h = half_radix(k, at_most=200)
    one = aggregation_up**2 * binom.pmf(np.arange(h + 1), h, core_up * core_link_up**2)
    one[0] += (1 - aggregation_up) * (1 + aggregation_up)
    total = np.ones(1)
    for _ in range(h):
        total = np.convolve(total, one)
    return total


def half_radix(k: int, at_most: int = 256) -> int:
    """Switches per group of a k-ary fat-tree."""
    require_int(k=k, at_least=2, at_most=at_most)
    if k % 2:
        raise ValueError(f"k must be an even integer in [2, {at_most}], got {k}")
    return k // 2
