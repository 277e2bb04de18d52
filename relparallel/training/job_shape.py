"""How a job lies on its nodes: the counts that decide what is left of it when nodes are missing."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from relparallel._checks import record, require_instance, require_int, whole
from relparallel.hardware import Cluster
from relparallel.parallel import Placement
from relparallel.training._arguments import MOST_NODES


@record
class JobShape:
    """Nodes of a job, and how its replicas and stages lie on them.

    The nodes fall into units of ``nodes_per_replica`` nodes. A unit holds one replica, or several
    whose ranks share these nodes; no replica has ranks in two units.

    Parameters
    ----------
    nodes, gpus_per_node : int
        Nodes N, a multiple of ``nodes_per_replica``, and the GPUs of each.
    replicas : int
        Model replicas D, a multiple of the number of units.
    stages, tensor : int
        Pipeline stages p and tensor-parallel degree t; the GPUs over D p t are the context-parallel
        degree.
    nodes_per_replica : int
        Nodes g that hold ranks of one replica.
    stages_per_node : int, optional
        Stages of one replica with ranks on the same node; p / g, at least 1, where omitted.

    Examples
    --------
    >>> JobShape(nodes=2048, replicas=128, stages=16, tensor=8, nodes_per_replica=16).units
    128
    >>> JobShape(nodes=48, replicas=8, stages=12, tensor=4, nodes_per_replica=12).replicas_per_unit
    2
    """

    nodes: int = whole(at_least=1, at_most=MOST_NODES)
    gpus_per_node: int = whole(at_least=1, at_most=10**4, default=8)
    replicas: int = whole(at_least=1, at_most=10**10)
    stages: int = whole(at_least=1, at_most=10**10)
    tensor: int = whole(at_least=1, at_most=10**10)
    nodes_per_replica: int = whole(at_least=1, at_most=MOST_NODES)
    stages_per_node: int | None = None

    def __post_init__(self) -> None:
        size = self.nodes_per_replica
        if self.nodes % size:
            raise ValueError(f"nodes_per_replica must divide nodes = {self.nodes}, got {size}")
        if self.replicas % self.units:
            raise ValueError(
                f"replicas must be a multiple of {self.units} units, got {self.replicas}"
            )
        if self.stages_per_node is not None:
            require_int(stages_per_node=self.stages_per_node, at_least=1, at_most=self.stages)
        gpus = self.nodes * self.gpus_per_node
        for name, degree in (("stages", self.replicas), ("tensor", self.replicas * self.stages)):
            if gpus % (degree * (own := getattr(self, name))):
                raise ValueError(f"{name} must divide {gpus / degree:g}, the GPUs left, got {own}")

    @classmethod
    def of(cls, placement: Placement, cluster: Cluster) -> JobShape:
        """Read the shape off a placement that fills a cluster; O(GPUs log GPUs)."""
        require_instance(Placement, placement=placement)
        require_instance(Cluster, cluster=cluster)
        strategy = placement.strategy
        strategy.for_gpus(cluster.gpus)
        unit = first_nodes(placement, cluster)
        stage = np.empty(strategy.gpus, dtype=np.int64)
        stage[placement.stages] = np.arange(strategy.pipeline)[:, None]
        on_node = np.sort(stage.reshape(cluster.nodes, -1), axis=1)
        return cls(
            nodes=cluster.nodes,
            gpus_per_node=cluster.gpus_per_node,
            replicas=strategy.data,
            stages=strategy.pipeline,
            tensor=strategy.tensor,
            nodes_per_replica=int(np.bincount(unit)[0]),
            stages_per_node=int(1 + (np.diff(on_node, axis=1) > 0).sum(axis=1).max()),
        )

    @property
    def units(self) -> int:
        """Units U that drop out as a whole, N / g."""
        return self.nodes // self.nodes_per_replica

    @property
    def replicas_per_unit(self) -> int:
        """Replicas that share the nodes of one unit."""
        return self.replicas // self.units

    @property
    def positions(self) -> tuple[int, int]:
        """Node groups of a unit that hold other stages than the others, and nodes in a group."""
        held = self.stages_per_node or max(1, self.stages // self.nodes_per_replica)
        if self.stages % held or self.nodes_per_replica * held % self.stages:
            raise ValueError(
                f"shape must spread {self.stages} stages evenly over {self.nodes_per_replica} "
                "nodes, got "
                f"{held} stages on a node"
            )
        return self.stages // held, self.nodes_per_replica * held // self.stages


def first_nodes(placement: Placement, cluster: Cluster) -> NDArray[np.int64]:
    """First node of the replica that each node belongs to."""
    # Each replica labels its nodes with its first one; labels agree, and it fills the nodes of its
    # label.
    held = np.sort(placement.replicas // cluster.gpus_per_node, axis=1)
    unit = np.empty(cluster.nodes, dtype=np.int64)
    unit[held] = held[:, :1]
    touched = 1 + (np.diff(held, axis=1) > 0).sum(axis=1)
    if (unit[held] != held[:, :1]).any() or (np.bincount(unit)[held[:, 0]] != touched).any():
        raise ValueError(
            "placement must let replicas share all of their nodes or none, got "
            f"{placement.strategy.data} replicas of {placement.strategy.model_parallel} ranks on "
            f"nodes of {cluster.gpus_per_node} GPUs, order {placement.order}"
        )
    return unit
