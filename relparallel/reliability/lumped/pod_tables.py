"""What happens inside one pod: edge switches that have to be joined over aggregation switches, exactly.

The cores are split into blocks, and whatever lies in one block counts as joined. An aggregation switch that
is up is *coloured* by the block that it has links to, *free* if it has no link to a core, or *idle* if all
its links lead to cores outside the blocks. The pod agrees with the split if no path inside the pod joins two
blocks, no terminal edge switch is joined to an idle switch, and every terminal edge switch is joined to some
block. ``agreement`` is the probability of this over the links between edge and aggregation switches.

All numbers are fractions: the sums below have both signs.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from functools import cache
from itertools import product

from relparallel.reliability.lumped.arithmetic import Exact
from relparallel.reliability.lumped.pod_partitions import integer_partitions, set_partitions

Key = tuple[tuple[int, ...], int, int]  # switches of each colour, free switches, idle switches
Table = dict[Key, Exact]  # fractions, or duals


def agreement(
    switches: int,
    terminals: int,
    others: int,
    edge_up: Exact,
    link_down: Exact,
    other_down: Exact | None = None,
) -> Table:
    """Probability that a pod agrees with a split of the cores, by the states of its aggregation switches.

    Notes
    -----
    Each colour c gathers t_c terminals, n_c other edge switches and f_c free switches, all joined to it; no
    link crosses between two colours or to the rest. Sum over all ways to gather, product over the colours.
    """
    inside = _Inside(terminals, others, (link_down, link_down if other_down is None else other_down))
    chances = {
        up: math.comb(others, up) * edge_up**up * (1 - edge_up) ** (others - up)
        for up in ([others] if edge_up == 1 else range(others + 1))
    }
    return {
        key: sum(inside.agree(key, up) * chance for up, chance in chances.items()) for key in _keys(switches)
    }


def power_sum_weights(table: Table) -> Table:
    """The same table for sums over colours that need not differ.

    A sum over distinct colours, one for each block of a set partition of switches, is an alternating sum of
    products of power sums over the coarser partitions (Moebius inversion in the lattice of partitions).
    """
    weights: Table = {}
    for sizes, free, idle in table:
        finer = [Counter(tuple(map(len, blocks)) for blocks in set_partitions(range(n))) for n in sizes]
        total: Exact = 0
        for choice in product(*(kinds.items() for kinds in finer)):
            sign = math.prod((-1) ** (len(b) - 1) * math.factorial(len(b) - 1) * n for b, n in choice)
            colours = tuple(sorted((size for blocks, _ in choice for size in blocks), reverse=True))
            total += sign * table[colours, free, idle]
        weights[sizes, free, idle] = total
    return weights


def _keys(switches: int) -> Iterator[Key]:
    """All states of at most so many aggregation switches that are up."""
    for coloured in range(switches + 1):
        for sizes in integer_partitions(coloured):
            for free in range(switches - coloured + 1):
                for idle in range(switches - coloured - free + 1):
                    yield sizes, free, idle


class _Inside:
    """The links between the edge and aggregation switches of a pod."""

    def __init__(self, terminals: int, others: int, miss: tuple[Exact, Exact]) -> None:
        self._terminals, self._others = terminals, others
        self._apart = cache(lambda t, n: _power(miss[0], t) * _power(miss[1], n))  # so many links all down
        self._joined, self._gathered = cache(self._find_joined), cache(self._find_gathered)
        self._alike = miss[0] == miss[1]

    def agree(self, key: Key, others: int) -> Exact:
        """One entry of the table, with so many of the other edge switches up."""
        sizes, free, idle = key
        switches = sum(sizes) + free + idle
        total: Exact = 0
        for extra in product(range(free + 1), repeat=len(sizes)):
            rest = free - sum(extra)
            if rest < 0:
                continue
            ways = math.factorial(free) // math.prod(map(math.factorial, (*extra, rest)))
            groups = tuple(sorted(zip(sizes, extra, strict=True)))
            for (terminals, taken), weight in self._gathered(groups, switches).items():
                if terminals == self._terminals and taken <= others:
                    apart = self._apart(0, (others - taken) * (switches - rest - idle))
                    total += weight * apart * (ways * math.comb(others, taken))
        return total

    def _find_gathered(
        self, groups: tuple[tuple[int, int], ...], switches: int
    ) -> dict[tuple[int, int], Exact]:
        """Chance that colours with so many own and free switches share t and n edge switches, by (t, n)."""
        if not groups:
            return {(0, 0): 1}
        *before, (size, extra) = groups
        away = switches - size - extra
        found: dict[tuple[int, int], Exact] = {}
        for t, n in product(range(self._terminals + 1), range(self._others + 1)):
            joined = self._joined(size, extra, (t, n))
            if joined == 0:
                continue
            own = joined * self._apart(t * away, n * away)
            for (i, j), weight in self._gathered(tuple(before), switches).items():
                if t + i <= self._terminals and n + j <= self._others:
                    ways = math.comb(t + i, t) * math.comb(n + j, n)
                    found[t + i, n + j] = found.get((t + i, n + j), 0) + weight * own * ways
        return found

    def _find_joined(self, root: int, free: int, edges: tuple[int, int]) -> Exact:
        """Probability that all free and edge switches are joined to a root of so many aggregation switches.

        The complement is the sum over the proper subsets that are joined to the root while the rest is not.
        """
        if self._alike and edges[1]:
            return self._joined(root, free, (sum(edges), 0))
        if edges == (0, 0):
            return int(free == 0)
        apart: Exact = 0
        for t, n, j in product(range(edges[0] + 1), range(edges[1] + 1), range(free + 1)):
            if (t, n, j) != (*edges, free):
                ways = math.comb(edges[0], t) * math.comb(edges[1], n) * math.comb(free, j)
                cuts = [
                    (root + j) * (all_ - i) + i * (free - j) for i, all_ in zip((t, n), edges, strict=True)
                ]
                apart += self._joined(root, j, (t, n)) * self._apart(*cuts) * ways
        return 1 - apart


def _power(x: Exact, n: int) -> Exact:
    """x^n, to the power 0 the number 1 and not a dual."""
    return x**n if n else 1
