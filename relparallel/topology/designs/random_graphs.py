"""Networks of randomly joined switches: as short as any of their degree, grown switch by switch.

Letters of the papers: ``n`` switches of ``k`` ports, ``r`` of them to other switches (Jellyfish);
``d`` the degree and ``k`` the order of the lift (Xpander); ``p`` servers per switch.
"""

import numpy as np

from relparallel._checks import require_int, require_rng
from relparallel.topology._arrays import BoolArray, IntArray, joined, parts
from relparallel.topology.description import Description, design, planned
from relparallel.topology.designs._shared import describe_switched, switched
from relparallel.topology.fabric import Topology


def _jellyfish(n: int, k: int, r: int) -> Description:
    require_int(n=n, k=k, r=r, at_least=3)
    if not r < n or n * r % 2:
        raise ValueError(
            f"n must be more than r, and n r even, for r ports each to join, got n={n}, r={r}"
        )
    if k < r:
        raise ValueError(f"k must be at least r, the ports to other switches, got k={k}, r={r}")
    return describe_switched(
        switches=n,
        ports=(r,),
        cables=n * r // 2,
        p=k - r,
    )


def _jellyfish_sizes(hosts: int) -> list[dict[str, int]]:
    """Three servers per five cables to others, on switches of 64 ports where there are enough."""
    unit = 8 if hosts >= 1000 else 1
    return [{"n": round(hosts / (3 * unit)), "k": 8 * unit, "r": 5 * unit}]


@design(
    closed_form=_jellyfish, layout="circles", sizes=_jellyfish_sizes, paper="singla2012jellyfish"
)
def jellyfish(n: int, k: int, r: int, rng: np.random.Generator) -> Topology:
    """Jellyfish: a random connected graph of n switches with r cables each.

    Parameters
    ----------
    n : int
        Switches, more than r; n r must be even. N in the paper.
    k : int
        Ports per switch, at least r; k - r have a server. With k = r the switches are the hosts.
    r : int
        Ports to other switches, at least 3.
    rng : numpy.random.Generator
        Draws the graph; the same state gives the same graph.

    Returns
    -------
    Topology
        n (k - r) servers, then n switches.

    Notes
    -----
    Ports are paired at random; pairs that repeat another or join a switch to itself are paired
    anew, with as many good ones, until none is left. Of more than n/2 ports the cables that are
    absent are drawn. A graph that falls apart is drawn again. Every such graph may be drawn; of
    large ones all about equally often. About n r/2 steps. Source: Singla et al., NSDI 2012, section
    3.

    Examples
    --------
    >>> jellyfish(n=20, k=6, r=4, rng=np.random.default_rng(1))
    <Topology jellyfish(n=20, k=6, r=4): 40 hosts, 20 switches, 80 links>
    """
    form = planned("jellyfish", n, k, r)
    require_rng(rng=rng)
    cables = _regular(n, r, rng)
    while parts(cables, n).any():
        cables = _regular(n, r, rng)
    return switched(form, cables, np.full(n, -1))


def _xpander(d: int, k: int, p: int) -> Description:
    require_int(d=d, at_least=3)
    require_int(k=k, at_least=1)
    require_int(p=p, at_least=0)
    switches = (d + 1) * k
    return describe_switched(
        switches=switches,
        ports=(d,),
        cables=switches * d // 2,
        p=p,
    )


def _xpander_sizes(hosts: int) -> list[dict[str, int]]:
    unit = 8 if hosts >= 1000 else 1
    d, p = 5 * unit, 3 * unit
    return [{"d": d, "k": max(round(round(hosts / p) / (d + 1)), 1), "p": p}]


@design(closed_form=_xpander, layout="circles", sizes=_xpander_sizes, paper="valadarsky2016xpander")
def xpander(d: int, k: int, p: int, rng: np.random.Generator) -> Topology:
    """Xpander: a random k-lift of the complete graph of d + 1 nodes, a near-optimal expander.

    Every node becomes k switches, every cable of the complete graph a random matching of the k
    switches of its ends.

    Parameters
    ----------
    d : int
        Cables of a switch to others, at least 3.
    k : int
        Order of the lift, at least 1.
    p : int
        Servers per switch, at least 0; with 0 the switches are the hosts.
    rng : numpy.random.Generator
        Draws the matchings; the same state gives the same graph.

    Returns
    -------
    Topology
        p (d + 1) k servers, then (d + 1) k switches. ``pod`` is the node of the complete graph:
        switches of one pod are not joined.

    Notes
    -----
    All but the eigenvalues of the complete graph are about 2 sqrt(d - 1) at most (Friedman 2008,
    Bordenave 2020). A lift that falls apart is drawn again. Source: Valadarsky et al., CoNEXT 2016,
    section 3.

    Examples
    --------
    >>> xpander(d=4, k=5, p=2, rng=np.random.default_rng(1))
    <Topology xpander(d=4, k=5, p=2): 50 hosts, 25 switches, 100 links>
    """
    form = planned("xpander", d, k, p)
    require_rng(rng=rng)
    cables = _lift(d, k, rng)
    while parts(cables, (d + 1) * k).any():
        cables = _lift(d, k, rng)
    return switched(form, cables, np.repeat(np.arange(d + 1), k))


def _regular(n: int, r: int, rng: np.random.Generator) -> IntArray:
    """Random graph of n nodes with r cables each; the few absent ones are drawn if r is large."""
    if 2 * r < n:
        return _paired(n, r, rng)
    absent = _paired(n, n - 1 - r, rng)
    u, v = np.triu_indices(n, k=1)
    kept = ~np.isin(u * n + v, absent.min(axis=1) * n + absent.max(axis=1))
    return joined((u[kept], v[kept]))


def _paired(n: int, r: int, rng: np.random.Generator) -> IntArray:
    """Ports paired at random; bad pairs and as many good ones are paired anew until none is bad."""
    pairs = rng.permutation(np.repeat(np.arange(n), r)).reshape(-1, 2)
    while (bad := _repeated(pairs, n)).any():
        wrong, good = np.flatnonzero(bad), np.flatnonzero(~bad)
        drawn = np.concatenate(
            [wrong, rng.choice(good, size=min(wrong.size, good.size), replace=False)]
        )
        pairs[drawn] = rng.permutation(pairs[drawn].ravel()).reshape(-1, 2)
    return pairs


def _repeated(pairs: IntArray, n: int) -> BoolArray:
    """Pairs of a node with itself, and pairs that stand there before."""
    key = pairs.min(axis=1) * n + pairs.max(axis=1)
    first = np.zeros(len(pairs), dtype=bool)
    first[np.unique(key, return_index=True)[1]] = True
    return np.asarray(~first | (pairs[:, 0] == pairs[:, 1]))


def _lift(d: int, k: int, rng: np.random.Generator) -> IntArray:
    """A random matching of k copies for each pair of d + 1 nodes."""
    u, v = np.triu_indices(d + 1, k=1)
    copy = np.arange(k)
    matched = rng.permuted(np.tile(copy, (u.size, 1)), axis=1)
    return joined((u[:, None] * k + copy, v[:, None] * k + matched))
