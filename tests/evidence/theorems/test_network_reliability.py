"""Theorems on the reliability of networks by the frontier DP."""

import networkx as nx
from theorem_table import theorem

from relparallel import reliability
from relparallel.reliability.frontier.decomposition import compiled
from relparallel.reliability.problem import read_problem


@theorem("THM-reliability-ring", system="network reliability")
def test_ring_is_redundant_by_one():
    """A ring of n links is connected while at most one is down: an (n-1)-out-of-n system."""
    # Twelve links, MTBF 999 h, MTTR 1 h.
    down = reliability.unavailability(999.0, 1.0)
    ring = read_problem(nx.cycle_graph(12), "all", 1.0, 1.0, down)
    ring = compiled(ring, reductions=False).evaluate(ring.link, ring.node)
    return ring.unreliability, float(
        reliability.unavailability(999.0, 1.0, needed=11, installed=12)
    )
