"""Networks of switches with many ports that keep every two switches two or three cables apart.

Letters of the papers: ``p`` servers per switch, ``a`` switches of a Dragonfly's group and ``h``
cables of each to other groups; ``l`` leaves and ``s`` spines of a group of Dragonfly+; ``dims`` and
``k`` lengths and cables per pair of a HyperX, ``t`` its servers per switch.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from relparallel._checks import require_choice, require_int
from relparallel.topology._arrays import IntArray, joined
from relparallel.topology.description import Description, design, planned
from relparallel.topology.designs._shared import (
    alike,
    between_pods,
    blocks,
    describe_switched,
    exchange,
    flat,
    rolled,
    switched,
    wired,
    with_own_servers,
)
from relparallel.topology.designs.direct import require_dims
from relparallel.topology.fabric import Topology

_ARRANGEMENTS: Final = ("consecutive", "palmtree")


def _dragonfly(p: int, a: int, h: int, arrangement: str = "consecutive") -> Description:
    require_int(p=p, a=a, h=h, at_least=1)
    require_choice(_ARRANGEMENTS, arrangement=arrangement)
    switches = a * (a * h + 1)
    within_two = 1 + (a - 1 + h) + 2 * (a - 1) * h + h * (h - 1)  # at most
    return describe_switched(
        switches=switches,
        ports=(a - 1 + h,),
        cables=switches * (a - 1 + h) // 2,
        p=p,
        diameter=1 if a == 1 else 3 if within_two < switches else None,
        bound=1 if a == 1 else 3,
        distance=h if a == 1 else None,
    )


def _dragonfly_moves(p: int, a: int, h: int, arrangement: str = "consecutive") -> list[IntArray]:
    """Next server; count groups and switches backwards; like groups, or, as a palmtree, next group.

    Groups c h + 1 .. c h + h - 1 of the consecutive arrangement use the same switch towards any
    other, and any other uses one switch towards all of them.
    """
    switch = np.arange(a * (a * h + 1)).reshape(-1, a)
    palm = arrangement == "palmtree"
    others = np.roll(switch, -1, axis=0) if palm else switch[_like_groups(a, h)]
    moves = [with_own_servers(part.ravel(), p) for part in (switch[::-1, ::-1], others)]
    return [rolled(blocks((switch.size, p), (switch.size,)), (1, None)), *moves]


@design(
    closed_form=_dragonfly,
    symmetries=_dragonfly_moves,
    layout="groups",
    stripes=between_pods,
    sizes=lambda hosts: [{"p": h, "a": 2 * h, "h": h} for h in range(1, 60)],
    paper="kim2008dragonfly",
)
def dragonfly(p: int, a: int, h: int, arrangement: str = "consecutive") -> Topology:
    """Dragonfly: groups of a fully joined switches, and one cable between every two groups.

    Parameters
    ----------
    p, a, h : int
        Servers per switch, switches per group, cables of a switch to other groups; all at least 1.
    arrangement : {"consecutive", "palmtree"}
        Which of its ports 0..ah-1 a group uses towards another, h ports to a switch. Consecutive:
        group x meets group y on port y if y < x, else y - 1. Palmtree: on port (x - y - 1) mod g.

    Returns
    -------
    Topology
        p a g servers, then a g switches group by group, g = a h + 1 groups. ``pod`` is the group.

    Notes
    -----
    Switches are at most 3 apart: to the switch with the cable to the group, over it, to the other
    switch. Balanced for a = 2p = 2h. The mean distance depends on the arrangement: two cables
    between groups may meet in one switch of a third. Source: Kim et al., ISCA 2008, section 3;
    Camarero et al., ACM TACO 11, 2014 (arrangements).

    Examples
    --------
    >>> dragonfly(p=2, a=4, h=2)
    <Topology dragonfly(p=2, a=4, h=2, arrangement=consecutive): 72 hosts, 36 switches, 162 links>
    """
    form, groups = planned("dragonfly", p, a, h, arrangement), a * h + 1
    group = np.arange(groups)[:, None]
    near, far = np.triu_indices(a, k=1)
    x, y = np.triu_indices(groups, k=1)
    ports = (y - 1, x) if arrangement == "consecutive" else ((x - y - 1) % groups, y - x - 1)
    cables = joined(
        (group * a + near, group * a + far), (x * a + ports[0] // h, y * a + ports[1] // h)
    )
    return switched(form, cables, np.repeat(np.arange(groups), a))


def _dragonfly_plus(l: int, s: int, p: int, h: int) -> Description:  # noqa: E741
    require_int(l=l, s=s, p=p, h=h, at_least=1)
    groups = s * h + 1
    servers = p * l * groups
    total = 2 * (p - 1) + 4 * p * (l - 1) + 5 * p * l * (groups - 1)
    return Description(
        nodes={"server": servers, "leaf": l * groups, "spine": s * groups},
        degrees={"server": 1, "leaf": p + s, "spine": l + h},
        links=servers + groups * (l * s) + groups * (groups - 1) // 2,
        diameter=5,
        mean_hops=total / (servers - 1),
        host_connectivity=1,
    )


def _dragonfly_plus_moves(l: int, s: int, p: int, h: int) -> list[IntArray]:  # noqa: E741 - the paper's letter
    """Next server, leaf of the group; groups and spines backwards; like groups as in Dragonfly."""
    groups = s * h + 1
    parts = blocks((groups, l, p), (groups, l), (groups, s))
    server, leaf, spine = parts
    backwards = flat([server[::-1], leaf[::-1], spine[::-1, ::-1]])
    alike = flat(part[_like_groups(s, h)] for part in parts)
    return [rolled(parts, (2, None, None)), rolled(parts, (1, 1, None)), backwards, alike]


@design(
    closed_form=_dragonfly_plus,
    symmetries=_dragonfly_plus_moves,
    layout="spokes",
    stripes=between_pods,
    sizes=lambda hosts: [{"l": h, "s": h, "p": h, "h": h} for h in range(1, 60)],
    paper="shpiner2017dragonflyplus",
)
def dragonfly_plus(l: int, s: int, p: int, h: int) -> Topology:  # noqa: E741 - the paper's letter
    """Dragonfly+: groups of leaves and spines, and one cable of two spines between any two groups.

    Parameters
    ----------
    l, s : int
        Leaf and spine switches of a group, every leaf joined with every spine; at least 1.
    p, h : int
        Servers per leaf; cables of a spine to other groups (arranged consecutively); at least 1.

    Returns
    -------
    Topology
        p l g servers, l g leaves, s g spines, group by group, g = s h + 1 groups. Only switches
        forward. ``pod`` is the group.

    Notes
    -----
    Servers of two groups are always 5 links apart: leaf, the spine with the cable, its other spine,
    leaf. Source: Shpiner et al., HiPINEB 2017.

    Examples
    --------
    >>> dragonfly_plus(l=2, s=2, p=2, h=2)
    <Topology dragonfly_plus(l=2, s=2, p=2, h=2): 20 hosts, 20 switches, 50 links>
    """
    form, groups = planned("dragonfly_plus", l, s, p, h), s * h + 1
    server, leaf, spine = (np.arange(count) for count in form.nodes.values())
    x, y = np.triu_indices(groups, k=1)
    return wired(
        form,
        ("server", server, "leaf", server // p),
        ("leaf", leaf[:, None], "spine", leaf[:, None] // l * s + np.arange(s)),
        ("spine", x * s + (y - 1) // h, "spine", y * s + x // h),
        pod={"server": server // (p * l), "leaf": leaf // l, "spine": spine // s},
    )


def _hyperx(dims: Sequence[int], t: int, k: int = 1) -> Description:
    lengths = require_dims(dims=dims)
    require_int(t=t, at_least=0)
    require_int(k=k, at_least=1)
    switches, ports = math.prod(lengths), k * (sum(lengths) - len(lengths))
    far = sum(length > 1 for length in lengths)
    form = describe_switched(
        switches=switches,
        ports=(ports,),
        cables=switches * ports // 2,
        p=t,
        diameter=far,
        distance=sum(switches // length * (length - 1) for length in lengths),
        connectivity=ports,
    )
    return replace(form, parameters={"dims": lengths, "t": t, "k": k})


def _hyperx_moves(dims: Sequence[int], t: int, k: int = 1) -> list[IntArray]:
    """Next server; next point along each dimension, its first two; equally long ones exchanged."""
    parts = blocks((*dims, t), tuple(dims))
    orders = [
        (a, order) for a, n in enumerate(dims) for order in (np.roll(np.arange(n), -1), exchange(n))
    ]
    points = [flat(np.take(part, order, axis=axis) for part in parts) for axis, order in orders]
    swaps = [flat(np.swapaxes(part, a, b) for part in parts) for a, b in alike(dims)]
    return [*points, *swaps, *([rolled(parts, (len(dims), None))] if t else [])]


def _rows_and_columns(t: Topology) -> IntArray:
    """Stripes: cables along the last dimension, and along all others."""
    dims, first = t.meta.parameters["dims"], t.num_hosts if t.num_switches else 0
    row = (t.edges - first) // dims[-1]
    between = (t.edges >= first).all(axis=1)
    return np.where(between, 1 + (row[:, 0] != row[:, 1]), 0)


@design(
    closed_form=_hyperx,
    symmetries=_hyperx_moves,
    layout="hyperx",
    stripes=_rows_and_columns,
    sizes=lambda hosts: [{"dims": (s, s, s), "t": 3 * s // 2} for s in range(1, 60)],
    paper="ahn2009hyperx",
)
def hyperx(dims: Sequence[int], t: int, k: int = 1) -> Topology:
    """HyperX: switches are points of a grid; those that differ in one coordinate are joined.

    Parameters
    ----------
    dims : sequence of int
        Length of every dimension, at least 1; S in the paper. All 2: a hypercube; one dimension: a
        full mesh.
    t : int
        Servers per switch, at least 0; T in the paper. With 0 the switches are the hosts.
    k : int, optional
        Cables between two joined switches, at least 1; K in the paper.

    Returns
    -------
    Topology
        t prod(dims) servers, then prod(dims) switches in row-major order. ``pod`` is the coordinate
        in the first dimension.

    Notes
    -----
    Switches are as far apart as they have different coordinates. Source: Ahn et al., SC 2009,
    section 2.

    Examples
    --------
    >>> hyperx(dims=(4, 4), t=4)
    <Topology hyperx(dims=(4, 4), t=4, k=1): 64 hosts, 16 switches, 112 links>
    """
    form = planned("hyperx", dims, t, k)
    grid = np.arange(form.nodes["switch"]).reshape(form.parameters["dims"])
    cables = joined(*(_mesh(grid, axis) for axis in range(grid.ndim) for _ in range(k)))
    return switched(form, cables, grid.ravel() // grid[0].size)


def _mesh(grid: IntArray, axis: int) -> tuple[IntArray, IntArray]:
    """Every two points that differ along the axis."""
    i, j = np.triu_indices(grid.shape[axis], k=1)
    return np.take(grid, i, axis=axis), np.take(grid, j, axis=axis)


def _like_groups(a: int, h: int) -> IntArray:
    """Of a h + 1 groups, those between multiples of h turned."""
    between = np.arange(1, a * h + 1).reshape(a, h)
    between[:, :-1] = np.roll(between[:, :-1], -1, axis=1)
    return np.concatenate([[0], between.ravel()])
