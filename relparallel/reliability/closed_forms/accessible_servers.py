"""The share of servers that a server can reach: pairs of hosts by class, at any size, without building.

References
----------
Couto et al., "Reliability and survivability analysis of data center network topologies", Journal of Network
and Systems Management 24, 2016 (arXiv 1510.02735): accessible server ratio.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

from relparallel._checks import require_instance
from relparallel.reliability.closed_forms._arguments import single_probabilities
from relparallel.reliability.closed_forms.fat_tree_forms import Turn, fat_tree_pair
from relparallel.reliability.closed_forms.leaf_spine_forms import leaf_spine_pair
from relparallel.reliability.closed_forms.server_centric_forms import bcube_pair, dcell_pair
from relparallel.reliability.result import Reliability, bracketed, exactly
from relparallel.topology import Description

Classes = list[tuple[int, Reliability]]

_BOUNDED: Final = 4096  # servers of a BCube of several levels, which has to be built


def accessible_servers(
    form: Description, server_up: float = 1.0, switch_up: float = 1.0, link_up: float = 1.0
) -> Reliability:
    """Expected share of the other servers that a server can reach: how often two servers reach each other.

    Parameters
    ----------
    form : Description
        A fat_tree, a leaf_spine, a bcube, or a dcell with k = 1, of two hosts or more.
    server_up, switch_up, link_up : float, optional
        Up-probability of every server, switch and cable. A server that is down reaches nobody.

    Returns
    -------
    Reliability
        ``reliability`` is the ratio, the probability that two different servers drawn at random reach each
        other. Up-down routing in the first two designs, any path in the others, where servers forward. For a
        bcube of more than two levels it is bracketed, with method "bounds".

    Notes
    -----
    The mean over the classes of pairs, each class with its closed form: same edge switch, same pod and other
    pod; same leaf and other leaf; servers that share a switch or none; in a DCell_1 the six ways in which two
    servers and their partners can lie. O(1) pairs at any size. In a BCube_k the number of levels in which two
    servers differ is the class; with k > 1 each class has certified bounds on one of its pairs.

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
    if form.design == "bcube" and form.parameters["k"] > 1 and form.nodes["server"] <= _BOUNDED:
        return _bracketed_bcube(form, *ups)
    if not has_pair_classes(form):
        known = "a fat_tree, a leaf_spine, a bcube of up to 4096 servers, or a dcell with k=1, with two hosts"
        raise ValueError(f"form must be {known}, got {form.design} {dict(form.parameters)}")
    classes = [(count, pair) for count, pair in _CLASSES[form.design](form, *ups) if count]
    total = sum(count for count, _ in classes)
    up = math.fsum(count * pair.reliability for count, pair in classes) / total
    down = math.fsum(count * pair.unreliability for count, pair in classes) / total
    return exactly(up, down, "closed_form", classes[0][1].routing)


def has_pair_classes(form: Description) -> bool:
    """Whether pairs of hosts of a design fall into classes with closed forms."""
    most = {"fat_tree": ("k", 256), "leaf_spine": ("spines", 256), "bcube": ("k", 1), "dcell": ("k", 1)}
    if form.design not in most or next(iter(form.nodes.values())) < 2:
        return False
    name, limit = most[form.design]
    ports = form.parameters["n"] if limit == 1 else form.parameters.get("leaves", 2)
    return bool(1 <= form.parameters[name] <= limit and ports <= (48 if limit == 1 else 256))


def _fat_tree(form: Description, server: float, switch: float, link: float) -> Classes:
    k = form.parameters["k"]
    h = k // 2
    counts: dict[Turn, int] = {"edge": h - 1, "aggregation": h * (h - 1), "core": h * h * (k - 1)}
    ups = (switch, switch, switch, link, link, server * link)
    return [(count, fat_tree_pair(k, *ups, turn=turn)) for turn, count in counts.items()]


def _leaf_spine(form: Description, server: float, switch: float, link: float) -> Classes:
    leaves, spines, hosts = (form.parameters[name] for name in ("leaves", "spines", "hosts_per_leaf"))
    ups = (switch, link, switch, server * link)
    here = leaf_spine_pair(leaves, spines, *ups, routing="updown", same_leaf=True)
    if leaves == 1:
        return [(hosts - 1, here)]
    away = leaf_spine_pair(leaves, spines, *ups, routing="updown")
    return [(hosts - 1, here), ((leaves - 1) * hosts, away)]


def _bcube(form: Description, server: float, switch: float, link: float) -> Classes:
    """Server 0 with one that shares a switch, and with one that does not."""
    n = form.parameters["n"]
    counts = {1: 2 * (n - 1), n + 1: (n - 1) ** 2}
    return [(count, bcube_pair(n, 0, other, server, switch, link)) for other, count in counts.items()]


def _bracketed_bcube(form: Description, server: float, switch: float, link: float) -> Reliability:
    """Server 0 with one that differs in so many levels, each pair with certified bounds."""
    from relparallel.reliability.bounding.certified import bounds  # the forms need no compiler
    from relparallel.topology import bcube

    n, levels = form.parameters["n"], form.parameters["k"] + 1
    fabric, lower, upper = bcube(n, levels - 1), 0.0, 0.0
    node = [server if end else switch for end in fabric.endpoint.tolist()]
    for differ in range(1, levels + 1):
        share = math.comb(levels, differ) * (n - 1) ** differ / (n**levels - 1)
        other = sum(n**level for level in range(differ))
        found = bounds(fabric, (0, other), link, node)
        lower, upper = lower + share * found.lower, upper + share * found.upper
    return bracketed(lower, min(upper, 1.0), "any")


def _dcell(form: Description, server: float, switch: float, link: float) -> Classes:
    """Server 0 of cell 0, whose partner is server 0 of cell 1."""
    n = form.parameters["n"]
    counts = {
        1: n - 1,  # same cell
        n: 1,  # the partner
        n + 1: n - 1,  # the partner's cell
        2 * n: n - 1,  # another cell, own partner in cell 0
        2 * n + 1: n - 1,  # another cell, own partner in cell 1
        2 * n + 2: (n - 1) * (n - 2),  # another cell, own partner in a fourth
    }
    return [
        (count, dcell_pair(n, 0, other, server, switch, link))
        for other, count in counts.items()
        if count and other < n * (n + 1)
    ]


_CLASSES: Final[dict[str, Callable[[Description, float, float, float], Classes]]] = {
    "fat_tree": _fat_tree,
    "leaf_spine": _leaf_spine,
    "bcube": _bcube,
    "dcell": _dcell,
}
