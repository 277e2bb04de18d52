"""What stands behind the parts of a cluster: replicas, and shards of the training state.

Parts with the same harm are counted together, so that 131,072 GPUs are a few kinds of part.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from relparallel.hardware import Cluster
from relparallel.parallel import Placement, Strategy

__all__ = ["PartKind", "part_kinds", "state_copies_lost"]


class PartKind(NamedTuple):
    """Parts of one level that do the same harm: how many, replicas behind each, whether state is lost."""

    parts: int
    replicas: int
    state_lost: bool


def part_kinds(placement: Placement, cluster: Cluster, level: str) -> tuple[PartKind, ...]:
    """Kinds of the parts of a level."""
    return _part_kinds(placement, cluster.gpus_per_part(level), cluster.parts(level))


@lru_cache(maxsize=256)
def _part_kinds(placement: Placement, width: int, parts: int) -> tuple[PartKind, ...]:
    """Kinds of so many parts with so many GPUs; sorting the replicas behind each, O(GPUs log GPUs)."""
    replica = np.empty(parts * width, dtype=np.int32)
    replica[placement.replicas] = np.arange(placement.strategy.data, dtype=np.int32)[:, None]
    behind = np.sort(replica.reshape(parts, width), axis=1)
    replicas = 1 + (behind[:, 1:] != behind[:, :-1]).sum(axis=1)
    lost = np.zeros(parts, dtype=np.bool_)
    lost[state_copies_lost(placement, width)] = True
    kinds, counts = np.unique(2 * replicas + lost, return_counts=True)
    return tuple(
        PartKind(parts=int(count), replicas=int(kind) // 2, state_lost=bool(kind % 2))
        for kind, count in zip(kinds, counts, strict=True)
    )


def state_copies_lost(placement: Placement, width: int) -> NDArray[np.int64]:
    """Parts, of so many consecutive GPUs, that stand before every copy of some shard of the state."""
    strategy: Strategy = placement.strategy
    shards = strategy.shard_group if strategy.zero_stage else 1
    part = placement.data_groups.reshape(-1, strategy.data // shards, shards) // width
    return np.unique(part[:, 0][(part == part[:, :1]).all(axis=1)])
