"""Containers joined directly: MDCube.

Letters of the paper: ``n`` ports per switch, ``k`` the highest level of a container's BCube,
``m_d`` containers along dimension d. Every cable has 400 Gbit/s (a server's a tenth) and no
modelled latency.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from relparallel.topology._arrays import IntArray
from relparallel.topology.description import Description, describe, design, planned
from relparallel.topology.designs._shared import between_pods, blocks, flat, orders, rolled, wired
from relparallel.topology.designs.direct import require_dims
from relparallel.topology.designs.server_centric import bcube, bcube_moves
from relparallel.topology.fabric import Topology
from relparallel.topology.parts import LINK_CAPACITY


def _mdcube(n: int, k: int, dims: Sequence[int]) -> Description:
    cube, lengths = describe("bcube", n=n, k=k), require_dims(dims=dims)
    containers, used = math.prod(lengths), sum(length - 1 for length in lengths)
    if used > cube.switches:
        raise ValueError(
            f"dims must have sum(m - 1) <= (k+1) n^k = {cube.switches} uplinks of a container, got "
            f"{dims!r}"
        )
    crossed = sum(length > 1 for length in lengths)
    ports = {n + (used > 0), n + (used == cube.switches)}
    return replace(
        cube,
        parameters={"n": n, "k": k, "dims": lengths},
        nodes={kind: containers * count for kind, count in cube.nodes.items()},
        degrees={
            "server": k + 1,
            "switch": tuple(sorted(ports)) if len(ports) > 1 else ports.pop(),
        },
        links=containers * cube.links + containers * used // 2,
        diameter=None if crossed else cube.diameter,
        diameter_bound=2 * (2 * k + 1) + crossed + (crossed - 1) * 2 * (k + 1)
        if crossed
        else 2 * (k + 1),
        mean_hops=None if crossed else cube.mean_hops,
        bisection=None if crossed else cube.bisection,
        host_connectivity=min(k + 1, used) if crossed else k + 1,
    )


def _mdcube_moves(n: int, k: int, dims: Sequence[int]) -> list[IntArray]:
    """Exchange containers along a dimension, and unused rows and columns of all of them.

    A BCube_1 is a grid of servers whose rows and columns hang on one switch each, so that any order
    of rows and any order of columns is a symmetry. Containers may be exchanged where rows remain
    rows. With one level all servers of a switch are alike; with three or more those of a switch of
    level 0, where no switch above has an uplink.
    """
    used, count = sum(length - 1 for length in dims), math.prod(dims)
    if k == 0:
        return [rolled(blocks((count, n), (count,)), axes) for axes in ((1, None), (0, 0))]
    if k > 1:
        inner = bcube_moves(n, k)[:2] if used <= n**k else []
        return [_everywhere(count, n ** (k + 1), move) for move in inner]
    switch = np.tile(np.arange(2 * n), (count, 1))
    still = np.arange(count)
    free = [slots for slots in (np.arange(used, n), np.arange(max(used, n), 2 * n)) if slots.size]
    found = []
    for slots in free:
        moved = switch.copy()
        moved[:, slots] = np.roll(slots, -1)
        found.append(_containers(n, still, moved))
    return [*found, *_containers_exchanged(n, tuple(dims))]


def _mdcube_sizes(hosts: int) -> list[dict[str, Any]]:
    grids = [(length, length + more) for length in range(2, 40) for more in (0, 1)]
    return [{"n": n, "k": 1, "dims": dims} for n in range(4, 49, 4) for dims in grids]


@design(
    closed_form=_mdcube,
    symmetries=_mdcube_moves,
    layout="mdcube",
    stripes=between_pods,
    sizes=_mdcube_sizes,
    paper="wu2009mdcube",
)
def mdcube(n: int, k: int, dims: Sequence[int]) -> Topology:
    """MDCube: BCube_k containers of n-port switches, joined directly along each grid dimension.

    Every switch has one fast uplink. Along a dimension of m containers, uplink j-1 of container i
    meets uplink i of container j, for i < j; the first dimension takes the first m-1 switches of
    each container, the next dimension the following ones.

    Parameters
    ----------
    n, k : int
        Ports per switch for servers, and highest level of the BCube, as in `bcube`.
    dims : sequence of int
        Containers m_d along each dimension, at least 1, with sum(m_d - 1) <= (k+1) n^k.

    Returns
    -------
    Topology
        The servers of all containers, container by container, then their switches; every node
        forwards. ``pod`` is the container, in row-major order. A server's cable has a tenth of the
        capacity of an uplink, as in the paper.

    Notes
    -----
    Containers at m_1 x m_2 x .. hold prod(m_d) n^(k+1) servers; two containers that differ in one
    dimension share a cable. Source: Wu et al., CoNEXT 2009, section 3.

    Examples
    --------
    >>> mdcube(n=4, k=1, dims=(5, 5))
    <Topology mdcube(n=4, k=1, dims=(5, 5)): 400 hosts, 200 switches, 900 links>
    """
    form = planned("mdcube", n, k, dims)
    lengths, inside = form.parameters["dims"], bcube(n, k)
    count, (server, switch) = math.prod(lengths), inside.edges.T
    container = np.arange(count)[:, None]
    own = {"server": inside.hosts, "switch": inside.switches}
    t = wired(
        form,
        (
            "server",
            container * inside.num_hosts + server,
            "switch",
            container * inside.num_switches + switch - inside.num_hosts,
        ),
        *(("switch", u, "switch", v) for u, v in _uplinks(lengths, inside.num_switches)),
        tier={kind: np.tile(inside.tier[part], count) for kind, part in own.items()},
        pod={kind: np.repeat(np.arange(count), part.size) for kind, part in own.items()},
        hosts_forward=True,
    )
    return replace(t, capacity=LINK_CAPACITY * np.where(t.endpoint[t.edges[:, 0]], 0.1, 1.0))


def _uplinks(lengths: Sequence[int], switches: int) -> Iterator[tuple[IntArray, IntArray]]:
    """Switches that cables between containers join, dimension by dimension."""
    grid, first = np.arange(math.prod(lengths)).reshape(lengths), 0
    for axis, length in enumerate(lengths):
        rows = np.moveaxis(grid, axis, -1).reshape(-1, length) * switches + first
        i, j = np.triu_indices(length, k=1)
        yield rows[:, i] + j - 1, rows[:, j] + i
        first += length - 1


def _everywhere(count: int, hosts: int, inner: IntArray) -> IntArray:
    """The same permutation of hosts and switches in every container."""
    container, switches = np.arange(count)[:, None], inner.size - hosts
    moved = (
        container * hosts + inner[:hosts],
        count * hosts + container * switches + inner[hosts:] - hosts,
    )
    return flat(moved)


def _containers_exchanged(n: int, dims: tuple[int, ...]) -> Iterator[IntArray]:
    """Like containers along a dimension reordered: uplinks go with the container they lead to."""
    grid, first = np.arange(math.prod(dims)).reshape(dims), 0
    for axis, length in enumerate(dims):
        i, j = np.nonzero(~np.eye(length, dtype=bool))
        own = first + j - (j > i)  # the switch of container i towards container j
        level = np.full((length, length), -1)
        level[i, j] = own // n
        for order in _orders_within(level):
            switch = np.tile(np.arange(2 * n), (length, 1))
            switch[i, own] = first + order[j] - (order[j] > order[i])
            place = np.indices(dims)[axis].ravel()
            yield _containers(n, np.take(grid, order, axis=axis).ravel(), switch[place])
        first += length - 1


def _orders_within(level: IntArray) -> Iterator[IntArray]:
    """Orders of containers that leave each uplink's level as it is: of runs of like neighbours."""
    own = np.arange(len(level))
    swaps = [np.concatenate([own[:a], [a + 1, a], own[a + 2 :]]) for a in own[:-1]]
    apart = [
        a + 1
        for a, swap in enumerate(swaps)
        if not np.array_equal(level[np.ix_(swap, swap)], level)
    ]
    for run in np.split(own, apart):
        for order in orders(run.size) if run.size > 1 else ():
            moved = own.copy()
            moved[run] = run[order]
            yield moved


def _containers(n: int, container: IntArray, switch: IntArray) -> IntArray:
    """Each container goes to another one, its 2n switches to those of a row of ``switch`` there."""
    row, column = switch[:, :n, None], switch[:, None, n:] - n
    servers = container[:, None, None] * n**2 + row * n + column
    return flat([servers, container.size * n**2 + container[:, None] * 2 * n + switch])
