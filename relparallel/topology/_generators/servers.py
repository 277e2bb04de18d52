"""Symmetries of the networks whose hosts forward through plain switches."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from relparallel.topology._arrays import IntArray
from relparallel.topology._generators.blocks import blocks, exchange, flat, rolled
from relparallel.topology.server_centric import dcell_servers, ficonn_servers

__all__ = ["bcube", "dcell", "ficonn", "mdcube"]


def bcube(n: int, k: int) -> list[IntArray]:
    """Digit 0 increased, its first two values exchanged; all digits moved up, the lowest two exchanged."""
    servers, *levels = blocks((n,) * (k + 1), *((n,) * k for _ in range(k + 1)))
    values = [
        [
            np.take(servers, order, axis=-1),
            levels[0],
            *(np.take(level, order, axis=-1) for level in levels[1:]),
        ]
        for order in (np.roll(np.arange(n), -1), exchange(n))
    ]
    moved = [np.moveaxis(block, -1, 0) for block in (servers, *levels[1:])] if k else [servers]
    places = [[*moved, levels[0]]]
    if k:
        above = [np.swapaxes(block, -1, -2) for block in (servers, *levels[2:])]
        places.append([above[0], levels[1], levels[0], *above[1:]])
    return [flat(parts) for parts in (*values, *places)]


def dcell(n: int, k: int) -> list[IntArray]:
    """Count backwards; with one level also exchange the copies, with none the servers."""
    servers = dcell_servers(n, k)[k]
    backwards = flat(part[::-1] for part in blocks((servers,), (servers // n,)))
    if k == 0:
        return [backwards, rolled(blocks((n,), (1,)), (0, None))]
    return [backwards, *(_copies_exchanged(n, 1, copy) for copy in _orders(n + 1) if k == 1)]


def ficonn(n: int, k: int) -> list[IntArray]:
    """Next idle server of a switch; count backwards if switches are alike; exchange the copies of k = 1."""
    servers = ficonn_servers(n, k)[k]
    switches = servers // n
    backwards = [_backwards(n, switches)] if n % 2**k == 0 else []
    copies = [_copies_exchanged(n, 2, copy) for copy in _orders(n // 2 + 1) if k == 1]
    return [_idle_rolled(n, 2**k, servers), *backwards, *copies]


def _backwards(n: int, switches: int) -> IntArray:
    """Switches and servers from the last to the first; the last server of each switch is idle and stays."""
    switch, place = np.divmod(np.arange(n * switches), n)
    servers = (switches - 1 - switch) * n + (n - 2 - place) % n
    return np.concatenate([servers, n * switches + np.arange(switches)[::-1]])


def _idle_rolled(n: int, every: int, servers: int) -> IntArray:
    """Every so many servers one is idle: it goes to the next one on its switch, the last to the first."""
    idle, image = np.arange(every - 1, servers, every), np.arange(servers + servers // n)
    first = np.unique(idle // n, return_index=True)[1]
    following = np.roll(idle, -1)
    following[np.roll(first, -1) - 1] = idle[first]
    image[idle] = following
    return image


def mdcube(n: int, k: int, dims: Sequence[int]) -> list[IntArray]:
    """Exchange containers along a dimension, and unused rows and columns of all of them.

    A BCube_1 is a grid of servers whose rows and columns hang on one switch each, so that any order of rows
    and any order of columns is a symmetry. Containers may be exchanged where rows remain rows. With one
    level all servers of a switch are alike; with three or more those of a switch of level 0, where no switch
    above has an uplink.
    """
    used, count = sum(length - 1 for length in dims), math.prod(dims)
    if k == 0:
        return [rolled(blocks((count, n), (count,)), axes) for axes in ((1, None), (0, 0))]
    if k > 1:
        return [_everywhere(count, n ** (k + 1), inner) for inner in bcube(n, k)[:2] if used <= n**k]
    switch = np.tile(np.arange(2 * n), (count, 1))
    still = np.arange(count)
    free = [slots for slots in (np.arange(used, n), np.arange(max(used, n), 2 * n)) if slots.size]
    found = []
    for slots in free:
        moved = switch.copy()
        moved[:, slots] = np.roll(slots, -1)
        found.append(_containers(n, still, moved))
    return [*found, *_containers_exchanged(n, tuple(dims))]


def _everywhere(count: int, hosts: int, inner: IntArray) -> IntArray:
    """The same permutation of hosts and switches in every container."""
    container, switches = np.arange(count)[:, None], inner.size - hosts
    moved = (container * hosts + inner[:hosts], count * hosts + container * switches + inner[hosts:] - hosts)
    return flat(moved)


def _containers_exchanged(n: int, dims: tuple[int, ...]) -> Iterator[IntArray]:
    """Like containers along a dimension in another order: uplinks go with the container that they lead to."""
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
    """Orders of containers that leave the level of every uplink as it is: of runs of like neighbours."""
    own = np.arange(len(level))
    swaps = [np.concatenate([own[:a], [a + 1, a], own[a + 2 :]]) for a in own[:-1]]
    apart = [a + 1 for a, swap in enumerate(swaps) if not np.array_equal(level[np.ix_(swap, swap)], level)]
    for run in np.split(own, apart):
        for order in _orders(run.size) if run.size > 1 else ():
            moved = own.copy()
            moved[run] = run[order]
            yield moved


def _containers(n: int, container: IntArray, switch: IntArray) -> IntArray:
    """Every container goes to another one, and its 2n switches to those of a row of ``switch`` there."""
    row, column = switch[:, :n, None], switch[:, None, n:] - n
    servers = container[:, None, None] * n**2 + row * n + column
    return flat([servers, container.size * n**2 + container[:, None] * 2 * n + switch])


def _orders(size: int) -> list[IntArray]:
    """All moved on by one, and the first two exchanged: together they give every order."""
    return [np.roll(np.arange(size), -1), exchange(size)]


def _copies_exchanged(n: int, every: int, copy: IntArray) -> IntArray:
    """Copies of n servers in another order; port p, every so many servers, leads to copy p or p + 1."""
    copies = copy.size
    i, place = np.divmod(np.arange(n * copies), n)
    port, other = np.divmod(place, every)
    j = port + (port >= i)
    towards = copy[i] * n + (copy[j] - (copy[j] > copy[i])) * every
    servers = np.where(other == 0, towards, copy[i] * n + place)
    return np.concatenate([servers, n * copies + copy])
