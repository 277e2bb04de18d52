"""What stands behind the parts of a cluster: replicas, and shards of the training state.

Parts with the same harm are counted together, so that 131,072 GPUs are a few kinds of part.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from relparallel.hardware import Cluster
from relparallel.parallel import Placement, Strategy


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
    replicas = groups_per_part(placement.replicas, width)
    lost = np.zeros(parts, dtype=np.bool_)
    lost[state_copies_lost(placement, width)] = True
    kinds, counts = np.unique(2 * replicas + lost, return_counts=True)
    return tuple(
        PartKind(parts=int(count), replicas=int(kind) // 2, state_lost=bool(kind % 2))
        for kind, count in zip(kinds, counts, strict=True)
    )


def groups_per_part(groups: NDArray[np.int64], width: int) -> NDArray[np.int64]:
    """Groups, one per row, with a GPU among those of each part, of so many consecutive GPUs."""
    label = np.empty(groups.size, dtype=np.int32)
    label[groups] = np.arange(len(groups), dtype=np.int32)[:, None]
    behind = np.sort(label.reshape(-1, width), axis=1)
    return np.asarray(1 + (behind[:, 1:] != behind[:, :-1]).sum(axis=1))


def state_copies_lost(placement: Placement, width: int) -> NDArray[np.int64]:
    """Parts, of so many consecutive GPUs, that stand before every copy of some shard of the state."""
    part = _copies(placement) // width
    return np.unique(part[:, 0][(part == part[:, :1]).all(axis=1)])


def behind(placement: Placement, gpus: Sequence[int], gpus_per_node: int) -> tuple[int, int, bool]:
    """Nodes and replicas with a rank among these GPUs, and whether all copies of a shard are."""
    hit = np.zeros(placement.strategy.gpus, dtype=np.bool_)
    hit[list(gpus)] = True
    nodes = int(hit.reshape(-1, gpus_per_node).any(axis=1).sum())
    lost = hit[_copies(placement)].all(axis=1).any()
    return nodes, int(hit[placement.replicas].any(axis=1).sum()), bool(lost)


def _copies(placement: Placement) -> NDArray[np.int64]:
    """GPUs with a copy of each shard of the state, [groups, copies, shards]."""
    strategy: Strategy = placement.strategy
    shards = strategy.shard_group if strategy.zero_stage else 1
    return placement.data_groups.reshape(-1, strategy.data // shards, shards)
