"""How long a fabric without repair lives until its first cut."""

import math
from typing import Literal

import numpy as np

from relparallel._checks import require_choice, require_instance, require_int, require_real
from relparallel.topology.description import Description


def mean_time_to_isolation(mean_life: float, cut_size: int, cuts: int) -> float:
    """Mean time until a cut is complete, for parts that fail at a constant rate and are not repaired.

    Parameters
    ----------
    mean_life : float
        Mean life E of one part [s].
    cut_size : int
        Parts r of a smallest cut.
    cuts : int
        Number c of smallest cuts.

    Returns
    -------
    float
        Seconds, asymptotically exact for many cuts of which few share parts.

    Notes
    -----
    Each cut is complete at time t with probability near (t/E)^r, and cuts are rare: the time survives t with
    probability exp(-c (t/E)^r), and its mean is (E/r) c^(-1/r) Gamma(1/r) (Burtin and Pittel 1972).
    Cuts that share parts come together, so the first one comes later: the first row and the first column of a
    BCube_1 of n-port switches are both down after 3E/(2n), not 0.89 E/n.

    Examples
    --------
    >>> round(mean_time_to_isolation(mean_life=1.0, cut_size=1, cuts=1024) * 1024, 12)
    1.0
    """
    if isinstance(require_real(mean_life=mean_life, above=0), np.ndarray):
        raise TypeError(f"mean_life must be one number, got {mean_life!r}")
    require_int(cut_size=cut_size, cuts=cuts, at_least=1)
    return float(mean_life / cut_size * cuts ** (-1.0 / cut_size) * math.gamma(1.0 / cut_size))


def smallest_cuts(form: Description, parts: Literal["links", "switches"]) -> tuple[int, int]:
    """Fewest parts whose loss cuts servers off, and the number of such sets.

    Parameters
    ----------
    form : Description
        A fat_tree with k > 2, a leaf_spine of several leaves and spines, a bcube with n > 2, or a dcell with
        n > 2 and k <= 1.
    parts : {"links", "switches"}
        What fails; all else works.

    Returns
    -------
    tuple of int
        Cut size r and number of cuts c, for `mean_time_to_isolation`.

    Notes
    -----
    A host of a tree hangs on one cable and one switch. The k + 1 cables, or switches, of a BCube_k server are
    a cut, one for each server. In a DCell_1 two partners are cut off together by the cables to their two
    switches, or by these switches: 3/2 cuts of two cables, but only 1/2 of two switches, for each server.

    Examples
    --------
    >>> from relparallel.topology import describe
    >>> smallest_cuts(describe("dcell", n=4, k=1), "links")
    (2, 30)
    """
    require_instance(Description, form=form)
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
        "a fat_tree with k > 2, a leaf_spine of several leaves and spines, a bcube with n > 2, or a dcell "
        "with n > 2 and k <= 1"
    )
    raise ValueError(f"form must be {known}, got {design} {dict(given)}")
