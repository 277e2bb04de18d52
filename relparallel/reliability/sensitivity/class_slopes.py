"""Importance where a fabric is too wide for the programme: all parts of a class matter alike.

If exchanging parts maps any of a class to any other, each has the class's share of the derivative of the
lumped sum, which `relparallel.reliability.lumped.pod_slopes` finds together with the sum.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from relparallel.reliability.lumped.lumping import floors
from relparallel.reliability.lumped.pod_recognition import recognise
from relparallel.reliability.lumped.pod_slopes import connected_slopes
from relparallel.reliability.problem import Problem
from relparallel.topology import Topology

__all__ = ["slopes_by_class"]

FloatArray = NDArray[np.float64]


def slopes_by_class(topology: Topology, problem: Problem) -> tuple[float, FloatArray] | None:
    """Unreliability, and by how much it grows when a link or a node is down.

    Parameters
    ----------
    topology : Topology
        Its tiers.
    problem : Problem
        The same network with its chances and terminals.

    Returns
    -------
    (float, float64[m + n]) or None
        0 for parts that never fail. None where the network is no fabric of alike parts, or its pods hold
        different numbers of terminals or edge switches without one.

    Notes
    -----
    All classes together take 1.5 to 4 times as long as the lumped sum alone (`pod_slopes`).

    Examples
    --------
    >>> from relparallel.reliability.problem import read_problem
    >>> from relparallel.topology import leaf_spine
    >>> network = leaf_spine(leaves=3, spines=2, hosts_per_leaf=1)
    >>> found, slopes = slopes_by_class(network, read_problem(network, "all", 0.9, 1.0))
    >>> print(f"{found:.4f} {sorted({round(slope, 4) for slope in slopes.tolist()})}")
    0.2958 [0.0, 0.0856, 0.7824]
    """
    found = recognise(topology, problem)
    if found is None or len(found[0].pods) > 1 or found[0].pods[0][2] > 0:
        return None
    fabric, (own, lost) = found
    tree, cut = floors(fabric)
    if tree == 0 or cut == 0:
        return None
    classes = _rows(topology, problem)
    alone = classes.pop("alone")
    fails = np.concatenate([problem.link[:, 1], problem.node[:, 1]]) > 0
    joined, by_class = connected_slopes(fabric)
    slopes = np.zeros(len(fails))
    for name, rows in classes.items():
        if len(rows):
            slopes[rows] = own * float(by_class[name]) / len(rows)
    up = np.concatenate([problem.link[:, 0], problem.node[:, 0]])[alone]
    before, after = (np.concatenate([[1.0], np.cumprod(ups)])[:-1] for ups in (up, up[::-1]))
    slopes[alone] = float(joined) * before * after[::-1]
    failed = float(1 - joined) + float(joined) * lost
    return failed, np.where(fails, slopes, 0.0)


def _rows(topology: Topology, problem: Problem) -> dict[str, NDArray[np.int64]]:
    """Rows of the parts of every class, links first and then nodes; "alone": what must work in any case."""
    m, edges = len(problem.edges), problem.edges
    relays = problem.transit[edges].all(axis=1)
    core = np.zeros(len(problem.node), dtype=bool)
    core[edges[relays]] = topology.tier[edges[relays]] == topology.tier[edges[relays]].max()
    upper = relays & core[edges].any(axis=1)
    middle = np.zeros_like(core)
    middle[edges[upper]] = True
    middle &= ~core
    lower = np.zeros_like(core)
    lower[edges[relays]] = True
    lower[problem.terminals] = True
    found = {
        "core_link": upper,
        "edge_link": relays & ~upper,
        "core": core,
        "aggregation": middle,
    }
    rows = {name: np.flatnonzero(parts) for name, parts in found.items()}
    rows["alone"] = np.concatenate([np.flatnonzero(~relays), m + np.flatnonzero(lower & ~core & ~middle)])
    return rows | {name: m + rows[name] for name in ("core", "aggregation")}
