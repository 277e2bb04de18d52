"""Closed forms for fat-trees of any size: microseconds where enumeration would outlive the universe.

Letters: ``k`` ports per switch; ``h = k/2`` switches per group, where group j holds aggregation switch j of
every pod and the h cores that those switches share; ``c`` and ``a`` up-probability of a core and of an
aggregation switch. All sums have positive terms only, so U keeps its digits at 1e-95 (k = 64).

References
----------
Al-Fares, Loukissas and Vahdat, "A scalable, commodity data center network architecture", SIGCOMM 2008: the
wiring.
Gilbert, "Random graphs", Annals of Mathematical Statistics 30, 1959: the probability of connectedness.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from relparallel._checks import require_flag, require_int, require_probability
from relparallel.reliability.chances import parallel, part, series
from relparallel.reliability.result import Reliability, exactly

__all__ = ["fat_tree_edge_pair_connected", "fat_tree_pods_connected"]

FloatArray = NDArray[np.float64]


def fat_tree_pods_connected(k: int, core_up: float = 1.0, aggregation_up: float = 1.0) -> Reliability:
    """Probability that all pods of a k-ary fat-tree can reach each other when switches fail.

    Parameters
    ----------
    k : int
        Ports per switch, even, from 2 to 256.
    core_up, aggregation_up : float
        Up-probability of a core switch and of an aggregation switch.

    Returns
    -------
    Reliability
        Any path counts. Links and edge switches work.

    Raises
    ------
    TypeError, ValueError
        If k is odd or out of range, or a probability is outside [0, 1].

    Notes
    -----
    A group connects its pods if one of its h cores is up: probability g = 1 - (1 - c)^h. With j groups alive,
    pods and groups are the two sides of a random bipartite graph whose edges, the aggregation switches, are
    up with probability a, so U = sum_j C(h, j) g^j (1 - g)^(h-j) V(j), V(j) the probability that the k pods
    are not all together. V follows from an epidemic that starts in one pod: x pods reached last hit each of
    the t groups not yet reached with probability 1 - (1 - a)^x, and so on, back and forth. O(k^4) operations.

    Examples
    --------
    >>> print(f"{fat_tree_pods_connected(k=48, core_up=0.99, aggregation_up=0.99).unreliability:.1e}")
    4.8e-47
    """
    h = _half(k)
    c, a = _scalars(core_up=core_up, aggregation_up=aggregation_up)
    together, apart = _together(k, h, a)
    alive, dead = parallel(*[part(c)] * h)
    groups = np.array([math.comb(h, j) * alive**j * dead ** (h - j) for j in range(h + 1)])
    return exactly(float(groups @ together), float(groups @ apart), "closed_form")


def fat_tree_edge_pair_connected(
    k: int,
    core_up: float = 1.0,
    aggregation_up: float = 1.0,
    edge_up: float = 1.0,
    core_link_up: float = 1.0,
    edge_link_up: float = 1.0,
    *,
    same_pod: bool = False,
) -> Reliability:
    """Probability that two edge switches of a k-ary fat-tree reach each other by a valley-free path.

    Parameters
    ----------
    k : int
        Ports per switch, even, from 2 to 256.
    core_up, aggregation_up, edge_up : float
        Up-probability of a switch of each tier; the two edge switches must be up themselves.
    core_link_up, edge_link_up : float
        Up-probability of a link between aggregation and core, and between edge and aggregation.
    same_pod : bool, optional
        Whether the two share a pod; then the path turns at an aggregation switch.

    Returns
    -------
    Reliability
        Routing "updown": a path climbs to its highest switch and then only descends.

    Raises
    ------
    TypeError, ValueError
        If k is odd or out of range, or a probability is outside [0, 1].

    Notes
    -----
    The h groups are independent. With l, m the up-probabilities of edge and core links and e of an edge
    switch, R = e^2 (1 - U) where U = (1 - (a l)^2 (1 - (1 - c m^2)^h))^h between pods and U = (1 - a l^2)^h
    inside one.

    Examples
    --------
    >>> pair = fat_tree_edge_pair_connected(k=4, core_up=0.95, aggregation_up=0.9, core_link_up=0.97,
    ...                                     edge_link_up=0.93)
    >>> print(f"{pair.unreliability:.6f} by {pair.routing}")
    0.094448 by updown
    """
    h = _half(k)
    c, a, e, m, l = _scalars(  # noqa: E741
        core_up=core_up,
        aggregation_up=aggregation_up,
        edge_up=edge_up,
        core_link_up=core_link_up,
        edge_link_up=edge_link_up,
    )
    require_flag(same_pod=same_pod)
    core, link = series(part(c), part(m), part(m)), part(l)
    if same_pod:
        group = series(part(a), link, link)
    else:
        group = series(part(a), part(a), link, link, parallel(*[core] * h))
    return exactly(*series(part(e), part(e), parallel(*[group] * h)), "closed_form", "updown")


def _half(k: int) -> int:
    """Switches per group of a k-ary fat-tree."""
    require_int(k=k, at_least=2, at_most=256)
    if k % 2:
        raise ValueError(f"k must be an even integer in [2, 256], got {k}")
    return k // 2


def _scalars(**named: float) -> tuple[float, ...]:
    """The named arguments, each of them one probability."""
    for name, value in named.items():
        if np.ndim(require_probability(**{name: value})):
            raise TypeError(f"{name} must be one probability, got an array of shape {np.shape(value)}")
    return tuple(map(float, named.values()))


def _together(m: int, n: int, up: float) -> tuple[FloatArray, FloatArray]:
    """Probability, for j = 0..n, that all m left nodes of a random K_{m,j} are connected; and that not.

    Letters: s left and t right nodes are not yet reached; x left or y right nodes were reached last.
    ``right[s, t, y]`` and ``left[s, x]`` (of the current t) are the probabilities that the rest fails (or
    succeeds) from there; with nobody reached last, it fails if anybody is left.
    """
    hit_left = [_binomial_table(s, n, up) for s in range(m)]
    results = []
    for wins in (True, False):
        ended = (np.arange(m) == 0) == wins
        right = np.zeros((m, n + 1, n + 1))
        right[:, :, 0] = ended[:, None]
        result = np.empty(n + 1)
        for t in range(n + 1):
            y = np.arange(t + 1)
            left = right[:, t - y, y] @ _binomial_table(t, m, up).T
            for s in range(m):
                z = np.arange(s + 1)
                right[s, t, 1:] = hit_left[s][1:] @ left[s - z, z]
            result[t] = left[m - 1, 1]
        results.append(result)
    return results[0], results[1]


def _binomial_table(n: int, x_max: int, up: float) -> FloatArray:
    """Row x: distribution of how many of n nodes are hit by at least one of x senders, [x_max + 1, n + 1]."""
    x, count = np.arange(x_max + 1)[:, None], np.arange(n + 1)
    miss = (1.0 - up) ** x
    with np.errstate(divide="ignore", invalid="ignore"):  # log(0) where a hit is certain
        hit = np.where(x > 0, -np.expm1(x * np.log1p(-up)), 0.0)
    ways = np.array([float(math.comb(n, i)) for i in count])
    return np.asarray(ways * hit**count * miss ** (n - count))
