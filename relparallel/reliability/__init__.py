"""The probability that a network works: exact, sampled or in closed form, and always beside its complement.

Names load when they are first used: the closed forms need neither the compiler nor networkx.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from relparallel.reliability.accessible_servers import accessible_servers
    from relparallel.reliability.capacity_forms import (
        fat_tree_pair_bandwidth,
        fat_tree_pod_bandwidth,
        leaf_spine_pair_bandwidth,
    )
    from relparallel.reliability.certified import Bounds, bounds
    from relparallel.reliability.common_cause import common_cause_unavailability, multiple_greek_letters
    from relparallel.reliability.estimation import estimate, estimator_table
    from relparallel.reliability.exact import evaluate
    from relparallel.reliability.expected_delivery import Performability, performability
    from relparallel.reliability.fat_tree_forms import fat_tree_pair, fat_tree_pods_connected
    from relparallel.reliability.frequency import failure_frequency
    from relparallel.reliability.job_forms import job_connected
    from relparallel.reliability.leaf_spine_forms import leaf_spine_leaves_connected, leaf_spine_pair
    from relparallel.reliability.lumping import fat_tree_connected
    from relparallel.reliability.markov_availability import RepairChain, RepairedParts, repair_chain
    from relparallel.reliability.moments import UnreliabilityEstimate
    from relparallel.reliability.result import Reliability
    from relparallel.reliability.server_centric_forms import bcube_pair, dcell_pair, ring_pair
    from relparallel.reliability.signature import SurvivalSignature, polynomial, survival_signature
    from relparallel.reliability.stationary import mean_times, stationary_distribution
    from relparallel.reliability.steady_state import availability, unavailability
    from relparallel.reliability.survivability import mean_time_to_isolation, smallest_cuts

__all__ = [
    "Bounds",
    "Performability",
    "Reliability",
    "RepairChain",
    "RepairedParts",
    "SurvivalSignature",
    "UnreliabilityEstimate",
    "accessible_servers",
    "availability",
    "bcube_pair",
    "bounds",
    "common_cause_unavailability",
    "dcell_pair",
    "estimate",
    "estimator_table",
    "evaluate",
    "failure_frequency",
    "fat_tree_connected",
    "fat_tree_pair",
    "fat_tree_pair_bandwidth",
    "fat_tree_pod_bandwidth",
    "fat_tree_pods_connected",
    "job_connected",
    "leaf_spine_leaves_connected",
    "leaf_spine_pair",
    "leaf_spine_pair_bandwidth",
    "mean_time_to_isolation",
    "mean_times",
    "multiple_greek_letters",
    "performability",
    "polynomial",
    "repair_chain",
    "ring_pair",
    "smallest_cuts",
    "stationary_distribution",
    "survival_signature",
    "unavailability",
]

_MODULES = {
    "Bounds": "certified",
    "Performability": "expected_delivery",
    "Reliability": "result",
    "RepairChain": "markov_availability",
    "RepairedParts": "markov_availability",
    "SurvivalSignature": "signature",
    "UnreliabilityEstimate": "moments",
    "accessible_servers": "accessible_servers",
    "availability": "steady_state",
    "bcube_pair": "server_centric_forms",
    "bounds": "certified",
    "common_cause_unavailability": "common_cause",
    "dcell_pair": "server_centric_forms",
    "estimate": "estimation",
    "estimator_table": "estimation",
    "evaluate": "exact",
    "failure_frequency": "frequency",
    "fat_tree_connected": "lumping",
    "fat_tree_pair": "fat_tree_forms",
    "fat_tree_pair_bandwidth": "capacity_forms",
    "fat_tree_pod_bandwidth": "capacity_forms",
    "fat_tree_pods_connected": "fat_tree_forms",
    "job_connected": "job_forms",
    "leaf_spine_leaves_connected": "leaf_spine_forms",
    "leaf_spine_pair": "leaf_spine_forms",
    "leaf_spine_pair_bandwidth": "capacity_forms",
    "mean_time_to_isolation": "survivability",
    "mean_times": "stationary",
    "multiple_greek_letters": "common_cause",
    "performability": "expected_delivery",
    "polynomial": "signature",
    "repair_chain": "markov_availability",
    "ring_pair": "server_centric_forms",
    "smallest_cuts": "survivability",
    "stationary_distribution": "stationary",
    "survival_signature": "signature",
    "unavailability": "steady_state",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
