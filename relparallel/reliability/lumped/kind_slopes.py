"""Slopes of the lumped sum where pods are of several kinds, some of them without terminals.

As in `pod_slopes`, but with a lever for each kind of pod t, of which there are n_t:

    R = sum of w P prod W_t^(n_t),  dR by pods t = sum of w P n_t W_t^(n_t - 1) dW_t prod W_u^(n_u).

A part of a pod without terminals matters only when much else is down. How little is not known before: the sum
is made again, of more bits and terms, until its smallest slope is far above what it leaves out.
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from functools import reduce
from typing import Final, NamedTuple

import numpy as np

from relparallel.reliability.lumped.arithmetic import Dual, Duals, Numbers, Scale, exact_up, to_power
from relparallel.reliability.lumped.lumping import (
    Fabric,
    floors,
    large_terms,
    states_of_cores,
    uplinks,
)
from relparallel.reliability.lumped.pod_sums import signed_ways
from relparallel.reliability.lumped.pod_tables import Table, agreement, power_sum_weights

__all__ = ["OF_PODS", "KindSlopes", "slopes_of_kinds"]

OF_PODS: Final = ("aggregation", "core_link", "edge_link", "other_link", "edge")
_TRIES: Final = 3
_BLUR: Final = 2.0**-40  # of the smallest slope, at most, for all terms left out
_SHARPER: Final = 2**10  # so much less of R and of 1 - R
_LEAST: Final = Fraction(1, 2**700)  # no sum is made for slopes below


class KindSlopes(NamedTuple):
    """R, its slope by the cores, and by the classes `OF_PODS` of each kind of pods."""

    joined: Fraction
    core: Fraction
    pods: list[dict[str, Fraction]]


def slopes_of_kinds(fabric: Fabric) -> KindSlopes | None:
    """Probability that the terminals are joined, and its derivative by the up-chance of each class of parts.

    Parameters
    ----------
    fabric : Fabric
        Terminals in two pods or more; neither R nor 1 - R is 0.

    Returns
    -------
    KindSlopes or None
        Relative errors below 1e-10; None where a slope is too small for that.

    Examples
    --------
    >>> from relparallel.reliability.chances import CERTAIN, part
    >>> some = Fabric(planes=1, cores=2, aggregations=1, pods=((1, 0, 1), (2, 1, 0)), core=CERTAIN,
    ...               aggregation=CERTAIN, edge=CERTAIN, core_link=part(0.5), edge_link=CERTAIN)
    >>> found = slopes_of_kinds(some)  # 7/16, and 1/32 through the third pod alone
    >>> float(found.joined), float(found.pods[0]["core_link"])
    (0.46875, 0.125)
    """
    smallest, tables = _guess(fabric), [_table(fabric, pod) for pod in fabric.pods]
    for _ in range(_TRIES):
        if smallest < _LEAST:
            return None
        found = _summed(fabric, tables, smallest)
        least = min(found.joined, 1 - found.joined, *_failing(fabric, found))
        if least >= smallest:
            return found
        smallest = least / 4 if least > smallest * Fraction(2.0**-30) else smallest / 2**60
    return None


def _failing(fabric: Fabric, found: KindSlopes) -> list[Fraction]:
    """Slopes of parts that can fail and are of use."""
    slopes = [found.core] if fabric.core[1] > 0 else []
    for (_, terminals, others), own in zip(fabric.pods, found.pods, strict=True):
        for name, slope in own.items():
            chance = getattr(fabric, "edge_link" if name == "other_link" else name)
            if chance[1] > 0 and not _useless(fabric, terminals, others, name):
                slopes.append(slope)
    return slopes


def _useless(fabric: Fabric, terminals: int, others: int, name: str) -> bool:
    """Whether no path between terminals goes through such a part, so that its slope is 0."""
    width, cores = fabric.planes * fabric.aggregations, fabric.planes * fabric.cores
    if name == "edge_link":
        return terminals == 0
    if name in ("other_link", "edge"):
        return others == 0 or width == 1 or (terminals == 0 and cores == 1)
    return terminals == 0 and cores == 1


def _guess(fabric: Fabric) -> Fraction:
    """About the smallest slope: two pods keep a single way up, the others lost a switch, one its ends."""
    width, pods = fabric.planes * fabric.aggregations, sum(count for count, *_ in fabric.pods)
    tree, cut = floors(fabric)
    guess = min(tree, cut) / _SHARPER
    if all(terminals for _, terminals, _ in fabric.pods):
        return guess
    alone = Fraction(math.exp(_log(cut) / width))
    path = exact_up(fabric.edge) * exact_up(fabric.edge_link) ** 2
    idle = (1 - path) ** max(max(others - 1, 0) for _, _, others in fabric.pods) if path < 1 else 1
    return min(guess, tree * idle * alone ** (2 * (width - 1) + max(pods - 3, 0)) / 2**20)


def _log(x: Fraction) -> float:
    """Logarithm of a fraction of any size."""
    return math.log(x.numerator) - math.log(x.denominator)


def _summed(fabric: Fabric, tables: list[Table], smallest: Fraction) -> KindSlopes:
    """R and its slopes; what is left out of any is at most 2^-40 ``smallest``."""
    counts = [count for count, *_ in fabric.pods]
    width = fabric.planes * fabric.aggregations
    parts = sum(counts) * width * (fabric.cores + max(t + n for _, t, n in fabric.pods) + 1)
    alive = states_of_cores(fabric, Dual(exact_up(fabric.core), (Fraction(1),)))
    scale = Scale.of(fabric.planes * fabric.cores, sum(counts), smallest / parts**2)
    plain = uplinks(fabric, scale)
    of_cores = replace(plain, scale=Duals(scale.bits, 1))
    of_links = replace(of_cores, link_up=Dual(plain.link_up, (Fraction(1),)))
    of_weights = replace(
        plain,
        up=Dual(plain.up, _unit(0)),
        link_up=Dual(plain.link_up, _unit(1)),
        scale=Duals(scale.bits, len(OF_PODS)),
    )
    bound = [x.value * parts + abs(x.slopes[0]) for x in alive]
    top, total = 0, 0
    slopes = np.zeros((len(counts), len(OF_PODS)), dtype=object)
    for sizes, outside, pieces in large_terms(fabric, bound, float(smallest) * _BLUR, _rarest(fabric)):
        chances = of_cores.core_chances(sizes, outside, alive)
        weights = [of_weights.weights(sizes, outside, table) for table in tables]
        by_weight = [np.zeros(found.shape[1:], dtype=object) for found in weights]
        for some in pieces:
            sums = of_links.power_sums(some)
            agree = [scale.product(sums[0], found[0]) for found in weights]
            joint, levers = _levers(signed_ways(some), agree, chances[0], counts, scale)
            total += int((joint @ chances[0]) >> scale.bits)
            top += int((joint @ chances[1]) >> scale.bits)
            for t, lever in enumerate(levers):
                by_weight[t] += scale.product(sums[0].T, lever)
                slopes[t, 1] += (scale.product(lever, weights[t][0].T) * sums[1]).sum() >> scale.bits
        for t, found in enumerate(weights):
            slopes[t] += (by_weight[t] * found[1:]).sum(axis=(1, 2)) >> scale.bits
    pods = [
        dict(zip(OF_PODS, (Fraction(int(x), scale.one) for x in own), strict=True)) for own in slopes.tolist()
    ]
    return KindSlopes(Fraction(total, scale.one), Fraction(top, scale.one), pods)


def _rarest(fabric: Fabric) -> float:
    """The smaller chance of a part of a pod that can fail."""
    chances = [fabric.aggregation, fabric.edge, fabric.core_link, fabric.edge_link]
    return float(min([1.0, *(min(chance) for chance in chances if min(chance) > 0)]))


def _unit(index: int) -> tuple[Fraction, ...]:
    """Derivatives of one of the chances in the weights by all of them."""
    return tuple(Fraction(int(i == index)) for i in range(len(OF_PODS)))


def _table(fabric: Fabric, pod: tuple[int, int, int]) -> Table:
    """What multiplies the power sums, with slopes by the links below and the other edge switches."""
    width, (_, terminals, others) = fabric.planes * fabric.aggregations, pod
    link = exact_up(fabric.edge_link)
    near, far, edge = (Dual(up, _unit(i)[2:]) for i, up in enumerate((link, link, exact_up(fabric.edge)), 2))
    table = agreement(
        width, terminals, others, edge if fabric.edge[1] > 0 else Fraction(1), 1 - near, 1 - far
    )
    none = _unit(-1)
    found = {key: Dual(Fraction(0), none[2:]) + x for key, x in power_sum_weights(table).items()}
    return {key: Dual(x.value, none[:2] + x.slopes) for key, x in found.items()}


def _levers(
    ways: Numbers, agree: list[Numbers], chances: Numbers, counts: list[int], scale: Scale
) -> tuple[Numbers, list[Numbers]]:
    """What multiplies the cores' chances, [choices], and the slope of each pod's, [layouts, choices]."""
    rest = [
        to_power(x, n - 1, scale) if n > 1 else np.full_like(x, scale.one)
        for x, n in zip(agree, counts, strict=True)
    ]
    whole = [scale.times(x, y) for x, y in zip(rest, agree, strict=True)]
    joint = np.asarray(ways @ reduce(scale.times, whole))
    levers = []
    for t, n in enumerate(counts):
        others = reduce(scale.times, [*whole[:t], *whole[t + 1 :]], rest[t])
        levers.append(scale.times(ways[:, None] * others, n * chances))
    return joint, levers
