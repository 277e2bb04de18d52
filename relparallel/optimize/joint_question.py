"""The question that `joint` is asked: its arguments, checked and compiled once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, NamedTuple

import numpy as np

from relparallel._checks import require_choice, require_instance, require_int, require_real
from relparallel.hardware import Cluster
from relparallel.optimize.joint_network import part_rates
from relparallel.parallel import Placement, Strategy
from relparallel.parallel.grid import AXES
from relparallel.parallel.quantities import WORDS
from relparallel.topology import Topology
from relparallel.training import (
    Checkpointing,
    CheckpointLevel,
    FailureLog,
    Recovery,
    checkpoint_interval,
    checkpoint_time,
    published_network_rates,
)
from relparallel.training._arguments import require_rate, require_time
from relparallel.training.failure_rates import NONE_SEEN
from relparallel.training.failure_sources import SharedEvents
from relparallel.training.network_parts import parts_of
from relparallel.training.recovery_policies import POLICIES
from relparallel.units import DAY, GB
from relparallel.workload import Transformer

# Storage of Llama 3's run, row L3-041: 2 TB/s for 16,384 GPUs. BLOOM's 384 GPUs had 57.5 GB/s
# (BLM-002), 150 MB/s each where these have 122.
STORAGE: Final = 2000 * GB / 16384


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Question:
    """What a joint optimum is asked for, apart from the machines to choose from."""

    workload: Transformer
    batch: int  # sequences of a step
    rates: Any  # what fails, as of `failure_model`
    source: SharedEvents | None  # how failures of nodes come; independent without
    objective: str
    limits: Mapping[str, Any]
    options: Mapping[str, Any]  # of `evaluate`
    measured: Mapping[Placement, float]  # tokens/s; empty where speeds are computed
    orders: tuple[tuple[str, ...], ...]
    write_off: float | None  # s
    recoveries: Mapping[str, Recovery]
    checkpoints: Mapping[str, Checkpointing]
    horizon: float  # s
    apart: Mapping[str, int] = field(default_factory=dict)  # axes, and what their values go up to
    # a repair was given, which takes the place of those that a log has seen
    repaired: bool = False

    @property
    def tokens(self) -> int:
        """Of a step."""
        return self.batch * self.workload.sequence


class Fabric(NamedTuple):
    """A network by name, with the failures of its parts; or a cluster's two levels of links."""

    name: str = ""
    network: Topology | None = None
    rates: Mapping[str, float] | None = None


class Machine(NamedTuple):
    """A cluster with its network, and what all its GPUs cost per second."""

    cluster: Cluster
    fabric: Fabric
    price: float


def machines_of(
    clusters: tuple[Cluster, ...], network: Any, network_rates: Any, price: Any, objective: str
) -> list[Machine]:
    """Clusters to choose from, each with its network and price."""
    wired = _networks_of(network, clusters, _network_rates_of(network_rates))
    prices = _prices_of(price, tuple(one for one, _ in wired), objective)
    return [Machine(*one, cost) for one, cost in zip(wired, prices, strict=True)]


def clusters_of(cluster: Any) -> tuple[Cluster, ...]:
    """One or several."""
    several = (cluster,) if isinstance(cluster, Cluster) else cluster
    if not isinstance(several, (tuple, list)) or not several:
        raise TypeError(f"cluster must be a Cluster or several of them, got {cluster!r:.80}")
    for one in several:
        require_instance(Cluster, cluster=one)
    return tuple(several)


def _networks_of(
    network: Any, clusters: tuple[Cluster, ...], rates: Mapping[str, float]
) -> list[tuple[Cluster, Fabric]]:
    """Each cluster with its network."""
    if network is None:
        return [(one, Fabric()) for one in clusters]
    named = _named(network)
    machines = clusters * len(named) if len(clusters) == 1 else clusters
    if len(machines) != len(named):
        raise ValueError(
            f"network must be one for each of {len(clusters)} clusters, got {len(named)}"
        )
    found = []
    for machine, (name, one) in zip(machines, named.items(), strict=True):
        if one is None:
            found.append((machine, Fabric(name=name)))
            continue
        if one.num_hosts != machine.gpus:
            raise ValueError(
                f"network must have a host for each of {machine.gpus} GPUs, got {name}: {one!r}"
            )
        found.append((machine, Fabric(name=name, network=one, rates=part_rates(one, rates))))
    unknown = set(rates) - {"cable", "switch"}
    unknown -= {part.name for one in named.values() if one is not None for part in parts_of(one)}
    if unknown:
        raise ValueError(f"network_rates must name parts of the networks, got {sorted(unknown)}")
    return found


def _named(network: Any) -> dict[str, Topology | None]:
    """Networks by name, by design and place where they have none."""
    if isinstance(network, Topology):
        network = (network,)
    if not isinstance(network, (Mapping, tuple, list)) or not network:
        raise TypeError(f"network must be a Topology or several of them, got {network!r:.80}")
    several = network.values() if isinstance(network, Mapping) else network
    for one in several:
        require_instance((Topology, type(None)), network=one)
    if isinstance(network, Mapping):
        return {require_instance(str, network=name): one for name, one in network.items()}
    names = ["links of the cluster" if one is None else one.meta.name for one in network]
    alone = [names.count(name) == 1 for name in names]
    return {
        name if single else f"{name} {place}": one
        for place, (name, single, one) in enumerate(zip(names, alone, network, strict=True))
    }


def _network_rates_of(given: Any) -> dict[str, float]:
    """Failures per part and second, by name or kind."""
    if given is None:
        return published_network_rates()
    for name, rate in require_instance(Mapping, network_rates=given).items():
        require_instance(str, network_rates=name)
        require_rate(network_rates=rate)
    return {name: float(rate) for name, rate in given.items()}


def _prices_of(price: Any, clusters: tuple[Cluster, ...], objective: str) -> list[float]:
    """Of all GPUs of each cluster per second; not a number where none was given."""
    if price is None and objective != "cost":
        return [float("nan")] * len(clusters)
    given = np.atleast_1d(require_real(price=price, above=0, at_most=1e12))
    if given.ndim > 1 or given.size not in (1, len(clusters)):
        raise ValueError(
            f"price must be one number or one for each of {len(clusters)} clusters, got {price!r}"
        )
    each = np.broadcast_to(given, len(clusters)).tolist()
    return [one * cluster.paid for one, cluster in zip(each, clusters, strict=True)]


def recoveries_of(policies: Any, **times: float | None) -> dict[str, Recovery]:
    """By name."""
    given: dict[str, Any] = {name: value for name, value in times.items() if value is not None}
    require_time(**given)
    if isinstance(policies, str) or not isinstance(policies, Sequence) or not policies:
        raise TypeError(f"policies must be a sequence of at least one policy, got {policies!r}")
    for name, value in given.items():
        if all(isinstance(one, Recovery) for one in policies):
            raise ValueError(f"{name} must be left out with policies in full, got {value!r}")
    usual: dict[str, Any] = {"repair": DAY, "restart": 300.0, "pause": 30.0}
    found = {}
    for one in policies:
        if not isinstance(one, Recovery):
            one = Recovery(require_choice(tuple(POLICIES), policies=one), **(usual | given))
        if one.policy in found:
            raise ValueError(f"policies must name each policy once, got {policies!r}")
        found[one.policy] = one
    return found


def checkpoints_of(
    checkpoints: Any, storage_bandwidth: float | None, workload: Transformer, gpus: int
) -> dict[str, Checkpointing]:
    """By name."""
    if checkpoints is None:
        rate = STORAGE * gpus if storage_bandwidth is None else storage_bandwidth
        require_real(storage_bandwidth=rate, at_least=1, at_most=1e18)
        save = float(checkpoint_time(workload.parameters, rate))
        storage = CheckpointLevel(name="storage", cost=save, restart=save)
        return {"storage": Checkpointing(levels=(storage,))}
    if storage_bandwidth is not None:
        raise ValueError(
            f"storage_bandwidth must be left out with checkpoints, got {storage_bandwidth!r:.80}"
        )
    if isinstance(checkpoints, Checkpointing):
        return {" + ".join(level.name for level in checkpoints.levels): checkpoints}
    if not require_instance(Mapping, checkpoints=checkpoints):
        raise ValueError(f"checkpoints must hold at least one choice, got {checkpoints!r}")
    for name, one in checkpoints.items():
        require_instance(str, checkpoints=name)
        require_instance(Checkpointing, checkpoints=one)
    return dict(checkpoints)


def with_unseen(
    checkpoints: Mapping[str, Checkpointing], rates: Any, nodes: int
) -> Mapping[str, Checkpointing]:
    """Checkpoints that are written also where no failure of a log goes back to one.

    As is best against half a failure of the job over the time watched: the mean of the posterior
    of what a log has not seen.
    """
    if not isinstance(rates, FailureLog):
        return checkpoints
    between = rates.exposure / (nodes * NONE_SEEN)
    return {
        name: one
        if one.unseen is not None
        else replace(one, unseen=float(checkpoint_interval(max(one.levels[-1].cost, 1.0), between)))
        for name, one in checkpoints.items()
    }


def measured_of(
    measured: Any, clusters: tuple[Cluster, ...], **others: Any
) -> dict[Placement, float]:
    """Measured strategies with placement; what only computed ones have is refused beside them."""
    if measured is None:
        return {}
    for name, value in others.items():
        if value:
            raise ValueError(f"{name} must be left out with measured strategies, got {value!r:.80}")
    if not require_instance(Mapping, measured=measured) or len(clusters) > 1:
        raise ValueError(f"measured must hold strategies of one cluster, got {measured!r:.80}")
    found = {}
    for one, throughput in measured.items():
        if not isinstance(one, Placement):
            one = Placement(strategy=require_instance(Strategy, measured=one))
        found[one] = float(require_real(measured=throughput, above=0, at_most=1e30))
        one.strategy.for_gpus(clusters[0].gpus)
    if len({placement.order for placement in found}) > 1:
        raise ValueError(
            f"measured must have one rank order, got {sorted({p.order for p in found})}"
        )
    return found


def apart_of(apart: Any) -> dict[str, int]:
    """Axes, each with the largest value that is usual."""
    given = require_instance((Mapping, type(None)), apart=apart) or {}
    for name, most in given.items():
        require_choice(tuple(name for name in AXES if name not in WORDS), apart=name)
        require_int(apart=most, at_least=0)
    return {name: int(most) for name, most in given.items()}


def orders_of(orders: Any) -> tuple[tuple[str, ...], ...]:
    """Rank orders, each once."""
    if not require_instance(tuple, orders=orders):
        raise ValueError(f"orders must hold at least one rank order, got {orders!r}")
    return tuple(
        dict.fromkeys(Placement(strategy=Strategy(), order=order).order for order in orders)
    )
