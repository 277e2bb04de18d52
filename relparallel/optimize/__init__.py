"""Choosing: solvers that return an optimum with its proof."""

from relparallel.optimize.joint import Candidate, JointOptimum, Plan, joint_optimum, published_candidate

__all__ = ["Candidate", "JointOptimum", "Plan", "joint_optimum", "published_candidate"]
