"""The terms of the sum over all splits of the cores, in any of the arithmetics of `arithmetic`.

Letters: q is the down-probability of a link between core and aggregation switch. In a plane with n cores in
blocks and s live cores outside them, a switch that is up is coloured by a block of j cores with probability
q^(n + s - j) (1 - q^j), free with q^(n + s), idle with q^n (1 - q^s).

Arrays of duals have one axis more, the first: all others are counted from the last.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import NamedTuple

import numpy as np

from relparallel.reliability.lumped.arithmetic import Duals, Exact, Floats, Numbers, Scale
from relparallel.reliability.lumped.pod_partitions import Layouts, integer_partitions, set_partitions
from relparallel.reliability.lumped.pod_tables import Table

__all__ = ["Kind", "Outside", "Uplinks", "signed_ways"]

Outside = Sequence[tuple[int, ...]]  # live cores of each plane outside the blocks, [choices, planes]
Blocks = tuple[tuple[int, ...], ...]  # a set partition, sorted
Switches = tuple[int, ...]  # by index in the pod


class Kind(NamedTuple):
    """Power sums that have one weight: which switches are coloured, and how many share each colour."""

    coloured: Switches
    sizes: tuple[int, ...]


@dataclass(frozen=True)
class Uplinks:
    """The aggregation switches of one pod and their links to the cores.

    Parameters
    ----------
    planes, cores, switches : int
        Planes, cores of each plane, and aggregation switches of the pod in each plane.
    up, link_up : Fraction or Dual
        Of an aggregation switch, and of its link to a core.
    scale : Scale, Floats or Duals
        Of the numbers; its `array` takes the fractions or duals above.
    """

    planes: int
    cores: int
    switches: int
    up: Exact
    link_up: Exact
    scale: Scale | Floats | Duals

    @cached_property
    def kinds(self) -> list[Kind]:
        """Sets of coloured switches with the integer partitions of their number."""
        chosen = self._chosen
        return [Kind(some, sizes) for some in chosen for sizes in integer_partitions(len(some))]

    @cached_property
    def terms(self) -> list[tuple[Kind, Blocks]]:
        """All sets of coloured switches with all set partitions: Bell(number of switches + 1)."""
        found = [(some, tuple(sorted(blocks))) for some in self._chosen for blocks in set_partitions(some)]
        return [(Kind(some, tuple(sorted(map(len, blocks), reverse=True))), blocks) for some, blocks in found]

    @cached_property
    def _chosen(self) -> list[Switches]:
        """All sets of switches, smaller ones first."""
        width = range(self.planes * self.switches)
        return [some for size in range(len(width) + 1) for some in combinations(width, size)]

    @cached_property
    def _one(self) -> Numbers:
        """The number 1, [1]."""
        return self.scale.array([self.up**0])

    @cached_property
    def _links(self) -> tuple[Numbers, Numbers]:
        """q^j and 1 - q^j for all numbers j of cores."""
        miss = [(1 - self.link_up) ** j for j in range(self.cores + 1)]
        return self.scale.array(miss), self.scale.array(1 - q for q in miss)

    @cached_property
    def colours(self) -> list[Numbers]:
        """Chance of links to j cores of a block, of n in blocks, and to no other core in them: [n][j]."""
        miss, seen = self._links
        return [self.scale.times(miss[..., n::-1], seen[..., : n + 1]) for n in range(self.cores + 1)]

    @cached_property
    def states(self) -> list[Numbers]:
        """Chances of a switch, by the number of cores in blocks: [its state, live cores outside of blocks].

        Coloured (up without a link to these cores: the block that it sees is in the power sums), down, and
        without a link to a core in blocks free (to none at all) or idle.
        """
        miss, seen = self._links
        down = self.scale.array([1 - self.up] * (self.cores + 1))
        up = self.scale.times(self.scale.array([self.up]), miss)
        alone = [up[..., n : n + 1] for n in range(self.cores + 1)]
        return [
            np.stack([up, down, self.scale.times(x, miss), self.scale.times(x, seen)], axis=-2) for x in alone
        ]

    def core_chances(self, sizes: tuple[int, ...], outside: Outside, alive: Numbers) -> Numbers:
        """Probability that the cores in the blocks are up and just so many others, [choices].

        ``alive``: by the number of cores that are up, the probability of any one such state.
        """
        seats, ways = np.array(outside, dtype=np.int64), np.ones(len(outside), dtype=np.int64)
        for n, others in zip(sizes, seats.T, strict=True):
            ways *= np.array([math.comb(self.cores - n, s) for s in range(self.cores - n + 1)])[others]
        return np.asarray(alive[..., sum(sizes) + seats.sum(axis=1)] * ways)

    def power_sums(self, some: Layouts) -> Numbers:
        """Sum over the colours of the chance that all switches of a block have it, [layouts, kinds].

        One factor for each block of a set partition; added up over those of one kind. The switches are up.
        """
        profile = np.ravel_multi_index(np.moveaxis(some.blocks, 2, 0), [n + 1 for n in some.sizes])
        summed = {
            switches: chance[..., profile].sum(axis=-1)
            for switches, chance in self._chances(some.sizes).items()
        }
        factors: dict[Blocks, Numbers] = {(): np.repeat(self._one, len(some.ways), axis=-1)}
        sums: dict[Kind, Numbers] = {}
        for kind, blocks in self.terms:
            if blocks:
                *before, last = blocks
                factors[blocks] = (
                    self.scale.times(factors[tuple(before)], summed[last]) if before else summed[last]
                )
            sums[kind] = sums[kind] + factors[blocks] if kind in sums else factors[blocks]
        return np.stack([sums[kind] for kind in self.kinds], axis=-1)

    def entries(self, table: Table) -> list[Numbers]:
        """A pod's table by the number of coloured switches: [sizes of the colours, free and idle]."""
        found = []
        for size in range(self.planes * self.switches + 1):
            shapes, rest = integer_partitions(size), self._rest(size)
            entries = self.scale.array(table[shape, f, i] for shape in shapes for f, i in rest)
            found.append(entries.reshape(*entries.shape[:-1], len(shapes), len(rest)))
        return found

    def weights(self, uncoloured: list[Numbers], entries: list[Numbers]) -> Numbers:
        """What multiplies each power sum in the probability that a pod agrees, [kinds, choices]."""
        pairs = zip(self._chosen, uncoloured, strict=True)
        parts = [self.scale.product(entries[len(coloured)], chances) for coloured, chances in pairs]
        return np.concatenate(parts, axis=-2)

    def weight_slopes(
        self, uncoloured: list[Numbers], entries: list[Numbers], lever: Numbers, scale: Scale
    ) -> Numbers:
        """Slopes of the sum of all weights times ``lever``, by the chances and then the table's."""
        slopes, first = [], 0
        for coloured, chances in zip(self._chosen, uncoloured, strict=True):
            own = entries[len(coloured)]
            some = lever[first : first + own.shape[-2]]
            first += len(some)
            by_entry, by_chance = scale.product(some, chances[0].T), scale.product(own[0].T, some)
            parts = (chances[1:], by_chance), (own[1:], by_entry)
            slopes.append(np.concatenate([x.reshape(len(x), -1) @ by.ravel() for x, by in parts]))
        return np.asarray(scale.rounded(np.sum(slopes, axis=0)))

    def uncoloured(self, sizes: tuple[int, ...], outside: Outside) -> list[Numbers]:
        """Chance of so many free and idle switches beside the coloured ones, [free and idle, choices]."""
        seats = np.array(outside, dtype=np.int64)
        found: dict[Switches, Numbers] = {(): self._one[..., None, None, :]}  # by free and idle switches
        for switch in range(self.planes * self.switches):
            plane = switch // self.switches
            states = self.states[sizes[plane]][..., None, None, seats[:, plane]]
            before, found = found, {}
            for coloured, sums in before.items():
                found[*coloured, switch], found[coloured] = self._one_more(sums, states)
        rest = [np.transpose(self._rest(len(some))) for some in self._chosen]
        return [found[some][..., f, i, :] for some, (f, i) in zip(self._chosen, rest, strict=True)]

    def _rest(self, size: int) -> list[tuple[int, int]]:
        """Numbers of free and idle switches beside so many coloured ones."""
        left = self.planes * self.switches - size
        return [(f, i) for f in range(left + 1) for i in range(left - f + 1)]

    def _chances(self, sizes: tuple[int, ...]) -> dict[Switches, Numbers]:
        """Chance that all of some switches have a colour, by the profile of its block, [profiles]."""
        own: list[Numbers] = []
        for plane, n in enumerate(sizes):
            shape = [n + 1 if other == plane else 1 for other in range(self.planes)]
            own.append(self.colours[n].reshape(*self.colours[n].shape[:-1], *shape))
        found: dict[Switches, Numbers] = {}
        for switches in self._chosen[1:]:
            *others, last = switches
            chance = own[last // self.switches]
            found[switches] = self.scale.times(found[tuple(others)], chance) if others else chance
        profiles = tuple(n + 1 for n in sizes)
        return {
            switches: np.broadcast_to(chance, (*chance.shape[: -self.planes], *profiles)).reshape(
                *chance.shape[: -self.planes], -1
            )
            for switches, chance in found.items()
        }

    def _one_more(self, sums: Numbers, states: Numbers) -> tuple[Numbers, Numbers]:
        """The chances with one more switch, coloured and not."""
        every = self.scale.times(sums[..., None, :, :, :], states)
        coloured, down, free, idle = np.moveaxis(every, -4, 0)
        *lead, width, _, choices = down.shape
        after = np.zeros((*lead, width + 1, width + 1, choices), dtype=down.dtype)
        after[..., :-1, :-1, :] = down
        after[..., 1:, :-1, :] += free
        after[..., :-1, 1:, :] += idle
        return coloured, after


def signed_ways(some: Layouts) -> Numbers:
    """How many splits a layout stands for, times the Moebius weight (-1)^(r-1) (r-1)! of r blocks."""
    blocks = some.blocks.any(axis=2).sum(axis=1)
    weights = [0, *((-1) ** (r - 1) * math.factorial(r - 1) for r in range(1, int(blocks.max()) + 1))]
    return np.asarray(some.ways * np.array(weights, dtype=object)[blocks])
