"""Valid calls of what chooses parts, links, routes, spares and fabrics; see `valid_calls`."""

from collections.abc import Callable
from typing import Any

import networkx as nx

from valid_workload import Arguments


def priced() -> "nx.Graph[Any]":
    graph = nx.complete_graph(4)
    nx.set_edge_attributes(graph, 2.0, "cost")
    return graph


CALLS: dict[str, Callable[[], Arguments]] = {
    "optimize.reliable_network": lambda: {
        "candidates": priced(),
        "unreliability": 0.2,
        "terminals": "all",
        "link_up": 0.9,
        "node_up": 1.0,
        "cost": "cost",
        "max_rounds": 5,
        "max_seconds": 9.0,
    },
}
