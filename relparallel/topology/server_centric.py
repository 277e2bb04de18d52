"""Server-centric networks: servers forward, switches are plain crossbars.

Letters of the papers: ``n`` ports per switch, ``k`` the highest level (levels count from 0), ``t`` servers of
a DCell. Every cable has 400 Gbit/s and no modelled latency (``dataclasses.replace`` sets others).
"""

from __future__ import annotations

import numpy as np

from relparallel._checks import require_int
from relparallel.topology._arrays import IntArray, joined, require_size
from relparallel.topology.fabric import Topology
from relparallel.topology.parts import Design

__all__ = ["bcube", "dcell", "dcell_servers", "require_levels"]


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

    Raises
    ------
    TypeError, ValueError
        If n or k is no integer in its range, or the network is too large to build.

    Notes
    -----
    Servers are at most 2(k+1) links apart, k+1 disjoint paths join any two of them, and n^(k+1)/2 cables
    cross any halving of the servers for even n. Array operations on the (k+1) n^(k+1) cables.

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

    Raises
    ------
    TypeError, ValueError
        If n or k is no integer in its range, or the network is too large to build.

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


def _top_digit(n: int, k: int) -> IntArray:
    """Highest digit of the servers of each switch; -1 for the top level, whose servers differ in it."""
    below = np.tile(np.arange(n**k) // n ** max(k - 1, 0), k)
    return np.concatenate([below, np.full(n**k, -1)])
