"""Choosing: solvers that return an optimum with its proof.

Where to begin, by what is bought:

- Redundant parts within budgets: `redundancy_allocation`; for many budgets at once `redundancy_allocations`.
- The cheapest links that are reliable enough: `reliable_network`; that survive k - 1 failures:
  `survivable_augmentation`.
- Two routes that no one event breaks: `disjoint_routes`.
- The cheapest fabric for so many hosts: `cheapest_fabric`.
- Spares: `spares`; when to replace or to look: `replacement_interval`, `inspection_interval`.
- Where to keep copies of checkpoints: `place_replicas`.
- How to split and run a training job: `best_strategy`, `best_stage_layers`, `joint`, `break_even_rate`; from
  measured speeds `published_candidate` and `joint_optimum`.

Most results carry the ``formulation`` that was solved, or ``explain()`` themselves, and have ``to_frame()``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from relparallel._lazy import offered

# Now, not when first used: the import of a module puts it in the place of its function of the same name.
from relparallel.optimize.disjoint_routes import RoutePair, disjoint_routes
from relparallel.optimize.redundancy_allocation import (
    RedundancyAllocation,
    redundancy_allocation,
    redundancy_allocations,
)
from relparallel.optimize.reliable_network import reliable_network
from relparallel.optimize.survivable_augmentation import survivable_augmentation

if TYPE_CHECKING:
    from relparallel.optimize._joint_words import in_degrees
    from relparallel.optimize.fabric_choice import FabricChoice, cheapest_fabric
    from relparallel.optimize.joint_break_even import BreakEven, break_even_rate
    from relparallel.optimize.joint_plans import JOINT_OBJECTIVES, JointPlan, joint
    from relparallel.optimize.maintenance import MaintenancePlan, inspection_interval, replacement_interval
    from relparallel.optimize.measured_joint import (
        Candidate,
        JointOptimum,
        Plan,
        joint_optimum,
        published_candidate,
    )
    from relparallel.optimize.network_design import NetworkDesign
    from relparallel.optimize.replica_placement import HallViolator, ReplicaPlacement, place_replicas
    from relparallel.optimize.spare_parts import SparesPlan, spares
    from relparallel.optimize.stage_split import best_stage_layers
    from relparallel.optimize.strategy_search import StrategyOptimum, best_strategy

__all__ = [
    "JOINT_OBJECTIVES",
    "BreakEven",
    "Candidate",
    "FabricChoice",
    "HallViolator",
    "JointOptimum",
    "JointPlan",
    "MaintenancePlan",
    "NetworkDesign",
    "Plan",
    "RedundancyAllocation",
    "ReplicaPlacement",
    "RoutePair",
    "SparesPlan",
    "StrategyOptimum",
    "best_stage_layers",
    "best_strategy",
    "break_even_rate",
    "cheapest_fabric",
    "disjoint_routes",
    "in_degrees",
    "inspection_interval",
    "joint",
    "joint_optimum",
    "place_replicas",
    "published_candidate",
    "redundancy_allocation",
    "redundancy_allocations",
    "reliable_network",
    "replacement_interval",
    "spares",
    "survivable_augmentation",
]

__getattr__, __dir__ = offered(
    __name__,
    {
        "_joint_words": ("in_degrees",),
        "fabric_choice": ("FabricChoice", "cheapest_fabric"),
        "joint_break_even": ("BreakEven", "break_even_rate"),
        "joint_plans": ("JOINT_OBJECTIVES", "JointPlan", "joint"),
        "maintenance": ("MaintenancePlan", "inspection_interval", "replacement_interval"),
        "measured_joint": ("Candidate", "JointOptimum", "Plan", "joint_optimum", "published_candidate"),
        "network_design": ("NetworkDesign",),
        "replica_placement": ("HallViolator", "ReplicaPlacement", "place_replicas"),
        "spare_parts": ("SparesPlan", "spares"),
        "stage_split": ("best_stage_layers",),
        "strategy_search": ("StrategyOptimum", "best_strategy"),
    },
)
