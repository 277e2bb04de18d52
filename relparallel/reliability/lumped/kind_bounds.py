"""Which terms of the lumped sum count in the slopes of pods of several kinds: a first look in floats.

A part of a pod without terminals matters only when much else is down. How little is guessed, and estimated
where the terms do not cancel too far for floats. Letters are those of `kind_slopes`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import reduce
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from relparallel.reliability.lumped.arithmetic import Dual, Duals, Floats, Numbers, Scale, to_power
from relparallel.reliability.lumped.kind_guesses import OF_PODS, misses
from relparallel.reliability.lumped.lumping import (
    BLUR,
    Fabric,
    FloatArray,
    groups_of,
    pieces_of,
    uplinks,
)
from relparallel.reliability.lumped.pod_partitions import IntArray, Layouts
from relparallel.reliability.lumped.pod_sums import Outside, Uplinks, signed_ways
from relparallel.reliability.lumped.pod_tables import Table

BoolArray = NDArray[np.bool_]
_SWITCH: Final = OF_PODS.index("aggregation")
_CORE_LINK: Final = 1 + OF_PODS.index("core_link")  # behind the value
_BLUR: Final = 2.0**-40  # of a slope, at most, for all terms left out
_FEW: Final = 2**10  # terms, all of which cost less than to find those that count
_FOLLOWS: Final = 2.0**-10  # share of a guess that is raised with another
_DOUBT: Final = 1e-13, 1e-10  # more than the error of a slope of W, and of its share in a term, in floats


class Terms(NamedTuple):
    """Layouts of equal sizes in pieces, choices, and for which kinds of pods a pair of them counts."""

    sizes: tuple[int, ...]
    outside: Outside
    pieces: list[tuple[Layouts, IntArray, IntArray, BoolArray]]


def terms_of_slopes(
    fabric: Fabric, tables: list[Table], alive: list[Dual], least: FloatArray, *, estimate: bool
) -> tuple[FloatArray, list[Terms]]:
    """What the slopes are at least, and the terms that count: the others are below 2^-40 of that."""
    look, groups = _Look.of(fabric, tables, alive), groups_of(fabric)
    blur = _BLUR / sum(len(group.ways) * len(outside) for group, outside in groups)
    found, total, doubt = [], np.zeros(len(least)), np.zeros(len(least))
    for group, outside in groups:
        here, pieces = look.at(group.sizes, outside), []
        for some in pieces_of(group):
            large = np.ones((len(some.ways), len(outside)), dtype=bool)
            if large.size > _FEW:
                large = ~(here.bound(some, least) < blur)
            rows, columns = np.nonzero(large)
            if len(rows):
                kept, rows = np.unique(rows, return_inverse=True)
                some = Layouts(some.sizes, some.blocks[kept], some.ways[kept])
                terms, wrong, bounds = here.terms(some, rows, columns)
                total, doubt = total + terms, doubt + wrong
                pieces.append((some, rows, columns, bounds))
        if pieces:
            found.append((group.sizes, outside, pieces))
    if estimate:
        least = _raised(fabric, least, np.where(total > 2 * doubt, total / 4, 0.0))
    blur = _BLUR / sum(len(rows) for *_, pieces in found for _, rows, _, _ in pieces)
    return least, [needed for terms in found if (needed := _needed(*terms, least * blur))]


def _raised(fabric: Fabric, least: FloatArray, estimate: FloatArray) -> FloatArray:
    """Least values, raised to estimates; those of idle edge switches follow their aggregation switches."""
    found = np.where(np.isfinite(least), np.maximum(least, estimate), least)
    pods = zip(
        fabric.pods, least[2:].reshape(-1, len(OF_PODS)), found[2:].reshape(-1, len(OF_PODS)), strict=True
    )
    for (_, terminals, _), before, after in pods:
        if terminals == 0 and np.isfinite(before[_SWITCH]):
            after[3:] = np.maximum(after[3:], before[3:] * (after[_SWITCH] / before[_SWITCH] * _FOLLOWS))
    return found


def _needed(
    sizes: tuple[int, ...],
    outside: Outside,
    pieces: list[tuple[Layouts, IntArray, IntArray, FloatArray]],
    least: FloatArray,
) -> Terms | None:
    """Terms whose bounds are not below ``least``, no other layouts and choices; None if there are none."""
    kept = []
    for some, rows, columns, bounds in pieces:
        large = np.array(~(bounds < least[:, None]), dtype=np.bool_)
        own: BoolArray = np.any(large[2:].reshape(-1, len(OF_PODS), len(rows)), axis=1)
        needed = np.flatnonzero(large.any(axis=0))
        if len(needed):
            used, at = np.unique(rows[needed], return_inverse=True)
            layouts = Layouts(sizes, some.blocks[used], some.ways[used])
            kept.append((layouts, at, columns[needed], own[:, needed]))
    if not kept:
        return None
    used = np.unique(np.concatenate([columns for _, _, columns, _ in kept]))
    renamed = [(some, rows, np.searchsorted(used, columns), own) for some, rows, columns, own in kept]
    return Terms(sizes, [outside[i] for i in used], renamed)


@dataclass(frozen=True)
class _Look:
    """A fabric in floats."""

    fabric: Fabric
    alive: Numbers
    plain: Uplinks
    above: Uplinks
    tables: list[list[Numbers]]
    ceilings: list[list[Numbers]]

    @classmethod
    def of(cls, fabric: Fabric, tables: list[Table], alive: list[Dual]) -> _Look:
        """What is the same for all terms."""
        plain, above = uplinks(fabric, Floats()), with_slopes(fabric, Floats())
        one, each = {}, {}
        for sizes, free, idle in tables[0]:
            one[sizes, free, idle] = Fraction(len(sizes) == 0 or (len(sizes) == 1 and idle == 0))
            each[sizes, free, idle] = Fraction(all(size == 1 for size in sizes))
        ceilings = [plain.entries(one), plain.entries(each)]
        return cls(
            fabric,
            above.scale.array(alive),
            plain,
            above,
            [above.entries(x) for x in tables],
            ceilings,
        )

    def at(self, sizes: tuple[int, ...], outside: Outside) -> _Group:
        """The same with what depends on the choices."""
        uncoloured = self.above.uncoloured(sizes, outside)
        values = [chance[0] for chance in uncoloured]
        return _Group(
            self,
            self.above.core_chances(sizes, outside, self.alive),
            [self.above.weights(uncoloured, own) for own in self.tables],
            np.stack([self.plain.weights(values, own) for own in self.ceilings]),
        )


@dataclass(frozen=True)
class _Group:
    """The terms of some sizes and choices."""

    look: _Look
    likely: FloatArray
    weights: list[FloatArray]
    ceilings: FloatArray

    def bound(self, some: Layouts, least: FloatArray) -> FloatArray:
        """Bounds of the terms by what they are terms of, [layouts, choices]; not sharp for core links."""
        sums, found = self.look.plain.power_sums(some), []
        for pod, own in zip(self.look.fabric.pods, self.weights, strict=True):
            duals = abs(sums @ own) + BLUR
            duals[_CORE_LINK] = np.inf
            found.append(_within(self.look.fabric, pod, duals, sums @ self.ceilings))
        joint, steep = levers([own[0] for own in found], self.likely[0], self._counts, Floats())
        worst = joint * (abs(self.likely) / least[:2, None]).max(axis=0)
        for lever, own, share in zip(steep, found, least[2:].reshape(-1, len(OF_PODS)), strict=True):
            worst = np.maximum(worst, lever * reduce(np.maximum, map(np.divide, own[1:], share)))
        return np.asarray(abs(signed_ways(some)).astype(float)[:, None] * worst)

    def terms(self, some: Layouts, rows: IntArray, columns: IntArray) -> tuple[Numbers, Numbers, Numbers]:
        """Sums of some terms, [2 + 5 kinds], what they may be wrong by, and bounds of each, [.., terms].

        The sum of R is left out, and 0.
        """
        sums, found, above = self.look.above.power_sums(some), [], []
        ceilings = (sums[0] @ self.ceilings)[:, rows, columns]
        for pod, own in zip(self.look.fabric.pods, self.weights, strict=True):
            duals = sums[0] @ own
            duals[_CORE_LINK] += sums[1] @ own[0]
            found.append(duals[:, rows, columns])
            above.append(_within(self.look.fabric, pod, abs(found[-1]) + BLUR, ceilings))
        likely, ways = self.likely[:, columns], signed_ways(some).astype(float)[rows]
        joint, steep = levers([own[0] for own in above], likely[0], self._counts, Floats())
        bounds = [joint * abs(likely), *(x * own[1:] for x, own in zip(steep, above, strict=True))]
        joint, steep = levers([abs(own[0]) for own in found], likely[0], self._counts, Floats())
        shares = [joint * likely * [[0], [1]], *(x * own[1:] for x, own in zip(steep, found, strict=True))]
        exact, wrong = np.concatenate(shares), _DOUBT[1] * abs(np.concatenate(shares))
        wrong[2:] += _DOUBT[0] * np.repeat(steep, len(OF_PODS), axis=0)
        return np.asarray(exact @ ways), np.asarray(wrong @ abs(ways)), abs(ways) * np.concatenate(bounds)

    @property
    def _counts(self) -> list[int]:
        """Pods of each kind."""
        return [count for count, *_ in self.look.fabric.pods]


def _within(fabric: Fabric, pod: tuple[int, int, int], duals: FloatArray, ceilings: FloatArray) -> FloatArray:
    """W and its slopes, or what is sure to be above them without any difference where that is less, [6, ..].

    A pod that agrees sees one block, or two of its switches see different cores and no edge switch joins
    them. W is between its values with a part up and down, 0 to 1: they differ by W over the smaller chance
    of the part. Edge switches without terminals can only join what has to be apart, if all others do not.
    """
    (one, each), (_, terminals, others) = ceilings, pod
    near, far = misses(fabric)
    apart = far ** max(others - 1, 0) * near**terminals * each
    value = np.minimum(duals[0], one + (apart * far if others else apart))
    width, found = fabric.planes * fabric.aggregations, [value]
    parts = (width * fabric.cores, width, width * terminals, width * others, others)
    for name, count, slope in zip(OF_PODS, parts, duals[1:], strict=True):
        rarest = min(getattr(fabric, "edge_link" if name == "other_link" else name))
        differ = np.minimum(value / rarest, 1.0) if rarest > 0 else np.zeros_like(value)
        if terminals == 0 and name in ("other_link", "edge"):
            differ = np.minimum(differ, apart)
        found.append(np.minimum(slope, count * differ))
    return np.stack(found)


def with_slopes(fabric: Fabric, scale: Scale | Floats) -> Uplinks:
    """Uplinks with slopes by switches and by their links to cores, each for itself."""
    plain, by = uplinks(fabric, scale), (Fraction(1),)
    return replace(plain, up=Dual(plain.up, by), link_up=Dual(plain.link_up, by), scale=Duals(scale, 1))


def levers(
    agree: list[Numbers], chances: Numbers, counts: list[int], scale: Scale | Floats
) -> tuple[Numbers, list[Numbers]]:
    """What multiplies the cores' chances and the slope of each pod's, [layouts, choices] both."""
    rest = [
        to_power(x, n - 1, scale) if n > 1 else scale.one + 0 * x for x, n in zip(agree, counts, strict=True)
    ]
    whole = [scale.times(x, y) for x, y in zip(rest, agree, strict=True)]
    levers = []
    for t, n in enumerate(counts):
        others = reduce(scale.times, [*whole[:t], *whole[t + 1 :]], rest[t])
        levers.append(scale.times(others, n * chances))
    return reduce(scale.times, whole), levers
