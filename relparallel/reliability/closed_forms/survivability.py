"""Servers that reach each other or not: accessible server ratio, smallest cuts, time to isolation.

References
----------
Couto et al., "Reliability and survivability analysis of data center network topologies", Journal of
Network and Systems Management 24, 2016 (arXiv 1510.02735). Burtin and Pittel, "Asymptotic estimates
of the reliability of a complex system", Engineering Cybernetics 10, 1972.
"""

import math
from collections.abc import Callable
from typing import Final

import numpy as np

from relparallel._checks import require_instance
from relparallel.reliability.closed_forms.fat_tree_forms import Turn, fat_tree_pair
from relparallel.reliability.closed_forms.leaf_spine_forms import leaf_spine_pair
from relparallel.reliability.evaluation import evaluate
from relparallel.reliability.probability import single_probabilities
from relparallel.reliability.result import Reliability, bracketed, exactly
from relparallel.topology import bcube, dcell
from relparallel.topology.description import Description
from relparallel.topology.symmetry import orbits

Classes = list[tuple[int, Reliability]]

_SECONDS: Final = 1.0  # that the frontier DP may take for a class of pairs


def accessible_servers(
    form: Description, server_up: float = 1.0, switch_up: float = 1.0, link_up: float = 1.0
) -> Reliability:
    """Expected share of other servers that a server can reach: how often two reach each other.

    Parameters
    ----------
    form : Description
        A fat_tree, a leaf_spine, a bcube, or a dcell with k = 1, of two hosts or more.
    server_up, switch_up, link_up : float, optional
        Up-probability of every server, switch and cable. A server that is down reaches nobody.

    Returns
    -------
    Reliability
        ``reliability`` is the ratio, the probability that two different servers drawn at random
        reach each other. Up-down routing in the first two designs, any path in the others, where
        servers forward. A bcube or dcell is built; it is bracketed, with method "bounds", where the
        frontier DP is too wide.

    Notes
    -----
    The mean over the classes of pairs: same edge switch, same pod and other pod; same leaf and
    other leaf. Two servers of a bcube or dcell have no closed form: one pair of each class, an
    orbit of the symmetries that keep a server, goes to `evaluate`. O(1) pairs at any size.

    Examples
    --------
    >>> from relparallel.topology import describe
    >>> for form in (describe("fat_tree", k=16), describe("bcube", n=9, k=1), describe("dcell", n=9, k=1)):
    ...     print(form.design, f"{accessible_servers(form, switch_up=0.99).unreliability:.2e}")
    fat_tree 1.98e-02
    bcube 2.00e-04
    dcell 1.97e-04
    """
    require_instance(Description, form=form)
    ups = single_probabilities(server_up=server_up, switch_up=switch_up, link_up=link_up)
    if not has_pair_classes(form):
        known = (
            "a fat_tree, a leaf_spine, a bcube or dcell with k=1 of up to 4096 servers, with "
            "two hosts"
        )
        raise ValueError(f"form must be {known}, got {form.design} {dict(form.parameters)}")
    classes = [(count, pair) for count, pair in _CLASSES[form.design](form, *ups) if count]
    total = sum(count for count, _ in classes)
    up, down, lower, upper = (
        math.fsum(count * getattr(pair, name) for count, pair in classes) / total
        for name in ("reliability", "unreliability", "lower", "upper")
    )
    if all(pair.exact for _, pair in classes):
        return exactly(up, down, classes[0][1].method)
    return bracketed(lower, min(upper, 1.0))


def has_pair_classes(form: Description, servers: int = 4096) -> bool:
    """Whether host pairs fall into classes with closed forms, or a network of so many servers."""
    given, hosts = form.parameters, next(iter(form.nodes.values()))
    # forms of single cables
    if form.design in ("fat_tree", "leaf_spine") and "cables" not in given:
        return hosts > 1 and max(given[name] for name in given if name != "hosts_per_leaf") <= 256
    return 2 <= hosts <= servers and (
        form.design == "bcube" or (form.design == "dcell" and given["k"] == 1)
    )


def _fat_tree(form: Description, server: float, switch: float, link: float) -> Classes:
    k = form.parameters["k"]
    h = k // 2
    counts: dict[Turn, int] = {"edge": h - 1, "aggregation": h * (h - 1), "core": h * h * (k - 1)}
    ups = (switch, switch, switch, link, link, server * link)
    return [(count, fat_tree_pair(k, *ups, turn=turn)) for turn, count in counts.items()]


def _leaf_spine(form: Description, server: float, switch: float, link: float) -> Classes:
    leaves, spines, hosts = (
        form.parameters[name] for name in ("leaves", "spines", "hosts_per_leaf")
    )
    ups = (switch, link, switch, server * link)
    here = leaf_spine_pair(leaves, spines, *ups, routing="updown", same_leaf=True)
    if leaves == 1:
        return [(hosts - 1, here)]
    away = leaf_spine_pair(leaves, spines, *ups, routing="updown")
    return [(hosts - 1, here), ((leaves - 1) * hosts, away)]


def _by_orbits(form: Description, server: float, switch: float, link: float) -> Classes:
    """Server 0 with one of each set of servers that symmetries fixing it carry into each other."""
    network = {"bcube": bcube, "dcell": dcell}[form.design](**form.parameters)
    node = np.where(network.endpoint, server, switch)
    orbit = orbits(network, np.arange(network.num_nodes) == 0)[network.hosts]
    _, first, counts = np.unique(orbit, return_index=True, return_counts=True)
    return [
        (count, evaluate(network, (0, other), link, node, max_seconds=_SECONDS))
        for other, count in zip(network.hosts[first].tolist(), counts.tolist(), strict=True)
        if other
    ]


_CLASSES: Final[dict[str, Callable[[Description, float, float, float], Classes]]] = {
    "fat_tree": _fat_tree,
    "leaf_spine": _leaf_spine,
    "bcube": _by_orbits,
    "dcell": _by_orbits,
}
