"""Two terminals in a random graph whose vertices are alike: outbreaks that must avoid a target.

A *crowd* is a complete graph (one side, whose vertices meet each other) or a complete bipartite one (two
sides, each meeting the other), every link up with the same chance. An outbreak runs through it from the
vertices to which the first terminal is attached; the terminals are separated if it ends without having hit a
vertex to which the second one is attached. Whoever falls ill has to miss every such target that it meets.

A terminal hangs between two vertices and has taken the place of their link. So, where it is attached to one
of them only, this link is missing: one vertex may be *shy*, not hit by the vertex that starts, and one
*tame*, unable to hit the target. All sums have positive terms only.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from functools import cache
from itertools import product
from typing import Final, NamedTuple

from relparallel.reliability.chances import CERTAIN, Chance, series
from relparallel.reliability.closed_forms.outbreaks import binomial_weights, hit_table

NEVER: Final[Chance] = (0.0, 1.0)
Arms = Mapping[int, Chance]
Names = frozenset[int]
_NOBODY, _STRANGER, _TAME = range(3)  # who is shy


class Crowd(NamedTuple):
    """A crowd with two terminals."""

    sides: Mapping[int, int]
    others: tuple[int, ...]
    vertex: Chance
    link: Chance
    first: Arms
    second: Arms


def between(crowd: Crowd) -> Chance:
    """Chance that a crowd joins its two terminals (and that it does not)."""
    sides, others, vertex, link, first, second = crowd
    outbreaks = _Outbreaks(sides, others, link)
    joined, apart = [], []
    for counts, alive, weight in _survivors(sides, others, vertex):
        for (start, p), (target, q) in product(_attached(first, alive), _attached(second, alive)):
            if not start or not target or start & target:
                chance = CERTAIN if start & target else CERTAIN[::-1]
            else:
                missing = [frozenset(arms) for arms, to in ((first, start), (second, target)) if len(to) == 1]
                chance = outbreaks.chance(alive, counts, start, target, missing)
            joined.append(weight * p * q * chance[0])
            apart.append(weight * p * q * chance[1])
    return math.fsum(joined), math.fsum(apart)


def _survivors(
    sides: Mapping[int, int], others: tuple[int, ...], vertex: Chance
) -> Iterator[tuple[tuple[int, ...], Names, float]]:
    """Which vertices may be up: numbers without a name, names, and the chance of it."""
    up, down = vertex
    weights = [enumerate(binomial_weights(n, vertex).tolist()) for n in others]
    for choice in [*product(*weights)]:
        for states in product((True, False), repeat=len(sides)):
            alive = frozenset(name for name, state in zip(sides, states, strict=True) if state)
            weight = math.prod(w for _, w in choice) * up ** len(alive) * down ** (len(sides) - len(alive))
            if weight > 0:
                yield tuple(n for n, _ in choice), alive, weight


def _attached(arms: Arms, alive: Names) -> list[tuple[Names, float]]:
    """To which living vertices a terminal may be attached, with chances."""
    near = [name for name in arms if name in alive]
    found = []
    for states in product((0, 1), repeat=len(near)):
        to = frozenset(name for name, state in zip(near, states, strict=True) if state == 0)
        found.append((to, math.prod(arms[name][state] for name, state in zip(near, states, strict=True))))
    return [(to, chance) for to, chance in found if chance > 0]


class _Outbreaks:
    """Outbreaks of one crowd; states that recur are looked up."""

    def __init__(self, sides: Mapping[int, int], others: tuple[int, ...], link: Chance) -> None:
        self._sides = sides
        self._opposite = (0,) if len(others) == 1 else (1, 0)
        most = max(others) + len(sides)
        self._hits = [hit_table(n, most, link).tolist() for n in range(most + 1)]
        self._aim = hit_table(1, 2 * most, link).tolist()  # row x: chance that x exposures miss, and hit
        self._spread = cache(self._one_round)

    def chance(
        self, alive: Names, counts: tuple[int, ...], start: Names, target: Names, missing: list[Names]
    ) -> Chance:
        """Chance that an outbreak from ``start`` hits a target, and that it does not."""
        meets = [{s, t} for s in start for t in target if self._opposite[self._sides[s]] == self._sides[t]]
        missed, hit = self._aim[sum(pair not in missing for pair in meets)]
        left, shy, tame = list(counts), _NOBODY, -1
        for name in alive - start - target:
            near_start = len(start) == 1 and start | {name} in missing
            if len(target) == 1 and target | {name} in missing:
                tame, shy = self._sides[name], _TAME if near_start else shy
            elif near_start:
                shy = _STRANGER
            else:
                left[self._sides[name]] += 1
        goals = tuple(
            sum(self._sides[t] == self._opposite[side] for t in target) for side in range(len(left))
        )
        at = sorted(self._sides[s] for s in start)
        waiting = len(set(at)) - 1
        rest = self._spread(at[0], len(at) - waiting, waiting, tuple(left), tame, shy, goals)
        return series((missed, hit), rest[::-1])[::-1]

    def _one_round(
        self,
        side: int,
        ill: int,
        waiting: int,
        left: tuple[int, ...],
        tame: int,
        shy: int,
        goals: tuple[int, ...],
    ) -> Chance:
        """Let those who fell ill last on one side meet the other side, where some may be ill already."""
        if ill == 0:
            return CERTAIN[::-1]
        there, hit, apart = self._opposite[side], 0.0, 0.0
        exposed = tame == there and shy != _TAME
        for caught, share in enumerate(self._aim[ill] if exposed else [1.0]):
            for z, ways in enumerate(self._hits[left[there]][ill]):
                weight = ways * share
                if weight > 0:
                    missed, met = self._aim[goals[there] * z + (goals[there] - 1) * caught]
                    after = list(left)
                    after[there] += (shy == _STRANGER) - z
                    still = -1 if caught else tame
                    rest = self._spread(there, waiting + z + caught, 0, tuple(after), still, _NOBODY, goals)
                    hit += weight * (met + missed * rest[0])
                    apart += weight * missed * rest[1]
        return hit, apart
