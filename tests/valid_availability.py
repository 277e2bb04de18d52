"""Valid calls of repaired parts, common causes and performability; see `valid_calls`."""

from collections.abc import Callable

import networkx as nx
from scipy.sparse import csr_array

import relparallel as rp
from valid_workload import Arguments

R = rp.reliability


CALLS: dict[str, Callable[[], Arguments]] = {
    "reliability.failure_frequency": lambda: {
        "graph": nx.cycle_graph(4),
        "terminals": (0, 2),
        "link_mtbf": 1e6,
        "link_mttr": 1e3,
        "node_mtbf": 1e7,
        "node_mttr": 1e3,
    },
    "reliability.stationary_distribution": lambda: {
        "generator": csr_array([[0.0, 1.0], [3.0, 0.0]])
    },
}
MEANINGFUL: dict[str, dict[str, set[str]]] = {
    # what never fails
    "reliability.failure_frequency": {"link_mtbf": {"infinite"}, "node_mtbf": {"infinite"}},
}
