"""Partitions of interchangeable cores, and the probability that one pod agrees with them, exactly.

The cores stand in planes of equal size; cores of a plane are interchangeable, and so are the
planes. A block is then known by its profile, how many cores it takes from each plane, and a
partition by the multiset of its profiles. ``layouts`` lists these multisets, with the number of
partitions that each stands for: 286 878 instead of 8.3e10 for the 16 cores of an 8-ary fat-tree.

Whatever lies in one block counts as joined. An aggregation switch that is up is *coloured* by the
block that it has links to, *free* if it has no link to a core, or *idle* if all its links lead to
cores outside the blocks. The pod agrees with the split if no path inside it joins two blocks, no
terminal edge switch is joined to an idle switch, and every terminal edge switch is joined to some
block. ``agreement`` is the probability of this over the links between edge and aggregation
switches, in fractions: the sums have both signs.
"""

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache, lru_cache
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from relparallel.reliability.lumped.arithmetic import Exact

IntArray = NDArray[np.int64]
Row = tuple[int, ...]  # an integer partition: the parts of one plane
Code = tuple[int, ...]  # a layout: one number for each block


class Layouts(NamedTuple):
    """Partitions of some cores that take ``sizes`` from each plane."""

    sizes: tuple[int, ...]
    blocks: IntArray
    ways: NDArray[Any]


@cache
def integer_partitions(n: int) -> tuple[tuple[int, ...], ...]:
    """All descending tuples of positive integers that add up to n."""
    if n == 0:
        return ((),)
    smaller = ((first, integer_partitions(n - first)) for first in range(n, 0, -1))
    return tuple(
        (first, *rest) for first, tails in smaller for rest in tails if not rest or rest[0] <= first
    )


def set_partitions(items: Sequence[int]) -> Iterator[list[tuple[int, ...]]]:
    """All ways to split the items into non-empty blocks."""
    if not items:
        yield []
        return
    head, tail = items[0], items[1:]
    for blocks in set_partitions(tail):
        yield [(head,), *blocks]
        for i, block in enumerate(blocks):
            yield [*blocks[:i], (head, *block), *blocks[i + 1 :]]


@cache
def count_layouts(planes: int, cores: int) -> int:
    """Number of multisets of profiles with at most ``cores`` cores per plane, planes told apart."""
    count = np.zeros((cores + 1,) * planes, dtype=object)
    count[(0,) * planes] = 1
    for profile in product(range(cores + 1), repeat=planes):
        if any(profile):
            for total in product(*(range(part, cores + 1) for part in profile)):
                count[total] += count[
                    tuple(t - part for t, part in zip(total, profile, strict=True))
                ]
    return int(count.sum())


@lru_cache(maxsize=4)
def layouts(planes: int, cores: int) -> tuple[Layouts, ...]:
    """Every partition of every choice of cores into at least one block, once up to symmetry.

    Notes
    -----
    In each plane the blocks induce an integer partition. Rows of parts are added one plane after
    the other, in sorted order: a part starts a block or extends one of the blocks not yet extended.
    """
    rows = [row for n in range(cores + 1) for row in integer_partitions(n)]
    found: dict[tuple[int, ...], list[Layouts]] = {}

    def grow(first: int, chosen: tuple[Row, ...], codes: set[Code]) -> None:
        if len(chosen) < planes:
            for i in range(first, len(rows)):
                grow(i, (*chosen, rows[i]), _add_row(codes, rows[i], cores + 1))
        elif any(chosen):
            found.setdefault(tuple(map(sum, chosen)), []).append(
                _read(chosen, cores, sorted(codes))
            )

    grow(0, (), {()})
    return tuple(map(_joined, found.values()))


def _add_row(codes: set[Code], row: Row, base: int) -> set[Code]:
    """Multisets of blocks with one more plane; a block is a number whose digits are its parts."""
    result: set[Code] = set()
    for blocks in codes:
        todo: set[tuple[Code, Code]] = {(tuple(block * base for block in blocks), ())}
        for part in row:
            done: set[tuple[Code, Code]] = set()
            for free, taken in todo:
                done.add((free, tuple(sorted((*taken, part)))))
                for i, block in enumerate(free):
                    if i == 0 or block != free[i - 1]:
                        done.add((free[:i] + free[i + 1 :], tuple(sorted((*taken, block + part)))))
            todo = done
        result |= {tuple(sorted(free + taken)) for free, taken in todo}
    return result


def _read(rows: tuple[Row, ...], cores: int, codes: list[Code]) -> Layouts:
    """Blocks as arrays, one representative for planes with equal parts, and what it counts for."""
    planes, width = len(rows), max(map(len, codes))
    padded = np.array([(*blocks, *(0,) * (width - len(blocks))) for blocks in codes])
    blocks = padded[:, :, None] // (cores + 1) ** np.arange(planes)[::-1] % (cores + 1)
    images = math.factorial(planes) // math.prod(map(math.factorial, Counter(rows).values()))
    labels = math.prod(
        math.perm(cores, sum(row)) // math.prod(map(math.factorial, row)) for row in rows
    )
    ways = images * labels // _orders(padded).astype(object)
    keep, orbit = _representatives(rows, blocks)
    return Layouts(tuple(map(sum, rows)), blocks[keep], ways[keep] * orbit[keep])


def _joined(parts: list[Layouts]) -> Layouts:
    """Layouts of equal sizes together."""
    width = max(part.blocks.shape[1] for part in parts)
    blocks = [np.pad(p.blocks, ((0, 0), (0, width - p.blocks.shape[1]), (0, 0))) for p in parts]
    return Layouts(
        parts[0].sizes, np.concatenate(blocks), np.concatenate([part.ways for part in parts])
    )


def _representatives(
    rows: tuple[Row, ...], blocks: IntArray
) -> tuple[NDArray[np.bool_], NDArray[Any]]:
    """Which layouts to keep where planes have equal parts, and for how many images each counts.

    A plane's mark depends only on how it lies to the other planes. Exchanging planes permutes the
    marks, so it is enough to keep ascending marks and to count their distinct orders; equal marks
    cost only time.
    """
    profile = np.sort(blocks, axis=2) @ (1 << 8 * np.arange(blocks.shape[2]))
    mixed = (profile.astype(np.uint64) * np.uint64(0x9E37_79B9_7F4A_7C15)) >> np.uint64(40)
    marks = (blocks**2 * mixed.astype(np.int64)[:, :, None]).sum(axis=1)
    keep = np.ones(len(blocks), dtype=bool)
    orbit = np.ones(len(blocks), dtype=object)
    for start, row in enumerate(rows):
        equal = rows.count(row)
        if equal == 1 or rows.index(row) < start:
            continue
        own = marks[:, start : start + equal]
        keep &= (np.diff(own, axis=1) >= 0).all(axis=1)
        orbit = orbit * (math.factorial(equal) // _orders(np.sort(own, axis=1) + 1))
    return keep, orbit


def _orders(lines: IntArray) -> IntArray:
    """Number of orders of equal entries of each sorted line; zeros, which fill up, do not count."""
    run, orders = np.ones(len(lines), dtype=np.int64), np.ones(len(lines), dtype=np.int64)
    for before, now in zip(lines.T[:-1], lines.T[1:], strict=True):
        run = np.where((before == now) & (now > 0), run + 1, 1)
        orders *= run
    return orders


Key = tuple[tuple[int, ...], int, int]  # switches of each colour, free switches, idle switches
Table = dict[Key, Exact]  # fractions


def agreement(
    switches: int,
    terminals: int,
    others: int,
    edge_up: Exact,
    link_down: Exact,
    other_down: Exact,
) -> Table:
    """Probability that a pod agrees with a core split, by the states of its aggregation switches.

    Notes
    -----
    Each colour c gathers t_c terminals, n_c other edge switches and f_c free switches, all joined
    to it; no link crosses between two colours or to the rest. Sum over all ways to gather, product
    over the colours.
    """
    inside = _Inside(terminals, others, (link_down, other_down))
    chances = {
        up: math.comb(others, up) * edge_up**up * (1 - edge_up) ** (others - up)
        for up in ([others] if edge_up == 1 else range(others + 1))
    }
    return {
        key: sum(inside.agree(key, up) * chance for up, chance in chances.items())
        for key in _keys(switches)
    }


def power_sum_weights(table: Table) -> Table:
    """The same table for sums over colours that need not differ.

    A sum over distinct colours, one for each block of a set partition of switches, is an
    alternating sum of products of power sums over the coarser partitions (Moebius inversion in the
    lattice of partitions).
    """
    weights: Table = {}
    for sizes, free, idle in table:
        finer = [
            Counter(tuple(map(len, blocks)) for blocks in set_partitions(range(n))) for n in sizes
        ]
        total: Exact = 0
        for choice in product(*(kinds.items() for kinds in finer)):
            sign = math.prod(
                (-1) ** (len(b) - 1) * math.factorial(len(b) - 1) * n for b, n in choice
            )
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
        self._apart = cache(lambda t, n: miss[0] ** t * miss[1] ** n)  # so many links all down
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
        """Chance that colours share t and n edge switches, by (t, n).

        Every colour has so many own and free switches.
        """
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
        """Probability that all free and edge switches join a root of so many aggregation switches.

        The complement is the sum over the proper subsets that are joined to the root while the rest
        is not.
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
                    (root + j) * (all_ - i) + i * (free - j)
                    for i, all_ in zip((t, n), edges, strict=True)
                ]
                apart += self._joined(root, j, (t, n)) * self._apart(*cuts) * ways
        return 1 - apart
