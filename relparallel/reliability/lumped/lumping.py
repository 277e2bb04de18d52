"""Exact reliability of data-centre fabrics by symmetry: interchangeable pods under interchangeable cores.

Given how the cores hang together, the pods are independent. Let a *split* put some of the live cores into
r >= 1 blocks and leave the others out, and let W(split) be the probability that one pod agrees with it (see
`pod_tables`). Summed over all splits, with the Moebius weight (-1)^(r-1) (r-1)! of the lattice of partitions,
the product of W over the pods is the probability that all terminals are joined: the components of the network
that hold terminals can form only one block, and those that hold none can only be left out. So

    R = sum over splits of P(the cores' states) (-1)^(r-1) (r-1)! W(split)^pods,

a sum over orbits of the exchange of cores and of planes, whose length does not depend on the pods. Its terms
have both signs. It is therefore summed in integers of as many bits as keep R and 1 - R to 16 digits; terms
that floats show to be smaller than the last of these digits are left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from itertools import compress, product
from typing import Final

import numpy as np
from numpy.typing import NDArray

from relparallel._checks import require_instance, require_int, require_probability
from relparallel.reliability.chances import CERTAIN, Chance, part, series
from relparallel.reliability.lumped.arithmetic import (
    Dyadic,
    Exact,
    Floats,
    Scale,
    exact_up,
    to_power,
)
from relparallel.reliability.lumped.pod_partitions import Layouts, layouts
from relparallel.reliability.lumped.pod_sums import Outside, Uplinks, signed_ways
from relparallel.reliability.lumped.pod_tables import Table, agreement, power_sum_weights
from relparallel.reliability.result import Reliability, exactly

_AT_ONCE: Final = 4096  # layouts per matrix product: bounds the memory
FloatArray = NDArray[np.float64]
BLUR: Final = 1e-10  # more than the rounding of a pod's probability in floats


@dataclass(frozen=True, kw_only=True, slots=True)
class Fabric:
    """Pods of edge and aggregation switches under planes of cores, alike in every pod and plane."""

    planes: int
    cores: int
    aggregations: int
    pods: tuple[tuple[int, int, int], ...]
    core: Chance
    aggregation: Chance
    edge: Chance
    core_link: Chance
    edge_link: Chance


def fat_tree_connected(
    k: int,
    core_up: float = 1.0,
    aggregation_up: float = 1.0,
    edge_up: float = 1.0,
    core_link_up: float = 1.0,
    edge_link_up: float = 1.0,
    host_up: float = 1.0,
    host_link_up: float = 1.0,
) -> Reliability:
    """Probability that all hosts of a k-ary fat-tree are up and can communicate while everything fails.

    Parameters
    ----------
    k : int
        Ports per switch: 2, 4, 6 or 8.
    core_up, aggregation_up, edge_up, host_up : float
        Up-probability of a switch of each tier and of a host.
    core_link_up, edge_link_up, host_link_up : float
        Up-probability of a link between core and aggregation, between aggregation and edge, and between edge
        switch and host.

    Returns
    -------
    Reliability
        Any path counts. ``states`` is the number of lumped splits of the cores.

    Notes
    -----
    See the module `lumping`. With k = 8 the partitions of 16 cores fall into 286 878
    layouts, with the live cores outside of blocks 1.8e6 terms of 34 products; their list is made once.

    Examples
    --------
    >>> fabric = fat_tree_connected(4, core_up=0.99, aggregation_up=0.99, edge_up=0.999, core_link_up=0.999)
    >>> print(f"{fabric.unreliability:.6e}")
    8.378339e-03
    """
    require_int(k=k)
    if k not in (2, 4, 6, 8):
        raise ValueError(f"k must be 2, 4, 6 or 8, got {k}: the states of larger fabrics are too many")
    edge = _chance(edge_up=edge_up)
    host, host_link = _chance(host_up=host_up), _chance(host_link_up=host_link_up)
    half = k // 2
    fabric = Fabric(
        planes=half,
        cores=half,
        aggregations=1,
        pods=((k, half, 0),),
        core=_chance(core_up=core_up),
        aggregation=_chance(aggregation_up=aggregation_up),
        edge=edge,
        core_link=_chance(core_link_up=core_link_up),
        edge_link=_chance(edge_link_up=edge_link_up),
    )
    return terminals_connected(fabric, series(*[edge] * (k * half), *[host, host_link] * (k * half**2)))


def terminals_connected(fabric: Fabric, own: Chance = CERTAIN) -> Reliability:
    """Probability that the terminal edge switches of at least two pods are joined, and that ``own`` is up."""
    if sum(count for count, terminals, _ in fabric.pods if terminals) < 2:
        raise ValueError(f"pods must hold terminals in two pods or more, got {fabric.pods}")
    tree, cut = floors(fabric)
    if tree == 0 or cut == 0:
        return exactly(*series((0.0, 1.0) if tree == 0 else CERTAIN, own), "exact")
    total, scale, terms = connected(fabric, min(tree, cut))
    return exactly(*series(scale.chance(total), own), "exact", states=terms)


def _chance(**named: float) -> Chance:
    """The named argument, one probability, as a chance."""
    up: float = require_instance(float, **{name: require_probability(**named) for name in named})
    return part(up)


def floors(fabric: Fabric) -> tuple[Fraction, Fraction]:
    """Lower bounds of R, the chance of one tree, and of 1 - R, that of one cut; 0 only where they are 0.

    The cuts: an edge switch from its pod, a pod from the cores, the cores from everything.
    """
    c, a, l, m = map(exact_up, (fabric.core, fabric.aggregation, fabric.core_link, fabric.edge_link))  # noqa: E741
    width = fabric.planes * fabric.aggregations
    pods = sum(count for count, terminals, _ in fabric.pods if terminals)
    edges = sum(count * terminals for count, terminals, _ in fabric.pods)
    apart = 1 - a + a * (1 - c * l) ** fabric.cores
    cut = max((1 - a * m) ** width, apart**width, (1 - c) ** (fabric.planes * fabric.cores))
    return c * (a * l) ** pods * m**edges, cut


def connected(fabric: Fabric, smallest: Fraction) -> tuple[int, Scale, int]:
    """Probability that the terminals are joined, and the number of terms."""
    scale = Scale.of(fabric.planes * fabric.cores, sum(count for count, *_ in fabric.pods), smallest)
    alive = states_of_cores(fabric, exact_up(fabric.core))
    tables = [table_of(fabric, pod) for pod in fabric.pods]
    exact, counts = uplinks(fabric, scale), [count for count, *_ in fabric.pods]
    likely = scale.array(alive)
    entries = [exact.entries(table) for table in tables]
    total = 0
    for sizes, outside, pieces in large_terms(fabric, tables, alive, float(smallest) * 2.0**-64):
        chances, uncoloured = exact.core_chances(sizes, outside, likely), exact.uncoloured(sizes, outside)
        weights = [exact.weights(uncoloured, own) for own in entries]
        for some in pieces:
            sums = exact.power_sums(some)
            agree = [to_power(scale.product(sums, x), n, scale) for x, n in zip(weights, counts, strict=True)]
            total += int((signed_ways(some) @ reduce(scale.times, agree) @ chances) >> scale.bits)
    return total, scale, sum(len(group.ways) * len(outside) for group, outside in groups_of(fabric))


def large_terms(
    fabric: Fabric, tables: Sequence[Table], alive: Sequence[Fraction], blur: float
) -> Iterator[tuple[tuple[int, ...], Outside, list[Layouts]]]:
    """Layouts and choices whose terms count in a first look in floats: all others are below ``blur``."""
    rough, live, groups = uplinks(fabric, Floats()), Floats().array(alive), groups_of(fabric)
    entries = [rough.entries(table) for table in tables]
    least = blur / sum(len(group.ways) * len(outside) for group, outside in groups)
    for group, outside in groups:
        likely, uncoloured = (
            rough.core_chances(group.sizes, outside, live),
            rough.uncoloured(group.sizes, outside),
        )
        weights = [rough.weights(uncoloured, own) for own in entries]
        pieces, counts = [], np.zeros(len(outside), dtype=bool)
        for some in pieces_of(group):
            sums, bound = rough.power_sums(some), abs(signed_ways(some)).astype(float)[:, None] * likely
            for (count, *_), own in zip(fabric.pods, weights, strict=True):
                bound *= (abs(sums @ own) + BLUR) ** count
            large = ~(bound < least)
            kept = large.any(axis=1)
            if kept.any():
                pieces.append(Layouts(group.sizes, some.blocks[kept], some.ways[kept]))
                counts |= large.any(axis=0)
        if pieces:
            yield group.sizes, list(compress(outside, counts)), pieces


def states_of_cores(fabric: Fabric, up: Exact) -> list[Exact]:
    """Probability of one state of the cores, by the number of those that are up."""
    cores = fabric.planes * fabric.cores
    return [up**n * (1 - up) ** (cores - n) for n in range(cores + 1)]


def table_of(fabric: Fabric, pod: tuple[int, int, int]) -> Table:
    """What multiplies the power sums of a kind of pods."""
    width, (_, terminals, others) = fabric.planes * fabric.aggregations, pod
    edge, link = (Dyadic.of(exact_up(chance)) for chance in (fabric.edge, fabric.edge_link))
    return power_sum_weights(agreement(width, terminals, others, edge, 1 - link))


def uplinks(fabric: Fabric, scale: Scale | Floats) -> Uplinks:
    """The aggregation switches of one pod, in one of the arithmetics of fractions."""
    up, link_up = exact_up(fabric.aggregation), exact_up(fabric.core_link)
    return Uplinks(fabric.planes, fabric.cores, fabric.aggregations, up, link_up, scale)


def groups_of(fabric: Fabric) -> list[tuple[Layouts, Outside]]:
    """Layouts of equal sizes, and the numbers of live cores that may be left outside of them."""
    return [
        (group, list(product(*(range(fabric.cores - n + 1) for n in group.sizes))))
        for group in layouts(fabric.planes, fabric.cores)
    ]


def pieces_of(group: Layouts) -> Iterator[Layouts]:
    """The layouts in pieces that fit in memory."""
    for start in range(0, len(group.ways), _AT_ONCE):
        piece = slice(start, start + _AT_ONCE)
        yield Layouts(group.sizes, group.blocks[piece], group.ways[piece])
