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
from fractions import Fraction
from functools import cache
from itertools import product

from relparallel.reliability.lumped.arithmetic import Exact
from relparallel.reliability.lumped.pod_partitions import integer_partitions, set_partitions

__all__ = ["Table", "agreement", "power_sum_weights"]

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

    Parameters
    ----------
    switches : int
        Aggregation switches; those not counted in a key are down.
    terminals, others : int
        Edge switches that have to be joined and are up, and edge switches that are up with ``edge_up``.
    edge_up, link_down, other_down : Fraction or Dual
        Of an edge switch that is no terminal, of a link to a terminal one, and to another (None: the same).

    Returns
    -------
    dict
        By (switches of each colour in descending order, free switches, idle switches).

    Notes
    -----
    Each colour c gathers t_c terminals, n_c other edge switches and f_c free switches, all joined to it; no
    link crosses between two colours or to the rest. Sum over all ways to gather, product over the colours.

    Examples
    --------
    >>> table = agreement(2, terminals=1, others=0, edge_up=Fraction(1), link_down=Fraction(1, 4))
    >>> table[(1, 1), 0, 0]  # one of two links up
    Fraction(3, 8)
    """
    total: Table = {}
    miss = link_down, link_down if other_down is None else other_down
    for up in [others] if edge_up == 1 else range(others + 1):
        weight = math.comb(others, up) * edge_up**up * (1 - edge_up) ** (others - up)
        for key in _keys(switches):
            total[key] = total.get(key, Fraction(0)) + weight * _agree(key, terminals, up, miss)
    return total


def power_sum_weights(table: Table) -> Table:
    """The same table for sums over colours that need not differ.

    A sum over distinct colours, one for each block of a set partition of switches, is an alternating sum of
    products of power sums over the coarser partitions (Moebius inversion in the lattice of partitions).

    Examples
    --------
    >>> ones = {((1, 1), 0, 0): Fraction(1), ((2,), 0, 0): Fraction(1)}
    >>> power_sum_weights(ones)[(2,), 0, 0]  # ways to colour two switches, less those counted as distinct
    Fraction(0, 1)
    """
    weights: Table = {}
    for sizes, free, idle in table:
        finer = [Counter(tuple(map(len, blocks)) for blocks in set_partitions(range(n))) for n in sizes]
        total = Fraction(0)
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


def _agree(key: Key, terminals: int, others: int, miss: tuple[Exact, Exact]) -> Exact:
    """One entry of the table, all edge switches up."""
    sizes, free, idle = key
    switches = sum(sizes) + free + idle
    total = Fraction(0)
    for gathered in product(range(free + 1), repeat=len(sizes)):
        rest = free - sum(gathered)
        if rest < 0:
            continue
        ways = math.factorial(free) // math.prod(map(math.factorial, (*gathered, rest)))
        left = {(terminals, others): Fraction(ways)}
        for size, extra in zip(sizes, gathered, strict=True):
            left = _gather(left, size, extra, switches, miss)
        for (unreached, outside), weight in left.items():
            if unreached == 0:
                total += weight * miss[1] ** (outside * (switches - rest - idle))
    return total


def _gather(
    left: dict[tuple[int, int], Exact], size: int, extra: int, switches: int, miss: tuple[Exact, Exact]
) -> dict[tuple[int, int], Exact]:
    """Give one colour some of the edge switches that are left (terminals, others), in all ways."""
    after: dict[tuple[int, int], Exact] = {}
    for (terminals, others), weight in left.items():
        for t, n in product(range(terminals + 1), range(others + 1)):
            joined = _joined(size, extra, (t, n), miss)
            if joined != 0:
                ways = math.comb(terminals, t) * math.comb(others, n)
                away = switches - size - extra
                apart = miss[0] ** (t * away) * miss[1] ** (n * away)
                state = terminals - t, others - n
                after[state] = after.get(state, Fraction(0)) + weight * ways * joined * apart
    return after


@cache
def _joined(root: int, free: int, edges: tuple[int, int], miss: tuple[Exact, Exact]) -> Exact:
    """Probability that all free and edge switches are joined to a root of so many aggregation switches.

    The complement is the sum over the proper subsets that are joined to the root while the rest is not.
    """
    if miss[0] == miss[1]:
        edges = edges[0] + edges[1], 0
    if edges == (0, 0):
        return Fraction(int(free == 0))
    apart = Fraction(0)
    for t, n, j in product(range(edges[0] + 1), range(edges[1] + 1), range(free + 1)):
        if (t, n, j) != (*edges, free):
            ways = math.comb(edges[0], t) * math.comb(edges[1], n) * math.comb(free, j)
            cuts = [(root + j) * (all_ - i) + i * (free - j) for i, all_ in zip((t, n), edges, strict=True)]
            apart += ways * _joined(root, j, (t, n), miss) * miss[0] ** cuts[0] * miss[1] ** cuts[1]
    return 1 - apart
