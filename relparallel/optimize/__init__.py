"""Choosing: solvers that return an optimum with its proof."""

from relparallel.optimize._joint_words import in_degrees
from relparallel.optimize.joint import JOINT_OBJECTIVES, JointPlan, joint
from relparallel.optimize.joint_break_even import BreakEven, break_even_rate
from relparallel.optimize.measured_joint import (
    Candidate,
    JointOptimum,
    Plan,
    joint_optimum,
    published_candidate,
)
from relparallel.optimize.replica_placement import HallViolator, ReplicaPlacement, place_replicas
from relparallel.optimize.stage_split import best_stage_layers
from relparallel.optimize.strategy_search import StrategyOptimum, best_strategy

__all__ = [
    "JOINT_OBJECTIVES",
    "BreakEven",
    "Candidate",
    "HallViolator",
    "JointOptimum",
    "JointPlan",
    "Plan",
    "ReplicaPlacement",
    "StrategyOptimum",
    "best_stage_layers",
    "best_strategy",
    "break_even_rate",
    "in_degrees",
    "joint",
    "joint_optimum",
    "place_replicas",
    "published_candidate",
]
