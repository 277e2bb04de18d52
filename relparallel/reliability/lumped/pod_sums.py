"""The terms of the sum over all splits of the cores, in any of the arithmetics of `arithmetic`.

Letters: q is the down-probability of a link between core and aggregation switch. In a plane with n
cores in blocks and s live cores outside them, a switch that is up is coloured by a block of j cores
with probability q^(n + s - j) (1 - q^j), free with q^(n + s), idle with q^n (1 - q^s). The last is
a difference: switches are taken as free or as *either*, with q^n, so that all chances of those
without a colour are powers of q.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import combinations
from typing import NamedTuple

import numpy as np

from relparallel.reliability.lumped.arithmetic import Exact, Floats, Numbers, Scale
from relparallel.reliability.lumped.pod_partitions import (
    IntArray,
    Layouts,
    Table,
    integer_partitions,
    set_partitions,
)

# live cores of each plane outside the blocks, [choices, planes]
Outside = Sequence[tuple[int, ...]]
Blocks = tuple[tuple[int, ...], ...]  # a set partition, sorted
Switches = tuple[int, ...]  # by index in the pod


class Kind(NamedTuple):
    """Power sums of one weight: which switches are coloured, and how many share each colour."""

    coloured: Switches
    sizes: tuple[int, ...]


@dataclass(frozen=True)
class Uplinks:
    """The aggregation switches of one pod and their links to the cores."""

    planes: int
    cores: int
    switches: int
    up: Exact
    link_up: Exact
    scale: Scale | Floats

    @cached_property
    def kinds(self) -> list[Kind]:
        """Sets of coloured switches with the integer partitions of their number."""
        chosen = self._chosen
        return [Kind(some, sizes) for some in chosen for sizes in integer_partitions(len(some))]

    @cached_property
    def terms(self) -> list[tuple[Kind, Blocks]]:
        """All sets of coloured switches with all set partitions: Bell(number of switches + 1)."""
        found = [
            (some, tuple(sorted(blocks)))
            for some in self._chosen
            for blocks in set_partitions(some)
        ]
        return [
            (Kind(some, tuple(sorted(map(len, blocks), reverse=True))), blocks)
            for some, blocks in found
        ]

    @cached_property
    def _chosen(self) -> list[Switches]:
        """All sets of switches, smaller ones first."""
        width = range(self.planes * self.switches)
        return [some for size in range(len(width) + 1) for some in combinations(width, size)]

    @cached_property
    def _powers(self) -> Numbers:
        """q^j for all numbers j of links."""
        links = self.planes * self.switches * self.cores
        return self.scale.array((1 - self.link_up) ** j for j in range(links + 1))

    @cached_property
    def colours(self) -> list[Numbers]:
        """Chance of links to j cores of a block, of n in blocks, and no other of them: [n][j]."""
        seen = self.scale.array(1 - (1 - self.link_up) ** j for j in range(self.cores + 1))
        return [self.scale.times(self._powers[n::-1], seen[: n + 1]) for n in range(self.cores + 1)]

    def core_chances(self, sizes: tuple[int, ...], outside: Outside, alive: Numbers) -> Numbers:
        """Probability that the cores in the blocks are up and just so many others, [choices].

        ``alive``: by the number of cores that are up, the probability of any one such state.
        """
        seats, ways = np.array(outside, dtype=np.int64), np.ones(len(outside), dtype=np.int64)
        for n, others in zip(sizes, seats.T, strict=True):
            ways *= np.array([math.comb(self.cores - n, s) for s in range(self.cores - n + 1)])[
                others
            ]
        return np.asarray(alive[sum(sizes) + seats.sum(axis=1)] * ways)

    def power_sums(self, some: Layouts) -> Numbers:
        """Sum over colours of the chance that all switches of a block have it, [layouts, kinds].

        One factor for each block of a set partition; added up over those of one kind. The switches
        are up.
        """
        profile = np.ravel_multi_index(np.moveaxis(some.blocks, 2, 0), [n + 1 for n in some.sizes])
        summed = {
            switches: chance[profile].sum(axis=-1)
            for switches, chance in self._chances(some.sizes).items()
        }
        factors: dict[Blocks, Numbers] = {(): np.repeat(self.scale.array([1]), len(some.ways))}
        sums: dict[Kind, Numbers] = {}
        for kind, blocks in self.terms:
            if blocks:
                *before, last = blocks
                factors[blocks] = (
                    self.scale.times(factors[tuple(before)], summed[last])
                    if before
                    else summed[last]
                )
            sums[kind] = sums[kind] + factors[blocks] if kind in sums else factors[blocks]
        return np.stack([sums[kind] for kind in self.kinds], axis=-1)

    def entries(self, table: Table) -> list[Numbers]:
        """A pod's table by number of coloured switches, times the chance that just these are up."""
        found, width = [], self.planes * self.switches
        ups = self.scale.array(self.up**n * (1 - self.up) ** (width - n) for n in range(width + 1))
        for size in range(width + 1):
            shapes, rest = integer_partitions(size), _pairs(width - size)
            entries = self.scale.array(table[shape, f, i] for shape in shapes for f, i in rest)
            entries = entries.reshape(len(shapes), len(rest)) @ _less_free(rest)
            found.append(
                np.asarray(self.scale.times(entries, ups[[size + f + i for f, i in rest]]))
            )
        return found

    def weights(self, uncoloured: list[Numbers], entries: list[Numbers]) -> Numbers:
        """What multiplies each power sum in the probability that a pod agrees, [kinds, choices]."""
        pairs = zip(entries, uncoloured, strict=True)
        parts = [self.scale.product(own[None], chances) for own, chances in pairs]
        return np.concatenate([x.reshape(-1, x.shape[-1]) for x in parts])

    def uncoloured(self, sizes: tuple[int, ...], outside: Outside) -> list[Numbers]:
        """Chance of links of switches free and either, [sets of coloured ones, others, choices].

        By the number of coloured switches, and with their links to the cores outside of blocks.
        """
        above, below, starts = _ways_to_miss(self.planes, self.switches)
        links = above @ np.transpose(outside) + (below @ sizes)[:, None]
        sums, found, first = np.add.reduceat(self._powers[links], starts), [], 0
        for size in range(self.planes * self.switches + 1):
            shape = (
                math.comb(self.planes * self.switches, size),
                len(_pairs(self.planes * self.switches - size)),
            )
            some, first = sums[first : first + math.prod(shape)], first + math.prod(shape)
            found.append(some.reshape(*shape, -1))
        return found

    def _chances(self, sizes: tuple[int, ...]) -> dict[Switches, Numbers]:
        """Chance that all of some switches have a colour, by its block's profile, [profiles]."""
        own: list[Numbers] = []
        for plane, n in enumerate(sizes):
            shape = [n + 1 if other == plane else 1 for other in range(self.planes)]
            own.append(self.colours[n].reshape(shape))
        found: dict[Switches, Numbers] = {}
        for switches in self._chosen[1:]:
            *others, last = switches
            chance = own[last // self.switches]
            found[switches] = self.scale.times(found[tuple(others)], chance) if others else chance
        profiles = tuple(n + 1 for n in sizes)
        return {
            switches: np.broadcast_to(chance, profiles).ravel()
            for switches, chance in found.items()
        }


@cache
def _pairs(most: int) -> list[tuple[int, int]]:
    """Two numbers that add up to no more."""
    return [(f, i) for f in range(most + 1) for i in range(most - f + 1)]


def _less_free(rest: list[tuple[int, int]]) -> IntArray:
    """How often an entry by free and idle switches counts in one by free and either.

    Idle is a difference.
    """
    counts = np.zeros((len(rest), len(rest)), dtype=np.int64)
    for column, (free, either) in enumerate(rest):
        for kept in range(free + 1):
            row = rest.index((kept, either + free - kept))
            counts[row, column] = math.comb(free, kept) * (-1) ** (free - kept)
    return counts


@cache
def _ways_to_miss(planes: int, switches: int) -> tuple[IntArray, IntArray, IntArray]:
    """Switches coloured, free, either or down in all ways, in the order of `Uplinks.uncoloured`."""
    width = range(planes * switches)
    ways: list[list[Switches]] = []  # that have no link to the ones, and to the others
    starts = []
    for coloured in (some for size in range(len(width) + 1) for some in combinations(width, size)):
        others = [switch for switch in width if switch not in coloured]
        for f, i in _pairs(len(others)):
            starts.append(len(ways))
            for free in combinations(others, f):
                rest = [switch for switch in others if switch not in free]
                ways += [[(*coloured, *free), (*free, *either)] for either in combinations(rest, i)]
    counts = [
        [np.bincount(np.array(some, dtype=int) // switches, minlength=planes) for some in way]
        for way in ways
    ]
    above, below = np.moveaxis(np.array(counts), 1, 0)
    return above, below, np.array(starts)


def signed_ways(some: Layouts) -> Numbers:
    """Number of splits of a layout, times the Moebius weight (-1)^(r-1) (r-1)! of r blocks."""
    blocks = some.blocks.any(axis=2).sum(axis=1)
    weights = [
        0,
        *((-1) ** (r - 1) * math.factorial(r - 1) for r in range(1, int(blocks.max()) + 1)),
    ]
    return np.asarray(some.ways * np.array(weights, dtype=object)[blocks])
