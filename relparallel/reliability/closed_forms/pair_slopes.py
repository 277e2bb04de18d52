"""How much each part matters where every pair of a few edge switches needs a way up and down.

Groups are independent, and a part belongs to one of them. It decides where the groups join all pairs if the
part is up, and not if it is down: the chance of that is a sum of products, and nothing is subtracted.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations, product

import numpy as np
from numpy.typing import NDArray

from relparallel.reliability.chances import Chance
from relparallel.reliability.closed_forms.form_slopes import ClassSlopes
from relparallel.reliability.closed_forms.job_forms import bridged, unions

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


class _Group:
    """One group of cores over the pods of a few edge switches; sets are bit masks.

    ``joined[seats reached, bridges]`` has the pairs of seats that are joined, a bridge being a pair of pods;
    ``decides[down, up]`` the chance that the other groups fail with the first set of pairs and not with the
    second one.
    """

    def __init__(
        self,
        groups: int,
        cores: int,
        pods: Sequence[int],
        core: Chance,
        core_link: Chance,
        reached: FloatArray,
    ) -> None:
        self.pods, self.names, self.cores = pods, sorted(set(pods)), cores
        self.core, self.core_link, self.reached = core, core_link, reached
        self.bridges = {pair: 1 << i for i, pair in enumerate(combinations(self.names, 2))}
        masks = np.arange(2 ** len(self.bridges))
        self.joined = np.zeros((2 ** len(pods), len(masks)), dtype=np.int64)
        for i, (x, y) in enumerate(combinations(range(len(pods)), 2)):
            both = [s for s in range(2 ** len(pods)) if s >> x & s >> y & 1]
            bridge = self.bridges.get((min(pods[x], pods[y]), max(pods[x], pods[y])))
            self.joined[both] |= (masks & bridge != 0) << i if bridge else 1 << i
        above = bridged(cores, self.names, core, core_link)
        pairs = math.comb(len(pods), 2)
        weights = (reached[:, None] * above).ravel()
        one = np.asarray(np.bincount(self.joined.ravel(), weights, 2**pairs), dtype=np.float64)
        self.above, self.decides = above, _decides(unions(one, groups - 1), pairs)

    def slope(self, before: int, after: int, bridges: IntArray, chance: FloatArray) -> float:
        """Chance that one of two sets of seats decides, over bridges with their chance."""
        down, up = self.joined[before, bridges], self.joined[after, bridges]
        return float(chance @ self.decides[down, up])

    def by_core(self) -> float:
        """Of one core."""
        masks, others = (
            np.arange(len(self.above)),
            bridged(self.cores - 1, self.names, self.core, self.core_link),
        )
        return sum(
            chance * self._by_bridges(masks, masks | wired, others) for _, wired, chance in self._wired(None)
        )

    def by_core_link(self, pod: int) -> float:
        """Of one core's cable to this pod."""
        masks, others = (
            np.arange(len(self.above)),
            bridged(self.cores - 1, self.names, self.core, self.core_link),
        )
        total = 0.0
        for names, wired, chance in self._wired(pod):
            more = self._bits([*names, pod])
            total += float(self.core[0]) * chance * self._by_bridges(masks | wired, masks | more, others)
        return total

    def _by_bridges(self, before: IntArray, after: IntArray, chance: FloatArray) -> float:
        """Chance that bridges decide, over all sets of seats."""
        found = self.decides[self.joined[:, before], self.joined[:, after]]
        return float(self.reached @ found @ chance)

    def _wired(self, missing: int | None) -> Iterator[tuple[list[int], int, float]]:
        """Pods to which a core has a cable up, but for one pod; the bridges that it makes, and the chance."""
        names = [name for name in self.names if name != missing]
        for states in product((0, 1), repeat=len(names)):
            wired = [name for name, state in zip(names, states, strict=True) if state == 0]
            yield wired, self._bits(wired), math.prod(float(self.core_link[state]) for state in states)

    def _bits(self, wired: list[int]) -> int:
        """Bridges between these pods."""
        return sum(self.bridges[pair] for pair in combinations(sorted(wired), 2))


def slopes_of_pairs(
    groups: int,
    cores: int,
    pods: Sequence[int],
    core: Chance,
    aggregation: Chance,
    core_link: Chance,
    link: Chance,
    *,
    needed: bool = False,
) -> ClassSlopes:
    """Slopes by a core, and by the parts of a pod with so many of the edge switches.

    Notes
    -----
    Takes at most a few times as long as `pairs_joined` itself.
    """
    inside = {pod: _inside(pods, pod, aggregation, link) for pod in set(pods)}
    group = _Group(groups, cores, pods, core, core_link, _product(len(pods), inside.values()))
    above, masks, found = group.above, np.arange(len(group.above)), {}
    for pod, seats in sorted(Counter(pods).items()):
        if seats in found:
            continue
        mine = [seat for seat, name in enumerate(pods) if name == pod]
        others = _product(len(pods), (chances for name, chances in inside.items() if name != pod))
        by_switch = by_link = 0.0
        for outside, rest in enumerate(others.tolist()):
            for states in product((0, 1), repeat=seats):
                here = sum(1 << seat for seat, state in zip(mine, states, strict=True) if state == 0)
                chance = rest * math.prod(float(link[state]) for state in states)
                by_switch += chance * group.slope(outside, outside | here, masks, above)
            for states in product((0, 1), repeat=seats - 1):
                here = outside | sum(1 << seat for seat, s in zip(mine[1:], states, strict=True) if s == 0)
                chance = rest * float(aggregation[0]) * math.prod(float(link[s]) for s in states)
                by_link += chance * group.slope(here, here | 1 << mine[0], masks, above)
        found[seats] = by_switch, group.by_core_link(pod), by_link
    return ClassSlopes(core=group.by_core(), needed=needed, seats=found)


def _inside(pods: Sequence[int], pod: int, aggregation: Chance, link: Chance) -> dict[int, float]:
    """Chance that one group reaches just these seats of a pod."""
    mine = [seat for seat, name in enumerate(pods) if name == pod]
    found = defaultdict[int, float](float, {0: float(aggregation[1])})
    for states in product((0, 1), repeat=len(mine)):
        here = sum(1 << seat for seat, state in zip(mine, states, strict=True) if state == 0)
        found[here] += float(aggregation[0]) * math.prod(float(link[state]) for state in states)
    return found


def _product(seats: int, pods: Iterable[dict[int, float]]) -> FloatArray:
    """Distribution of the seats that are reached in some pods."""
    chance = np.zeros(2**seats)
    for some in product(*(inside.items() for inside in pods)):
        chance[sum(here for here, _ in some)] += math.prod(p for _, p in some)
    return chance


def _decides(others: FloatArray, pairs: int) -> FloatArray:
    """Chance that a random set of pairs and the first set are not all together, but with the second are."""
    sets = np.arange(len(others))
    lacking = np.where((sets[:, None] | sets) != sets[-1], others, 0.0)  # [first, random]
    for pair in range(pairs):  # to the chance of all random sets with some pairs
        one = lacking.reshape(len(sets), -1, 2, 2**pair)
        one[:, :, 0] += one[:, :, 1]
    return lacking[:, ::-1]  # those that the second set lacks
