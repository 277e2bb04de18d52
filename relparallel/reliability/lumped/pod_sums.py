"""The terms of the sum over all splits of the cores, in any of the arithmetics of `arithmetic`.

Letters: q is the down-probability of a link between core and aggregation switch. In a plane with n cores in
blocks and s live cores outside them, a switch that is up is coloured by a block of j cores with probability
q^(n + s - j) (1 - q^j), free with q^(n + s), idle with q^n (1 - q^s).

Arrays of duals have one axis more, the first: all others are counted from the last.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
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


class States(NamedTuple):
    """Chances of a switch, by the number of live cores of its plane outside the blocks."""

    coloured: Numbers  # up and without a link to them; the block that it sees is in the power sums
    down: Numbers
    free: Numbers
    idle: Numbers


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
    def states(self) -> list[States]:
        """Chances of the other states, by the number of cores in blocks."""
        miss, seen = self._links
        down = self.scale.array([1 - self.up] * (self.cores + 1))
        up = self.scale.times(self.scale.array([self.up]), miss)
        alone = [up[..., n : n + 1] for n in range(self.cores + 1)]  # no link to a core in blocks
        return [States(up, down, self.scale.times(x, miss), self.scale.times(x, seen)) for x in alone]

    def core_chances(self, sizes: tuple[int, ...], outside: Outside, alive: Sequence[Exact]) -> Numbers:
        """Probability that the cores in the blocks are up and just so many others, [choices].

        ``alive``: by the number of cores that are up, the probability of any one such state.
        """
        chances = []
        for others in outside:
            ways = math.prod(math.comb(self.cores - n, s) for n, s in zip(sizes, others, strict=True))
            chances.append(ways * alive[sum(sizes) + sum(others)])
        return self.scale.array(chances)

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

    def agreements(
        self, some: Layouts, weights: Sequence[tuple[int, Numbers]]
    ) -> Iterator[tuple[int, Numbers]]:
        """For pods of each kind: how many, and the probability that one agrees, [layouts, choices]."""
        sums = self.power_sums(some)
        return ((count, self.scale.product(sums, weight)) for count, weight in weights)

    def weights(self, sizes: tuple[int, ...], outside: Outside, table: Table) -> Numbers:
        """What multiplies each power sum in the probability that a pod agrees, [kinds, choices]."""
        width = self.planes * self.switches
        by_size = []
        for size in range(width + 1):
            rest = [(f, i) for f in range(width - size + 1) for i in range(width - size - f + 1)]
            shapes = integer_partitions(size)
            entries = self.scale.array(table[shape, f, i] for shape in shapes for f, i in rest)
            by_size.append((rest, entries.reshape(*entries.shape[:-1], len(shapes), len(rest))))
        uncoloured = self._uncoloured(sizes, outside)
        parts = []
        for coloured in self._chosen:
            rest, entries = by_size[len(coloured)]
            chances = np.stack([uncoloured[coloured][key] for key in rest], axis=-2)
            parts.append(self.scale.product(entries, chances))
        return np.concatenate(parts, axis=-2)

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

    def _uncoloured(
        self, sizes: tuple[int, ...], outside: Outside
    ) -> dict[Switches, dict[tuple[int, int], Numbers]]:
        """Chance of so many free and idle switches beside the coloured ones, by (free, idle), [choices]."""
        seats = np.array(outside, dtype=np.int64)
        found: dict[Switches, dict[tuple[int, int], Numbers]] = {(): {(0, 0): self._one}}
        for switch in range(self.planes * self.switches):
            plane = switch // self.switches
            states = States(*(chance[..., seats[:, plane]] for chance in self.states[sizes[plane]]))
            before, found = found, {}
            for coloured, sums in before.items():
                found[coloured] = self._one_more(sums, states)
                found[*coloured, switch] = {
                    key: self.scale.times(chance, states.coloured) for key, chance in sums.items()
                }
        return found

    def _one_more(
        self, sums: dict[tuple[int, int], Numbers], states: States
    ) -> dict[tuple[int, int], Numbers]:
        """The chances with one more switch that is not coloured."""
        after: dict[tuple[int, int], Numbers] = {}
        for (f, i), chance in sums.items():
            for key, factor in (((f, i), states.down), ((f + 1, i), states.free), ((f, i + 1), states.idle)):
                more = self.scale.times(chance, factor)
                after[key] = after[key] + more if key in after else more
        return after


def signed_ways(some: Layouts) -> Numbers:
    """How many splits a layout stands for, times the Moebius weight (-1)^(r-1) (r-1)! of r blocks."""
    blocks = some.blocks.any(axis=2).sum(axis=1)
    weights = [0, *((-1) ** (r - 1) * math.factorial(r - 1) for r in range(1, int(blocks.max()) + 1))]
    return np.asarray(some.ways * np.array(weights, dtype=object)[blocks])
