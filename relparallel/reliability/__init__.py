"""The probability that a network works: exact, sampled or in closed form, and always beside its complement.

Where to begin, by question:

- Are two, some or all nodes connected?  `evaluate`; it chooses the method and says why.
- Which part matters most?  ``evaluate(...).importance().to_frame()``.
- How many outages a year, how long, and what is an hour of repair worth?  `failure_frequency`.
- The same wiring with other parts?  `polynomial`, `survival_signature`.
- Parts that share a conduit or a feed?  ``evaluate(..., groups=[(members, chance), ...])``.
- A bracket for certain, or an interval to 1 %?  `bounds`, `estimate`; methods compared: `estimator_table`.
- A fat-tree, leaf-spine, BCube, DCell or ring by its numbers?  `fat_tree_pair`, `job_connected`,
  `fat_tree_pods_connected`, `fat_tree_connected`, `leaf_spine_pair`, `leaf_spine_leaves_connected`,
  `bcube_pair`, `dcell_pair`, `ring_pair`; the share of servers that is reached: `accessible_servers`.
- How much bandwidth do failures leave?  `performability`, and in closed form `fat_tree_pair_bandwidth`,
  `fat_tree_pod_bandwidth`, `leaf_spine_pair_bandwidth`.
- From MTBF and MTTR to a chance, k of n included?  `availability`, `unavailability`.
- Spares and repair crews, or a common cause?  `repair_chain` (any chain: `stationary_distribution`,
  `mean_times`), `common_cause_unavailability` with `multiple_greek_letters`.
- Until the first cut, without repair?  `smallest_cuts`, `mean_time_to_isolation`.

Names load when they are first used: the closed forms need neither the compiler nor networkx.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from relparallel._lazy import offered

if TYPE_CHECKING:
    from relparallel.reliability.bounding.certified import Bounds, bounds
    from relparallel.reliability.closed_forms.accessible_servers import accessible_servers
    from relparallel.reliability.closed_forms.capacity_forms import (
        fat_tree_pair_bandwidth,
        fat_tree_pod_bandwidth,
        leaf_spine_pair_bandwidth,
    )
    from relparallel.reliability.closed_forms.fat_tree_forms import fat_tree_pair, fat_tree_pods_connected
    from relparallel.reliability.closed_forms.job_forms import job_connected
    from relparallel.reliability.closed_forms.leaf_spine_forms import (
        leaf_spine_leaves_connected,
        leaf_spine_pair,
    )
    from relparallel.reliability.closed_forms.server_centric_forms import bcube_pair, dcell_pair, ring_pair
    from relparallel.reliability.closed_forms.survivability import mean_time_to_isolation, smallest_cuts
    from relparallel.reliability.exact import evaluate
    from relparallel.reliability.lumped.lumping import fat_tree_connected
    from relparallel.reliability.questions.signature import SurvivalSignature, polynomial, survival_signature
    from relparallel.reliability.repair.common_cause import (
        common_cause_unavailability,
        multiple_greek_letters,
    )
    from relparallel.reliability.repair.expected_delivery import Performability, performability
    from relparallel.reliability.repair.markov_availability import RepairChain, RepairedParts, repair_chain
    from relparallel.reliability.repair.stationary import mean_times, stationary_distribution
    from relparallel.reliability.repair.steady_state import availability, unavailability
    from relparallel.reliability.result import Reliability
    from relparallel.reliability.sampling.estimation import estimate, estimator_table
    from relparallel.reliability.sampling.moments import UnreliabilityEstimate
    from relparallel.reliability.sensitivity.frequency import RepairableNetwork, failure_frequency
    from relparallel.reliability.sensitivity.importance import Importance

__all__ = [
    "Bounds",
    "Importance",
    "Performability",
    "Reliability",
    "RepairChain",
    "RepairableNetwork",
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

__getattr__, __dir__ = offered(
    __name__,
    {
        "bounding.certified": ("Bounds", "bounds"),
        "closed_forms.accessible_servers": ("accessible_servers",),
        "closed_forms.capacity_forms": (
            "fat_tree_pair_bandwidth",
            "fat_tree_pod_bandwidth",
            "leaf_spine_pair_bandwidth",
        ),
        "closed_forms.fat_tree_forms": ("fat_tree_pair", "fat_tree_pods_connected"),
        "closed_forms.job_forms": ("job_connected",),
        "closed_forms.leaf_spine_forms": ("leaf_spine_leaves_connected", "leaf_spine_pair"),
        "closed_forms.server_centric_forms": ("bcube_pair", "dcell_pair", "ring_pair"),
        "closed_forms.survivability": ("mean_time_to_isolation", "smallest_cuts"),
        "exact": ("evaluate",),
        "lumped.lumping": ("fat_tree_connected",),
        "questions.signature": ("SurvivalSignature", "polynomial", "survival_signature"),
        "repair.common_cause": ("common_cause_unavailability", "multiple_greek_letters"),
        "repair.expected_delivery": ("Performability", "performability"),
        "repair.markov_availability": ("RepairChain", "RepairedParts", "repair_chain"),
        "repair.stationary": ("mean_times", "stationary_distribution"),
        "repair.steady_state": ("availability", "unavailability"),
        "result": ("Reliability",),
        "sampling.estimation": ("estimate", "estimator_table"),
        "sampling.moments": ("UnreliabilityEstimate",),
        "sensitivity.frequency": ("RepairableNetwork", "failure_frequency"),
        "sensitivity.importance": ("Importance",),
    },
)
