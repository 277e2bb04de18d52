"""Theorems on the reliability of networks by the frontier DP."""

import networkx as nx
from theorem_table import theorem

from relparallel import reliability


@theorem("THM-reliability-ring", system="network reliability")
def test_ring_is_redundant_by_one():
    """A ring of n links is connected while at most one is down: an (n-1)-out-of-n system."""
    # Twelve links, MTBF 999 h, MTTR 1 h.
    ring = reliability.evaluate(
        nx.cycle_graph(12), link_down=reliability.unavailability(999.0, 1.0), reductions=False
    )
    return ring.unreliability, float(
        reliability.unavailability(999.0, 1.0, needed=11, installed=12)
    )
