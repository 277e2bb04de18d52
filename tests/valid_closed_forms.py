"""Valid calls of the closed forms of reliability; see `valid_calls`."""

from collections.abc import Callable

import relparallel as rp
from valid_workload import Arguments

TIERS = {"core_up": 0.9, "aggregation_up": 0.9}
CABLES = {"core_link_up": 0.9, "edge_link_up": 0.9}
LEAVES = {"leaves": 4, "spines": 3, "spine_up": 0.9, "link_up": 0.9, "leaf_up": 0.9, "host_up": 0.9}
SERVERS = {"server_up": 0.9, "switch_up": 0.9, "link_up": 0.9}

CALLS: dict[str, Callable[[], Arguments]] = {
    "reliability.accessible_servers": lambda: {
        "form": rp.topology.describe("fat_tree", k=4),
        **SERVERS,
    },
    "reliability.fat_tree_pair": lambda: {
        "k": 4,
        **TIERS,
        "edge_up": 0.9,
        **CABLES,
        "host_up": 0.9,
        "turn": "core",
    },
    "reliability.fat_tree_pods_connected": lambda: {
        "k": 4,
        **TIERS,
        "core_link_up": 0.9,
        "pods": 3,
    },
    "reliability.leaf_spine_leaves_connected": lambda: {**LEAVES, "hosts_per_leaf": 2},
    "reliability.leaf_spine_pair": lambda: {**LEAVES, "routing": "any", "same_leaf": False},
}
