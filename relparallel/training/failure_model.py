"""What fails in a job: rates of a published run on a cluster or on the parts of a topology."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from relparallel._checks import require_choice, require_instance
from relparallel.hardware import Cluster, ComponentRates
from relparallel.parallel import Placement, Strategy
from relparallel.topology import Topology
from relparallel.training._arguments import require_rate, require_time
from relparallel.training.failure_tables import HARDWARE, RATES, published_network_rates
from relparallel.training.failures import ComponentClass, FailureModel
from relparallel.training.network_failures import NetworkImpact, network_bounds, network_impact
from relparallel.training.network_parts import outside
from relparallel.workload import Transformer

_NODE: Final = 8  # GPUs
_CARD: Final = "nic"  # of a topology; "NIC" in the tables


def failure_model(
    topology: Cluster | Topology,
    strategy: Strategy,
    placement: Placement | None = None,
    rates: str | ComponentRates | tuple[ComponentClass, ...] = "llama3",
    *,
    workload: Transformer | None = None,
    cluster: Cluster | None = None,
    global_batch: int | None = None,
    network_rates: Mapping[str, float] | None = None,
    repair: float | Mapping[str, float] | None = None,
) -> FailureModel:
    """Build what fails in a job, how often, and what it hits.

    Parameters
    ----------
    topology : Cluster or Topology
        Where the job runs. The hosts of a topology are its GPUs, eight to a node, or its nodes; it brings its
        parts: cards, cables, switches, groups of shared risk.
    strategy : Strategy
        How it is split; it fills the cluster.
    placement : Placement, optional
        Which GPU runs which rank; the default order where omitted.
    rates : str, ComponentRates or tuple of ComponentClass
        One of `RATES`, a failure table, or the classes themselves, which then count nothing of the network.
    workload : Transformer, optional
        What is trained: the slowdown of a part is that of the step (`network_impact`). Without it a bound:
        1/(share of the bandwidth left to the groups that lose most).
    cluster : Cluster, optional
        Nodes of the job, those of the topology where omitted; a workload needs an accelerator and links.
    global_batch : int, optional
        Sequences of a step; a workload needs it.
    network_rates : Mapping of str to float, optional
        Failures per part and second by name ("leaf", "nic-leaf cable") or family: "cable", "switch", "nic";
        `published_network_rates` where omitted. Parts without a rate never fail; those inside a server count
        with its node unless they are named.
    repair : float or Mapping of str to float, optional
        Mean time until a part of the network works again [s], for all or by name or family; that of the
        recovery policy where omitted.

    Returns
    -------
    FailureModel
        With its `domains`: classes, not GPUs, are what anything is computed on.

    Notes
    -----
    No failure is counted twice: on a topology the network of the table ("Network switch/cable") gives way to
    the parts, its failed cards become those of the parts "nic", and a table that counts all hardware of a
    node together keeps its total.

    References
    ----------
    Qian et al., "Alibaba HPN", SIGCOMM 2024, for the rates of links and ToR switches.

    Examples
    --------
    >>> model = failure_model(Cluster(nodes=2048), Strategy(tensor=8, pipeline=16, data=128), rates="llama3")
    >>> len(model.domains), round(model.mtbf / 3600, 2)
    (18, 3.09)
    >>> from relparallel.training import redundant_fabric
    >>> wired = failure_model(redundant_fabric(servers=16, planes=2), Strategy(tensor=8, data=16))
    >>> frame = wired.to_frame().set_index("class")
    >>> frame.loc[["leaf", "nic-leaf cable"], ["parts", "effect", "slowdown"]].values.tolist()
    [[4, 'degrade', 2.0], [256, 'degrade', 2.0]]
    """
    require_instance(Strategy, strategy=strategy)
    home = _cluster(topology, strategy.gpus, cluster)
    place = Placement(strategy=strategy) if placement is None else placement
    if require_instance(Placement, placement=place).strategy != strategy:
        raise ValueError(f"placement must place the strategy {strategy}, got one of {place.strategy}")
    extras = {"workload": workload, "global_batch": global_batch, "network_rates": network_rates,
              "repair": repair}  # fmt: skip
    if isinstance(topology, Cluster):
        for name, value in {**extras, "cluster": cluster}.items():
            if value is not None:
                raise ValueError(f"{name} must be left out unless topology is a Topology, got {value!r}")
        return _without_parts(rates, home, place)
    impact = _impact(workload, place, home, global_batch, topology)
    base = _without_parts(rates, home, place)
    table = None if isinstance(rates, tuple) else _table(rates)
    parts = _parts(
        impact, topology, home, _rates_by_part(network_rates, table, impact, topology, home), repair
    )
    if workload is None:
        parts = tuple(replace(entry, bound=entry.effect == "degrade") for entry in parts)
    cards = any(part.name == _CARD for part in impact.parts)
    return replace(base, classes=(*_rest(base, table, parts, cards), *parts))


def _without_parts(rates: Any, cluster: Cluster, placement: Placement) -> FailureModel:
    """Of a table, or of classes."""
    if isinstance(rates, tuple):
        return FailureModel(classes=rates, cluster=cluster, placement=placement)
    return FailureModel.from_rates(_table(rates), cluster, placement)


def _impact(
    workload: Any, placement: Placement, cluster: Cluster, global_batch: Any, topology: Topology
) -> NetworkImpact:
    """What the parts do to a job that is known, or at worst."""
    if workload is None:
        return network_bounds(placement, cluster, topology)
    require_instance(Transformer, workload=workload)
    if cluster.accelerator is None or cluster.network_bandwidth is None:
        raise ValueError(f"cluster must have an accelerator and a network_bandwidth, got {cluster!r}")
    if global_batch is None:
        raise ValueError("global_batch must be given with a workload, got None")
    return network_impact(workload, placement, cluster, global_batch, topology)


def _rates_by_part(
    given: Any, table: ComponentRates | None, impact: NetworkImpact, topology: Topology, cluster: Cluster
) -> dict[str, float]:
    """Failures per part and second of every part that counts with the network."""
    rates = (
        published_network_rates() if given is None else _by_name(impact, rate=given, named="network_rates")
    )
    for rate in rates.values():
        require_rate(network_rates=rate)
    cards = sum(part.count for part in impact.parts if part.name == _CARD)
    if cards and table is not None and _CARD not in rates:
        moved = sum(row.rate * cluster.parts(row.level) for row in table.causes if row.cause == "NIC")
        rates = {**rates, _CARD: moved / cards}
    names = {part.name for part in impact.parts}
    found = {name: _of_part(rates, name, topology) for name in names}
    return {name: rate or 0.0 for name, rate in found.items() if rate is not None or outside(topology, name)}


def _by_name(impact: NetworkImpact, rate: Any, named: str) -> dict[str, float]:
    """A mapping by part or family, checked."""
    known = {part.name for part in impact.parts} | {"cable", "switch", _CARD}
    for name in require_instance(Mapping, **{named: rate}):
        if name not in known:
            raise ValueError(f"{named} must name parts among {sorted(known)}, got {name!r}")
    return dict(rate)


def _of_part(values: Mapping[str, float], name: str, topology: Topology) -> float | None:
    """What is given for a part by its name, else for its family."""
    if name in values or not outside(topology, name):
        return values.get(name)
    family = "cable" if name.endswith(" cable") else "switch"
    return values.get(family) if family == "cable" or name in topology.kinds else None


def _parts(
    impact: NetworkImpact, topology: Topology, cluster: Cluster, rates: dict[str, float], repair: Any
) -> tuple[ComponentClass, ...]:
    """One class for each kind of part that does anything, with its rate and repair."""
    if not isinstance(repair, Mapping):
        return impact.component_classes(rates, cluster, repair)
    times = _by_name(impact, rate=repair, named="repair")
    for time in times.values():
        require_time(repair=time)
    return tuple(
        replace(entry, repair=_of_part(times, entry.name, topology))
        for entry in impact.component_classes(rates, cluster)
    )


def _rest(
    base: FailureModel, table: ComponentRates | None, parts: tuple[ComponentClass, ...], cards: bool
) -> tuple[ComponentClass, ...]:
    """Classes of the table without those that the parts stand for."""
    if table is None:
        return base.classes
    total = sum(base.class_rate(entry) for entry in parts)
    rest = []
    for row, entry in zip(table.causes, base.classes, strict=True):
        if row.category == "network" or (row.cause == "NIC" and cards):
            continue
        if row.category == HARDWARE:
            left = base.class_rate(entry) - total
            if left < 0:
                raise ValueError(f"network_rates must stay below the table's {base.class_rate(entry):g} "
                                 f"failures per second, got {total:g}")  # fmt: skip
            entry = replace(entry, rate=left / base.parts(entry))
        rest.append(entry)
    return tuple(rest)


def _cluster(topology: Any, gpus: int, given: Any) -> Cluster:
    """Nodes of the job: those given, else those of the hosts."""
    if isinstance(topology, Cluster):
        return topology
    hosts = require_instance(Topology, topology=topology).num_hosts
    node = _NODE if hosts == gpus else gpus // hosts
    if given is not None:
        node = require_instance(Cluster, cluster=given).gpus_per_node
        if given.gpus != gpus:
            raise ValueError(f"cluster must have the {gpus} GPUs of the strategy, got {given.gpus}")
    if hosts not in (gpus, gpus // max(node, 1)) or gpus % max(node, 1):
        raise ValueError(
            f"topology must have a host for each of {gpus} GPUs, or one for each node, got {hosts}"
        )
    return given or Cluster(nodes=gpus // node, gpus_per_node=node)


def _table(rates: Any) -> ComponentRates:
    """A failure table by name, or as given."""
    if isinstance(rates, str):
        return RATES[require_choice(tuple(RATES), rates=rates)]()
    return require_instance(ComponentRates, rates=rates)  # type: ignore[no-any-return]
