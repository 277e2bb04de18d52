"""A log whose nodes fail in threes, and checkpoints to try on it."""

import numpy as np

from relparallel.training import Checkpointing, CheckpointLevel, FailureLog
from relparallel.units import DAY

PLAN = Checkpointing(
    levels=(CheckpointLevel(name="storage", cost=30.0, restart=300.0),), interval=1800.0
)


def in_threes(seed: int = 1, nodes: int = 60, days: float = 400.0) -> FailureLog:
    """Every event takes three nodes for a day."""
    rng = np.random.default_rng(seed)
    at = np.sort(rng.random(120)) * days * DAY
    node = np.concatenate([rng.choice(nodes, 3, replace=False) for _ in at])
    return FailureLog(
        node=[f"n{one}" for one in node],
        start=np.repeat(at, 3),
        end=np.repeat(at, 3) + DAY,
        cause=["node"] * node.size,
        population=nodes,
        begin=0.0,
        finish=days * DAY,
        overlaps="merge",
    )
