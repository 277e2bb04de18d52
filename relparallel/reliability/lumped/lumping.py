"""Exact reliability of data-centre fabrics by symmetry: interchangeable pods under alike cores.

Given how the cores hang together, the pods are independent. Let a *split* put some of the live
cores into r >= 1 blocks and leave the others out, and let W(split) be the probability that one pod
agrees with it (see `agreement`). Summed over all splits, with the Moebius weight (-1)^(r-1) (r-1)!
of the lattice of partitions, the product of W over the pods is the probability that all terminals
are joined: the components of the network that hold terminals can form only one block, and those
that hold none can only be left out. So

    R = sum over splits of P(the cores' states) (-1)^(r-1) (r-1)! W(split)^pods,

a sum over orbits of the exchange of cores and of planes, whose length does not depend on the pods.
Its terms have both signs. It is therefore summed in integers of as many bits as keep R and 1 - R to
16 digits; terms that floats show to be smaller than the last of these digits are left out.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from functools import reduce
from itertools import compress, product
from typing import Final

import numpy as np

from relparallel.reliability.closed_forms.alike_pods import Fabric, Match, Pods, match_fabric
from relparallel.reliability.lumped.arithmetic import (
    Exact,
    Floats,
    Numbers,
    Scale,
    exact_up,
    to_power,
)
from relparallel.reliability.lumped.interchangeable_nodes import twins
from relparallel.reliability.lumped.pod_partitions import (
    Layouts,
    Table,
    agreement,
    count_layouts,
    layouts,
    power_sum_weights,
)
from relparallel.reliability.lumped.pod_sums import Outside, Uplinks, signed_ways
from relparallel.reliability.probability import CERTAIN, Chance, series
from relparallel.reliability.problem import Problem
from relparallel.reliability.result import Reliability, exactly
from relparallel.topology import Topology

_MOST_SWITCHES: Final = 5  # aggregation switches of a pod: Bell(6) = 203 terms
_MOST_PROFILES: Final = 1000  # (cores + 1)^planes: counting the layouts takes the square of it
_MOST_LAYOUTS: Final = 300_000
_AT_ONCE: Final = 4096  # layouts per matrix product: bounds the memory
Terms = tuple[tuple[int, ...], Outside, list[Layouts]]
BLUR: Final = 1e-10  # more than the rounding of a pod's probability in floats


def lumped(topology: Topology, problem: Problem) -> Reliability | None:
    """The exact answer where the network has one of the known symmetries, else None."""
    match = match_small_fabric(topology, problem)
    if match is not None:
        return terminals_connected(match.fabric, match.outside(problem))
    return twins(problem)


def match_small_fabric(topology: Topology, problem: Problem) -> Match | None:
    """A fabric with terminals in two or more pods, and few enough cores to try their partitions."""
    match = match_fabric(topology, problem)
    if match is None or sum(pods.copies for pods in match.fabric.terminal_pods) < 2:
        return None
    planes, cores = match.fabric.planes, match.fabric.cores
    if (
        planes * match.fabric.aggregations > _MOST_SWITCHES
        or (cores + 1) ** planes > _MOST_PROFILES
    ):
        return None
    return match if count_layouts(planes, cores) <= _MOST_LAYOUTS * math.factorial(planes) else None


def terminals_connected(fabric: Fabric, own: Chance = CERTAIN) -> Reliability:
    """Probability that the terminal edge switches of two or more pods are joined and ``own`` is up.

    The partitions of the 16 cores of a k=8 fat-tree fall into 286 878 layouts, with the live cores
    outside of blocks 1.8e6 terms of 34 products; their list is made once.
    """
    if sum(pods.copies for pods in fabric.terminal_pods) < 2:
        raise ValueError(f"pods must hold terminals in two pods or more, got {fabric.pods}")
    tree, cut = floors(fabric)
    if tree == 0 or cut == 0:
        return exactly(*series((0.0, 1.0) if tree == 0 else CERTAIN, own), "exact")
    smallest = min(tree, cut)
    scale, terms = scale_of(fabric, smallest), large_terms(fabric, float(smallest) * 2.0**-64)
    total = connected(fabric, scale, terms)
    states = sum(len(group.ways) * len(outside) for group, outside in _groups(fabric))
    return exactly(*series(scale.chance(total), own), "exact", states=states)


def floors(fabric: Fabric) -> tuple[Fraction, Fraction]:
    """Lower bounds of R, the chance of one tree, and 1 - R, that of one cut; 0 only if they are 0.

    The cuts: an edge switch from its pod, a pod from the cores, the cores from everything.
    """
    tree = c = exact_up(fabric.core)
    cut, width = (1 - c) ** (fabric.planes * fabric.cores), fabric.planes * fabric.aggregations
    for pods in fabric.terminal_pods:
        a, l, m = map(exact_up, (pods.aggregation, pods.core_link, pods.edge_link))  # noqa: E741
        tree *= (a * l * m**pods.terminals) ** pods.copies
        cut = max(cut, (1 - a * m) ** width, (1 - a + a * (1 - c * l) ** fabric.cores) ** width)
    return tree, cut


def scale_of(fabric: Fabric, smallest: Fraction) -> Scale:
    """Numbers of enough bits for results that are at least ``smallest``."""
    return Scale.of(
        fabric.planes * fabric.cores, sum(pods.copies for pods in fabric.pods), smallest
    )


def connected(fabric: Fabric, scale: Scale, terms: Iterable[Terms]) -> int:
    """Probability that terminals are joined, in units of the scale, as the sum of these terms."""
    ups = [_uplinks(fabric, pods, scale) for pods in fabric.pods]
    entries = [up.entries(_table(fabric, pods)) for up, pods in zip(ups, fabric.pods, strict=True)]
    alive, total = scale.array(_states_of_cores(fabric)), 0
    for sizes, outside, pieces in terms:
        chances = ups[0].core_chances(sizes, outside, alive)
        weights = [
            up.weights(up.uncoloured(sizes, outside), own)
            for up, own in zip(ups, entries, strict=True)
        ]
        for some in pieces:
            agree = [
                to_power(scale.product(sums, own), pods.copies, scale)
                for sums, own, pods in zip(
                    _power_sums(ups, some), weights, fabric.pods, strict=True
                )
            ]
            total += int((signed_ways(some) @ reduce(scale.times, agree) @ chances) >> scale.bits)
    return total


def large_terms(fabric: Fabric, blur: float) -> Iterator[Terms]:
    """Layouts and choices whose terms count at first look in floats: others are below ``blur``."""
    ups = [_uplinks(fabric, pods, Floats()) for pods in fabric.pods]
    entries = [up.entries(_table(fabric, pods)) for up, pods in zip(ups, fabric.pods, strict=True)]
    live, groups = Floats().array(_states_of_cores(fabric)), _groups(fabric)
    least = blur / sum(len(group.ways) * len(outside) for group, outside in groups)
    for group, outside in groups:
        likely = ups[0].core_chances(group.sizes, outside, live)
        weights = [
            up.weights(up.uncoloured(group.sizes, outside), own)
            for up, own in zip(ups, entries, strict=True)
        ]
        pieces, counts = [], np.zeros(len(outside), dtype=bool)
        for some in _pieces(group):
            bound = abs(signed_ways(some)).astype(float)[:, None] * likely
            for sums, own, pods in zip(_power_sums(ups, some), weights, fabric.pods, strict=True):
                bound *= (abs(sums @ own) + BLUR) ** pods.copies
            large = ~(bound < least)
            kept = large.any(axis=1)
            if kept.any():
                pieces.append(Layouts(group.sizes, some.blocks[kept], some.ways[kept]))
                counts |= large.any(axis=0)
        if pieces:
            yield group.sizes, list(compress(outside, counts)), pieces


def _states_of_cores(fabric: Fabric) -> list[Exact]:
    """Probability of one state of the cores, by the number of those that are up."""
    up, cores = exact_up(fabric.core), fabric.planes * fabric.cores
    return [up**n * (1 - up) ** (cores - n) for n in range(cores + 1)]


def _table(fabric: Fabric, pods: Pods) -> Table:
    """What multiplies the power sums of a kind of pods."""
    near, far, edge = (exact_up(x) for x in (pods.edge_link, pods.other_link, pods.edge))
    width = fabric.planes * fabric.aggregations
    return power_sum_weights(agreement(width, pods.terminals, pods.others, edge, 1 - near, 1 - far))


def _uplinks(fabric: Fabric, pods: Pods, scale: Scale | Floats) -> Uplinks:
    """The aggregation switches of one pod, in one of the arithmetics of fractions."""
    ups = exact_up(pods.aggregation), exact_up(pods.core_link)
    return Uplinks(fabric.planes, fabric.cores, fabric.aggregations, *ups, scale)


def _power_sums(ups: Sequence[Uplinks], some: Layouts) -> list[Numbers]:
    """Those of each kind of pods, found once for kinds whose uplinks are alike."""
    known = {(up.up, up.link_up): up for up in ups}
    sums = {key: up.power_sums(some) for key, up in known.items()}
    return [sums[up.up, up.link_up] for up in ups]


def _groups(fabric: Fabric) -> list[tuple[Layouts, Outside]]:
    """Layouts of equal sizes, and the numbers of live cores that may be left outside of them."""
    return [
        (group, list(product(*(range(fabric.cores - n + 1) for n in group.sizes))))
        for group in layouts(fabric.planes, fabric.cores)
    ]


def _pieces(group: Layouts) -> Iterator[Layouts]:
    """The layouts in pieces that fit in memory."""
    for start in range(0, len(group.ways), _AT_ONCE):
        piece = slice(start, start + _AT_ONCE)
        yield Layouts(group.sizes, group.blocks[piece], group.ways[piece])
