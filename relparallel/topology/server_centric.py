"""Server-centric networks: servers forward, switches are plain crossbars.

Letters of the papers: ``n`` ports per switch, ``k`` the highest level (levels count from 0), ``t`` servers of
a DCell, ``N_k`` servers of a FiConn, ``m_d`` containers of an MDCube along dimension d. Every cable has 400
Gbit/s (a server's in MDCube a tenth) and no modelled latency (``dataclasses.replace`` sets others).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from relparallel._checks import require_int
from relparallel.topology._arrays import IntArray, joined, require_size
from relparallel.topology.description import Description, closed_form
from relparallel.topology.direct import require_dims
from relparallel.topology.fabric import LINK_CAPACITY, Topology
from relparallel.topology.parts import Design


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
        n^(k+1) servers, then n^k switches of each level 0..k; (k+1) n^(k+1) cables; every node forwards.
        ``tier`` is 0 for servers and l+1 for switches of level l; ``pod`` is the highest digit, -1 for the
        top level.

    Notes
    -----
    Servers are at most 2(k+1) links apart, and k+1 disjoint paths join any two of them. At most n^(k+1)/2
    cables cross the best halving of the servers for even n, and fewer as soon as n and k grow: 16 of 18 for
    n = 6, k = 1. Array operations on the (k+1) n^(k+1) cables.

    References
    ----------
    Guo et al., "BCube: a high performance, server-centric network architecture for modular data centers",
    SIGCOMM 2009, section 3.

    Examples
    --------
    >>> bcube(n=4, k=1)
    <Topology bcube(n=4, k=1): 16 hosts, 8 switches, 32 links>
    """
    require_levels(n=n, k=k)
    servers, per_level = n ** (k + 1), n**k
    require_size("n", n, servers + (k + 1) * (per_level + servers))
    server, level = np.arange(servers), np.arange(k + 1)[:, None]
    high, low = server // n ** (level + 1), server % n**level
    switch = level * per_level + high * n**level + low  # the digits of its servers without digit l
    return Topology.of(
        edges=joined((server, servers + switch)),
        node_kind={"server": servers, "switch": (k + 1) * per_level},
        tier=np.concatenate([np.zeros(servers, dtype=np.int64), np.repeat(1 + level, per_level)]),
        pod=np.concatenate([server // per_level, _top_digit(n, k)]),
        meta=Design(name="bcube", parameters={"n": n, "k": k}, paper="guo2009bcube"),
    )


@closed_form("bcube")
def _bcube(n: int, k: int) -> Description:
    require_levels(n=n, k=k)
    hosts = n ** (k + 1)
    return Description(
        design="bcube",
        parameters={"n": n, "k": k},
        nodes={"server": hosts, "switch": (k + 1) * n**k},
        degrees={"server": k + 1, "switch": n},
        links=(k + 1) * hosts,
        diameter=2 * (k + 1),
        diameter_bound=2 * (k + 1),
        mean_hops=2 * (k + 1) * (n - 1) * n**k / (hosts - 1),
        # A hypercube, one switch, and the one more case that an integer programme has proved.
        bisection=hosts // 2 if n == 2 or (n, k) == (4, 1) or (k == 0 and n % 2 == 0) else None,
        host_connectivity=k + 1,
    )


def dcell(n: int, k: int) -> Topology:
    """DCell_k of n-port switches: t+1 copies of a DCell_(k-1) of t servers, each two joined by a cable.

    A DCell_0 is n servers on one switch. In a DCell_l, server j-1 of copy i meets server i of copy j, for i <
    j.

    Parameters
    ----------
    n : int
        Ports per switch, at least 2.
    k : int
        Highest level, 0 to 5.

    Returns
    -------
    Topology
        t_k servers, numbered copy by copy, then t_k/n switches; t_k (1 + k/2) cables; every node forwards.
        ``pod`` is the copy of the highest level.

    Notes
    -----
    t_0 = n, t_k = t_(k-1) (t_(k-1) + 1). A server has one cable per level; two are at most 2^(k+1) - 1 server
    hops or 3 2^k - 1 links apart; k+1 disjoint paths join any two. Array operations on the cables.

    References
    ----------
    Guo et al., "DCell: a scalable and fault-tolerant network structure for data centers", SIGCOMM 2008,
    section 3.

    Examples
    --------
    >>> dcell(n=4, k=1)
    <Topology dcell(n=4, k=1): 20 hosts, 5 switches, 30 links>
    """
    require_levels(n=n, k=k, at_most=5)
    t = dcell_servers(n, k)
    require_size("n", n, t[k] + t[k] // n + t[k] + t[k] * k // 2)
    server = np.arange(t[k])
    pod = server // t[k - 1] if k else np.full(n, -1)
    return Topology.of(
        edges=joined(
            (server, t[k] + server // n), *(_level(t[level - 1], t[k]) for level in range(1, k + 1))
        ),
        node_kind={"server": t[k], "switch": t[k] // n},
        pod=np.concatenate([pod, pod[::n]]),
        meta=Design(name="dcell", parameters={"n": n, "k": k}, paper="guo2008dcell"),
    )


@closed_form("dcell")
def _dcell(n: int, k: int) -> Description:
    require_levels(n=n, k=k, at_most=5)
    hosts = dcell_servers(n, k)[k]
    return Description(
        design="dcell",
        parameters={"n": n, "k": k},
        nodes={"server": hosts, "switch": hosts // n},
        degrees={"server": k + 1, "switch": n},
        links=hosts + hosts * k // 2,
        diameter=None if k else 2,
        diameter_bound=3 * 2**k - 1,
        mean_hops=None if k else 2.0,
        bisection=None,
        host_connectivity=k + 1,
    )


def ficonn(n: int, k: int) -> Topology:
    """FiConn_k of n-port switches: servers have two ports, and a level takes half of those still idle.

    A FiConn_0 is n servers on one switch. In a FiConn_l, the idle server (j-1) 2^l + 2^(l-1) - 1 of copy i
    meets the idle server i 2^l + 2^(l-1) - 1 of copy j, for i < j.

    Parameters
    ----------
    n : int
        Ports per switch: even, at least 2.
    k : int
        Highest level, 0 to 9.

    Returns
    -------
    Topology
        N_k servers, numbered copy by copy, then N_k/n switches; every node forwards. ``pod`` is the copy of
        the highest level.

    Notes
    -----
    N_0 = n, N_k = N_(k-1) (N_(k-1)/2^k + 1). For k > 0, N_k/2^k servers keep an idle port, the others have
    two cables. Servers are at most 2^(k+1) - 1 server hops or 3 2^k - 1 links apart. Array operations on the
    cables.

    References
    ----------
    Li et al., "FiConn: using backup port for server interconnection in data centers", INFOCOM 2009, section
    III.

    Examples
    --------
    >>> ficonn(n=4, k=2)
    <Topology ficonn(n=4, k=2): 48 hosts, 12 switches, 66 links>
    """
    form = _ficonn(n, k)
    require_size("n", n, form.hosts + form.switches + form.links)
    sizes = ficonn_servers(n, k)
    server = np.arange(form.hosts)
    levels = [_idle_cables(size, form.hosts, level) for level, size in enumerate(sizes[:-1], start=1)]
    switch = np.arange(form.switches)
    copy = form.hosts if k == 0 else sizes[k - 1]
    return Topology.of(
        edges=joined((server, form.hosts + server // n), *levels),
        node_kind=form.nodes,
        pod=np.concatenate([server // copy, switch * n // copy]),
        meta=Design(name="ficonn", parameters={"n": n, "k": k}, paper="li2009ficonn"),
    )


@closed_form("ficonn")
def _ficonn(n: int, k: int) -> Description:
    require_levels(n=n, k=k, at_most=9)
    if n % 2:
        raise ValueError(f"n must be even, got {n}: FiConn's first level takes half of a switch's servers")
    hosts = ficonn_servers(n, k)[k]
    return Description(
        design="ficonn",
        parameters={"n": n, "k": k},
        nodes={"server": hosts, "switch": hosts // n},
        degrees={"server": (1, 2) if k else 1, "switch": n},
        links=hosts + (hosts - hosts // 2**k) // 2,
        diameter=None if k else 2,
        diameter_bound=3 * 2**k - 1,
        mean_hops=None if k else 2.0,
        host_connectivity=1,
    )


def ficonn_servers(n: int, k: int) -> list[int]:
    """Servers N_0..N_k of the FiConns of each level (Li et al. 2009, theorem 1)."""
    sizes = [n]
    for level in range(1, k + 1):
        sizes.append(sizes[-1] * (sizes[-1] // 2**level + 1))
    return sizes


def mdcube(n: int, k: int, dims: Sequence[int]) -> Topology:
    """MDCube: containers, each a BCube_k of n-port switches, joined directly along every dimension of a grid.

    Every switch has one fast uplink. Along a dimension of m containers, uplink j-1 of container i meets
    uplink i of container j, for i < j; the first dimension takes the first m-1 switches of each container,
    the next dimension the following ones.

    Parameters
    ----------
    n, k : int
        Ports per switch for servers, and highest level of the BCube, as in `bcube`.
    dims : sequence of int
        Containers m_d along each dimension, at least 1, with sum(m_d - 1) <= (k+1) n^k.

    Returns
    -------
    Topology
        The servers of all containers, container by container, then their switches; every node forwards.
        ``pod`` is the container, in row-major order. A server's cable has a tenth of the capacity of an
        uplink, as in the paper.

    Notes
    -----
    Containers at m_1 x m_2 x .. hold prod(m_d) n^(k+1) servers; two containers that differ in one dimension
    share a cable. Array operations on cables.

    References
    ----------
    Wu et al., "MDCube: a high performance network structure for modular data center interconnection", CoNEXT
    2009, section 3.

    Examples
    --------
    >>> mdcube(n=4, k=1, dims=(5, 5))
    <Topology mdcube(n=4, k=1, dims=(5, 5)): 400 hosts, 200 switches, 900 links>
    """
    form = _mdcube(n, k, dims)
    require_size("dims", dims, form.hosts + form.switches + form.links)
    lengths, inside = form.parameters["dims"], bcube(n, k)
    count, container = math.prod(lengths), np.arange(math.prod(lengths))[:, None]
    server, switch = inside.edges.T
    uplinks = _uplinks(lengths, form.hosts, inside.num_switches)
    t = Topology.of(
        edges=joined(
            (
                container * inside.num_hosts + server,
                form.hosts - inside.num_hosts + container * inside.num_switches + switch,
            ),
            *uplinks,
        ),
        node_kind=form.nodes,
        tier=np.concatenate([np.tile(inside.tier[part], count) for part in (inside.hosts, inside.switches)]),
        pod=np.repeat(
            np.tile(np.arange(count), 2), np.repeat([inside.num_hosts, inside.num_switches], count)
        ),
        meta=Design(name="mdcube", parameters=form.parameters, paper="wu2009mdcube"),
    )
    return replace(t, capacity=LINK_CAPACITY * np.where(t.endpoint[t.edges[:, 0]], 0.1, 1.0))


@closed_form("mdcube")
def _mdcube(n: int, k: int, dims: Sequence[int]) -> Description:
    cube, lengths = _bcube(n, k), require_dims(dims=dims)
    containers, used = math.prod(lengths), sum(length - 1 for length in lengths)
    if used > cube.switches:
        raise ValueError(
            f"dims must have sum(m - 1) <= (k+1) n^k = {cube.switches} uplinks of a container, got {dims!r}"
        )
    crossed = sum(length > 1 for length in lengths)
    ports = {n + (used > 0), n + (used == cube.switches)}
    return replace(
        cube,
        design="mdcube",
        parameters={"n": n, "k": k, "dims": lengths},
        nodes={kind: containers * count for kind, count in cube.nodes.items()},
        degrees={"server": k + 1, "switch": tuple(sorted(ports)) if len(ports) > 1 else ports.pop()},
        links=containers * cube.links + containers * used // 2,
        diameter=None if crossed else cube.diameter,
        diameter_bound=2 * (2 * k + 1) + crossed + (crossed - 1) * 2 * (k + 1) if crossed else 2 * (k + 1),
        mean_hops=None if crossed else cube.mean_hops,
        bisection=None if crossed else cube.bisection,
        host_connectivity=min(k + 1, used) if crossed else k + 1,
    )


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


def _level(t: int, servers: int) -> tuple[IntArray, IntArray]:
    """Cables of one level: between t+1 copies of t servers, in every group of t(t+1) servers."""
    i, j = np.triu_indices(t + 1, k=1)
    group = np.arange(0, servers, t * (t + 1))[:, None]
    return group + i * t + j - 1, group + j * t + i


def _idle_cables(size: int, servers: int, level: int) -> tuple[IntArray, IntArray]:
    """Cables of one level of FiConn: between the copies of size servers, in every FiConn of that level."""
    copies = size // 2**level + 1
    i, j = np.triu_indices(copies, k=1)
    group = np.arange(0, servers, size * copies)[:, None] + 2 ** (level - 1) - 1
    return group + i * size + (j - 1) * 2**level, group + j * size + i * 2**level


def _uplinks(lengths: Sequence[int], servers: int, switches: int) -> Iterator[tuple[IntArray, IntArray]]:
    """Cables between the containers of an MDCube, dimension by dimension."""
    grid, first = np.arange(math.prod(lengths)).reshape(lengths), servers
    for axis, length in enumerate(lengths):
        rows = np.moveaxis(grid, axis, -1).reshape(-1, length) * switches + first
        i, j = np.triu_indices(length, k=1)
        yield rows[:, i] + j - 1, rows[:, j] + i
        first += length - 1


def _top_digit(n: int, k: int) -> IntArray:
    """Highest digit of the servers of each switch; -1 for the top level, whose servers differ in it."""
    below = np.tile(np.arange(n**k) // n ** max(k - 1, 0), k)
    return np.concatenate([below, np.full(n**k, -1)])
