"""How long a fabric without repair lives until its first cut."""

import math
from typing import Literal

from relparallel._checks import require_choice
from relparallel.topology.description import Description


def mean_time_to_isolation(mean_life: float, cut_size: int, cuts: int) -> float:
    """Mean time [s] until one of c cuts of r parts is complete, for parts that are not repaired.

    Their mean life is E. Each cut is complete at time t with probability near (t/E)^r, and cuts are
    rare: the time survives t with probability exp(-c (t/E)^r), and its mean is (E/r) c^(-1/r)
    Gamma(1/r) (Burtin and Pittel 1972), asymptotically exact for many cuts of which few share
    parts. Cuts that share parts come together, so the first one comes later: the first row and the
    first column of a BCube_1 of n-port switches are both down after 3E/(2n), not 0.89 E/n.

    >>> round(mean_time_to_isolation(mean_life=1.0, cut_size=1, cuts=1024) * 1024, 12)
    1.0
    """
    return float(mean_life / cut_size * cuts ** (-1.0 / cut_size) * math.gamma(1.0 / cut_size))


def smallest_cuts(form: Description, parts: Literal["links", "switches"]) -> tuple[int, int]:
    """Fewest "links" or "switches" whose loss cuts servers off, and the number of such sets.

    Of a fat_tree with k > 2, a leaf_spine of several leaves and spines, a bcube with n > 2, or a
    dcell with n > 2 and k <= 1. A host of a tree hangs on one cable and one switch. The k + 1
    cables, or switches, of a BCube_k server are a cut, one for each server. In a DCell_1 two
    partners are cut off together by the cables to their two switches, or by these switches: 3/2
    cuts of two cables, but only 1/2 of two switches, for each server.

    >>> from relparallel.topology import describe
    >>> smallest_cuts(describe("dcell", n=4, k=1), "links")
    (2, 30)
    """
    require_choice(("links", "switches"), parts=parts)
    hosts, design, given = next(iter(form.nodes.values())), form.design, form.parameters
    if design == "fat_tree" and given["k"] > 2:
        return 1, hosts if parts == "links" else form.nodes["edge"]
    if design == "leaf_spine" and min(given["leaves"], given["spines"]) > 1:
        return 1, hosts if parts == "links" else form.nodes["leaf"]
    if design == "bcube" and given["n"] > 2:
        return given["k"] + 1, hosts if parts == "links" or given["k"] else 1
    if design == "dcell" and given["n"] > 2 and given["k"] <= 1:
        if given["k"] == 0:
            return 1, hosts if parts == "links" else 1
        return 2, hosts * 3 // 2 if parts == "links" else hosts // 2
    known = (
        "a fat_tree with k > 2, a leaf_spine of several leaves and spines, a bcube with n > 2, or "
        "a dcell "
        "with n > 2 and k <= 1"
    )
    raise ValueError(f"form must be {known}, got {design} {dict(given)}")
