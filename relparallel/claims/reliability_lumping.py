"""Lumping by symmetry against the exact programme and the closed forms, which know nothing of each other."""

from __future__ import annotations

import numpy as np

from relparallel import topology
from relparallel.claims.registry import theorem
from relparallel.reliability import evaluate, fat_tree_connected, fat_tree_pods_connected


@theorem(
    "THM-reliability-lumping",
    system="fat-tree",
    statement="Lumped by the symmetry of its cores, the k=4 fat-tree with all parts failing has the same U.",
)
def lumping_equals_programme() -> tuple[float, float]:
    """Switches of each tier, links of each kind."""
    fabric = topology.fat_tree(4)
    node = np.array([1.0, 0.98, 0.9, 0.95])[fabric.tier]
    link = np.array([1.0, 1.0, 0.93, 0.97])[fabric.tier[fabric.edges].max(axis=1)]
    lumped = fat_tree_connected(4, 0.95, 0.9, 0.98, 0.97, 0.93)
    return lumped.unreliability, evaluate(fabric, "all", link, node, method="exact").unreliability


@theorem(
    "THM-reliability-lumping-switches",
    system="fat-tree",
    statement="Where only switches fail, lumping the k=6 fat-tree and the epidemic closed form agree on U.",
)
def lumping_equals_closed_form() -> tuple[float, float]:
    """Cores and aggregation switches."""
    closed = fat_tree_pods_connected(6, 0.9, 0.85)
    return fat_tree_connected(6, core_up=0.9, aggregation_up=0.85).unreliability, closed.unreliability
