"""Kinds of checkpoints: their cost, and which failures they survive, from where they lie.

Sizes are those of the whole job [bytes], bandwidths the sum over its nodes [bytes/s].
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from relparallel._checks import require_instance, require_int, require_real
from relparallel.hardware import Cluster
from relparallel.parallel import Placement
from relparallel.training._arguments import require_single, require_time
from relparallel.training.checkpoint_policies import CheckpointLevel
from relparallel.training.redundancy import domain_loss_probability, replica_holders


def remote(size: float, bandwidth: float, read_bandwidth: float | None = None) -> CheckpointLevel:
    """Return a checkpoint on storage outside the job; everything waits until it is written.

    Parameters
    ----------
    size : float
        Bytes of the checkpoint, all nodes together.
    bandwidth, read_bandwidth : float
        Rates of writing and of reading, all nodes together [bytes/s]; equal where the latter is
        omitted.

    Returns
    -------
    CheckpointLevel
        It survives everything.

    Examples
    --------
    >>> remote(size=2.3e12, bandwidth=57.5e9).cost
    40.0
    """
    read = _read(size, bandwidth, read_bandwidth)
    return CheckpointLevel(name="remote", cost=_transfer(size, bandwidth), restart=read)


def in_memory(
    size: float,
    bandwidth: float,
    cluster: Cluster,
    replicas: int = 2,
    placement: str = "group",
    stride: int = 1,
    read_bandwidth: float | None = None,
) -> CheckpointLevel:
    """Return a checkpoint in the memory of the nodes, with copies on other nodes.

    Parameters
    ----------
    size, bandwidth, read_bandwidth : float
        As in `remote`; the bandwidth is that of sending one copy.
    cluster : Cluster
        Nodes, switches and racks.
    replicas : int
        Nodes m that hold a shard, the owner counted; m - 1 copies are sent.
    placement, stride : str, int
        As in `replica_holders`.

    Returns
    -------
    CheckpointLevel
        It survives a node if m >= 2, and a switch or rack with the probability that no shard lies
        behind it alone; failures of processes and GPUs always.

    References
    ----------
    Wang et al., "Gemini", SOSP 2023. Random simultaneous failures:
    `checkpoint_recovery_probability`.

    Examples
    --------
    >>> racks = Cluster(nodes=64, nodes_per_switch=8, nodes_per_rack=8)
    >>> [in_memory(1e12, 1e12, racks, stride=s).survival("rack") for s in (1, 32)]
    [0.0, 1.0]
    """
    require_instance(Cluster, cluster=cluster)
    holders = replica_holders(cluster.nodes, replicas, placement, stride)
    read = _read(size, bandwidth, read_bandwidth)
    return CheckpointLevel(
        name="in memory",
        cost=(replicas - 1) * _transfer(size, bandwidth),
        restart=read,
        survives=_survival(holders, cluster, 1),
    )


def parity(
    size: float,
    bandwidth: float,
    cluster: Cluster,
    group: int | Placement,
    parities: int = 1,
    stride: int = 1,
    read_bandwidth: float | None = None,
) -> CheckpointLevel:
    """Return snapshots in the memory of the nodes, with parity inside groups of nodes.

    Parameters
    ----------
    size, bandwidth, read_bandwidth : float
        As in `remote`.
    cluster : Cluster
        Nodes, switches and racks.
    group : int or Placement
        Nodes g of a group, which divides the nodes; or the placement of the job, whose sharding
        groups these are: the nodes of the ranks that hold the same part of the model in all
        replicas.
    parities : int
        Nodes m of every group that may be lost.
    stride : int
        Distance between the nodes of a group, as in `replica_holders`; 1 with a placement.

    Returns
    -------
    CheckpointLevel
        It survives what takes at most m nodes of every group; m/(g - m) of the size is stored
        beside the data.

    References
    ----------
    Wang et al., "Reliable and Efficient In-Memory Fault Tolerance of Large Language Model
    Pretraining" (REFT), 2023.

    Examples
    --------
    >>> racks = Cluster(nodes=64, nodes_per_rack=8)
    >>> [parity(1e12, 1e12, racks, group=8, stride=s).survival("rack") for s in (1, 8)]
    [0.0, 1.0]
    """
    require_instance(Cluster, cluster=cluster)
    if isinstance(group, Placement):
        holders = _sharding_groups(group, cluster.gpus_per_node)
    elif cluster.nodes % require_int(group=group, at_least=2):
        raise ValueError(f"group must divide the {cluster.nodes} nodes, got {group}")
    else:
        holders = replica_holders(cluster.nodes, group, "group", stride)
    size_of = holders.shape[1]
    needed = size_of - require_int(parities=parities, at_least=1, at_most=size_of - 1)
    read = _read(size, bandwidth, read_bandwidth)
    return CheckpointLevel(
        name="parity",
        cost=size_of / needed * _transfer(size, bandwidth),
        restart=read,
        survives=_survival(holders, cluster, needed),
    )


def _sharding_groups(group: Placement, gpus_per_node: int) -> NDArray[np.int64]:
    """Nodes of every data group, which each lie on nodes of their own, [groups, nodes]."""
    holders = np.unique(group.data_groups // gpus_per_node, axis=0)
    if holders.shape[1] < 2 or (np.diff(np.sort(holders, axis=1)) == 0).any():
        raise ValueError(
            f"group must have replicas on at least two nodes, one of each, got {group!r:.200}"
        )
    return holders


def just_in_time(save: float, restart: float, survives: Mapping[str, float]) -> CheckpointLevel:
    """Return the checkpoint that healthy replicas write after a failure: nothing stops before.

    Parameters
    ----------
    save, restart : float
        Time in which the healthy replicas write; time to read it and go on [s].
    survives : mapping of str to float
        Probability that a healthy replica of every shard is left, by level of the failure.

    Returns
    -------
    CheckpointLevel
        A level of cost 0, to be used with the time of a step as the interval, above one that
        survives everything: a failure loses the step it strikes.

    References
    ----------
    Gupta et al., "Just-In-Time Checkpointing", EuroSys 2024.

    Examples
    --------
    >>> just_in_time(save=5.0, restart=55.0, survives={"rack": 0.0}).restart
    60.0
    """
    require_time(single=True, save=save, restart=restart)
    require_instance(Mapping, survives=survives)
    return CheckpointLevel(name="just in time", cost=0.0, restart=save + restart, survives=survives)


def _transfer(size: float, bandwidth: float, name: str = "bandwidth") -> float:
    """Seconds to move so many bytes."""
    rate: dict[str, Any] = {name: bandwidth}
    require_single(size=size, **rate)
    return float(
        require_real(size=size, above=0, at_most=1e18)
        / require_real(**rate, at_least=1, at_most=1e18)
    )


def _read(size: float, bandwidth: float, read_bandwidth: float | None) -> float:
    """Seconds to read so many bytes, as fast as they are written where nothing else is said."""
    one = (bandwidth, "bandwidth") if read_bandwidth is None else (read_bandwidth, "read_bandwidth")
    return _transfer(size, *one)


def _survival(holders: NDArray[np.int64], cluster: Cluster, needed: int) -> dict[str, float]:
    """Chance that a failure leaves enough of every row; GPUs and processes take no host memory."""
    sizes = {"node": 1, "switch": cluster.nodes_per_switch, "rack": cluster.nodes_per_rack}
    return {
        level: 1 - domain_loss_probability(holders, nodes, needed) for level, nodes in sizes.items()
    }
