"""Partitions of interchangeable cores: every way to split them into blocks, once up to symmetry.

The cores stand in planes of equal size; cores of a plane are interchangeable, and so are the planes. A block
is then known by its profile, how many cores it takes from each plane, and a partition by the multiset of its
profiles. ``layouts`` lists these multisets, with the number of partitions that each stands for: 286 878
instead of 8.3e10 for the 16 cores of an 8-ary fat-tree.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache, lru_cache
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

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
    return tuple((first, *rest) for first, tails in smaller for rest in tails if not rest or rest[0] <= first)


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
    """Number of multisets of profiles with at most ``cores`` cores of each plane, planes told apart."""
    count = np.zeros((cores + 1,) * planes, dtype=object)
    count[(0,) * planes] = 1
    for profile in product(range(cores + 1), repeat=planes):
        if any(profile):
            for total in product(*(range(part, cores + 1) for part in profile)):
                count[total] += count[tuple(t - part for t, part in zip(total, profile, strict=True))]
    return int(count.sum())


@lru_cache(maxsize=4)
def layouts(planes: int, cores: int) -> tuple[Layouts, ...]:
    """Every partition of every choice of cores into at least one block, once up to symmetry.

    Notes
    -----
    In each plane the blocks induce an integer partition. Rows of parts are added one plane after the other,
    in sorted order: a part starts a block or extends one of the blocks not yet extended.
    """
    rows = [row for n in range(cores + 1) for row in integer_partitions(n)]
    found: dict[tuple[int, ...], list[Layouts]] = {}

    def grow(first: int, chosen: tuple[Row, ...], codes: set[Code]) -> None:
        if len(chosen) < planes:
            for i in range(first, len(rows)):
                grow(i, (*chosen, rows[i]), _add_row(codes, rows[i], cores + 1))
        elif any(chosen):
            found.setdefault(tuple(map(sum, chosen)), []).append(_read(chosen, cores, sorted(codes)))

    grow(0, (), {()})
    return tuple(map(_joined, found.values()))


def _add_row(codes: set[Code], row: Row, base: int) -> set[Code]:
    """All multisets of blocks with one more plane; a block is a number whose digits are its parts."""
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
    labels = math.prod(math.perm(cores, sum(row)) // math.prod(map(math.factorial, row)) for row in rows)
    ways = images * labels // _orders(padded).astype(object)
    keep, orbit = _representatives(rows, blocks)
    return Layouts(tuple(map(sum, rows)), blocks[keep], ways[keep] * orbit[keep])


def _joined(parts: list[Layouts]) -> Layouts:
    """Layouts of equal sizes together."""
    width = max(part.blocks.shape[1] for part in parts)
    blocks = [np.pad(p.blocks, ((0, 0), (0, width - p.blocks.shape[1]), (0, 0))) for p in parts]
    return Layouts(parts[0].sizes, np.concatenate(blocks), np.concatenate([part.ways for part in parts]))


def _representatives(rows: tuple[Row, ...], blocks: IntArray) -> tuple[NDArray[np.bool_], NDArray[Any]]:
    """Which layouts to keep where planes have equal parts, and for how many images each of them counts.

    A plane's mark depends only on how it lies to the other planes. Exchanging planes permutes the marks, so
    it is enough to keep ascending marks and to count their distinct orders; equal marks cost only time.
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
    """In how many orders equal entries of each sorted line can stand; zeros, which fill up, do not count."""
    run, orders = np.ones(len(lines), dtype=np.int64), np.ones(len(lines), dtype=np.int64)
    for before, now in zip(lines.T[:-1], lines.T[1:], strict=True):
        run = np.where((before == now) & (now > 0), run + 1, 1)
        orders *= run
    return orders
