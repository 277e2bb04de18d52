"""Closed forms for leaf-spine fabrics: two tiers of switches, every leaf joined to every spine.

Leaves and working spines are the two sides of a random bipartite graph whose edges are the cables
between them; `sides_connected` gives the chance that the leaves of a job are in one component.
"""

from typing import Literal

import numpy as np

from relparallel._checks import require_choice, require_int
from relparallel.reliability.closed_forms.random_graph_connectivity import sides_connected
from relparallel.reliability.probability import Chance, parallel, part, series, single_probabilities
from relparallel.reliability.result import Reliability, exactly

_MOST = 256


def leaf_spine_leaves_connected(
    leaves: int,
    spines: int,
    spine_up: float = 1.0,
    link_up: float = 1.0,
    leaf_up: float = 1.0,
    host_up: float = 1.0,
    *,
    hosts_per_leaf: int = 0,
) -> Reliability:
    """Probability that all leaves of a leaf-spine fabric and all hosts below reach each other.

    Parameters
    ----------
    leaves, spines : int
        Switches of each tier, 1 to 256.
    spine_up, link_up, leaf_up : float, optional
        Up-probability of a spine, of a cable between leaf and spine, and of a leaf.
    host_up : float, optional
        Up-probability of a host with its cable.
    hosts_per_leaf : int, optional
        Hosts of each leaf that have to be up as well.

    Returns
    -------
    Reliability
        Any path counts.

    Notes
    -----
    The sum over the components of one leaf, in a random bipartite graph whose columns, the spines,
    fail too. L leaves and their hosts stand in series with this. O(L^2 S^2) operations.

    Examples
    --------
    >>> fabric = leaf_spine_leaves_connected(leaves=64, spines=32, spine_up=0.999, link_up=0.999)
    >>> print(f"{fabric.unreliability:.3e}")
    2.705e-85
    """
    require_int(leaves=leaves, spines=spines, at_least=1, at_most=_MOST)
    require_int(hosts_per_leaf=hosts_per_leaf, at_least=0)
    s, l, e, v = single_probabilities(  # noqa: E741
        spine_up=spine_up, link_up=link_up, leaf_up=leaf_up, host_up=host_up
    )
    core = sides_connected((leaves, 0), (0, spines), part(l), column=part(s))
    ends = series(_all(part(e), leaves), _all(part(v), leaves * hosts_per_leaf))
    return exactly(*series(core, ends), "closed_form")


def leaf_spine_pair(
    leaves: int,
    spines: int,
    spine_up: float = 1.0,
    link_up: float = 1.0,
    leaf_up: float = 1.0,
    host_up: float = 1.0,
    *,
    routing: Literal["any", "updown"] = "any",
    same_leaf: bool = False,
) -> Reliability:
    """Probability that two hosts of a leaf-spine fabric reach each other.

    Parameters
    ----------
    leaves, spines : int
        Switches of each tier, 1 to 256; two hosts of different leaves need two leaves.
    spine_up, link_up, leaf_up : float, optional
        Up-probability of a spine, of a cable between leaf and spine, and of a leaf.
    host_up : float, optional
        Up-probability of a host with its cable; at 1 the pair is that of the two leaves.
    routing : {"any", "updown"}, optional
        Whether a path may come down to a third leaf and go up again.
    same_leaf : bool, optional
        Whether the two hang at one leaf.

    Returns
    -------
    Reliability
        The leaves of the two hosts, and the hosts, have to be up.

    Notes
    -----
    Up-down, with l and s the up-probabilities of a cable and a spine: R = e^2 v^2 (1 - (1 - s
    l^2)^S). By any path, the sum over the components of the first leaf; the leaves between the two
    are up with probability e. O(L^2 S^2) operations.

    Examples
    --------
    >>> ups = {"spine_up": 0.9, "link_up": 0.8}
    >>> for routing in ("updown", "any"):
    ...     print(f"{leaf_spine_pair(4, 3, **ups, routing=routing).unreliability:.6f}")
    0.076225
    0.044399
    """
    require_int(leaves=leaves, at_least=1 if same_leaf is True else 2, at_most=_MOST)
    require_int(spines=spines, at_least=1, at_most=_MOST)
    require_choice(("any", "updown"), routing=routing)
    require_choice((True, False), same_leaf=same_leaf)
    s, l, e, v = single_probabilities(  # noqa: E741
        spine_up=spine_up, link_up=link_up, leaf_up=leaf_up, host_up=host_up
    )
    hosts = series(part(v), part(v), part(e))
    if same_leaf:
        return exactly(*hosts, "closed_form")
    if routing == "updown":
        middle = parallel(*[series(part(s), part(l), part(l))] * spines)
    else:
        middle = sides_connected((2, leaves - 2), (0, spines), part(l), part(e), part(s))
    return exactly(*series(hosts, part(e), middle), "closed_form")


def _all(chance: Chance, count: int) -> Chance:
    """Chance that ``count`` independent parts are all up, in logarithmic digits."""
    up, down = chance
    if down == 0 or count == 0:
        return 1.0, 0.0
    if up == 0:
        return 0.0, 1.0
    logarithm = count * float(np.log1p(-down) if down < 0.5 else np.log(up))
    return float(np.exp(logarithm)), float(-np.expm1(logarithm))
