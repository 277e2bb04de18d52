"""Importance where a fabric is too wide for the programme: all parts of a class matter alike.

If exchanging parts maps any of a class to any other, each has the class's share of the derivative of the
lumped sum (`relparallel.reliability.lumped.lumping`). That sum is made of integers of any length, so that the
quotient of a difference over a step of 2^-80 has all the digits of a float: what the step leaves out is of
its own relative order, and nothing is lost when two sums of 200 more bits are subtracted.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from relparallel.reliability.lumped.lumping import Fabric, connected, floors
from relparallel.reliability.lumped.pod_recognition import recognise
from relparallel.reliability.lumped.pod_sums import exact_up
from relparallel.reliability.problem import Problem
from relparallel.topology import Topology

__all__ = ["slopes_by_class"]

_STEP: Final = Fraction(1, 2**80)
_MARGIN: Final = Fraction(1, 2**200)

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
    One lumped sum of 200 more bits and one more for each class of parts that fail: a fat-tree takes 0.04 s
    with k = 4, two minutes with k = 8.

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
    smallest = min(tree, cut) * _MARGIN
    joined = _reliability(fabric, smallest)
    slopes = np.zeros(len(fails))
    for name, rows in classes.items():
        if fails[rows].any():
            change = joined - _reliability(_worse(fabric, name), smallest)
            slopes[rows] = own * float(change / _STEP) / len(rows)
    up = np.concatenate([problem.link[:, 0], problem.node[:, 0]])[alone]
    before, after = (np.concatenate([[1.0], np.cumprod(ups)])[:-1] for ups in (up, up[::-1]))
    slopes[alone] = float(joined) * before * after[::-1]
    failed = float(1 - joined) + float(joined) * lost
    return failed, np.where(fails, slopes, 0.0)


def _reliability(fabric: Fabric, smallest: Fraction) -> Fraction:
    """Chance that the terminals are joined."""
    total, scale, _ = connected(fabric, smallest)
    return Fraction(total, scale.one)


def _worse(fabric: Fabric, name: str) -> Fabric:
    """The fabric with a slightly smaller up-probability of one class."""
    up = exact_up(getattr(fabric, name)) - _STEP
    changed: dict[str, Any] = {name: (up, 1 - up)}
    return replace(fabric, **changed)


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
