"""What fails in a job: rates of a published run on a cluster or on the parts of a topology.

Published runs count only where a count or a rate is given with the parts and the time that it
belongs to.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from relparallel._checks import require_choice, require_instance
from relparallel._notices import told
from relparallel.hardware import Cluster, ComponentRate, ComponentRates, llama3_interruptions
from relparallel.parallel import Placement, Strategy
from relparallel.published import facts, shipped_rows
from relparallel.topology import Topology
from relparallel.training._arguments import require_rate
from relparallel.training.failure_logs import FailureLog
from relparallel.training.failure_sources import SharedEvents, Source
from relparallel.training.failures import ComponentClass, FailureModel
from relparallel.training.network_failures import (
    NetworkImpact,
    network_bounds,
    network_impact,
    plan_impact,
)
from relparallel.training.network_parts import outside
from relparallel.training.shared_fits import outages_alone
from relparallel.units import DAY, HOUR
from relparallel.workload import Transformer

if TYPE_CHECKING:
    from relparallel.parallel.round_plans import RoundPlan

HARDWARE: Final = "hardware"
"""Category of a cause that counts all hardware together, the network as well."""
_NODE: Final = 8  # GPUs
_CARD: Final = "nic"  # of a topology; "NIC" in the tables


@told
def failure_model(
    topology: Cluster | Topology,
    strategy: Strategy,
    placement: Placement | None = None,
    rates: str | ComponentRates | FailureLog | tuple[ComponentClass, ...] = "llama3",
    *,
    workload: Transformer | None = None,
    cluster: Cluster | None = None,
    global_batch: int | None = None,
    network_rates: Mapping[str, float] | None = None,
    repair: float | Mapping[str, float] | None = None,
    plan: RoundPlan | None = None,
    software: str | None = None,
    source: Source | None = None,
) -> FailureModel:
    """Build what fails in a job, how often, and what it hits.

    Parameters
    ----------
    topology : Cluster or Topology
        Where the job runs. The hosts of a topology are its GPUs, eight to a node, or its nodes; it
        brings its parts: cards, cables, switches, groups of shared risk.
    strategy, placement : Strategy, Placement, optional
        How it is split, filling the cluster, and which GPU runs which rank (the default order).
    rates : str, ComponentRates, FailureLog or tuple of ComponentClass
        A published table ("llama3", "rsc1", "rsc2", "opt175b", "bloom", "glm130b", "mpt7b"), a
        table, a log (`FailureLog.classes`), or the classes themselves; the last two count nothing
        of the network. NVLink switch trays fail where a row or class of level "nvlink" says how
        often; no rate of them is published.
    workload, global_batch : Transformer, int, optional
        What is trained, and sequences of a step: the slowdown of a part is that of the step
        (`network_impact`). Without it a bound, 1/(share of bandwidth left to the groups that lose
        most).
    cluster : Cluster, optional
        Nodes of the job, those of the topology where omitted; a workload needs an accelerator and
        links.
    network_rates : Mapping of str to float, optional
        Failures per part and second by name ("leaf", "nic-leaf cable") or family: "cable",
        "switch", "nic"; `published_network_rates` where omitted. Parts without a rate never fail;
        those inside a server count with its node unless they are named.
    repair : float or Mapping of str to float, optional
        Mean time until a part of the network works again [s], for all or by name or family.
    plan : RoundPlan, optional
        In place of a workload: how the ranks sum their gradients on the topology, by rounds. The
        slowdown of a part is then that of a step with this sum (`plan_rounds`).
    software : str, optional
        With a workload, which software trains it, as in `step_time`: what it overlaps decides what
        a slower part costs.
    source : SharedEvents, NodeLives or Replay, optional
        How failures of nodes come, as in `FailureModel`: independent where omitted.

    Returns
    -------
    FailureModel
        Failures per GPU are those of a published table, so that a job fails as a whole in
        proportion to its GPUs (`ComponentRates.carried`); classes are taken as given. No failure is
        counted twice: on a topology the network of the table ("Network switch/cable") gives way to
        the parts, its failed cards become those of the parts "nic", and a table that counts all
        hardware of a node together keeps its total.

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
        raise ValueError(
            f"placement must place the strategy {strategy}, got one of {place.strategy}"
        )
    known = rate_table(rates, home, source)
    table = None if isinstance(known, tuple) else known
    if isinstance(known, tuple):
        base = FailureModel(classes=known, cluster=home, placement=place, source=source)
    else:
        base = replace(FailureModel.from_rates(known, home, place), source=source)
    if isinstance(topology, Cluster):
        extras = {
            "workload": workload,
            "cluster": cluster,
            "global_batch": global_batch,
            "network_rates": network_rates,
            "repair": repair,
            "plan": plan,
            "software": software,
        }
        for name, value in extras.items():
            if value is not None:
                raise ValueError(
                    f"{name} must be left out unless topology is a Topology, got {value!r}"
                )
        return base
    impact = _impact(workload, place, home, global_batch, topology, plan, software)
    times: dict[str, Any] = dict.fromkeys((part.name for part in impact.parts), repair)
    if isinstance(repair, Mapping):
        times = _by_part(repair, "repair", [*times], topology)
    by_part = _rates_by_part(network_rates, base if table else None, impact, topology)
    parts = tuple(
        replace(
            entry,
            repair=times.get(entry.name),
            bound=workload is None and plan is None and entry.effect == "degrade",
        )
        for entry in impact.component_classes(by_part, home)
    )
    cards = any(part.name == _CARD for part in impact.parts)
    return replace(base, classes=(*_rest(base, table, parts, cards), *parts))


def _impact(
    workload: Any,
    placement: Placement,
    cluster: Cluster,
    global_batch: Any,
    topology: Topology,
    plan: Any,
    software: str | None,
) -> NetworkImpact:
    """What the parts do to a job that is known, or at worst."""
    for name, value in {"software": software, "global_batch": global_batch}.items():
        if workload is None and value is not None:
            raise ValueError(f"{name} must be left out without a workload, got {value!r}")
    if plan is not None:
        from relparallel.parallel.round_plans import RoundPlan  # loads a compiler

        gpus = placement.strategy.gpus
        if workload is not None or require_instance(RoundPlan, plan=plan).network is not topology:
            raise ValueError(
                f"plan must stand on the topology and without a workload, got {plan!r:.80}"
            )
        return plan_impact(plan, gpus)
    if workload is None:
        return network_bounds(placement, cluster, topology)
    require_instance(Transformer, workload=workload)
    if cluster.accelerator is None or cluster.network_bandwidth is None:
        raise ValueError(
            "cluster must have an accelerator and a network_bandwidth with a workload, got "
            f"{cluster!r}"
        )
    if global_batch is None:
        raise ValueError("global_batch must be given with a workload, got None")
    return network_impact(workload, placement, cluster, global_batch, topology, software=software)


def _rates_by_part(
    given: Any, base: FailureModel | None, impact: NetworkImpact, topology: Topology
) -> dict[str, float]:
    """Failures per part and second of every part that counts with the network."""
    rates = (
        published_network_rates()
        if given is None
        else require_instance(Mapping, network_rates=given)
    )
    for rate in rates.values():
        require_rate(network_rates=rate)
    cards = sum(part.count for part in impact.parts if part.name == _CARD)
    if cards and base is not None and _CARD not in rates:
        moved = sum(base.class_rate(entry) for entry in base.classes if entry.name == "NIC")
        rates = {**rates, _CARD: moved / cards}
    names = [part.name for part in impact.parts]
    never = {name: 0.0 for name in names if outside(topology, name)}
    return never | _by_part(rates, "network_rates", names, topology)


def _by_part(given: Any, named: str, names: list[str], topology: Topology) -> dict[str, float]:
    """What is given for parts by name, else for their family; parts inside a server have none."""
    known = {*names, "cable", "switch", _CARD}
    for name in require_instance(Mapping, **{named: given}):
        if name not in known:
            raise ValueError(f"{named} must name parts among {sorted(known)}, got {name!r}")
    found = {}
    for name in names:
        family = "cable" if name.endswith(" cable") else "switch" if name in topology.kinds else ""
        if name in given or (family in given and outside(topology, name)):
            found[name] = given.get(name, given.get(family))
    return found


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
                raise ValueError(
                    f"network_rates must stay below the table's {base.class_rate(entry):g} "
                    f"failures per second, got {total:g}"
                )
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
            f"topology must have a host for each of {gpus} GPUs, or for each node, got {hosts}"
        )
    return given or Cluster(nodes=gpus // node, gpus_per_node=node)


def rate_table(
    rates: Any, cluster: Cluster, source: Any = None
) -> ComponentRates | tuple[ComponentClass, ...]:
    """A failure table by name or as given, or the classes of a log or as given.

    By name: Llama-3 (18 causes); RSC-1 and RSC-2 of Meta, OPT-175B, GLM-130B and MPT-7B (all
    hardware of a node of eight GPUs together); BLOOM (GPUs). Only Llama-3 has published failures of
    the job's software with their number. Shared events say how many nodes fail together: of a log
    every outage counts then.
    """
    if isinstance(rates, FailureLog):
        shared = isinstance(source, SharedEvents)
        return (outages_alone(rates) if shared else rates).classes(cluster)
    if not isinstance(rates, str):
        return require_instance((ComponentRates, tuple), rates=rates)  # type: ignore[no-any-return]
    rows = {row["name"]: row for row in shipped_rows("failure_tables.csv")}
    if require_choice(("llama3", *rows), rates=rates) == "llama3":
        return llama3_interruptions()
    row = rows[rates]
    cause = ComponentRate(
        cause=row["cause"],
        category=row["category"],
        level=row["level"],
        events=int(row["events"]),
        components=int(row["components"]),
        duration=float(row["hours"]) * HOUR,
    )
    source = facts("training-reliability")[row["fact"]].source
    return ComponentRates(source=source, causes=(cause,), gpus_per_node=_NODE)


def published_network_rates() -> dict[str, float]:
    """Failures of links and switches in Alibaba's clusters.

    Returns
    -------
    dict of str to float
        Per link between a card and its ToR ("cable"), and per ToR switch ("switch") [1/s].

    References
    ----------
    Qian et al., "Alibaba HPN", SIGCOMM 2024: 0.057 % of links and 0.051 % of ToR switches per month
    of 30 days (rows HPN-001 and HPN-002 of the published facts, marked as not confirmed).

    Examples
    --------
    >>> {name: round(rate * 30 * 86400, 5) for name, rate in published_network_rates().items()}
    {'cable': 0.00057, 'switch': 0.00051}
    """
    rows = facts("training-reliability")
    named = {"cable": "HPN-001", "switch": "HPN-002"}
    return {name: float(rows[row].value_text) / (30 * DAY) for name, row in named.items()}
