"""By how much the lumped sum grows with the chances of each class of parts, at the cost of a few sums.

The sum of `lumping` is a polynomial in the chances of cores, aggregation switches and links, and all of its
derivatives are sums over the same splits. For pods of one kind, n of them,

    R = sum of w P W^n,    dR = sum of w (dP W^n + n P W^(n-1) dW),    W = sums . weights,

where only the links to the cores are in the power sums. What multiplies dW is gathered once and not for each
class: n P W^(n-1) times the power sums for the weights, and times the weights for the power sums. The small
factors come with their derivatives from dual numbers (`arithmetic`). No two sums are subtracted.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any, Final

import numpy as np

from relparallel.reliability.lumped.arithmetic import Dual, Duals, Numbers, Scale, exact_up, to_power
from relparallel.reliability.lumped.lumping import (
    Fabric,
    floors,
    large_terms,
    states_of_cores,
    table_of,
    uplinks,
)
from relparallel.reliability.lumped.pod_partitions import Layouts
from relparallel.reliability.lumped.pod_sums import Uplinks, signed_ways

__all__ = ["CLASSES", "connected_slopes", "slope_floors"]

_BLUR: Final = 2.0**-42  # of a slope, at most, for all terms left out; 1e-6 of it is usual
_SHARPER: Final = 2**10  # so much less of R and of 1 - R
CLASSES: Final = ("core", "aggregation", "core_link", "edge_link")


def connected_slopes(fabric: Fabric) -> tuple[Fraction, dict[str, Fraction]]:
    """Probability that the terminals are joined, and its derivative by the up-chance of each class.

    Parameters
    ----------
    fabric : Fabric
        Two pods or more, all alike and with terminals; neither R nor 1 - R is 0.

    Returns
    -------
    (Fraction, dict of Fraction)
        The slope of every class whose parts can fail has a relative error below 1e-12, and R and 1 - R one
        below 1e-15, but for those below all floats.

    Notes
    -----
    One sum takes the products sums . weights and W^n; its slopes take two more such products and twice the
    work for the power sums: 1.5 to 4 times the time in all, 0.01 s for a fat-tree with k = 4, 0.1 s with
    k = 6, and with k = 8 a second if its parts are up 99.99 % of the time.

    Examples
    --------
    >>> from relparallel.reliability.chances import CERTAIN, part
    >>> some = Fabric(planes=1, cores=2, aggregations=1, pods=((2, 1, 0),), core=part(0.5),
    ...               aggregation=CERTAIN, edge=CERTAIN, core_link=CERTAIN, edge_link=CERTAIN)
    >>> joined, slopes = connected_slopes(some)  # 1 - (1 - c)^2
    >>> float(joined), float(slopes["core"])
    (0.75, 1.0)
    """
    pods = fabric.pods[0][0]
    alive = states_of_cores(fabric, Dual(exact_up(fabric.core), (Fraction(1),)))
    scale, large = _precision(fabric, alive)
    of_links, of_weights = _duals(fabric, scale)
    table = table_of(fabric, fabric.pods[0], Dual(exact_up(fabric.edge_link), _unit(2)))
    total = np.zeros(1 + len(CLASSES), dtype=object)
    for sizes, outside, pieces in large_terms(fabric, **large):
        chances = replace(of_weights, scale=Duals(scale.bits, 1)).core_chances(sizes, outside, alive)
        weights = of_weights.weights(sizes, outside, table)
        by_weight = np.zeros(weights.shape[1:], dtype=object)
        for some in pieces:
            sums = of_links.power_sums(some)
            joint, lever = _levers(some, scale.product(sums[0], weights[0]), chances[0], pods, scale)
            by_weight += scale.product(sums[0].T, lever)
            total[:2] += [(joint @ chance) >> scale.bits for chance in chances]
            total[3] += (scale.product(lever, weights[0].T) * sums[1]).sum() >> scale.bits
        total[2:] += (by_weight * weights[1:]).sum(axis=(1, 2)) >> scale.bits
    joined, *slopes = (Fraction(int(x), scale.one) for x in total)
    return joined, dict(zip(CLASSES, slopes, strict=True))


def slope_floors(fabric: Fabric) -> dict[str, Fraction]:
    """Lower bounds of the slopes, 0 only where a slope is 0: parts, times the chance that one decides.

    One tree through the part is up, and other parts cut off one edge switch, or one pod, from all else that
    would join it: each other aggregation switch of the pod is down, has no core, or no edge switch.
    """
    c, a, l, m = map(exact_up, (fabric.core, fabric.aggregation, fabric.core_link, fabric.edge_link))  # noqa: E741
    (pods, terminals, _), planes, switches = fabric.pods[0], fabric.planes, fabric.aggregations
    tree, _ = floors(fabric)
    joined = a * (1 - (1 - m) ** terminals)
    alone, apart = (1 - joined * (1 - (1 - up) ** fabric.cores) for up in (l, c * l))
    edge = (1 - a * m) ** (planes * switches - 1)
    pod = alone ** (switches - 1) * apart ** (switches * (planes - 1))
    link = pod * (1 - c * l) ** (fabric.cores - 1)
    core = max(link, (1 - c) ** (planes * fabric.cores - 1))
    decides = {
        "core": core / c,
        "aggregation": max(edge, pod) / a,
        "core_link": link / l,
        "edge_link": edge / m,
    }
    parts = {name: pods * number for name, number in _parts(fabric).items()} | {"core": planes * fabric.cores}
    return {name: parts[name] * tree * chance for name, chance in decides.items()}


def _parts(fabric: Fabric) -> dict[str, int]:
    """Parts of each class in a pod."""
    width, (_, terminals, _) = fabric.planes * fabric.aggregations, fabric.pods[0]
    return {"aggregation": width, "core_link": width * fabric.cores, "edge_link": width * terminals}


def _precision(fabric: Fabric, alive: list[Dual]) -> tuple[Scale, dict[str, Any]]:
    """Bits to compute with, and which terms to leave out: the arguments of `large_terms`.

    In the slope by one class, dW is the sum of W(part up) - W(part down) over its parts in a pod, and W lies
    between the two: |dW| is at most the number of parts, and so many times W by the smaller chance of a part.
    A term is thus at most w W^(n-1) min(1, W / rarest) (|dP| + n P parts). Its share in the slope's floor
    counts, in the worst of the classes. Rounding is enlarged by the derivatives of W and of W^(n-1).
    """
    pods, least, parts = fabric.pods[0][0], min(floors(fabric)) / _SHARPER, _parts(fabric)
    ups = {name: exact_up(getattr(fabric, name)) for name in CLASSES}
    floor = {name: low for name, low in slope_floors(fabric).items() if ups[name] < 1}
    smallest = min(least, *floor.values())
    scale = Scale.of(fabric.planes * fabric.cores, pods, smallest / (pods * max(parts.values())) ** 2)
    steepest = max([1 / least, *(pods * parts[name] / low for name, low in floor.items() if name in parts)])
    by_core = 1 / floor["core"] if "core" in floor else 0
    bound = [smallest * (steepest * x.value + by_core * abs(x.slopes[0])) for x in alive]
    rarest = min([Fraction(1), *(min(ups[name], 1 - ups[name]) for name in floor)])
    return scale, {"alive": bound, "blur": float(smallest) * _BLUR, "rarest": float(rarest)}


def _unit(index: int) -> tuple[Fraction, ...]:
    """Derivatives of one of the three chances in the weights by all of them."""
    return tuple(Fraction(int(i == index)) for i in range(3))


def _duals(fabric: Fabric, scale: Scale) -> tuple[Uplinks, Uplinks]:
    """A pod's power sums with slopes by the core links; its weights with slopes by all classes but cores."""
    plain = uplinks(fabric, scale)
    link, switch = plain.link_up, plain.up
    return (
        replace(plain, link_up=Dual(link, (Fraction(1),)), scale=Duals(scale.bits, 1)),
        replace(plain, up=Dual(switch, _unit(0)), link_up=Dual(link, _unit(1)), scale=Duals(scale.bits, 3)),
    )


def _levers(
    some: Layouts, agree: Numbers, chances: Numbers, pods: int, scale: Scale
) -> tuple[Numbers, Numbers]:
    """What multiplies the cores' chances, [choices], and the slope of a pod's, [layouts, choices]."""
    ways, rest = signed_ways(some), to_power(agree, pods - 1, scale)
    joint = np.asarray(ways @ scale.times(rest, agree))
    return joint, scale.times(ways[:, None] * rest, pods * chances)
