"""Server-centric networks: servers forward, switches are plain crossbars.

Letters of the papers: ``n`` ports per switch, ``k`` the highest level (levels count from 0), ``t``
servers of a DCell, ``N_k`` servers of a FiConn, ``m_d`` containers of an MDCube along dimension d.
Every cable has 400 Gbit/s (a server's in MDCube a tenth) and no modelled latency
(``dataclasses.replace`` sets others).
"""

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from relparallel._checks import require_int
from relparallel.topology._arrays import IntArray
from relparallel.topology.description import Description, design, planned
from relparallel.topology.designs._shared import blocks, exchange, flat, orders, rolled, wired
from relparallel.topology.fabric import Topology


def _bcube(n: int, k: int) -> Description:
    require_levels(n=n, k=k)
    hosts = n ** (k + 1)
    return Description(
        nodes={"server": hosts, "switch": (k + 1) * n**k},
        degrees={"server": k + 1, "switch": n},
        links=(k + 1) * hosts,
        diameter=2 * (k + 1),
        mean_hops=2 * (k + 1) * (n - 1) * n**k / (hosts - 1),
        # A hypercube, one switch, and the one more case that an integer programme has proved.
        bisection=hosts // 2 if n == 2 or (n, k) == (4, 1) or (k == 0 and n % 2 == 0) else None,
        host_connectivity=k + 1,
    )


def bcube_moves(n: int, k: int) -> list[IntArray]:
    """Digit 0 increased, first two values exchanged; digits moved up, the lowest two exchanged."""
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


@design(
    closed_form=_bcube,
    symmetries=bcube_moves,
    layout="bcube",
    stripes=lambda t: np.asarray(t.tier[t.edges].max(axis=1) - 1),
    grid=lambda n, k: (n,) * k,
    sizes=lambda hosts: [{"n": n, "k": k} for k in (2, 3, 4) for n in range(4, 101)],
    paper="guo2009bcube",
)
def bcube(n: int, k: int) -> Topology:
    """BCube_k of n-port switches: servers are (k+1)-digit numbers to base n.

    Two servers share a level-l switch exactly when their numbers differ in digit l only.

    Parameters
    ----------
    n : int
        Ports per switch, at least 2.
    k : int
        Highest level, 0 to 63.

    Returns
    -------
    Topology
        n^(k+1) servers, then n^k switches of each level 0..k; (k+1) n^(k+1) cables; every node
        forwards. ``tier`` is 0 for servers and l+1 for switches of level l; ``pod`` is the highest
        digit, -1 for the top level.

    Notes
    -----
    Servers are at most 2(k+1) links apart, and k+1 disjoint paths join any two of them. At most
    n^(k+1)/2 cables cross the best halving of the servers for even n, and fewer as soon as n and k
    grow: 16 of 18 for n = 6, k = 1. Source: Guo et al., SIGCOMM 2009, section 3.

    Examples
    --------
    >>> bcube(n=4, k=1)
    <Topology bcube(n=4, k=1): 16 hosts, 8 switches, 32 links>
    """
    form, per_level = planned("bcube", n, k), n**k
    server, level = np.arange(form.hosts), np.arange(k + 1)[:, None]
    high, low = server // n ** (level + 1), server % n**level
    switch = level * per_level + high * n**level + low  # the digits of its servers without digit l
    return wired(
        form,
        ("server", server, "switch", switch),
        tier={"server": np.zeros_like(server), "switch": np.repeat(1 + level, per_level)},
        pod={"server": server // per_level, "switch": _top_digit(n, k)},
        hosts_forward=True,
    )


def _dcell(n: int, k: int) -> Description:
    require_levels(n=n, k=k, at_most=5)
    hosts = dcell_servers(n, k)[k]
    return Description(
        nodes={"server": hosts, "switch": hosts // n},
        degrees={"server": k + 1, "switch": n},
        links=hosts + hosts * k // 2,
        diameter=None if k else 2,
        diameter_bound=3 * 2**k - 1,
        mean_hops=None if k else 2.0,
        bisection=None,
        host_connectivity=k + 1,
    )


def _dcell_moves(n: int, k: int) -> list[IntArray]:
    """Count backwards; with one level also exchange the copies, with none the servers."""
    servers = dcell_servers(n, k)[k]
    backwards = flat(part[::-1] for part in blocks((servers,), (servers // n,)))
    if k == 0:
        return [backwards, rolled(blocks((n,), (1,)), (0, None))]
    return [backwards, *(_copies_exchanged(n, 1, copy) for copy in orders(n + 1) if k == 1)]


def _levels(t: Topology, servers: Callable[..., list[int]]) -> IntArray:
    """Stripes: the level of the copies that a cable joins."""
    ends = np.where(t.endpoint[t.edges], t.edges, t.edges[:, :1])  # a switch belongs to its servers
    apart = [ends[:, 0] // size != ends[:, 1] // size for size in servers(**t.meta.parameters)]
    return np.asarray(np.sum(apart, axis=0, dtype=np.int64))


@design(
    closed_form=_dcell,
    symmetries=_dcell_moves,
    layout="copies",
    stripes=lambda t: _levels(t, dcell_servers),
    sizes=lambda hosts: [{"n": n, "k": k} for k in (2, 3) for n in range(2, 41)],
    paper="guo2008dcell",
)
def dcell(n: int, k: int) -> Topology:
    """DCell_k of n-port switches: t+1 DCell_(k-1) of t servers each, every two joined by a cable.

    A DCell_0 is n servers on one switch. In a DCell_l, server j-1 of copy i meets server i of copy
    j, for i < j.

    Parameters
    ----------
    n : int
        Ports per switch, at least 2.
    k : int
        Highest level, 0 to 5.

    Returns
    -------
    Topology
        t_k servers, numbered copy by copy, then t_k/n switches; t_k (1 + k/2) cables; every node
        forwards. ``pod`` is the copy of the highest level.

    Notes
    -----
    t_0 = n, t_k = t_(k-1) (t_(k-1) + 1). A server has one cable per level; two are at most 2^(k+1)
    - 1 server hops or 3 2^k - 1 links apart; k+1 disjoint paths join any two. Source: Guo et al.,
    SIGCOMM 2008, section 3.

    Examples
    --------
    >>> dcell(n=4, k=1)
    <Topology dcell(n=4, k=1): 20 hosts, 5 switches, 30 links>
    """
    form, t = planned("dcell", n, k), dcell_servers(n, k)
    pod = np.arange(form.hosts) // t[k - 1] if k else np.full(n, -1)
    return _copies(form, pod, [_level(size, form.hosts, 1) for size in t[:-1]])


def _ficonn(n: int, k: int) -> Description:
    require_levels(n=n, k=k, at_most=9)
    if n % 2:
        raise ValueError(
            f"n must be even, got {n}: FiConn's first level takes half of a switch's servers"
        )
    hosts = ficonn_servers(n, k)[k]
    return Description(
        nodes={"server": hosts, "switch": hosts // n},
        degrees={"server": (1, 2) if k else 1, "switch": n},
        links=hosts + (hosts - hosts // 2**k) // 2,
        diameter=None if k else 2,
        diameter_bound=3 * 2**k - 1,
        mean_hops=None if k else 2.0,
        host_connectivity=1,
    )


def _ficonn_moves(n: int, k: int) -> list[IntArray]:
    """Next idle server of a switch; backwards if switches are alike; exchange copies of k = 1."""
    servers = ficonn_servers(n, k)[k]
    switches = servers // n
    backwards = [_backwards(n, switches)] if n % 2**k == 0 else []
    copies = [_copies_exchanged(n, 2, copy) for copy in orders(n // 2 + 1) if k == 1]
    return [_idle_rolled(n, 2**k, servers), *backwards, *copies]


@design(
    closed_form=_ficonn,
    symmetries=_ficonn_moves,
    layout="copies",
    stripes=lambda t: _levels(t, ficonn_servers),
    sizes=lambda hosts: [{"n": n, "k": 2} for n in range(4, 100, 2)],
    paper="li2009ficonn",
)
def ficonn(n: int, k: int) -> Topology:
    """FiConn_k of n-port switches: servers have two ports, and a level takes half of those idle.

    A FiConn_0 is n servers on one switch. In a FiConn_l, the idle server (j-1) 2^l + 2^(l-1) - 1 of
    copy i meets the idle server i 2^l + 2^(l-1) - 1 of copy j, for i < j.

    Parameters
    ----------
    n : int
        Ports per switch: even, at least 2.
    k : int
        Highest level, 0 to 9.

    Returns
    -------
    Topology
        N_k servers, numbered copy by copy, then N_k/n switches; every node forwards. ``pod`` is the
        copy of the highest level.

    Notes
    -----
    N_0 = n, N_k = N_(k-1) (N_(k-1)/2^k + 1). For k > 0, N_k/2^k servers keep an idle port, the
    others have two cables. Servers are at most 2^(k+1) - 1 server hops or 3 2^k - 1 links apart.
    Source: Li et al., INFOCOM 2009, section III.

    Examples
    --------
    >>> ficonn(n=4, k=2)
    <Topology ficonn(n=4, k=2): 48 hosts, 12 switches, 66 links>
    """
    form, sizes = planned("ficonn", n, k), ficonn_servers(n, k)
    pod = np.arange(form.hosts) // (sizes[k - 1] if k else form.hosts)
    levels = [_level(size, form.hosts, 2**level) for level, size in enumerate(sizes[:-1], start=1)]
    return _copies(form, pod, levels)


def ficonn_servers(n: int, k: int) -> list[int]:
    """Servers N_0..N_k of the FiConns of each level (Li et al. 2009, theorem 1)."""
    sizes = [n]
    for level in range(1, k + 1):
        sizes.append(sizes[-1] * (sizes[-1] // 2**level + 1))
    return sizes


def dcell_servers(n: int, k: int) -> list[int]:
    """Servers t_0..t_k of the DCells of each level (Guo et al. 2008, section 3.1)."""
    t = [n]
    for _ in range(k):
        t.append(t[-1] * (t[-1] + 1))
    return t


def require_levels(*, n: int, k: int, at_most: int = 63) -> None:
    """Check ports n >= 2 and highest level k in [0, at_most]."""
    require_int(n=n, at_least=2)
    require_int(k=k, at_least=0, at_most=at_most)


def _copies(
    form: Description, pod: IntArray, levels: Iterable[tuple[IntArray, IntArray]]
) -> Topology:
    """Servers on their switches, joined by the cables of every level."""
    server, n = np.arange(form.hosts), form.parameters["n"]
    return wired(
        form,
        ("server", server, "switch", server // n),
        *(("server", u, "server", v) for u, v in levels),
        pod={"server": pod, "switch": pod[::n]},
        hosts_forward=True,
    )


def _level(size: int, servers: int, step: int) -> tuple[IntArray, IntArray]:
    """Cables of one level: between copies of so many servers, of which every step-th takes one."""
    copies = size // step + 1
    group = np.arange(0, servers, size * copies)[:, None]
    low, high = copy_cable(size, step, *np.triu_indices(copies, k=1))
    return group + low, group + high


def copy_cable(size: int, step: int, i: Any, j: Any) -> tuple[Any, Any]:
    """Servers joined by the cable of copies i < j in a group; every step-th server has one."""
    idle = (step - 1) // 2
    return i * size + (j - 1) * step + idle, j * size + i * step + idle


def _top_digit(n: int, k: int) -> IntArray:
    """Highest digit of each switch's servers; -1 for the top level, whose servers differ in it."""
    below = np.tile(np.arange(n**k) // n ** max(k - 1, 0), k)
    return np.concatenate([below, np.full(n**k, -1)])


def _backwards(n: int, switches: int) -> IntArray:
    """Switches and servers from last to first; each switch's last server is idle and stays."""
    switch, place = np.divmod(np.arange(n * switches), n)
    servers = (switches - 1 - switch) * n + (n - 2 - place) % n
    return np.concatenate([servers, n * switches + np.arange(switches)[::-1]])


def _idle_rolled(n: int, every: int, servers: int) -> IntArray:
    """Every so many servers one is idle: it goes to the next on its switch, the last to first."""
    idle, image = np.arange(every - 1, servers, every), np.arange(servers + servers // n)
    first = np.unique(idle // n, return_index=True)[1]
    following = np.roll(idle, -1)
    following[np.roll(first, -1) - 1] = idle[first]
    image[idle] = following
    return image


def _copies_exchanged(n: int, every: int, copy: IntArray) -> IntArray:
    """Copies of n servers reordered; port p, every so many servers, leads to copy p or p + 1."""
    copies = copy.size
    i, place = np.divmod(np.arange(n * copies), n)
    port, other = np.divmod(place, every)
    j = port + (port >= i)
    towards = copy[i] * n + (copy[j] - (copy[j] > copy[i])) * every
    servers = np.where(other == 0, towards, copy[i] * n + place)
    return np.concatenate([servers, n * copies + copy])
