"""How much each part matters where the pods of a fat-tree are joined by cores whose cables fail too.

Letters are those of `fat_tree_partitions`, and so is the arithmetic: whole numbers over ``2**bits``. One pod
is set apart. It lies in the last block with s - 1 others, and the other blocks touch n cores of their group,
each core one block: that the last block misses these n is all that is asked of it. Both states of a core and
of the pod's switch, and the chance that a cable of the pod decides, are therefore sums over n of the same
table of the other blocks, and slopes of all classes differ in nothing but what a partition counts.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from fractions import Fraction
from itertools import chain
from operator import add
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from relparallel.reliability.closed_forms.fat_tree_partitions import Group, digits_alone, rounding
from relparallel.reliability.closed_forms.form_slopes import ClassSlopes
from relparallel.reliability.closed_forms.limb_rows import (
    DIGIT,
    Digits,
    Terms,
    products,
    to_digits,
    to_numbers,
)
from relparallel.reliability.closed_forms.pivotal_blocks import pivotal_slopes

_KEPT: Final = 48  # bits of every slope that rounding must leave alone
_SPARE: Final = 14  # of these that may be lost all the same
_STEEPER: Final = 32  # more bits that differences between states can spoil
_FEWEST_DIGITS: Final = 3  # for each pod: saves a second attempt more often than it lengthens the first
_MOST_DIGITS: Final = 1400  # below all floats, with the bits that are kept
_AT_ONCE: Final = 1024  # ways to take blocks that get one more together

IntArray = NDArray[np.int64]
Joins = tuple[int, int, int]
Counts = tuple[int, int, int, int, int]


class _Blocks(NamedTuple):
    """Ways to take blocks of fewer than k pods, by their sizes."""

    tables: Digits
    pods: IntArray
    counts: list[Counts]


def slopes_of_partitions(
    k: int,
    core_up: float,
    aggregation_up: float,
    core_link_up: float,
    terminals: int,
    together: float = 1.0,
) -> ClassSlopes:
    """Slopes of all classes where ``terminals`` of k pods have to be together; see `pods_apart`.

    Notes
    -----
    `pivotal_slopes` where failures are rare: less work than `pods_apart`. Else both states of a part in whole
    numbers, two to three times the work: O(h^3) products for each partition of fewer than k pods.
    """
    ups = core_up, aggregation_up, core_link_up
    return pivotal_slopes(k, *ups, terminals) or _whole(k, ups, terminals, together)


def _whole(k: int, ups: tuple[float, float, float], terminals: int, together: float = 1.0) -> ClassSlopes:
    """The same in whole numbers."""
    kinds = 1 if terminals == k else 2  # of pods
    apart = int(-math.log2(max(together, 2.0**-1074))) + _SPARE
    digits = min(max(_expected_digits(k, *ups, kinds), _FEWEST_DIGITS * k, apart), _MOST_DIGITS)
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
    pod's cable, about that where two pods hang so, and all others do at one group more. Where cores are
    seldom up, it is that only two are, which none of the other pods joins.
    """
    if kinds == 2 and c < 0.5 and a * link < 1:
        others, cores = math.log2(1 - (a * link) ** 2), math.log2(1 - c)
        return int(-(k - 2) * others - (k * k // 4 - 2) * cores) + k // 2
    h, alone = k // 2, digits_alone(k, c, a, link)
    cables = 0 if c * link == 1 else int(-(h - 1) * math.log2(1 - c * link))
    return alone + cables if kinds == 1 else 3 * alone * (h - 1) // h + 9 * cables // 10


def _slopes(k: int, ups: tuple[float, float, float], terminals: int, digits: int) -> list[Fraction]:
    """By a core, near and far switches, and near and far cables, each off by less than 2^-digits."""
    joins = _joins(k, terminals)
    bits = digits + rounding(k, k) + _STEEPER + int(-math.log2(min(ups)))
    group = Group(k, *ups, -(-bits // DIGIT) * DIGIT)
    last, grows = _last_block(group, ups), _convolution(group.h)
    none = ([group.one] + [0] * j for j in range(group.h + 1))
    kept = _Blocks(_table(group, none)[..., None], np.zeros(1, dtype=np.int64), [(0, 1, 0, 0, 0)])
    total = [0] * 5
    for s in range(k - 1, 0, -1):
        touched, found = _table(group, (x[::-1] for x in group.touched(s))), [kept]
        for more in _pieces(kept):
            alike = 1
            while (room := np.flatnonzero(more.pods + s < k)).size:
                counts = _counted(more, room, s, alike, joins[s])
                tables = products(more.tables.take(room, 2), touched, *grows)
                more, alike = _Blocks(tables, more.pods[room] + s, counts), alike + 1
                total = list(map(add, total, _slopes_of(group, more, joins, last)))
                if s > 1:  # smaller blocks are still to come
                    found.append(more)
        if len(found) > 1:
            kept = _together(found)
    near, far = joins[k][1], max(joins[k][2], 1)
    c, a = (Fraction(up) for up in ups[:2])
    parts = joins[k][0] * c, near * a, far * a, Fraction(near), Fraction(far)
    return [Fraction(x, group.one) / part for x, part in zip(total, parts, strict=True)]


def _table(group: Group, rows: Iterable[list[int]]) -> Digits:
    """Digits of numbers [j][n]."""
    return to_digits((x for row in rows for x in row), group.bits // DIGIT + 1)


def _pieces(blocks: _Blocks) -> Iterator[_Blocks]:
    """The same in pieces: bounds the memory."""
    for start in range(0, len(blocks.counts), _AT_ONCE):
        piece = slice(start, start + _AT_ONCE)
        yield _Blocks(blocks.tables[..., piece], blocks.pods[piece], blocks.counts[piece])


def _together(found: list[_Blocks]) -> _Blocks:
    """All of these."""
    tables, pods, counts = zip(*found, strict=True)
    return _Blocks(np.concatenate(tables, axis=2), np.concatenate(pods), list(chain.from_iterable(counts)))


def _counted(blocks: _Blocks, room: IntArray, s: int, alike: int, joins: Joins) -> list[Counts]:
    """Counts of some of these with one block more, the so-manyth of s pods."""
    found = []
    for t, pods in zip(room.tolist(), blocks.pods[room].tolist(), strict=True):
        b, ways, every, near, far = blocks.counts[t]
        ways = ways * math.comb(pods + s, s) // alike
        found.append((b + 1, ways, every + joins[0], near + joins[1], far + joins[2]))
    return found


def _joins(k: int, terminals: int) -> list[Joins]:
    """Ways to place terminals of which some lie among s pods, by s.

    Among all k; those besides one among the other pods; and those among all but one that is none.
    """
    rows = (k, terminals), (k - 1, terminals - 1), (k - 1, terminals)
    return [tuple(math.comb(n, t) - math.comb(max(n - s, 0), t) for n, t in rows) for s in range(k + 1)]  # type: ignore[misc]


class _Last(NamedTuple):
    """What the last block and the cores make of a table of all others: a sum over j, and one over n."""

    cores: Digits
    misses: Digits
    over_live: Terms
    over_touched: Terms
    scale: int


def _last_block(group: Group, ups: tuple[float, float, float]) -> _Last:
    """Tables of one group."""
    k, h, width, scale = group.k, group.h, group.bits // DIGIT + 1, math.factorial(group.h).bit_length()
    c, a, link = (int(Fraction(up) * group.one) for up in ups)
    up, down, spared = (group.powers(x, h) for x in (c, group.one - c, group.one - link))
    fewer = [math.comb(h - 1, j) * group.times(up[j], down[h - 1 - j]) for j in range(h)] + [0]
    given = [0] + [group.times(group.times(c, a), x) for x in spared]
    pairs = [(j, n) for n in range(h + 1) for j in range(n, h + 1)]
    cores = [math.perm(j, n) * live[j] for live in (group.live, fewer) for j, n in pairs]
    cores += [math.perm(j - 1, n - 1) * n * group.times(fewer[j - 1], given[n]) if n else 0 for j, n in pairs]
    misses = to_digits((group.missed[n][s] for s in range(k) for n in range(h + 1)), width)
    misses = misses.reshape(k, h + 1, width)
    entry, touched = np.array([j * (j + 1) // 2 + n for j, n in pairs]), np.arange(h + 1)
    ends = np.cumsum(np.tile(touched[::-1] + 1, 3))
    forms = np.array([[0, 1, 0, 2], [0, 0, 1, 1]])[..., None] * (h + 1) + touched
    return _Last(
        to_digits((x >> scale for x in cores), width),
        np.concatenate([misses, np.roll(misses, 1, 0)], axis=1),
        (np.tile(entry, 3), np.arange(len(cores)), ends),
        (forms[0].ravel(), forms[1].ravel(), np.arange(1, 5) * (h + 1)),
        scale,
    )


def _chances(last: _Last, blocks: _Blocks) -> list[list[int]]:
    """Where the last block has all other pods, [t][4].

    That no core joins two blocks; the same with a core down, and with the switch of a pod of the last block
    down; and that it is up, so are one of its cables and that core, and the core joins it to another block.
    """
    touched = products(blocks.tables, last.cores, *last.over_live)
    found = np.empty((4, *touched.shape[1:]), dtype=np.uint32)
    for pods in np.unique(blocks.pods):
        chosen = np.flatnonzero(blocks.pods == pods)
        found[..., chosen] = products(touched.take(chosen, 2), last.misses[-pods], *last.over_touched)
    return [[x << last.scale for x in row] for row in zip(*map(to_numbers, found), strict=True)]


def _convolution(h: int) -> Terms:
    """Entries [j, n] of two tables whose products add up to those of both sets of blocks."""
    rows = [(j * (j + 1) // 2, n) for j in range(h + 1) for n in range(j + 1)]
    terms = [(first + i, first + n - i) for first, n in rows for i in range(n + 1)]
    left, right = np.array(terms).T
    return left, right, np.cumsum([n + 1 for _, n in rows])


def _slopes_of(group: Group, blocks: _Blocks, joins: list[Joins], last: _Last) -> list[int]:
    """Slopes by all partitions into these blocks and the last one, times the ways to place terminals."""
    k, h, total = group.k, group.h, [0] * 5
    each = zip(blocks.pods.tolist(), blocks.counts, _chances(last, blocks), strict=True)
    for pods, (b, ways, separate, near, far), (phi, core, switch, cable) in each:
        s = k - pods
        power = group.powers(phi, h - 1)[-1] * ways * math.comb(k - 1, pods)
        power *= (-1) ** (b + 1) * math.factorial(b - 1)
        switch, cable = power * (switch - phi) >> group.bits, power * cable >> group.bits
        far += joins[s - 1][2] - joins[k][2]
        total[0] += (separate + joins[s][0] - joins[k][0]) * (power * (core - phi) >> group.bits)
        total[1:] = map(add, total[1:], (near * switch, far * switch, near * cable, far * cable))
    return total
