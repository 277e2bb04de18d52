"""Choosing: solvers that return an optimum with its proof."""

from relparallel.optimize.joint import Candidate, JointOptimum, Plan, joint_optimum, published_candidate
from relparallel.optimize.stage_split import best_stage_layers
from relparallel.optimize.strategy_search import StrategyOptimum, best_strategy

__all__ = [
    "Candidate",
    "JointOptimum",
    "Plan",
    "StrategyOptimum",
    "best_stage_layers",
    "best_strategy",
    "joint_optimum",
    "published_candidate",
]
