"""Valid calls of what chooses parts, links, routes, spares and fabrics; see `valid_calls`."""

from collections.abc import Callable
from typing import Any

import networkx as nx
import pandas as pd
from valid_workload import Arguments

import relparallel as rp


def parts() -> pd.DataFrame:
    return rp.published.component_table("fyffe").query("subsystem <= 2").assign(power=1.0)


def priced() -> "nx.Graph[Any]":
    graph = nx.complete_graph(4)
    nx.set_edge_attributes(graph, 2.0, "cost")
    return graph


def fabrics() -> dict[str, Any]:
    return {"small": rp.topology.leaf_spine(2, 1, 2)}


CALLS: dict[str, Callable[[], Arguments]] = {
    "optimize.cheapest_fabric": lambda: {
        "catalogue": fabrics(), "hosts": 4, "unavailability": 0.01, "requirement": "job", "prices": None,
        "mtbf": {"switch": 1e9}, "mttr": 3600.0,
    },
    "optimize.disjoint_routes": lambda: {
        "network": nx.cycle_graph(4), "source": 0, "target": 2, "groups": {"duct": [(0, 1), (0, 3)]},
        "cost": 1.0, "risk": {"duct": 0.5}, "link_risk": 1.0,
    },
    "optimize.inspection_interval": lambda: {"rate": 1e-7, "inspection": 50.0, "downtime": 1.0},
    "optimize.redundancy_allocation": lambda: {
        "components": parts(), "cost_limit": 8.0, "weight_limit": 30.0, "limits": {"power": 7.0}, "needed": 1,
        "most": 3, "method": "table",
    },
    "optimize.redundancy_allocations": lambda: {
        "components": parts(), "cost_limit": [8.0, 9.0], "weight_limit": [30.0, 40.0],
        "limits": {"power": 7.0},
        "needed": [1, 2], "most": 3, "method": "milp",
    },
    "optimize.reliable_network": lambda: {
        "candidates": priced(), "unreliability": 0.2, "terminals": "all", "link_up": 0.9, "node_up": 1.0,
        "cost": "cost", "max_rounds": 5, "max_seconds": 9.0,
    },
    "optimize.replacement_interval": lambda: {
        "shape": 2.0, "scale": 1e7, "planned": 1.0, "failure": 10.0, "policy": "block",
    },
    "optimize.spares": lambda: {
        "count": 10, "mtbf": 1e6, "lead": 1e4, "availability": 0.9, "price": 1.0, "kind": "shelf",
    },
    "optimize.survivable_augmentation": lambda: {
        "network": nx.path_graph(4), "candidates": priced(), "connectivity": 2, "kind": "edge",
        "cost": "cost",
    },
}  # fmt: skip
