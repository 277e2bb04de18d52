"""Closed forms for fat-trees of any size: milliseconds where enumeration would outlive the universe.

Letters: ``k`` ports per switch; ``h = k/2`` switches per group, where group j holds aggregation switch j of
every pod and the h cores that those switches share; ``c`` and ``a`` up-probability of a core and of an
aggregation switch, ``l`` and ``m`` of a cable below and above the aggregation.

References
----------
Al-Fares, Loukissas and Vahdat, "A scalable, commodity data center network architecture", SIGCOMM 2008: the
wiring.
"""

from __future__ import annotations

from typing import Literal

from relparallel._checks import require_choice, require_int
from relparallel.reliability.closed_forms._arguments import half_radix, single_probabilities
from relparallel.reliability.closed_forms.fat_tree_partitions import Bracket, pods_apart
from relparallel.reliability.closed_forms.random_graph_connectivity import binomial_weights, row_set_together
from relparallel.reliability.probability import CERTAIN, Chance, parallel, part, series
from relparallel.reliability.result import Reliability, exactly

Turn = Literal["core", "aggregation", "edge"]


def fat_tree_pods_connected(
    k: int,
    core_up: float = 1.0,
    aggregation_up: float = 1.0,
    core_link_up: float = 1.0,
    *,
    pods: int | None = None,
) -> Reliability:
    """Probability that the pods of a k-ary fat-tree can reach each other.

    Parameters
    ----------
    k : int
        Ports per switch, even, from 2 to 256; to 64 if core cables fail.
    core_up, aggregation_up, core_link_up : float, optional
        Up-probability of a core switch, of an aggregation switch, and of a cable between the two.
    pods : int, optional
        How many of the k pods have to be together; by default all. The others relay.

    Returns
    -------
    Reliability
        Any path counts; edge switches and the cables below the aggregation work. With failing core cables,
        more than 32 pods and frequent failures, ``lower`` and ``upper`` may differ; else they are equal.

    Notes
    -----
    Perfect cables: a group connects its pods if one of its h cores is up, g = 1 - (1 - c)^h. With j groups
    alive, pods and groups are the two sides of a random bipartite graph whose edges, the aggregation
    switches, are up with probability a, so U = sum_j C(h, j) g^j (1 - g)^(h-j) V(j), V(j) the probability
    that the pods are not together; `random_graph_connectivity` finds it in O(k^4) operations,
    without a subtraction.

    Failing cables: U = sum_b (-1)^b (b - 2)! sum_t N(t) (T(t) - 1) Phi(t)^h over the partitions t of the k
    pods into b >= 2 blocks. N(t) counts the ways to form them, T(t) is the expected number of blocks that
    hold one of the pods in question (b if it is all), and Phi(t) the probability that no core of one group
    joins two blocks. Multi-precision whole numbers with a proved error; few b matter where failures are rare.

    Examples
    --------
    >>> print(f"{fat_tree_pods_connected(k=48, core_up=0.99, aggregation_up=0.99).unreliability:.1e}")
    4.8e-47
    >>> print(f"{fat_tree_pods_connected(16, 0.999, 0.999, core_link_up=0.999).unreliability:.6e}")
    1.600000e-23
    """
    c, a, m = single_probabilities(core_up=core_up, aggregation_up=aggregation_up, core_link_up=core_link_up)
    half_radix(k, at_most=256 if m == 1.0 else 64)
    terminals = k if pods is None else require_int(pods=pods, at_least=1, at_most=k)
    together, lower, upper = pods_together(k, c, a, m, terminals)
    return Reliability(
        reliability=together,
        unreliability=(lower + upper) / 2 if lower < upper else upper,
        lower=lower,
        upper=upper,
        method="closed_form",
        routing="any",
    )


def pods_together(k: int, c: float, a: float, m: float, terminals: int) -> Bracket:
    """Chance that some pods are together, and the least and largest chance that they are not."""
    if terminals == 1:
        return Bracket(1.0, 0.0, 0.0)
    if c * a * m == 0:
        return Bracket(0.0, 1.0, 1.0)
    if m < 1.0:
        return pods_apart(k, c, a, m, terminals)
    h = k // 2
    groups = binomial_weights(h, parallel(*[part(c)] * h))
    together, apart = groups @ row_set_together(k, h, part(a), terminals)
    return Bracket(min(float(together), 1.0), min(float(apart), 1.0), min(float(apart), 1.0))


def fat_tree_pair(
    k: int,
    core_up: float = 1.0,
    aggregation_up: float = 1.0,
    edge_up: float = 1.0,
    core_link_up: float = 1.0,
    edge_link_up: float = 1.0,
    host_up: float = 1.0,
    *,
    turn: Turn = "core",
) -> Reliability:
    """Probability that two hosts of a k-ary fat-tree reach each other by a up-down path.

    Parameters
    ----------
    k : int
        Ports per switch, even, from 2 to 256.
    core_up, aggregation_up, edge_up : float, optional
        Up-probability of a switch of each tier; the edge switches of the two must be up themselves.
    core_link_up, edge_link_up : float, optional
        Up-probability of a cable between aggregation and core, and between edge and aggregation.
    host_up : float, optional
        Up-probability of a host with its cable; at 1 the pair is that of the edge switches.
    turn : {"core", "aggregation", "edge"}, optional
        Where the path turns: hosts of two pods, of two edge switches of one pod, or of one edge switch.

    Returns
    -------
    Reliability
        Routing "updown": a path goes up to its highest switch and then only down.

    Notes
    -----
    The h groups are independent. With e of an edge switch and v of a host, R = v^2 e^2 (1 - U) where U = (1 -
    (a l)^2 (1 - (1 - c m^2)^h))^h between pods and U = (1 - a l^2)^h inside one; R = v^2 e at one switch.

    Examples
    --------
    >>> pair = fat_tree_pair(k=32, core_up=0.999, aggregation_up=0.999, core_link_up=0.9999,
    ...                      edge_link_up=0.9999)
    >>> print(f"{pair.unreliability:.9e} by {pair.routing}")
    2.980634117e-43 by updown
    """
    h = half_radix(k)
    c, a, e, m, l, v = single_probabilities(  # noqa: E741
        core_up=core_up,
        aggregation_up=aggregation_up,
        edge_up=edge_up,
        core_link_up=core_link_up,
        edge_link_up=edge_link_up,
        host_up=host_up,
    )
    require_choice(("core", "aggregation", "edge"), turn=turn)
    edges = [part(e)] * (1 if turn == "edge" else 2)
    middle = _climb(h, part(c), part(a), part(m), part(l), turn)
    return exactly(*series(part(v), part(v), *edges, middle), "closed_form", "updown")


def _climb(h: int, core: Chance, aggregation: Chance, core_link: Chance, link: Chance, turn: Turn) -> Chance:
    """Chance of a way between two edge switches that are up."""
    if turn == "edge":
        return CERTAIN
    if turn == "aggregation":
        return parallel(*[series(aggregation, link, link)] * h)
    cores = parallel(*[series(core, core_link, core_link)] * h)
    return parallel(*[series(aggregation, aggregation, link, link, cores)] * h)
