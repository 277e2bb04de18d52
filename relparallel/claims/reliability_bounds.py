"""Cuts, bounds and recognised forms where the answer is known: counts, and the frontier DP."""

import numpy as np

from relparallel import reliability, topology
from relparallel.claims.registry import theorem
from relparallel.reliability.bounding.cuts import find_cuts
from relparallel.reliability.problem import read_problem


@theorem("THM-reliability-torus-cuts", system="3D torus")
def cuts_of_the_torus() -> tuple[float, float]:
    """The 8x8x8 torus has 2048 minimal cuts of at most 10 links: one per node and one per link."""
    # The complete search, and the count of nodes and links.
    torus = topology.torus((8, 8, 8))
    problem = read_problem(torus, "nodes", 1.0, 1.0, 0.5)
    family = find_cuts(problem, 0.0, limit=10)
    return float(np.count_nonzero(family.sizes <= 10)), float(torus.num_nodes + len(torus.edges))


@theorem("THM-reliability-fat-tree-cuts", system="fat-tree")
def cuts_of_the_fat_tree() -> tuple[float, float]:
    """The switches of a k=16 fat-tree have 320 minimal cuts of at most 16 links: one per switch."""
    # The complete search, and 5 k**2 / 4.
    problem = read_problem(topology.fat_tree(16), "switches", 1.0, 1.0, 0.5)
    family = find_cuts(problem, 0.0, limit=16)
    return float(np.count_nonzero(family.sizes <= 16)), 5 * 16**2 / 4


@theorem("THM-reliability-anytime", system="Network reliability")
def anytime_is_exact() -> tuple[float, float]:
    """The anytime programme that drops nothing closes its bracket on the exact unreliability."""
    # Torus 5x5 with failing links and nodes.
    torus = topology.torus((5, 5))
    found = reliability.bounds(torus, (0, 7, 12), 0.9, 0.95, method="anytime", max_states=2**18, rtol=1e-15)
    return (found.lower + found.upper) / 2, reliability.evaluate(torus, (0, 7, 12), 0.9, 0.95).unreliability


@theorem("THM-reliability-recognised-form", system="fat-tree")
def form_is_exact() -> tuple[float, float]:
    """The closed form that a k=4 fat-tree is recognised for agrees with the frontier DP."""
    # Cores, aggregation switches and the cables between them fail.
    fabric = topology.fat_tree(4)
    link = np.where(fabric.tier[fabric.edges].max(axis=1) == 3, 0.97, 1.0)
    node = np.where(fabric.tier >= 2, 0.95, 1.0)
    form, exact = (
        reliability.evaluate(fabric, "all", link, node, method=method) for method in ("closed_form", "exact")
    )
    return form.unreliability, exact.unreliability
