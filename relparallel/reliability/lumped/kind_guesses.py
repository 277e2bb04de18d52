"""How small the slopes of the lumped sum are about, before any is known: chances that a part decides.

The sum is made so exact that slopes of this size have their digits. What is guessed too small costs time, and
what is guessed too large is found out and made again.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from relparallel.reliability.lumped.lumping import Fabric, FloatArray, floors

_UNDERFLOW: Final = 2.0**-1000
OF_PODS: Final = ("core_link", "aggregation", "edge_link", "other_link", "edge")


def guess(fabric: Fabric) -> FloatArray:
    """About the least values of R and 1 - R, of the cores' slope, and of `OF_PODS` of each kind of pods.

    Notes
    -----
    A part of a pod with terminals decides where that pod has a single way up; a core or a link to it, where
    the switch on this way has no other core. Other edge switches decide where it has none and no other of
    them helps.
    """
    tree, cut = map(float, floors(fabric))
    width = fabric.planes * fabric.aggregations
    (a, no_switch), (_, no_link) = fabric.aggregation, fabric.edge_link
    way, lost = no_switch + a * no_link, fabric.core[1] + fabric.core[0] * fabric.core_link[1]
    near, far = misses(fabric)
    off, no_cores = _off(fabric), lost ** (fabric.cores - 1)
    single = [x ** (width - 1) * no_cores / 2**8 for x in off]
    end = _end(fabric, off)
    if fabric.planes > 1:  # a switch that is up has no core, or no pod by which to get to another plane
        cut_off = max(no_cores * lost, _parted(fabric, off) / end**fabric.aggregations if end > 0 else 0.0)
    else:  # others need a core that is up
        cut_off = no_cores * fabric.core_link[1]
    beside = way ** max(width - 2, 0) * no_link * cut_off / 2**8
    found = [
        min(tree, cut) / 2**10,
        tree * end ** (width - 1) * no_cores / 2**8 if fabric.core[1] > 0 else math.inf,
    ]
    several = _idle_of_pairs if fabric.aggregations > 1 else _idle
    bridges = _idle_of_a_plane(fabric) if fabric.planes == 1 else several(fabric)
    for pod, core_link, (bridge, cable, join) in zip(fabric.pods, single, bridges, strict=True):
        _, terminals, others = pod
        alone = far ** max(others - 1, 0) * near ** max(terminals - 1, 0)
        direct = way ** (width - 1) / 2**4
        of_pod = [core_link, direct, direct, beside * alone, beside * alone]
        if terminals == 0:
            least = _UNDERFLOW if fabric.planes == 1 else 0.0  # not 0, but too small for a float
            of_pod = [max(x, least) for x in (cable, bridge, math.inf, join * alone, join * alone)]
        for name, slope in zip(OF_PODS, of_pod, strict=True):
            fails = getattr(fabric, "edge_link" if name == "other_link" else name)[1] > 0
            found.append(
                tree * slope if fails and not _useless(fabric, terminals, others, name) else math.inf
            )
    return np.array([slope or tree * cut for slope in found])


def misses(fabric: Fabric) -> tuple[float, float]:
    """Chance that a terminal, and that another edge switch, does not join two given switches above it."""
    (edge, fails), (link, down) = fabric.edge, fabric.edge_link
    near = down * (1 + link)
    return near, fails + edge * near


def _off(fabric: Fabric) -> list[float]:
    """Chance that a pod of each kind has no use of a given aggregation switch."""
    (a, no_switch), (edge, no_edge), (_, no_link) = fabric.aggregation, fabric.edge, fabric.edge_link
    dead = no_switch + a * fabric.core_link[1] ** fabric.cores
    return [
        min(dead + no_link**terminals * (no_edge + edge * no_link) ** others, 1.0)
        for _, terminals, others in fabric.pods
    ]


def _idle(fabric: Fabric) -> list[tuple[float, float, float]]:
    """Slopes of a switch, of its links to cores, and of what joins it to another, in pods without terminals.

    Such a pod decides where two others keep a single way up each and the rest lose a switch, or where one
    keeps a single way and all others lose that switch: the former is the likelier where much fails.
    """
    width, pods = fabric.planes * fabric.aggregations, sum(count for count, *_ in fabric.pods)
    (a, no_switch), (_, no_link), (_, no_cable) = fabric.aggregation, fabric.edge_link, fabric.core_link
    dead, lost = no_switch + a * no_cable**fabric.cores, fabric.core[1] + fabric.core[0] * no_cable
    often, cores = (0.7, (fabric.cores - 1) / 2) if dead > 2**-9 else (0.5, fabric.cores - 1)
    off = _off(fabric)
    first = _end(fabric, off) ** (width - 1)
    single = max(no_switch + a * no_link, dead) ** (2 * (width - 1) + max(pods - 3, 0))
    slopes = [single**often * (first * x ** (pods - 2)) ** (1 - often) / 2**16 for x in off]
    parted = _parted(fabric, off) / 2**4  # no other pod joins the two switches
    joins = [min(slope, parted / x) if parted > 0 else slope for slope, x in zip(slopes, off, strict=True)]
    return [(slope, slope * lost**cores, join) for slope, join in zip(slopes, joins, strict=True)]


def _idle_of_pairs(fabric: Fabric) -> list[tuple[float, float, float]]:
    """The same where a pod has several switches in a plane.

    All but one of them are of no use, and all other pods but one have none; or two pods keep a single way up
    each by links that are up, to cores of one plane that none else joins: as many links are down as there.
    """
    off, lost = _off(fabric), fabric.core[1] + fabric.core[0] * fabric.core_link[1]
    down, each = min(fabric.core_link[1], fabric.edge_link[1]), fabric.aggregations
    pods, width = sum(count for count, *_ in fabric.pods), fabric.planes * each
    links = down ** (2 * (width - 1) + fabric.cores + each * max(pods - 3, 0) + each + 1) / 2**4
    slopes = [_parted(fabric, off) / x / 2**8 if x > 0 else 0.0 for x in off]
    return [
        (max(slope, links), max(slope * lost ** (fabric.cores - 1), links), max(slope, links * down**3))
        for slope in slopes
    ]


def _end(fabric: Fabric, off: list[float]) -> float:
    """The greatest of these chances among pods with terminals."""
    return max(x for x, (_, terminals, _) in zip(off, fabric.pods, strict=True) if terminals)


def _parted(fabric: Fabric, off: list[float]) -> float:
    """Chance that a pod with terminals keeps a single plane and that no other pod has use of that plane."""
    every = math.prod(x**count for x, (count, *_) in zip(off, fabric.pods, strict=True))
    return float((_end(fabric, off) ** (fabric.planes - 2) * every) ** fabric.aggregations)


def _idle_of_a_plane(fabric: Fabric) -> list[tuple[float, float, float]]:
    """The same where all aggregation switches see the same cores.

    Such a pod decides where it alone sees two cores, of which one pod with terminals misses the first,
    another the second, and the rest one of the two; other cores are down or a pod with terminals misses them.
    """
    (_, no_switch), (_, no_cable), width = fabric.aggregation, fabric.core_link, fabric.aggregations
    idle, ends = (sum(n for n, own, _ in fabric.pods if bool(own) is some) for some in (False, True))
    lost, others = no_switch + no_cable, max(fabric.cores - 2, 0)
    missed = no_cable * lost ** (width - 1)  # a core by a pod that sees some other
    split = missed**ends * lost ** (width * max(idle - 1, 0)) / 2**8
    bridge = split * max(fabric.core[1], missed) ** others * lost ** (width - 1)
    apart = max(fabric.core[1], missed * no_cable) ** others * no_cable**2
    return [(bridge, bridge, split * apart * lost ** max(width - 2, 0))] * len(fabric.pods)


def _useless(fabric: Fabric, terminals: int, others: int, name: str) -> bool:
    """Whether no path between terminals needs such a part, so that its slope is 0."""
    width, cores = fabric.planes * fabric.aggregations, fabric.planes * fabric.cores
    if name == "edge_link":
        return terminals == 0
    joined = fabric.planes == 1 and fabric.core_link[1] == 0  # all that is up, by any core
    if name in ("other_link", "edge"):
        around = terminals > 0 and fabric.edge_link[1] == 0
        return others == 0 or width == 1 or around or joined or (terminals == 0 and cores == 1)
    return terminals == 0 and (joined or cores == 1)
