"""Lumping by symmetry against the frontier DP and the closed forms, which know nothing of each other."""

import numpy as np

from relparallel import reliability, topology
from relparallel.claims.registry import theorem
from relparallel.reliability.lumped.lumping import lumped
from relparallel.reliability.problem import read_problem
from relparallel.reliability.sensitivity.class_importance import class_importance
from relparallel.reliability.sensitivity.gradient import importance


@theorem("THM-reliability-lumping", system="fat-tree")
def lumping_equals_programme() -> tuple[float, float]:
    """Lumped by the symmetry of its cores, the k=4 fat-tree with all parts failing has the same U."""
    # Switches of each tier, links of each kind.
    fabric = topology.fat_tree(4)
    node = np.array([1.0, 0.98, 0.9, 0.95])[fabric.tier]
    link = np.array([1.0, 1.0, 0.93, 0.97])[fabric.tier[fabric.edges].max(axis=1)]
    found = lumped(fabric, read_problem(fabric, "all", link, node))
    exact = reliability.evaluate(fabric, "all", link, node, method="exact")
    return found.unreliability, exact.unreliability  # type: ignore[union-attr]


@theorem("THM-reliability-lumping-switches", system="fat-tree")
def lumping_equals_closed_form() -> tuple[float, float]:
    """Where only switches fail, lumping the k=6 fat-tree and the closed form agree on U."""
    # Cores and aggregation switches.
    closed = reliability.fat_tree_pods_connected(6, 0.9, 0.85)
    fabric = topology.fat_tree(6)
    problem = read_problem(fabric, "all", 1.0, np.array([1.0, 1.0, 0.85, 0.9])[fabric.tier])
    return lumped(fabric, problem).unreliability, closed.unreliability  # type: ignore[union-attr]


@theorem("THM-importance-classes", system="Importance measures")
def classes_equal_the_sweep_back() -> tuple[float, float]:
    """A class's share of the derivative of the lumped sum is Birnbaum's measure of each part."""
    # One core of the k=4 fat-tree with all parts failing: by classes, and by the sweep back.
    fabric = topology.fat_tree(4)
    problem = read_problem(fabric, "all", 0.97, np.array([0.999, 0.98, 0.9, 0.95])[fabric.tier])
    core = len(problem.edges) + int(np.flatnonzero(fabric.is_kind("core"))[0])
    swept = importance(problem, fabric)
    (row,) = np.flatnonzero(swept.part == core)
    return float(class_importance(fabric, problem)[1][core]), float(swept.birnbaum[row])
