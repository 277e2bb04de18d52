"""Valid calls of repaired parts, common causes and performability; see `valid_calls`."""

from collections.abc import Callable
from functools import cache
from typing import Any

import networkx as nx
from scipy.sparse import csr_array
from valid_workload import Arguments, fields

import relparallel as rp

R = rp.reliability


@cache
def part() -> Any:
    return R.RepairedParts(name="spine", count=3, mtbf=1e6, mttr=1e4, needed=2)


CALLS: dict[str, Callable[[], Arguments]] = {
    "reliability.RepairedParts": lambda: fields(part()),
    "reliability.common_cause_unavailability": lambda: {"needed": 1, "causes": [0.01, 0.001, 0.0]},
    "reliability.leaf_spine_pair_bandwidth": lambda: {"spines": 4, "spine_up": 0.9, "link_up": 0.9},
    "reliability.multiple_greek_letters": lambda: {"down": 0.1, "installed": 4, "letters": [0.1, 0.5]},
    "reliability.performability": lambda: {
        "graph": nx.path_graph(3), "measure": "max_flow", "link_up": 0.9, "node_up": 0.9,
        "sources": [0], "targets": [2], "worst": 0.0, "best": 1.0, "symmetric": False, "gap": 0.1,
        "most_states": 10, "most_sets": 10,
    },
    "reliability.performability (by chances of failure)": lambda: {
        "graph": nx.path_graph(3), "link_down": 0.1, "node_down": 0.1,
    },
    "reliability.repair_chain": lambda: {"parts": [part()], "crews": 1},
    "reliability.stationary_distribution": lambda: {"generator": csr_array([[0.0, 1.0], [3.0, 0.0]])},
}  # fmt: skip
MEANINGFUL: dict[str, dict[str, set[str]]] = {
    "reliability.RepairedParts": {"name": {"text"}},
    "reliability.multiple_greek_letters": {"letters": {"empty"}},
    "reliability.performability": {"worst": {"negative"}},
}
