"""Arguments of `joint`, checked and compiled."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple

import numpy as np

from relparallel._checks import require_choice, require_instance, require_int, require_real
from relparallel.hardware import Cluster
from relparallel.optimize.joint_network import Wiring, network_price, part_rates
from relparallel.optimize.joint_search import Site
from relparallel.optimize.joint_strategies import (
    fastest_of_each_kind,
    measured_strategies,
    with_fewer_replicas,
)
from relparallel.parallel import Placement, Strategy
from relparallel.parallel.grid import lawful_degrees
from relparallel.topology import Topology
from relparallel.training import (
    Checkpointing,
    CheckpointLevel,
    FailureModel,
    Recovery,
    checkpoint_time,
    published_network_rates,
)
from relparallel.training._arguments import require_rate, require_time
from relparallel.training.failure_model import rate_table
from relparallel.training.network_parts import parts_of
from relparallel.training.recovery_policies import POLICIES
from relparallel.units import GB
from relparallel.workload import Transformer

# Storage of Llama 3's run, row L3-041: 2 TB/s for 16,384 GPUs. BLOOM's 384 GPUs had 57.5 GB/s
# (BLM-002), 150 MB/s each where these have 122.
STORAGE: Final = 2000 * GB / 16384
HELD: Final = 20  # at most one node in so many is held back unless asked otherwise


Measured = Mapping[Placement, float]


class Fabric(NamedTuple):
    """A network by name, with the failures of its parts; or a cluster's two levels of links."""

    name: str = ""
    network: Topology | None = None
    rates: Mapping[str, float] | None = None


def clusters_of(cluster: Any) -> tuple[Cluster, ...]:
    """One or several."""
    several = (cluster,) if isinstance(cluster, Cluster) else cluster
    if not isinstance(several, (tuple, list)) or not several:
        raise TypeError(f"cluster must be a Cluster or several of them, got {cluster!r:.80}")
    for one in several:
        require_instance(Cluster, cluster=one)
    return tuple(several)


def networks_of(
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


def network_rates_of(given: Any) -> dict[str, float]:
    """Failures per part and second, by name or kind."""
    if given is None:
        return published_network_rates()
    for name, rate in require_instance(Mapping, network_rates=given).items():
        require_instance(str, network_rates=name)
        require_rate(network_rates=rate)
    return {name: float(rate) for name, rate in given.items()}


def prices_of(price: Any, clusters: tuple[Cluster, ...], objective: str) -> list[float]:
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


def recoveries_of(
    policies: Any, repair: float, restart: float, pause: float
) -> dict[str, Recovery]:
    """By name."""
    if isinstance(policies, str) or not isinstance(policies, Sequence) or not policies:
        raise TypeError(f"policies must be a sequence of at least one policy, got {policies!r}")
    found = {}
    for one in policies:
        if not isinstance(one, Recovery):
            name = require_choice(tuple(POLICIES), policies=one)
            one = Recovery(name, repair=repair, restart=restart, pause=pause)
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


def measured_of(measured: Any, clusters: tuple[Cluster, ...], **others: Any) -> Measured:
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


def orders_of(orders: Any) -> tuple[tuple[str, ...], ...]:
    """Rank orders, each once."""
    if not require_instance(tuple, orders=orders):
        raise ValueError(f"orders must hold at least one rank order, got {orders!r}")
    return tuple(
        dict.fromkeys(Placement(strategy=Strategy(), order=order).order for order in orders)
    )


def held_of(
    spares: Any,
    cluster: Cluster,
    model: Transformer,
    global_batch: int,
    limits: Mapping[str, Any],
    measured: Measured,
) -> list[int]:
    """Numbers of nodes to hold back."""
    together = int(np.lcm(cluster.nodes_per_switch, cluster.nodes_per_rack))

    def filled(held: int) -> bool:
        job = replace(cluster, nodes=cluster.nodes - held)
        if measured:
            return any(with_fewer_replicas(one, job) for one in measured)
        return lawful_degrees(job.gpus, model, global_batch, job.gpus_per_node, limits)[0].size > 0

    if spares is None:
        most = cluster.nodes - 1 if measured else cluster.nodes // HELD
        return [held for held in range(0, most + 1, together) if filled(held)] or [0]
    given = (spares,) if isinstance(spares, (int, np.integer)) else spares
    if not isinstance(given, Sequence) or isinstance(given, str) or not given:
        raise TypeError(f"spares must be a number of nodes or several, got {spares!r}")
    for one in given:
        if require_int(spares=one, at_least=0, at_most=cluster.nodes - 1) % together:
            raise ValueError(
                f"spares must be whole switches and racks of {together} nodes, got {one}"
            )
        if measured and not filled(int(one)):
            raise ValueError(f"spares must be whole replicas of some measured strategy, got {one}")
    return sorted(set(given))


def site_of(
    model: Transformer,
    rates: Any,
    global_batch: int,
    limits: Mapping[str, Any],
    options: Mapping[str, Any],
    objective: str,
    write_off: float | None,
    measured: Measured,
    place: tuple[Cluster, Fabric, float, int, tuple[str, ...]],
) -> Site:
    """A cluster with its network and price, with some nodes held back, and a rank order."""
    cluster, fabric, price, held, order = place
    network = fabric.network
    if write_off is not None:
        require_time(write_off=write_off, positive=True)
        price += 0.0 if network is None else network_price(network) / write_off
    job = replace(cluster, nodes=cluster.nodes - held)
    if measured:
        fastest = measured_strategies(measured, job, global_batch * model.sequence, whole=held == 0)
    else:
        fastest = fastest_of_each_kind(model, job, global_batch, limits, network, order, **options)
    wiring = (
        None
        if network is None or fastest.costs is None
        else Wiring(
            network=network,
            job=job,
            costs=fastest.costs,
            rates=fabric.rates or {},
            order=order,
        )
    )
    return Site(
        cluster=cluster,
        job=job,
        spares=held,
        failures=_failures(rates, job, wired=network is not None),
        price=price,
        fastest=fastest,
        weight=price if objective == "cost" else 1.0,
        fabric=fabric.name,
        wiring=wiring,
    )


def _failures(rates: Any, cluster: Cluster, wired: bool) -> FailureModel:
    """What fails on the nodes of a job, no strategy placed; a network's parts replace a table's."""
    cluster = replace(cluster, accelerator=None)  # what fails is a matter of counts
    table = rate_table(rates, cluster)
    if isinstance(table, tuple):
        return FailureModel(classes=table, cluster=cluster)
    if wired:
        table = replace(
            table, causes=tuple(row for row in table.causes if row.category != "network")
        )
    return FailureModel.from_rates(table, cluster)
